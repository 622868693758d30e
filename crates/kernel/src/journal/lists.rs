//! Filters, pages and rows of lists, each row with its session.

use crate::journal::projection::{AskRow, RunRow};
use crate::session::RunStatus;
use crate::values::caller::Caller;
use crate::values::ids::{
    ContentHash, Millis, PlanId, RunId, SessionId, SessionKey, Space, StepId,
};
use std::borrow::Cow;
use std::sync::Arc;

/// How an endpoint names a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRef {
    /// By its own id.
    Id(SessionId),
    /// By the client's key.
    Key {
        /// The client's key.
        key: Arc<str>,
        /// The space; any where none is named, if only one has that key.
        space: Option<Space>,
    },
    /// The same as a subject means it: where ids are their owner's, its own and no other's.
    Owned {
        /// The client's key.
        key: Arc<str>,
        /// The space; any where none is named, if only one has that key.
        space: Option<Space>,
        /// The subject.
        owner: Arc<str>,
    },
}

impl Caller {
    /// Resolves a reference for this caller: ids that are scoped to owners mean the caller's own.
    pub fn meant<'r>(&self, session: &'r SessionRef) -> Cow<'r, SessionRef> {
        match (session, self.owner()) {
            (SessionRef::Key { key, space }, Some(owner)) => {
                let key = key.clone();
                let space = space.clone();
                Cow::Owned(SessionRef::Owned { key, space, owner })
            }
            (SessionRef::Id(_) | SessionRef::Owned { .. }, _) | (SessionRef::Key { .. }, None) => {
                Cow::Borrowed(session)
            }
        }
    }
}

/// Which sessions to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    pub status: Option<RunStatus>,
    /// Whose latest run is of this plan.
    pub plan: Option<PlanId>,
    pub space: Option<Space>,
    /// Only those that are parked.
    pub parked: bool,
    /// That hold this blob as a value. A text that mentions it does not count.
    pub blob: Option<ContentHash>,
}

/// Which asks to list, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskFilter {
    pub session: Option<SessionId>,
    pub run: Option<RunId>,
    /// Of this kind, `approve`.
    pub kind: Option<String>,
    /// Of this status, `open`.
    pub status: Option<String>,
    pub step: Option<StepId>,
    /// Only those that a rule holds, or only those that none holds.
    pub held: Option<bool>,
}

/// Which runs of contexts to list, the one that changed last first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Of these subjects.
    pub whose: OwnerFilter,
    pub session: Option<SessionId>,
    /// Of these statuses; of any where none is named.
    pub statuses: Vec<RunStatus>,
    /// That changed at this time or later.
    pub since: Option<Millis>,
}

/// The owner to search for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OwnerFilter {
    #[default]
    Anyones,
    /// No one's, as in local mode.
    NoOnes,
    /// This subject's.
    Of(Arc<str>),
}

impl OwnerFilter {
    /// The owner of what this caller creates.
    pub fn own(caller: &Caller) -> Self {
        caller.owner().map_or(Self::NoOnes, Self::Of)
    }

    /// Whether this belongs to the owner that is searched for.
    pub fn includes(&self, owner: Option<&str>) -> bool {
        match self {
            OwnerFilter::Anyones => true,
            OwnerFilter::NoOnes => owner.is_none(),
            OwnerFilter::Of(subject) => owner == Some(&**subject),
        }
    }
}

/// A page of runs, and how many there are on all pages.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPage {
    pub page: ListPage<SessionRun>,
    /// How many fit the filter.
    pub total: u64,
}

/// A page's start and size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// Where the page before it ended: opaque.
    pub cursor: Option<String>,
    /// How many items.
    pub limit: usize,
}

/// A page.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    /// Where the next page begins, if there is one.
    pub next_cursor: Option<String>,
}

/// An ask with the session it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionAsk {
    pub session: SessionId,
    pub key: SessionKey,
    pub row: AskRow,
}

/// A run with the session it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRun {
    pub session: SessionId,
    pub key: SessionKey,
    pub row: RunRow,
}

/// A run, and how the journal of its session begins.
#[derive(Debug, Clone, PartialEq)]
pub struct RunWithEvents {
    pub run: SessionRun,
    /// The first events, as JSON texts with their sequences; none where the run is a later one.
    pub events: Vec<(u64, String)>,
}

/// One row of the feed over all sessions of a realm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedRow {
    /// Its place in the feed.
    pub cursor: u64,
    pub session: SessionId,
    pub key: SessionKey,
    /// Whose the session is now.
    pub owner: Option<Arc<str>>,
    /// The plan of its latest run.
    pub plan: Option<PlanId>,
    /// The events of one append, as a JSON array.
    pub body: String,
}
