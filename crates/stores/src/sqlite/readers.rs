//! Readers: threads with a read-only connection each, that take reads from one bounded queue. Each
//! read is one transaction, so that what it gathers belongs together.

use super::transaction::{Begin, Transaction};
use super::trouble::{Result, Trouble};
use crate::locks::held;
use kernel::contracts::{Read, Spawn, StoreError};
use rusqlite::Connection;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::sync::{Semaphore, oneshot};

/// How many reads wait; a further one is answered `Busy`.
const READ_QUEUE_MAX: usize = 4_096;

type Work = Box<dyn FnOnce(&Connection) + Send>;

/// Hands reads to the readers. They end with it.
pub(crate) struct Readers {
    queue: Arc<Queue>,
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.close();
    }
}

struct Queue {
    waiting: Mutex<Waiting>,
    /// One permit for each read that waits.
    ready: Semaphore,
}

#[derive(Default)]
struct Waiting {
    reads: VecDeque<Work>,
    closed: bool,
}

impl Readers {
    /// Starts a reader on each connection.
    pub(crate) fn start(spawn: &dyn Spawn, connections: Vec<Connection>) -> Self {
        let queue = Arc::new(Queue { waiting: Mutex::default(), ready: Semaphore::new(0) });
        for connection in connections {
            spawn.critical_thread("store-reader", Box::pin(serve(queue.clone(), connection)));
        }
        Self { queue }
    }

    /// Runs a read on one of the readers. It sees all that was committed when it was asked for.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Read<'static, T> {
        let queue = self.queue.clone();
        Box::pin(async move {
            let (answer, result) = oneshot::channel();
            queue.push(Box::new(move |connection: &Connection| {
                // No one waits for it any more.
                if !answer.is_closed() {
                    let _ = answer.send(together(connection, work));
                }
            }))?;
            result.await.unwrap_or(Err(StoreError::Closed))
        })
    }

    /// Ends the readers after what waits.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}

impl Queue {
    fn push(&self, work: Work) -> Result<(), StoreError> {
        let mut waiting = held(&self.waiting);
        if waiting.closed {
            return Err(StoreError::Closed);
        }
        if waiting.reads.len() >= READ_QUEUE_MAX {
            return Err(StoreError::Busy);
        }
        waiting.reads.push_back(work);
        self.ready.add_permits(1);
        Ok(())
    }

    fn pop(&self) -> Option<Work> {
        held(&self.waiting).reads.pop_front()
    }

    fn close(&self) {
        held(&self.waiting).closed = true;
        self.ready.close();
    }
}

async fn serve(queue: Arc<Queue>, connection: Connection) {
    while let Ok(permit) = queue.ready.acquire().await {
        permit.forget();
        if let Some(work) = queue.pop() {
            work(&connection);
        }
    }
    // Closed: what was asked before is still answered.
    while let Some(work) = queue.pop() {
        work(&connection);
    }
}

/// A read-only transaction. Nothing is written in it, so its end is to roll it back.
fn together<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T, StoreError> {
    let begun = Transaction::begin(connection, Begin::Read);
    let _ends = begun.map_err(|error| Trouble::from(error).into_error())?;
    work(connection).map_err(Trouble::into_error)
}
