//! The open databases of a data folder. Each has a writer, readers and a position of its own; they
//! hold one lock together, and are ready, noted, measured and closed together.

use super::append::Opening;
use super::queue::{Shared, Writes};
use super::readers::Readers;
use super::schema;
use super::writer::Writer;
use crate::files::sync_folder;
use crate::locks::held;
use crate::opening::{OpenError, Parts};
use crate::sqlite::database::Database;
use crate::sqlite::deadline;
use crate::sqlite::files::connect;
use crate::sqlite::files::lock::FolderLock;
use crate::sqlite::files::position::PositionFile;
use crate::sqlite::tables::columns::{count, many};
use crate::sqlite::{DATABASES, MAIN};
use kernel::contracts::{StoreError, StoredBytes};
use kernel::values::ids::RealmId;
use rusqlite::Connection;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// Enough that a long list does not hold up a load; each costs its cache.
const READERS: usize = 2;

/// The databases of one folder that are open.
pub(crate) struct Databases {
    folder: PathBuf,
    /// Their writers hold it.
    lock: Weak<FolderLock>,
    open: Mutex<Vec<OpenDatabase>>,
}

/// A database that is open. All clones are one.
#[derive(Clone)]
pub(crate) struct OpenDatabase {
    database: &'static Database,
    pub(crate) writes: Writes,
    pub(crate) readers: Arc<Readers>,
    /// Where the next opening reads how far this one came.
    pub(crate) positions: Arc<PositionFile>,
}

/// A database whose schema is that of this release, before anyone reads or writes it.
pub(crate) struct PreparedDatabase {
    database: &'static Database,
    path: PathBuf,
    pub(crate) connection: Connection,
    /// The number of this opening.
    pub(crate) node: u64,
}

impl Databases {
    /// Those of a folder that is held; none is open yet.
    pub(crate) fn new(folder: &Path, lock: &Arc<FolderLock>) -> Self {
        let lock = Arc::downgrade(lock);
        Self { folder: folder.to_owned(), lock, open: Mutex::default() }
    }

    /// Makes a database ready. If the folder has none, it is made.
    pub(crate) fn prepare(
        &self,
        database: &'static Database,
        parts: &Parts,
    ) -> Result<PreparedDatabase, OpenError> {
        let path = self.folder.join(database.file);
        let mut connection = connect::writer(&path, parts.vfs.as_deref())?;
        let node = schema::prepare(&mut connection, &path, database, parts.clock.now())?;
        Ok(PreparedDatabase { database, path, connection, node })
    }

    /// Starts the threads of a database.
    pub(crate) fn start(
        &self,
        prepared: PreparedDatabase,
        opening: Opening,
        parts: &Parts,
    ) -> Result<OpenDatabase, OpenError> {
        let unusable = |why| OpenError::Folder { folder: self.folder.clone(), why };
        let PreparedDatabase { database, path, mut connection, .. } = prepared;
        let closed = || unusable(io::Error::other("its store is closed"));
        let lock = self.lock.upgrade().ok_or_else(closed)?;
        // SQLite syncs the folder for its logs; the database's own name is ours to make durable.
        sync_folder(&self.folder).map_err(unusable)?;
        let vfs = parts.vfs.as_deref();
        let mut connections: Vec<_> =
            (0..READERS).map(|_| connect::reader(&path, vfs)).collect::<Result<_, _>>()?;
        if database.is_timed {
            for connection in connections.iter_mut().chain([&mut connection]) {
                let watched = deadline::watch(connection, &parts.clock);
                watched.map_err(|error| connect::refused(&path, &error))?;
            }
        }
        let positions = Arc::new(PositionFile::new(&self.folder, database));
        positions.write(&connection);
        let shared = Arc::<Shared>::default();
        let (writes, jobs) = Writes::new(shared.clone(), parts.limits.append_queue_max);
        let writer = Writer::new(connection, lock, opening, shared, parts.clock.clone())
            .telling(positions.clone());
        parts.spawn.critical_thread("store-writer", Box::pin(writer.run(jobs)));
        let readers = Arc::new(Readers::start(&*parts.spawn, connections));
        let open = OpenDatabase { database, writes, readers, positions };
        held(&self.open).push(open.clone());
        Ok(open)
    }

    /// Whether commits work in all of them. Each is asked: one that is broken tries again by that.
    pub(crate) fn healthy(&self) -> Result<(), StoreError> {
        let open = held(&self.open);
        let mut all = Ok(());
        for database in open.iter() {
            all = all.and(database.writes.healthy());
        }
        all
    }

    /// Writes down how far all have come but the main one, where that is due: claims do it there.
    pub(crate) async fn note_positions(&self, now: Duration) {
        let mut open = held(&self.open).clone();
        open.retain(|open| open.database.file != MAIN.file && open.positions.is_due(now));
        for OpenDatabase { readers, positions, .. } in open {
            let written = readers.read(move |connection| {
                positions.write(connection);
                Ok(())
            });
            // A position that stays as it is only notices less.
            let _ = written.await;
        }
    }

    /// What is stored in each of them by realm and owner.
    pub(crate) async fn stored_bytes(&self) -> Result<Vec<StoredBytes>, StoreError> {
        let open = held(&self.open).clone();
        let mut stored = Vec::new();
        for OpenDatabase { database, readers, .. } in open {
            let listed = readers.read(move |connection| {
                many(connection, database.stored_bytes, (), |row| {
                    let realm = RealmId(row.get(0)?);
                    Ok(StoredBytes { realm, owner: row.get(1)?, bytes: count(row, 2)? })
                })
            });
            stored.extend(listed.await?);
        }
        Ok(stored)
    }

    /// How many bytes the databases and their logs have on the disk, open or not: both, and the
    /// logs alone.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let bytes = |name: &str| fs::metadata(self.folder.join(name)).map_or(0, |file| file.len());
        let logs: u64 = DATABASES.iter().map(|database| bytes(&database.log())).sum();
        let files: u64 = DATABASES.iter().map(|database| bytes(database.file)).sum();
        (files.saturating_add(logs), logs)
    }

    /// Closes all of them.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        let open = held(&self.open).clone();
        // Readers first: a writer's last checkpoint then has its database to itself.
        open.iter().for_each(|database| database.readers.close());
        let mut closed = Ok(());
        for database in &open {
            closed = closed.and(database.writes.close().await);
        }
        closed
    }
}
