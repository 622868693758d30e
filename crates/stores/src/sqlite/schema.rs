//! The schema and its migrations: plain SQL, embedded, each applied once and never changed after
//! its release.

use crate::parts::OpenError;
use crate::sqlite::files::connect::refused;
use crate::sqlite::tables::closures;
use crate::sqlite::tables::refs;
use kernel::contracts::Holder;
use kernel::values::ids::{ContentHash, Millis};
use rusqlite::{Connection, TransactionBehavior, params};
use std::path::Path;

struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
    /// Fills in what SQL cannot work out.
    fill: Option<fn(&Connection) -> rusqlite::Result<()>>,
}

impl Migration {
    const fn new(version: i64, name: &'static str, sql: &'static str) -> Self {
        Self { version, name, sql, fill: None }
    }

    const fn filled(self, fill: fn(&Connection) -> rusqlite::Result<()>) -> Self {
        Self { fill: Some(fill), ..self }
    }
}

const MIGRATIONS: &[Migration] = &[
    Migration::new(1, "init", include_str!("migrations/0001_init.sql")),
    Migration::new(2, "retention", include_str!("migrations/0002_retention.sql"))
        .filled(refs::fill),
    Migration::new(3, "spent", include_str!("migrations/0003_spent.sql")),
    Migration::new(4, "tallies", include_str!("migrations/0004_tallies.sql")),
    Migration::new(5, "deliveries", include_str!("migrations/0005_deliveries.sql")),
    Migration::new(6, "closures", include_str!("migrations/0006_closures.sql"))
        .filled(closures::fill),
    Migration::new(7, "parked", include_str!("migrations/0007_parked.sql")),
    Migration::new(8, "identity", include_str!("migrations/0008_identity.sql")),
    Migration::new(9, "fences", include_str!("migrations/0009_fences.sql")),
    Migration::new(10, "blob_holders", include_str!("migrations/0010_blob_holders.sql")),
    Migration::new(11, "api_keys", include_str!("migrations/0011_api_keys.sql")),
    Migration::new(12, "claims", include_str!("migrations/0012_claims.sql")),
    Migration::new(13, "held_values", include_str!("migrations/0013_held_values.sql")),
    Migration::new(14, "audit", include_str!("migrations/0014_audit.sql")),
    Migration::new(15, "principals", include_str!("migrations/0015_principals.sql")),
    Migration::new(16, "realms", include_str!("migrations/0016_realms.sql")),
    Migration::new(17, "changed_runs", include_str!("migrations/0017_changed_runs.sql")),
    Migration::new(18, "stored_bytes", include_str!("migrations/0018_stored_bytes.sql")),
    Migration::new(19, "webhooks", include_str!("migrations/0019_webhooks.sql")),
    Migration::new(20, "definers", include_str!("migrations/0020_definers.sql")),
    Migration::new(21, "webhooks_of_realms", WEBHOOKS_OF_REALMS),
];

/// The webhooks of a realm are listed by run and id.
const WEBHOOKS_OF_REALMS: &str = "CREATE INDEX webhooks_of_realm ON webhooks (realm, run, id);";

const APPLIED: &str = "CREATE TABLE IF NOT EXISTS migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    applied_at INTEGER NOT NULL
)";

/// Brings the schema up to this release, in one transaction, lets go of what calls of an earlier
/// process held, and gives the node's number: one that no earlier opening had.
pub(crate) fn prepare(
    connection: &mut Connection,
    path: &Path,
    now: Millis,
) -> Result<u64, OpenError> {
    let unusable = |error: rusqlite::Error| refused(path, &error);
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(unusable)?;
    transaction.execute_batch(APPLIED).map_err(unusable)?;
    let applied = applied(&transaction).map_err(unusable)?;
    for (version, checksum) in &applied {
        check(path, *version, checksum)?;
    }
    for migration in MIGRATIONS {
        if !applied.iter().any(|(version, _)| *version == migration.version) {
            apply(&transaction, migration, now).map_err(unusable)?;
        }
    }
    refs::release_all(&transaction, Holder::CALL, now).map_err(unusable)?;
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

fn check(path: &Path, version: i64, checksum: &str) -> Result<(), OpenError> {
    let known = MIGRATIONS.last().map_or(0, |migration| migration.version);
    let Some(migration) = MIGRATIONS.iter().find(|migration| migration.version == version) else {
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
    if let Some(fill) = migration.fill {
        fill(connection)?;
    }
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
