//! Write jobs that are not appends.

use super::error::Result;
use super::queue::{Chore, Writes};
use kernel::contracts::{Read, StoreError};
use rusqlite::Connection;
use tokio::sync::oneshot;

struct Task<F, G, T> {
    work: F,
    /// Runs once the work is durable, before anyone is notified.
    then: G,
    /// About how many bytes the work writes.
    size: usize,
    made: Option<T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, G, T> Chore for Task<F, G, T>
where
    F: FnMut(&Connection) -> Result<T> + Send,
    G: FnOnce(&T) + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> Result<()> {
        self.made = Some((self.work)(connection)?);
        Ok(())
    }

    fn size(&self) -> usize {
        self.size
    }

    fn done(self: Box<Self>, result: Result<(), StoreError>) {
        let Self { then, made, answer, .. } = *self;
        let result = result.and_then(|()| made.ok_or(StoreError::Closed));
        let _ = answer.send(result.inspect(then));
    }
}

impl Writes {
    /// Queues a write of SQL; waits for a place, and until it is durable.
    pub(crate) fn perform<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T> + Send + 'static,
    ) -> Read<'static, T> {
        self.queue_task(0, work, |_| ())
    }

    /// The same of a write of about so many bytes: whether a full disk has room again is tried with
    /// as many.
    pub(crate) fn perform_large<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnMut(&Connection) -> Result<T> + Send + 'static,
    ) -> Read<'static, T> {
        self.queue_task(size, work, |_| ())
    }

    /// A write of SQL, and then something at once: after the commit, before what was queued behind
    /// it, and before anyone is notified.
    pub(crate) fn perform_then<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Read<'static, T> {
        self.queue_task(0, work, then)
    }

    fn queue_task<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnMut(&Connection) -> Result<T> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Read<'static, T> {
        let writes = self.clone();
        Box::pin(async move {
            let (answer, result) = oneshot::channel();
            let task = Task { work, then, size, made: None, answer };
            writes.chore(Box::new(task)).await?;
            result.await.unwrap_or(Err(StoreError::Closed))
        })
    }
}
