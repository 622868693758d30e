//! The audit in the model store: chains of rows, each extended with what its entries are about.

use super::ModelStore;
use super::tables::{Chain, Tables};
use futures::future::ready;
use kernel::contracts::identity::audit::{Audit, AuditFilter, ChainState, LocatedEntry};
use kernel::contracts::{ListPage, PageRequest, Read, StoreError};
use kernel::identity::audit::{ChainName, Entries, Entry};
use kernel::identity::chain::{Base, Bodies, ChainKeys, Head, Row};
use kernel::values::ids::Millis;
use std::sync::Arc;

/// Rows that are made and not kept yet.
pub(super) type NewRows = Vec<(ChainName, Row)>;

impl Tables {
    /// The next rows of chains, each for one list of entries. Nothing is changed by that.
    pub(super) fn audit_rows(
        &self,
        keys: Option<&dyn ChainKeys>,
        entries: &[(ChainName, Vec<Entry>)],
    ) -> Result<NewRows, StoreError> {
        let failed = StoreError::Failed;
        let mut rows = NewRows::new();
        for (chain, entries) in entries {
            let keys = keys.ok_or_else(|| failed("the audit has no keys yet".to_owned()))?;
            let Some(at) = entries.iter().map(|entry| entry.at).max() else { continue };
            let made = rows.iter().rev().find(|(other, _)| other == chain);
            let head = match made {
                Some((_, row)) => row.head(),
                None => self.audit.get(chain).map(|chain| chain.head).unwrap_or_default(),
            };
            let row = Row::after(keys, chain, &head, at, entries);
            rows.push((chain.clone(), row.map_err(|error| failed(error.to_string()))?));
        }
        Ok(rows)
    }

    /// Keeps rows that follow what is there.
    pub(super) fn keep_audit(&mut self, rows: NewRows) {
        for (name, row) in rows {
            let chain = self.audit.entry(name).or_default();
            chain.head = row.head();
            chain.rows.insert(row.seq, row);
        }
    }

    fn entries(
        &self,
        chain: &ChainName,
        filter: &AuditFilter,
        page: &PageRequest,
    ) -> Result<ListPage<LocatedEntry>, StoreError> {
        let (from, mut left) = place(page)?;
        let rows = self.audit.get(chain).into_iter().flat_map(|chain| chain.rows.range(..=from));
        let mut items = Vec::new();
        for (seq, row) in rows.rev() {
            if filter.ends_at(row.at) {
                break;
            }
            if filter.skips(row.at) {
                left = usize::MAX;
                continue;
            }
            let unreadable = |error: serde_json::Error| StoreError::Unreadable(error.to_string());
            let mut held = row.entries().map_err(unreadable)?;
            held.truncate(left);
            left = usize::MAX;
            while let Some(entry) = held.pop() {
                if items.len() >= page.limit.max(1) {
                    let next_cursor = Some(format!("{seq}.{}", held.len() + 1));
                    return Ok(ListPage { items, next_cursor });
                }
                if filter.passes(&entry) {
                    items.push(LocatedEntry { seq: *seq, entry });
                }
            }
        }
        Ok(ListPage { items, next_cursor: None })
    }

    fn prune_audit(
        &mut self,
        keys: &dyn ChainKeys,
        before: Millis,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let mut removed = 0;
        for (name, chain) in &mut self.audit {
            let older = chain.rows.range(..chain.head.seq).take(limit);
            let old: Vec<Head> =
                older.take_while(|(_, row)| row.at < before).map(|(_, row)| row.head()).collect();
            let Some(last) = old.last() else { continue };
            let base = Base::at(keys, name, *last);
            chain.base = Some(base.map_err(|error| StoreError::Failed(error.to_string()))?);
            chain.rows.retain(|seq, _| *seq > last.seq);
            removed += old.len();
        }
        Ok(removed)
    }
}

impl ModelStore {
    /// What rows are made with, once that is given.
    pub(super) fn audit_keys(&self) -> Option<Arc<dyn ChainKeys>> {
        self.state.shared().nodes.get(&self.node)?.audit_keys.clone()
    }
}

impl Audit for ModelStore {
    fn begin(&self, keys: Arc<dyn ChainKeys>) {
        if let Some(node) = self.state.shared().nodes.get_mut(&self.node) {
            node.audit_keys.get_or_insert(keys);
        }
    }

    fn write(&self, entries: Arc<Entries>) -> Read<'_, ()> {
        let keys = self.audit_keys();
        Box::pin(ModelStore::write(self, move |tables| {
            let rows = tables.audit_rows(keys.as_deref(), &entries)?;
            tables.keep_audit(rows);
            Ok(())
        }))
    }

    fn write_bodies(&self, bodies: Arc<Bodies>) -> Read<'_, ()> {
        let read = bodies.iter().map(|(chain, body)| {
            let entries = body.entries();
            entries.map(|entries| (chain.clone(), entries))
        });
        match read.collect::<Result<Entries, serde_json::Error>>() {
            Ok(entries) => Audit::write(self, Arc::new(entries)),
            Err(error) => Box::pin(ready(Err(StoreError::Failed(error.to_string())))),
        }
    }

    fn chains(&self) -> Read<'_, Vec<ChainState>> {
        Box::pin(self.read(|tables| {
            let state = |(name, chain): (&ChainName, &Chain)| ChainState {
                chain: name.clone(),
                base: chain.base.clone(),
                head: chain.head,
            };
            Ok(tables.audit.iter().map(state).collect::<Vec<_>>())
        }))
    }

    fn entries<'a>(
        &'a self,
        chain: &'a ChainName,
        filter: &'a AuditFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<LocatedEntry>> {
        Box::pin(self.read(move |tables| tables.entries(chain, filter, page)))
    }

    fn rows<'a>(&'a self, chain: &'a ChainName, after: u64, limit: usize) -> Read<'a, Vec<Row>> {
        Box::pin(self.read(move |tables| {
            let rows = tables.audit.get(chain).into_iter();
            let rows = rows.flat_map(|chain| chain.rows.range(after + 1..)).take(limit);
            Ok(rows.map(|(_, row)| row.clone()).collect::<Vec<_>>())
        }))
    }

    fn prune(&self, before: Millis, limit: usize) -> Read<'_, usize> {
        let keys = self.audit_keys();
        Box::pin(ModelStore::write(self, move |tables| match keys {
            Some(keys) => tables.prune_audit(&*keys, before, limit),
            None => Ok(0),
        }))
    }
}

/// Where a page begins: the row, and how many of its entries are still to come.
fn place(page: &PageRequest) -> Result<(u64, usize), StoreError> {
    let Some(cursor) = &page.cursor else { return Ok((u64::MAX, usize::MAX)) };
    let parsed = cursor
        .split_once('.')
        .and_then(|(seq, left)| Some((seq.parse::<u64>().ok()?, left.parse::<usize>().ok()?)));
    parsed.ok_or_else(|| StoreError::BadCursor(format!("cursor `{cursor}` is not of this list")))
}
