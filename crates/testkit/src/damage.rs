//! Data folders that no server holds, damaged and mended: what a broken disk or a newer release
//! leaves behind.

use rusqlite::{Connection, Params};
use std::path::Path;

/// Gives every event of the sessions with such a key (a pattern of SQL's `LIKE`) a type that no
/// release knows.
pub fn make_unreadable(data: &Path, keys: &str) {
    let sql = r#"UPDATE journal SET body = replace(body, '"type":"', '"type":"lost.')
                 WHERE session IN (SELECT pk FROM sessions WHERE key LIKE ?1)"#;
    let rows = execute(data, sql, [keys]);
    assert!(rows > 0, "no journal of a session like `{keys}`");
}

/// Undoes it for all sessions.
pub fn make_readable(data: &Path) {
    let sql = r#"UPDATE journal SET body = replace(body, '"type":"lost.', '"type":"')"#;
    execute(data, sql, ());
}

/// Gives the webhooks with this id a body that no release can read.
pub fn make_webhook_unreadable(data: &Path, id: &str) {
    let rows = execute(data, "UPDATE webhooks SET body = '{}' WHERE id = ?1", [id]);
    assert!(rows > 0, "no webhook `{id}`");
}

/// The ids of all webhooks, whether they can be read or not.
pub fn webhook_ids(data: &Path) -> Vec<String> {
    let path = data.join("waypost.db");
    let read = || -> rusqlite::Result<Vec<String>> {
        let database = Connection::open(&path)?;
        let mut statement = database.prepare("SELECT id FROM webhooks ORDER BY id")?;
        let ids = statement.query_map((), |row| row.get(0))?;
        ids.collect()
    };
    read().unwrap_or_else(|error| panic!("cannot read `{}`: {error}", path.display()))
}

fn execute(data: &Path, sql: &str, params: impl Params) -> usize {
    let path = data.join("waypost.db");
    let executed = Connection::open(&path).and_then(|database| database.execute(sql, params));
    executed.unwrap_or_else(|error| panic!("cannot change `{}`: {error}", path.display()))
}
