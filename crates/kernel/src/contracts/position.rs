//! Positions of a store, by which lost writes are detected.

use std::fmt;

/// How far a database of a store has come. None of its numbers ever becomes smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StorePosition {
    /// How often it was opened.
    pub opened: u64,
    /// The newest row of the feed that it ever had.
    pub feed: u64,
    /// How many changes were made that are not in the feed, such as those of keys and definitions.
    pub changes: u64,
}

impl StorePosition {
    /// Whether something is missing here that the other one has.
    pub fn is_behind(self, other: Self) -> bool {
        self.opened < other.opened || self.feed < other.feed || self.changes < other.changes
    }
}

impl fmt::Display for StorePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { opened, feed, changes } = self;
        write!(f, "opening {opened}, event row {feed}, change {changes}")
    }
}

/// A store went back: writes that were acknowledged are not in it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLoss {
    /// Which of its databases: `waypost.db`.
    pub database: &'static str,
    /// How far it had come at least.
    pub expected: StorePosition,
    /// How far it has come now.
    pub found: StorePosition,
}

impl fmt::Display for StoreLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { database, expected, found } = self;
        write!(f, "`{database}` had come to {expected}, and is at {found}")
    }
}
