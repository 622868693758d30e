//! The feed: all appends of a realm in commit order, and the positions of its consumers.

use crate::contracts::{FeedRow, Read};
use crate::values::ids::RealmId;

/// The feed of every realm. Rows are numbered in the order of their commits: once a reader has seen
/// a row, none with a smaller number shows up any more.
pub trait Feed: Send + Sync {
    /// The feed of a realm after a cursor: at most so many rows, fewer where they are large, and
    /// none only at its end.
    fn feed<'a>(&'a self, realm: &'a RealmId, after: u64, limit: usize) -> Read<'a, Vec<FeedRow>>;

    /// How many rows the feed of a realm has after a cursor, counted up to this many.
    fn feed_ahead<'a>(&'a self, realm: &'a RealmId, after: u64, max: usize) -> Read<'a, u64>;

    /// The cursor of the newest committed row, of any realm, or of the newest row that was removed
    /// if that is further: it never goes back. 0 before the first. No row shows up later that is
    /// not after it.
    fn feed_end(&self) -> Read<'_, u64>;

    /// How far a named consumer has read; 0 where it has no place.
    fn consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, u64>;

    /// The place of a named consumer. One that has none yet is given one; durable on return.
    fn begin_consumer<'a>(
        &'a self,
        realm: &'a RealmId,
        consumer: &'a str,
        start: FeedStart,
    ) -> Read<'a, u64>;

    /// The consumers of a realm whose names begin so, by name, and how far each has read.
    fn consumers<'a>(&'a self, realm: &'a RealmId, prefix: &'a str)
    -> Read<'a, Vec<(String, u64)>>;

    /// Moves a named consumer on, never back; durable on return.
    fn advance<'a>(&'a self, realm: &'a RealmId, consumer: &'a str, cursor: u64) -> Read<'a, ()>;

    /// Removes the place of a named consumer, and before it the log of deliveries of one that is a
    /// sink: after a crash midway the place is still there. False where it has no place; durable on
    /// return.
    fn forget_consumer<'a>(&'a self, realm: &'a RealmId, consumer: &'a str) -> Read<'a, bool>;
}

/// What the names of consumers begin with that deliver events to systems outside: rows of the feed
/// that one of them has not passed stay.
pub const SINKS: &str = "sink/";

/// Where a consumer begins that has no place yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedStart {
    /// Before the oldest row there is.
    Oldest,
    /// After the newest row there is.
    Newest,
}
