//! The closures that runs pin. One writer adds them with the append that starts a run and removes
//! them with the last run that pins them, so that no run is ever without its own.

use super::trouble::Trouble;
use kernel::ids::{ContentHash, RealmId, RunId};
use kernel::projection::StoredClosure;
use rusqlite::{Connection, params};
use serde_json::Value;

const KEEP: &str = "INSERT INTO closures (realm, hash, body) VALUES (?1, ?2, ?3)";

const HAS: &str = "SELECT 1 FROM closures WHERE realm = ?1 AND hash = ?2";

/// All runs up to a number.
const PINNED: &str = "SELECT DISTINCT closure FROM runs WHERE session = ?1 AND no <= ?2 \
     AND closure IS NOT NULL";

/// The run leads: the first one that pins it is enough.
const REMOVE: &str = "DELETE FROM closures WHERE realm = ?1 AND hash = ?2 AND NOT EXISTS ( \
     SELECT 1 FROM runs AS r CROSS JOIN sessions AS s ON s.pk = r.session \
     WHERE r.closure = ?2 AND s.realm = ?1)";

const LOOSE: &str = "INSERT INTO loose_closures (realm, hash) \
     SELECT c.realm, c.hash FROM closures AS c WHERE NOT EXISTS ( \
     SELECT 1 FROM runs AS r CROSS JOIN sessions AS s ON s.pk = r.session \
     WHERE r.closure = c.hash AND s.realm = c.realm)";

/// A closure that an older release left without a run.
pub(crate) type LooseClosure = (RealmId, ContentHash);

/// Keeps a closure, unless it is there.
pub(crate) fn keep(
    connection: &Connection,
    realm: &RealmId,
    closure: &StoredClosure,
) -> Result<(), Trouble> {
    let (realm, hash) = (realm.as_str(), closure.hash.as_str());
    // Looked up first: mostly it is there, and its text may be long.
    if !connection.prepare_cached(HAS)?.exists(params![realm, hash])? {
        connection.prepare_cached(KEEP)?.execute(params![realm, hash, closure.body])?;
    }
    Ok(())
}

/// What the runs of a session pin, up to this one.
pub(crate) fn pinned(
    connection: &Connection,
    session: i64,
    last_run: u32,
) -> Result<Vec<ContentHash>, Trouble> {
    let mut statement = connection.prepare_cached(PINNED)?;
    let rows = statement.query_and_then(params![session, last_run], |row| {
        Ok::<_, Trouble>(ContentHash(row.get(0)?))
    })?;
    rows.collect()
}

/// Removes those of them that no run pins any more; how many.
pub(crate) fn remove_unpinned(
    connection: &Connection,
    realm: &RealmId,
    hashes: &[ContentHash],
) -> Result<u64, Trouble> {
    let mut statement = connection.prepare_cached(REMOVE)?;
    let mut removed = 0;
    for hash in hashes {
        removed += statement.execute(params![realm.as_str(), hash.as_str()])? as u64;
    }
    Ok(removed)
}

/// Removes loose closures and takes them off their list. One that a run has come to pin stays. How
/// many went.
pub(crate) fn remove_loose(
    connection: &Connection,
    loose: &[LooseClosure],
) -> Result<u64, Trouble> {
    let sql = "DELETE FROM loose_closures WHERE realm = ?1 AND hash = ?2";
    let mut listed = connection.prepare_cached(sql)?;
    let mut removed = 0;
    for (realm, hash) in loose {
        removed += remove_unpinned(connection, realm, std::slice::from_ref(hash))?;
        listed.execute(params![realm.as_str(), hash.as_str()])?;
    }
    Ok(removed)
}

/// Notes what the runs pin that began before anyone kept count, and lists what none of them pins.
/// Nothing is listed where a journal cannot be read: it may name any.
pub(crate) fn fill(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "SELECT body FROM journal WHERE instr(body, 'run.started') > 0";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(())?;
    let mut all_read = true;
    while let Some(row) = rows.next()? {
        let body: String = row.get(0)?;
        match serde_json::from_str::<Vec<Value>>(&body) {
            Ok(events) => events.iter().try_for_each(|event| note(connection, event))?,
            Err(_) => all_read = false,
        }
    }
    if all_read {
        connection.execute(LOOSE, ())?;
    }
    Ok(())
}

/// Notes what a run pins, if this event is its start.
fn note(connection: &Connection, event: &Value) -> rusqlite::Result<()> {
    let data = &event["data"];
    let run: Option<RunId> = data["run"].as_str().and_then(|run| run.parse().ok());
    if let (Some("run.started"), Some(run), Some(closure)) =
        (event["type"].as_str(), run, data["closure"].as_str())
    {
        let sql = "UPDATE runs SET closure = ?2 WHERE id = ?1";
        connection.prepare_cached(sql)?.execute(params![run.0.to_be_bytes(), closure])?;
    }
    Ok(())
}
