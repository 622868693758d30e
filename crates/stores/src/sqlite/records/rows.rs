//! Records in their tables: made, read, written and removed with their keys and references.

use super::catalog::Table;
use crate::sqlite::error::{JobError, Result};
use crate::sqlite::tables::columns::{execute, one};
use kernel::contracts::StoreError;
use query::records::error::RecordError;
use query::records::references::referred_ids;
use query::records::save::record_bytes;
use query::records::unique::{UniqueKey, unique_keys};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, ErrorCode, params, params_from_iter};
use serde_json::Value;

/// Makes the tables of a type.
pub(super) fn make(connection: &Connection, table: &Table) -> Result<()> {
    let (records, keys, references) = (table.records(), table.keys(), table.references());
    let columns: String =
        table.layout.columns.iter().map(|column| format!("{}, ", column.name)).collect();
    connection.execute_batch(&format!(
        "CREATE TABLE {records} (realm TEXT NOT NULL, id TEXT NOT NULL, {columns}\
         record TEXT NOT NULL, PRIMARY KEY (realm, id));
         CREATE TABLE {keys} (realm TEXT NOT NULL, key TEXT NOT NULL, id TEXT NOT NULL, \
         PRIMARY KEY (realm, key)) WITHOUT ROWID;
         CREATE TABLE {references} (realm TEXT NOT NULL, field TEXT NOT NULL, \
         refers_to TEXT NOT NULL, id TEXT NOT NULL, \
         PRIMARY KEY (realm, field, refers_to, id)) WITHOUT ROWID;"
    ))?;
    for (place, names) in table.layout.indexes.iter().enumerate() {
        let names = names.join(", ");
        // With the id, by which rows are ordered: else SQLite walks all of them in that order.
        let sql = format!("CREATE INDEX {records}_i{place} ON {records} (realm, {names}, id)");
        connection.execute_batch(&sql)?;
    }
    Ok(())
}

pub(super) fn drop_tables(connection: &Connection, table: &Table) -> Result<()> {
    for name in [table.records(), table.keys(), table.references()] {
        connection.execute_batch(&format!("DROP TABLE {name}"))?;
    }
    Ok(())
}

/// One record, as it is stored.
pub(super) fn record(
    connection: &Connection,
    table: &Table,
    realm: &str,
    id: &str,
) -> Result<Option<Value>> {
    let sql = format!("SELECT record FROM {} WHERE realm = ?1 AND id = ?2", table.records());
    one(connection, &sql, [realm, id], |row| parsed(&row.get::<_, String>(0)?))
}

pub(super) fn parsed(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        let what = format!("a stored record cannot be read: {error}; restore a backup");
        JobError::unreadable(what)
    })
}

/// The id of the record that has this key.
pub(super) fn holder(
    connection: &Connection,
    table: &Table,
    realm: &str,
    key: &UniqueKey,
) -> Result<Option<String>> {
    let sql = format!("SELECT id FROM {} WHERE realm = ?1 AND key = ?2", table.keys());
    one(connection, &sql, [realm, key.key.as_str()], |row| Ok(row.get(0)?))
}

/// Writes a record in the place of what was there.
pub(super) fn put(
    connection: &Connection,
    table: &Table,
    realm: &str,
    before: Option<&Value>,
    record: &Value,
) -> Result<()> {
    if let Some(before) = before {
        remove(connection, table, realm, before)?;
    }
    insert(connection, table, realm, record)?;
    count(connection, realm, record, 1)
}

/// Writes a record that is not there, and does not count it.
pub(super) fn insert(
    connection: &Connection,
    table: &Table,
    realm: &str,
    record: &Value,
) -> Result<()> {
    let id = id_of(record);
    let columns: String =
        table.layout.columns.iter().map(|column| format!("{}, ", column.name)).collect();
    let places = ", ?".repeat(table.layout.columns.len());
    let records = table.records();
    let sql =
        format!("INSERT INTO {records} (realm, id, {columns}record) VALUES (?, ?{places}, ?)");
    let mut values = vec![Cell::Text(realm.to_owned()), Cell::Text(id.to_owned())];
    values.extend(table.layout.cells(record));
    values.push(Cell::Text(record.to_string()));
    connection.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    let sql = format!("INSERT INTO {} (realm, key, id) VALUES (?1, ?2, ?3)", table.keys());
    for key in unique_keys(&table.definition, record) {
        execute(connection, &sql, params![realm, key.key, id])?;
    }
    let sql = format!(
        "INSERT INTO {} (realm, field, refers_to, id) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT DO NOTHING",
        table.references()
    );
    for path in &table.layout.references {
        for to in referred_ids(record, path) {
            execute(connection, &sql, params![realm, path, to, id])?;
        }
    }
    Ok(())
}

/// Removes a record that is there.
pub(super) fn remove(
    connection: &Connection,
    table: &Table,
    realm: &str,
    record: &Value,
) -> Result<()> {
    let id = id_of(record);
    let sql = format!("DELETE FROM {} WHERE realm = ?1 AND id = ?2", table.records());
    execute(connection, &sql, [realm, id])?;
    let sql = format!("DELETE FROM {} WHERE realm = ?1 AND key = ?2", table.keys());
    for key in unique_keys(&table.definition, record) {
        execute(connection, &sql, params![realm, key.key])?;
    }
    let sql = format!(
        "DELETE FROM {} WHERE realm = ?1 AND field = ?2 AND refers_to = ?3 AND id = ?4",
        table.references()
    );
    for path in &table.layout.references {
        for to in referred_ids(record, path) {
            execute(connection, &sql, params![realm, path, to, id])?;
        }
    }
    count(connection, realm, record, -1)
}

/// Counts a record for its owner, or no longer.
fn count(connection: &Connection, realm: &str, record: &Value, sign: i64) -> Result<()> {
    let owner = record["dataDomain"]["ownerId"].as_str().unwrap_or_default();
    let bytes = i64::try_from(record_bytes(record)).unwrap_or(i64::MAX);
    let sql = "INSERT INTO usage (realm, owner, records, bytes) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (realm, owner) DO UPDATE SET records = records + excluded.records, \
         bytes = bytes + excluded.bytes";
    execute(connection, sql, params![realm, owner, sign, sign * bytes])?;
    let sql = "DELETE FROM usage WHERE realm = ?1 AND owner = ?2 AND records = 0";
    execute(connection, sql, params![realm, owner])?;
    Ok(())
}

/// Counts all records anew.
pub(super) fn count_all<'t>(
    connection: &Connection,
    tables: impl Iterator<Item = &'t Table>,
) -> Result<()> {
    execute(connection, "DELETE FROM usage", ())?;
    for table in tables {
        let sql = format!(
            "INSERT INTO usage (realm, owner, records, bytes) \
             SELECT realm, coalesce(json_extract(record, '$.dataDomain.ownerId'), ''), count(*), \
             sum(octet_length(record)) FROM {} WHERE true GROUP BY 1, 2 \
             ON CONFLICT (realm, owner) DO UPDATE SET records = records + excluded.records, \
             bytes = bytes + excluded.bytes",
            table.records()
        );
        execute(connection, &sql, ())?;
    }
    Ok(())
}

pub(super) fn id_of(record: &Value) -> &str {
    record.get("id").and_then(Value::as_str).unwrap_or_default()
}

/// What a caller is told of trouble with the database.
pub(super) fn of_store(error: StoreError) -> RecordError {
    match error {
        StoreError::Full => RecordError::Full,
        StoreError::Busy => RecordError::Busy,
        StoreError::Closed => RecordError::Closed,
        other => RecordError::Failed(other.to_string()),
    }
}

/// Whether the time of a read ended it.
pub(super) fn is_interrupted(error: &JobError) -> bool {
    let JobError::Sql(error) = error else { return false };
    error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
}
