//! Step kinds without a file of their own: how each starts, and what follows the gate's judgement
//! or a person's answer.

use super::ask_details::call_details;
use super::fix::asked_call;
use super::resolve::Notes;
use super::{DecideResult, FrameContext};
use crate::ask::{Ask, AskBody};
use crate::conversation::published::PublishedEvent;
use crate::definition::plan::{Case, Expr, Step, StepKind, Text, ToolCall};
use crate::event::{CallRequest, Fact, PlanEntry};
use crate::expression::condition::{Condition, same};
use crate::expression::pointer::{Stop, View};
use crate::session::OpenCall;
use crate::tool::call::{Judgement, Verdict};
use crate::values::datum::{Datum, Origin, larger_than};
use crate::values::fault::Fault;
use crate::values::ids::{ContextKey, Millis, PlanId, StepId};
use serde_json::Value;
use std::sync::Arc;

/// How long a title may be in an inbox.
const TITLE_CHARS: usize = 120;

impl FrameContext<'_> {
    /// `tool_call` begins with a request; the gate judges it before anything is sent.
    pub(super) fn tool_call(&self, step: &Step, call: &ToolCall) -> DecideResult {
        let mut notes = Notes::default();
        let arguments = self.view().value(&call.arguments, &mut notes)?.unwrap_or_default();
        Ok(Some(Fact::CallRequested(Box::new(CallRequest {
            call: self.call_id(&step.id, 1),
            frame: self.frame.id,
            step: step.id.clone(),
            try_no: 1,
            tool: call.tool.clone(),
            arguments: Arc::new(arguments),
            sources: notes.sources,
            save_as: call.save_as.clone(),
            next: self.after(&step.id, call.next.as_ref()),
            approve: call.approve,
            grant: None,
            replaces: None,
        }))))
    }

    /// The gate spoke: start, ask for approval, or fail with nothing sent.
    pub(super) fn judged(&self, open: &OpenCall, judgement: &Judgement) -> DecideResult {
        let call = open.request.call;
        let failed = |fault| Fact::CallFailed { call, how: open.unsent(), fault, said: None };
        let (verdict, pins, answerers) = match judgement {
            Judgement::Refused(fault) => return Ok(Some(failed(fault.clone()))),
            Judgement::Admitted { verdict, pins, answerers, .. } => (verdict, pins, answerers),
        };
        let why = match verdict {
            Verdict::Deny(why) => {
                let message = format!("policy refuses `{}`: {why}", open.request.tool);
                return Ok(Some(failed(Fault::new("PolicyDenied", message))));
            }
            Verdict::Ask(why) => Some(why.as_str()),
            Verdict::Allow if open.request.approve => Some("the plan asks for approval"),
            Verdict::Allow => None,
        };
        match (why, open.request.grant) {
            (None, grant) | (Some(_), grant @ Some(_)) => {
                Ok(Some(Fact::CallStarted { call, grant }))
            }
            (Some(why), None) => {
                let title = format!("approve `{}`: {why}", open.request.tool);
                let body = AskBody::Approve { calls: vec![asked_call(open)] };
                let more = pins.spec.as_str().as_bytes().to_vec();
                let ask = self.ask(open.request.step.clone(), title, body, more);
                let answerers = self.narrowed(answerers.iter());
                let about = vec![call_details(open, self.approval_reason(open))];
                Ok(Some(Fact::AskOpened(Box::new(Ask { answerers, about, ..ask }))))
            }
        }
    }

    /// `match` goes where the first equal case says.
    pub(super) fn matching(
        &self,
        step: &Step,
        value: &Expr,
        cases: &[Case],
        default: Option<&StepId>,
    ) -> DecideResult {
        let view = self.view();
        let value = view.value(value, &mut Notes::default())?;
        let mut next = default;
        for case in cases {
            let wanted = view.value(&case.equals, &mut Notes::default())?;
            if let (Some(value), Some(wanted)) = (&value, &wanted)
                && same(value, wanted)
            {
                next = case.next.as_ref();
                break;
            }
        }
        Ok(Some(self.chosen(step, next)))
    }

    /// `conditional_branch` goes one of two ways.
    pub(super) fn conditional(
        &self,
        step: &Step,
        condition: &Condition<Expr>,
        on_true: Option<&StepId>,
        on_false: Option<&StepId>,
    ) -> DecideResult {
        let view = self.view();
        let left = view.value(&condition.left, &mut Notes::default())?;
        let right = match &condition.right {
            Some(right) => view.value(right, &mut Notes::default())?,
            None => None,
        };
        let holds = condition.operator.holds(left.as_ref(), right.as_ref(), view.budget());
        let holds = holds.map_err(Stop::Fault)?;
        Ok(Some(self.chosen(step, if holds { on_true } else { on_false })))
    }

    fn chosen(&self, step: &Step, next: Option<&StepId>) -> Fact {
        Fact::StepChosen {
            frame: self.frame.id,
            step: step.id.clone(),
            next: self.after(&step.id, next),
        }
    }

    /// `publish_event` calls no one: the journal holds the event, and the outbox finds it there.
    pub(super) fn publish(&self, step: &Step, event: &Expr, next: Option<&StepId>) -> DecideResult {
        let event = self.view().required_opened(event, "event")?;
        self.check_event(&event).map_err(Stop::Fault)?;
        // A plan that says nothing of it publishes as the one that it works for.
        let source = self.plan.event_source.as_ref().or(self.closure.main.event_source.as_ref());
        Ok(Some(Fact::EventPublished {
            frame: self.frame.id,
            step: step.id.clone(),
            published: PublishedEvent { source: source.cloned(), event: Arc::new(event) },
            next: self.after(&step.id, next),
        }))
    }

    fn check_event(&self, event: &Value) -> Result<(), Fault> {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        if !event.is_object() || kind.is_empty() {
            let message = "what is published must be an object whose `type` is a text";
            let hint = "mend what `event` points to, then retry";
            return Err(Fault::new("InvalidEvent", message).hint(hint));
        }
        // It stays in the journal, so that it goes out only once it is durable, and then for sure.
        let max = self.env.limits.event_bytes_max;
        if !larger_than(event, max) {
            return Ok(());
        }
        let bytes = event.to_string().len();
        if bytes > max {
            let message = format!("the event has {bytes} bytes, more than {max}");
            return Err(Fault::new("EventTooLarge", message).hint("publish less"));
        }
        Ok(())
    }

    /// `human_in_the_loop` asks: a form when it has a schema, else a question.
    pub(super) fn human(
        &self,
        step: &Step,
        message: &Text,
        schema: Option<&Arc<Value>>,
    ) -> DecideResult {
        let message = match self.view().text(message)? {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let title = title(&message);
        let body = match schema {
            Some(schema) => AskBody::Fill { message, schema: schema.clone() },
            None => AskBody::Clarify { message, questions: Vec::new() },
        };
        let ask = self.ask(step.id.clone(), title, body, Vec::new());
        Ok(Some(Fact::AskOpened(Box::new(ask))))
    }

    /// Until when an ask of this step waits. A failed step waits for as long as it takes.
    pub(super) fn expires_at(&self, step: &StepId, body: &AskBody) -> Option<Millis> {
        let expires_ms = match (&self.plan.step(step)?.kind, body) {
            (
                StepKind::Human { expires_ms, .. },
                AskBody::Clarify { .. } | AskBody::Fill { .. },
            ) => *expires_ms,
            (
                StepKind::ToolCall(call),
                AskBody::Approve { .. } | AskBody::Fill { .. } | AskBody::Authorize { .. },
            ) => call.expires_ms,
            (
                StepKind::Agent { expires_ms, .. },
                AskBody::Clarify { .. }
                | AskBody::Approve { .. }
                | AskBody::Fill { .. }
                | AskBody::Authorize { .. },
            ) => *expires_ms,
            _ => None,
        };
        Some(self.env.now.plus_ms(expires_ms?))
    }

    /// A person's answer becomes input.
    pub(super) fn given(&self, ask: &Ask, step: Option<&Step>, value: &Value) -> DecideResult {
        let next = match step.map(|step| &step.kind) {
            Some(StepKind::Human { next, .. }) => next.as_ref(),
            _ => None,
        };
        Ok(Some(Fact::InputGiven {
            frame: self.frame.id,
            step: ask.step.clone(),
            value: Arc::new(Datum::inline(value.clone(), Origin::Reply(ask.id))),
            next: self.after(&ask.step, next),
        }))
    }

    /// `plan` enters another plan, with a context of its own.
    pub(super) fn sub_plan(
        &self,
        step: &Step,
        plan: &PlanId,
        arguments: &Expr,
        save_as: &ContextKey,
        next: Option<&StepId>,
    ) -> DecideResult {
        let Some(entered) = self.closure.plans.get(plan) else {
            let message = format!("plan `{plan}` is not pinned by this run");
            return Err(Stop::Fault(Fault::new("PlanError", message)));
        };
        let depth = self.session.plan_depth(self.frame.id) as usize + 1;
        let max = self.env.limits.plan_depth_max;
        if depth > max {
            let message = format!("plans call plans {depth} deep, more than {max}");
            return Ok(Some(self.fixed_limit(message)));
        }
        if let Some(limit) = self.too_many_frames(1) {
            return Ok(Some(limit));
        }
        let input = self.view().value(arguments, &mut Notes::default())?.unwrap_or_default();
        Ok(Some(Fact::PlanEntered(Box::new(PlanEntry {
            frame: self.frame.id,
            step: step.id.clone(),
            child: self.new_frame_id(0),
            plan: plan.clone(),
            input: Arc::new(Datum::inline(input, Origin::Plan)),
            start: entered.start.clone(),
            save_as: save_as.clone(),
            next: self.after(&step.id, next),
        }))))
    }
}

/// What an inbox shows of a text.
pub(super) fn title(text: &str) -> String {
    text.chars().take(TITLE_CHARS).collect()
}
