//! Opens the store of records, once it is known that there are types. Until then a data folder has
//! no database for it.

use super::catalog::Catalog;
use super::{RECORDS, SqliteRecords};
use crate::locks::held;
use crate::opening::{OpenError, Parts};
use crate::sqlite::SqliteStore;
use crate::sqlite::append::Opening;
use crate::sqlite::error::JobError;
use crate::sqlite::files::connect;
use query::records::requests::RecordLimits;
use query::records::type_change::RecordStore;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Opens the records of a data folder.
pub struct RecordsOpener {
    folder: PathBuf,
    store: Arc<SqliteStore>,
    parts: Parts,
    is_open: Mutex<bool>,
}

impl RecordsOpener {
    pub(crate) fn new(folder: PathBuf, store: Arc<SqliteStore>, parts: Parts) -> Self {
        Self { folder, store, parts, is_open: Mutex::new(false) }
    }

    /// Whether the folder has a database of records.
    pub fn exists(&self) -> bool {
        RECORDS.is_in(&self.folder).unwrap_or(true)
    }

    /// Opens it, and makes it if there is none. It is opened once.
    pub fn open(&self, limits: RecordLimits) -> Result<Arc<dyn RecordStore>, OpenError> {
        let mut is_open = held(&self.is_open);
        if *is_open {
            let why = io::Error::other("its records are open already");
            return Err(OpenError::Folder { folder: self.folder.clone(), why });
        }
        let databases = &self.store.databases;
        let prepared = databases.prepare(&RECORDS, &self.parts)?;
        let path = self.folder.join(RECORDS.file);
        let catalog = Catalog::load(&prepared.connection).map_err(|error| match error {
            JobError::Sql(error) => connect::refused(&path, &error),
            JobError::Refused(error) | JobError::Midway(error) => {
                OpenError::Database { path: path.clone(), why: error.to_string() }
            }
        })?;
        let opening = Opening::new(prepared.node, self.parts.fatal.clone());
        let database = databases.start(prepared, opening, &self.parts)?;
        *is_open = true;
        Ok(Arc::new(SqliteRecords {
            database,
            catalog: Arc::new(Mutex::new(Arc::new(catalog))),
            limits: Arc::new(limits),
            clock: self.parts.clock.clone(),
        }))
    }
}
