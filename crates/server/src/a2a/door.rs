//! The addresses of A2A: which binding a request speaks, and the cards.

use super::arrival::Arrived;
use super::rest::{self, Asked};
use super::{card, rpc};
use crate::problem::Failure;
use crate::request::auth::Visitor;
use crate::request::doors::Shared;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use kernel::values::ids::RealmId;
use kernel::values::percent::decoded;
use wire::a2a::WELL_KNOWN;

/// The address, as cards name it.
const ADDRESS: &str = "/a2a/v1";
/// The end of the address of a card.
const CARD: &str = "agent-card.json";
/// What the first part of a path is that names no realm.
const OPERATIONS: [&str; 4] = ["message:send", "message:stream", "tasks", "extendedAgentCard"];

/// All of them, to be put into the frame.
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route(WELL_KNOWN, get(well_known).fallback(only_read))
        .route(ADDRESS, any(serve))
        .route("/a2a/v1/", any(serve))
        .route("/a2a/v1/{*rest}", any(serve))
}

async fn well_known(State(doors): State<Shared>, request: Request) -> Response {
    let realm = doors.a2a.realm.clone();
    shown(&arrived(&doors, request).0, &realm)
}

/// The table of routes does not know the card, so it cannot say how the card is asked for.
async fn only_read() -> Failure {
    let message = "an agent card can only be read";
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message).hint("use GET")
}

fn arrived(doors: &Shared, request: Request) -> (Arrived, axum::body::Body) {
    let (parts, body) = request.into_parts();
    let visitor = parts.extensions.get::<Visitor>().cloned();
    (Arrived::new(doors, parts.uri, parts.headers, visitor), body)
}

fn shown(arrived: &Arrived, realm: &RealmId) -> Response {
    match card::public(arrived, realm) {
        Ok(response) => response,
        Err(error) => {
            let body = axum::Json(error.to_rest());
            (StatusCode::NOT_FOUND, body).into_response()
        }
    }
}

async fn serve(State(doors): State<Shared>, request: Request) -> Response {
    let verb = request.method().clone();
    let path = request.uri().path().strip_prefix(ADDRESS).unwrap_or_default().to_owned();
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (arrived, body) = arrived(&doors, request);
    let (realm, rest) = match parts.as_slice() {
        [first, rest @ ..] if !OPERATIONS.contains(first) => (Some(*first), rest),
        all => (None, all),
    };
    match (rest, realm) {
        ([CARD] | [".well-known", CARD], Some(realm)) if verb == Method::GET => {
            shown(&arrived, &RealmId::from(realm))
        }
        ([], realm) if verb == Method::POST => rpc::serve(arrived, realm, body).await,
        _ => rest::serve(arrived, Asked { verb, realm, path: rest }, body).await,
    }
}
