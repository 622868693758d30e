//! Journal usage of a run. `apply` counts it and `next` compares it with the limits, so that nested
//! loops are bounded together.

use super::{FrameState, RunId, Session};
use crate::event::{Event, Fact};
use crate::limits::Limits;
use crate::values::fault::Fault;
use crate::values::ids::FrameId;
use serde::{Deserialize, Serialize};

/// Usage of a run, and the frame that holds it at a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunUsage {
    /// Calls that it requested, repeats included.
    pub calls: u64,
    /// Events that were recorded while it was active; where other runs were too, its own.
    pub events: u64,
    /// About how many bytes of journal and blobs these took.
    pub bytes: u64,
    /// How often a person granted the limits once more.
    pub grants: u32,
    /// The frame that stands for the run while a person decides whether it may use more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<FrameId>,
}

impl RunUsage {
    /// The limit that keeps the run from any further step, if one does.
    pub fn over(&self, limits: &Limits) -> Option<Fault> {
        let events = limits.run_events_max;
        let bytes = limits.run_bytes_max;
        self.reached("run_events_max", events, self.events, "recorded", "events")
            .or_else(|| self.reached("run_bytes_max", bytes, self.bytes, "stored", "bytes"))
    }

    /// The limit that keeps it from a step that makes a call, if it has reached that.
    pub fn over_calls(&self, limits: &Limits) -> Option<Fault> {
        self.reached("run_calls_max", limits.run_calls_max, self.calls, "made", "calls")
    }

    /// The limit of this name, if as much is used: so many of a noun, and what was done to them.
    fn reached(&self, limit: &str, max: u64, used: u64, verb: &str, noun: &str) -> Option<Fault> {
        if used < max.saturating_mul(u64::from(self.grants) + 1) {
            return None;
        }
        let message = format!("the run has {verb} {used} {noun}, as many as it may");
        Some(Fault::new("LimitReached", message).hint(format!(
            "retry grants the same amount again, abort ends the run; `{limit}` in [limits] sets it"
        )))
    }
}

impl Session {
    /// Counts an event that was just applied, for every active run: a session is one journal, and
    /// what the limits protect is that journal. Where several runs are active it counts for the one
    /// that it is about: none is held for what another one uses.
    pub(super) fn meter(&mut self, event: &Event, only: Option<RunId>) {
        if self.runs.is_empty() {
            return;
        }
        let calls = u64::from(matches!(event.fact, Fact::CallRequested(_)));
        let bytes = event.fact.weight();
        // What is about no run in particular changes the only one, and none of several.
        let changes = only.is_some() || !self.key.space.has_many_runs();
        for run in self.runs.values_mut().filter(|run| only.is_none_or(|only| run.id == only)) {
            if changes {
                run.changed_at = event.at;
            }
            let used = &mut run.used;
            used.calls += calls;
            used.events += 1;
            used.bytes = used.bytes.saturating_add(bytes);
        }
    }

    /// A run that reached a limit stands still, and one of its frames asks for it.
    pub(super) fn hold_run(&mut self, run: RunId, frame: FrameId, fault: &Fault) {
        self.with_run(run, |run| run.used.held = Some(frame));
        self.with_frame(frame, |frame| frame.state = FrameState::Faulted(fault.clone()));
        self.set_ready(frame);
    }

    /// A person decided about the frame: if it held its run, the run moves again.
    pub(super) fn release_run(&mut self, frame: FrameId, granted: UsageGrant) {
        let Some(run) = self.frames.get(&frame).map(|frame| frame.run) else { return };
        self.with_run(run, |run| {
            if run.used.held == Some(frame) {
                run.used.held = None;
                run.used.grants += u32::from(granted == UsageGrant::More);
            }
        });
    }
}

/// Whether a run that was held may use as much again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsageGrant {
    /// It may.
    More,
    /// It continues as it is, and is held again at its next step.
    Nothing,
}
