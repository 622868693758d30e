//! `/api/query`: the tools of records, each at a path of its own. A body has a tool's arguments,
//! and `realm`, which counts like `?realm=`.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::record_calls::{self, RecordCall};
use edge::request::body::{parse, read};
use edge::request::body_realm::BodyRealm;
use edge::request::key::Key;
use edge::request::server_state::{ServerState, Shared, Who};
use edge::request::trace::{self, Trace};
use kernel::tool::call::Caller;
use kernel::values::members::take;
use kernel::values::trace::TraceParent;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// A request with a body, read as it came.
pub(crate) struct BodyRequest {
    pub(crate) realm: BodyRealm,
    pub(crate) key: Key,
    pub(crate) trace: Option<TraceParent>,
    pub(crate) sent: Bytes,
}

impl FromRequest<Shared> for BodyRequest {
    type Rejection = Failure;

    async fn from_request(request: Request, server: &Shared) -> Result<Self> {
        let (mut parts, body) = request.into_parts();
        let realm = BodyRealm::from_request_parts(&mut parts, server).await?;
        let key = Key::from_request_parts(&mut parts, server).await?;
        let trace = trace::of(&parts.headers);
        let sent = read(server, body).await?;
        Ok(Self { realm, key, trace, sent })
    }
}

/// `GET /rootTypes`.
pub(crate) async fn root_types(
    Who { server, caller }: Who,
    Trace(trace): Trace,
) -> Result<Response> {
    listed(&server, &caller, trace, "/api/query/rootTypes").await
}

/// The types that the caller may read.
pub(crate) async fn listed(
    server: &ServerState,
    caller: &Caller,
    trace: Option<TraceParent>,
    route: &'static str,
) -> Result<Response> {
    let call = RecordCall::new("query_rootTypes", json!({}), route);
    let answer = record_calls::call(server, caller, RecordCall { trace, ..call }).await?;
    Ok(answer.respond(shown))
}

/// `POST /plan`.
pub(crate) async fn plan(request: BodyRequest) -> Result<Response> {
    called(request, "query_plan", "/api/query/plan").await
}

/// `POST /find`.
pub(crate) async fn find(request: BodyRequest) -> Result<Response> {
    called(request, "query_find", "/api/query/find").await
}

/// `POST /count`.
pub(crate) async fn count(request: BodyRequest) -> Result<Response> {
    called(request, "query_count", "/api/query/count").await
}

/// `POST /save`.
pub(crate) async fn save(request: BodyRequest) -> Result<Response> {
    called(request, "query_save", "/api/query/save").await
}

/// `POST /delete`.
pub(crate) async fn delete(request: BodyRequest) -> Result<Response> {
    called(request, "query_delete", "/api/query/delete").await
}

/// `POST /deleteMany`.
pub(crate) async fn delete_many(request: BodyRequest) -> Result<Response> {
    called(request, "query_deleteMany", "/api/query/deleteMany").await
}

async fn called(request: BodyRequest, tool: &'static str, route: &'static str) -> Result<Response> {
    let BodyRequest { realm, key, trace, sent } = request;
    let server = realm.server.clone();
    let mut arguments: Map<String, Value> = parsed(&server, &sent)?;
    let once = key.once(&sent);
    // Its bytes count against the budget of all bodies.
    drop(sent);
    let caller = realm.caller(taken_realm(&mut arguments)?.as_deref())?;
    let arguments = Value::Object(arguments);
    let call = RecordCall { once, trace, ..RecordCall::new(tool, arguments, route) };
    let answer = record_calls::call(&server, &caller, call).await?;
    Ok(answer.respond(shown))
}

/// The JSON object of a body. Whatever is wrong with one is a bad request here.
pub(crate) fn parsed<T: DeserializeOwned>(server: &ServerState, sent: &[u8]) -> Result<T> {
    parse(sent, server.limits().body_depth_max).map_err(|failure| match failure.status() {
        StatusCode::UNPROCESSABLE_ENTITY => failure.status_code(StatusCode::BAD_REQUEST),
        _ => failure,
    })
}

/// The realm that a body names, which is no argument of a tool.
fn taken_realm(arguments: &mut Map<String, Value>) -> Result<Option<String>> {
    match take(arguments, "realm") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(realm)) => Ok(Some(realm)),
        Some(_) => Err(Failure::bad_request("InvalidRequest", "`realm` is no text")
            .hint("write the name of a realm, or leave it out")),
    }
}

/// An output as it is answered.
pub(crate) fn shown(output: Value) -> Response {
    Json(output).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn realm(arguments: Value) -> String {
        let Value::Object(mut arguments) = arguments else { panic!("an object") };
        match taken_realm(&mut arguments) {
            Ok(realm) => {
                assert_eq!(arguments.get("realm"), None);
                realm.unwrap_or_else(|| "none".to_owned())
            }
            Err(failure) => format!("{} {}", failure.status().as_u16(), failure.code()),
        }
    }

    #[test]
    fn the_realm_of_a_body_is_no_argument() {
        assert_eq!(realm(json!({"rootType": "Order", "realm": "acme"})), "acme");
        assert_eq!(realm(json!({"rootType": "Order"})), "none");
        assert_eq!(realm(json!({"realm": null})), "none");
        assert_eq!(realm(json!({"realm": 7})), "400 InvalidRequest");
    }
}
