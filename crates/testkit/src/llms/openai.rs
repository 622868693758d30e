//! The fake of OpenAI's chat completions.

use super::act::Failure;
use super::wire::{
    End, ModelReply, ModelRequest, Piece, Wire, bearer, halves, is_plain, list, tail, text,
    without_latest, words,
};
use crate::http::Message;
use serde_json::{Value, json};

/// The wire of chat completions.
pub(super) struct OpenAi;

const CREATED: u64 = 1_794_729_600;
const ID_CHARS_MAX: usize = 40;
const NAME_CHARS_MAX: usize = 64;

impl Wire for OpenAi {
    fn key<'m>(&self, message: &'m Message) -> Option<&'m str> {
        bearer(message)
    }

    fn read(&self, _message: &Message, body: &Value) -> Result<ModelRequest, String> {
        let messages = list(body, "messages");
        check(messages)?;
        let tools: Vec<String> = list(body, "tools")
            .iter()
            .map(|tool| text(&tool["function"], "name").to_owned())
            .collect();
        if let Some(odd) = tools.iter().find(|name| !is_plain(name, NAME_CHARS_MAX)) {
            return Err(format!("Invalid 'tools[].function.name': '{odd}'."));
        }
        let model = text(body, "model").to_owned();
        if model.starts_with("gpt-6") && !tools.is_empty() && body["reasoning_effort"] != "none" {
            return Err(format!(
                "Function tools with reasoning_effort are not supported for {model} in \
                 /v1/chat/completions. To use function tools, use /v1/responses or set \
                 reasoning_effort to 'none'."
            ));
        }
        let stream = body["stream"] == true;
        if !stream && body.get("stream_options").is_some_and(|options| !options.is_null()) {
            return Err("'stream_options' is only allowed when 'stream' is enabled.".to_owned());
        }
        let results = tail(messages, |message| message["role"] == "tool").iter();
        let results =
            results.map(|message| without_latest(text(message, "content")).to_owned()).collect();
        let usage = body["stream_options"]["include_usage"] == true;
        Ok(ModelRequest { model, stream, usage, tools, form: form(body)?, results })
    }

    fn whole(&self, request: &ModelRequest, reply: &ModelReply) -> Value {
        let unnumbered = |(_, mut call): (String, Value)| {
            if let Some(call) = call.as_object_mut() {
                call.remove("index");
            }
            call
        };
        let calls: Vec<Value> = calls(reply).into_iter().map(unnumbered).collect();
        let mut message = json!({"role": "assistant", "content": null, "refusal": null});
        let field = if reply.end == End::Refused { "refusal" } else { "content" };
        if !reply.text.is_empty() {
            message[field] = json!(reply.text);
        }
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let choice = json!({
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": reason(reply),
        });
        json!({
            "id": "chatcmpl-fake",
            "object": "chat.completion",
            "created": CREATED,
            "model": request.model,
            "choices": [choice],
            "usage": usage(),
            "system_fingerprint": null,
        })
    }

    fn pieces(&self, request: &ModelRequest, reply: &ModelReply) -> Vec<Piece> {
        let mut deltas = vec![json!({"role": "assistant", "content": "", "refusal": null})];
        let field = if reply.end == End::Refused { "refusal" } else { "content" };
        deltas.extend(words(&reply.text).into_iter().map(|word| json!({ field: word })));
        for (arguments, mut call) in calls(reply) {
            call["function"]["arguments"] = json!("");
            deltas.push(json!({"tool_calls": [call]}));
            for half in halves(&arguments) {
                let part = json!({"index": call["index"], "function": {"arguments": half}});
                deltas.push(json!({"tool_calls": [part]}));
            }
        }
        let mut chunks: Vec<Value> =
            deltas.into_iter().map(|delta| chunk(request, delta, Value::Null)).collect();
        chunks.push(chunk(request, json!({}), json!(reason(reply))));
        if request.usage {
            let mut last = chunk(request, json!({}), Value::Null);
            last["choices"] = json!([]);
            last["usage"] = usage();
            chunks.push(last);
        }
        let mut pieces: Vec<Piece> = chunks.iter().map(Piece::of).collect();
        pieces.push(Piece { name: None, data: "[DONE]".to_owned() });
        pieces
    }

    fn failure(&self, failure: &Failure) -> (u16, Value) {
        let (status, message, kind, code) = match failure {
            Failure::RateLimited | Failure::RateLimitedUntil => {
                let message = "Rate limit reached for requests. Please try again.".to_owned();
                (429, message, "requests", Some("rate_limit_exceeded"))
            }
            Failure::Overloaded => {
                (503, "The engine is currently overloaded.".to_owned(), "server_error", None)
            }
            Failure::TooLong => {
                let message = "This model's maximum context length is 128000 tokens.".to_owned();
                (400, message, "invalid_request_error", Some("context_length_exceeded"))
            }
            Failure::NoMoney => {
                let message = "You exceeded your current quota, please check your plan.".to_owned();
                (429, message, "insufficient_quota", Some("insufficient_quota"))
            }
            Failure::NoModel(model) => {
                let message = format!("The model `{model}` does not exist.");
                (404, message, "invalid_request_error", Some("model_not_found"))
            }
            Failure::WrongKey(key) => {
                let message = format!("Incorrect API key provided: {key}.");
                (401, message, "invalid_request_error", Some("invalid_api_key"))
            }
            Failure::Bad(why) => (400, why.clone(), "invalid_request_error", None),
        };
        let error = json!({"message": message, "type": kind, "param": null, "code": code});
        (status, json!({"error": error}))
    }

    fn broken(&self) -> Piece {
        let message = "The server had an error while processing your request.";
        let error = json!({"message": message, "type": "server_error", "code": null});
        Piece::of(&json!({"error": error}))
    }
}

/// Every call is answered before anything else is said.
fn check(messages: &[Value]) -> Result<(), String> {
    if messages.is_empty() {
        return Err("Invalid 'messages': empty array.".to_owned());
    }
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let role = text(message, "role");
        if role == "tool" {
            let id = text(message, "tool_call_id");
            let Some(at) = open.iter().position(|known| *known == id) else {
                return Err(
                    "messages with role 'tool' must be a response to a preceeding message \
                            with 'tool_calls'."
                        .to_owned(),
                );
            };
            open.remove(at);
            continue;
        }
        if !["system", "developer", "user", "assistant"].contains(&role) {
            return Err(format!("Invalid role '{role}'."));
        }
        unanswered(&open)?;
        let calls = list(message, "tool_calls");
        if calls.is_empty() && !message["content"].is_string() && !message["content"].is_array() {
            return Err("Invalid value for 'content': expected a string, got null.".to_owned());
        }
        for call in calls {
            let id = text(call, "id");
            if id.len() > ID_CHARS_MAX || open.contains(&id) {
                return Err(format!("Invalid 'tool_calls[].id': '{id}'."));
            }
            let arguments = text(&call["function"], "arguments");
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
                return Err(format!("Invalid 'tool_calls[].function.arguments': '{arguments}'."));
            }
            open.push(id);
        }
    }
    unanswered(&open)
}

fn unanswered(open: &[&str]) -> Result<(), String> {
    if open.is_empty() {
        return Ok(());
    }
    Err(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    ))
}

/// The schema that is asked for; a strict one has no field that may be missing, and no others.
fn form(body: &Value) -> Result<Option<Value>, String> {
    let asked = &body["response_format"]["json_schema"];
    let schema = &asked["schema"];
    if !schema.is_object() {
        return Ok(None);
    }
    let mut fields = schema["properties"].as_object().into_iter().flatten();
    let required = list(schema, "required");
    let all = fields.all(|(name, _)| required.contains(&json!(name)));
    if asked["strict"] == true && (schema["additionalProperties"] != false || !all) {
        let name = text(asked, "name");
        return Err(format!("Invalid schema for response_format '{name}'."));
    }
    Ok(Some(schema.clone()))
}

/// The calls, with the text of their arguments. The ids are the same in every answer.
fn calls(reply: &ModelReply) -> Vec<(String, Value)> {
    let call = |(index, (tool, arguments)): (usize, &(String, Value))| {
        let arguments = arguments.to_string();
        let function = json!({"name": tool, "arguments": arguments});
        let id = format!("call_fake{index}");
        let call = json!({"index": index, "id": id, "type": "function", "function": function});
        (arguments, call)
    };
    reply.calls.iter().enumerate().map(call).collect()
}

fn reason(reply: &ModelReply) -> &'static str {
    match reply.end {
        End::Length => "length",
        End::Done if !reply.calls.is_empty() => "tool_calls",
        End::Done | End::Refused => "stop",
    }
}

fn chunk(request: &ModelRequest, delta: Value, reason: Value) -> Value {
    let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason});
    json!({
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": request.model,
        "choices": [choice],
        "usage": null,
    })
}

fn usage() -> Value {
    json!({
        "prompt_tokens": 12,
        "completion_tokens": 5,
        "total_tokens": 17,
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    })
}
