//! Which blobs the journals name, and which blobs nothing may name: those that were put and those
//! that lost a session or a part of one. A blob counts as named as long as one journal of its realm
//! names it.

use super::columns::integer;
use super::trouble::Trouble;
use kernel::datum::blobs_named;
use kernel::ids::{ContentHash, Millis, RealmId};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

/// The newest row that names it counts: trimming removes what older rows alone named.
const NAME: &str = "INSERT INTO blob_refs (session, hash, seq) VALUES (?1, ?2, ?3) \
     ON CONFLICT (session, hash) DO UPDATE SET seq = max(seq, excluded.seq)";

const PUT: &str = "INSERT INTO loose_blobs (realm, hash, since) VALUES (?1, ?2, ?3) \
     ON CONFLICT (realm, hash) DO UPDATE SET since = max(since, excluded.since)";

const LOOSEN: &str = "INSERT INTO loose_blobs (realm, hash, since) \
     SELECT s.realm, r.hash, ?3 FROM blob_refs AS r JOIN sessions AS s ON s.pk = r.session \
     WHERE r.session = ?1 AND r.seq <= ?2 \
     ON CONFLICT (realm, hash) DO UPDATE SET since = max(since, excluded.since)";

const DUE: &str = "SELECT b.realm, b.hash, EXISTS ( \
         SELECT 1 FROM blob_refs AS r JOIN sessions AS s ON s.pk = r.session \
         WHERE r.hash = b.hash AND s.realm = b.realm) \
     FROM loose_blobs AS b WHERE b.since < ?1 ORDER BY b.since LIMIT ?2";

/// A blob that nothing may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loose {
    /// Whose it is.
    pub(crate) realm: RealmId,
    /// Which.
    pub(crate) hash: ContentHash,
    /// Something names it after all.
    pub(crate) named: bool,
}

/// A journal row that ends with this sequence names these blobs.
pub(crate) fn name(
    connection: &Connection,
    session: i64,
    hashes: &BTreeSet<ContentHash>,
    seq: u64,
) -> Result<(), Trouble> {
    for hash in hashes {
        connection.prepare_cached(NAME)?.execute(params![session, hash.as_str(), integer(seq)])?;
    }
    Ok(())
}

/// What the journals name that were written before anyone kept count.
pub(crate) fn fill(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "SELECT session, last_seq, body FROM journal WHERE instr(body, 'blob') > 0";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let (session, seq): (i64, i64) = (row.get(0)?, row.get(1)?);
        let body: String = row.get(2)?;
        for hash in blobs_named(&body) {
            connection.prepare_cached(NAME)?.execute(params![session, hash.as_str(), seq])?;
        }
    }
    Ok(())
}

/// A blob was put, and nothing names it yet.
pub(crate) fn put(
    connection: &Connection,
    realm: &RealmId,
    hash: &ContentHash,
    now: Millis,
) -> Result<(), Trouble> {
    let params = params![realm.as_str(), hash.as_str(), now.0];
    connection.prepare_cached(PUT)?.execute(params)?;
    Ok(())
}

/// The session is about to go: what it names may be named by nothing then. How many blobs.
pub(crate) fn loosen(connection: &Connection, session: i64, now: Millis) -> Result<u64, Trouble> {
    let params = params![session, i64::MAX, now.0];
    Ok(connection.prepare_cached(LOOSEN)?.execute(params)? as u64)
}

/// The session's rows up to the one that ends with this sequence go: the same for what they alone
/// name. How many references went.
pub(crate) fn loosen_until(
    connection: &Connection,
    session: i64,
    last_seq: i64,
    now: Millis,
) -> Result<u64, Trouble> {
    connection.prepare_cached(LOOSEN)?.execute(params![session, last_seq, now.0])?;
    let sql = "DELETE FROM blob_refs WHERE session = ?1 AND seq <= ?2";
    Ok(connection.prepare_cached(sql)?.execute(params![session, last_seq])? as u64)
}

/// Blobs that have been loose since before this, the longest first.
pub(crate) fn due(
    connection: &Connection,
    before: Millis,
    limit: i64,
) -> Result<Vec<Loose>, Trouble> {
    let mut statement = connection.prepare_cached(DUE)?;
    let rows = statement.query_and_then(params![before.0, limit], |row| {
        let (realm, hash) = (RealmId(row.get(0)?), ContentHash(row.get(1)?));
        Ok::<_, Trouble>(Loose { realm, hash, named: row.get(2)? })
    })?;
    rows.collect()
}

/// These were looked at. One that was put again, or lost another session, meanwhile stays.
pub(crate) fn forget(
    connection: &Connection,
    looked_at: &[Loose],
    before: Millis,
) -> Result<(), Trouble> {
    let sql = "DELETE FROM loose_blobs WHERE realm = ?1 AND hash = ?2 AND since < ?3";
    let mut statement = connection.prepare_cached(sql)?;
    for blob in looked_at {
        statement.execute(params![blob.realm.as_str(), blob.hash.as_str(), before.0])?;
    }
    Ok(())
}
