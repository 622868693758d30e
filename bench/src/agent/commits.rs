//! What storing alone costs: the journal rows that a thread left, written again to a bare database
//! in the same way, by one thread that syncs every commit and acknowledges after it.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::Result;

/// How an event that starts a turn is written.
const TURN_STARTED: &str = r#""type":"turn.started""#;
const QUEUE_MAX: usize = 16;
const WRITER_GONE: &str = "the bare writer stopped";

const SCHEMA: &str = "
    CREATE TABLE sessions (
        pk INTEGER PRIMARY KEY, realm TEXT NOT NULL, space TEXT NOT NULL, key TEXT NOT NULL,
        status TEXT NOT NULL, seq INTEGER NOT NULL, UNIQUE (realm, key, space));
    CREATE TABLE journal (
        row INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, seq INTEGER NOT NULL,
        body TEXT NOT NULL, UNIQUE (session, seq));";

const CREATE: &str = "INSERT INTO sessions (pk, realm, space, key, status, seq) \
    VALUES (?1, 'default', 'thread', ?1, 'running', ?2)";
const ADVANCE: &str = "UPDATE sessions SET status = 'running', seq = ?2 WHERE pk = ?1";
const JOURNAL: &str = "INSERT INTO journal (session, seq, body) VALUES (?1, ?2, ?3)";

/// The rows of a thread in groups: those up to the start of each turn, then those of its end.
pub fn by_turn(journal: Vec<String>) -> Vec<Vec<String>> {
    let mut groups = vec![Vec::new()];
    for body in journal {
        let starts = body.contains(TURN_STARTED);
        if let Some(group) = groups.last_mut() {
            group.push(body);
        }
        if starts {
            groups.push(Vec::new());
        }
    }
    groups
}

/// One row to commit.
struct Request {
    session: i64,
    seq: i64,
    body: String,
    ack: oneshot::Sender<()>,
}

/// A bare database with its writer.
pub struct Bare {
    queue: mpsc::Sender<Request>,
    writer: JoinHandle<Result<()>>,
    sessions: i64,
    // Held for its files.
    _folder: TempDir,
}

impl Bare {
    /// A new, empty database under `dir`.
    pub fn open(dir: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("waypost-bench-").tempdir_in(dir)?;
        let connection = Connection::open(folder.path().join("bare.db"))?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        if mode != "wal" {
            return Err(format!("SQLite took journal mode `{mode}` instead of WAL").into());
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(SCHEMA)?;
        let (queue, requests) = mpsc::channel(QUEUE_MAX);
        let writer = tokio::task::spawn_blocking(move || write(&connection, requests));
        Ok(Self { queue, writer, sessions: 0, _folder: folder })
    }

    /// Commits the rows of a new thread one after the other; how long each group took.
    pub async fn replay(&mut self, groups: &[Vec<String>]) -> Result<Vec<Duration>> {
        self.sessions += 1;
        let mut seq = 0;
        let mut times = Vec::with_capacity(groups.len());
        for group in groups {
            let bodies = group.clone();
            let begun = Instant::now();
            for body in bodies {
                self.commit(seq, body).await?;
                seq += 1;
            }
            times.push(begun.elapsed());
        }
        Ok(times)
    }

    async fn commit(&self, seq: i64, body: String) -> Result<()> {
        let (ack, acknowledged) = oneshot::channel();
        let request = Request { session: self.sessions, seq, body, ack };
        self.queue.send(request).await.map_err(|_| WRITER_GONE)?;
        Ok(acknowledged.await.map_err(|_| WRITER_GONE)?)
    }

    /// Ends the writer, and says what went wrong there.
    pub async fn close(self) -> Result<()> {
        let Self { queue, writer, .. } = self;
        drop(queue);
        writer.await?
    }
}

/// A commit for each row; ends when no one can ask any more.
fn write(connection: &Connection, mut requests: mpsc::Receiver<Request>) -> Result<()> {
    while let Some(Request { session, seq, body, ack }) = requests.blocking_recv() {
        let transaction = connection.unchecked_transaction()?;
        let place = if seq == 0 { CREATE } else { ADVANCE };
        transaction.prepare_cached(place)?.execute(params![session, seq])?;
        transaction.prepare_cached(JOURNAL)?.execute(params![session, seq, body])?;
        transaction.commit()?;
        // One that is gone does not wait any more.
        let _ = ack.send(());
    }
    Ok(())
}
