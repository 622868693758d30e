//! `/api/v1/sessions/{id}/events`: one session's journal as server-sent events. A `snapshot` of the
//! session first, then each event under its sequence, `end` when the latest run is over. What is
//! sent is durable: the engine reads it from the store.

use crate::sessions;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event;
use edge::problem::{Failure, Result};
use edge::request::params::{Params, PathName, session_ref};
use edge::request::server_state::{ServerState, Who};
use edge::stream::{
    LAST_EVENT_ID, RETRY, Source, SourceItem, answer, broken_off, named_event, permit,
};
use edge::views::rows;
use engine::{SessionStream, SessionUpdate};
use kernel::journal::projection::SessionRow;
use kernel::tool::call::Caller;
use serde::Deserialize;
use std::sync::Arc;
use wire::rest;

/// `?space=&after=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StreamQuery {
    space: Option<String>,
    after: Option<u64>,
}

/// `GET /sessions/{id}/events`.
pub(crate) async fn follow(
    Who { server, caller }: Who,
    PathName(name): PathName,
    Params(query): Params<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    let after = after(&query, &headers)?;
    let permit = permit(&server, &caller)?;
    let wanted = session_ref(&name, query.space.as_deref());
    // A place that is not kept any more is refused before the answer, not in a stream.
    let (row, events) = server.engine.sessions().follow(&caller, &wanted, after).await?;
    Ok(answer(server, FollowedSession { caller, begins: Some(row), events }, permit))
}

/// A client that comes back says in the header what it saw last; that is later than what its URL
/// once said.
fn after(query: &StreamQuery, headers: &HeaderMap) -> Result<u64> {
    let Some(last) = headers.get(LAST_EVENT_ID) else {
        return Ok(query.after.unwrap_or_default());
    };
    let text = last.to_str().unwrap_or_default();
    text.parse().map_err(|_| {
        Failure::bad_request(
            "bad_last_event_id",
            "`Last-Event-ID` is not a sequence of this stream",
        )
        .hint("send the `id` of the last event, or leave it out")
    })
}

/// A session that one client follows.
struct FollowedSession {
    caller: Arc<Caller>,
    /// The session as the stream began, until it was shown.
    begins: Option<SessionRow>,
    events: SessionStream,
}

impl Source for FollowedSession {
    type Event = Event;

    async fn first(&mut self, server: &ServerState) -> Result<Option<Event>> {
        let Some(row) = self.begins.take() else { return Ok(None) };
        let session = sessions::session(server, &self.caller, row).await?;
        Ok(Some(named_event("snapshot", &session).retry(RETRY)))
    }

    async fn try_next(&mut self, _server: &ServerState) -> Result<SourceItem> {
        let row = match self.events.try_next().await? {
            SessionUpdate::Event { seq, body } => {
                return Ok(SourceItem::Event(Event::default().id(seq.to_string()).data(body)));
            }
            SessionUpdate::Still(row) => row,
        };
        if row.run.is_none() || !row.status.is_over() {
            return Ok(SourceItem::Nothing);
        }
        let end = rest::StreamEnd { status: rows::status(row.status) };
        Ok(SourceItem::Last(named_event("end", &end)))
    }

    async fn wait(&mut self) {
        self.events.wait().await;
    }

    fn broken(&self, _server: &ServerState, failure: Failure) -> Event {
        broken_off(&failure)
    }
}
