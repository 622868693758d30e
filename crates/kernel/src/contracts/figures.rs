//! Measurements that a store reports about itself.

use crate::values::ids::{Millis, RealmId};
use std::sync::Arc;

/// Commits are grouped by how many milliseconds they took: up to each of these, or longer.
pub const COMMIT_MS: [u64; 11] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000];

/// A store at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreFigures {
    /// Writes that wait.
    pub queued: usize,
    /// How long commits took since the start.
    pub commits: CommitTimes,
    /// How many bytes it has on the disk, without blobs.
    pub bytes: u64,
    /// How many of them are its write-ahead log: what is durable and not yet in the database.
    pub wal_bytes: u64,
}

/// How long commits took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommitTimes {
    /// How many took up to each of `COMMIT_MS` and longer than the one before; the longest last.
    pub counts: [u64; COMMIT_MS.len() + 1],
    /// All of them together.
    pub total_ms: u64,
}

impl CommitTimes {
    /// One more, which took so long.
    pub fn add(&mut self, took_ms: u64) {
        let place = COMMIT_MS.iter().position(|most| took_ms <= *most).unwrap_or(COMMIT_MS.len());
        self.counts[place] += 1;
        self.total_ms = self.total_ms.saturating_add(took_ms);
    }
}

/// The open asks of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAsks {
    /// What for: `approve`.
    pub kind: String,
    pub count: u64,
    /// When the oldest of them was raised.
    pub oldest: Millis,
}

/// The sessions of one status, of those that are not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSessions {
    /// `waiting`, for example.
    pub status: String,
    pub count: u64,
}

/// What the runs of one owner store in one realm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBytes {
    pub realm: RealmId,
    /// Whose runs they are: a subject. None in local mode.
    pub owner: Option<Arc<str>>,
    /// About how many bytes of journal and blobs.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_counts_in_its_histogram_bucket() {
        let mut times = CommitTimes::default();
        for took_ms in [0, 1, 2, 3, 5_000, 5_001] {
            times.add(took_ms);
        }
        assert_eq!(times.counts, [2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(times.total_ms, 10_007);
    }
}
