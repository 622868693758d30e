//! Operations: `/livez`, `/readyz`, `/health`, `/metrics`.

use super::readings::Reading;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use edge::instance::{CHALLENGE, CHALLENGE_CHARS_MAX, proof};
use edge::problem::{Failure, Result};
use edge::request::auth::{Visitor, asks_for_more};
use edge::request::server_state::{Shared, Who};
use kernel::identity::roles::Role;
use prometheus_client::encoding::text;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use wire::rest::{Health, Instance};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The roles that read what the server says of itself.
const READERS: [Role; 3] = [Role::Viewer, Role::Operator, Role::Admin];

/// `GET /livez`: the process answers, and a client that sends a challenge learns which one it is.
pub(crate) async fn livez(
    State(server): State<Shared>,
    visitor: Option<Extension<Visitor>>,
    headers: HeaderMap,
) -> Json<Health> {
    let challenge = headers.get(CHALLENGE).and_then(|value| value.to_str().ok());
    let is_short = |text: &&str| (1..=CHALLENGE_CHARS_MAX).contains(&text.len());
    let instance = challenge.filter(is_short).map(|challenge| {
        // A stranger behind a proxy has no business with processes and folders of this machine.
        let is_told = visitor.is_some_and(|Extension(visitor)| {
            visitor.administers() && visitor.is_everywhere(&[Role::Admin])
        });
        Instance {
            proof: proof(&server.token, challenge),
            pid: is_told.then(std::process::id),
            data: is_told.then(|| server.data.display().to_string()),
        }
    });
    Json(Health { instance, ..is("live") })
}

/// `GET /readyz`: work can be taken. With `?verbose`, who reads in all realms learns whether what
/// the files say is served, and what of it is not: they are every realm's.
pub(crate) async fn readyz(
    State(server): State<Shared>,
    visitor: Option<Extension<Visitor>>,
    uri: Uri,
) -> Result<Json<Health>> {
    let reads_all = |visitor: &Extension<Visitor>| visitor.is_everywhere(&READERS);
    let is_told = asks_for_more(&uri) && visitor.as_ref().is_some_and(reads_all);
    let unserved = is_told.then(|| server.reloads.unserved());
    let reload_refused = unserved.as_ref().map(|unserved| !unserved.is_empty());
    let reload_refused_of = unserved.unwrap_or_default();
    match server.engine.healthy() {
        Ok(()) => Ok(Json(Health { reload_refused, reload_refused_of, ..is("ready") })),
        // Whatever the reason, a load balancer must hear 503.
        Err(refusal) => Err(Failure::with_status(StatusCode::SERVICE_UNAVAILABLE, refusal)),
    }
}

/// `GET /health`: the same as `/livez`, in the words that clients of pipelines know.
pub async fn health() -> Json<Health> {
    Json(is("UP"))
}

fn is(status: &str) -> Health {
    Health {
        status: status.to_owned(),
        instance: None,
        reload_refused: None,
        reload_refused_of: Vec::new(),
    }
}

/// `GET /metrics`: what is counted over all realms, with names in them, is for who reads in all of
/// them. All others see the states of their own realm.
pub(crate) async fn metrics(Who { server, caller }: Who, visitor: Visitor) -> Result<Response> {
    let is_whole = visitor.is_everywhere(&READERS);
    let reading = Reading::of(&server, &caller, is_whole).await;
    let mut registry = Registry::with_prefix("waypost");
    registry.register("build", "What is running", Info::new(vec![("version", VERSION)]));
    if is_whole {
        server.telemetry.register(&mut registry);
    }
    registry.register_collector(Box::new(reading));
    let mut body = String::new();
    match text::encode(&mut body, &registry) {
        Ok(()) => Ok(([(CONTENT_TYPE, METRICS_TYPE)], body).into_response()),
        Err(error) => Err(Failure::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "metrics_failed",
            format!("the metrics cannot be written: {error}"),
        )),
    }
}
