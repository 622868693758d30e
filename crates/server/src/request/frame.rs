//! The frame around every door: strangers are refused before a handler runs, who calls goes with
//! the request from here on, and a failure gets the door's shape and a trace id on its way out.

use crate::problem::{Failure, Shape};
use crate::request::auth::{Entrance, Visitor};
use crate::request::doors::{Doors, Shared};
use crate::request::trace;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::X_CONTENT_TYPE_OPTIONS;
use axum::middleware::Next;
use axum::response::Response;
use kernel::values::trace::TraceParent;
use project::public_url::CALLBACK_PATH;
use project::realm::local_caller;
use std::sync::Arc;

/// Endpoints that report errors in a plain object.
const SEED_DOORS: [&str; 4] = ["/sessions", "/capabilities", "/admin/", "/api/agent/"];
/// Doors of conversations, with an object of their own.
const THREAD_DOORS: [&str; 3] = ["/run", "/resume", "/health-check"];
/// Doors that speak JSON-RPC.
const RPC_DOORS: [&str; 2] = ["/mcp", "/rpc"];
/// Where a pipeline's cases come in beside its own route: all of it tells errors like the route.
const CASES: (&str, &str) = ("/api/v1/pipelines/", "/cases");

/// Checks who comes in, lets the handler answer, and shapes a failure.
pub(crate) async fn frame(State(doors): State<Shared>, request: Request, next: Next) -> Response {
    framed(&doors, request, |mut request, visitor| {
        request.extensions_mut().insert(visitor);
        next.run(request)
    })
    .await
}

/// The same around a handler that stands alone, and learns who calls.
pub(crate) async fn framed<F: Future<Output = Response>>(
    doors: &Shared,
    request: Request,
    handler: impl FnOnce(Request, Visitor) -> F,
) -> Response {
    sent(doors, checked(doors, None, request, handler).await)
}

/// What holds for every answer: it is counted, and no browser guesses another type for it.
fn sent(doors: &Shared, mut response: Response) -> Response {
    doors.answers.add(response.status());
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// With the entrance of a pipeline's own port, every error is a plain object.
async fn checked<F: Future<Output = Response>>(
    doors: &Shared,
    own: Option<&Entrance>,
    request: Request,
    handler: impl FnOnce(Request, Visitor) -> F,
) -> Response {
    let (uri, headers) = (request.uri(), request.headers());
    let shape = if own.is_some() { Shape::Plain } else { shape_of(uri.path()) };
    let caller = trace::of(headers);
    let entrance = own.unwrap_or(&doors.entrance);
    let checked = if own.is_none() && uri.path() == CALLBACK_PATH {
        // A browser that comes back from a login was sent by a foreign page, and has a proof with
        // them.
        entrance.check_names(uri, headers)
    } else {
        entrance.check(uri, headers)
    };
    if let Err(failure) = checked {
        // Looked for only here: a handler that answers a pipeline's route knows that it does.
        // No one calls here, so that only pipelines of the realm that every server has are known.
        let is_pipeline = doors.pipeline_at(&local_caller(), uri.path()).is_some();
        let shape = if is_pipeline { Shape::Plain } else { shape };
        return told(doors, failure, shape, caller);
    }
    let visitor = entrance.visitor(headers);
    let mut response = handler(request, visitor).await;
    match response.extensions_mut().remove::<Failure>() {
        Some(failure) => told(doors, failure, shape, caller),
        None => response,
    }
}

/// What is around a port of a pipeline's own.
pub(crate) struct OwnFrame {
    /// The doors behind it.
    pub(crate) doors: Shared,
    /// Who may come in there: its names have its own port.
    pub(crate) entrance: Entrance,
}

/// The same around a port of a pipeline's own.
pub(crate) async fn own_frame(
    State(own): State<Arc<OwnFrame>>,
    request: Request,
    next: Next,
) -> Response {
    let OwnFrame { doors, entrance } = &*own;
    let handler = |mut request: Request, visitor: Visitor| {
        request.extensions_mut().insert(visitor);
        next.run(request)
    };
    sent(doors, checked(doors, Some(entrance), request, handler).await)
}

fn shape_of(path: &str) -> Shape {
    if RPC_DOORS.contains(&path) {
        return Shape::JsonRpc;
    }
    if THREAD_DOORS.contains(&path) {
        return Shape::Thread;
    }
    let (cases, last) = CASES;
    let is_cases = path.starts_with(cases) && path.ends_with(last);
    let is_plain = is_cases || SEED_DOORS.iter().any(|door| path.starts_with(door));
    if is_plain { Shape::Plain } else { Shape::Problem }
}

fn told(doors: &Doors, failure: Failure, shape: Shape, caller: Option<TraceParent>) -> Response {
    let trace_id = traced(doors, &failure, caller);
    let shape = failure.shape().unwrap_or(shape);
    failure.render(shape, trace_id)
}

/// Gives a failure its trace id and notes it in the log: that of its caller's trace, so that one
/// search finds both, else a new one.
pub(crate) fn traced(doors: &Doors, failure: &Failure, caller: Option<TraceParent>) -> String {
    let trace = caller.map_or_else(|| doors.engine.entropy().bits(), |caller| caller.trace);
    let trace_id = format!("{trace:032x}");
    if failure.status().is_server_error() {
        let (code, message) = (failure.code(), failure.message());
        tracing::error!(trace_id, code, status = failure.status().as_u16(), "{message}");
    } else {
        tracing::debug!(trace_id, code = failure.code(), status = failure.status().as_u16());
    }
    trace_id
}
