//! The fake of Gemini's `generateContent` API.

use super::act::Failure;
use super::wire::{
    End, ModelReply, ModelRequest, Piece, Wire, before_latest, list, tail, text, words,
};
use crate::http::Message;
use serde_json::{Value, json};

/// The wire of contents.
pub(super) struct Gemini;

const WHOLE: &str = ":generateContent";
const STREAM: &str = ":streamGenerateContent";
const SIGNATURE: &str = "c2lnbmVkIGJ5IHRoZSBmYWtl";
/// A caller may say so of a call that no model of this kind made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

impl Wire for Gemini {
    fn key<'m>(&self, message: &'m Message) -> Option<&'m str> {
        message.header("x-goog-api-key")
    }

    fn read(&self, message: &Message, body: &Value) -> Result<ModelRequest, String> {
        let target = message.first_line.split(' ').nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let place = path.split_once("/models/").map(|(_, place)| place).unwrap_or_default();
        let streamed = place.strip_suffix(STREAM);
        let Some(model) = streamed.or(place.strip_suffix(WHOLE)) else {
            return Err(format!("no method at `{path}`"));
        };
        if streamed.is_some() && !query.contains("alt=sse") {
            return Err("this fake streams events only: `alt=sse`".to_owned());
        }
        let contents = list(body, "contents");
        check(model, contents)?;
        let declared = list(body, "tools").iter().flat_map(|t| list(t, "functionDeclarations"));
        let tools = declared.map(|declared| text(declared, "name").to_owned()).collect();
        let generation = &body["generationConfig"];
        let mut forms = ["responseJsonSchema", "responseSchema"].iter();
        let form = forms.find_map(|name| generation.get(name)).cloned();
        if form.is_some() && generation["responseMimeType"] != "application/json" {
            return Err("response schema needs responseMimeType application/json".to_owned());
        }
        let parts = contents.last().map(|content| list(content, "parts")).unwrap_or_default();
        let results = tail(before_latest(parts), |part| part.get("functionResponse").is_some());
        Ok(ModelRequest {
            model: model.to_owned(),
            stream: streamed.is_some(),
            usage: true,
            tools,
            form,
            results: results.iter().map(result_text).collect(),
        })
    }

    fn whole(&self, request: &ModelRequest, reply: &ModelReply) -> Value {
        let mut parts = Vec::new();
        if !spoken(reply).is_empty() {
            parts.push(json!({"text": reply.text}));
        }
        parts.extend(calls(reply));
        content(request, parts, Some(reply))
    }

    fn pieces(&self, request: &ModelRequest, reply: &ModelReply) -> Vec<Piece> {
        let mut chunks: Vec<Value> = words(spoken(reply))
            .into_iter()
            .map(|word| content(request, vec![json!({"text": word})], None))
            .collect();
        chunks.extend(calls(reply).into_iter().map(|call| content(request, vec![call], None)));
        chunks.push(content(request, vec![json!({"text": ""})], Some(reply)));
        chunks.iter().map(Piece::of).collect()
    }

    fn failure(&self, failure: &Failure) -> (u16, Value) {
        let quota = |id: &str| {
            let types = "type.googleapis.com/google.rpc";
            let violations = json!([{"quotaId": id}]);
            json!([
                {"@type": format!("{types}.QuotaFailure"), "violations": violations},
                {"@type": format!("{types}.RetryInfo"), "retryDelay": "11s"},
            ])
        };
        let exceeded = "You exceeded your current quota, please check your plan and billing.";
        let (code, status, message, details) = match failure {
            Failure::RateLimited | Failure::RateLimitedUntil => {
                let details = quota("GenerateRequestsPerMinutePerProjectPerModel");
                (429, "RESOURCE_EXHAUSTED", exceeded.to_owned(), details)
            }
            Failure::Overloaded => {
                (503, "UNAVAILABLE", "The model is overloaded.".to_owned(), json!([]))
            }
            Failure::TooLong => {
                let message = "The input token count exceeds the maximum number of tokens allowed.";
                (400, "INVALID_ARGUMENT", message.to_owned(), json!([]))
            }
            Failure::NoMoney => {
                let details = quota("GenerateRequestsPerDayPerProjectPerModel");
                (429, "RESOURCE_EXHAUSTED", exceeded.to_owned(), details)
            }
            Failure::NoModel(model) => {
                let message = format!("models/{model} is not found for API version v1beta.");
                (404, "NOT_FOUND", message, json!([]))
            }
            Failure::WrongKey(key) => {
                let kind = "type.googleapis.com/google.rpc.ErrorInfo";
                let details = json!([{"@type": kind, "reason": "API_KEY_INVALID"}]);
                (400, "INVALID_ARGUMENT", format!("API key not valid: {key}."), details)
            }
            Failure::Bad(why) => (400, "INVALID_ARGUMENT", why.clone(), json!([])),
        };
        (code, json!({"error": error(code, status, &message, details)}))
    }

    fn broken(&self) -> Piece {
        let error = error(503, "UNAVAILABLE", "The model is overloaded.", json!([]));
        Piece::of(&json!({"error": error}))
    }
}

fn error(code: u16, status: &str, message: &str, details: Value) -> Value {
    json!({"code": code, "message": message, "status": status, "details": details})
}

/// Roles that alternate, as many results as calls, and signatures in the turn that continues.
fn check(model: &str, contents: &[Value]) -> Result<(), String> {
    if contents.is_empty() {
        return Err("contents is not specified".to_owned());
    }
    let mut open: Vec<&str> = Vec::new();
    for (index, content) in contents.iter().enumerate() {
        let role = if index % 2 == 0 { "user" } else { "model" };
        let said = content.get("role").and_then(Value::as_str).unwrap_or("user");
        if said != role {
            return Err("Please ensure that multiturn requests alternate between user and model."
                .to_owned());
        }
        let parts = list(content, "parts");
        if parts.is_empty() {
            return Err("contents.parts must not be empty.".to_owned());
        }
        let named = |field: &'static str| {
            parts.iter().filter_map(move |part| part.get(field)).map(|call| text(call, "name"))
        };
        let answered: Vec<&str> = named("functionResponse").collect();
        if answered != open {
            return Err(
                "Please ensure that the number of function response parts is equal to the \
                        number of function call parts of the function call turn."
                    .to_owned(),
            );
        }
        open = named("functionCall").collect();
    }
    if !open.is_empty() {
        return Err("Please ensure that function call turns are followed by responses.".to_owned());
    }
    check_signatures(model, contents)
}

fn check_signatures(model: &str, contents: &[Value]) -> Result<(), String> {
    if !model.starts_with("gemini-3") && !model.starts_with("gemini-4") {
        return Ok(());
    }
    let asks = |content: &Value| {
        let has_text = list(content, "parts").iter().any(|part| part.get("text").is_some());
        content["role"] != "model" && has_text
    };
    let turn = contents.iter().rposition(asks).unwrap_or(0);
    for content in &contents[turn..] {
        let mut parts = list(content, "parts").iter();
        let Some(first) = parts.find(|part| part.get("functionCall").is_some()) else {
            continue;
        };
        let signature = text(first, "thoughtSignature");
        if signature.is_empty() {
            return Err(
                "Function call is missing a thought_signature in functionCall parts.".to_owned()
            );
        }
        if signature != SIGNATURE && signature != NO_SIGNATURE {
            return Err("Corrupted thought signature.".to_owned());
        }
    }
    Ok(())
}

fn result_text(part: &Value) -> String {
    let response = part["functionResponse"]["response"].as_object().into_iter().flatten();
    let texts = response.map(|(_, value)| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// What it says; where it refuses, nothing.
fn spoken(reply: &ModelReply) -> &str {
    if reply.end == End::Refused { "" } else { &reply.text }
}

/// The calls; the first of them is signed.
fn calls(reply: &ModelReply) -> Vec<Value> {
    let call = |(index, (tool, args)): (usize, &(String, Value))| {
        let id = format!("fake{index}");
        let mut part = json!({"functionCall": {"id": id, "name": tool, "args": args}});
        if index == 0 {
            part["thoughtSignature"] = json!(SIGNATURE);
        }
        part
    };
    reply.calls.iter().enumerate().map(call).collect()
}

/// One answer, or the last piece of one, which says why it ends.
fn content(request: &ModelRequest, parts: Vec<Value>, ends: Option<&ModelReply>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(reply) = ends {
        candidate["finishReason"] = json!(match reply.end {
            End::Done => "STOP",
            End::Refused => "SAFETY",
            End::Length => "MAX_TOKENS",
        });
    }
    let usage = json!({
        "promptTokenCount": 12,
        "cachedContentTokenCount": 4,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 2,
        "totalTokenCount": 17,
    });
    json!({
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": request.model,
        "responseId": "fake",
    })
}
