//! Removal of sessions, of old runs of active sessions, and of closures that no run pins.

use crate::contracts::Read;
use crate::journal::trim::Trim;
use crate::values::ids::{Fence, Millis, RealmId, SessionId, SessionKey, SessionVersion};

/// Removing what is old. Who decides that something goes names the fence of what was read:
/// what has changed since then stays.
pub trait Retention: Send + Sync {
    /// Removes a session and all that belongs to it; nothing where it is gone already. `Conflict`
    /// where it has changed, or where it is another one. Durable on return.
    fn remove<'a>(&'a self, key: &'a SessionKey, known: SessionVersion) -> Read<'a, ()>;

    /// The same, unless a sink of its realm has not passed all its rows: then nothing is removed,
    /// and the consumer that is furthest behind is named.
    fn remove_sent<'a>(
        &'a self,
        key: &'a SessionKey,
        known: SessionVersion,
    ) -> Read<'a, Option<String>>;

    /// Removes one slice of the old sessions: those that are over, or never had a run, and were
    /// last changed before this; those in `but` stay, and those with rows that a sink has not
    /// passed. The slice begins after a row's number (0 for the first) and looks at so many. In
    /// the same commit `RETENTION` of each realm moves on to the newest row of the feed that went.
    /// After the last slice, keys of requests that are as old and whose runs are gone are removed
    /// as well. Durable on return.
    fn prune<'a>(
        &'a self,
        realms: RealmSet<'a>,
        before: Millis,
        but: &'a [SessionKey],
        slice: Slice<u64>,
    ) -> Read<'a, PrunedSlice>;

    /// Sessions with runs that ended before this and that are not their newest, after a cursor.
    fn trimmable<'a>(
        &'a self,
        realms: RealmSet<'a>,
        before: Millis,
        slice: Slice<Option<(Millis, u64)>>,
    ) -> Read<'a, Vec<Trimmable>>;

    /// Removes the beginning of a session's journal and the runs that it is of, and puts the base
    /// in its place, in one commit, in which `RETENTION` of its realm moves on to the base's row
    /// and the session's fence by one. How many rows went; none if the session has another fence,
    /// if it is not as the request says any more, or if a sink has not passed these rows. Durable
    /// on return.
    fn trim(&self, trim: Trim) -> Read<'_, Option<u64>>;

    /// Looks at so many closures whose runs were removed, and removes those that no run pins. How
    /// many it looked at, and how many it removed. Durable on return.
    fn sweep_closures(&self, limit: usize) -> Read<'_, (usize, u64)>;
}

/// The consumer whose position says up to where `Retention::prune` and `Retention::trim` may have
/// removed rows of the feed.
pub const RETENTION: &str = "retention";

/// Whose sessions are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RealmSet<'a> {
    One(&'a RealmId),
    /// All, but not those of these realms.
    AllBut(&'a [RealmId]),
}

/// A page of a long list: at most so many, after a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice<P> {
    /// The last cursor of the previous page.
    pub after: P,
    /// How many at most.
    pub limit: usize,
}

/// What one slice of a removal removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrunedSlice {
    pub removed: Vec<SessionKey>,
    /// How many rows, of all kinds.
    pub rows: u64,
    /// Where the next slice begins, if there is one.
    pub next: Option<u64>,
}

/// A session that may have old runs to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trimmable {
    /// Its cursor in this list.
    pub cursor: (Millis, u64),
    pub key: SessionKey,
    pub id: SessionId,
    pub fence: Fence,
    /// The number of the first of its runs that stays.
    pub keeps: u32,
}
