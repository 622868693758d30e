//! Filters the journal of a session with several active runs down to the events of one run. The ids
//! in each event lead to its run, starting with the event that started it.

use kernel::event::{self, Event, Fact, Topic};
use kernel::values::ids::{AskId, CallId, FrameId, RunId};
use std::collections::BTreeSet;

/// Selects the events of one run from its start on, for a follower that has some of them already.
#[derive(Debug)]
pub(in crate::api) struct RunEventFilter {
    run: RunId,
    frames: BTreeSet<FrameId>,
    calls: BTreeSet<CallId>,
    asks: BTreeSet<AskId>,
    /// The last event that the follower has, or does not want.
    pub(in crate::api) had: u64,
    /// The run's last event so far.
    pub(in crate::api) last: u64,
    /// Whether the journal is read from the run's start on.
    pub(in crate::api) is_begun: bool,
}

impl RunEventFilter {
    /// Starts at the run's first event, and skips events up to `had`.
    pub(in crate::api) fn new(run: RunId, had: u64) -> Self {
        let frames = BTreeSet::new();
        let calls = BTreeSet::new();
        let asks = BTreeSet::new();
        Self { run, frames, calls, asks, had, last: 0, is_begun: false }
    }

    /// Adds the next event of the journal. Whether it is the run's, and new to the follower.
    pub(in crate::api) fn take(&mut self, body: &str) -> bool {
        read(body).is_some_and(|event| self.admits(&event) && event.seq > self.had)
    }

    /// Adds the next event of the journal. Whether it is the run's.
    pub(in crate::api) fn admits(&mut self, event: &Event) -> bool {
        let is_own = self.is_own(&event.fact);
        if is_own {
            self.learn(&event.fact);
            self.last = event.seq;
        }
        is_own
    }

    fn is_own(&self, fact: &Fact) -> bool {
        match fact.topic() {
            Topic::Run(run) => run == self.run,
            Topic::Frame(frame) => self.frames.contains(&frame),
            Topic::Call(call) => self.calls.contains(&call),
            Topic::Ask(ask) => self.asks.contains(&ask),
            Topic::Session => false,
        }
    }

    fn learn(&mut self, fact: &Fact) {
        self.frames.extend(fact.children());
        match fact {
            Fact::RunStarted { frame, .. } => {
                self.frames.insert(*frame);
            }
            Fact::CallRequested(request) => {
                self.calls.insert(request.call);
            }
            Fact::AskOpened(ask) => {
                self.asks.insert(ask.id);
            }
            Fact::FrameEnded { frame }
            | Fact::FrameCancelled { frame }
            | Fact::ItemFailed { frame, .. } => {
                self.frames.remove(frame);
            }
            _ => {}
        }
    }
}

/// One event of a journal; none where this release cannot read it.
pub(in crate::api) fn read(body: &str) -> Option<Event> {
    event::read_one(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// What the follower of run 7 gets of these events.
    fn given(had: u64, facts: &[Value]) -> Vec<u64> {
        let mut own = RunEventFilter::new(RunId(7), had);
        let mut given = Vec::new();
        for (seq, fact) in (1..).zip(facts) {
            let body = json!({"seq": seq, "at": 1, "v": 1, "type": fact["type"],
                "data": fact["data"]});
            if own.take(&body.to_string()) {
                given.push(seq);
            }
        }
        given
    }

    fn id(prefix: &str, number: u128) -> String {
        format!("{prefix}{number:032x}")
    }

    fn started(run: u128, frame: u32) -> Value {
        json!({"type": "run.started", "data": {"run": id("run_", run), "plan": "p",
            "closure": "c", "input": {"value": {}, "from": "input"}, "by": "ann",
            "frame": frame, "start": "one"}})
    }

    fn branches(frame: u32, child: u32) -> Value {
        json!({"type": "branches.started", "data": {"frame": frame, "step": "both",
            "branches": [{"frame": child, "id": "l", "start": "l1"}], "next": null}})
    }

    fn chosen(frame: u32) -> Value {
        json!({"type": "step.chosen", "data": {"frame": frame, "step": "s", "next": null}})
    }

    #[test]
    fn events_of_concurrent_runs_are_separated() {
        let facts = [
            started(7, 1),
            started(8, 2),
            branches(2, 3),
            branches(1, 4),
            chosen(3),
            chosen(4),
            json!({"type": "frame.ended", "data": {"frame": 4}}),
            json!({"type": "run.paused", "data": {"run": id("run_", 8), "by": "ann"}}),
            chosen(1),
            json!({"type": "call.late", "data": {"call": id("call_", 1),
                "result": {"Ok": {"value": 1, "from": "plan"}}}}),
        ];
        assert_eq!(given(0, &facts), [1, 4, 6, 7, 9]);
        assert_eq!(given(6, &facts), [7, 9], "what the follower has is read and not given");
    }
}
