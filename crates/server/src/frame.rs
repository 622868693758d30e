//! The frame around every door: strangers are refused before a handler runs, and a failure gets
//! the door's shape and a trace id on its way out.

use crate::doors::{Doors, Shared};
use crate::error::{Failure, Shape};
use crate::public_url::CALLBACK_PATH;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

/// Doors that tell errors in the seed's own object.
const SEED_DOORS: [&str; 4] = ["/sessions", "/capabilities", "/admin/", "/api/agent/"];
/// Doors of conversations, with an object of their own.
const THREAD_DOORS: [&str; 3] = ["/run", "/resume", "/health-check"];
/// Doors that speak JSON-RPC.
const RPC_DOORS: [&str; 2] = ["/mcp", "/rpc"];

/// Checks who comes in, lets the handler answer, and shapes a failure.
pub(crate) async fn frame(State(doors): State<Shared>, request: Request, next: Next) -> Response {
    let shape = shape_of(request.uri().path());
    let (uri, headers) = (request.uri(), request.headers());
    let checked = if uri.path() == CALLBACK_PATH {
        // Whoever comes back from a login was sent by a foreign page, and has a proof with them.
        doors.entrance.check_names(uri, headers)
    } else {
        doors.entrance.check(uri, headers)
    };
    if let Err(failure) = checked {
        return told(&doors, failure, shape);
    }
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<Failure>() {
        Some(failure) => told(&doors, failure, shape),
        None => response,
    }
}

fn shape_of(path: &str) -> Shape {
    if RPC_DOORS.contains(&path) {
        return Shape::JsonRpc;
    }
    if THREAD_DOORS.contains(&path) {
        return Shape::Thread;
    }
    if SEED_DOORS.iter().any(|door| path.starts_with(door)) { Shape::Seed } else { Shape::Problem }
}

fn told(doors: &Shared, failure: Failure, shape: Shape) -> Response {
    let trace_id = traced(doors, &failure);
    failure.render(shape, trace_id)
}

/// Gives a failure its trace id and notes it in the log.
pub(crate) fn traced(doors: &Doors, failure: &Failure) -> String {
    let trace_id = format!("{:032x}", doors.engine.entropy().bits());
    if failure.status().is_server_error() {
        let (code, message) = (failure.code(), failure.message());
        tracing::error!(trace_id, code, status = failure.status().as_u16(), "{message}");
    } else {
        tracing::debug!(trace_id, code = failure.code(), status = failure.status().as_u16());
    }
    trace_id
}
