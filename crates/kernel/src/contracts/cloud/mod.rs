//! Events that go out, as CloudEvents 1.0. They are made of the journal, so
//! that nothing goes out that is not durable, and goes out again under the same id after a crash.
//!
//! What a run published goes out as it is. What happened to runs and asks goes out without content:
//! ids, names and kinds, never an argument, a text or an answer.

use crate::contracts::FeedRow;
use crate::event::{Unreadable, VERSION};
use crate::values::ids::{AskId, Millis, PlanId, RealmId, RunId, SessionId, StepId, ToolName};
use serde::de::IgnoredAny;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;

pub use crate::conversation::published::PublishedEvent;

/// One event on its way out.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudEvent {
    /// The same however often it is sent: `<session>.<sequence>`, and a number where one fact tells
    /// several, from the second on.
    pub id: String,
    /// What happened: `waypost.run.completed.v1`, or the word of who published it.
    pub kind: String,
    /// Who says so: a URI reference.
    pub source: String,
    /// What it is about: the client's key of the session, a case's id for one.
    pub subject: String,
    /// When it was recorded.
    pub at: Millis,
    pub realm: RealmId,
    /// The session whose journal holds it: events of one session go out in order.
    pub session: SessionId,
    /// The event of that journal.
    pub seq: u64,
    /// The row of the feed that holds it.
    pub cursor: u64,
    /// What goes out.
    pub data: Value,
}

impl CloudEvent {
    /// The whole event as one JSON text: structured mode.
    pub fn to_json(&self) -> String {
        // Names and values are texts: there is nothing here that JSON cannot hold.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Serialize for CloudEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut event = serializer.serialize_struct("CloudEvent", 11)?;
        event.serialize_field("specversion", "1.0")?;
        event.serialize_field("id", &self.id)?;
        event.serialize_field("type", &self.kind)?;
        event.serialize_field("source", &self.source)?;
        event.serialize_field("subject", &self.subject)?;
        event.serialize_field("time", &self.at.rfc3339())?;
        event.serialize_field("datacontenttype", "application/json")?;
        event.serialize_field("waypostrealm", &self.realm)?;
        event.serialize_field("waypostsession", &self.session)?;
        // Of one width: the extension's values are compared as texts.
        event.serialize_field("sequence", &format!("{:020}", self.seq))?;
        event.serialize_field("data", &self.data)?;
        event.end()
    }
}

/// What a row of the feed tells the world, in order. Events of a type or version that this release
/// does not know are passed over; a row that is no list of events at all is an error.
pub fn cloud_events(row: &FeedRow) -> Result<Vec<CloudEvent>, Unreadable> {
    if !may_tell(&row.body) {
        return Ok(Vec::new());
    }
    let written: Vec<StoredEvent<'_>> = serde_json::from_str(&row.body).map_err(|error| {
        Unreadable { seq: 0, kind: "?".to_owned(), version: 0, why: error.to_string() }
    })?;
    let mut events = Vec::new();
    for event in &written {
        for (number, content) in (1..).zip(contents(row, event).unwrap_or_default()) {
            events.extend(content.map(|content| cloud_event(row, event, number, content)));
        }
    }
    Ok(events)
}

/// An event of the journal, of which only what is wanted is read: what is not looked at cannot get
/// out.
#[derive(Deserialize)]
struct StoredEvent<'a> {
    seq: u64,
    at: Millis,
    v: u64,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// What one event is to the world, before it has its envelope.
struct EventContent {
    kind: String,
    source: Option<Arc<str>>,
    data: Value,
}

/// Whether a row may hold something to tell. A quote inside a text is written with a backslash, so
/// these are found nowhere but in members.
fn may_tell(body: &str) -> bool {
    const SIGNS: [&str; 4] =
        ["\"type\":\"event.published\"", "\"type\":\"run.", "\"type\":\"ask.", PUBLISHED];
    SIGNS.iter().any(|sign| body.contains(sign))
}

const PUBLISHED: &str = "\"published\":[";

fn cloud_event(
    row: &FeedRow,
    event: &StoredEvent<'_>,
    number: usize,
    content: EventContent,
) -> CloudEvent {
    let id = match number {
        1 => format!("{}.{}", row.session, event.seq),
        _ => format!("{}.{}.{number}", row.session, event.seq),
    };
    let source = content.source.filter(|source| !source.is_empty());
    let source = source.map_or_else(|| format!("waypost/{}", row.key.realm), |s| s.to_string());
    CloudEvent {
        id,
        kind: content.kind,
        source: uri_reference(&source),
        subject: row.key.id.to_string(),
        at: event.at,
        realm: row.key.realm.clone(),
        session: row.session,
        seq: event.seq,
        cursor: row.cursor,
        data: content.data,
    }
}

/// What an event tells, each with its place among them; none where it tells nothing.
fn contents(row: &FeedRow, event: &StoredEvent<'_>) -> Option<Vec<Option<EventContent>>> {
    if event.v != u64::from(VERSION) {
        return None;
    }
    let data = event.data?.get();
    match &*event.kind {
        "event.published" => {
            #[derive(Deserialize)]
            struct Step {
                published: PublishedEvent,
            }
            let step: Step = serde_json::from_str(data).ok()?;
            Some(vec![of_run(step.published)])
        }
        "call.finished" if data.contains(PUBLISHED) => {
            #[derive(Deserialize)]
            struct Finished {
                #[serde(default)]
                published: Vec<PublishedEvent>,
            }
            let finished: Finished = serde_json::from_str(data).ok()?;
            Some(finished.published.into_iter().map(of_run).collect())
        }
        kind => {
            let (kinds, more) = lifecycle(kind, data)?;
            let mut data = Map::new();
            data.insert("session".to_owned(), json!(row.session));
            data.insert("key".to_owned(), json!(row.key.id));
            data.insert("space".to_owned(), json!(row.key.space));
            data.extend(more);
            let data = Value::Object(data);
            let one = |kind| Some(EventContent { kind, source: None, data: data.clone() });
            Some(kinds.into_iter().map(one).collect())
        }
    }
}

/// What a run published, in its own words.
fn of_run(published: PublishedEvent) -> Option<EventContent> {
    let kind = published.event.get("type")?.as_str().filter(|kind| !kind.is_empty())?.to_owned();
    let data = Arc::try_unwrap(published.event).unwrap_or_else(|shared| (*shared).clone());
    Some(EventContent { kind, source: published.source, data })
}

/// What happened to a run or an ask: its types, and what goes out beside the session.
fn lifecycle(kind: &str, data: &str) -> Option<(Vec<String>, Map<String, Value>)> {
    match kind {
        "run.started" | "run.paused" | "run.continued" => {
            let of: OfRun = serde_json::from_str(data).ok()?;
            Some((vec![format!("waypost.{kind}.v1")], of.members()))
        }
        "run.ended" => {
            let of: OfRun = serde_json::from_str(data).ok()?;
            let how = match of.outcome.as_ref()?.how.as_str() {
                "completed" => "completed",
                "failed" => "failed",
                "cancelled" => "cancelled",
                _ => return None,
            };
            Some((vec![format!("waypost.run.{how}.v1")], of.members()))
        }
        "ask.opened" => {
            let opened: Opened = serde_json::from_str(data).ok()?;
            Some((opened.kinds(), opened.members()))
        }
        "ask.decided" | "ask.expired" | "ask.withdrawn" => {
            let of: OfAsk = serde_json::from_str(data).ok()?;
            let members = Map::from_iter([("ask".to_owned(), json!(of.ask))]);
            Some((vec![format!("waypost.{kind}.v1")], members))
        }
        _ => None,
    }
}

#[derive(Deserialize)]
struct OfRun {
    run: RunId,
    plan: Option<PlanId>,
    outcome: Option<Ending>,
}

#[derive(Deserialize)]
struct Ending {
    how: String,
}

impl OfRun {
    fn members(&self) -> Map<String, Value> {
        let mut members = Map::from_iter([("run".to_owned(), json!(self.run))]);
        members.extend(self.plan.as_ref().map(|plan| ("plan".to_owned(), json!(plan))));
        members
    }
}

#[derive(Deserialize)]
struct OfAsk {
    ask: AskId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Opened {
    id: AskId,
    run: RunId,
    step: StepId,
    body: Body,
    expires_at: Option<Millis>,
    held: Option<Holding>,
    #[serde(default)]
    tried: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct Holding {
    rule: String,
    #[serde(rename = "try")]
    try_no: u32,
    until: Millis,
}

#[derive(Deserialize)]
struct Body {
    kind: String,
    #[serde(default)]
    calls: Vec<Called>,
    call: Option<Called>,
}

#[derive(Deserialize)]
struct Called {
    tool: ToolName,
}

impl Opened {
    /// What a rule holds is reported to programs, and to people only once it is theirs.
    fn kinds(&self) -> Vec<String> {
        let words: &[&str] = match (&self.held, self.tried.is_empty()) {
            (Some(_), _) => &["held"],
            (None, true) => &["opened"],
            (None, false) => &["opened", "escalated"],
        };
        words.iter().map(|word| format!("waypost.ask.{word}.v1")).collect()
    }

    fn members(&self) -> Map<String, Value> {
        let mut members = Map::from_iter([
            ("run".to_owned(), json!(self.run)),
            ("ask".to_owned(), json!(self.id)),
            ("kind".to_owned(), json!(self.body.kind)),
            ("step".to_owned(), json!(self.step)),
        ]);
        let tools: Vec<&ToolName> =
            self.body.calls.iter().chain(&self.body.call).map(|called| &called.tool).collect();
        if !tools.is_empty() {
            members.insert("tools".to_owned(), json!(tools));
        }
        members.extend(self.expires_at.map(|at| ("expiresAt".to_owned(), json!(at.rfc3339()))));
        if let Some(Holding { rule, try_no, until }) = &self.held {
            members.insert("rule".to_owned(), json!(rule));
            members.insert("try".to_owned(), json!(try_no));
            members.insert("until".to_owned(), json!(until.rfc3339()));
        }
        members
    }
}

/// The text as a URI reference: what none may hold is encoded.
fn uri_reference(text: &str) -> String {
    // A colon before the first slash ends a scheme, and not everything is one.
    let first = text.split(['/', '?', '#']).next().unwrap_or_default();
    let scheme = first.split_once(':').map(|(scheme, _)| scheme);
    let colons_stay = scheme.is_none_or(is_scheme);
    let mut written = String::with_capacity(text.len());
    let mut fragment = false;
    for (at, byte) in text.bytes().enumerate() {
        let stays = match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => true,
            b':' => at >= first.len() || colons_stay,
            b'%' => is_encoded(&text.as_bytes()[at + 1..]),
            b'#' => !std::mem::replace(&mut fragment, true),
            other => b"-._~!$&'()*+,;=@/?".contains(&other),
        };
        if stays {
            written.push(char::from(byte));
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    written
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn is_encoded(after: &[u8]) -> bool {
    after.len() >= 2 && after[..2].iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests;
