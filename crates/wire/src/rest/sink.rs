//! Where events go, and how each of them got there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A place that events go to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sink {
    /// Its name.
    pub name: String,
    /// What it is; `unknown` where it is not configured.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["stdout", "file", "webhook", "unknown"]))]
    pub kind: String,
    /// Whether events are sent there. `gone`: its receiver said so, and events wait until it is
    /// resumed. `unconfigured`: the settings do not have it any more, and retention keeps what it
    /// has not passed until it is forgotten.
    pub status: SinkStatus,
    /// Where it leads: a file, or an address without query and password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Patterns of the types that go there; absent where all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
    /// How far it came in the feed, opaque: `after` for what is ahead of it.
    pub place: String,
    /// How many rows of its realm's feed are still ahead of it, counted up to 10,000.
    pub lag: u64,
    /// How many events it took since the server started.
    pub delivered: u64,
    /// How many were given up since then.
    pub failed: u64,
    /// How many are tried again.
    pub retrying: u64,
    /// What went wrong last since the server started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// Whether events are sent to a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum SinkStatus {
    /// They are, as they come.
    Sending,
    /// Its receiver said that it is gone: they wait until someone resumes it.
    Gone,
    /// The settings do not have it any more: it keeps its place until someone forgets it.
    Unconfigured,
}

impl SinkStatus {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sending => "sending",
            Self::Gone => "gone",
            Self::Unconfigured => "unconfigured",
        }
    }
}

/// One event's way to one sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// The event's id.
    pub event: String,
    /// The event's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The sink.
    pub sink: String,
    /// The session whose journal holds it.
    pub session: String,
    /// Its place in that journal.
    pub seq: u64,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// How often it was tried.
    pub attempts: u32,
    /// When first.
    #[schemars(extend("format" = "date-time"))]
    pub first_at: String,
    /// When last.
    #[schemars(extend("format" = "date-time"))]
    pub last_at: String,
    /// When next, while it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub next_at: Option<String>,
    /// The HTTP status that the receiver answered with last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Where a delivery stands. `failed`: there are no more attempts; it can be sent again by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeliveryStatus {
    /// It is tried again.
    Retrying,
    /// It is over there.
    Delivered,
    /// No one tries any more; a person can resend it.
    Failed,
}

impl DeliveryStatus {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Retrying, Self::Delivered, Self::Failed];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retrying => "retrying",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}
