//! Poisoned sessions: after a failed append of a session its driver's later appends must fail too,
//! because they were decided on events that do not exist. A load ends this for appends after it. An
//! append that would have created a session does not poison: what follows it finds no session.

use kernel::values::ids::SessionKey;
use std::collections::HashMap;

/// Appends are numbered in the order of the queue. This knows which numbers of which sessions are
/// to be refused.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    /// The number of the last append that was queued.
    queued: u64,
    /// The number of the last append that was processed.
    processed: u64,
    sessions: HashMap<SessionKey, Span>,
}

/// Refused are the appends after the failed one, up to those queued when the session was loaded.
#[derive(Debug)]
struct Span {
    after: u64,
    until: Option<u64>,
}

impl Poison {
    /// The number that the next append gets, if it finds a place in the queue.
    pub(crate) fn next_number(&self) -> u64 {
        self.queued + 1
    }

    /// The append of that number is in the queue.
    pub(crate) fn queued(&mut self) {
        self.queued += 1;
    }

    /// An append found no place in the queue.
    pub(crate) fn turned_away(&mut self, key: &SessionKey) {
        self.add(key, self.queued);
    }

    /// The append of this number failed.
    pub(crate) fn failed(&mut self, key: &SessionKey, number: u64) {
        self.add(key, number);
    }

    /// Whether the append of this number is to be refused.
    pub(crate) fn refuses(&self, key: &SessionKey, number: u64) -> bool {
        self.sessions.get(key).is_some_and(|span| {
            number > span.after && span.until.is_none_or(|until| number <= until)
        })
    }

    /// The session is loaded: what is queued from now on was decided on what is there.
    pub(crate) fn loaded(&mut self, key: &SessionKey) {
        if self.processed == self.queued {
            self.sessions.remove(key);
        } else if let Some(span) = self.sessions.get_mut(key) {
            span.until = Some(self.queued);
        }
    }

    /// All appends up to this number are processed; spans that lie before it are forgotten.
    pub(crate) fn processed(&mut self, number: u64) {
        self.processed = number;
        self.sessions.retain(|_, span| span.until.is_none_or(|until| until > number));
    }

    /// Whether no session is known.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    fn add(&mut self, key: &SessionKey, after: u64) {
        let span = self.sessions.entry(key.clone()).or_insert(Span { after, until: None });
        // Of two spans the wider: to refuse too much costs a reload, to refuse too little a lie.
        span.after = span.after.min(after);
        span.until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SessionKey {
        SessionKey::new("r", "session", "a")
    }

    #[test]
    fn a_load_clears_the_poison_for_later_appends_only() {
        let mut poison = Poison::default();
        for _ in 0..3 {
            poison.queued();
        }
        poison.failed(&key(), 1);
        assert!(!poison.refuses(&key(), 1) && poison.refuses(&key(), 2));
        poison.loaded(&key());
        poison.queued();
        assert!(poison.refuses(&key(), 3) && !poison.refuses(&key(), 4));
        poison.processed(4);
        assert!(poison.sessions.is_empty());
    }

    #[test]
    fn an_append_rejected_at_the_queue_does_not_poison_earlier_ones() {
        let mut poison = Poison::default();
        poison.queued();
        poison.turned_away(&key());
        assert!(!poison.refuses(&key(), 1) && poison.refuses(&key(), 2));
        poison.processed(1);
        poison.loaded(&key());
        assert!(!poison.refuses(&key(), 2));
    }
}
