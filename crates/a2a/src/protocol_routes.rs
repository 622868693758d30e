//! The routes of A2A itself: agent cards, their keys, and the three bindings (JSON-RPC, HTTP with
//! JSON, gRPC) in versions 1.0 and 0.3. OpenAPI cannot describe them, so they are not in the table
//! of routes.

use super::binding::RestRequest;
use super::incoming_request::IncomingRequest;
use super::v1::{grpc, rest, rpc};
use super::{card, vault};
use crate::state::Shared;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use edge::problem::Failure;
use kernel::values::ids::RealmId;
use kernel::values::percent::decoded;
use wire::a2a::{
    ASKS_EXTENSION, GRPC_SERVICE, HEADER_EXTENSIONS, HEADER_EXTENSIONS_OLD, KEY_SET,
    SKILLS_EXTENSION, WELL_KNOWN,
};

/// The path of JSON-RPC and HTTP with JSON, as cards name it.
const BASE_PATH: &str = "/a2a/v1";
/// The last segment of a card's path.
const CARD: &str = "agent-card.json";
/// The segment that clients of 0.3 put between the base path and the path of an operation.
const SEGMENT_03: &str = "v1";
/// First segments of a path that are operations, not realms.
const OPERATIONS: [&str; 4] = ["message:send", "message:stream", "tasks", "extendedAgentCard"];

/// All of them, without the layers that every endpoint has.
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route(WELL_KNOWN, get(well_known).fallback(only_read))
        .route(KEY_SET, get(key_set).fallback(only_read))
        .route(BASE_PATH, any(serve_json))
        .route("/a2a/v1/", any(serve_json))
        .route("/a2a/v1/{*rest}", any(serve_json))
        .route(&format!("{GRPC_SERVICE}/{{method}}"), any(serve_grpc))
        .merge(vault::protocol_routes::routes())
}

async fn well_known(State(a2a): State<Shared>, request: Request) -> Response {
    let realm = a2a.serving.realm.clone();
    card_response(&IncomingRequest::of(&a2a, request).0, &realm)
}

async fn key_set(State(a2a): State<Shared>) -> Response {
    card::key_set(&a2a)
}

/// The table of routes does not know cards and keys, so it cannot say how they are asked for.
async fn only_read() -> Failure {
    let message = "an agent card and its keys can only be read";
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message).hint("use GET")
}

fn card_response(arrived: &IncomingRequest, realm: &RealmId) -> Response {
    match card::public(arrived, realm) {
        Ok(response) => response,
        Err(error) => (StatusCode::NOT_FOUND, axum::Json(error.to_rest())).into_response(),
    }
}

async fn serve_grpc(State(a2a): State<Shared>, request: Request) -> Response {
    let named = extensions(request.headers());
    let mut response = grpc::serve(&a2a, request).await;
    response.headers_mut().extend(named);
    response
}

async fn serve_json(State(a2a): State<Shared>, request: Request) -> Response {
    let named = extensions(request.headers());
    let mut response = dispatch(&a2a, request).await;
    response.headers_mut().extend(named);
    response
}

/// What an answer says of extensions: those of ours that the request names, in the header that
/// named them. They hold for every request, so that nothing else follows from it.
fn extensions(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let activated = |name: &'static str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let asked: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
        let ours = [SKILLS_EXTENSION, ASKS_EXTENSION].into_iter().filter(|uri| asked.contains(uri));
        let ours = ours.collect::<Vec<_>>().join(",");
        let value = HeaderValue::try_from(ours).ok().filter(|value| !value.is_empty())?;
        Some((HeaderName::from_static(name), value))
    };
    [HEADER_EXTENSIONS, HEADER_EXTENSIONS_OLD].into_iter().filter_map(activated).collect()
}

async fn dispatch(a2a: &Shared, request: Request) -> Response {
    let verb = request.method().clone();
    let path = request.uri().path().strip_prefix(BASE_PATH).unwrap_or_default().to_owned();
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (arrived, body) = IncomingRequest::of(a2a, request);
    // No realm is called `v1`, so the segment of 0.3 cannot be taken for one.
    let (realm, rest, is_old) = match parts.as_slice() {
        [SEGMENT_03, rest @ ..] => (None, rest, true),
        [first, SEGMENT_03, rest @ ..] if !OPERATIONS.contains(first) => (Some(*first), rest, true),
        [first, rest @ ..] if !OPERATIONS.contains(first) => (Some(*first), rest, false),
        all => (None, all, false),
    };
    match (rest, realm) {
        _ if is_old => {
            let asked = RestRequest { verb, realm, path: rest, is_old };
            rest::serve(arrived, asked, body).await
        }
        ([CARD] | [".well-known", CARD], Some(realm)) if verb == Method::GET => {
            card_response(&arrived, &RealmId::from(realm))
        }
        ([], realm) if verb == Method::POST => rpc::serve(arrived, realm, body).await,
        _ => rest::serve(arrived, RestRequest { verb, realm, path: rest, is_old }, body).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(values: &[&'static str]) -> Vec<(HeaderName, HeaderValue)> {
        let name = HeaderName::from_static(HEADER_EXTENSIONS);
        let pair = |value: &'static str| (name.clone(), HeaderValue::from_static(value));
        extensions(&values.iter().copied().map(pair).collect())
    }

    #[test]
    fn an_answer_names_the_extensions_of_ours_that_were_named() {
        let both = format!("{SKILLS_EXTENSION},{ASKS_EXTENSION}");
        let told = named(&[
            "https://a.test/x/v1, https://waypost.dev/a2a/asks/v1",
            "https://waypost.dev/a2a/skills/v1",
        ]);
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].0.as_str(), told[0].1.to_str().unwrap()), ("a2a-extensions", &*both));
        let others: [&[&'static str]; 3] = [&[], &[""], &["https://waypost.dev/a2a/asks/v2"]];
        for none in others {
            assert!(named(none).is_empty(), "{none:?}");
        }
    }
}
