//! `/api/v1/sinks`: where events go, how far each sink came, its log of deliveries, an event sent
//! once more, a sink that is gone resumed, and one that is not configured any more forgotten.

use crate::streams::feed::after_row;
use axum::Json;
use axum::http::StatusCode;
use edge::problem::{Failure, Result};
use edge::request::cursors::Purpose;
use edge::request::pages::{PageQuery, paged};
use edge::request::params::{Params, PathName, TwoPathNames, no_such, not_found, page};
use edge::request::server_state::{Administrator, ServerState, SinkFacts, Who};
use engine::SinkState;
use engine::refusal::RefusalCode;
use kernel::contracts::sink::{DeliveryFilter, DeliveryRow, DeliveryStatus};
use kernel::tool::call::Caller;
use kernel::tool::rules::Pattern;
use serde::Deserialize;
use wire::rest;

/// `?status=&limit=&cursor=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DeliveryQuery {
    status: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// `GET /sinks`, by name.
pub(crate) async fn list(
    Who { server, caller }: Who,
    Params(query): Params<PageQuery>,
) -> Result<Json<rest::Page<rest::Sink>>> {
    let states = server.engine.feed().sinks(&caller).await?;
    let show = |state: SinkState| {
        let facts = server.sinks.iter().find(|facts| facts.name == state.name);
        sink(&server, &caller, facts, state)
    };
    let of = Purpose::of(&caller, "/api/v1/sinks");
    paged(&server, &of, states, query, |state| state.name.as_str(), show)
}

/// `GET /sinks/{name}/deliveries`, newest first.
pub(crate) async fn deliveries(
    Who { server, caller }: Who,
    PathName(name): PathName,
    Params(query): Params<DeliveryQuery>,
) -> Result<Json<rest::Page<rest::Delivery>>> {
    listed(&server, &caller, &name).await?;
    let status = query.status.as_deref().map(status).transpose()?;
    let filter = DeliveryFilter { sink: Some(name), status };
    let of = Purpose::of(&caller, "/api/v1/sinks/{name}/deliveries").filtered(&filter);
    let page = page(query.limit, server.cursors.start(&of, query.cursor)?, server.limits());
    let found = server.engine.feed().deliveries(&caller, &filter, &page).await?;
    let items = found.items.into_iter().map(delivery).collect();
    Ok(Json(rest::Page { items, next_cursor: server.cursors.next(&of, found.next_cursor) }))
}

/// `POST /sinks/{name}/deliveries/{event}/resend`: 200 either way, for it was tried.
pub(crate) async fn resend(
    Administrator { server, caller }: Administrator,
    TwoPathNames(name, event): TwoPathNames,
) -> Result<Json<rest::Delivery>> {
    let facts = configured(&server, &caller, &name).await?;
    Ok(Json(delivery(server.engine.feed().resend(&caller, &facts.name, &event).await?)))
}

/// `POST /sinks/{name}/resume`: also where it does not rest.
pub(crate) async fn resume(
    Administrator { server, caller }: Administrator,
    PathName(name): PathName,
) -> Result<Json<rest::Sink>> {
    let facts = configured(&server, &caller, &name).await?;
    let state = server.engine.feed().resume_sink(&caller, &facts.name).await?;
    Ok(Json(sink(&server, &caller, Some(facts), state)))
}

/// `DELETE /sinks/{name}`: only where it is not configured.
pub(crate) async fn forget(
    Administrator { server, caller }: Administrator,
    PathName(name): PathName,
) -> Result<StatusCode> {
    let Err(refusal) = server.engine.feed().forget_sink(&caller, &name).await else {
        return Ok(StatusCode::NO_CONTENT);
    };
    if refusal.code == RefusalCode::NotFound {
        listed(&server, &caller, &name).await?;
    }
    Err(refusal.into())
}

/// Refuses a name that no sink has, with the one that was meant.
async fn listed(server: &ServerState, caller: &Caller, name: &str) -> Result<()> {
    let states = server.engine.feed().sinks(caller).await?;
    if states.iter().any(|state| state.name == name) {
        return Ok(());
    }
    let names = states.iter().map(|state| state.name.as_str());
    Err(not_found("sink", name, names, "`GET /api/v1/sinks` lists them"))
}

/// What is configured of the sink of this name, if it is. One of another realm is like one that
/// does not exist.
async fn configured<'d>(
    server: &'d ServerState,
    caller: &Caller,
    name: &str,
) -> Result<&'d SinkFacts> {
    listed(server, caller, name).await?;
    if let Some(facts) = server.sinks.iter().find(|facts| facts.name == name) {
        return Ok(facts);
    }
    let message = format!("sink `{name}` is not configured: nothing is sent to it");
    Err(Failure::new(StatusCode::CONFLICT, "sink_unconfigured", message)
        .hint(format!("add `[events.sinks.{name}]` to the settings and start again")))
}

fn status(name: &str) -> Result<DeliveryStatus> {
    let names = rest::DeliveryStatus::ALL.map(rest::DeliveryStatus::name);
    DeliveryStatus::from_name(name).ok_or_else(|| no_such("status", name, &names))
}

fn sink(
    server: &ServerState,
    caller: &Caller,
    facts: Option<&SinkFacts>,
    state: SinkState,
) -> rest::Sink {
    let texts = |patterns: &Vec<Pattern>| -> Vec<String> {
        patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect()
    };
    rest::Sink {
        name: state.name,
        kind: facts.map_or(state.kind, |facts| facts.kind.to_owned()),
        status: match (state.configured, state.gone) {
            (false, _) => rest::SinkStatus::Unconfigured,
            (true, true) => rest::SinkStatus::Gone,
            (true, false) => rest::SinkStatus::Sending,
        },
        target: facts.and_then(|facts| facts.target.clone()),
        types: facts.and_then(|facts| facts.types.as_ref()).map(texts),
        place: after_row(server, caller, state.position),
        lag: state.lag,
        delivered: state.delivered,
        failed: state.failed,
        retrying: state.retrying,
        last_error: state.last_error,
    }
}

fn delivery(row: DeliveryRow) -> rest::Delivery {
    rest::Delivery {
        event: row.event,
        kind: row.kind,
        sink: row.sink,
        session: row.session.to_string(),
        seq: row.seq,
        status: match row.status {
            DeliveryStatus::Retrying => rest::DeliveryStatus::Retrying,
            DeliveryStatus::Delivered => rest::DeliveryStatus::Delivered,
            DeliveryStatus::Failed => rest::DeliveryStatus::Failed,
        },
        attempts: row.attempts,
        first_at: row.first_at.rfc3339(),
        last_at: row.last_at.rfc3339(),
        next_at: row.next_at.map(|at| at.rfc3339()),
        code: row.code,
        error: row.error,
    }
}
