//! What came back: an output, or an error that says how far the call got.

use super::client::AddressNotAllowed;
use kernel::call::{ToolError, ToolOutput};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Response, StatusCode};
use serde_json::{Map, Value, json};
use std::error::Error;

/// How much of a refusing answer's body is told.
const TOLD_CHARS_MAX: usize = 500;

/// What a call does, which decides what a lost answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing: a lost answer is a plain failure.
    Reads,
    /// Something: a lost answer is an unknown outcome.
    Writes,
}

impl Effect {
    fn lost(self, name: &str, message: String) -> ToolError {
        match self {
            Effect::Reads => ToolError::failed(name, message),
            Effect::Writes => ToolError::unknown(name, message)
                .hint("look at the other side whether it happened, then settle, retry or skip"),
        }
    }
}

/// Why a body could not be read.
enum Unread {
    TooLarge,
    Lost(String),
}

/// The output of an answer below 400; the error of any other.
pub(super) async fn read(
    mut response: Response,
    effect: Effect,
    bytes_max: usize,
) -> Result<ToolOutput, ToolError> {
    let status = response.status();
    let headers = std::mem::take(response.headers_mut());
    let body = collect(&mut response, bytes_max).await;
    if status.as_u16() >= 400 {
        return Err(refused(status, &body.unwrap_or_default(), effect));
    }
    let body = body.map_err(|unread| match unread {
        Unread::TooLarge => effect.lost(
            "OutputTooLarge",
            format!("the answer ({status}) has more than {bytes_max} bytes"),
        ),
        Unread::Lost(why) => {
            effect.lost("AnswerLost", format!("the answer ({status}) broke off: {why}"))
        }
    })?;
    let value = json!({
        "status": status.as_u16(),
        "headers": shown(&headers),
        "body": parsed(&headers, &body),
    });
    Ok(ToolOutput::Value(value))
}

/// The error of a request that got no answer.
pub(super) fn unanswered(error: reqwest::Error, effect: Effect) -> ToolError {
    let error = error.without_url();
    let why = reasons(&error);
    if let Some(refused) = find::<AddressNotAllowed>(&error) {
        return ToolError::not_sent("AddressNotAllowed", refused.to_string())
            .hint("list the address itself in `[tools.http] allow`, if it should be reached");
    }
    if error.is_connect() || error.is_builder() {
        return ToolError::not_sent("ConnectFailed", format!("could not connect: {why}"))
            .hint("check that the other side runs and that the URL names it");
    }
    effect.lost("AnswerLost", format!("the connection broke before an answer came: {why}"))
}

async fn collect(response: &mut Response, bytes_max: usize) -> Result<Vec<u8>, Unread> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > bytes_max => {
                return Err(Unread::TooLarge);
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(error) => return Err(Unread::Lost(reasons(&error.without_url()))),
        }
    }
}

/// A gateway that got no answer knows as little as we do; any other refusal is a plain failure.
fn refused(status: StatusCode, body: &[u8], effect: Effect) -> ToolError {
    let text = String::from_utf8_lossy(body);
    let told: String = text.trim().chars().take(TOLD_CHARS_MAX).collect();
    let message = match told.as_str() {
        "" => format!("the other side answered {status}"),
        told => format!("the other side answered {status}: {told}"),
    };
    match status {
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => effect.lost("HttpStatus", message),
        _ => ToolError::failed("HttpStatus", message),
    }
}

fn shown(headers: &HeaderMap) -> Map<String, Value> {
    let mut shown = Map::new();
    for name in headers.keys() {
        let values = headers.get_all(name).iter();
        let values: Vec<_> =
            values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        shown.insert(name.as_str().to_owned(), Value::String(values.join(", ")));
    }
    shown
}

/// JSON where the answer says so and it is, else text; null for nothing.
fn parsed(headers: &HeaderMap, body: &[u8]) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = essence == "application/json" || essence.ends_with("+json");
    match is_json.then(|| serde_json::from_slice(body)) {
        Some(Ok(value)) => value,
        _ => Value::String(String::from_utf8_lossy(body).into_owned()),
    }
}

fn reasons(error: &dyn Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        told.push_str(": ");
        told.push_str(&cause.to_string());
        source = cause.source();
    }
    told
}

fn find<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        at = error.source();
    }
    None
}
