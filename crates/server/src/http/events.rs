//! `/api/v1/sessions/{id}/events`: one session's journal as server-sent events. A `snapshot` of the
//! session first, then each event under its sequence, `end` when the latest run is over. What is
//! sent is durable: it is read from the store, and the engine's feed only says when to look.

use super::sessions;
use super::stream::{LAST_EVENT_ID, Look, Pulse, RETRY, Source, answer, permit, told};
use crate::doors::{Doors, Shared, Who};
use crate::error::Failure;
use crate::params::{Named, Params, session_ref};
use crate::shown;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event;
use kernel::call::Caller;
use kernel::contracts::SessionRef;
use kernel::projection::SessionRow;
use serde::Deserialize;
use std::collections::VecDeque;
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
    State(doors): State<Shared>,
    Who(caller): Who,
    Named(name): Named,
    Params(query): Params<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let after = after(&query, &headers)?;
    let permit = permit(&doors)?;
    let wanted = session_ref(&name, query.space.as_deref());
    let row = doors.engine.sessions().get(&caller, &wanted).await?;
    let pulse = Pulse::new(doors.engine.feed().watch(&row.key), &doors);
    let session = SessionRef::Id(row.id);
    // Before the answer: a place that is not kept any more is refused, not told in a stream.
    let limit = doors.limits().page_items_max;
    let waiting: VecDeque<_> =
        doors.engine.sessions().events(&caller, &session, after, limit).await?.into();
    let journal = Journal { caller, session, begins: Some(row), waiting, after };
    Ok(answer(doors, journal, pulse, permit))
}

/// A client that comes back says in the header what it saw last; that is later than what its URL
/// once said.
fn after(query: &StreamQuery, headers: &HeaderMap) -> Result<u64, Failure> {
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

/// One client's place in a session's journal.
struct Journal {
    /// Whose stream it is.
    caller: Arc<Caller>,
    session: SessionRef,
    /// The session as the stream began, until it was shown.
    begins: Option<SessionRow>,
    /// Events that were read and not yet sent.
    waiting: VecDeque<(u64, String)>,
    /// The last sequence that was sent.
    after: u64,
}

impl Source for Journal {
    async fn first(&mut self, doors: &Doors) -> Result<Event, Failure> {
        let row = match self.begins.take() {
            Some(row) => row,
            None => doors.engine.sessions().get(&self.caller, &self.session).await?,
        };
        let session = sessions::session(doors, &self.caller, row).await?;
        Ok(told("snapshot", &session).retry(RETRY))
    }

    async fn look(&mut self, doors: &Doors) -> Result<Look, Failure> {
        loop {
            if let Some((seq, body)) = self.waiting.pop_front() {
                self.after = seq;
                return Ok(Look::Event(Event::default().id(seq.to_string()).data(body)));
            }
            let (engine, caller) = (&doors.engine, &self.caller);
            let limit = doors.limits().page_items_max;
            let events = engine.sessions().events(caller, &self.session, self.after, limit).await?;
            if !events.is_empty() {
                self.waiting.extend(events);
                continue;
            }
            let row = engine.sessions().get(caller, &self.session).await?;
            // Something was committed between the two reads.
            if row.seq > self.after {
                continue;
            }
            if row.run.is_none() || !row.status.is_over() {
                return Ok(Look::Nothing);
            }
            let end = rest::StreamEnd { status: shown::status(row.status) };
            return Ok(Look::Last(told("end", &end)));
        }
    }
}
