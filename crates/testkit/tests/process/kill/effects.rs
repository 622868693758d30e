//! What the receiver's log says: every write by run and by call, and the calls whose outcome the
//! server cannot have known when it was killed.

use super::plans::Written;
use std::collections::{BTreeMap, BTreeSet};
use testkit::servers::receiver::{Effect, Line, Receiver};

/// The oracle's word on all writes up to now.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// By session key, then by step.
    pub(super) by_run: BTreeMap<String, BTreeMap<String, Written>>,
    /// The receiver's number, by call.
    pub(super) by_call: BTreeMap<String, u64>,
    /// Calls that reached the receiver and were not answered before their server was dead.
    pub(super) unheard: BTreeSet<String>,
}

impl Effects {
    /// Reads the log; panics if any write or any call stands in it twice.
    pub(super) fn read(receiver: &Receiver) -> Self {
        let mut effects = Self::default();
        let mut unanswered: BTreeMap<u64, String> = BTreeMap::new();
        let mut last_mark = 0;
        for line in receiver.lines() {
            match line {
                Line::Effect(effect) => {
                    let call = effects.add(&effect);
                    if effect.connection < last_mark {
                        // It was on its way when its server died.
                        effects.unheard.insert(call);
                    } else {
                        unanswered.insert(effect.n, call);
                    }
                }
                Line::Answered { answered } => {
                    unanswered.remove(&answered);
                }
                Line::Mark { mark } => {
                    last_mark = mark;
                    effects.unheard.extend(std::mem::take(&mut unanswered).into_values());
                }
            }
        }
        effects
    }

    /// How many writes there were.
    pub(super) fn count(&self) -> usize {
        self.by_call.len()
    }

    fn add(&mut self, effect: &Effect) -> String {
        let word = |name: &str| effect.body[name].as_str().map(str::to_owned);
        let (Some(run), Some(step)) = (word("run"), word("step")) else {
            panic!("no run of this load wrote {effect:?}");
        };
        let Some(call) = effect.key.clone() else {
            panic!("a write came without its Idempotency-Key: {effect:?}");
        };
        let first = self.by_call.insert(call.clone(), effect.n);
        assert_eq!(first, None, "call `{call}` was sent twice: {effect:?}");
        let written = Written { n: effect.n, word: word("word").unwrap_or_default() };
        let first = self.by_run.entry(run).or_default().insert(step, written);
        assert!(first.is_none(), "a write happened twice: {effect:?}, before as {first:?}");
        call
    }
}
