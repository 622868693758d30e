//! Rows that a run leaves in each table of the database.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::Result;

/// The server's database in its data folder.
pub const DATABASE: &str = "waypost.db";

const TABLES: &str = "SELECT name FROM sqlite_master WHERE type = 'table' \
    AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";

/// One table after a load.
#[derive(Debug)]
pub struct TableRows {
    /// The table's name.
    pub table: String,
    /// All its rows.
    pub rows: i64,
    /// Its rows divided by the number of runs.
    pub per_run: f64,
}

/// Counts the rows of all tables; the server is stopped, so that everything is in the file.
pub fn count(data: &Path, runs: usize) -> Result<Vec<TableRows>> {
    let path = data.join(DATABASE);
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut counts = Vec::new();
    for table in tables_of(&connection)? {
        let query = format!("SELECT count(*) FROM \"{table}\"");
        let rows: i64 = connection.query_row(&query, [], |row| row.get(0))?;
        counts.push(TableRows { table, rows, per_run: rows as f64 / runs as f64 });
    }
    Ok(counts)
}

fn tables_of(connection: &Connection) -> Result<Vec<String>> {
    let mut statement = connection.prepare(TABLES)?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<rusqlite::Result<Vec<String>>>()?)
}
