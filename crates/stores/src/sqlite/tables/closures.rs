//! The closures that runs pin. They come with the append that starts a run. When a run is removed,
//! what it pinned is listed, and a sweep removes those of the list that no run pins any more. A run
//! that starts meanwhile takes its closure off the list, so that no run is ever without its own.

use super::columns::{execute, limit_of, many};
use super::pin_cache::{KnownPins, Pin};
use super::specs;
use crate::sqlite::error::Result;
use kernel::journal::projection::StoredClosure;
use kernel::values::ids::{ContentHash, RealmId};
use rusqlite::{Connection, params};
use std::collections::HashSet;

const KEEP: &str = "INSERT INTO closures (realm, hash, body) VALUES (?1, ?2, ?3)";

const HAS: &str = "SELECT 1 FROM closures WHERE realm = ?1 AND hash = ?2";

const UNLIST: &str = "DELETE FROM loose_closures WHERE realm = ?1 AND hash = ?2";

/// All runs up to a number.
const PINNED: &str = "SELECT DISTINCT closure FROM runs WHERE session = ?1 AND no <= ?2 \
     AND closure IS NOT NULL";

const LIST: &str = "INSERT INTO loose_closures (realm, hash, stamp) \
     SELECT realm, hash, 1 FROM closures WHERE realm = ?1 AND hash >= ?2 AND hash < ?3 \
     ON CONFLICT DO UPDATE SET stamp = stamp + 1";

/// Only while it is listed as it was when it was looked at.
const REMOVE: &str = "DELETE FROM closures WHERE realm = ?1 AND hash = ?2 AND EXISTS ( \
     SELECT 1 FROM loose_closures AS l WHERE l.realm = ?1 AND l.hash = ?2 AND l.stamp = ?3)";

/// A closure that perhaps no run pins, as it was looked at.
pub(crate) struct LooseClosure {
    realm: RealmId,
    hash: ContentHash,
    stamp: i64,
    /// Whether a run was found that pins it, or one that looks like it.
    pinned: bool,
}

/// What stands for a closure in the rows of runs: enough to tell almost all of them apart, and two
/// that are alike are both kept while a run pins one of them.
pub(crate) fn mark(hash: &ContentHash) -> i64 {
    let digits = hash.as_str().get(..MARK_DIGITS).unwrap_or_default();
    u64::from_str_radix(digits, 16).unwrap_or_default() as i64
}

const MARK_DIGITS: usize = 16;

/// Keeps a closure, unless it is there.
pub(crate) fn keep(
    connection: &Connection,
    realm: &RealmId,
    closure: &StoredClosure,
    known: &KnownPins,
) -> Result<()> {
    known.unless_known(Pin::Closure(realm.clone(), closure.hash.clone()), || {
        let realm = realm.as_str();
        let hash = closure.hash.as_str();
        // Looked up first: mostly it is there, and its text may be long.
        if connection.prepare_cached(HAS)?.exists(params![realm, hash])? {
            execute(connection, UNLIST, params![realm, hash])?;
        } else {
            execute(connection, KEEP, params![realm, hash, closure.body])?;
        }
        Ok(())
    })
}

/// Lists what the runs of a session pin, up to this one, before they are removed; how many rows
/// that changed.
pub(crate) fn loosen(
    connection: &Connection,
    realm: &RealmId,
    session: i64,
    last_run: u32,
) -> Result<u64> {
    let mut pinned = connection.prepare_cached(PINNED)?;
    let marks = pinned.query_map(params![session, last_run], |row| row.get::<_, i64>(0))?;
    let mut rows = 0;
    for mark in marks {
        let from = format!("{:0MARK_DIGITS$x}", mark? as u64);
        // Behind all digits.
        let to = format!("{from}g");
        rows += execute(connection, LIST, params![realm.as_str(), from, to])?;
    }
    Ok(rows)
}

/// So many of the closures that are listed, each with whether a run pins it.
pub(crate) fn look(connection: &Connection, limit: usize) -> Result<Vec<LooseClosure>> {
    let sql = "SELECT realm, hash, stamp FROM loose_closures LIMIT ?1";
    let mut listed = many(connection, sql, [limit_of(limit)], |row| {
        let realm = RealmId(row.get(0)?);
        let hash = ContentHash(row.get(1)?);
        Ok(LooseClosure { realm, hash, stamp: row.get(2)?, pinned: false })
    })?;
    if listed.is_empty() {
        return Ok(listed);
    }
    // One pass over the runs for all of them.
    let marks: Vec<String> = listed.iter().map(|loose| mark(&loose.hash).to_string()).collect();
    let sql = format!("SELECT DISTINCT closure FROM runs WHERE closure IN ({})", marks.join(","));
    let mut statement = connection.prepare(&sql)?;
    let found = statement.query_map((), |row| row.get::<_, i64>(0))?;
    let pinned = found.collect::<rusqlite::Result<HashSet<i64>>>()?;
    for loose in &mut listed {
        loose.pinned = pinned.contains(&mark(&loose.hash));
    }
    Ok(listed)
}

/// Removes those that no run pins, with the specs that only they pin, and takes all of them off the
/// list; how many went.
pub(crate) fn remove(connection: &Connection, looked_at: &[LooseClosure]) -> Result<u64> {
    let unlist = format!("{UNLIST} AND stamp = ?3");
    let mut removed = 0;
    for LooseClosure { realm, hash, stamp, pinned } in looked_at {
        let params = params![realm.as_str(), hash.as_str(), stamp];
        if !pinned && execute(connection, REMOVE, params)? > 0 {
            specs::unpin(connection, realm, hash)?;
            removed += 1;
        }
        execute(connection, &unlist, params)?;
    }
    Ok(removed)
}
