//! What the doors count beside the engine: answers by their status, what became of files that
//! changed while they were served, and what webhooks took.

use axum::http::StatusCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The first status that there is, and how many there can be.
const FIRST: usize = 100;
const STATUSES: usize = 900;

/// Answers, by status.
pub(crate) struct Answers([AtomicU64; STATUSES]);

impl Default for Answers {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Answers {
    /// One more of this status.
    pub(crate) fn add(&self, status: StatusCode) {
        if let Some(count) = self.0.get(usize::from(status.as_u16()).wrapping_sub(FIRST)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Those that were given, with how often.
    pub(crate) fn given(&self) -> Vec<(String, u64)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed)).enumerate();
        let given = counts.filter(|(_, count)| *count > 0);
        given.map(|(index, count)| ((index + FIRST).to_string(), count)).collect()
    }
}

/// What became of files that changed.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    taken: AtomicU64,
    refused: AtomicU64,
    /// What the files say now is not served, for it is wrong.
    broken: AtomicBool,
}

impl Reloads {
    /// They were read again, and are served from now on or not.
    pub(crate) fn add(&self, taken: bool) {
        let count = if taken { &self.taken } else { &self.refused };
        count.fetch_add(1, Ordering::Relaxed);
        self.broken.store(!taken, Ordering::Relaxed);
    }

    /// They say again what is served.
    pub(crate) fn mended(&self) {
        self.broken.store(false, Ordering::Relaxed);
    }

    /// How often what they said was taken, and how often it was not.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 2] {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [("taken", read(&self.taken)), ("refused", read(&self.refused))]
    }

    /// Whether what they say now is not served.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }
}

/// What became of what was posted to webhooks.
#[derive(Debug, Default)]
pub(crate) struct Pushes {
    taken: AtomicU64,
    failed: AtomicU64,
    ended: AtomicU64,
    live: AtomicU64,
}

impl Pushes {
    /// An update was posted, and taken or not.
    pub(crate) fn add(&self, taken: bool) {
        let count = if taken { &self.taken } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// A webhook gets nothing more, though its task is not over.
    pub(crate) fn end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// There may be more for so many webhooks.
    pub(crate) fn set_live(&self, webhooks: usize) {
        self.live.store(webhooks as u64, Ordering::Relaxed);
    }

    /// How often each happened.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 3] {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [("taken", read(&self.taken)), ("failed", read(&self.failed)), ("ended", read(&self.ended))]
    }

    /// For how many webhooks there may be more.
    pub(crate) fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_by_their_status() {
        let answers = Answers::default();
        for status in [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS, StatusCode::OK] {
            answers.add(status);
        }
        answers.add(StatusCode::from_u16(999).unwrap());
        let expected = [("200", 2), ("429", 1), ("999", 1)];
        assert_eq!(answers.given(), expected.map(|(status, count)| (status.to_owned(), count)));
    }

    #[test]
    fn files_that_are_wrong_stay_so_until_they_are_mended() {
        let reloads = Reloads::default();
        reloads.add(true);
        reloads.add(false);
        assert_eq!(reloads.counts(), [("taken", 1), ("refused", 1)]);
        assert!(reloads.is_broken());
        reloads.mended();
        assert!(!reloads.is_broken());
    }
}
