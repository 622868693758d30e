//! Calls that require input: a person is asked for one input after the other, in the order of the
//! tool's keys; then the call goes out again with the answers. Inputs that only a program of the
//! caller can give are requested only in the run of a direct call: its caller may give them, or the
//! person who answers in its place.

use super::ask_details::call_details;
use super::fix::asked_call;
use super::steps::title;
use super::{DecideResult, FrameContext};
use crate::ask::{Ask, AskBody, InputSource};
use crate::event::Fact;
use crate::session::{OpenCall, PendingInput};
use crate::tool::call::{InputRequest, InputResponses};
use crate::values::fault::Fault;
use serde_json::{Value, json};
use std::sync::Arc;

/// How a turn of the caller's model is asked for.
const TURN: &str = "a turn of its caller's model";
/// How the caller's folders are asked for.
const FOLDERS: &str = "the folders that its caller works in";
/// How much of a request to a model is shown.
const REQUEST_CHARS_MAX: usize = 4_000;

impl FrameContext<'_> {
    pub(super) fn wanting(&self, open: &OpenCall, wanting: &PendingInput) -> DecideResult {
        let call = open.request.call;
        if let Some(fault) = self.cannot_have(open, wanting) {
            return Ok(Some(Fact::CallFailed { call, how: open.unsent(), fault, said: None }));
        }
        let inputs = &wanting.wants.inputs;
        let missing = inputs.iter().find(|(key, _)| !wanting.given.contains_key(*key));
        let asked = missing.and_then(|(key, want)| Some((key, self.asked(want)?)));
        let Some((key, (message, body))) = asked else {
            // Answers of earlier rounds stay: the tool may look at all of them.
            let mut inputs = open.given.inputs.clone();
            inputs.extend(wanting.given.clone());
            let mut refused = open.given.refused.clone();
            refused.retain(|key, _| !inputs.contains_key(key));
            let given = InputResponses { inputs, refused, state: wanting.wants.state.clone() };
            return Ok(Some(Fact::CallResumed { call, given: Arc::new(given) }));
        };
        let title = title(&format!("`{}` wants: {message}", open.request.tool));
        let wanted = InputSource { call: asked_call(open), key: key.clone() };
        let ask = self.ask(open.request.step.clone(), title, body, wanted.digested());
        let about = vec![call_details(open, None)];
        Ok(Some(Fact::AskOpened(Box::new(Ask { wanted: Some(wanted), about, ..ask }))))
    }

    /// Why the call cannot have what it wants; then no one is asked for the rest of it either.
    fn cannot_have(&self, open: &OpenCall, wanting: &PendingInput) -> Option<Fault> {
        let tool = &open.request.tool;
        let max = self.env.limits.call_wants_max;
        if open.rounds > max {
            let message = format!("`{tool}` wanted something more than {max} times");
            return Some(Fault::new("WantsTooMuch", message).hint("look at the tool"));
        }
        let inputs = wanting.wants.inputs.iter();
        let is_direct = self.session.key.space.is_call();
        let nobodys = |(key, want): &(&String, &InputRequest)| {
            let refused = wanting.given.get(*key).is_some_and(is_refused);
            want.is_for_a_program() && (refused || !is_direct)
        };
        let keys: Vec<&str> = inputs.filter(nobodys).map(|(key, _)| key.as_str()).collect();
        if keys.is_empty() {
            return None;
        }
        let keys = keys.join("`, `");
        let why = if is_direct { "and no one gave it" } else { "which a person cannot give" };
        let message = format!("`{tool}` wants `{keys}` of its caller, {why}");
        let hint = "call it directly, with a client that has it";
        Some(Fault::new("InputWanted", message).hint(hint))
    }

    /// What a person is asked for it, and the words in which: none where only a caller's program
    /// can answer.
    fn asked<'w>(&self, want: &'w InputRequest) -> Option<(&'w str, AskBody)> {
        match want {
            InputRequest::Form { message, schema } => {
                let words = message.clone();
                let schema = schema.clone();
                Some((message.as_str(), AskBody::Fill { message: words, schema }))
            }
            InputRequest::Url { message, url } => {
                let words = message.clone();
                let url = url.clone();
                Some((message.as_str(), AskBody::Authorize { message: words, url }))
            }
            InputRequest::Sample { .. } | InputRequest::Roots
                if !self.session.key.space.is_call() =>
            {
                None
            }
            InputRequest::Sample { request } => {
                let request: String = request.to_string().chars().take(REQUEST_CHARS_MAX).collect();
                let message = format!("{TURN}; it was asked: {request}");
                Some((TURN, AskBody::Fill { message, schema: Arc::new(turn()) }))
            }
            InputRequest::Roots => {
                let message = FOLDERS.to_owned();
                Some((FOLDERS, AskBody::Fill { message, schema: Arc::new(folders()) }))
            }
        }
    }
}

/// Whether it was asked for in vain.
fn is_refused(answer: &Value) -> bool {
    let is_no = matches!(answer["action"].as_str(), Some("decline" | "cancel"));
    is_no && answer.as_object().is_some_and(|answer| answer.len() == 1)
}

/// What a model's turn is, in MCP's shape.
fn turn() -> Value {
    json!({
        "type": "object",
        "properties": {
            "role": {"type": "string"},
            "content": {"type": ["object", "array"]},
            "model": {"type": "string"},
        },
        "required": ["role", "content", "model"],
    })
}

/// What a list of folders is, in MCP's shape.
fn folders() -> Value {
    let folder = json!({
        "type": "object",
        "properties": {"uri": {"type": "string"}, "name": {"type": "string"}},
        "required": ["uri"],
    });
    json!({
        "type": "object",
        "properties": {"roots": {"type": "array", "items": folder}},
        "required": ["roots"],
    })
}
