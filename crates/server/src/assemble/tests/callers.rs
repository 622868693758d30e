//! Who calls goes with the request: callers of one server are distinguished by what each carries.

use crate::assemble::assembled_in;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use axum::routing::get;
use edge::problem::Failure;
use edge::request::auth::Visitor;
use edge::request::server_state::{Administrator, Who};
use kernel::tool::call::Caller;
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt;

fn visitor_of(realm: &str) -> Visitor {
    let caller = Arc::new(Caller::new(realm, "ann"));
    Visitor { caller, administrator: None, verified: None }
}

async fn answered(
    router: &Router,
    visitor: Option<&Visitor>,
    method: Method,
    path: &str,
) -> Response {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(visitor) = visitor {
        request = request.extension(visitor.clone());
    }
    router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn body(response: Response) -> Value {
    let bytes = to_bytes(response.into_body(), 64 * 1024).await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_callers_of_one_server_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let assembled = assembled_in(folder.path()).await;
    let router = compat::router().with_state(assembled.server.clone());
    let here = visitor_of("here");
    let there = visitor_of("there");
    let created = answered(&router, Some(&here), Method::POST, "/sessions").await;
    assert_eq!(created.status(), StatusCode::CREATED);
    let id = body(created).await["sessionId"].as_str().unwrap().to_owned();
    let path = format!("/sessions/{id}");
    let own = answered(&router, Some(&here), Method::GET, &path).await;
    assert_eq!(own.status(), StatusCode::OK);
    let foreign = answered(&router, Some(&there), Method::GET, &path).await;
    assert_eq!(foreign.status(), StatusCode::NOT_FOUND, "a session of another realm");
    assembled.stopper().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_knows_who_calls_and_who_administers() {
    async fn who(Who { caller, .. }: Who) -> String {
        format!("{} {}", caller.realm, caller.admin)
    }
    async fn administrator(Administrator { caller, .. }: Administrator) -> String {
        format!("{} {}", caller.realm, caller.admin)
    }
    let folder = tempfile::tempdir().unwrap();
    let assembled = assembled_in(folder.path()).await;
    let router =
        Router::new().route("/", get(who).post(administrator)).with_state(assembled.server.clone());
    let plain = visitor_of("here");
    let administering = Arc::new((*plain.caller).clone().administering());
    let admin = Visitor { administrator: Some(administering), ..plain.clone() };
    for (visitor, method, told) in [
        (Some(&plain), Method::GET, Ok("here false")),
        (Some(&admin), Method::GET, Ok("here false")),
        (Some(&admin), Method::POST, Ok("here true")),
        (Some(&plain), Method::POST, Err("unauthorized")),
        (None, Method::GET, Err("no_caller")),
        (None, Method::POST, Err("no_caller")),
    ] {
        let response = answered(&router, visitor, method, "/").await;
        let failure = response.extensions().get::<Failure>().map(Failure::code);
        assert_eq!(failure, told.err());
        if let Ok(told) = told {
            let bytes = to_bytes(response.into_body(), 1_024).await.unwrap();
            assert_eq!(bytes, told);
        }
    }
    assembled.stopper().stop().await;
}
