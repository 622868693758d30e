//! Proposals: a model is asked for other arguments of a failed call, or for a plan that corrects a
//! failed step. Its answer is a reply only where that cannot change anything; otherwise a person
//! must accept it.

use super::supervise::FailedStep;
use super::{DecideResult, FrameContext};
use crate::ask::Ask;
use crate::event::{Fact, ProposalEnd, ProposalStart};
use crate::session::OpenAsk;
use crate::values::fault::Fault;
use crate::values::ids::{AskId, PlanId};
use serde_json::Value;
use std::sync::Arc;

impl FrameContext<'_> {
    /// Whether a model may be asked for other arguments: of a call that did not happen, which is no
    /// part of a correction.
    pub(super) fn may_propose(&self, failed: &FailedStep<'_>) -> bool {
        failed.call.is_some() && failed.may_change() && self.may_ask_model()
    }

    /// Whether a model may be asked for a plan that corrects this frame's step.
    pub(super) fn may_draft(&self) -> bool {
        self.may_correct() && self.may_ask_model()
    }

    fn may_ask_model(&self) -> bool {
        self.correction().is_none() && self.proposals_used_up().is_none()
    }

    /// The limit that lets this run ask no model any more, if it asked that often.
    pub(super) fn proposals_used_up(&self) -> Option<Fault> {
        let max = self.env.limits.run_proposals_max;
        if self.run.proposals < max {
            return None;
        }
        let message = format!(
            "one run asks models at most {max} times about failed steps (`run_proposals_max`), and \
             did so"
        );
        Some(Fault::new("LimitReached", message).hint("raise `run_proposals_max` in [limits]"))
    }

    /// Asks the model of the rule that holds this ask.
    pub(super) fn propose(&self, open: &OpenAsk) -> DecideResult {
        self.ask_model(&open.ask, 1)
    }

    /// The process that asked is gone: the model is asked again, within its attempts.
    pub(super) fn propose_again(&self, ask: AskId, attempt: u32) -> DecideResult {
        let Some(open) = self.session.asks.get(&ask) else { return Ok(None) };
        let max = self.env.limits.turn_attempts_max;
        if attempt < max {
            return self.ask_model(&open.ask, attempt + 1);
        }
        let message = format!("a model was asked {max} times in vain what to do");
        let hint = "raise `turn_attempts_max` in [limits], or look at what ends the process";
        let fault = Fault::new("LimitReached", message).hint(hint);
        let end = ProposalEnd::nothing(self.frame.id, attempt, fault);
        Ok(Some(Fact::ProposalGiven(Box::new(end))))
    }

    fn ask_model(&self, ask: &Ask, attempt: u32) -> DecideResult {
        let Some(held) = &ask.held else { return Ok(None) };
        Ok(Some(Fact::ProposalAsked(Box::new(ProposalStart {
            frame: self.frame.id,
            step: ask.step.clone(),
            ask: ask.id,
            does: held.does.clone(),
            attempt,
        }))))
    }

    /// The corrections of this frame's step that models wrote.
    pub(super) fn drafts(&self) -> Vec<PlanId> {
        let written = self.frame.tried.iter().filter_map(|tried| tried.found.as_deref());
        let ids = written.filter_map(|found| found.plan.as_ref()?["planId"].as_str());
        let may = self.may_correct();
        ids.filter(|_| may).map(PlanId::from).collect()
    }

    /// The correction of this id, as JSON, where a model wrote it for this frame's step.
    pub(super) fn draft(&self, id: &PlanId) -> Option<&Arc<Value>> {
        let mut written = self.frame.tried.iter().filter_map(|tried| tried.found.as_deref());
        written.find(|found| found.runs(id)).and_then(|found| found.plan.as_ref())
    }
}
