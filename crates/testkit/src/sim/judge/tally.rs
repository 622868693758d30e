//! Counts rare situations in a journal, and lists the blobs that it names.

use crate::sim::coverage::{Counts, Seen};
use kernel::ask::Reply;
use kernel::ask::proposal::newest;
use kernel::ask::remedy::SUPERVISOR;
use kernel::event::{Event, Fact};
use kernel::tool::call::{Judgement, Verdict};
use kernel::values::datum::{Datum, DatumValue};
use kernel::values::fault::Fault;
use kernel::values::ids::{AskId, CallId, ContentHash, FrameId};
use std::collections::{BTreeMap, BTreeSet};

/// Counts what is easily missed in one session.
pub fn tally(events: &[Event]) -> Counts {
    let mut tally = Tally::default();
    events.iter().for_each(|event| tally.event(&event.fact));
    tally.counts
}

/// The blobs that a fact names: a reader of it must be able to read them.
pub fn blobs_of(fact: &Fact) -> Vec<ContentHash> {
    let mut found = Vec::new();
    if let Fact::FramesJoined { blob: Some(blob), .. } = fact {
        found.push(blob.hash.clone());
    }
    // The rules know which facts hold data, and say so to code that may change them.
    if let Some(datum) = fact.clone().data_mut() {
        gather(datum, &mut found);
    }
    found
}

fn gather(datum: &Datum, found: &mut Vec<ContentHash>) {
    match &datum.held {
        DatumValue::Value(_) => {}
        DatumValue::Blob(blob) => found.push(blob.hash.clone()),
        DatumValue::Object(fields) => fields.values().for_each(|field| gather(field, found)),
        DatumValue::Array(items) => items.iter().for_each(|item| gather(item, found)),
    }
}

#[derive(Default)]
struct Tally {
    counts: Counts,
    /// Branches and iterations.
    inner: BTreeSet<FrameId>,
    /// Calls that were started and are not over.
    started: BTreeSet<CallId>,
    /// Calls that were sent again with what they wanted.
    resumed: BTreeSet<CallId>,
    /// Frames of agents that speak in commands.
    commanding: BTreeSet<FrameId>,
    /// Frames of agents whose models are being asked.
    asking: BTreeSet<FrameId>,
    /// Frames of agents' calls.
    called: BTreeSet<FrameId>,
    /// Agents' calls.
    calls: BTreeSet<CallId>,
    /// Asks that rules hold.
    held: BTreeSet<AskId>,
    /// Corrections under way.
    correcting: BTreeSet<FrameId>,
    proposed: BTreeMap<AskId, Reply>,
}

impl Tally {
    fn note(&mut self, seen: Seen) {
        *self.counts.entry(seen).or_default() += 1;
    }

    fn event(&mut self, fact: &Fact) {
        for _ in blobs_of(fact) {
            self.note(Seen::BlobNamed);
        }
        self.talk(fact);
        self.heal(fact);
        self.advise(fact);
        match fact {
            // What stands before this happened elsewhere, and is counted there.
            Fact::SessionForked { .. } => self.counts.clear(),
            Fact::BranchesStarted { branches, .. } => {
                self.inner.extend(branches.iter().map(|branch| branch.frame));
            }
            Fact::ItemStarted { child, .. } => {
                self.inner.insert(*child);
            }
            Fact::AnswerGiven { frame, .. } if self.inner.contains(frame) => {
                self.note(Seen::AnswerInside);
            }
            Fact::FrameCancelled { .. } => self.note(Seen::FrameCut),
            Fact::FrameWaits { .. } => self.note(Seen::WriteWaitedFor),
            Fact::CallRequested(request) => {
                for source in request.sources.values().flatten() {
                    self.pointer(&source.path);
                }
            }
            Fact::CallJudged { judgement, .. } => self.judged(judgement),
            Fact::CallStarted { call, .. } => {
                self.started.insert(*call);
                self.resumed.remove(call);
            }
            Fact::CallWants { call, .. } => {
                self.started.remove(call);
                let more = self.resumed.contains(call);
                self.note(if more { Seen::ToolWantedMore } else { Seen::ToolWanted });
            }
            Fact::CallResumed { call, .. } => {
                self.started.insert(*call);
                self.resumed.insert(*call);
                self.note(Seen::CallResumed);
            }
            Fact::CallFinished { call, .. } => {
                self.started.remove(call);
            }
            Fact::CallFailed { call, fault, .. } => {
                let was_started = self.started.remove(call);
                match fault.name.as_str() {
                    "PolicyDenied" if was_started => self.note(Seen::DeniedAtStart),
                    "Panicked" => self.note(Seen::ToolPanicked),
                    Fault::RECOVERY_GAVE_UP => self.note(Seen::GivenUp),
                    Fault::NOT_PERMITTED => self.note(Seen::StarterGone),
                    _ => {}
                }
            }
            Fact::StepFailed { fault, .. } if fault.name == Fault::RECOVERY_GAVE_UP => {
                self.note(Seen::GivenUp);
            }
            Fact::RunClaimed { died: true, .. } => self.note(Seen::DiedOf),
            Fact::RunHeld { .. } => self.note(Seen::RunHeld),
            _ => {}
        }
    }

    /// What policy said of a call.
    fn judged(&mut self, judgement: &Judgement) {
        match judgement {
            Judgement::Admitted { verdict: Verdict::Allow, .. } => {}
            Judgement::Admitted { verdict: Verdict::Ask(_), .. } => self.note(Seen::PolicyAsked),
            Judgement::Admitted { verdict: Verdict::Deny(_), .. } => self.note(Seen::PolicyDenied),
            Judgement::Refused(fault) if fault.name == Fault::NOT_PERMITTED => {
                self.note(Seen::StarterGone);
            }
            Judgement::Refused(_) => {}
        }
    }

    /// What agents did, and what was published.
    fn talk(&mut self, fact: &Fact) {
        match fact {
            Fact::EventPublished { .. } => self.note(Seen::Published),
            Fact::AgentEntered(entry) if entry.commands => {
                self.commanding.insert(entry.frame);
            }
            Fact::TurnStarted(start) => {
                // No one said what became of the attempt before.
                let is_first = self.asking.insert(start.frame);
                if !is_first {
                    self.note(Seen::TurnAgain);
                }
            }
            Fact::TurnFailed { frame, .. } => {
                self.asking.remove(frame);
            }
            Fact::TurnFinished(end) => {
                self.asking.remove(&end.frame);
                self.called.extend(end.calls.iter().filter_map(|made| made.frame));
                self.note(Seen::TurnDone);
            }
            Fact::CallRequested(request) if self.called.contains(&request.frame) => {
                self.calls.insert(request.call);
            }
            Fact::CallStarted { call, grant: Some(_) } if self.calls.contains(call) => {
                self.note(Seen::AgentApproved);
            }
            Fact::AgentAnswered { frame, stopped: None, .. } if self.commanding.remove(frame) => {
                self.note(Seen::CommandDone);
            }
            _ => {}
        }
    }

    /// What rules and corrections did.
    fn heal(&mut self, fact: &Fact) {
        match fact {
            Fact::AskOpened(ask) if ask.held.is_some() => {
                self.held.insert(ask.id);
            }
            Fact::AskDecided { ask, decision } if self.held.remove(ask) => {
                let by_rule = *decision.by == *SUPERVISOR;
                self.note(if by_rule { Seen::RuleActed } else { Seen::RuleBeaten });
            }
            Fact::CorrectionEntered(entry) => {
                self.correcting.insert(entry.child);
            }
            Fact::CorrectionEnded(end) => {
                self.correcting.remove(&end.child);
                let acts = end.found.acts;
                self.note(if acts { Seen::CorrectionActed } else { Seen::CorrectionLeft });
            }
            Fact::FrameCancelled { frame } => {
                self.correcting.remove(frame);
            }
            Fact::RunEnded { .. } => self.correcting.clear(),
            Fact::RunClaimed { .. } if !self.correcting.is_empty() => {
                self.note(Seen::CorrectionClaimed);
            }
            _ => {}
        }
    }

    /// What models proposed, and who acted upon it.
    fn advise(&mut self, fact: &Fact) {
        match fact {
            Fact::AskOpened(ask) => {
                let reply = newest(ask).and_then(|found| found.reply.clone());
                self.proposed.extend(reply.map(|reply| (ask.id, reply)));
            }
            Fact::AskDecided { ask, decision } if *decision.by != *SUPERVISOR => {
                let proposed = self.proposed.remove(ask);
                if proposed.is_some_and(|reply| reply == decision.reply) {
                    self.note(Seen::ProposalTaken);
                }
            }
            Fact::ProposalGiven(end) if end.found.acts => {
                let runs = end.found.plan.is_some();
                self.note(if runs { Seen::DraftRan } else { Seen::ProposalActed });
            }
            _ => {}
        }
    }

    /// The kinds are distinguished by how plans spell them.
    fn pointer(&mut self, path: &str) {
        if path.starts_with("$.history[?(") {
            self.note(Seen::StepReference);
        } else if path.starts_with("$.history[0]") {
            self.note(Seen::EntryByAge);
        } else if path.starts_with("$.history") {
            self.note(Seen::HistoryQuery);
        }
    }
}
