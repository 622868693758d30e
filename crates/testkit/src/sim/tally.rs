//! What a journal went through of what is easily missed, and which blobs it names.

use super::coverage::{Counts, Seen};
use kernel::call::{Judgement, Verdict};
use kernel::datum::{Datum, Held};
use kernel::event::{Event, Fact};
use kernel::ids::{CallId, ContentHash, FrameId};
use std::collections::BTreeSet;

/// Counts what is easily missed in one session.
pub fn tally(events: &[Event]) -> Counts {
    let mut tally = Tally::default();
    events.iter().for_each(|event| tally.event(&event.fact));
    tally.counts
}

/// The blobs that a fact names: whoever can read it must be able to read them.
pub fn blobs_of(fact: &Fact) -> Vec<ContentHash> {
    let mut found = Vec::new();
    if let Fact::FramesJoined { blob: Some(blob), .. } = fact {
        found.push(blob.hash.clone());
    }
    // The rules know which facts hold data, and say so to whoever may change them.
    if let Some(datum) = fact.clone().data_mut() {
        gather(datum, &mut found);
    }
    found
}

fn gather(datum: &Datum, found: &mut Vec<ContentHash>) {
    match &datum.held {
        Held::Value(_) => {}
        Held::Blob(blob) => found.push(blob.hash.clone()),
        Held::Object(fields) => fields.values().for_each(|field| gather(field, found)),
        Held::Array(items) => items.iter().for_each(|item| gather(item, found)),
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
}

impl Tally {
    fn note(&mut self, seen: Seen) {
        *self.counts.entry(seen).or_default() += 1;
    }

    fn event(&mut self, fact: &Fact) {
        for _ in blobs_of(fact) {
            self.note(Seen::BlobNamed);
        }
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
            Fact::CallJudged { judgement: Judgement::Admitted { verdict, .. }, .. } => {
                match verdict {
                    Verdict::Allow => {}
                    Verdict::Ask(_) => self.note(Seen::PolicyAsked),
                    Verdict::Deny(_) => self.note(Seen::PolicyDenied),
                }
            }
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
                if was_started && fault.name == "PolicyDenied" {
                    self.note(Seen::DeniedAtStart);
                }
            }
            _ => {}
        }
    }

    /// The kinds are told apart by how plans spell them.
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
