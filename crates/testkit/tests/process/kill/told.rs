//! What the sink was told. Retention removes nothing that a sink has not passed, so of a run that
//! was removed its end is here.

use crate::events_out::Events;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use testkit::servers::webhook::WebhookReceiver;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    /// The key of its session.
    pub(super) key: String,
    /// `completed`, `failed` or `cancelled`.
    pub(super) how: String,
}

/// All that the sink was told, as far as it was read.
pub(super) struct Told<'h> {
    hook: &'h WebhookReceiver,
    seen: usize,
    began: BTreeSet<String>,
    ended: BTreeMap<String, Ending>,
    /// The session's key, by ask.
    decided: BTreeMap<String, String>,
}

impl<'h> Told<'h> {
    /// Nothing was read yet.
    pub(super) fn new(hook: &'h WebhookReceiver) -> Self {
        let (began, ended, decided) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        Self { hook, seen: 0, began, ended, decided }
    }

    /// Whether the sink was told that this run began.
    pub(super) fn began(&mut self, run: &str) -> bool {
        self.read();
        self.began.contains(run)
    }

    /// How a run ended, if the sink was told.
    pub(super) fn ended(&mut self, run: &str) -> Option<Ending> {
        self.read();
        self.ended.get(run).cloned()
    }

    /// How the run of each session ended, by the session's key.
    pub(super) fn endings(&mut self) -> BTreeMap<String, Ending> {
        self.read();
        self.ended.values().map(|ending| (ending.key.clone(), ending.clone())).collect()
    }

    /// The key of the session whose ask was decided, if the sink was told.
    pub(super) fn decided(&mut self, ask: &str) -> Option<String> {
        self.read();
        self.decided.get(ask).cloned()
    }

    /// Whatever came twice was the same, and each session came in its order.
    pub(super) fn check(&self) {
        assert_eq!(self.hook.faults(), Vec::<String>::new());
        let all = self.hook.taken().into_iter().map(|taken| taken.event).collect();
        Events { place: "the sink", all, broken: 0 }.check();
    }

    fn read(&mut self) {
        let taken = self.hook.taken_after(self.seen);
        self.seen += taken.len();
        taken.iter().for_each(|taken| self.add(&taken.event));
    }

    fn add(&mut self, event: &Value) {
        let word = |name: &str| event["data"][name].as_str().unwrap_or_default().to_owned();
        let kind = event["type"].as_str().unwrap_or_default();
        match kind {
            "waypost.run.started.v1" => {
                self.began.insert(word("run"));
            }
            "waypost.run.completed.v1" | "waypost.run.failed.v1" | "waypost.run.cancelled.v1" => {
                let how = kind.trim_start_matches("waypost.run.").trim_end_matches(".v1");
                let ending = Ending { key: word("key"), how: how.to_owned() };
                let before = self.ended.insert(word("run"), ending.clone());
                assert!(before.is_none_or(|before| before == ending), "another end: {event}");
            }
            "waypost.ask.decided.v1" => {
                self.decided.insert(word("ask"), word("key"));
            }
            _ => {}
        }
    }
}
