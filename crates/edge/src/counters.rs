//! What the endpoints count beside the engine: answers by their status, and what became of files
//! that changed while they were served.

use axum::http::StatusCode;
use kernel::values::ids::RealmId;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The first status that there is, and how many there can be.
const FIRST: usize = 100;
const STATUSES: usize = 900;

/// Answers, by status.
pub struct Answers([AtomicU64; STATUSES]);

impl Default for Answers {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Answers {
    /// One more of this status.
    pub fn add(&self, status: StatusCode) {
        if let Some(count) = self.0.get(usize::from(status.as_u16()).wrapping_sub(FIRST)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Those that were given, with how often.
    pub fn given(&self) -> Vec<(String, u64)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed)).enumerate();
        let given = counts.filter(|(_, count)| *count > 0);
        given.map(|(index, count)| ((index + FIRST).to_string(), count)).collect()
    }
}

/// What of a project's files is taken as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FilesPart {
    /// `policies/`.
    Policies,
    /// `principals.yaml`.
    Principals,
    /// Plans, agents, pipelines and rules.
    Files,
    /// The types of records, of all realms.
    Types,
    /// What is served in this realm, where its own files are wrong.
    Realm(RealmId),
}

impl fmt::Display for FilesPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilesPart::Policies => f.write_str("policies"),
            FilesPart::Principals => f.write_str("principals"),
            FilesPart::Files => f.write_str("files"),
            FilesPart::Types => f.write_str("types"),
            FilesPart::Realm(realm) => write!(f, "realms/{realm}"),
        }
    }
}

/// What became of files that changed.
#[derive(Debug, Default)]
pub struct Reloads {
    taken: AtomicU64,
    refused: AtomicU64,
    /// What the files say now and is not served, for it is wrong.
    unserved: Mutex<BTreeSet<FilesPart>>,
}

impl Reloads {
    /// What changed was read again and is served from now on.
    pub fn take(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// What changed was read again and is not served.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// This is wrong now, and nothing else.
    pub fn set_unserved(&self, portions: BTreeSet<FilesPart>) {
        *self.unserved.lock().unwrap_or_else(PoisonError::into_inner) = portions;
    }

    /// How often what they said was taken, and how often it was not.
    pub fn counts(&self) -> [(&'static str, u64); 2] {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [("taken", read(&self.taken)), ("refused", read(&self.refused))]
    }

    /// The names of what is wrong now and therefore not served.
    pub fn unserved(&self) -> Vec<String> {
        let portions = self.unserved.lock().unwrap_or_else(PoisonError::into_inner);
        portions.iter().map(FilesPart::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_status() {
        let answers = Answers::default();
        for status in [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS, StatusCode::OK] {
            answers.add(status);
        }
        answers.add(StatusCode::from_u16(999).unwrap());
        let expected = [("200", 2), ("429", 1), ("999", 1)];
        assert_eq!(answers.given(), expected.map(|(status, count)| (status.to_owned(), count)));
    }

    #[test]
    fn unserved_files_are_named_until_they_are_mended() {
        let reloads = Reloads::default();
        reloads.take();
        reloads.refuse();
        assert_eq!(reloads.counts(), [("taken", 1), ("refused", 1)]);
        let acme = FilesPart::Realm("acme".into());
        reloads.set_unserved([FilesPart::Files, acme, FilesPart::Policies].into());
        assert_eq!(reloads.unserved(), ["policies", "files", "realms/acme"]);
        reloads.set_unserved(BTreeSet::new());
        assert!(reloads.unserved().is_empty());
    }
}
