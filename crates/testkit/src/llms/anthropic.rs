//! The fake of Anthropic's Messages API.

use super::act::Failure;
use super::names::name_of;
use super::wire::{
    End, ModelReply, ModelRequest, Piece, Wire, bearer, before_latest, halves, is_plain, list,
    tail, text, words,
};
use crate::http::Message;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The wire of messages.
pub(super) struct Anthropic;

const VERSIONS: &[&str] = &["2023-06-01", NEW_VERSION];
const NEW_VERSION: &str = "2026-10-21";
const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";
const THOUGHT: &str = "Let me see.";
const SIGNATURE: &str = "c2lnbmVkIGJ5IHRoZSBmYWtl";
const ID_CHARS_MAX: usize = 64;

impl Wire for Anthropic {
    fn key<'m>(&self, message: &'m Message) -> Option<&'m str> {
        message.header("x-api-key").or_else(|| bearer(message))
    }

    fn read(&self, message: &Message, body: &Value) -> Result<ModelRequest, String> {
        let version = message.header("anthropic-version").unwrap_or_default();
        if !VERSIONS.contains(&version) {
            return Err(format!("anthropic-version: `{version}` is not a valid version"));
        }
        if version == NEW_VERSION && body.get("temperature").is_some() {
            return Err("temperature: Extra inputs are not permitted".to_owned());
        }
        if !body["max_tokens"].is_u64() {
            return Err("max_tokens: Field required".to_owned());
        }
        let betas = message.header("anthropic-beta").unwrap_or_default();
        if !body["thinking"]["block_binding"].is_null() && !betas.contains(BINDING_BETA) {
            return Err(
                "thinking.adaptive.block_binding: Extra inputs are not permitted".to_owned()
            );
        }
        let model = text(body, "model").to_owned();
        let forced = ["any", "tool"].contains(&text(&body["tool_choice"], "type"));
        if forced && model.contains("-5") {
            return Err("tool_choice forces tool use, which this model does not support".to_owned());
        }
        let messages = list(body, "messages");
        check(messages)?;
        if name_of(&model) == "thinks" {
            check_thoughts(messages)?;
        }
        let tools = list(body, "tools").iter().map(|tool| text(tool, "name").to_owned()).collect();
        let blocks = messages.last().map(|message| list(message, "content")).unwrap_or_default();
        let results = tail(before_latest(blocks), |block| block["type"] == "tool_result");
        let format = &body["output_config"]["format"];
        Ok(ModelRequest {
            model,
            stream: body["stream"] == true,
            usage: true,
            tools,
            form: format.get("schema").cloned(),
            results: results.iter().map(result_text).collect(),
        })
    }

    fn whole(&self, request: &ModelRequest, reply: &ModelReply) -> Value {
        let mut message = message(request, json!(blocks(reply)));
        message["stop_reason"] = json!(reason(reply));
        message["stop_details"] = details(reply);
        message["usage"]["output_tokens"] = json!(5);
        message
    }

    fn pieces(&self, request: &ModelRequest, reply: &ModelReply) -> Vec<Piece> {
        let mut events = vec![
            json!({"type": "message_start", "message": message(request, json!([]))}),
            json!({"type": "ping"}),
        ];
        for (index, block) in blocks(reply).iter().enumerate() {
            let (empty, deltas) = parts(block);
            events.push(json!({
                "type": "content_block_start",
                "index": index,
                "content_block": empty,
            }));
            events.extend(deltas.into_iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        let delta = json!({
            "stop_reason": reason(reply),
            "stop_sequence": null,
            "stop_details": details(reply),
        });
        let usage = json!({"output_tokens": 5});
        events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
        events.push(json!({"type": "message_stop"}));
        events.iter().map(named).collect()
    }

    fn failure(&self, failure: &Failure) -> (u16, Value) {
        let (status, kind, message) = match failure {
            Failure::RateLimited | Failure::RateLimitedUntil => {
                let message = "This request would exceed your organization's rate limit.";
                (429, "rate_limit_error", message.to_owned())
            }
            Failure::Overloaded => (529, "overloaded_error", "Overloaded".to_owned()),
            Failure::TooLong => {
                let message = "prompt is too long: 1200000 tokens > 1000000 maximum";
                (400, "invalid_request_error", message.to_owned())
            }
            Failure::NoMoney => {
                let message = "Your credit balance is too low to access the Anthropic API.";
                (400, "invalid_request_error", message.to_owned())
            }
            Failure::NoModel(model) => (404, "not_found_error", format!("model: {model}")),
            Failure::WrongKey(key) => (401, "authentication_error", format!("invalid key: {key}")),
            Failure::Bad(why) => (400, "invalid_request_error", why.clone()),
        };
        let error = json!({"type": kind, "message": message});
        (status, json!({"type": "error", "error": error, "request_id": "req_fake"}))
    }

    fn broken(&self) -> Piece {
        let error = json!({"type": "overloaded_error", "message": "Overloaded"});
        named(&json!({"type": "error", "error": error}))
    }
}

/// Roles, texts, and a result for each call in the message after it.
fn check(messages: &[Value]) -> Result<(), String> {
    if messages.first().is_none_or(|first| first["role"] != "user") {
        return Err("messages: first message must use the \"user\" role".to_owned());
    }
    if messages.last().is_some_and(|last| last["role"] == "assistant") {
        return Err(
            "This model does not support assistant message prefill. The conversation must \
                    end with a user message."
                .to_owned(),
        );
    }
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages.{index}");
        let blocks = list(message, "content");
        if blocks.is_empty() && text(message, "content").trim().is_empty() {
            return Err(format!("{at}: content must be non-empty"));
        }
        let answered: Vec<&str> = blocks.iter().map(|block| text(block, "tool_use_id")).collect();
        if let Some(id) = open.iter().find(|id| !answered.contains(id)) {
            return Err(format!(
                "{at}: `tool_use` ids were found without `tool_result` blocks immediately after: \
                 {id}. Each `tool_use` block must have a corresponding `tool_result` block in the \
                 next message."
            ));
        }
        let asked = std::mem::take(&mut open);
        let mut others = false;
        for block in blocks {
            match text(block, "type") {
                "text" if text(block, "text").trim().is_empty() => {
                    return Err(format!("{at}: text content blocks must be non-empty"));
                }
                "tool_use" => {
                    let id = text(block, "id");
                    if !is_plain(id, ID_CHARS_MAX) || !block["input"].is_object() {
                        return Err(format!("{at}: `tool_use` `{id}` is not valid"));
                    }
                    if !seen.insert(id) {
                        return Err(format!("{at}: `tool_use` ids must be unique"));
                    }
                    open.push(id);
                }
                "tool_result" if others || !asked.contains(&text(block, "tool_use_id")) => {
                    return Err(format!("{at}: unexpected `tool_use_id` found in `tool_result`"));
                }
                "tool_result" => {}
                "thinking" if text(block, "signature") != SIGNATURE => {
                    return Err(format!("{at}: Invalid `signature` in `thinking` block"));
                }
                _ => others = true,
            }
        }
    }
    Ok(())
}

/// What the model thought before it called comes back with the call.
fn check_thoughts(messages: &[Value]) -> Result<(), String> {
    for message in messages {
        let has = |kind: &str| list(message, "content").iter().any(|block| block["type"] == kind);
        if has("tool_use") && !has("thinking") {
            return Err(
                "Expected `thinking` or `redacted_thinking`, but found `tool_use`".to_owned()
            );
        }
    }
    Ok(())
}

fn result_text(block: &Value) -> String {
    match &block["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| text(part, "text")).collect(),
        _ => String::new(),
    }
}

fn message(request: &ModelRequest, content: Value) -> Value {
    let usage = json!({
        "input_tokens": 6,
        "cache_creation_input_tokens": 2,
        "cache_read_input_tokens": 4,
        "output_tokens": 1,
    });
    json!({
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage,
    })
}

/// The blocks of an answer. The ids are the same in every answer.
fn blocks(reply: &ModelReply) -> Vec<Value> {
    let mut blocks = Vec::new();
    if reply.thinks {
        blocks.push(json!({"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE}));
    }
    if reply.end != End::Refused && !reply.text.is_empty() {
        blocks.push(json!({"type": "text", "text": reply.text}));
    }
    blocks.extend(reply.calls.iter().enumerate().map(|(index, (tool, input))| {
        let id = format!("toolu_fake{index}");
        json!({"type": "tool_use", "id": id, "name": tool, "input": input})
    }));
    blocks
}

/// A block as it begins, and what then comes of it.
fn parts(block: &Value) -> (Value, Vec<Value>) {
    let mut empty = block.clone();
    let deltas: Vec<Value> = match text(block, "type") {
        "text" => {
            empty["text"] = json!("");
            let words = words(text(block, "text"));
            words.into_iter().map(|word| json!({"type": "text_delta", "text": word})).collect()
        }
        "thinking" => {
            empty["thinking"] = json!("");
            empty["signature"] = json!("");
            vec![
                json!({"type": "thinking_delta", "thinking": text(block, "thinking")}),
                json!({"type": "signature_delta", "signature": text(block, "signature")}),
            ]
        }
        _ => {
            empty["input"] = json!({});
            let input = block["input"].to_string();
            let half = |half: &str| json!({"type": "input_json_delta", "partial_json": half});
            halves(&input).map(half).to_vec()
        }
    };
    (empty, deltas)
}

fn reason(reply: &ModelReply) -> &'static str {
    match reply.end {
        End::Refused => "refusal",
        End::Length => "max_tokens",
        End::Done if !reply.calls.is_empty() => "tool_use",
        End::Done => "end_turn",
    }
}

fn details(reply: &ModelReply) -> Value {
    match reply.end {
        End::Refused => json!({"type": "refusal", "category": null, "explanation": reply.text}),
        End::Done | End::Length => Value::Null,
    }
}

fn named(event: &Value) -> Piece {
    Piece { name: Some(text(event, "type").to_owned()), data: event.to_string() }
}
