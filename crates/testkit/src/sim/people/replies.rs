//! Replies of people: a yes, or anything, also invalid ones.

use crate::sim::programs::reference::{form_of, words_of};
use crate::sim::rng::Rng;
use kernel::ask::proposal::newest;
use kernel::ask::{Ask, AskBody, CallDecision, FixAction, Reply};
use kernel::tool::call::CallProgress;
use serde_json::json;
use std::sync::Arc;

/// The reply of someone who always says yes.
pub fn yes_to(ask: &Ask) -> Reply {
    let step = ask.step.as_str();
    match &ask.body {
        AskBody::Clarify { .. } => Reply::Clarify { answer: Some(words_of(step)) },
        AskBody::Fill { .. } => Reply::Fill { content: Some(form_of(step)) },
        AskBody::Authorize { .. } => Reply::Authorize { done: true },
        AskBody::Approve { calls } => {
            let approve = |call: &kernel::ask::AskedCall| CallDecision {
                call_id: call.call_id,
                approve: true,
                feedback: None,
                arguments: None,
            };
            Reply::Approve { decisions: calls.iter().map(approve).collect() }
        }
        AskBody::Fix { .. } => fix(FixAction::Retry),
    }
}

fn fix(action: FixAction) -> Reply {
    let output = (action == FixAction::Settle).then(|| json!(7));
    Reply::Fix { action, arguments: None, output, plan_id: None }
}

/// What a model proposes in an ask, taken as it is.
fn proposed(ask: &Ask) -> Option<Reply> {
    let reply = newest(ask)?.reply.as_ref()?;
    let takes = [FixAction::Edit, FixAction::Correct];
    match reply {
        Reply::Fix { action, .. } if takes.contains(action) => Some(reply.clone()),
        _ => None,
    }
}

/// The reply of someone who may say anything, also what does not fit.
pub fn reply_to(ask: &Ask, rng: &mut Rng) -> Reply {
    if rng.chance(5) {
        // Of the wrong kind for every ask but a tool's page.
        return Reply::Authorize { done: true };
    }
    if let Some(proposed) = proposed(ask).filter(|_| rng.chance(50)) {
        return proposed;
    }
    let yes = yes_to(ask);
    match (&ask.body, yes) {
        (AskBody::Clarify { .. }, _) if rng.chance(8) => Reply::Clarify { answer: None },
        (AskBody::Fill { .. }, _) if rng.chance(8) => Reply::Fill { content: None },
        (AskBody::Fill { .. }, _) if rng.chance(8) => {
            Reply::Fill { content: Some(json!({"wrong": 1})) }
        }
        (AskBody::Authorize { .. }, _) if rng.chance(8) => Reply::Authorize { done: false },
        (AskBody::Approve { .. }, Reply::Approve { mut decisions }) => {
            for decision in &mut decisions {
                decision.approve = !rng.chance(8);
                if decision.approve && rng.chance(8) {
                    decision.arguments = Some(Arc::new(json!({"step": "edited"})));
                }
            }
            Reply::Approve { decisions }
        }
        (AskBody::Fix { how, call, .. }, yes) => {
            let choice = rng.below(100);
            match (how, call, choice) {
                (_, Some(_), 0..15) | (CallProgress::Unknown, Some(_), 15..45) => {
                    fix(FixAction::Settle)
                }
                (_, _, 45..55) => fix(FixAction::Skip),
                (_, _, 55..62) => fix(FixAction::Abort),
                (_, Some(_), 62..70) => Reply::Fix {
                    action: FixAction::Edit,
                    arguments: Some(Arc::new(json!({"step": "edited"}))),
                    output: None,
                    plan_id: None,
                },
                _ => yes,
            }
        }
        (_, yes) => yes,
    }
}
