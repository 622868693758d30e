//! The embedded store of records: a database of its own beside that of sessions, with a table for
//! each type. SQL finds what can match, and the evaluator decides.

mod definition;
mod layout;
mod statement;
mod catalog;
mod rows;
mod reading;
mod writing;
mod change;
mod opener;

pub use opener::RecordsOpener;

use super::database::{Database, Migration};
use super::databases::OpenDatabase;
use super::deadline::Deadline;
use super::error::Result;
use super::tables::columns::{count, execute, many};
use crate::locks::held;
use catalog::Catalog;
use futures::future::BoxFuture;
use kernel::contracts::{Clock, StoreError};
use kernel::values::ids::{Millis, RealmId};
use query::records::Records;
use query::records::error::{Answer, RecordError};
use query::records::requests::{
    Access, Count, Counted, Delete, DeleteMany, Explanation, Find, Found, Get, OUTCOME_KEPT_MS,
    RecordLimits, RecordUsage, Save, Saved, Write,
};
use query::records::type_change::{RecordStore, TypeChange, TypeChangeError, TypeReport};
use reading::Reading;
use rows::of_store;
use rusqlite::{Connection, params};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// The database of records.
pub(crate) static RECORDS: Database = Database {
    file: "records.db",
    position: "records.position",
    migrations: &[Migration {
        version: 1,
        name: "records",
        sql: include_str!("../migrations/records/0001_records.sql"),
    }],
    prepare: |_connection, _now| Ok(()),
    stored_bytes: "SELECT realm, owner, bytes FROM usage ORDER BY realm, owner",
    is_timed: true,
};

/// Records of SQLite.
pub(crate) struct SqliteRecords {
    database: OpenDatabase,
    catalog: Arc<Mutex<Arc<Catalog>>>,
    limits: Arc<RecordLimits>,
    clock: Arc<dyn Clock>,
}

/// What each request needs of the store.
#[derive(Clone)]
struct Shared {
    catalog: Arc<Mutex<Arc<Catalog>>>,
    limits: Arc<RecordLimits>,
    clock: Arc<dyn Clock>,
}

impl Shared {
    /// Asks for records in a transaction. The outer error is that of the database.
    fn ask<T>(
        &self,
        connection: &Connection,
        access: &Access,
        act: impl FnOnce(&Reading<'_>) -> Result<T, RecordError>,
    ) -> Result<Result<T, RecordError>> {
        let catalog = Catalog::current(connection, &self.catalog)?;
        let reading = Reading {
            connection,
            catalog: &catalog,
            access,
            limits: &self.limits,
            deadline: Deadline::begin(&self.clock, self.limits.query_timeout_ms),
            trouble: RefCell::new(None),
        };
        let answer = act(&reading);
        match reading.trouble.take() {
            Some(trouble) => Err(trouble),
            None => Ok(answer),
        }
    }
}

impl SqliteRecords {
    fn shared(&self) -> Shared {
        Shared {
            catalog: self.catalog.clone(),
            limits: self.limits.clone(),
            clock: self.clock.clone(),
        }
    }

    /// Reads, when it is the turn of the realm.
    fn read<T: Send + 'static>(
        &self,
        access: Access,
        record_type: String,
        act: impl FnOnce(&Reading<'_>) -> Result<T, RecordError> + Send + 'static,
    ) -> Answer<'_, T> {
        let shared = self.shared();
        let realm = access.realm.clone();
        let read = self
            .database
            .readers
            .read_of(realm.clone(), move |connection| shared.ask(connection, &access, act));
        Box::pin(async move {
            let answer = flat(read.await);
            if let Err(RecordError::TooSlow(field)) = &answer {
                let field = field.as_deref().unwrap_or_default();
                let what = "a query of records took too long; an index would help";
                tracing::warn!(%realm, record_type, field, "{what}");
            }
            answer
        })
    }

    fn write<T: Send + 'static>(
        &self,
        access: Access,
        bytes: usize,
        act: impl Fn(&Reading<'_>) -> Result<T, RecordError> + Send + 'static,
    ) -> Answer<'_, T> {
        let shared = self.shared();
        let written = self
            .database
            .writes
            .perform_large(bytes, move |connection| shared.ask(connection, &access, &act));
        Box::pin(async move { flat(written.await) })
    }

    fn perform<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T> + Send + 'static,
    ) -> Answer<'_, T> {
        let written = self.database.writes.perform(work);
        Box::pin(async move { written.await.map_err(of_store) })
    }
}

fn flat<T>(answer: Result<Result<T, RecordError>, StoreError>) -> Result<T, RecordError> {
    answer.map_err(of_store).flatten()
}

impl Records for SqliteRecords {
    fn find(&self, access: Access, find: Find) -> Answer<'_, Found> {
        self.read(access, find.record_type.clone(), move |reading| reading.find(&find))
    }

    fn explain(&self, access: Access, find: Find) -> Answer<'_, Explanation> {
        self.read(access, find.record_type.clone(), move |reading| reading.explain(&find))
    }

    fn count(&self, access: Access, count: Count) -> Answer<'_, Counted> {
        self.read(access, count.record_type.clone(), move |reading| reading.count(&count))
    }

    fn get(&self, access: Access, get: Get) -> Answer<'_, Option<Value>> {
        self.read(access, get.record_type.clone(), move |reading| reading.get(&get))
    }

    fn save(&self, access: Access, save: Save, write: Write) -> Answer<'_, Saved> {
        let bytes = save.entity.to_string().len();
        self.write(access, bytes, move |reading| reading.save(&save, &write))
    }

    fn delete(&self, access: Access, delete: Delete, write: Write) -> Answer<'_, ()> {
        self.write(access, 0, move |reading| reading.delete(&delete, &write))
    }

    fn delete_many(&self, access: Access, delete: DeleteMany, write: Write) -> Answer<'_, u64> {
        if delete.is_dry_run {
            // It may look at very many records: nobody's write waits for that.
            let record_type = delete.record_type.clone();
            return self.read(access, record_type, move |it| it.delete_many(&delete, &write));
        }
        self.write(access, 0, move |reading| reading.delete_many(&delete, &write))
    }

    fn usage(&self) -> Answer<'_, Vec<RecordUsage>> {
        let read = self.database.readers.read(|connection| {
            let sql = "SELECT realm, owner, records, bytes FROM usage ORDER BY realm, owner";
            many(connection, sql, (), |row| {
                Ok(RecordUsage {
                    realm: RealmId(row.get(0)?),
                    owner: row.get(1)?,
                    records: count(row, 2)?,
                    bytes: count(row, 3)?,
                })
            })
        });
        Box::pin(async move { read.await.map_err(of_store) })
    }

    fn remove_realm(&self, realm: RealmId) -> Answer<'_, u64> {
        let catalog = self.catalog.clone();
        let removed = self.perform(move |connection| {
            let catalog = Catalog::current(connection, &catalog)?;
            remove_realm(connection, &catalog, &realm)
        });
        Box::pin(async move {
            let removed = removed.await?;
            // Also where none were there: an earlier removal may have ended before this.
            self.database.writes.compact().await.map_err(of_store)?;
            Ok(removed)
        })
    }

    fn forget_outcomes(&self, now: Millis) -> Answer<'_, u64> {
        let kept_ms = i64::try_from(OUTCOME_KEPT_MS).unwrap_or(i64::MAX);
        let until = now.0.saturating_sub(kept_ms);
        self.perform(move |connection| {
            execute(connection, "DELETE FROM outcomes WHERE at <= ?1", [until])
        })
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.database.readers.close();
            self.database.writes.close().await.map_err(of_store)
        })
    }
}

/// Removes everything of a realm; how many records it had.
fn remove_realm(connection: &Connection, catalog: &Catalog, realm: &RealmId) -> Result<u64> {
    let mut removed = 0;
    for table in catalog.tables() {
        let delete = |name: String| {
            let sql = format!("DELETE FROM {name} WHERE realm = ?1");
            execute(connection, &sql, [realm.as_str()])
        };
        removed += delete(table.records())?;
        delete(table.keys())?;
        delete(table.references())?;
    }
    for name in ["outcomes", "seeded", "usage"] {
        let sql = format!("DELETE FROM {name} WHERE realm = ?1");
        execute(connection, &sql, [realm.as_str()])?;
    }
    Ok(removed)
}

impl RecordStore for SqliteRecords {
    fn change_types(
        &self,
        change: TypeChange,
    ) -> BoxFuture<'_, Result<TypeReport, TypeChangeError>> {
        let catalog = self.catalog.clone();
        let changed = self.database.writes.perform_then(
            move |connection| change::change(connection, &change),
            move |changed: &Result<change::Changed, TypeChangeError>| {
                if let Ok(changed) = changed {
                    *held(&catalog) = changed.catalog.clone();
                }
            },
        );
        Box::pin(async move {
            let changed = changed.await.map_err(of_store)?;
            changed.map(|changed| changed.report)
        })
    }

    fn seeded(&self, realm: RealmId) -> Answer<'_, BTreeSet<String>> {
        let read = self.database.readers.read_of(realm.clone(), move |connection| {
            let sql = "SELECT type FROM seeded WHERE realm = ?1";
            many(connection, sql, [realm.as_str()], |row| Ok(row.get::<_, String>(0)?))
        });
        Box::pin(async move { Ok(read.await.map_err(of_store)?.into_iter().collect()) })
    }

    fn note_seeded(&self, realm: RealmId, record_type: String) -> Answer<'_, ()> {
        self.perform(move |connection| {
            let sql = "INSERT INTO seeded (realm, type) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            execute(connection, sql, params![realm.as_str(), record_type])?;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
