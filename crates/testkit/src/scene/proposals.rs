//! Models of a scene that are asked about failed steps: proposals from its lines.

use super::stage::Stage;
use kernel::ask::remedy::RemedyResult;
use kernel::conversation::llm::Usage;
use kernel::definition::plan::flow::reload;
use kernel::event::{Event, Fact, ProposalEnd};
use kernel::session::FrameState;
use kernel::values::fault::Fault;
use kernel::values::ids::{FrameId, RunId};
use std::sync::Arc;

/// What one proposal takes.
const USAGE: Usage = Usage { input: 100, cached: 0, cache_written: 0, output: 10 };

impl Stage {
    /// One model says what could be done.
    pub(super) fn propose_one(&mut self) -> bool {
        let Some((frame, attempt)) = self.proposing(|_| true).first().copied() else {
            return false;
        };
        let given = |event: &&Event| matches!(event.fact, Fact::ProposalGiven(_));
        let over = self.events.iter().filter(given).count();
        let Some(line) = self.scene.proposals.get(over) else { return false };
        let found: RemedyResult = match serde_json::from_str(line) {
            Ok(found) => found,
            Err(error) => panic!("a proposal is not what was found: {error}: {line}"),
        };
        let found = self.session.judged(frame, found);
        let turns = 1;
        let usage = USAGE;
        let cost_micros = Some(7);
        let uncached_micros = None;
        let end = ProposalEnd { frame, attempt, found, turns, usage, cost_micros, uncached_micros };
        self.record(Fact::ProposalGiven(Box::new(end)));
        true
    }

    /// A closing run asks no model any more.
    pub(super) fn close_proposals(&mut self, run: RunId) {
        for (frame, attempt) in self.proposing(|other| other == run) {
            let fault = Fault::new("Cancelled", "the run is being closed");
            let end = ProposalEnd::nothing(frame, attempt, fault);
            self.record(Fact::ProposalGiven(Box::new(end)));
        }
    }

    /// The frames whose models were asked, in runs of this kind.
    fn proposing(&self, of: impl Fn(RunId) -> bool) -> Vec<(FrameId, u32)> {
        let frames = self.session.frames.values().filter(|frame| of(frame.run));
        let asked = frames.filter_map(|frame| match frame.state {
            FrameState::Proposing { attempt, lost: false, .. } => Some((frame.id, attempt)),
            _ => None,
        });
        asked.collect()
    }

    /// Reads the corrections under way that models wrote.
    pub(super) fn read_drafted(&mut self) {
        let sources = self.session.drafted.iter();
        let read = sources.map(|(id, source)| match reload(source) {
            Ok(plan) => (id.clone(), Arc::new(plan)),
            Err(mistakes) => panic!("a drafted plan cannot be read: {mistakes:?}"),
        });
        self.drafted = read.collect();
    }
}
