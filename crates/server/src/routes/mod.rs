//! All routes of a server, of all endpoints: the router, the list of acts and `/openapi.json`
//! follow from their tables. Protocols stand beside the tables: OpenAPI cannot describe them.

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CACHE_CONTROL, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{any, get};
use edge::acts::Right;
use edge::openapi::{Content, PROBLEM, RouteSpec, answer, hash_of, with_pipelines};
use edge::problem::{Failure, Result};
use edge::request::answer::documents::{Document, Documents};
use edge::request::frame::frame;
use edge::request::params::short;
use edge::request::server_state::{EndpointState, Shared, Who};
use edge::routes::{Group, Route, group, specs};
use engine::refusal::Refusal;
use kernel::definition::plan::mistake::meant;
use kernel::tool::call::Caller;
use kernel::values::canonical;
use kernel::values::ids::ContentHash;
use mcp::McpState;
use rest::pages::welcome::{self, Reader};
use serde_json::Value;
use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use wire::a2a::GRPC_SERVICE;

/// `/openapi.json`, by the hash of the pipelines in it.
struct Description {
    server: Shared,
    made: Documents<ContentHash>,
}

impl EndpointState for Description {
    fn server(&self) -> &Shared {
        &self.server
    }
}

/// The route that describes all others.
const DESCRIPTION: &[Group<Arc<Description>>] = &[group(
    &[Route::get(
        "/openapi.json",
        || get(described),
        Right::Open("the endpoints, and the pipelines that its caller may read"),
    )
    .says("openapi", "This document")
    .answers(&[
        answer(200, Content::AnyJson, "the endpoints as OpenAPI 3.1").headers(&["ETag"]),
        answer(304, Content::None, "the document that `If-None-Match` names is the newest"),
    ])],
    PROBLEM,
)];

/// `/mcp` says itself what it takes.
const MCP: (&str, &str, Right) =
    ("POST", "/mcp", Right::Open("each of its methods is an act of its own"));

/// Where everything is ours, also what is not there yet.
const OURS: [&str; 7] =
    ["/api/", "/.well-known/", "/a2a", "/agent-card.json", "/ui", "/docs", GRPC_SERVICE];

fn table() -> impl Iterator<Item = RouteSpec> {
    specs(rest::TABLE)
        .chain(specs(compat::TABLE))
        .chain(specs(a2a::TABLE))
        .chain(specs(DESCRIPTION))
}

/// Method and path of every route, as the tables list them.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    table().map(|route| (route.method, route.path))
}

/// Method and path of every route and who asks about it. Pipelines' own routes are not among them:
/// the engine asks about each case.
pub fn rights() -> impl Iterator<Item = (&'static str, &'static str, Right)> {
    table().map(|route| (route.method, route.path, route.right)).chain([MCP, compat::RPC])
}

/// What the routes are, as OpenAPI 3.1.
pub fn document() -> Value {
    edge::openapi::document(table())
}

/// `GET /openapi.json`, with the routes of the pipelines that its caller may read now.
async fn described(
    State(description): State<Arc<Description>>,
    Who { server, caller }: Who,
    headers: HeaderMap,
) -> Response {
    // The rest of it never changes, and takes a while to make.
    static FIXED: LazyLock<Value> = LazyLock::new(document);
    let pipelines = server.engine.catalog().pipelines(&caller);
    let made = description.made.get(Some(hash_of(&pipelines)), || {
        let document = with_pipelines(FIXED.clone(), &pipelines);
        Ok::<_, Infallible>(Document::new(&document, canonical::digest(&document).as_str()))
    });
    let Ok(document) = made;
    let mut response = document.answer(&headers);
    // Callers may see different pipelines, and those of one can change: it is asked for each time.
    let answer = response.headers_mut();
    answer.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    answer.insert(VARY, HeaderValue::from_static("Authorization, X-Api-Key"));
    response
}

/// All endpoints in their frame, with the routes that code brings.
pub(crate) fn router(
    server: &Shared,
    a2a: a2a::Shared,
    mcp: Arc<McpState>,
    more: Router,
) -> Router {
    let description = Description { server: server.clone(), made: Documents::default() };
    let described = edge::routes::router(DESCRIPTION, |_, handler| handler);
    more.with_state::<Shared>(())
        .merge(rest::router(server))
        .merge(compat::router())
        .merge(a2a::router().with_state(a2a))
        .merge(described.with_state(Arc::new(description)))
        .fallback(beside_the_tables)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(server.clone(), frame))
        // It is in the same frame by itself: most requests come here, and a layer has its price.
        .route(MCP.1, any(mcp::http::serve).with_state(mcp))
        .with_state(server.clone())
}

/// Why a pipeline cannot have this path, if so: a route of ours is there, or would hide it.
pub(crate) fn taken_by(path: &str) -> Option<String> {
    let bare = if path.len() > 1 { path.trim_end_matches('/') } else { path };
    if let Some((method, route, _)) = rights().find(|(_, route, _)| is_like(route, bare)) {
        return Some(format!("it is `{method} {route}`"));
    }
    let under = |ours: &&&str| {
        let rest = path.strip_prefix(ours.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    OURS.iter().find(under).map(|ours| format!("what is under `{ours}` is the server's own"))
}

/// Whether a request for this path reaches this route.
fn is_like(route: &str, path: &str) -> bool {
    let route: Vec<&str> = route.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    let same = |(route, given): (&&str, &&str)| route.starts_with('{') || route == given;
    route.len() == path.len() && route.iter().zip(&path).all(same)
}

/// A path that is in no table may be a pipeline's. At the root strangers are told where they
/// are.
async fn beside_the_tables(who: Result<Who>, request: Request) -> Result<Response> {
    let welcome = welcome::is_wanted(&request).then(|| welcome::is_browser(&request));
    let Who { server, caller } = match (who, welcome) {
        (Err(_), Some(is_browser)) => return Ok(welcome::show(is_browser, Reader::Stranger)),
        (who, _) => who?,
    };
    match (server.pipeline_at(&caller, request.uri().path()), welcome) {
        (Some(pipeline), _) => rest::pipelines::serve(&server, &caller, &pipeline, request).await,
        (None, Some(is_browser)) => Ok(welcome::show(is_browser, Reader::Caller)),
        (None, None) => Err(unknown_path(&server, &caller, request.uri())),
    }
}

fn unknown_path(server: &Shared, caller: &Caller, uri: &Uri) -> Failure {
    let path = short(uri.path());
    let known = rights().map(|(_, known, _)| known);
    let mut candidates: Vec<String> = known.filter_map(|known| like(known, &path)).collect();
    let pipelines = server.engine.catalog().pipelines(caller);
    candidates.extend(pipelines.iter().map(|pipeline| pipeline.route.clone()));
    let hint = if path.starts_with("/api/v1/plans/") || path.starts_with("/api/v1/tools/") {
        Some("percent-encode the name: `/` is `%2F`".to_owned())
    } else {
        meant(&path, candidates.iter().map(String::as_str))
    };
    let hint = hint.unwrap_or_else(|| "`GET /openapi.json` lists the routes".to_owned());
    Failure::from(Refusal::not_found("route", &path).hint(hint))
}

/// A path that is there, asked in a way that it does not know.
pub(crate) async fn wrong_method(request: Request) -> Failure {
    let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let matched = matched.map(|path| path.trim_end_matches('/'));
    let known = rights().filter(|(_, path, _)| Some(*path) == matched);
    let known: Vec<&str> = known.map(|(method, _, _)| method).collect();
    let method = request.method();
    let path = short(request.uri().path());
    let message = format!("`{method}` is not understood at `{path}`");
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
        .hint(format!("use {}", known.join(" or ")))
}

/// A known path with the names of the given one in it, if both have as many parts.
fn like(known: &str, given: &str) -> Option<String> {
    let known: Vec<&str> = known.split('/').collect();
    let given: Vec<&str> = given.split('/').collect();
    if known.len() != given.len() {
        return None;
    }
    let parts = known.iter().zip(&given);
    let parts: Vec<&str> =
        parts.map(|(known, given)| if known.starts_with('{') { *given } else { *known }).collect();
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests;
