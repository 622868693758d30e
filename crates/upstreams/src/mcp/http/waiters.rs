//! Waiters for answers that may arrive on another stream than their own: on the general one, after
//! their own was lost.

use super::super::line::Incoming;
use crate::lock;
use std::collections::HashMap;
use std::sync::Mutex;
use tokio::sync::oneshot;
use wire::jsonrpc::Id;

/// All that wait on one line. It holds one entry for each request under way, which are bounded by
/// those who ask.
#[derive(Default)]
pub(super) struct WaiterTable(Mutex<HashMap<Id, oneshot::Sender<Incoming>>>);

/// One that waits; it is forgotten when this is dropped.
pub(super) struct Waiter<'a> {
    waiting: &'a WaiterTable,
    id: &'a Id,
}

impl WaiterTable {
    /// Waits for an answer to this request.
    pub(super) fn enter<'a>(&'a self, id: &'a Id) -> (Waiter<'a>, oneshot::Receiver<Incoming>) {
        let (sender, receiver) = oneshot::channel();
        lock(&self.0).insert(id.clone(), sender);
        (Waiter { waiting: self, id }, receiver)
    }

    /// Hands an answer to the request that waits for it, if one does.
    pub(super) fn deliver(&self, id: &Id, answer: Incoming) {
        let waiter = lock(&self.0).remove(id);
        if let Some(waiter) = waiter {
            // It may have been answered on its own stream a moment ago.
            let _ = waiter.send(answer);
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        lock(&self.waiting.0).remove(self.id);
    }
}
