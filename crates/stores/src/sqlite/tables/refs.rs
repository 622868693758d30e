//! References to blobs: who holds which, and which have no holder, because they were just put or
//! lost one. A session holds the blobs that its journal names; other holders name theirs. Blobs
//! that a journal value holds are distinguished from blobs that a text only mentions: only the
//! former can be read with the session.

use super::columns::{execute, integer, limit_of, many};
use crate::sqlite::error::Result;
use kernel::contracts::Holder;
use kernel::values::ids::{ContentHash, Millis, RealmId};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

/// The newest row that names it counts: trimming removes what older rows alone named.
const NAME: &str = "INSERT INTO blob_holds (kind, holder, realm, hash, seq, is_value) \
     VALUES ('session', ?1, (SELECT realm FROM sessions WHERE pk = ?1), ?2, ?3, ?4) \
     ON CONFLICT (kind, holder, realm, hash) DO UPDATE \
     SET seq = max(seq, excluded.seq), is_value = max(is_value, excluded.is_value)";

const HOLD: &str = "INSERT OR IGNORE INTO blob_holds (kind, holder, realm, hash) \
     VALUES (?1, ?2, ?3, ?4)";

const PUT: &str = "INSERT INTO loose_blobs (realm, hash, since) VALUES (?1, ?2, ?3) \
     ON CONFLICT (realm, hash) DO UPDATE SET since = max(since, excluded.since)";

const LOOSEN: &str = "INSERT INTO loose_blobs (realm, hash, since) \
     SELECT realm, hash, ?3 FROM blob_holds \
     WHERE kind = 'session' AND holder = ?1 AND seq <= ?2 \
     ON CONFLICT (realm, hash) DO UPDATE SET since = max(since, excluded.since)";

const LOOSEN_HELD: &str = "INSERT INTO loose_blobs (realm, hash, since) \
     SELECT realm, hash, ?4 FROM blob_holds WHERE kind = ?1 AND holder = ?2 AND realm = ?3 \
     ON CONFLICT (realm, hash) DO UPDATE SET since = max(since, excluded.since)";

const LOOSEN_KIND: &str = "INSERT INTO loose_blobs (realm, hash, since) \
     SELECT realm, hash, ?2 FROM blob_holds WHERE kind = ?1 \
     ON CONFLICT (realm, hash) DO UPDATE SET since = max(since, excluded.since)";

const DUE: &str = "SELECT b.realm, b.hash, EXISTS ( \
         SELECT 1 FROM blob_holds AS h WHERE h.hash = b.hash AND h.realm = b.realm) \
     FROM loose_blobs AS b WHERE b.since < ?1 ORDER BY b.since LIMIT ?2";

/// A blob that no one may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LooseBlob {
    pub(crate) realm: RealmId,
    pub(crate) hash: ContentHash,
    /// Someone holds it after all.
    pub(crate) held: bool,
}

/// A journal row that ends with this sequence names these blobs, and these of them hold values.
pub(crate) fn name(
    connection: &Connection,
    session: i64,
    hashes: &BTreeSet<ContentHash>,
    held: &BTreeSet<ContentHash>,
    seq: u64,
) -> Result<()> {
    for hash in hashes {
        let is_value = held.contains(hash);
        execute(connection, NAME, params![session, hash.as_str(), integer(seq), is_value])?;
    }
    Ok(())
}

/// Holds these blobs too.
pub(crate) fn hold(
    connection: &Connection,
    realm: &RealmId,
    holder: &Holder,
    blobs: &[ContentHash],
) -> Result<()> {
    let mut statement = connection.prepare_cached(HOLD)?;
    for hash in blobs {
        statement.execute(params![holder.kind, holder.id, realm.as_str(), hash.as_str()])?;
    }
    Ok(())
}

/// The holder is gone: what it held may be held by no one then.
pub(crate) fn release(
    connection: &Connection,
    realm: &RealmId,
    holder: &Holder,
    now: Millis,
) -> Result<()> {
    let Holder { kind, id } = holder;
    execute(connection, LOOSEN_HELD, params![kind, id, realm.as_str(), now.0])?;
    let sql = "DELETE FROM blob_holds WHERE kind = ?1 AND holder = ?2 AND realm = ?3";
    execute(connection, sql, params![kind, id, realm.as_str()])?;
    Ok(())
}

/// The same for all holders of a kind that ended with the process before.
pub(crate) fn release_all(
    connection: &Connection,
    kind: &str,
    now: Millis,
) -> rusqlite::Result<()> {
    connection.execute(LOOSEN_KIND, params![kind, now.0])?;
    connection.execute("DELETE FROM blob_holds WHERE kind = ?1", [kind])?;
    Ok(())
}

/// A blob was put, and nothing names it yet.
pub(crate) fn put(
    connection: &Connection,
    realm: &RealmId,
    hash: &ContentHash,
    now: Millis,
) -> Result<()> {
    execute(connection, PUT, params![realm.as_str(), hash.as_str(), now.0])?;
    Ok(())
}

/// The session is about to go: what it names may be named by nothing then. How many blobs.
pub(crate) fn loosen(connection: &Connection, session: i64, now: Millis) -> Result<u64> {
    execute(connection, LOOSEN, params![session, i64::MAX, now.0])
}

/// The session's rows up to the one that ends with this sequence go: the same for what they alone
/// name. How many references went.
pub(crate) fn loosen_until(
    connection: &Connection,
    session: i64,
    last_seq: i64,
    now: Millis,
) -> Result<u64> {
    execute(connection, LOOSEN, params![session, last_seq, now.0])?;
    let sql = "DELETE FROM blob_holds WHERE kind = 'session' AND holder = ?1 AND seq <= ?2";
    execute(connection, sql, params![session, last_seq])
}

/// Blobs that have been loose since before this, the longest first.
pub(crate) fn due(connection: &Connection, before: Millis, limit: usize) -> Result<Vec<LooseBlob>> {
    many(connection, DUE, params![before.0, limit_of(limit)], |row| {
        let realm = RealmId(row.get(0)?);
        let hash = ContentHash(row.get(1)?);
        Ok(LooseBlob { realm, hash, held: row.get(2)? })
    })
}

/// These were looked at. One that was put again, or lost another session, meanwhile stays.
pub(crate) fn forget(
    connection: &Connection,
    looked_at: &[LooseBlob],
    before: Millis,
) -> Result<()> {
    let sql = "DELETE FROM loose_blobs WHERE realm = ?1 AND hash = ?2 AND since < ?3";
    let mut statement = connection.prepare_cached(sql)?;
    for blob in looked_at {
        statement.execute(params![blob.realm.as_str(), blob.hash.as_str(), before.0])?;
    }
    Ok(())
}
