//! Sessions of MCP: whose they are, and what a credential may send in one.

use crate::assemble::{assembled_in, assembled_with};
use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use kernel::tool::call::Caller;
use kernel::values::caller::{Scope, Scopes};
use mcp::McpState;
use mcp::http::answer;
use project::config::Config;
use std::sync::Arc;
use wire::mcp::HEADER_SESSION;

const INITIALIZE: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
    {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a"}}}"#;
const PING: &str = r#"{"jsonrpc": "2.0", "id": 2, "method": "ping"}"#;
/// What a client says to a question of ours.
const ACCEPTS: &str = r#"{"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}}"#;

/// What this caller is answered in this session.
async fn sent(
    mcp: &Arc<McpState>,
    caller: &Arc<Caller>,
    session: Option<&HeaderValue>,
    method: Method,
    body: &'static str,
) -> Response {
    let mut request = axum::http::Request::builder().method(method).uri("/mcp");
    if let Some(session) = session {
        request = request.header(HEADER_SESSION, session);
    }
    let request = request.body(Body::from(body)).unwrap();
    answer(mcp.clone(), caller.clone(), request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_the_caller_that_began_it() {
    let folder = tempfile::tempdir().unwrap();
    let assembled = assembled_in(folder.path()).await;
    let mcp = &assembled.mcp;
    let ann = Arc::new(Caller::new("here", "ann"));
    let begun = sent(mcp, &ann, None, Method::POST, INITIALIZE).await;
    assert_eq!(begun.status(), StatusCode::OK);
    let session = begun.headers().get(HEADER_SESSION).cloned();
    assert!(session.is_some());
    let strangers = [
        Caller::new("here", "bob"),
        Caller::new("there", "ann"),
        Caller { actor: Some("bot".into()), ..Caller::new("here", "ann") },
    ];
    for stranger in strangers.map(Arc::new) {
        for (method, body) in [(Method::POST, PING), (Method::DELETE, "")] {
            let refused = sent(mcp, &stranger, session.as_ref(), method, body).await;
            assert_eq!(refused.status(), StatusCode::NOT_FOUND, "{stranger:?}");
        }
    }
    let pinged = sent(mcp, &ann, session.as_ref(), Method::POST, PING).await;
    assert_eq!(pinged.status(), StatusCode::OK);
    let ended = sent(mcp, &ann, session.as_ref(), Method::DELETE, "").await;
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    assembled.stopper().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_begins_many_sessions_ends_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::parse("waypost.toml", "[limits]\nmcp_sessions_max = 2\n").unwrap();
    let assembled = assembled_with(folder.path(), config, None).await;
    let mcp = &assembled.mcp;
    let ann = Caller::new("here", "ann");
    let bob = Caller::new("here", "bob");
    let ann = Arc::new(ann);
    let bob = Arc::new(bob);
    let begun = sent(mcp, &ann, None, Method::POST, INITIALIZE).await;
    let session = begun.headers().get(HEADER_SESSION).cloned();
    for _ in 0..4 {
        let another = sent(mcp, &bob, None, Method::POST, INITIALIZE).await;
        assert_eq!(another.status(), StatusCode::OK);
    }
    let pinged = sent(mcp, &ann, session.as_ref(), Method::POST, PING).await;
    assert_eq!(pinged.status(), StatusCode::OK, "the first session is the oldest");
    assembled.stopper().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_only_reads_answers_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let assembled = assembled_in(folder.path()).await;
    let mcp = &assembled.mcp;
    let ann = Arc::new(Caller::new("here", "ann"));
    let begun = sent(mcp, &ann, None, Method::POST, INITIALIZE).await;
    let session = begun.headers().get(HEADER_SESSION).cloned();
    for (scopes, status) in [
        (&[Scope::Read] as &[Scope], StatusCode::FORBIDDEN),
        (&[Scope::Define], StatusCode::FORBIDDEN),
        (&[Scope::Use], StatusCode::ACCEPTED),
        (&[Scope::Answer], StatusCode::ACCEPTED),
    ] {
        let scopes: Scopes = scopes.iter().copied().collect();
        let narrow = Arc::new(Caller { scopes: Some(scopes), ..Caller::clone(&ann) });
        let told = sent(mcp, &narrow, session.as_ref(), Method::POST, ACCEPTS).await;
        assert_eq!(told.status(), status, "{scopes:?}");
    }
    assembled.stopper().stop().await;
}
