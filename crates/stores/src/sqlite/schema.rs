//! Schemas and their migrations: each applied once, and checked to be the one that was.

use crate::opening::OpenError;
use crate::sqlite::database::{Database, Migration};
use crate::sqlite::files::connect::refused;
use crate::sqlite::tables::refs;
use kernel::contracts::Holder;
use kernel::values::ids::{ContentHash, Millis};
use rusqlite::{Connection, TransactionBehavior, params};
use std::path::Path;

/// Those of the main database. A change of a table is one more line.
pub(crate) const MIGRATIONS: &[Migration] =
    &[Migration { version: 1, name: "init", sql: include_str!("migrations/0001_init.sql") }];

const APPLIED: &str = "CREATE TABLE IF NOT EXISTS migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    applied_at INTEGER NOT NULL
)";

/// Lets go of what calls of an earlier process held.
pub(crate) fn release_calls(connection: &Connection, now: Millis) -> rusqlite::Result<()> {
    refs::release_all(connection, Holder::CALL, now)
}

/// Brings a database up to this release, in one transaction with what else its opening does, and
/// gives the opening's number: one that no earlier opening had.
pub(crate) fn prepare(
    connection: &mut Connection,
    path: &Path,
    database: &Database,
    now: Millis,
) -> Result<u64, OpenError> {
    let unusable = |error: rusqlite::Error| refused(path, &error);
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(unusable)?;
    transaction.execute_batch(APPLIED).map_err(unusable)?;
    let applied = applied(&transaction).map_err(unusable)?;
    for (version, checksum) in &applied {
        check(path, database.migrations, *version, checksum)?;
    }
    for migration in database.migrations {
        if !applied.iter().any(|(version, _)| *version == migration.version) {
            apply(&transaction, migration, now).map_err(unusable)?;
        }
    }
    (database.prepare)(&transaction, now).map_err(unusable)?;
    let node = next_node(&transaction).map_err(unusable)?;
    transaction.commit().map_err(unusable)?;
    Ok(node)
}

fn applied(connection: &Connection) -> rusqlite::Result<Vec<(i64, String)>> {
    // Newest first, so that a database from the future is called that, whatever else is wrong.
    let sql = "SELECT version, checksum FROM migrations ORDER BY version DESC";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn check(
    path: &Path,
    migrations: &[Migration],
    version: i64,
    checksum: &str,
) -> Result<(), OpenError> {
    let known = migrations.last().map_or(0, |migration| migration.version);
    let Some(migration) = migrations.iter().find(|migration| migration.version == version) else {
        return Err(OpenError::Newer { path: path.to_owned(), found: version, known });
    };
    if checksum_of(migration) != checksum {
        let name = migration.name.to_owned();
        return Err(OpenError::Changed { path: path.to_owned(), version, name });
    }
    Ok(())
}

fn apply(connection: &Connection, migration: &Migration, now: Millis) -> rusqlite::Result<()> {
    connection.execute_batch(migration.sql)?;
    connection.execute(
        "INSERT INTO migrations (version, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)",
        params![migration.version, migration.name, checksum_of(migration), now.0],
    )?;
    Ok(())
}

fn next_node(connection: &Connection) -> rusqlite::Result<u64> {
    connection.execute(
        "INSERT INTO meta (name, value) VALUES ('epoch', 1)
         ON CONFLICT (name) DO UPDATE SET value = value + 1",
        (),
    )?;
    let sql = "SELECT value FROM meta WHERE name = 'epoch'";
    connection.query_row(sql, (), |row| row.get::<_, i64>(0)).map(|node| node as u64)
}

/// A checkout on another system may have other line ends.
fn checksum_of(migration: &Migration) -> String {
    ContentHash::of(migration.sql.replace("\r\n", "\n").as_bytes()).to_string()
}
