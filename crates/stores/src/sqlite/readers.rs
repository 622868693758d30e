//! Reader threads, each with a read-only connection, that share one bounded queue. The queue
//! alternates realms, and callers within a realm, so that nobody waits behind all reads of another
//! one. Each read is one transaction.

use super::error::{JobError, Result};
use super::transaction::{Begin, Transaction};
use crate::locks::held;
use kernel::contracts::{Read, Spawn, StoreError};
use kernel::identity::fair_queue::FairQueue;
use kernel::identity::reads_for::ReadsFor;
use kernel::values::ids::RealmId;
use rusqlite::Connection;
use std::sync::{Arc, Mutex};
use tokio::sync::{Semaphore, oneshot};

/// How many reads wait; a further one is answered `Busy`.
const READ_QUEUE_MAX: usize = 4_096;
/// How many of them are of one realm: others find room.
const REALM_QUEUE_MAX: usize = READ_QUEUE_MAX / 4 * 3;
/// How many of a realm's are of one caller: others of the realm find room.
const ASKER_QUEUE_MAX: usize = REALM_QUEUE_MAX / 4 * 3;

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
    waiting: Mutex<ReadQueue>,
    /// One permit for each read that waits.
    ready: Semaphore,
}

/// Reads by realm and then by who asks. Those of no realm, or of all, count as of one more realm,
/// and those that no caller asked for as of one more caller.
#[derive(Default)]
struct ReadQueue {
    reads: FairQueue<Option<RealmId>, Option<ReadsFor>, Work>,
    count: usize,
    closed: bool,
}

impl ReadQueue {
    /// Takes a read in; not if there are too many.
    fn push(&mut self, whose: &ReadOwner, work: Work) -> Result<(), StoreError> {
        if self.closed {
            return Err(StoreError::Closed);
        }
        let ReadOwner { realm, asker } = whose;
        let of_asker = asker.as_ref().map_or(0, |_| self.reads.of_caller(realm, asker));
        if self.count >= READ_QUEUE_MAX
            || self.reads.of_realm(realm) >= REALM_QUEUE_MAX
            || of_asker >= ASKER_QUEUE_MAX
        {
            return Err(StoreError::Busy);
        }
        self.reads.push(realm, asker, work);
        self.count += 1;
        Ok(())
    }

    /// The next read, of the realm and the caller whose turn it is.
    fn pop(&mut self) -> Option<Work> {
        let work = self.reads.pop()?;
        self.count -= 1;
        Some(work)
    }
}

/// Whose turn a read takes.
struct ReadOwner {
    realm: Option<RealmId>,
    asker: Option<ReadsFor>,
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

    /// Runs a read of the server itself on one of the readers. It sees all that was committed when
    /// it was asked for.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Read<'static, T> {
        self.queued(None, work)
    }

    /// The same for a realm, when it is its turn and that of who asks.
    pub(crate) fn read_of<T: Send + 'static>(
        &self,
        realm: RealmId,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Read<'static, T> {
        self.queued(Some(realm), work)
    }

    fn queued<T: Send + 'static>(
        &self,
        realm: Option<RealmId>,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Read<'static, T> {
        let queue = self.queue.clone();
        // Seen now: who polls for whom is known where a read is asked for.
        let whose = ReadOwner { realm, asker: ReadsFor::current() };
        Box::pin(async move {
            let (answer, result) = oneshot::channel();
            let work: Work = Box::new(move |connection: &Connection| {
                // No one waits for it any more.
                if !answer.is_closed() {
                    let _ = answer.send(together(connection, work));
                }
            });
            queue.push(&whose, work)?;
            result.await.unwrap_or(Err(StoreError::Closed))
        })
    }

    /// Ends the readers after what waits.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}

impl Queue {
    fn push(&self, whose: &ReadOwner, work: Work) -> Result<(), StoreError> {
        let mut waiting = held(&self.waiting);
        waiting.push(whose, work)?;
        self.ready.add_permits(1);
        Ok(())
    }

    fn pop(&self) -> Option<Work> {
        held(&self.waiting).pop()
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
    let _ends = begun.map_err(|error| JobError::from(error).into_error())?;
    work(connection).map_err(JobError::into_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Readers that nobody serves: what waits is taken by hand.
    fn readers() -> Readers {
        let queue = Arc::new(Queue { waiting: Mutex::default(), ready: Semaphore::new(0) });
        Readers { queue }
    }

    fn connection() -> Connection {
        Connection::open_in_memory().unwrap()
    }

    /// A read that notes whose it is. It waits once it was polled.
    fn read(readers: &Readers, realm: &str, seen: &Arc<Mutex<Vec<String>>>) -> Read<'static, ()> {
        let seen = seen.clone();
        let name = realm.to_owned();
        let mut read = readers.read_of(realm.into(), move |_| {
            held(&seen).push(name);
            Ok(())
        });
        assert!((&mut read).now_or_never().is_none());
        read
    }

    #[test]
    fn a_realm_waits_for_at_most_one_read_of_another_realm() {
        let readers = readers();
        let seen = Arc::default();
        let mut waiting: Vec<_> = (0..64).map(|_| read(&readers, "loud", &seen)).collect();
        waiting.extend((0..2).map(|_| read(&readers, "quiet", &seen)));
        let connection = connection();
        while let Some(work) = readers.queue.pop() {
            work(&connection);
        }
        let seen = held(&seen);
        assert_eq!(seen[..4], ["loud", "quiet", "loud", "quiet"]);
        assert_eq!((seen.len(), held(&readers.queue.waiting).count), (66, 0));
        assert!(waiting.iter_mut().all(|read| read.now_or_never() == Some(Ok(()))));
    }

    #[test]
    fn a_caller_waits_for_at_most_one_read_of_another_caller() {
        let readers = readers();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let noted = |subject: &str| {
            let _entered = ReadsFor::new(subject.into(), None).enter();
            let seen = seen.clone();
            let name = subject.to_owned();
            let mut read = readers.read_of("red".into(), move |_| {
                held(&seen).push(name);
                Ok(())
            });
            assert!((&mut read).now_or_never().is_none());
            read
        };
        let mut waiting: Vec<_> = (0..64).map(|_| noted("ann")).collect();
        waiting.extend((0..2).map(|_| noted("bob")));
        waiting.push(read(&readers, "red", &seen));
        waiting.push(read(&readers, "blue", &seen));
        let connection = connection();
        while let Some(work) = readers.queue.pop() {
            work(&connection);
        }
        let seen = held(&seen);
        assert_eq!(seen[..6], ["ann", "blue", "bob", "red", "ann", "bob"]);
        assert_eq!((seen.len(), held(&readers.queue.waiting).count), (68, 0));
        assert!(waiting.iter_mut().all(|read| read.now_or_never() == Some(Ok(()))));
    }

    #[test]
    fn a_caller_cannot_fill_the_read_queue_of_its_realm() {
        let readers = readers();
        let seen = Arc::default();
        let entered = ReadsFor::new("ann".into(), None).enter();
        let _waiting: Vec<_> = (0..ASKER_QUEUE_MAX).map(|_| read(&readers, "red", &seen)).collect();
        let refused = readers.read_of("red".into(), |_| Ok(())).now_or_never();
        assert_eq!(refused, Some(Err(StoreError::Busy)));
        drop(entered);
        let _other = ReadsFor::new("bob".into(), None).enter();
        drop(read(&readers, "red", &seen));
    }

    #[test]
    fn a_realm_cannot_fill_the_read_queue_of_others() {
        let readers = readers();
        let seen = Arc::default();
        let _waiting: Vec<_> =
            (0..REALM_QUEUE_MAX).map(|_| read(&readers, "loud", &seen)).collect();
        let refused = readers.read_of("loud".into(), |_| Ok(())).now_or_never();
        assert_eq!(refused, Some(Err(StoreError::Busy)));
        drop(read(&readers, "quiet", &seen));
        assert!(readers.read(|_| Ok(())).now_or_never().is_none(), "it waits");
    }

    #[test]
    fn a_read_of_a_disconnected_client_is_skipped() {
        let readers = readers();
        let done = Arc::new(AtomicUsize::new(0));
        let queued = || {
            let done = done.clone();
            let mut read = readers.read_of("r".into(), move |_| {
                done.fetch_add(1, Ordering::SeqCst);
                Ok(())
            });
            assert!((&mut read).now_or_never().is_none());
            read
        };
        let gone = queued();
        let stays = queued();
        drop(gone);
        let connection = connection();
        while let Some(work) = readers.queue.pop() {
            work(&connection);
        }
        assert_eq!(done.load(Ordering::SeqCst), 1);
        assert_eq!(stays.now_or_never(), Some(Ok(())));
    }
}
