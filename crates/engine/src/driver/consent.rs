//! What happens between the judgement of a call and its start: policy may have changed, and what
//! a person said of it is handed to the gate.

use super::state::Driver;
use crate::gate::consent::{Approval, Consent};
use crate::refusal::Result;
use kernel::ask::{Answerers, Decision};
use kernel::event::Fact;
use kernel::session::CallState;
use kernel::tool::call::Judgement;
use kernel::values::ids::{AskId, CallId};

impl Driver {
    /// Records what was decided. A call that is to start unasked is judged again first where policy
    /// changed since: what is asked about by now is asked.
    pub(super) async fn follow(&mut self, fact: Fact) -> Result<()> {
        if let Some(call) = self.outdated(&fact) {
            self.judged_again = Some(call);
            return self.judge(call).await;
        }
        self.note_consent(&fact);
        self.record(fact).await
    }

    /// The call that this starts, if it was judged by other policies than those of now.
    fn outdated(&self, fact: &Fact) -> Option<CallId> {
        let Fact::CallStarted { call, grant: None } = fact else { return None };
        let CallState::Judged(Judgement::Admitted { policy: Some(judged), .. }) =
            &self.open_call(*call)?.state
        else {
            return None;
        };
        let now = self.shared.gate.policy.version()?;
        // Once: whatever versions say, a call that was judged a moment ago starts.
        (now != *judged && self.judged_again != Some(*call)).then_some(*call)
    }

    /// Keeps what a person said of a call that begins. Its ask is forgotten once that is applied.
    fn note_consent(&mut self, fact: &Fact) {
        let (call, grant) = match fact {
            Fact::CallStarted { call, grant } => (*call, *grant),
            // With other arguments: the approval covers a call of its own.
            Fact::CallRequested(request) if request.grant.is_some() => {
                (request.call, request.grant)
            }
            _ => return,
        };
        let consent = match grant {
            None => Consent::Unasked,
            Some(_) if self.consents.contains_key(&call) => return,
            Some(ask) => self.approval(call, ask, fact).unwrap_or_default(),
        };
        self.consents.insert(call, consent);
    }

    /// The approval that this ask became.
    fn approval(&self, call: CallId, ask: AskId, fact: &Fact) -> Option<Consent> {
        let session = self.session.as_ref()?;
        let of = match fact {
            Fact::CallRequested(request) => session.frames.get(&request.frame)?.run,
            _ => self.open_call(call)?.run,
        };
        let run = session.runs.get(&of)?;
        let open = session.asks.get(&ask);
        let (given, answerers): (&Decision, _) = match (open, &session.last_decided) {
            (Some(open), _) => (open.decision.as_ref()?, open.ask.answerers.as_ref()),
            (None, Some((last, decision))) if *last == ask => (decision, None),
            (None, _) => return None,
        };
        let hands = Answerers {
            involved: run.involved().into_iter().cloned().collect(),
            makers: run.makers().into_iter().cloned().collect(),
            ..Answerers::default()
        };
        Some(Consent::Given(Box::new(Approval {
            given: given.clone(),
            plan: run.plan.clone(),
            answerers: answerers.cloned(),
            hands,
        })))
    }
}
