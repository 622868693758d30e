//! One event of a journal, and reading journal rows back. Upgrades of events that older releases
//! wrote belong here.

use super::Fact;
use crate::values::ids::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version that this release writes, for every type.
pub const VERSION: u16 = 1;

/// One fact of one session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its place in the session's journal, from 1.
    pub seq: u64,
    /// When it was recorded.
    pub at: Millis,
    /// The version of its type.
    pub v: u16,
    /// What happened.
    #[serde(flatten)]
    pub fact: Fact,
}

/// A journal row that this release cannot read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} of type `{kind}` v{version} cannot be read by this release: {why}")]
pub struct Unreadable {
    /// Its sequence, 0 if even that is unknown.
    pub seq: u64,
    /// Its type.
    pub kind: String,
    /// Its version.
    pub version: u64,
    /// What is wrong.
    pub why: String,
}

/// Reads one journal row: all events of one append.
pub fn read(row: &str) -> Result<Vec<Event>, Unreadable> {
    let events: Vec<Event> = match serde_json::from_str(row) {
        Ok(events) => events,
        Err(error) => return Err(explain(row, &error)),
    };
    match events.iter().find(|event| event.v != VERSION) {
        None => Ok(events),
        Some(event) => Err(Unreadable {
            seq: event.seq,
            kind: "known".to_owned(),
            version: u64::from(event.v),
            why: format!("this release reads v{VERSION}"),
        }),
    }
}

/// Finds the first event of the row that cannot be read.
fn explain(row: &str, error: &serde_json::Error) -> Unreadable {
    let values: Vec<Value> = serde_json::from_str(row).unwrap_or_default();
    let faulty = values.iter().find_map(|value| {
        let why = Event::deserialize(value).err()?.to_string();
        Some(Unreadable {
            seq: value["seq"].as_u64().unwrap_or_default(),
            kind: value["type"].as_str().unwrap_or("?").to_owned(),
            version: value["v"].as_u64().unwrap_or_default(),
            why,
        })
    });
    faulty.unwrap_or_else(|| Unreadable {
        seq: 0,
        kind: "?".to_owned(),
        version: 0,
        why: error.to_string(),
    })
}
