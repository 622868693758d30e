//! The log level of a handshake server. It is set once for all callers, so it is the lowest level
//! that any active call requests; each caller receives only the levels that it requested.

use crate::lock;
use kernel::tool::call::LogLevel;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The levels that calls of one connection want.
#[derive(Default)]
pub(crate) struct Levels {
    wishes: Arc<Mutex<Wishes>>,
    /// The level that was set last. Held while it is set, so that two requests cannot overtake
    /// each other.
    pub(crate) told: tokio::sync::Mutex<Option<LogLevel>>,
}

#[derive(Default)]
struct Wishes {
    made: u64,
    levels: BTreeMap<u64, LogLevel>,
}

/// A call wants to hear the log, for as long as this is kept.
pub(crate) struct LevelGuard {
    wishes: Arc<Mutex<Wishes>>,
    number: u64,
}

impl Levels {
    /// A call wants to hear the log from this level on.
    pub(crate) fn wish(&self, level: LogLevel) -> LevelGuard {
        let mut wishes = lock(&self.wishes);
        wishes.made += 1;
        let number = wishes.made;
        wishes.levels.insert(number, level);
        LevelGuard { wishes: self.wishes.clone(), number }
    }

    /// The lowest level that is wanted now.
    pub(crate) fn lowest(&self) -> Option<LogLevel> {
        lock(&self.wishes).levels.values().min().copied()
    }
}

impl Drop for LevelGuard {
    fn drop(&mut self) {
        lock(&self.wishes).levels.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_requested_log_level_is_set() {
        let levels = Levels::default();
        assert_eq!(levels.lowest(), None);
        let warning = levels.wish(LogLevel::Warning);
        let debug = levels.wish(LogLevel::Debug);
        assert_eq!(levels.lowest(), Some(LogLevel::Debug));
        drop(debug);
        assert_eq!(levels.lowest(), Some(LogLevel::Warning));
        drop(warning);
        assert_eq!(levels.lowest(), None);
    }
}
