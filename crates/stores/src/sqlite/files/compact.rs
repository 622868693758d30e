//! Rewrites the database (`VACUUM`). Deleted content stays in free space of its pages, and
//! `secure_delete` does not reach copies that SQLite leaves behind where it moves rows between
//! pages.

use rusqlite::Connection;

/// A larger database is built in a temporary file of the system, and not in memory.
const IN_MEMORY_BYTES_MAX: i64 = 256 * 1024 * 1024;

/// Writes the database anew, without its free space. Outside of a transaction; readers go on.
pub(crate) fn compact(connection: &Connection) -> rusqlite::Result<()> {
    let number = |sql: &str| connection.query_row(sql, (), |row| row.get::<_, i64>(0));
    let bytes = number("PRAGMA page_count")?.saturating_mul(number("PRAGMA page_size")?);
    if bytes > IN_MEMORY_BYTES_MAX {
        connection.execute_batch("PRAGMA temp_store = FILE;")?;
    }
    let written = connection.execute_batch("VACUUM;");
    connection.execute_batch("PRAGMA temp_store = MEMORY;")?;
    written
}
