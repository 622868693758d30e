//! What a reply must be: checked before it is recorded, so that a bad one leaves its ask open.

use crate::ask::{Ask, AskBody, CallDecision, FixAction, Reply};
use crate::call::HowFar;
use crate::schema::{Misfit, Schemas};
use serde_json::{Value, json};
use std::sync::Arc;

/// Why a reply does not fit its ask.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadReply {
    /// A reply of another kind.
    #[error("this ask is a `{asked}`; a `{given}` reply does not fit it")]
    OtherKind {
        /// What was asked.
        asked: &'static str,
        /// What came.
        given: &'static str,
    },
    /// The calls are not exactly the ones that were asked.
    #[error("{0}")]
    Calls(String),
    /// The content does not fit the schema.
    #[error("the answer does not fit its schema")]
    Misfits(Vec<Misfit>),
    /// The action is not offered, or lacks what it needs.
    #[error("{0}")]
    Action(String),
}

impl Reply {
    /// The kind's name in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Reply::Clarify { .. } => "clarify",
            Reply::Approve { .. } => "approve",
            Reply::Fill { .. } => "fill",
            Reply::Authorize { .. } => "authorize",
            Reply::Fix { .. } => "fix",
        }
    }
}

/// Whether the reply fits the ask. Edited arguments are the gate's to check.
pub fn check(ask: &Ask, reply: &Reply, schemas: &dyn Schemas) -> Result<(), BadReply> {
    match (&ask.body, reply) {
        (AskBody::Clarify { .. }, Reply::Clarify { .. })
        | (AskBody::Authorize { .. }, Reply::Authorize { .. })
        | (AskBody::Fill { .. }, Reply::Fill { content: None }) => Ok(()),
        (AskBody::Fill { schema, .. }, Reply::Fill { content: Some(content) }) => {
            schemas.check(schema, content).map_err(BadReply::Misfits)
        }
        (AskBody::Approve { calls }, Reply::Approve { decisions }) => {
            let asked: Vec<_> = calls.iter().map(|call| call.call_id).collect();
            check_calls(&asked, decisions)
        }
        (AskBody::Fix { actions, .. }, Reply::Fix { action, arguments, output }) => {
            check_action(actions, *action, arguments.is_some(), output.is_some())
        }
        (asked, reply) => Err(BadReply::OtherKind { asked: asked.kind(), given: reply.kind() }),
    }
}

fn check_calls(asked: &[crate::ids::CallId], decisions: &[CallDecision]) -> Result<(), BadReply> {
    for (index, decision) in decisions.iter().enumerate() {
        let id = decision.call_id;
        if !asked.contains(&id) {
            return Err(BadReply::Calls(format!("call `{id}` is not part of this ask")));
        }
        if decisions[..index].iter().any(|other| other.call_id == id) {
            return Err(BadReply::Calls(format!("call `{id}` is decided twice")));
        }
        if !decision.approve && decision.arguments.is_some() {
            return Err(BadReply::Calls(format!("call `{id}` is rejected and edited")));
        }
    }
    match asked.iter().find(|id| !decisions.iter().any(|decision| decision.call_id == **id)) {
        Some(missing) => Err(BadReply::Calls(format!("call `{missing}` is not decided"))),
        None => Ok(()),
    }
}

fn check_action(
    actions: &[FixAction],
    action: FixAction,
    has_arguments: bool,
    has_output: bool,
) -> Result<(), BadReply> {
    if !actions.contains(&action) {
        let offered = json!(actions);
        return Err(BadReply::Action(format!("{} is not one of {offered}", json!(action))));
    }
    let fits = match action {
        FixAction::Edit => has_arguments && !has_output,
        FixAction::Settle => has_output && !has_arguments,
        FixAction::Skip => !has_arguments,
        FixAction::Retry | FixAction::Abort => !has_arguments && !has_output,
    };
    if fits {
        return Ok(());
    }
    let needs = match action {
        FixAction::Edit => "needs `arguments` and nothing else",
        FixAction::Settle => "needs `output` and nothing else",
        FixAction::Skip => "takes `output` only",
        FixAction::Retry | FixAction::Abort => "takes neither `arguments` nor `output`",
    };
    Err(BadReply::Action(format!("{} {needs}", json!(action))))
}

/// A reply in the short form of `/sessions/{id}/resume` and of a plan's examples.
pub fn short_form(ask: &Ask, input: Option<&Value>) -> Result<Reply, BadReply> {
    match &ask.body {
        AskBody::Clarify { .. } => {
            Ok(Reply::Clarify { answer: Some(input.cloned().ok_or_else(|| missing("an answer"))?) })
        }
        AskBody::Fill { .. } => Ok(Reply::Fill {
            content: Some(input.cloned().ok_or_else(|| missing("the form's content"))?),
        }),
        AskBody::Authorize { .. } => Ok(Reply::Authorize { done: true }),
        AskBody::Approve { calls } => {
            let input = input.ok_or_else(|| missing("{approve: true|false}"))?;
            let approve = input["approve"].as_bool().ok_or_else(|| {
                BadReply::Action("an approval needs {approve: true|false}".to_owned())
            })?;
            let feedback = input["feedback"].as_str().map(str::to_owned);
            let decide = |call: &crate::ask::AskedCall| CallDecision {
                call_id: call.call_id,
                approve,
                feedback: feedback.clone(),
                arguments: None,
            };
            Ok(Reply::Approve { decisions: calls.iter().map(decide).collect() })
        }
        AskBody::Fix { how, actions, .. } => fix_form(*how, actions, input),
    }
}

fn missing(what: &str) -> BadReply {
    BadReply::Action(format!("`input` is missing: this ask wants {what}"))
}

fn fix_form(how: HowFar, actions: &[FixAction], input: Option<&Value>) -> Result<Reply, BadReply> {
    let empty = input.is_none_or(|input| input.as_object().is_some_and(serde_json::Map::is_empty));
    if empty {
        // An empty body means retry, except where that might do a write twice.
        if how == HowFar::Unknown {
            let offered = json!(actions);
            return Err(BadReply::Action(format!(
                "nobody knows whether the call happened: choose an action of {offered}"
            )));
        }
        return Ok(Reply::Fix { action: FixAction::Retry, arguments: None, output: None });
    }
    let input = input.cloned().unwrap_or_default();
    let action = serde_json::from_value::<FixAction>(input["action"].clone())
        .map_err(|_| BadReply::Action(format!("`action` must be one of {}", json!(actions))))?;
    let member = |name: &str| input.get(name).cloned();
    Ok(Reply::Fix {
        action,
        arguments: member("arguments").map(Arc::new),
        output: member("output"),
    })
}
