//! The one table of routes. A transport adds its lines here; everything else about it lives in its
//! own file. Doors that speak a protocol of their own stand beside the table: OpenAPI cannot
//! describe them.

use crate::acts::guarded;
use crate::doors::{Shared, Who};
use crate::error::Failure;
use crate::frame::frame;
use crate::http::{
    agents, asks, backup, blobs, events, feed, logins, ops, pipelines, plans, providers, runs,
    seed001, seed002, seed004, sessions, sinks, tools, upstreams,
};
use crate::mcp;
use crate::mcp::door::Door;
use crate::params::short;
use crate::rpc;
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{MethodRouter, any, delete, get, post, put};
use engine::refusal::Refusal;
use kernel::call::Caller;
use kernel::plan::mistake::meant;
use std::sync::Arc;

/// One line of the table.
struct Route {
    method: &'static str,
    path: &'static str,
    handler: fn() -> MethodRouter<Shared>,
}

const fn route(
    method: &'static str,
    path: &'static str,
    handler: fn() -> MethodRouter<Shared>,
) -> Route {
    Route { method, path, handler }
}

const TABLE: &[Route] = &[
    route("POST", "/api/v1/runs", || post(runs::start)),
    route("GET", "/api/v1/runs/{id}", || get(runs::show)),
    route("POST", "/api/v1/runs/{id}/cancel", || post(runs::cancel)),
    route("POST", "/api/v1/runs/{id}/pause", || post(runs::pause)),
    route("POST", "/api/v1/runs/{id}/continue", || post(runs::go_on)),
    route("POST", "/api/v1/runs/{id}/retry", || post(runs::retry)),
    route("GET", "/api/v1/sessions", || get(sessions::list)),
    route("POST", "/api/v1/sessions/prune", || post(sessions::prune)),
    route("GET", "/api/v1/sessions/{id}", || get(sessions::show)),
    route("DELETE", "/api/v1/sessions/{id}", || delete(sessions::remove)),
    route("GET", "/api/v1/sessions/{id}/history", || get(sessions::history)),
    route("GET", "/api/v1/sessions/{id}/context", || get(sessions::context)),
    route("GET", "/api/v1/sessions/{id}/events", || get(events::follow)),
    route("POST", "/api/v1/sessions/{id}/fork", || post(sessions::fork)),
    route("GET", "/api/v1/sessions/{id}/export", || get(sessions::export)),
    route("GET", "/api/v1/events", || get(feed::follow)),
    route("GET", "/api/v1/sinks", || get(sinks::list)),
    route("DELETE", "/api/v1/sinks/{name}", || delete(sinks::forget)),
    route("GET", "/api/v1/sinks/{name}/deliveries", || get(sinks::deliveries)),
    route("POST", "/api/v1/sinks/{name}/deliveries/{event}/resend", || post(sinks::resend)),
    route("POST", "/api/v1/sinks/{name}/resume", || post(sinks::resume)),
    route("GET", "/api/v1/asks", || get(asks::list)),
    route("GET", "/api/v1/asks/{id}", || get(asks::show)),
    route("POST", "/api/v1/asks/{id}", || post(asks::reply)),
    route("GET", "/api/v1/plans", || get(plans::list)),
    route("GET", "/api/v1/plans/{id}", || get(plans::show)),
    route("PUT", "/api/v1/plans/{id}", || put(plans::store)),
    route("POST", "/api/v1/plans/validate", || post(plans::validate)),
    route("GET", "/api/v1/agents", || get(agents::list)),
    route("GET", "/api/v1/agents/{refName}", || get(agents::show)),
    route("PUT", "/api/v1/agents/{refName}", || put(agents::store)),
    route("DELETE", "/api/v1/agents/{refName}", || delete(agents::remove)),
    route("GET", "/api/v1/pipelines", || get(pipelines::list)),
    route("GET", "/api/v1/pipelines/{name}", || get(pipelines::show)),
    route("GET", "/api/v1/pipelines/{name}/stats", || get(pipelines::stats)),
    route("POST", "/api/v1/pipelines/{name}/cases", || post(pipelines::submit)),
    route("GET", "/api/v1/tools", || get(tools::list)),
    route("GET", "/api/v1/tools/{name}", || get(tools::show)),
    route("POST", "/api/v1/tools/{name}/call", || post(tools::call)),
    route("GET", "/api/v1/upstreams", || get(upstreams::list)),
    route("GET", "/api/v1/upstreams/{name}", || get(upstreams::show)),
    route("POST", "/api/v1/upstreams/{name}/check", || post(upstreams::check)),
    route("POST", "/api/v1/upstreams/{name}/login", || post(logins::begin)),
    route("DELETE", "/api/v1/upstreams/{name}/login", || delete(logins::end)),
    route("GET", "/oauth/callback", || get(logins::callback)),
    route("GET", "/oauth/client.json", || get(logins::client)),
    route("GET", "/api/v1/providers/{refName}", || get(providers::show)),
    route("PUT", "/api/v1/providers/{refName}", || put(providers::store)),
    route("DELETE", "/api/v1/providers/{refName}", || delete(providers::remove)),
    route("GET", "/api/v1/blobs/{hash}", || get(blobs::show)),
    route("POST", "/api/v1/backup", || post(backup::write)),
    route("GET", "/api/agent/config/list", || get(seed002::list)),
    route("GET", "/api/agent/config/{refName}", || get(seed002::show)),
    route("GET", "/api/agent/config/id/{id}", || get(seed002::show_by_id)),
    route("POST", "/api/agent/config", || post(seed002::save)),
    route("DELETE", "/api/agent/config/{refName}", || delete(seed002::remove)),
    route("DELETE", "/api/agent/config/id/{id}", || delete(seed002::remove_by_id)),
    route("POST", "/run", || post(seed001::run)),
    route("POST", "/resume", || post(seed001::resume)),
    route("GET", "/health-check", || get(seed001::health)),
    route("POST", "/sessions", || post(seed004::create)),
    route("GET", "/sessions/{id}", || get(seed004::show)),
    route("POST", "/sessions/{id}/execute-plan", || post(seed004::execute)),
    route("POST", "/sessions/{id}/resume", || post(seed004::resume)),
    route("GET", "/capabilities", || get(seed004::capabilities)),
    route("POST", "/capabilities/discover", || post(seed004::discover)),
    route("POST", "/admin/capabilities", || post(seed004::register)),
    route("GET", "/livez", || get(ops::livez)),
    route("GET", "/readyz", || get(ops::readyz)),
    route("GET", "/health", || get(ops::health)),
    route("GET", "/metrics", || get(ops::metrics)),
    route("GET", "/openapi.json", || get(ops::openapi)),
];

/// The doors beside the table, for hints. `/mcp` says itself what it takes.
const PROTOCOLS: &[(&str, &str)] = &[("POST", "/mcp"), ("POST", "/rpc")];

/// Doors that are open with a slash at the end as well, as their clients write them.
const WITH_SLASH: &str = "/api/agent/";

/// Where everything is ours, also what is not there yet.
const OURS: [&str; 5] = ["/api/", "/.well-known/", "/a2a", "/ui", "/docs"];

/// Method and path of every route, as the table lists them.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.iter().map(|route| (route.method, route.path))
}

/// All doors in their frame, with those that code brings.
pub(crate) fn router(doors: Shared, door: Arc<Door>, more: Router) -> Router {
    let mut router = more.with_state::<Shared>(()).route("/rpc", post(rpc::serve));
    for route in TABLE {
        let handler = || guarded(&doors, route.method, route.path, (route.handler)());
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
        .route("/mcp", any(mcp::http::serve).with_state(door))
        .with_state(doors)
}

/// Why a pipeline cannot have this path, if so: a door of ours is there, or would hide it.
pub(crate) fn taken_by(path: &str) -> Option<String> {
    let bare = if path.len() > 1 { path.trim_end_matches('/') } else { path };
    let doors = TABLE.iter().map(|route| (route.method, route.path));
    let is_there = |(_, door): &(&str, &str)| is_like(door, bare);
    if let Some((method, door)) = doors.chain(PROTOCOLS.iter().copied()).find(is_there) {
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
    let (door, path): (Vec<&str>, Vec<&str>) =
        (door.split('/').collect(), path.split('/').collect());
    let same = |(door, given): (&&str, &&str)| door.starts_with('{') || door == given;
    door.len() == path.len() && door.iter().zip(&path).all(same)
}

/// A path that is not in the table may be a pipeline's.
async fn beside_the_table(
    State(doors): State<Shared>,
    Who(caller): Who,
    request: Request,
) -> Result<Response, Failure> {
    match doors.pipeline_at(&caller, request.uri().path()) {
        Some(pipeline) => pipelines::serve(&doors, &caller, &pipeline, request).await,
        None => Err(unknown_path(&doors, &caller, request.uri())),
    }
}

fn unknown_path(doors: &Shared, caller: &Caller, uri: &Uri) -> Failure {
    let path = short(uri.path());
    let beside = PROTOCOLS.iter().map(|(_, path)| *path);
    let known = TABLE.iter().map(|route| route.path).chain(beside);
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
    let known: Vec<&str> = TABLE
        .iter()
        .map(|route| (route.method, route.path))
        .chain(PROTOCOLS.iter().copied())
        .filter(|(_, path)| Some(*path) == matched)
        .map(|(method, _)| method)
        .collect();
    let (method, path) = (request.method(), short(request.uri().path()));
    let message = format!("`{method}` is not understood at `{path}`");
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
        .hint(format!("use {}", known.join(" or ")))
}

/// A known path with the names of the given one in it, if both have as many parts.
fn like(known: &str, given: &str) -> Option<String> {
    let (known, given): (Vec<&str>, Vec<&str>) =
        (known.split('/').collect(), given.split('/').collect());
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

    #[test]
    fn a_mistyped_path_is_recognised() {
        let given = "/api/v1/seesions/a/history";
        let candidates: Vec<String> =
            TABLE.iter().filter_map(|route| like(route.path, given)).collect();
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
    fn every_route_is_described_and_nothing_else() {
        let mut served: Vec<_> = routes().collect();
        let mut described: Vec<_> = crate::openapi::operations().collect();
        served.sort_unstable();
        described.sort_unstable();
        assert_eq!(served, described);
    }

    #[test]
    fn every_route_says_which_act_it_is_and_nothing_else_does() {
        let mut served: Vec<_> = routes().chain(PROTOCOLS.iter().copied()).collect();
        let mut named: Vec<_> =
            crate::acts::DOORS.iter().map(|(method, path, _)| (*method, *path)).collect();
        served.sort_unstable();
        named.sort_unstable();
        assert_eq!(served, named);
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
