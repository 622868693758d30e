//! A store: the six session contracts over one database.

use crate::contracts::figures::StoreFigures;
use crate::contracts::{Feed, Journal, Keys, Lists, Ownership, Read, Retention, StoreError};
use crate::event::Event;
use crate::journal::projection::Append;
use crate::values::ids::{SessionId, SessionKey};
use std::sync::Arc;

/// Whom a store tells which sessions a commit changed.
pub type OnCommit = Arc<dyn Fn(&[CommitNotice<'_>]) + Send + Sync>;

/// A session that a commit changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CommitNotice<'a> {
    pub key: &'a SessionKey,
    /// What the commit added to its journal; none where only the change is known, as of a commit
    /// of another process, and where nothing was added.
    pub appended: Option<AppendedEvents<'a>>,
}

/// What one append added to a journal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AppendedEvents<'a> {
    /// The session: another one may have had its key before.
    pub session: SessionId,
    /// The first of the events.
    pub first_seq: u64,
    pub last_seq: u64,
    /// All of them, as a JSON array.
    pub body: &'a str,
    /// The same, read; empty where they are not at hand.
    pub events: &'a [Arc<Event>],
}

impl<'a> CommitNotice<'a> {
    /// This was appended.
    pub fn append(append: &'a Append) -> Self {
        let Append { session, first_seq, body, events, .. } = append;
        let first_seq = *first_seq;
        let last_seq = session.seq;
        let appended = AppendedEvents { session: session.id, first_seq, last_seq, body, events };
        Self { key: &session.key, appended: Some(appended) }
    }

    /// This session changed, and no more is known.
    pub fn change(key: &'a SessionKey) -> Self {
        Self { key, appended: None }
    }
}

/// A store, and what concerns all of it.
pub trait Store: Journal + Ownership + Lists + Feed + Keys + Retention {
    /// Its measurements; `None` if it has none.
    fn figures(&self) -> Option<StoreFigures> {
        None
    }

    /// Calls `woken` after every commit, with the sessions whose journals it changed: one entry for
    /// each append, those of one session in the order of its journal. What this process appended
    /// comes with its events, and before its ticket resolves: who knows that an append is durable
    /// was told what is in it.
    fn on_commit(&self, woken: OnCommit);

    /// Whether there is room and the writer lives.
    fn healthy(&self) -> Result<(), StoreError>;

    /// Ends the writer after what is queued; durable on return.
    fn close(&self) -> Read<'_, ()>;
}
