//! The contracts of event sinks and of the delivery log. A sink only delivers: the engine reads the
//! feed, keeps the order, retries and stores the position. To add a broker, write one file.

use crate::contracts::cloud::CloudEvent;
use crate::contracts::{ListPage, PageRequest, Read};
use crate::values::ids::{Millis, RealmId, SessionId};
use crate::values::named_enum::named;
use futures::future::BoxFuture;

/// Delivers events to a system outside.
pub trait EventSink: Send + Sync {
    /// What kind of sink it is, in one word: `webhook`.
    fn kind(&self) -> &str;

    /// Hands these over, in this order; done when the receiver has them. A repeat of the same
    /// events must do no harm. Several that failed are tried again one by one.
    fn deliver<'a>(
        &'a self,
        events: &'a [CloudEvent],
    ) -> BoxFuture<'a, Result<DeliveryReceipt, SinkError>>;

    /// How many events one delivery may hold.
    fn batch_max(&self) -> usize {
        1
    }

    /// How many sessions are served at the same time; 1 keeps the order of the whole feed, and then
    /// all wait while one event is tried again.
    fn lanes(&self) -> usize {
        1
    }

    /// Whether each delivery is kept in the log; failures always are.
    fn is_logged(&self) -> bool {
        true
    }
}

/// What the receiver of an event said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryReceipt {
    /// The status that a receiver answered with, where it speaks HTTP.
    pub status: Option<u16>,
}

/// Why a delivery failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SinkError {
    /// In words, without secrets.
    pub message: String,
    /// The status that a receiver answered with.
    pub status: Option<u16>,
    /// How long the receiver wants to be left alone.
    pub retry_after_ms: Option<u64>,
    /// Whether the receiver wants no more, whatever it is: a sink rests until someone resumes it, and
    /// a webhook ends.
    pub is_gone: bool,
    /// Whether it is this event that is not wanted. Else the sink is unwell, and an event is not
    /// given up while it takes no other.
    pub is_refusal: bool,
}

impl SinkError {
    /// The receiver is unwell, and may take it later.
    pub fn new(message: String) -> Self {
        Self { message, status: None, retry_after_ms: None, is_gone: false, is_refusal: false }
    }
}

named! {
    /// Where a delivery stands, in the order in which the log lets go of them.
    DeliveryStatus {
        /// It is over there.
        Delivered = "delivered",
        /// It is tried again.
        Retrying = "retrying",
        /// No one tries any more; a person can resend it.
        Failed = "failed",
    }
}

/// One event's way to one sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    pub sink: String,
    /// The event's id.
    pub event: String,
    /// The event's type.
    pub kind: String,
    /// The session whose journal holds it.
    pub session: SessionId,
    /// The event of that journal.
    pub seq: u64,
    pub status: DeliveryStatus,
    /// How often it was tried.
    pub attempts: u32,
    pub first_at: Millis,
    /// When last.
    pub last_at: Millis,
    /// When next, while it is tried again.
    pub next_at: Option<Millis>,
    /// The status that the receiver answered with last.
    pub code: Option<u16>,
    /// What went wrong last.
    pub error: Option<String>,
}

/// Which deliveries to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub sink: Option<String>,
    pub status: Option<DeliveryStatus>,
}

/// The log of deliveries. It has an end: of each sink the newest `deliveries_kept_max` stay, failed
/// ones longest.
pub trait Deliveries: Send + Sync {
    /// Keeps these rows, in place of older ones of the same event and sink, and moves the sink's
    /// consumer on where a place is given, in one commit; durable on return.
    fn keep_deliveries<'a>(
        &'a self,
        realm: &'a RealmId,
        rows: Vec<DeliveryRow>,
        place: Option<(&'a str, u64)>,
    ) -> Read<'a, ()>;

    /// Deliveries, newest first.
    fn deliveries<'a>(
        &'a self,
        realm: &'a RealmId,
        filter: &'a DeliveryFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<DeliveryRow>>;

    fn delivery<'a>(
        &'a self,
        realm: &'a RealmId,
        sink: &'a str,
        event: &'a str,
    ) -> Read<'a, Option<DeliveryRow>>;
}
