//! The data of server-sent events.

use super::run::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The data of the last event of a session's stream, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamEnd {
    /// How the latest run ended.
    pub status: Status,
}

/// The data of the first event of the feed over all sessions, `snapshot`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeedSnapshot {
    /// Whose feed it is.
    pub realm: String,
    /// Where the feed ended then, opaque: `after` for what is new.
    pub cursor: String,
    /// The ids of the oldest open asks.
    pub asks: Vec<String>,
}

/// The data of an event of the feed over all sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeedEvent<E = Value> {
    /// `ses_..`.
    pub session: String,
    /// The event as it is in that session's journal.
    #[schemars(with = "JournalEvent")]
    pub event: E,
}

/// One event of a session's journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JournalEvent {
    /// Its place in the session's journal.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub at: u64,
    /// The version of its shape.
    pub v: u32,
    /// `run.started`, `call.finished`, ..
    #[serde(rename = "type")]
    pub kind: String,
    /// What happened, by type.
    pub data: Value,
}
