//! `/api/v1/events`: the journals of all sessions of the caller's realm as server-sent events. A
//! `snapshot` first, then each event under its position in the feed. It has no end: a client that
//! is cut off comes back with the last `id` and misses nothing.

use crate::sessions::open_asks;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event;
use edge::problem::{Failure, Result};
use edge::request::cursors::{Purpose, refused};
use edge::request::params::Params;
use edge::request::server_state::{ServerState, Who};
use edge::stream::{
    LAST_EVENT_ID, RETRY, Source, SourceItem, answer, broken_off, named_event, permit,
};
use engine::Watch;
use engine::refusal::{Refusal, RefusalCode};
use kernel::contracts::FeedRow;
use kernel::identity::audit::Object;
use kernel::tool::call::Caller;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use wire::rest::{FeedEvent, FeedSnapshot};

/// How many rows are read at once; each holds the events of one append.
const ROWS_MAX: usize = 100;

/// `?after=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FeedQuery {
    after: Option<String>,
}

/// `GET /events`.
pub(crate) async fn follow(
    Who { server, caller }: Who,
    Params(query): Params<FeedQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    let of = Purpose::feed(&caller);
    let wanted = wanted(&server, &of, query, &headers)?;
    let permit = permit(&server, &caller)?;
    // It shows what others wrote, for as long as it is open.
    let from = json!({"from": wanted.map(|position| position.row)});
    server.engine.audits().note_shown(&caller, Object::only("events"), from)?;
    // Before the first read: what is committed after it wakes us.
    let watch = server.engine.feed().watch_all();
    let (gone, end) = server.engine.feed().bounds(&caller).await?;
    let position = match wanted {
        None => FeedPosition { row: gone + 1, sent: 0 },
        Some(position) => position.within(gone, end)?,
    };
    let feed =
        Feed { caller, of, end, waiting: VecDeque::new(), read: position.row - 1, position, watch };
    Ok(answer(server, feed, permit))
}

/// A client that comes back says in the header what it saw last; that is later than what its URL
/// once said.
fn wanted(
    server: &ServerState,
    of: &Purpose,
    query: FeedQuery,
    headers: &HeaderMap,
) -> Result<Option<FeedPosition>> {
    let text = match headers.get(LAST_EVENT_ID) {
        Some(last) => last.to_str().unwrap_or_default().to_owned(),
        None => match query.after {
            Some(after) => after,
            None => return Ok(None),
        },
    };
    let position = server.cursors.open(of, &text).map_err(|why| refused(why, bad_cursor))?;
    FeedPosition::parse(&position).map(Some).ok_or_else(bad_cursor)
}

fn bad_cursor() -> Failure {
    Refusal::new(RefusalCode::BadCursor, "that is no place in this feed")
        .hint("send the `id` of the last event as it was, or leave it out")
        .into()
}

/// A position in the feed: so many events of this row were sent. Clients get it sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FeedPosition {
    row: u64,
    sent: u64,
}

impl FeedPosition {
    fn parse(text: &str) -> Option<Self> {
        let (row, sent) = text.split_once('-')?;
        let position = Self { row: number(row)?, sent: number(sent)? };
        // Rows are counted from one.
        (position.row > 0).then_some(position)
    }

    /// The same, if it is neither past the end nor older than what is kept.
    fn within(self, gone: u64, end: u64) -> Result<Self> {
        if self > (Self { row: end.saturating_add(1), sent: 0 }) {
            return Err(bad_cursor());
        }
        if self.row <= gone {
            let message = "the events after this place are not kept any more";
            let refusal = Refusal::new(RefusalCode::CursorGone, message)
                .hint("read the lists, then follow the feed from its beginning");
            return Err(refusal.into());
        }
        Ok(self)
    }
}

impl fmt::Display for FeedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.row, self.sent)
    }
}

/// A position as clients see it, where everything up to this row is behind it: what comes after
/// is asked for with it.
pub(crate) fn after_row(server: &ServerState, caller: &Caller, row: u64) -> String {
    let position = FeedPosition { row: row.saturating_add(1), sent: 0 };
    server.cursors.seal(&Purpose::feed(caller), &position.to_string())
}

fn number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if plain { u64::from_str_radix(text, 16).ok() } else { None }
}

/// One client's position in the feed.
struct Feed {
    /// Whose stream it is.
    caller: Arc<Caller>,
    /// What the ids of its events are good for.
    of: Purpose,
    /// The last row when the stream began.
    end: u64,
    /// Events that were read and not yet sent.
    waiting: VecDeque<(FeedPosition, String)>,
    /// The last row that was read.
    read: u64,
    /// The position of the last event that was sent.
    position: FeedPosition,
    watch: Watch,
}

impl Source for Feed {
    type Event = Event;

    async fn first(&mut self, server: &ServerState) -> Result<Option<Event>> {
        let asks = open_asks(server, &self.caller, None).await?;
        let realm = self.caller.realm.as_str().to_owned();
        let cursor = after_row(server, &self.caller, self.end);
        Ok(Some(named_event("snapshot", &FeedSnapshot { realm, cursor, asks }).retry(RETRY)))
    }

    async fn try_next(&mut self, server: &ServerState) -> Result<SourceItem> {
        loop {
            if let Some((position, body)) = self.waiting.pop_front() {
                self.position = position;
                let id = server.cursors.seal(&self.of, &position.to_string());
                return Ok(SourceItem::Event(Event::default().id(id).data(body)));
            }
            let rows = server.engine.feed().rows(&self.caller, self.read, ROWS_MAX).await?;
            let Some(last) = rows.last() else { return Ok(SourceItem::Nothing) };
            self.read = last.cursor;
            for row in &rows {
                self.take(row)?;
            }
        }
    }

    async fn wait(&mut self) {
        self.watch.changed().await;
    }

    fn broken(&self, _server: &ServerState, failure: Failure) -> Event {
        broken_off(&failure)
    }
}

impl Feed {
    /// Queues the events of a row, those left out that the client has seen.
    fn take(&mut self, row: &FeedRow) -> Result<()> {
        let events: Vec<&RawValue> =
            serde_json::from_str(&row.body).map_err(|error| unreadable(&error))?;
        for (index, event) in events.into_iter().enumerate() {
            let position = FeedPosition { row: row.cursor, sent: index as u64 + 1 };
            if position > self.position {
                let body = FeedEvent { session: row.session.to_string(), event };
                let body = serde_json::to_string(&body).map_err(|error| unreadable(&error))?;
                self.waiting.push_back((position, body));
            }
        }
        Ok(())
    }
}

fn unreadable(error: &serde_json::Error) -> Failure {
    let message = format!("a journal row cannot be read: {error}");
    Refusal::new(RefusalCode::Unreadable, message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_cursor_is_read_as_it_was_written() {
        for position in [FeedPosition { row: 1, sent: 0 }, FeedPosition { row: u64::MAX, sent: 17 }]
        {
            assert_eq!(FeedPosition::parse(&position.to_string()), Some(position));
        }
        for text in ["", "1", "-", "1-", "-1", "0-0", "+1-0", "1-0-0", "g-0", "1 -0"] {
            assert_eq!(FeedPosition::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_feed_cursor_is_within_the_kept_events() {
        let code = |row, sent| match (FeedPosition { row, sent }).within(4, 9) {
            Ok(_) => "ok",
            Err(failure) => failure.code(),
        };
        assert_eq!(code(5, 0), "ok");
        assert_eq!(code(9, 3), "ok");
        assert_eq!(code(10, 0), "ok");
        assert_eq!(code(10, 1), "bad_cursor");
        assert_eq!(code(11, 0), "bad_cursor");
        assert_eq!(code(4, 2), "cursor_gone");
    }
}
