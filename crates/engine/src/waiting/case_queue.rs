//! Bounded FIFO queues, one for each case of a pipeline: requests for the same case start their
//! runs one after the other. A queue exists only while a request is in it.

use crate::system::locks::lock;
use kernel::values::ids::SessionKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The queues of all cases that have a request.
#[derive(Debug, Default)]
pub(crate) struct CaseQueues {
    queues: Mutex<HashMap<SessionKey, CaseQueue>>,
}

#[derive(Debug)]
struct CaseQueue {
    /// Its one permit is the turn. Tokio's semaphore gives it in the order of asking.
    turn: Arc<Semaphore>,
    /// How many requests are in it, with the one whose turn it is.
    length: usize,
}

/// A place in a queue. Dropping it leaves the queue, and lets the next one continue.
#[derive(Debug)]
pub(crate) struct QueueTicket {
    queues: Arc<CaseQueues>,
    key: SessionKey,
    turn: Option<OwnedSemaphorePermit>,
}

impl CaseQueues {
    /// Joins the queue of a case at its end and waits for its turn. `None` where so many wait
    /// already.
    pub(crate) async fn wait_turn(
        self: Arc<Self>,
        key: SessionKey,
        wait_max: usize,
    ) -> Option<QueueTicket> {
        let (mut ticket, turn) = self.join(key, wait_max)?;
        // The semaphore is never closed, so this cannot fail.
        ticket.turn = turn.acquire_owned().await.ok();
        Some(ticket)
    }

    fn join(
        self: Arc<Self>,
        key: SessionKey,
        wait_max: usize,
    ) -> Option<(QueueTicket, Arc<Semaphore>)> {
        let mut queues = lock(&self.queues);
        let empty = || CaseQueue { turn: Arc::new(Semaphore::new(1)), length: 0 };
        let queue = queues.entry(key.clone()).or_insert_with(empty);
        if queue.length > wait_max {
            return None;
        }
        queue.length += 1;
        let turn = queue.turn.clone();
        drop(queues);
        Some((QueueTicket { queues: self, key, turn: None }, turn))
    }

    fn leave(&self, key: &SessionKey) {
        let mut queues = lock(&self.queues);
        let Some(queue) = queues.get_mut(key) else { return };
        queue.length -= 1;
        if queue.length == 0 {
            queues.remove(key);
        }
    }

    /// How many wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.queues).values().map(|queue| queue.length.saturating_sub(1)).sum()
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        lock(&self.queues).len()
    }
}

impl Drop for QueueTicket {
    fn drop(&mut self) {
        drop(self.turn.take());
        self.queues.leave(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use kernel::values::ids::Space;

    fn key(id: &str) -> SessionKey {
        SessionKey::new("r", Space::case(&"p".into()), id)
    }

    /// A request that is in the queue from now on.
    fn waiting(queues: &Arc<CaseQueues>, id: &str) -> BoxFuture<'static, Option<QueueTicket>> {
        let mut waits = queues.clone().wait_turn(key(id), 2).boxed();
        assert!((&mut waits).now_or_never().is_none(), "nobody was before it");
        waits
    }

    fn at_once(queues: &Arc<CaseQueues>, id: &str) -> Option<QueueTicket> {
        queues.clone().wait_turn(key(id), 2).now_or_never().unwrap()
    }

    #[test]
    fn case_queues_are_fifo_and_bounded() {
        let queues = Arc::new(CaseQueues::default());
        let first = at_once(&queues, "a");
        let mut second = waiting(&queues, "a");
        let mut third = waiting(&queues, "a");
        assert!(first.is_some() && at_once(&queues, "a").is_none(), "the queue is full");
        assert!(at_once(&queues, "b").is_some(), "another case has a queue of its own");
        assert_eq!(queues.waiting(), 2, "whose turn it is does not wait");
        drop(first);
        assert!((&mut third).now_or_never().is_none(), "it went before the second");
        let held = (&mut second).now_or_never().unwrap();
        assert!(held.is_some());
        drop(held);
        assert!(third.now_or_never().unwrap().is_some());
        drop(second);
        assert_eq!(queues.count(), 0, "an empty queue stays");
    }

    #[test]
    fn an_abandoned_ticket_is_skipped() {
        let queues = Arc::new(CaseQueues::default());
        let first = at_once(&queues, "a");
        let second = waiting(&queues, "a");
        let third = waiting(&queues, "a");
        drop(second);
        let fourth = waiting(&queues, "a");
        drop(first);
        let held = third.now_or_never().unwrap();
        drop(fourth);
        assert_eq!(queues.count(), 1);
        drop(held);
        assert_eq!(queues.count(), 0);
    }
}
