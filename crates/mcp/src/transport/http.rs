//! `/mcp`: MCP over HTTP, both eras at one address. The stateless version only posts; a session
//! opens a stream with GET, takes a lost one up again, and ends with DELETE. Pages of our own
//! names may call us from a browser; the frame refuses all others.

use super::delivery::{self, wants_events};
use super::headers::header;
use super::post::{PostRefusal, no_session, post, session, session_id};
use crate::messages::replay::{EventPosition, STANDALONE};
use crate::state::McpState;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW,
    ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::request::auth::Visitor;
use edge::request::frame::framed;
use kernel::tool::call::Caller;
use std::sync::Arc;
use wire::mcp::{HEADER_VERSION, MODERN};

const METHODS: &str = "POST, GET, DELETE, OPTIONS";
/// What a client that comes back saw last.
const LAST_EVENT_ID: &str = "last-event-id";

/// Answers every request to `/mcp`, in the frame of all endpoints.
pub async fn serve(State(mcp): State<Arc<McpState>>, request: Request) -> Response {
    let answering = |request, visitor: Visitor| answer(mcp.clone(), visitor.caller, request);
    framed(&mcp.server, request, answering).await
}

/// The same for a caller who is known already.
pub async fn answer(mcp: Arc<McpState>, caller: Arc<Caller>, request: Request) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let method = request.method().clone();
    let mut response = match method {
        Method::POST => post(mcp, &caller, request).await,
        Method::GET => response_of(open(&mcp, &caller, request.headers())),
        Method::DELETE => response_of(end(&mcp, &caller, request.headers())),
        Method::OPTIONS => preflight(request.headers()),
        _ => response_of(Err(wrong_method("`/mcp` takes POST, GET and DELETE"))),
    };
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(METHODS));
    }
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("Mcp-Session-Id, Retry-After"),
        );
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
    response
}

/// `GET`: the stream of what belongs to no request, or one that was lost.
fn open(
    mcp: &Arc<McpState>,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Response, PostRefusal> {
    if header(headers, HEADER_VERSION) == Some(MODERN) {
        return Err(wrong_method("without a session, post `subscriptions/listen` for changes"));
    }
    if !wants_events(headers) {
        return Err(wrong_method("GET opens a stream: `Accept` must take `text/event-stream`"));
    }
    let session = session(mcp, caller, headers)?;
    let lost = || {
        let why = "the stream of `Last-Event-ID` is not kept any more, or never was";
        PostRefusal::invalid(StatusCode::BAD_REQUEST, why)
    };
    let (stream, after) = match header(headers, LAST_EVENT_ID) {
        None => (STANDALONE, None),
        Some(id) => {
            let position = EventPosition::read(id).ok_or_else(lost)?;
            (position.stream, Some(position.number))
        }
    };
    let replay = session.stream(stream).ok_or_else(lost)?;
    let Ok(permit) = mcp.server.free_stream(caller) else {
        let refused = PostRefusal::too_many("there is no room for one more stream now");
        return Err(refused.quota(mcp.server.stream_quota(caller)));
    };
    Ok(delivery::follow(&mcp.server, &session, replay.reader(after), permit))
}

/// `DELETE`: the session is over.
fn end(mcp: &McpState, caller: &Caller, headers: &HeaderMap) -> Result<Response, PostRefusal> {
    if header(headers, HEADER_VERSION) == Some(MODERN) {
        return Err(wrong_method("this version has no sessions that could be ended"));
    }
    if !mcp.sessions.end(session_id(headers)?, caller) {
        return Err(no_session());
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `OPTIONS`: what a page may send. Its origin is one of ours, so it may send what it likes.
fn preflight(headers: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let answer = response.headers_mut();
    answer.insert(ALLOW, HeaderValue::from_static(METHODS));
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    if let Some(wanted) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    response
}

fn response_of(answered: Result<Response, PostRefusal>) -> Response {
    answered.unwrap_or_else(|refused| refused.response(None))
}

fn wrong_method(why: &str) -> PostRefusal {
    PostRefusal::invalid(StatusCode::METHOD_NOT_ALLOWED, why)
}
