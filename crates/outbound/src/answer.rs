//! Converts an HTTP answer into a tool output, or into an error that says how far the call got.

use crate::client::AddressNotAllowed;
use crate::spool::{BodyEncoder, SpooledText, pieces};
use crate::words::reasons;
use kernel::tool::call::{BlobError, Call, CallBlobs, ToolError};
use kernel::values::datum::BlobRef;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;

/// How much of a refusing answer's body an error quotes.
const TOLD_CHARS_MAX: usize = 500;

/// The effect of a call, which decides what a lost answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A lost answer is a plain failure.
    Reads,
    /// Something: a lost answer is an unknown outcome.
    Writes,
}

impl Effect {
    /// The error of a call that was sent and whose outcome did not come back.
    pub fn lost(self, name: &str, message: String) -> ToolError {
        match self {
            Effect::Reads => ToolError::failed(name, message),
            Effect::Writes => ToolError::unknown(name, message)
                .hint("look at the other side whether it happened, then settle, retry or skip"),
        }
    }
}

/// Why a body could not be read.
pub enum ReadError {
    /// It has more bytes than it may.
    TooLarge,
    /// The connection broke.
    Lost(reqwest::Error),
}

impl ReadError {
    /// The error of an answer that began with this status.
    pub fn error(self, status: StatusCode, effect: Effect, bytes_max: usize) -> ToolError {
        match self {
            ReadError::TooLarge => effect.lost(
                "OutputTooLarge",
                format!("the answer ({status}) has more than {bytes_max} bytes"),
            ),
            ReadError::Lost(error) => {
                let why = reasons(&error.without_url());
                let message = format!("the answer ({status}) broke off: {why}");
                effect.lost("AnswerLost", message).passing()
            }
        }
    }
}

/// The output of a call.
#[derive(Serialize, JsonSchema)]
pub struct Answer {
    // As wide as this so that no range is listed.
    status: i64,
    headers: BTreeMap<String, String>,
    /// JSON where the answer says so, else text, else null.
    body: Value,
    /// Where all of this is, if its body was too large to be held.
    #[serde(skip)]
    pub stored: Option<BlobRef>,
}

/// The output of an answer below 400; the error of any other.
pub async fn read(
    mut response: Response,
    effect: Effect,
    call: &Call,
) -> Result<Answer, ToolError> {
    let status = response.status();
    let bytes_max = call.output_bytes_max;
    let headers = std::mem::take(response.headers_mut());
    if status.as_u16() >= 400 {
        let body = collect(&mut response, bytes_max).await;
        return Err(refused(status, &body.unwrap_or_default(), effect));
    }
    let mut answer = Answer {
        status: status.as_u16().into(),
        headers: shown(&headers),
        body: Value::Null,
        stored: None,
    };
    // JSON is read as a whole, for its values to be there.
    let blobs = (!is_json(&media_type(&headers))).then_some(&call.context.blobs);
    let body = BodyDestination { bytes_max, blobs }.take(response, effect, || {
        let headers = serde_json::to_string(&answer.headers).unwrap_or_default();
        Some(SpooledText {
            before: "{\"body\":\"".to_owned(),
            inside: BodyEncoder::Text(Vec::new()),
            after: format!("\",\"headers\":{headers},\"status\":{}}}", answer.status),
        })
    });
    let body = body.await?;
    match body {
        Body::Whole(bytes) => answer.body = parsed(&headers, &bytes),
        Body::Stored(blob) => answer.stored = Some(blob),
    }
    Ok(answer)
}

/// The body of an answer.
#[derive(Debug)]
pub enum Body {
    /// All of it.
    Whole(Vec<u8>),
    /// The blob that holds the JSON text of the whole output.
    Stored(BlobRef),
}

/// Where the body of an answer may go.
#[derive(Clone, Copy)]
pub struct BodyDestination<'a> {
    /// How many bytes may be held.
    pub bytes_max: usize,
    /// Storage for a body that is too large for a journal; without it the body is held in memory.
    pub blobs: Option<&'a CallBlobs>,
}

impl BodyDestination<'_> {
    /// Takes a body. One that is too large for a journal goes into a blob while it comes, as `text`
    /// says, if it says something.
    pub async fn take(
        self,
        mut response: Response,
        effect: Effect,
        text: impl FnOnce() -> Option<SpooledText>,
    ) -> Result<Body, ToolError> {
        let status = response.status();
        let bytes_max = self.bytes_max;
        let inline = self.blobs.and_then(|blobs| Some((blobs, blobs.inline_bytes_max()?)));
        let spooled = inline.and_then(|(blobs, inline)| Some((blobs, inline, text()?)));
        let Some((blobs, inline, text)) = spooled else {
            let body = collect(&mut response, bytes_max).await;
            return body.map(Body::Whole).map_err(|unread| unread.error(status, effect, bytes_max));
        };
        let begun = begin(&mut response, inline.min(bytes_max)).await;
        let begun = begun.map_err(|unread| unread.error(status, effect, bytes_max))?;
        if begun.is_all {
            return Ok(Body::Whole(begun.bytes));
        }
        let lost = move |error| ReadError::Lost(error).error(status, effect, bytes_max);
        let put = blobs.put(pieces(text, &begun.bytes, response, lost)).await;
        put.map(Body::Stored).map_err(|error| unkept(error, status, effect))
    }
}

/// The error of a body that could not be put into a blob.
fn unkept(error: BlobError, status: StatusCode, effect: Effect) -> ToolError {
    match error {
        BlobError::BrokenOff(error) => *error,
        BlobError::TooLarge(most) => effect
            .lost("OutputTooLarge", format!("the answer ({status}) has more than {most} bytes")),
        other @ (BlobError::NotRecorded | BlobError::NotGiven(_) | BlobError::Failed(_)) => {
            effect.lost("AnswerLost", format!("the answer ({status}) could not be kept: {other}"))
        }
    }
}

/// The error of a request that got no answer.
pub fn unanswered(error: reqwest::Error, effect: Effect) -> ToolError {
    let error = error.without_url();
    let why = reasons(&error);
    if let Some(refused) = find::<AddressNotAllowed>(&error) {
        return ToolError::not_sent("AddressNotAllowed", refused.to_string())
            .hint("list the address itself in `[tools.http] allow`, if it should be reached");
    }
    if error.is_connect() || error.is_builder() {
        let failed = ToolError::not_sent("ConnectFailed", format!("could not connect: {why}"))
            .hint("check that the other side runs and that the URL names it");
        // A request that cannot be built cannot be built later either.
        return if error.is_connect() { failed.passing() } else { failed };
    }
    let message = format!("the connection broke before an answer came: {why}");
    effect.lost("AnswerLost", message).passing()
}

/// An answer's body, up to its limit.
pub async fn collect(response: &mut Response, bytes_max: usize) -> Result<Vec<u8>, ReadError> {
    let BodyStart { bytes, is_all } = begin(response, bytes_max).await?;
    if is_all { Ok(bytes) } else { Err(ReadError::TooLarge) }
}

/// How a body begins.
struct BodyStart {
    bytes: Vec<u8>,
    /// The body is complete.
    is_all: bool,
}

/// All of a body, or a little more than so many bytes of it.
async fn begin(response: &mut Response, bytes: usize) -> Result<BodyStart, ReadError> {
    let mut begun = Vec::new();
    while begun.len() <= bytes {
        match response.chunk().await {
            Ok(Some(chunk)) => begun.extend_from_slice(&chunk),
            Ok(None) => return Ok(BodyStart { bytes: begun, is_all: true }),
            Err(error) => return Err(ReadError::Lost(error)),
        }
    }
    Ok(BodyStart { bytes: begun, is_all: false })
}

/// The error of an answer of 400 or above. A gateway that got no answer knows as little as we do;
/// any other refusal is a plain failure.
pub fn refused(status: StatusCode, body: &[u8], effect: Effect) -> ToolError {
    let text = String::from_utf8_lossy(body);
    let told: String = text.trim().chars().take(TOLD_CHARS_MAX).collect();
    let message = match told.as_str() {
        "" => format!("the other side answered {status}"),
        told => format!("the other side answered {status}: {told}"),
    };
    let error = match status {
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => effect.lost("HttpStatus", message),
        _ => ToolError::failed("HttpStatus", message),
    };
    if is_passing(status.as_u16()) { error.passing() } else { error }
}

/// Whether the same request may get another status a little later: too slow, too many requests, or
/// trouble of the server's own. What a server does not know how to do it will not know later.
pub fn is_passing(status: u16) -> bool {
    match status {
        408 | 425 | 429 => true,
        501 | 505 => false,
        status => (500..600).contains(&status),
    }
}

/// Headers as a tool shows them.
pub fn shown(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    for name in headers.keys() {
        let values = headers.get_all(name).iter();
        let values: Vec<_> =
            values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        shown.insert(name.as_str().to_owned(), values.join(", "));
    }
    shown
}

/// JSON where the answer says so and it is, else text; null for nothing.
fn parsed(headers: &HeaderMap, body: &[u8]) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    match is_json(&media_type(headers)).then(|| serde_json::from_slice(body)) {
        Some(Ok(value)) => value,
        _ => Value::String(String::from_utf8_lossy(body).into_owned()),
    }
}

/// The media type: lower case, without parameters; empty if there is none.
pub fn media_type(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    essence(kind)
}

/// A media type in lower case, without parameters.
pub fn essence(kind: &str) -> String {
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether a media type without parameters is JSON.
pub fn is_json(essence: &str) -> bool {
    essence == "application/json" || essence.ends_with("+json")
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
