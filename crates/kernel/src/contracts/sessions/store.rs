//! A store: the six contracts by which the engine keeps sessions, over one database.

use crate::contracts::figures::StoreFigures;
use crate::contracts::{Feed, Journal, Keys, Lists, Ownership, Read, Retention, StoreError};
use crate::values::ids::SessionKey;
use std::sync::Arc;

/// Whom a store tells which sessions a commit changed.
pub type OnCommit = Arc<dyn Fn(&[SessionKey]) + Send + Sync>;

/// A store, and what concerns all of it.
pub trait Store: Journal + Ownership + Lists + Feed + Keys + Retention {
    /// What it says of its own work; none where it says nothing.
    fn figures(&self) -> Option<StoreFigures> {
        None
    }

    /// Calls `woken` after every commit, with the sessions whose journals it changed.
    fn on_commit(&self, woken: OnCommit);

    /// Whether there is room and the writer lives.
    fn healthy(&self) -> Result<(), StoreError>;

    /// Ends the writer after what is queued; durable on return.
    fn close(&self) -> Read<'_, ()>;
}
