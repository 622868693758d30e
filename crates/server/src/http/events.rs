//! `/api/v1/sessions/{id}/events`: one session's journal as server-sent events. A `snapshot` of the
//! session first, then each event under its sequence, `end` when the latest run is over. What is
//! sent is durable: it is read from the store, and the engine's feed only says when to look.

use super::sessions;
use super::stream::{LAST_EVENT_ID, Pulse, RETRY, Woken, answer, broken, heartbeat, permit, told};
use crate::doors::Shared;
use crate::error::Failure;
use crate::params::{Named, Params, session_ref};
use crate::shown;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event;
use futures::stream;
use kernel::contracts::SessionRef;
use kernel::projection::SessionRow;
use serde::Deserialize;
use std::collections::VecDeque;
use tokio::sync::OwnedSemaphorePermit;
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
    Named(name): Named,
    Params(query): Params<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let after = after(&query, &headers)?;
    let permit = permit(&doors)?;
    let wanted = session_ref(&name, query.space.as_deref());
    let row = doors.engine.session(doors.caller(), &wanted).await?;
    let tail = Tail {
        pulse: Pulse::new(doors.engine.watch(&row.key), &doors),
        session: SessionRef::Id(row.id),
        stage: Stage::Begun(Box::new(row)),
        waiting: VecDeque::new(),
        after,
        doors,
        _permit: permit,
    };
    Ok(answer(stream::unfold(tail, |mut tail| async move {
        let event = tail.next().await?;
        Some((event, tail))
    })))
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

/// How far a stream is.
enum Stage {
    Begun(Box<SessionRow>),
    Following,
    Over,
}

/// One client's place in a session's journal.
struct Tail {
    doors: Shared,
    session: SessionRef,
    stage: Stage,
    /// Events that were read and not yet sent.
    waiting: VecDeque<(u64, String)>,
    /// The last sequence that was sent.
    after: u64,
    pulse: Pulse,
    _permit: OwnedSemaphorePermit,
}

impl Tail {
    /// The next event, or none after the last one.
    async fn next(&mut self) -> Option<Event> {
        match std::mem::replace(&mut self.stage, Stage::Following) {
            Stage::Begun(row) => return Some(self.snapshot(*row).await),
            Stage::Following => {}
            Stage::Over => {
                self.stage = Stage::Over;
                return None;
            }
        }
        loop {
            match self.look().await {
                Ok(Some(event)) => return Some(event),
                Ok(None) => {}
                Err(failure) => return Some(self.broken(&failure)),
            }
            match self.pulse.next(&self.doors).await {
                Woken::Commit => {}
                Woken::Heartbeat => return Some(heartbeat()),
                // Without `end`: the client comes back when the server does.
                Woken::Closing => return None,
            }
        }
    }

    async fn snapshot(&mut self, row: SessionRow) -> Event {
        match sessions::session(&self.doors, row).await {
            Ok(session) => told("snapshot", &session).retry(RETRY),
            Err(failure) => self.broken(&failure),
        }
    }

    /// What there is to tell now: an event of the journal, or the end.
    async fn look(&mut self) -> Result<Option<Event>, Failure> {
        loop {
            if let Some((seq, body)) = self.waiting.pop_front() {
                self.after = seq;
                return Ok(Some(Event::default().id(seq.to_string()).data(body)));
            }
            let (engine, caller) = (&self.doors.engine, self.doors.caller());
            let limit = self.doors.limits().page_items_max;
            let events = engine.events(caller, &self.session, self.after, limit).await?;
            if !events.is_empty() {
                self.waiting.extend(events);
                continue;
            }
            let row = engine.session(caller, &self.session).await?;
            // Something was committed between the two reads.
            if row.seq > self.after {
                continue;
            }
            if row.run.is_none() || !row.status.is_over() {
                return Ok(None);
            }
            let end = rest::StreamEnd { status: shown::status(row.status) };
            return Ok(Some(self.over(told("end", &end))));
        }
    }

    fn broken(&mut self, failure: &Failure) -> Event {
        self.over(broken(failure))
    }

    /// The last event of the stream.
    fn over(&mut self, event: Event) -> Event {
        self.stage = Stage::Over;
        event
    }
}
