//! The addresses of A2A: which binding a request speaks, which extensions it names, and the cards.

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

/// The address, as cards name it.
const ADDRESS: &str = "/a2a/v1";
/// The end of the address of a card.
const CARD: &str = "agent-card.json";
/// What clients of 0.3 write between the address and a path.
const OLD: &str = "v1";
/// What the first part of a path is that names no realm.
const OPERATIONS: [&str; 4] = ["message:send", "message:stream", "tasks", "extendedAgentCard"];

/// All of them, to be put into the frame.
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route(WELL_KNOWN, get(well_known).fallback(only_read))
        .route(KEY_SET, get(key_set).fallback(only_read))
        .route(ADDRESS, any(serve))
        .route("/a2a/v1/", any(serve))
        .route("/a2a/v1/{*rest}", any(serve))
        .route(&format!("{GRPC_SERVICE}/{{method}}"), any(called))
        .merge(vault::addresses::routes())
}

async fn well_known(State(a2a): State<Shared>, request: Request) -> Response {
    let realm = a2a.serving.realm.clone();
    shown(&IncomingRequest::of(&a2a, request).0, &realm)
}

async fn key_set(State(a2a): State<Shared>) -> Response {
    card::key_set(&a2a)
}

/// The table of routes does not know cards and keys, so it cannot say how they are asked for.
async fn only_read() -> Failure {
    let message = "an agent card and its keys can only be read";
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message).hint("use GET")
}

fn shown(arrived: &IncomingRequest, realm: &RealmId) -> Response {
    match card::public(arrived, realm) {
        Ok(response) => response,
        Err(error) => (StatusCode::NOT_FOUND, axum::Json(error.to_rest())).into_response(),
    }
}

async fn called(State(a2a): State<Shared>, request: Request) -> Response {
    let named = extensions(request.headers());
    let mut response = grpc::serve(&a2a, request).await;
    response.headers_mut().extend(named);
    response
}

async fn serve(State(a2a): State<Shared>, request: Request) -> Response {
    let named = extensions(request.headers());
    let mut response = answered(&a2a, request).await;
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

async fn answered(a2a: &Shared, request: Request) -> Response {
    let verb = request.method().clone();
    let path = request.uri().path().strip_prefix(ADDRESS).unwrap_or_default().to_owned();
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (arrived, body) = IncomingRequest::of(a2a, request);
    // No realm has the name of the version that clients of 0.3 add to the address.
    let (realm, rest, is_old) = match parts.as_slice() {
        [OLD, rest @ ..] => (None, rest, true),
        [first, OLD, rest @ ..] if !OPERATIONS.contains(first) => (Some(*first), rest, true),
        [first, rest @ ..] if !OPERATIONS.contains(first) => (Some(*first), rest, false),
        all => (None, all, false),
    };
    match (rest, realm) {
        _ if is_old => {
            let asked = RestRequest { verb, realm, path: rest, is_old };
            rest::serve(arrived, asked, body).await
        }
        ([CARD] | [".well-known", CARD], Some(realm)) if verb == Method::GET => {
            shown(&arrived, &RealmId::from(realm))
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
