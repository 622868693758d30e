//! What a person said of a call, held against what policy says when the call is sent. Between the
//! two can lie hours: a run is paused, or an agent's other calls wait for their approvals.

use super::{Gate, OutgoingCall};
use crate::gate::rights::facts;
use kernel::ask;
use kernel::contracts::policy::{Context, Decision, Request, Resource};
use kernel::tool::call::{Caller, ToolError, Verdict};
use kernel::values::caller::{Act, Answerers};
use kernel::values::ids::PlanId;

/// Fault of a call that policy asks about by now, and that no one was asked about.
const APPROVAL_NEEDED: &str = "ApprovalNeeded";
/// Fault of a call whose approval does not count any more.
const APPROVAL_VOID: &str = "ApprovalVoid";
/// The kind of the ask that approvals are replies to.
const APPROVE: &str = "approve";

/// Whether someone was asked about a call.
#[derive(Debug, Clone, Default)]
pub(crate) enum Consent {
    /// It was sent before: what was asked is not asked again.
    #[default]
    Settled,
    /// No one was: policy allowed it.
    Unasked,
    /// A person approved it.
    Given(Box<Approval>),
}

/// An approval that is about to be used.
#[derive(Debug, Clone)]
pub(crate) struct Approval {
    /// The reply that it is.
    pub(crate) given: ask::Decision,
    /// The plan of the run.
    pub(crate) plan: PlanId,
    /// To whom a policy narrowed the ask.
    pub(crate) answerers: Option<Answerers>,
    /// Everyone involved in the run, and the makers of their keys.
    pub(crate) hands: Answerers,
}

impl Gate {
    /// Refuses a call that policy asks about at this moment and nobody approved, or whose approval
    /// was given by one who could not give it now.
    pub(super) fn heed_consent(
        &self,
        call: &OutgoingCall,
        decision: &Decision,
    ) -> Result<(), ToolError> {
        match (&call.consent, &decision.verdict) {
            (Consent::Unasked, Verdict::Ask(why)) => {
                let message = format!("policy wants `{}` approved by now: {why}", call.tool);
                let hint = "nothing was sent: a retry asks for the approval";
                Err(ToolError::not_sent(APPROVAL_NEEDED, message).hint(hint).passing())
            }
            (Consent::Given(approval), _) if !self.counts(call, approval, decision) => {
                let tool = &call.tool;
                let by = &approval.given.by;
                let message = format!(
                    "the approval of `{tool}` is void: `{by}`, who gave it, may not give it now"
                );
                let hint = "nothing was sent: a retry asks for another approval";
                Err(ToolError::not_sent(APPROVAL_VOID, message).hint(hint).passing())
            }
            (Consent::Settled | Consent::Unasked | Consent::Given(_), _) => Ok(()),
        }
    }

    /// Whether its giver could give an approval now, under what policy wanted of answerers then and
    /// wants now.
    fn counts(&self, call: &OutgoingCall, approval: &Approval, decision: &Decision) -> bool {
        let caller = &call.caller;
        let ask::Decision { by, actor, makers, .. } = &approval.given;
        let giver = Caller::new(caller.realm.clone(), by.clone());
        let act = Act::Answer;
        let context = Context::default();
        if self.is_free(&giver, act) {
            return true;
        }
        let Some(key) = &call.context.session else { return false };
        let session = facts(key, Some(&approval.plan)).owned_by(Some(&*caller.subject));
        let resource = Resource::Ask { kind: APPROVE, session };
        let now = decision.answerers();
        let now = now.map(|Answerers { lists, other, .. }| Answerers {
            lists,
            other,
            ..approval.hands.clone()
        });
        let mut narrowed = approval.answerers.iter().chain(&now);
        let is_allowed = self.decide(&Request { act, subject: &giver, resource, context }).allows();
        let actor = actor.clone();
        let makers = makers.iter().cloned().collect();
        let giver = Caller { actor, makers, ..giver };
        is_allowed && narrowed.all(|narrowed| self.fits(&giver, narrowed))
    }
}
