//! `/api/v1/sessions`: lists, one session, its history and its context; copies of it; old ones
//! removed.

use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::body::{JsonBody, OptionalBody};
use edge::request::cursors::Purpose;
use edge::request::params::{InSpace, Params, PathName, no_such, page, session_ref, short};
use edge::request::server_state::{Administrator, ServerState, Who};
use edge::views::rows;
use edge::views::threads;
use engine::{PruneReport, RefusalCode};
use futures::TryStreamExt;
use futures::future::try_join_all;
use kernel::contracts::{AskFilter, PageRequest, SessionFilter, SessionRef};
use kernel::definition::agent::talk_id;
use kernel::journal::projection::SessionRow;
use kernel::session::RunStatus;
use kernel::tool::call::Caller;
use kernel::values::ids::{AgentName, PlanId, SessionId, Space};
use serde::Deserialize;
use std::io;
use wire::conversations::RequestState;
use wire::rest;

/// Where in the body stood what the engine refuses.
fn fork_pointer(code: &RefusalCode) -> Option<&'static str> {
    matches!(code, RefusalCode::BadForkPoint | RefusalCode::ForkPointGone).then_some("/at")
}

/// What `status` says of a session that cannot be read, whatever its latest run is.
const PARKED: &str = "parked";

/// `?status=&plan=&agent=&space=&limit=&cursor=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ListQuery {
    status: Option<String>,
    plan: Option<String>,
    agent: Option<String>,
    space: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// `?space=&limit=&cursor=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HistoryQuery {
    space: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// `GET /sessions`, newest first.
pub(crate) async fn list(
    Who { server, caller }: Who,
    Params(query): Params<ListQuery>,
) -> Result<Json<rest::Page<rest::Session>>> {
    let plan = match (query.plan, query.agent) {
        (Some(_), Some(_)) => {
            return Err(Failure::bad_request("bad_query", "both `plan` and `agent` are named")
                .hint("leave one out"));
        }
        (plan, None) => plan.map(PlanId::from),
        (None, Some(agent)) => Some(talk_id(&AgentName::from(agent))),
    };
    let parked = query.status.as_deref() == Some(PARKED);
    let status = query.status.as_deref().filter(|_| !parked).map(status).transpose()?;
    let space = query.space.map(Space::from);
    let filter = SessionFilter { status, plan, space, parked, blob: None };
    let of = Purpose::of(&caller, "/api/v1/sessions").filtered(&filter);
    let page = page(query.limit, server.cursors.start(&of, query.cursor)?, server.limits());
    let found = server.engine.sessions().list(&caller, &filter, &page).await?;
    let items = found.items.into_iter().map(|row| session(&server, &caller, row));
    let next_cursor = server.cursors.next(&of, found.next_cursor);
    Ok(Json(rest::Page { items: try_join_all(items).await?, next_cursor }))
}

/// `GET /sessions/{id}`.
pub(crate) async fn show(
    Who { server, caller }: Who,
    PathName(name): PathName,
    Params(query): Params<InSpace>,
) -> Result<Json<rest::Session>> {
    let wanted = session_ref(&name, query.space.as_deref());
    let row = server.engine.sessions().get(&caller, &wanted).await?;
    let conversation = match row.key.space == Space::thread() {
        true => match conversation(&server, &caller, &row).await {
            // Its row can be read, and says why the rest cannot.
            Err(_) if row.parked.is_some() => None,
            found => Some(found?),
        },
        false => None,
    };
    let session = session(&server, &caller, row).await?;
    Ok(Json(rest::Session { request_state: conversation, ..session }))
}

/// The conversation of a thread.
async fn conversation(
    server: &ServerState,
    caller: &Caller,
    row: &SessionRow,
) -> Result<RequestState> {
    let engine = &server.engine;
    let transcript = engine.sessions().transcript(caller, &SessionRef::Id(row.id)).await?;
    let Some(run) = row.run else { return Ok(threads::request_state(transcript, None, None)) };
    let report = engine.runs().report(caller, run).await?;
    let filter = AskFilter {
        run: Some(run),
        kind: Some("approve".to_owned()),
        status: Some("decided".to_owned()),
        ..AskFilter::default()
    };
    let page = PageRequest { cursor: None, limit: server.limits().page_items_max };
    let decided = engine.asks().list(caller, &filter, &page).await?.items;
    Ok(threads::request_state(transcript, Some(&report), decided.last()))
}

/// `GET /sessions/{id}/history`, newest first.
pub(crate) async fn history(
    Who { server, caller }: Who,
    PathName(name): PathName,
    Params(query): Params<HistoryQuery>,
) -> Result<Json<rest::Page<rest::HistoryEntry>>> {
    let wanted = session_ref(&name, query.space.as_deref());
    let of = Purpose::history(&caller, &wanted);
    let page = page(query.limit, server.cursors.start(&of, query.cursor)?, server.limits());
    let found = server.engine.sessions().history(&caller, &wanted, &page).await?;
    let items = found.items.into_iter().map(rows::history_entry).collect();
    Ok(Json(rest::Page { items, next_cursor: server.cursors.next(&of, found.next_cursor) }))
}

/// `GET /sessions/{id}/context`.
pub(crate) async fn context(
    Who { server, caller }: Who,
    PathName(name): PathName,
    Params(query): Params<InSpace>,
) -> Result<Json<rest::ContextAnswer>> {
    let wanted = session_ref(&name, query.space.as_deref());
    let inspection = server.engine.sessions().inspect(&caller, &wanted).await?;
    Ok(Json(rest::ContextAnswer { context: inspection.context }))
}

/// `?space=&unsent=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RemoveQuery {
    space: Option<String>,
    unsent: Option<String>,
}

/// `DELETE /sessions/{id}`.
pub(crate) async fn remove(
    Who { server, caller }: Who,
    PathName(name): PathName,
    Params(query): Params<RemoveQuery>,
) -> Result<StatusCode> {
    let wanted = session_ref(&name, query.space.as_deref());
    match query.unsent.as_deref() {
        None => server.engine.sessions().remove(&caller, &wanted).await?,
        Some("drop") => server.engine.sessions().remove_unsent(&caller, &wanted).await?,
        Some(other) => {
            let message = format!("`unsent` cannot be `{}`", short(other));
            let hint = "it is `drop`, to remove events that were not sent; leave it out to wait";
            return Err(Failure::bad_request("bad_query", message).hint(hint));
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /sessions/prune`: removes the realm's old sessions that are over, and old runs of others.
pub(crate) async fn prune(
    Administrator { server, caller }: Administrator,
    JsonBody(body): JsonBody<rest::PruneBody>,
) -> Result<Json<rest::PruneAnswer>> {
    let PruneReport { sessions, runs, rows } =
        server.engine.admin().prune(&caller, body.older_than_ms).await?;
    Ok(Json(rest::PruneAnswer { sessions, runs, rows }))
}

/// `POST /sessions/{id}/fork`: a new session that begins as a copy.
pub(crate) async fn fork(
    Who { server, caller }: Who,
    PathName(name): PathName,
    Params(query): Params<InSpace>,
    OptionalBody(body): OptionalBody<rest::ForkBody>,
) -> Result<Response> {
    let wanted = session_ref(&name, query.space.as_deref());
    let row = server.engine.sessions().fork(&caller, &wanted, body.at).await;
    let row = row.map_err(|refusal| Failure::in_body(refusal, fork_pointer))?;
    let location = [(LOCATION, format!("/api/v1/sessions/{}", row.id))];
    let session = Json(session(&server, &caller, row).await?);
    Ok((StatusCode::CREATED, location, session).into_response())
}

/// `GET /sessions/{id}/export`: the session with its whole journal and history.
pub(crate) async fn export(
    Who { server, caller }: Who,
    PathName(name): PathName,
    Params(query): Params<InSpace>,
) -> Result<Response> {
    let wanted = session_ref(&name, query.space.as_deref());
    let pieces = server.engine.sessions().export(&caller, &wanted).await?;
    // The answer has begun: one that breaks off is not taken for a whole one.
    let pieces = pieces.map_err(move |refusal| {
        tracing::warn!(session = %name, error = %refusal.message, "an export broke off");
        io::Error::other(refusal.message)
    });
    let kind = [(CONTENT_TYPE, "application/json")];
    Ok((kind, Body::from_stream(pieces)).into_response())
}

/// A session with the ids of its open asks.
pub(super) async fn session(
    server: &ServerState,
    caller: &Caller,
    row: SessionRow,
) -> Result<rest::Session> {
    // Asks are withdrawn when a run ends, so most sessions need no second look.
    let ids = match row.run.is_some() && !row.status.is_over() {
        true => open_asks(server, caller, Some(row.id)).await?,
        false => Vec::new(),
    };
    Ok(rows::session(row, ids))
}

/// The ids of the open asks of a session, or of all that the caller sees.
pub(super) async fn open_asks(
    server: &ServerState,
    caller: &Caller,
    session: Option<SessionId>,
) -> Result<Vec<String>> {
    let filter = AskFilter { session, status: Some("open".to_owned()), ..AskFilter::default() };
    let page = PageRequest { cursor: None, limit: server.limits().page_items_max };
    let asks = server.engine.asks().list(caller, &filter, &page).await?;
    Ok(asks.items.iter().map(|ask| ask.row.ask.id.to_string()).collect())
}

fn status(name: &str) -> Result<RunStatus> {
    RunStatus::from_name(name).ok_or_else(|| {
        let names = RunStatus::ALL.iter().map(|status| status.name()).chain([PARKED]);
        no_such("status", name, &names.collect::<Vec<&str>>())
    })
}
