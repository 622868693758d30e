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

fn execute(data: &Path, sql: &str, params: impl Params) -> usize {
    let path = data.join("waypost.db");
    let executed = Connection::open(&path).and_then(|database| database.execute(sql, params));
    executed.unwrap_or_else(|error| panic!("cannot change `{}`: {error}", path.display()))
}
