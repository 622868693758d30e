//! What every operation of a store may fail with, and what a caller can do about it.

use futures::future::BoxFuture;

/// What a store could not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Someone else wrote first: reload and decide again.
    #[error("session `{0}` was changed by another writer")]
    Conflict(String),
    /// A session with this key is there already.
    #[error("session `{0}` exists already")]
    Exists(String),
    /// Too many appends wait.
    #[error("the store's queue is full; try again")]
    Busy,
    /// No room: nothing was written.
    #[error("the disk is full; nothing was written")]
    Full,
    /// No file descriptor is left: nothing was written.
    #[error("no file descriptor is left; nothing was written")]
    Starved,
    /// More than may be stored, or read at once: nothing was.
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    /// What was to be stored did not come to its end: nothing was written.
    #[error("what was to be stored broke off; nothing was written")]
    BrokenOff,
    /// An earlier append of this session failed, so this one was not tried.
    #[error("an earlier write of session `{0}` failed")]
    Poisoned(String),
    /// Stored data is unreadable.
    #[error("{0}")]
    Unreadable(String),
    /// The events after this place are not kept any more: the oldest has this sequence.
    #[error("the events after this place are not kept any more; the oldest is event {0}")]
    Gone(u64),
    /// A page's cursor is not one of ours.
    #[error("{0}")]
    BadCursor(String),
    /// The realm was removed: nothing is written for it any more.
    #[error("the realm `{0}` was removed")]
    RealmRemoved(String),
    /// The next row of this chain of the audit is there already, and the server did not write it.
    #[error("the audit `{0}` cannot be continued: someone else wrote its next row")]
    AuditBroken(String),
    #[error("the store is closed")]
    Closed,
    /// Anything else, in the engine's words.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// The result of a store's read.
pub type Read<'a, T> = BoxFuture<'a, Result<T, StoreError>>;
