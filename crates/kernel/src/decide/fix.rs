//! Failed steps: the `Fix` ask, and what each reply to it does.

use super::ask_details::call_details;
use super::supervise::{FailedStep, RuleChoice};
use super::{DecideResult, FrameContext};
use crate::ask::{Answerers, Ask, AskBody, AskedCall, CallDecision, FixAction, Reply, digest};
use crate::definition::plan::{Step, StepKind};
use crate::event::{Fact, StepAgain};
use crate::expression::pointer::Stop;
use crate::planted::{Switch, is_on};
use crate::session::{CallState, Frame, FrameKind, OpenAsk, OpenCall};
use crate::tool::call::CallProgress;
use crate::values::datum::{Datum, Origin};
use crate::values::fault::Fault;
use crate::values::ids::{AskId, CallId, ContextKey, StepId};
use serde_json::Value;
use std::sync::Arc;

impl FrameContext<'_> {
    /// A failed step: a rule holds it, its loop collects it, the run fails, or a person is asked. A
    /// write of unknown outcome is never collected, nor is what neither plans nor rules may decide:
    /// a limit of the run, a recovery that failed, a starter who lost its rights. To a plan that
    /// reports what became of its call, an unknown outcome is like any other.
    pub(super) fn stuck(
        &self,
        fault: &Fault,
        how: CallProgress,
        call: Option<&OpenCall>,
    ) -> Result<Fact, Stop> {
        let unknown = how == CallProgress::Unknown
            && call.is_some_and(|call| !call.repeatable())
            && !self.plan.reports_calls;
        let beyond_plans = [Fault::RECOVERY_GAVE_UP, Fault::NOT_PERMITTED];
        let over_limit = self.run.held_frame() == Some(self.frame.id);
        let beyond_rules = over_limit || beyond_plans.contains(&fault.name.as_str());
        let failed = FailedStep { fault, how, call };
        let (ruled, plans) = match beyond_rules {
            true => (RuleChoice::Asks, Vec::new()),
            false => (self.ruled(&failed), self.corrections(&failed)),
        };
        let held = match ruled {
            RuleChoice::Held(held) => Some(held),
            RuleChoice::Fails | RuleChoice::Asks if unknown || beyond_rules => None,
            ruled => match (self.collecting_item(), ruled) {
                (Some(item), _) => return Ok(self.collected(item, fault.clone())),
                (None, RuleChoice::Fails) => return Ok(self.fail(fault.clone())),
                // A correction asks no one about its own failures.
                (None, _) if self.correction().is_some() => return Ok(self.fail(fault.clone())),
                (None, _) => None,
            },
        };
        let mut actions = match call {
            Some(_) => vec![
                FixAction::Retry,
                FixAction::Edit,
                FixAction::Skip,
                FixAction::Abort,
                FixAction::Settle,
            ],
            None => vec![FixAction::Retry, FixAction::Skip, FixAction::Abort],
        };
        actions.extend((!plans.is_empty()).then_some(FixAction::Correct));
        let step = self.frame.step.clone().unwrap_or_else(|| StepId::from(""));
        let title = match call.map(|call| &call.request.tool) {
            None if over_limit => format!("the run reached a limit at step `{step}`"),
            Some(tool) if how == CallProgress::Unknown => {
                format!("outcome unknown: `{tool}` at step `{step}`")
            }
            Some(tool) => format!("`{tool}` failed at step `{step}`"),
            None => format!("step `{step}` failed"),
        };
        let known = call.map(|call| call_details(call, None)).into_iter().collect();
        let call = call.map(asked_call);
        let body = AskBody::Fix { fault: fault.clone(), call, how, actions, plans };
        let ask = self.ask(step, title, body, Vec::new());
        let mut tried = self.frame.tried.clone();
        if held.is_none() && !beyond_rules {
            tried.extend(self.kept_from_acting(&failed));
        }
        Ok(Fact::AskOpened(Box::new(Ask { held, tried, about: known, ..ask })))
    }

    /// The failure becomes a result of its loop.
    fn collected(&self, item: &Frame, fault: Fault) -> Fact {
        let frame = item.id;
        if frame == self.frame.id {
            Fact::ItemFailed { frame, fault }
        } else {
            Fact::ItemFailing { frame, fault }
        }
    }

    /// A new ask of this frame. Its id is a hash of where it stands and of what was asked before,
    /// so that a replay gives the same one.
    pub(super) fn ask(&self, step: StepId, title: String, body: AskBody, more: Vec<u8>) -> Ask {
        let session = self.session;
        let run = self.run;
        let digest =
            digest(&session.key.realm, session.id, run.id, &step, &body, &more, run.subject());
        let seq = self.session.seq.to_be_bytes();
        Ask {
            id: AskId::of(&[&self.id_seed(), &seq, body.kind().as_bytes()]),
            run: self.run.id,
            frame: self.frame.id,
            expires_at: self.expires_at(&step, &body),
            next: self.next_steps(&step, &body),
            step,
            title,
            body,
            digest,
            created_at: self.env.now,
            wanted: None,
            answerers: None,
            subject: self.run.acts_for().cloned(),
            held: None,
            tried: Vec::new(),
            about: Vec::new(),
        }
    }

    /// Who may approve calls of which policy said this: one who is in every list. Where it must be
    /// another person, everyone who had a hand in the run is noted.
    pub(super) fn narrowed<'s>(
        &self,
        said: impl Iterator<Item = &'s Answerers>,
    ) -> Option<Answerers> {
        let mut all = Answerers::default();
        for Answerers { lists, other, .. } in said {
            all.other |= *other;
            for list in lists {
                if !all.lists.contains(list) {
                    all.lists.push(list.clone());
                }
            }
        }
        if all.other {
            all.involved = self.run.involved().into_iter().cloned().collect();
            all.makers = self.run.makers().into_iter().cloned().collect();
        }
        (all != Answerers::default()).then_some(all)
    }

    /// Acts upon a reply.
    pub(super) fn replied(&self, open: &OpenAsk) -> DecideResult {
        let step = self.plan.step(&open.ask.step);
        let call = self.session.calls.values().find(|call| call.request.frame == self.frame.id);
        let own = matches!(open.ask.body, AskBody::Clarify { .. } | AskBody::Approve { .. });
        if self.frame.agent.is_some() && own {
            return self.agent_replied(open);
        }
        let Some(decision) = &open.decision else {
            let words = "nobody answered in time".to_owned();
            return Ok(Some(self.refused(&open.ask, step, words)));
        };
        match &decision.reply {
            Reply::Clarify { answer: Some(value) } | Reply::Fill { content: Some(value) } => {
                self.given(&open.ask, step, value)
            }
            Reply::Clarify { answer: None } | Reply::Fill { content: None } => {
                let words = format!("`{}` declined to answer", decision.by);
                Ok(Some(self.refused(&open.ask, step, words)))
            }
            Reply::Approve { decisions } => self.approved(open, step, call, decisions),
            Reply::Authorize { .. } => Ok(None),
            Reply::Fix { plan_id: Some(plan), .. } => self.correct(&open.ask, plan),
            Reply::Fix { action: FixAction::Propose, .. } => self.propose(open),
            Reply::Fix { action, arguments, output, plan_id: None } => {
                let fixing = OpenFix { open, step, call };
                self.fixed(&fixing, *action, arguments.as_ref(), output.as_ref())
            }
        }
    }

    fn approved(
        &self,
        open: &OpenAsk,
        step: Option<&Step>,
        call: Option<&OpenCall>,
        decisions: &[CallDecision],
    ) -> DecideResult {
        let (Some(call), Some(decision)) = (call, decisions.first()) else { return Ok(None) };
        if !decision.approve {
            let by = open.decision.as_ref().map_or("someone", |decision| &decision.by);
            let words = match &decision.feedback {
                Some(feedback) => feedback.clone(),
                None => format!("`{by}` did not approve the call"),
            };
            return Ok(Some(self.refused(&open.ask, step, words)));
        }
        let grant = Some(open.ask.id);
        Ok(Some(match &decision.arguments {
            // The person approved other arguments than were asked: a call of its own, covered by
            // this very approval.
            Some(arguments) => self.again(call, Some(arguments.clone()), grant),
            None => Fact::CallStarted { call: call.request.call, grant },
        }))
    }

    /// A person said no: where the plan says, else the run fails with the person's words.
    fn refused(&self, ask: &Ask, step: Option<&Step>, words: String) -> Fact {
        let approval = matches!(ask.body, AskBody::Approve { .. });
        let target = match step.map(|step| &step.kind) {
            Some(StepKind::ToolCall(call)) if approval => call.on_rejected.as_ref(),
            Some(StepKind::Human { on_declined, .. }) => on_declined.as_ref(),
            _ => None,
        };
        match target {
            Some(next) => Fact::StepDiverted {
                frame: self.frame.id,
                step: ask.step.clone(),
                next: next.clone(),
            },
            None => {
                let name = if approval { "Rejected" } else { "Declined" };
                self.fail(Fault::new(name, words))
            }
        }
    }

    fn fixed(
        &self,
        fixing: &OpenFix<'_>,
        action: FixAction,
        arguments: Option<&Arc<Value>>,
        output: Option<&Value>,
    ) -> DecideResult {
        let ask = &fixing.open.ask;
        let frame = self.frame.id;
        Ok(Some(match (action, fixing.call) {
            (FixAction::Retry, Some(call)) => self.again(call, None, None),
            // A correction names a plan, and a proposal is asked for: neither comes here.
            (FixAction::Correct | FixAction::Propose, _) => return Ok(None),
            (FixAction::Retry | FixAction::Edit, None) => {
                Fact::StepRetried(StepAgain { frame, step: ask.step.clone() })
            }
            (FixAction::Edit, Some(call)) => self.again(call, arguments.cloned(), None),
            (FixAction::Skip, Some(_)) if self.is_agents_call() => {
                return Ok(self.skip_call(output));
            }
            (FixAction::Skip, _) | (FixAction::Settle, None) => {
                let value = output.cloned().unwrap_or(Value::Null);
                let datum = Arc::new(Datum::inline(value, Origin::Reply(ask.id)));
                let (key, next) = fixing.step.map_or((None, None), where_to);
                Fact::StepSkipped {
                    frame,
                    step: ask.step.clone(),
                    save: key.map(|key| (key, datum)),
                    next: self.after(&ask.step, next.as_ref()),
                }
            }
            (FixAction::Settle, Some(call)) => {
                let value = output.cloned().unwrap_or(Value::Null);
                Fact::CallFinished {
                    call: call.request.call,
                    output: Arc::new(Datum::inline(value, Origin::Reply(ask.id))),
                    settled: Some(ask.id),
                    published: Vec::new(),
                }
            }
            (FixAction::Abort, _) => {
                let fault = match &ask.body {
                    AskBody::Fix { fault, .. } => fault.clone(),
                    _ => Fault::new("Aborted", "a person ended the run"),
                };
                self.close_failed(fault)
            }
        }))
    }

    /// The same call once more: under the same id after an unknown outcome, so that the other side
    /// can tell; under a new one after a known failure or with other arguments.
    pub(super) fn again(
        &self,
        call: &OpenCall,
        arguments: Option<Arc<Value>>,
        grant: Option<AskId>,
    ) -> Fact {
        let mut request = call.request.clone();
        let unknown = matches!(call.state, CallState::Failed(CallProgress::Unknown, _));
        let same = unknown && arguments.is_none();
        request.replaces = Some(call.request.call);
        // An approval is good for one start: a retry asks again where one is needed.
        if !is_on(Switch::ApprovalUsedTwice) {
            request.grant = grant;
        }
        if !same {
            request.try_no += 1;
            request.call = self.call_id(&request.step, request.try_no);
        }
        if let Some(arguments) = arguments {
            // What was not changed still comes from where it came.
            let before = &call.request.arguments;
            let after = &arguments;
            request.sources.retain(|place, _| before.pointer(place) == after.pointer(place));
            request.arguments = arguments;
        }
        Fact::CallRequested(Box::new(request))
    }

    fn is_agents_call(&self) -> bool {
        matches!(self.frame.kind, FrameKind::Call { .. })
    }

    /// hash(session, run, frame path, ordinal, step, try).
    pub(super) fn call_id(&self, step: &StepId, try_no: u32) -> CallId {
        CallId::of(&[&self.id_seed(), step.as_str().as_bytes(), &try_no.to_be_bytes()])
    }
}

struct OpenFix<'a> {
    open: &'a OpenAsk,
    step: Option<&'a Step>,
    call: Option<&'a OpenCall>,
}

/// A call as an ask shows it.
pub(super) fn asked_call(call: &OpenCall) -> AskedCall {
    AskedCall {
        call_id: call.request.call,
        tool: call.request.tool.clone(),
        arguments: call.request.arguments.clone(),
    }
}

/// Under which key a skipped step's output goes, and where it leads.
fn where_to(step: &Step) -> (Option<ContextKey>, Option<StepId>) {
    match &step.kind {
        StepKind::ToolCall(call) => (Some(call.save_as.clone()), call.next.clone()),
        StepKind::Plan { save_as, next, .. } | StepKind::Agent { save_as, next, .. } => {
            (Some(save_as.clone()), next.clone())
        }
        StepKind::Loop(looping) => (Some(step.id.as_str().into()), looping.next.clone()),
        StepKind::Parallel { next, .. } => (Some(step.id.as_str().into()), next.clone()),
        StepKind::Human { next, .. } => (Some("human_input".into()), next.clone()),
        StepKind::Match { default, .. } => (None, default.clone()),
        StepKind::Conditional { on_false, .. } => (None, on_false.clone()),
        StepKind::Publish { next, .. } => (None, next.clone()),
        StepKind::Final { .. } => (None, None),
    }
}
