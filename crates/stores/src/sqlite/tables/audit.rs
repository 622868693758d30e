//! The audit: rows of entries, each chained to the one before it, and the head of each chain. Only
//! the writer extends a chain, in the transaction of what the entries are about.

use super::columns::{bad_cursor, count, execute, integer, limit_of, many, one, to_json};
use crate::sqlite::SqliteStore;
use crate::sqlite::error::{JobError, Result, is_taken};
use crate::sqlite::queue::Writes;
use kernel::contracts::identity::audit::{Audit, AuditFilter, ChainState, LocatedEntry};
use kernel::contracts::{ListPage, PageRequest, Read, StoreError};
use kernel::identity::audit::{ChainName, Entries, Entry, Mac};
use kernel::identity::chain::{Base, Bodies, Body, ChainKeys, Head, Row as ChainRow, Unchained};
use kernel::values::ids::Millis;
use rusqlite::{Connection, Row, params};
use std::sync::{Arc, OnceLock};

/// How many entries are read for one page, or rows left out: a filter that passes few must not hold
/// up others.
const LOOKED_AT_MAX: usize = 20_000;

const HEAD: &str = "SELECT seq, mac FROM audit_heads WHERE chain = ?1";

const INSERT: &str = "INSERT INTO audit (chain, seq, at, key, prev, mac, body) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

const MOVE: &str = "INSERT INTO audit_heads (chain, seq, mac) VALUES (?1, ?2, ?3) \
     ON CONFLICT (chain) DO UPDATE SET seq = excluded.seq, mac = excluded.mac";

const CHAINS: &str = "SELECT chain, seq, mac, base_seq, base_mac, base_key, base_proof \
     FROM audit_heads ORDER BY chain";

const NEWEST: &str =
    "SELECT seq, at, body FROM audit WHERE chain = ?1 AND seq BETWEEN 1 AND ?2 ORDER BY seq DESC";

const OLDEST: &str = "SELECT seq, at, key, prev, body, mac FROM audit \
     WHERE chain = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";

const OLD: &str = "SELECT seq, at, mac FROM audit WHERE chain = ?1 AND seq < ?2 \
     ORDER BY seq LIMIT ?3";

const REBASE: &str = "UPDATE audit_heads SET base_seq = ?2, base_mac = ?3, base_key = ?4, \
     base_proof = ?5 WHERE chain = ?1";

/// The keys of chains, once they are given.
#[derive(Default)]
pub(crate) struct AuditKeys(OnceLock<Arc<dyn ChainKeys>>);

impl AuditKeys {
    #[cfg(test)]
    pub(crate) fn of(keys: Arc<dyn ChainKeys>) -> Self {
        Self(OnceLock::from(keys))
    }

    /// They, or why nothing can be written.
    pub(crate) fn get(&self) -> Result<&dyn ChainKeys> {
        let missing = || StoreError::Failed("the audit has no keys yet".to_owned());
        self.0.get().map(|keys| &**keys).ok_or_else(|| JobError::Refused(missing()))
    }
}

/// Entries of appends that share a transaction: each chain gets one row of them.
#[derive(Default)]
pub(crate) struct SharedRows(Bodies);

impl SharedRows {
    /// Adds the entries of an append: all of them, or none.
    pub(crate) fn add(&mut self, chain: &ChainName, entries: &[Entry]) -> Result<()> {
        let texts: Vec<String> = entries.iter().map(to_json).collect::<Result<_>>()?;
        for (entry, text) in entries.iter().zip(texts) {
            match self.0.iter_mut().find(|(name, _)| name == chain) {
                Some((_, body)) => body.add(entry.at, &text),
                None => self.0.push((chain.clone(), Body::of(entry.at, &text))),
            }
        }
        Ok(())
    }

    /// Writes the rows of what was added.
    pub(crate) fn write(&mut self, connection: &Connection, keys: &AuditKeys) -> Result<()> {
        let bodies = std::mem::take(&mut self.0);
        if bodies.is_empty() { Ok(()) } else { write_rows(connection, keys, &bodies) }
    }
}

/// Writes bodies, each as the next row of its chain.
fn write_rows(connection: &Connection, keys: &AuditKeys, bodies: &Bodies) -> Result<()> {
    let keys = keys.get()?;
    bodies.iter().try_for_each(|(chain, body)| {
        extend(connection, chain, |head| ChainRow::holding(keys, chain, head, body))
    })
}

/// Writes entries as the next row of their chain.
fn write(
    connection: &Connection,
    keys: &dyn ChainKeys,
    chain: &ChainName,
    entries: &[Entry],
) -> Result<()> {
    let Some(at) = entries.iter().map(|entry| entry.at).max() else { return Ok(()) };
    extend(connection, chain, |head| ChainRow::after(keys, chain, head, at, entries))
}

/// Writes the next row of a chain, which is made after its head.
fn extend(
    connection: &Connection,
    chain: &ChainName,
    next: impl FnOnce(&Head) -> Result<ChainRow, Unchained>,
) -> Result<()> {
    let name = chain.as_str();
    let head = one(connection, HEAD, params![name], |row| head(row, 0))?;
    let row = next(&head.unwrap_or_default()).map_err(unchained)?;
    let ChainRow { seq, at, key, prev, body, mac } = row;
    let values = params![name, integer(seq), at.0, key, prev.0, mac.0, body];
    execute(connection, INSERT, values).map_err(|trouble| taken(trouble, chain))?;
    execute(connection, MOVE, params![name, integer(seq), mac.0])?;
    Ok(())
}

/// Writes lists of entries, each as a row of its chain.
pub(crate) fn write_all(
    connection: &Connection,
    keys: &AuditKeys,
    lists: &[(ChainName, Vec<Entry>)],
) -> Result<()> {
    if lists.is_empty() {
        return Ok(());
    }
    let keys = keys.get()?;
    lists.iter().try_for_each(|(chain, entries)| write(connection, keys, chain, entries))
}

/// Queues entries that are texts, each body as a row of its chain.
fn write_bodies(writes: &Writes, keys: Arc<AuditKeys>, bodies: Arc<Bodies>) -> Read<'static, ()> {
    let size = bodies.iter().map(|(_, body)| body.bytes()).sum();
    writes.perform_large(size, move |connection| write_rows(connection, &keys, &bodies))
}

impl Audit for SqliteStore {
    fn begin(&self, keys: Arc<dyn ChainKeys>) {
        // A store is begun once; the first keys stay.
        let _ = self.audit_keys.0.set(keys);
    }

    fn write(&self, entries: Arc<Entries>) -> Read<'_, ()> {
        let keys = self.audit_keys.clone();
        self.writes.perform(move |connection| write_all(connection, &keys, &entries))
    }

    fn write_bodies(&self, bodies: Arc<Bodies>) -> Read<'_, ()> {
        write_bodies(&self.writes, self.audit_keys.clone(), bodies)
    }

    fn chains(&self) -> Read<'_, Vec<ChainState>> {
        self.readers.read(|connection| many(connection, CHAINS, (), chain_state))
    }

    fn entries<'a>(
        &'a self,
        chain: &'a ChainName,
        filter: &'a AuditFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<LocatedEntry>> {
        let chain = chain.clone();
        let filter = filter.clone();
        let page = page.clone();
        self.readers.read(move |connection| entries(connection, &chain, &filter, &page))
    }

    fn rows<'a>(
        &'a self,
        chain: &'a ChainName,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<ChainRow>> {
        let chain = chain.clone();
        self.readers.read(move |connection| {
            let params = params![chain.as_str(), integer(after), limit_of(limit)];
            many(connection, OLDEST, params, chain_row)
        })
    }

    fn prune(&self, before: Millis, limit: usize) -> Read<'_, usize> {
        let keys = self.audit_keys.clone();
        self.writes.perform(move |connection| {
            let mut removed = 0;
            for state in many(connection, CHAINS, (), chain_state)? {
                removed += prune(connection, keys.get()?, &state, before, limit)?;
            }
            Ok(removed)
        })
    }
}

/// Removes the oldest rows of a chain, without a gap: rows of a clock that went back wait for those
/// before them.
fn prune(
    connection: &Connection,
    keys: &dyn ChainKeys,
    state: &ChainState,
    before: Millis,
    limit: usize,
) -> Result<usize> {
    let ChainState { chain, head: last, .. } = state;
    let params = params![chain.as_str(), integer(last.seq), limit_of(limit)];
    let oldest = many(connection, OLD, params, |row| {
        Ok((Millis(row.get(1)?), Head { seq: count(row, 0)?, mac: mac(row, 2)? }))
    })?;
    let old: Vec<Head> =
        oldest.into_iter().take_while(|(at, _)| *at < before).map(|(_, head)| head).collect();
    let Some(newest) = old.last() else { return Ok(0) };
    let Base { head, key, proof } = Base::at(keys, chain, *newest).map_err(unchained)?;
    let name = chain.as_str();
    let seq = integer(head.seq);
    execute(connection, REBASE, params![name, seq, head.mac.0, key, proof.0])?;
    execute(connection, "DELETE FROM audit WHERE chain = ?1 AND seq <= ?2", params![name, seq])?;
    Ok(old.len())
}

/// A page of entries, newest first. A place is the number of a row and how many of its entries are
/// still to come.
fn entries(
    connection: &Connection,
    chain: &ChainName,
    filter: &AuditFilter,
    page: &PageRequest,
) -> Result<ListPage<LocatedEntry>> {
    let (from, mut left) = place(page)?;
    let mut statement = connection.prepare_cached(NEWEST)?;
    let mut rows = statement.query(params![chain.as_str(), from])?;
    let mut items = Vec::new();
    let mut looked_at = 0;
    while let Some(row) = rows.next()? {
        let seq = count(row, 0)?;
        let at = Millis(row.get(1)?);
        if filter.ends_at(at) {
            break;
        }
        if filter.skips(at) {
            if looked_at >= LOOKED_AT_MAX {
                return Ok(ListPage { items, next_cursor: Some(format!("{seq}.{left}")) });
            }
            looked_at += 1;
            left = usize::MAX;
            continue;
        }
        let mut held = entries_of(seq, &row.get::<_, String>(2)?)?;
        held.truncate(left);
        left = usize::MAX;
        while let Some(entry) = held.pop() {
            if items.len() >= page.limit.max(1) || looked_at >= LOOKED_AT_MAX {
                let next_cursor = Some(format!("{seq}.{}", held.len() + 1));
                return Ok(ListPage { items, next_cursor });
            }
            looked_at += 1;
            if filter.passes(&entry) {
                items.push(LocatedEntry { seq, entry });
            }
        }
    }
    Ok(ListPage { items, next_cursor: None })
}

fn place(page: &PageRequest) -> Result<(i64, usize)> {
    let Some(cursor) = &page.cursor else { return Ok((i64::MAX, usize::MAX)) };
    let parsed = cursor
        .split_once('.')
        .and_then(|(seq, left)| Some((seq.parse::<i64>().ok()?, left.parse::<usize>().ok()?)));
    parsed.ok_or_else(|| bad_cursor(cursor))
}

fn entries_of(seq: u64, body: &str) -> Result<Vec<Entry>> {
    serde_json::from_str(body)
        .map_err(|error| JobError::unreadable(format!("audit row {seq} cannot be read: {error}")))
}

fn chain_row(row: &Row<'_>) -> Result<ChainRow> {
    Ok(ChainRow {
        seq: count(row, 0)?,
        at: Millis(row.get(1)?),
        key: row.get(2)?,
        prev: mac(row, 3)?,
        body: row.get(4)?,
        mac: mac(row, 5)?,
    })
}

fn chain_state(row: &Row<'_>) -> Result<ChainState> {
    let base = match row.get::<_, Option<i64>>(3)? {
        None => None,
        Some(_) => Some(Base { head: head(row, 3)?, key: row.get(5)?, proof: mac(row, 6)? }),
    };
    let chain = ChainName::named(row.get::<_, Arc<str>>(0)?);
    Ok(ChainState { chain, base, head: head(row, 1)? })
}

/// A head out of two columns, from this one on.
fn head(row: &Row<'_>, first: usize) -> Result<Head> {
    Ok(Head { seq: count(row, first)?, mac: mac(row, first + 1)? })
}

/// A mac; one of another length was changed, and fits nothing.
fn mac(row: &Row<'_>, column: usize) -> Result<Mac> {
    let bytes: Vec<u8> = row.get(column)?;
    Ok(bytes.try_into().map(Mac).unwrap_or_default())
}

/// Where another row has this place, that row is not the server's.
fn taken(trouble: JobError, chain: &ChainName) -> JobError {
    match trouble {
        JobError::Sql(error) if is_taken(&error) => {
            JobError::Midway(StoreError::AuditBroken(chain.to_string()))
        }
        other => other,
    }
}

fn unchained(error: Unchained) -> JobError {
    JobError::Midway(StoreError::Failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use kernel::identity::chain::Body;

    #[test]
    fn a_batch_of_audit_entries_counts_by_its_bytes() {
        let (writes, mut jobs) = Writes::new(Arc::default(), 1);
        let body = Body::of(Millis(0), &"x".repeat(1_000_000));
        let bodies = vec![(ChainName::server(), body.clone()), (ChainName::server(), body)];
        let mut written = write_bodies(&writes, Arc::default(), Arc::new(bodies));
        assert!((&mut written).now_or_never().is_none(), "it waits for the writer");
        let size = jobs.try_recv().unwrap().size();
        assert!(size >= 2_000_000, "{size} bytes");
    }
}
