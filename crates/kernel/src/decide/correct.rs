//! Corrections: a plan that runs below a failed step and finds a remedy. Its answer is a reply; if
//! it fails, the step goes to the next rule or to a person. A correction is never corrected itself.

use super::{DecideResult, FrameContext};
use crate::ask::correction::{CorrectionRights, found};
use crate::ask::remedy::{Remedy, RemedyAttempt, RemedyResult};
use crate::ask::{Ask, AskBody};
use crate::event::{CorrectionEnd, CorrectionEntry, Fact};
use crate::expression::pointer::Stop;
use crate::session::{CallState, Frame, FrameState, OpenAsk, OpenCall};
use crate::tool::call::Reach;
use crate::values::datum::{Datum, Origin};
use crate::values::fault::Fault;
use crate::values::ids::{PlanId, StepId};
use serde_json::{Value, json};
use std::sync::Arc;

impl<'e> FrameContext<'e> {
    /// The correction that this frame works for, if it does.
    pub(super) fn correction(&self) -> Option<&'e Frame> {
        let mut at = Some(self.frame);
        while let Some(frame) = at.filter(|frame| frame.corrects.is_none()) {
            at = frame.parent.and_then(|parent| self.session.frames.get(&parent));
        }
        at
    }

    /// Whether this frame's step may be corrected, as far as the limits go.
    pub(super) fn may_correct(&self) -> bool {
        self.correction().is_none()
            && self.too_many_frames(1).is_none()
            && self.corrections_used_up().is_none()
    }

    /// The limit that lets this frame's step have no more corrections, if it has had that many.
    pub(super) fn corrections_used_up(&self) -> Option<Fault> {
        let corrections = |tried: &&RemedyAttempt| {
            let acts = tried.found.as_ref().is_some_and(|found| found.acts);
            matches!(tried.does, Remedy::Correct(_))
                || (matches!(tried.does, Remedy::Draft(_)) && acts)
        };
        let of_step: u32 = self.frame.tried.iter().filter(corrections).map(|one| one.times).sum();
        let limits = self.env.limits;
        let of_run = self.run.corrections;
        let (limit, max, who) = if of_step >= limits.step_corrections_max {
            ("step_corrections_max", limits.step_corrections_max, "one step")
        } else if of_run >= limits.run_corrections_max {
            ("run_corrections_max", limits.run_corrections_max, "one run")
        } else {
            return None;
        };
        let message = format!("{who} gets at most {max} corrections (`{limit}`), and had them");
        Some(Fault::new("LimitReached", message).hint(format!("raise `{limit}` in [limits]")))
    }

    /// Begins a correction of this frame's step.
    pub(super) fn correct(&self, ask: &Ask, plan: &PlanId) -> DecideResult {
        let drafted = self.draft(plan).cloned();
        let pinned = self.closure.plans.get(plan).map(|plan| plan.start.clone());
        let first = drafted.as_deref().and_then(first_step).map(StepId::from);
        let Some(start) = first.or(pinned) else {
            let message = format!("plan `{plan}` is not pinned by this run");
            return Err(Stop::Fault(Fault::new("PlanError", message)));
        };
        if let Some(limit) = self.too_many_frames(1) {
            return Ok(Some(limit));
        }
        Ok(Some(Fact::CorrectionEntered(Box::new(CorrectionEntry {
            frame: self.frame.id,
            step: ask.step.clone(),
            child: self.new_frame_id(0),
            plan: plan.clone(),
            input: Arc::new(Datum::inline(self.failure(ask), Origin::Plan)),
            start,
            ask: ask.id,
            ends_at: self.env.now.plus_ms(self.env.limits.correction_ms_max),
            drafted,
        }))))
    }

    /// What a correction is given of the failure.
    fn failure(&self, ask: &Ask) -> Value {
        let AskBody::Fix { fault, call, how, .. } = &ask.body else { return Value::Null };
        let retries = self.frame.tried.iter().filter(|tried| tried.does == Remedy::Retry);
        let tries = 1 + retries.map(|tried| tried.times).sum::<u32>();
        json!({
            "planId": self.frame.plan,
            "stepId": ask.step,
            "tool": call.as_ref().map(|call| &call.tool),
            "error": fault,
            "how": how,
            "arguments": call.as_ref().map(|call| &call.arguments),
            "tries": tries,
        })
    }

    /// A correction that answered: what that means for the failed step.
    pub(super) fn corrected(&self, failed: &Frame, answer: &Datum) -> Fact {
        let ask = match failed.state {
            FrameState::Correcting { ask, .. } => self.session.asks.get(&ask),
            _ => None,
        };
        let call = self.session.calls.values().find(|call| call.request.frame == failed.id);
        // What the gate refused is not known to read.
        let pins = call.and_then(|call| call.pins.as_ref());
        let only_reads = pins.is_some_and(|pins| pins.reach == Reach::Reads);
        // Other arguments are another call: no key tells that the first one may have happened.
        let may_be_done = call.is_some_and(OpenCall::is_unknown);
        let leeway = CorrectionRights {
            repeat: !call.is_some_and(OpenCall::must_be_known),
            edit: only_reads || !may_be_done,
        };
        let found = match ask {
            Some(OpenAsk { ask, .. }) => found(ask, &answer.to_value(), leeway),
            None => RemedyResult::nothing(Fault::new("CorrectionMisfit", "no one asked for it")),
        };
        // What a model wrote and ran unasked never says what became of a write.
        let reads = ask.is_some_and(|open| self.session.asks_about_read(open.ask.id));
        let may_act = reads || !self.is_unseen(failed);
        self.end_correction(failed, RemedyResult { acts: found.acts && may_act, ..found })
    }

    /// Whether a model wrote this correction and it ran unasked: then its answer is a model's, and
    /// the outcome of a write is a person's to say.
    fn is_unseen(&self, failed: &Frame) -> bool {
        let mut found = failed.tried.iter().filter_map(|tried| tried.found.as_deref());
        found.any(|found| found.acts && found.runs(&self.frame.plan))
    }

    /// A correction that is failing: what its own frame has under way ends first. A write of
    /// unknown outcome in it is a person's, whatever becomes of the correction.
    pub(super) fn correction_failing(&self, failed: &Frame, fault: &Fault) -> DecideResult {
        let call = self.session.calls.values().find(|call| call.request.frame == self.frame.id);
        let known = !call.is_some_and(OpenCall::must_be_known);
        let waits = || (!self.frame.waits).then(|| Fact::FrameWaits { frame: self.frame.id });
        match (&self.frame.state, call.map(|call| &call.state)) {
            (FrameState::Calling(_), Some(CallState::Failed(how, why))) if !known => {
                return self.stuck(why, *how, call).map(Some);
            }
            (FrameState::Calling(_), Some(_)) if !known => return Ok(waits()),
            (FrameState::Asking(ask), _) => match self.session.asks.get(ask) {
                Some(open) if open.is_open() && known => {
                    return Ok(Some(Fact::AskWithdrawn { ask: *ask }));
                }
                Some(open) if open.is_open() => return Ok(waits()),
                Some(open) if !known => return self.replied(open),
                _ => {}
            },
            _ => {}
        }
        Ok(Some(self.end_correction(failed, RemedyResult::nothing(fault.clone()))))
    }

    /// The run fails, or the correction that this frame works for.
    pub(super) fn fail(&self, fault: Fault) -> Fact {
        let Some(correction) = self.correction() else { return self.close_failed(fault) };
        let failed = correction.parent.and_then(|parent| self.session.frames.get(&parent));
        match failed {
            Some(failed) if correction.id == self.frame.id => {
                self.end_correction(failed, RemedyResult::nothing(fault))
            }
            _ => Fact::ItemFailing { frame: correction.id, fault },
        }
    }

    fn end_correction(&self, failed: &Frame, found: RemedyResult) -> Fact {
        let correction = self.correction().map_or(self.frame.id, |frame| frame.id);
        Fact::CorrectionEnded(Box::new(CorrectionEnd {
            frame: failed.id,
            child: correction,
            found,
        }))
    }
}

/// The step that a plan begins with, which is read as JSON.
fn first_step(source: &Value) -> Option<&str> {
    let first = &source["steps"][0]["id"];
    source["startStepId"].as_str().or(first.as_str())
}
