//! Classifies an HTTP response: messages, a stream of them, or a refusal with a hint.

use super::super::line::{Incoming, PeerError, PeerErrorKind, Result};
use super::endpoint::Endpoint;
use super::headers::{EVENTS, JSON};
use super::message::Message;
use super::response::Response;
use bytes::Bytes;
use kernel::tool::call::CallProgress;
use outbound::answer::media_type;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use wire::jsonrpc::{METHOD_NOT_FOUND, RpcError};

/// How much of a refusing answer is read.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// An answer to a request.
pub(super) enum Answer {
    /// All of it, as most answers are.
    One(Message),
    /// All of it, in several messages at once.
    Several(Vec<Message>),
    /// A stream in which it will come.
    Events(Response),
}

/// Reads the answer to a request.
pub(super) async fn read(
    endpoint: &Endpoint,
    mut response: Response,
    in_session: bool,
    bytes_max: usize,
) -> Result<Answer> {
    if !response.status().is_success() {
        let error = Box::pin(refused(endpoint, response, in_session)).await?;
        return Ok(Answer::One(Message::Answer { id: None, answer: Incoming::Error(error) }));
    }
    if !is_plain_json(response.headers()) {
        match media_type(response.headers()).as_str() {
            EVENTS => return Ok(Answer::Events(response)),
            JSON => {}
            other => return Err(not_mcp(endpoint, response.status(), other)),
        }
    }
    let body = collect(endpoint, &mut response, bytes_max).await?;
    let text = std::str::from_utf8(&body).ok();
    let hidden = endpoint.hidden();
    let answer = text.and_then(|text| match text.trim_start().starts_with('[') {
        true => Message::read_several(text, &hidden).map(Answer::Several),
        false => Message::read(text, &hidden).map(Answer::One),
    });
    answer.ok_or_else(|| {
        let what = "answered with JSON that is no message of MCP";
        endpoint.error(CallProgress::Unknown, PeerErrorKind::NotMcp, what)
    })
}

/// Whether an answer says so in the way in which most do: no text has to be made to know it.
fn is_plain_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == JSON.as_bytes())
}

/// Opens a stream with these headers, or takes one up again after an event.
pub(crate) async fn opened(
    endpoint: &Endpoint,
    headers: HeaderMap,
    last_id: Option<&str>,
    in_session: bool,
) -> Result<Response> {
    let response = endpoint.get(headers, last_id).await?;
    let status = response.status();
    if !status.is_success() {
        let error = refused(endpoint, response, in_session).await?;
        return Err(told(endpoint, status, &error.message));
    }
    match media_type(response.headers()).as_str() {
        EVENTS => Ok(response),
        other => Err(not_mcp(endpoint, status, other)),
    }
}

/// Whether a message that has no answer was taken.
pub(crate) async fn accepted(
    endpoint: &Endpoint,
    mut response: Response,
    in_session: bool,
) -> Result<()> {
    let status = response.status();
    if !status.is_success() {
        let error = refused(endpoint, response, in_session).await?;
        return Err(told(endpoint, status, &error.message));
    }
    if media_type(response.headers()) != EVENTS {
        // Read to its end, so that the connection can be used again.
        let _ = collect(endpoint, &mut response, REFUSAL_BYTES_MAX).await;
    }
    endpoint.understood();
    Ok(())
}

/// The body, if it is not larger than this.
async fn collect(endpoint: &Endpoint, response: &mut Response, bytes_max: usize) -> Result<Bytes> {
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
    if announced.is_some_and(|length| length > bytes_max) {
        return Err(too_large(endpoint, bytes_max));
    }
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(part)) if body.len() + part.len() > bytes_max => {
                return Err(too_large(endpoint, bytes_max));
            }
            // Most answers come as a whole.
            Ok(Some(part)) if body.is_empty() && announced == Some(part.len()) => return Ok(part),
            Ok(Some(part)) => {
                if body.is_empty() {
                    body.reserve_exact(announced.unwrap_or(part.len()));
                }
                body.extend_from_slice(&part);
            }
            Ok(None) => return Ok(body.into()),
            Err(why) if response.is_garbled() => {
                return Err(endpoint.garbled(endpoint.broken(&why)));
            }
            Err(why) => return Err(endpoint.broken(&why)),
        }
    }
}

/// It happened, but the outcome cannot be read.
pub(crate) fn too_large(endpoint: &Endpoint, bytes_max: usize) -> PeerError {
    let what = format!("answered with more than {bytes_max} bytes");
    endpoint
        .error(CallProgress::Unknown, PeerErrorKind::TooLarge, &what)
        .hint("ask for less, or raise the limit `call_output_bytes_max`")
}

/// The JSON-RPC error of an answer that refuses, or what its status says. What a status says of
/// access, rates and sessions counts more than the error beside it.
async fn refused(
    endpoint: &Endpoint,
    mut response: Response,
    in_session: bool,
) -> Result<RpcError> {
    let status = response.status();
    let body = collect(endpoint, &mut response, REFUSAL_BYTES_MAX).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let error = match Message::read(&text, &endpoint.hidden()) {
        Some(Message::Answer { answer: Incoming::Error(error), .. }) => Some(error),
        _ => None,
    };
    if in_session && is_lost_session(status, error.as_ref(), &text) {
        let what = format!("does not know our session any more ({status})");
        return Err(endpoint.error(CallProgress::Failed, PeerErrorKind::Gone, &what));
    }
    let words = endpoint.told(error.as_ref().map_or(&*text, |error| error.message.as_str()));
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Err(unauthorized(endpoint, status, response.headers(), &words))
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            Err(busy(endpoint, status, response.headers(), &words))
        }
        // A gateway that got no answer knows as little as we do.
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => {
            Err(PeerError { how: CallProgress::Unknown, ..told(endpoint, status, &words) })
        }
        status if status.is_redirection() => Err(redirected(endpoint, status, response.headers())),
        _ => error.ok_or_else(|| told(endpoint, status, &words)),
    }
}

/// 404 says so, unless it is about the method. Many servers answer 400 instead and say it in words.
fn is_lost_session(status: StatusCode, error: Option<&RpcError>, text: &str) -> bool {
    match status {
        StatusCode::NOT_FOUND => error.is_none_or(|error| error.code != METHOD_NOT_FOUND),
        StatusCode::BAD_REQUEST => {
            let words = error.map_or(text, |error| error.message.as_str()).to_ascii_lowercase();
            let unknown =
                ["no valid session", "invalid session", "session not found", "unknown session"];
            unknown.iter().any(|unknown| words.contains(unknown))
        }
        _ => false,
    }
}

fn told(endpoint: &Endpoint, status: StatusCode, words: &str) -> PeerError {
    let words = endpoint.told(words);
    let what = match words.as_str() {
        "" => format!("answered {status}"),
        // A page for people says nothing that helps here.
        page if page.starts_with('<') => format!("answered {status} with a page"),
        words => format!("answered {status}: {words}"),
    };
    endpoint.error(CallProgress::Failed, PeerErrorKind::Refused(status.as_u16()), &what)
}

fn unauthorized(
    endpoint: &Endpoint,
    status: StatusCode,
    headers: &HeaderMap,
    words: &str,
) -> PeerError {
    let mut error = told(endpoint, status, words);
    error.kind = match status {
        StatusCode::FORBIDDEN => PeerErrorKind::Forbidden,
        _ => PeerErrorKind::Unauthorized,
    };
    if let Some(wanted) = header(endpoint, headers, WWW_AUTHENTICATE.as_str()) {
        error.message.push_str(&format!("; it wants `{wanted}`"));
    }
    error.hint("check the headers of this server in its configuration")
}

fn busy(endpoint: &Endpoint, status: StatusCode, headers: &HeaderMap, words: &str) -> PeerError {
    let hint = match header(endpoint, headers, RETRY_AFTER.as_str()) {
        Some(after) if after.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("it asks to try again after {after} seconds")
        }
        Some(after) => format!("it asks to try again after {after}"),
        None => "try again later".to_owned(),
    };
    told(endpoint, status, words).hint(hint)
}

fn redirected(endpoint: &Endpoint, status: StatusCode, headers: &HeaderMap) -> PeerError {
    let place = header(endpoint, headers, LOCATION.as_str()).unwrap_or_default();
    let place = place.split(['?', '#']).next().unwrap_or_default();
    let what = format!("answered {status} and points to `{place}`, which is not followed");
    endpoint
        .error(CallProgress::Failed, PeerErrorKind::Refused(status.as_u16()), &what)
        .hint("configure the URL that it points to, if you trust it")
}

fn not_mcp(endpoint: &Endpoint, status: StatusCode, kind: &str) -> PeerError {
    let kind = endpoint.told(kind);
    let what = match kind.as_str() {
        "" => format!("answered {status} without a message"),
        kind => format!("answered {status} with `{kind}`, which is not MCP"),
    };
    endpoint
        .error(CallProgress::Unknown, PeerErrorKind::NotMcp, &what)
        .hint("check that the URL is the server's MCP endpoint")
}

fn header(endpoint: &Endpoint, headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    value.map(|value| endpoint.told(&value)).filter(|value| !value.is_empty())
}
