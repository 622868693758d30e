//! The data of server-sent events.

use super::run::Status;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The data of the last event of a session's stream, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEnd {
    /// How the latest run ended.
    pub status: Status,
}

/// The data of the first event of the feed over all sessions, `snapshot`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedSnapshot {
    /// Whose feed it is.
    pub realm: String,
    /// Where the feed ended then: a client that wants only what is new begins here.
    pub cursor: String,
    /// The ids of the oldest open asks.
    pub asks: Vec<String>,
}

/// The data of an event of the feed over all sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedEvent<E = Value> {
    /// `ses_..`.
    pub session: String,
    /// The event as it stands in that session's journal.
    pub event: E,
}
