//! One durable commit for each run: the rows of one run, written by one thread that commits all
//! queued runs together, and acknowledged after the commit. Bare servers that commit have it too,
//! also the one of gRPC, which is a program of its own.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Transaction, params};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::Result;

/// The most runs in one commit.
pub const BATCH_MAX: usize = 256;
const QUEUE_MAX: usize = 1024;
const JOURNAL_BODY_BYTES: usize = 2_500;
const WRITER_GONE: &str = "the writer stopped";

/// How many rows one run writes, read off the product. A session and a run have an id of their own,
/// so their tables take one row each.
const MIX: [Rows; 4] = [
    Rows { table: "journal", per_run: 1, insert: journal },
    Rows { table: "sessions", per_run: 1, insert: session },
    Rows { table: "runs", per_run: 1, insert: run },
    Rows { table: "history", per_run: 3, insert: history },
];

/// The rows of one table.
#[derive(Clone, Copy)]
struct Rows {
    table: &'static str,
    per_run: u8,
    insert: Insert,
}

const SCHEMA: &str = "
    CREATE TABLE journal (
        id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, seq INTEGER NOT NULL,
        body TEXT NOT NULL);
    CREATE TABLE sessions (
        session INTEGER PRIMARY KEY, id TEXT NOT NULL, realm TEXT NOT NULL, space TEXT NOT NULL,
        key TEXT NOT NULL, status TEXT NOT NULL, run TEXT, seq INTEGER NOT NULL,
        wake_at INTEGER, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
    CREATE UNIQUE INDEX sessions_key ON sessions (realm, space, key);
    CREATE UNIQUE INDEX sessions_id ON sessions (id);
    CREATE TABLE runs (
        id TEXT PRIMARY KEY, session INTEGER NOT NULL, plan TEXT NOT NULL, status TEXT NOT NULL,
        answer TEXT, started_at INTEGER NOT NULL, ended_at INTEGER) WITHOUT ROWID;
    CREATE INDEX runs_session ON runs (session);
    CREATE TABLE history (
        session INTEGER NOT NULL, position BLOB NOT NULL, run TEXT NOT NULL, step TEXT NOT NULL,
        tool TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (session, position)) WITHOUT ROWID;";

type Insert = fn(&Transaction<'_>, &Request, Place) -> rusqlite::Result<usize>;

/// Which row of a run: its session's number and its index in its table.
#[derive(Clone, Copy)]
struct Place {
    session: i64,
    index: u8,
}

#[derive(Debug)]
struct Request {
    run: String,
    session: String,
    at: i64,
    body: String,
    ack: oneshot::Sender<()>,
}

/// The row counts of one run, for the report.
pub fn mix() -> String {
    MIX.map(|Rows { table, per_run, .. }| format!("{table} {per_run}")).join(", ")
}

/// Where runs are queued.
#[derive(Clone, Debug)]
pub struct Commits {
    queue: mpsc::Sender<Request>,
    filling: Arc<str>,
}

impl Commits {
    /// Opens a new database. Its writer ends when no one can queue anything any more.
    pub fn start(path: &Path) -> Result<(Self, JoinHandle<Result<()>>)> {
        let connection = open(path)?;
        let (queue, requests) = mpsc::channel(QUEUE_MAX);
        let writer = tokio::task::spawn_blocking(move || {
            // Who queues only learns that the writer is gone.
            write(connection, requests).inspect_err(|error| eprintln!("the writer: {error}"))
        });
        let filling = "x".repeat(JOURNAL_BODY_BYTES).into();
        Ok((Self { queue, filling }, writer))
    }

    /// Writes the rows of a run, and waits until they are durable.
    pub async fn commit(&self, run: String, session: String) -> Result<()> {
        let (ack, acknowledged) = oneshot::channel();
        let body = format!(r#"{{"run":"{run}","events":"{}"}}"#, self.filling);
        let at = i64::try_from(unix_ms())?;
        let request = Request { run, session, at, body, ack };
        self.queue.send(request).await.map_err(|_| WRITER_GONE)?;
        Ok(acknowledged.await.map_err(|_| WRITER_GONE)?)
    }
}

fn open(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(format!("SQLite took journal mode `{mode}` instead of WAL").into());
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(SCHEMA)?;
    Ok(connection)
}

/// Commits whatever is queued, then acknowledges; ends when all producers are gone.
fn write(mut connection: Connection, mut requests: mpsc::Receiver<Request>) -> Result<()> {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut session = 0;
    while let Some(first) = requests.blocking_recv() {
        batch.push(first);
        while batch.len() < BATCH_MAX {
            let Ok(request) = requests.try_recv() else {
                break;
            };
            batch.push(request);
        }
        let transaction = connection.transaction()?;
        for request in &batch {
            session += 1;
            insert_run(&transaction, request, session)?;
        }
        transaction.commit()?;
        for request in batch.drain(..) {
            // A producer that is gone does not wait any more.
            let _ = request.ack.send(());
        }
    }
    Ok(())
}

fn insert_run(transaction: &Transaction<'_>, request: &Request, session: i64) -> Result<()> {
    for Rows { per_run, insert, .. } in MIX {
        for index in 0..per_run {
            insert(transaction, request, Place { session, index })?;
        }
    }
    Ok(())
}

fn journal(
    transaction: &Transaction<'_>,
    request: &Request,
    place: Place,
) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached("INSERT INTO journal (session, seq, body) VALUES (?1, ?2, ?3)")?
        .execute(params![place.session, place.index, request.body])
}

fn session(
    transaction: &Transaction<'_>,
    request: &Request,
    place: Place,
) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached(
            "INSERT INTO sessions (session, id, realm, space, key, status, run, seq, wake_at, \
             created_at, updated_at) \
             VALUES (?1, ?2, 'default', 'session', ?2, 'completed', ?3, ?4, NULL, ?5, ?5)",
        )?
        .execute(params![place.session, request.session, request.run, place.index, request.at])
}

fn run(transaction: &Transaction<'_>, request: &Request, place: Place) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached(
            "INSERT INTO runs (id, session, plan, status, answer, started_at, ended_at) \
             VALUES (?1, ?2, 'bench/read3', 'completed', 'sum: 4', ?3, ?3)",
        )?
        .execute(params![request.run, place.session, request.at])
}

fn history(
    transaction: &Transaction<'_>,
    request: &Request,
    place: Place,
) -> rusqlite::Result<usize> {
    let position = u64::from(place.index).to_be_bytes();
    transaction
        .prepare_cached(
            "INSERT INTO history (session, position, run, step, tool, seq, at) \
             VALUES (?1, ?2, ?3, 'add', 'math::add', ?4, ?5)",
        )?
        .execute(params![place.session, position, request.run, place.index, request.at])
}

/// Milliseconds since 1970.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}
