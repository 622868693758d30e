//! Data folders that no server holds, damaged and mended: what a broken disk or a newer release
//! leaves behind.

use rusqlite::Connection;
use std::path::Path;

/// Gives every event of the sessions with such a key (a pattern of SQL's `LIKE`) a type that no
/// release knows.
pub fn make_unreadable(data: &Path, keys: &str) {
    let sql = r#"UPDATE journal SET body = replace(body, '"type":"', '"type":"lost.')
                 WHERE session IN (SELECT pk FROM sessions WHERE key LIKE ?1)"#;
    let rows = database(data).execute(sql, [keys]).unwrap();
    assert!(rows > 0, "no journal of a session like `{keys}`");
}

/// Undoes it for all sessions.
pub fn make_readable(data: &Path) {
    let sql = r#"UPDATE journal SET body = replace(body, '"type":"lost.', '"type":"')"#;
    database(data).execute(sql, ()).unwrap();
}

fn database(data: &Path) -> Connection {
    Connection::open(data.join("waypost.db")).unwrap()
}
