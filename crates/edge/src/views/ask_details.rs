//! What an ask says of the calls that it is about, and of what follows its answers.

use engine::PinnedDefinitions;
use kernel::ask::context::{ApprovalReason, CallDetails, NextStep, NextSteps};
use kernel::ask::{AskedCall, Question};
use kernel::values::ids::CallId;
use serde_json::Value;
use std::sync::Arc;
use wire::rest;

/// A call, before more is known of it.
pub(super) fn call(call: AskedCall) -> rest::AskedCall {
    rest::AskedCall {
        call_id: call.call_id.to_string(),
        tool: call.tool.as_str().to_owned(),
        arguments: unshared(call.arguments),
        title: None,
        reach: None,
        idempotent: None,
        input_schema: None,
        why: None,
    }
}

/// A question of an agent.
pub(super) fn question(asked: Question) -> rest::AskedQuestion {
    rest::AskedQuestion {
        call_id: asked.call_id.to_string(),
        question: asked.question,
        context: asked.context,
    }
}

/// Adds to the calls of an ask what they pin, and who wants them to be asked about.
pub(super) fn add_pins(calls: &mut [rest::AskedCall], about: Vec<CallDetails>) {
    for CallDetails { call_id, pins, why } in about {
        let Some(call) = named(calls, call_id) else { continue };
        call.reach = pins.as_ref().map(|pins| pins.reach.name().to_owned());
        call.idempotent = pins.map(|pins| pins.idempotent);
        call.why = why.map(self::why);
    }
}

/// Adds what the tools said of themselves when the calls pinned them, as far as that is known.
pub fn add_specs(calls: &mut [rest::AskedCall], about: &[CallDetails], pinned: &PinnedDefinitions) {
    for CallDetails { call_id, pins, .. } in about {
        let spec = pins.as_ref().and_then(|pins| pinned.spec(&pins.spec));
        if let (Some(spec), Some(call)) = (spec, named(calls, *call_id)) {
            call.title = Some(spec.title.clone()).filter(|title| !title.is_empty());
            call.input_schema = Some((*spec.input_schema).clone());
        }
    }
}

fn named(calls: &mut [rest::AskedCall], id: CallId) -> Option<&mut rest::AskedCall> {
    let id = id.to_string();
    calls.iter_mut().find(|call| call.call_id == id)
}

fn why(why: ApprovalReason) -> rest::AskWhy {
    let (by, says) = match why {
        ApprovalReason::Plan => ("plan", None),
        ApprovalReason::Agent => ("agent", None),
        ApprovalReason::Policy(text) => ("policy", Some(text)),
    };
    rest::AskWhy { by: by.to_owned(), says }
}

/// What follows each answer, where something is known of that.
pub(super) fn next(next: NextSteps) -> Option<rest::AskNext> {
    let is_known = !next.is_empty();
    let NextSteps { yes, no } = next;
    is_known.then(|| rest::AskNext { yes: yes.map(follows), no: no.map(follows) })
}

fn follows(follows: NextStep) -> rest::AskFollows {
    match follows {
        NextStep::Step(step) => {
            rest::AskFollows { step: Some(step.as_str().to_owned()), ends: false }
        }
        NextStep::Ends => rest::AskFollows { step: None, ends: true },
    }
}

pub(super) fn unshared(value: Arc<Value>) -> Value {
    Arc::unwrap_or_clone(value)
}
