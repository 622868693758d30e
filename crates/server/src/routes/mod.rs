//! The one table of routes: path, method, handler, act and description of each. A transport adds
//! its lines in a file below; everything else about it lives in its own module. The router, the
//! list of acts and `/openapi.json` follow from the table. Doors that speak a protocol of their own
//! stand beside it: OpenAPI cannot describe them.

mod route;
mod runs;
mod sessions;
mod sinks;
mod webhooks;
mod catalog;
mod agents;
mod pipelines;
mod upstreams;
mod threads;
mod plan_sessions;
mod identity;
mod operations;

use crate::a2a;
use crate::acts::{Right, guarded};
use crate::http;
use crate::http::pages::welcome::{self, Reader};
use crate::mcp;
use crate::mcp::door::Door;
use crate::openapi::{PLAIN, PROBLEM, Refusals, RouteSpec, THREAD, hash_of, with_pipelines};
use crate::problem::{Failure, Result};
use crate::request::answer::documents::Document;
use crate::request::doors::{Shared, Who};
use crate::request::frame::frame;
use crate::request::params::short;
use crate::rpc;
use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::header::{CACHE_CONTROL, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{any, post};
use engine::refusal::Refusal;
use kernel::definition::plan::mistake::meant;
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::canonical;
use route::Route;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use wire::a2a::GRPC_SERVICE;

/// Routes that tell their errors in one way.
struct Group {
    routes: &'static [Route],
    errors: Refusals,
}

const fn group(routes: &'static [Route], errors: Refusals) -> Group {
    Group { routes, errors }
}

const TABLE: &[Group] = &[
    group(runs::RUNS, PROBLEM),
    group(sessions::SESSIONS, PROBLEM),
    group(sinks::SINKS, PROBLEM),
    group(webhooks::WEBHOOKS, PROBLEM),
    group(runs::ASKS, PROBLEM),
    group(catalog::PLANS, PROBLEM),
    group(agents::AGENTS, PROBLEM),
    group(pipelines::PIPELINES, PROBLEM),
    group(pipelines::CASES, PLAIN),
    group(catalog::TOOLS, PROBLEM),
    group(upstreams::UPSTREAMS, PROBLEM),
    group(identity::KEYS, PROBLEM),
    group(identity::PRINCIPALS, PROBLEM),
    group(identity::REALMS, PROBLEM),
    group(identity::POLICIES, PROBLEM),
    group(identity::AUDIT, PROBLEM),
    group(identity::OAUTH, PROBLEM),
    group(operations::STORED, PROBLEM),
    group(agents::ENTITIES, PLAIN),
    group(threads::THREADS, THREAD),
    group(plan_sessions::PLAN_SESSIONS, PLAIN),
    group(operations::OPERATIONS, PROBLEM),
];

/// The doors beside the table, and who asks about them. `/mcp` says itself what it takes.
const PROTOCOLS: &[(&str, &str, Right)] = &[
    ("POST", "/mcp", Right::Open("each of its methods is an act of its own")),
    ("POST", "/rpc", Right::Engine(Act::Call)),
];

/// Doors that are open with a slash at the end as well, as their clients write them.
const WITH_SLASH: &str = "/api/agent/";

/// Where everything is ours, also what is not there yet.
const OURS: [&str; 7] =
    ["/api/", "/.well-known/", "/a2a", "/agent-card.json", "/ui", "/docs", GRPC_SERVICE];

fn table() -> impl Iterator<Item = &'static Route> {
    TABLE.iter().flat_map(|group| group.routes)
}

/// Method and path of every route, as the table lists them.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    table().map(|route| (route.method, route.path))
}

/// Method and path of every door and who asks about it. Pipelines' own routes are not among them:
/// the engine asks about each case.
pub fn rights() -> impl Iterator<Item = (&'static str, &'static str, Right)> {
    let routes = table().map(|route| (route.method, route.path, route.right));
    routes.chain(PROTOCOLS.iter().copied())
}

/// What the doors are, as OpenAPI 3.1.
pub fn document() -> Value {
    crate::openapi::document(TABLE.iter().flat_map(|group| {
        group.routes.iter().map(move |route| RouteSpec {
            method: route.method,
            path: route.path,
            operation: route.operation,
            errors: group.errors,
        })
    }))
}

/// `GET /openapi.json`, with the routes of the pipelines that its caller may read now.
async fn described(Who { doors, caller }: Who, headers: HeaderMap) -> Response {
    // The rest of it never changes, and takes a while to make.
    static FIXED: LazyLock<Value> = LazyLock::new(document);
    let pipelines = doors.engine.catalog().pipelines(&caller);
    let made = doors.descriptions.get(Some(hash_of(&pipelines)), || {
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

/// All doors in their frame, with those that code brings.
pub(crate) fn router(doors: Shared, door: Arc<Door>, more: Router) -> Router {
    let mut router = more.with_state::<Shared>(()).route("/rpc", post(rpc::serve));
    router = router.merge(a2a::door::routes());
    for route in table() {
        let handler = || guarded(&doors, route.right, (route.handler)());
        router = router.route(route.path, handler());
        if route.path.starts_with(WITH_SLASH) {
            router = router.route(&format!("{}/", route.path), handler());
        }
    }
    router
        .fallback(beside_the_table)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(doors.clone(), frame))
        // It is in the same frame by itself: most requests come here, and a layer has its price.
        .route("/mcp", any(mcp::transport::http::serve).with_state(door))
        .with_state(doors)
}

/// Why a pipeline cannot have this path, if so: a door of ours is there, or would hide it.
pub(crate) fn taken_by(path: &str) -> Option<String> {
    let bare = if path.len() > 1 { path.trim_end_matches('/') } else { path };
    if let Some((method, door, _)) = rights().find(|(_, door, _)| is_like(door, bare)) {
        return Some(format!("it is `{method} {door}`"));
    }
    let under = |ours: &&&str| {
        let rest = path.strip_prefix(ours.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    OURS.iter().find(under).map(|ours| format!("what is under `{ours}` is the server's own"))
}

/// Whether a request for this path reaches this door.
fn is_like(door: &str, path: &str) -> bool {
    let door: Vec<&str> = door.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    let same = |(door, given): (&&str, &&str)| door.starts_with('{') || door == given;
    door.len() == path.len() && door.iter().zip(&path).all(same)
}

/// A path that is not in the table may be a pipeline's. At the root strangers are told where they
/// are.
async fn beside_the_table(who: Result<Who>, request: Request) -> Result<Response> {
    let welcome = welcome::is_wanted(&request).then(|| welcome::is_browser(&request));
    let Who { doors, caller } = match (who, welcome) {
        (Err(_), Some(is_browser)) => return Ok(welcome::show(is_browser, Reader::Stranger)),
        (who, _) => who?,
    };
    match (doors.pipeline_at(&caller, request.uri().path()), welcome) {
        (Some(pipeline), _) => http::pipelines::serve(&doors, &caller, &pipeline, request).await,
        (None, Some(is_browser)) => Ok(welcome::show(is_browser, Reader::Caller)),
        (None, None) => Err(unknown_path(&doors, &caller, request.uri())),
    }
}

fn unknown_path(doors: &Shared, caller: &Caller, uri: &Uri) -> Failure {
    let path = short(uri.path());
    let known = rights().map(|(_, known, _)| known);
    let mut candidates: Vec<String> = known.filter_map(|known| like(known, &path)).collect();
    let pipelines = doors.engine.catalog().pipelines(caller);
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
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_mistyped_path_is_recognised() {
        let given = "/api/v1/seesions/a/history";
        let candidates: Vec<String> = routes().filter_map(|(_, path)| like(path, given)).collect();
        let hint = meant(given, candidates.iter().map(String::as_str));
        assert_eq!(hint.unwrap(), "did you mean `/api/v1/sessions/a/history`?");
    }

    #[test]
    fn no_pipeline_hides_a_door_of_ours() {
        for (path, told) in [
            ("/run", Some("it is `POST /run`")),
            ("/run/", Some("it is `POST /run`")),
            ("/sessions/x", Some("it is `GET /sessions/{id}`")),
            ("/mcp", Some("it is `POST /mcp`")),
            ("/health", Some("it is `GET /health`")),
            ("/api/v1/trades", Some("what is under `/api/` is the server's own")),
            ("/ui/x", Some("what is under `/ui` is the server's own")),
            ("/trade/failures", None),
            ("/uid", None),
            ("/runs", None),
            ("/", None),
        ] {
            assert_eq!(taken_by(path).as_deref(), told, "{path}");
        }
    }

    #[test]
    fn every_route_says_which_act_it_is_and_nothing_else_does() {
        let mut served: Vec<_> = routes().chain([("POST", "/mcp"), ("POST", "/rpc")]).collect();
        let mut named: Vec<_> = rights().map(|(method, path, _)| (method, path)).collect();
        served.sort_unstable();
        named.sort_unstable();
        assert_eq!(served, named);
    }

    #[test]
    fn every_route_is_described_once_with_its_parameters() {
        let parameters = crate::openapi::parameters();
        let mut ids = BTreeSet::new();
        for Route { path, operation, .. } in table() {
            assert!(ids.insert(operation.id), "`{}` is there twice", operation.id);
            let words = [operation.id, operation.summary];
            assert!(words.iter().all(|word| !word.is_empty()), "{path} says nothing");
            assert!(!operation.answers.is_empty(), "{path} answers nothing");
            let of_path = |name: &&&str| parameters[**name]["in"] == "path";
            let told: Vec<&str> = operation
                .parameters
                .iter()
                .filter(of_path)
                .map(|name| parameters[*name]["name"].as_str().unwrap())
                .collect();
            let parts = path.split('/').filter_map(|part| part.strip_prefix('{'));
            let written: Vec<&str> = parts.filter_map(|part| part.strip_suffix('}')).collect();
            assert_eq!(told, written, "{path}");
        }
    }

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(reference)) = map.get("$ref") {
                    found.insert(reference.clone());
                }
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_nothing_is_left_over() {
        let document = document();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for reference in &found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "`{reference}` leads nowhere");
        }
        // Schemas of events stand for themselves: they are the data inside of streams.
        let alone = [
            "StreamEnd", "FeedSnapshot", "FeedEvent", "ThreadDelta", "ThreadRestart", "ToolResult",
        ];
        for group in ["schemas", "parameters", "headers"] {
            for name in document["components"][group].as_object().unwrap().keys() {
                let reference = format!("#/components/{group}/{name}");
                let used = found.contains(&reference) || alone.contains(&name.as_str());
                assert!(used, "nobody refers to `{reference}`");
            }
        }
    }

    #[test]
    fn every_line_of_the_table_is_there_once() {
        let mut lines: Vec<_> = routes().collect();
        lines.sort_unstable();
        let count = lines.len();
        lines.dedup();
        assert_eq!(lines.len(), count);
    }
}
