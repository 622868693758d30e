//! What goes to the client before a request's answer: notifications, and in the versions with a
//! handshake requests of ours. Each transport brings a channel.

use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::{Arc, Weak};
use wire::jsonrpc::{RpcError, notification};

/// A channel to the client of one request.
pub(crate) trait ClientChannel: Send + Sync {
    /// Sends a message if there is room for it, and drops it otherwise: for news during a
    /// call runs, which must not wait for a slow client.
    fn try_send(&self, message: String);

    /// Sends a message, waiting for room; whether the client is still there.
    fn send(&self, message: String) -> BoxFuture<'_, bool>;

    /// Sends a request of ours and waits for its result.
    fn ask<'a>(&'a self, method: &'a str, params: Value) -> BoxFuture<'a, Result<Value, AskError>>;

    /// Where what belongs to no request goes, if the client has a session.
    fn news(&self) -> Option<Outbox> {
        None
    }
}

/// Why a client gives no result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AskError {
    /// It answered with this error.
    Refused(RpcError),
    /// It did not answer: it cannot be asked, is gone or takes too long.
    Silent(RpcError),
}

impl From<AskError> for RpcError {
    fn from(unheard: AskError) -> Self {
        match unheard {
            AskError::Refused(error) | AskError::Silent(error) => error,
        }
    }
}

/// What goes to the client before the answer.
#[derive(Clone, Default)]
pub(crate) struct Outbox(Option<Arc<dyn ClientChannel>>);

impl Outbox {
    pub(crate) fn new(channel: Arc<dyn ClientChannel>) -> Self {
        Self(Some(channel))
    }

    /// Whether anything can be sent at all: a client that takes no stream cannot hear us.
    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Notifies if there is room.
    pub(crate) fn tell(&self, method: &str, params: &Value) {
        if let Some(channel) = &self.0 {
            channel.try_send(notification(method, params));
        }
    }

    /// Notifies, waiting for room; whether the client is still there.
    pub(crate) async fn notify(&self, method: &str, params: &Value) -> bool {
        match &self.0 {
            Some(channel) => channel.send(notification(method, params)).await,
            None => false,
        }
    }

    /// A channel to the client for when the request is over, for as long as its session
    /// lasts; none without a session.
    pub(crate) fn later(&self) -> Option<WeakOutbox> {
        let Outbox(news) = self.0.as_ref()?.news()?;
        news.map(|channel| WeakOutbox(Arc::downgrade(&channel)))
    }

    /// Asks the client; only in the versions with a handshake.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Value, AskError> {
        match &self.0 {
            Some(channel) => channel.ask(method, params).await,
            None => Err(AskError::Silent(RpcError::new(
                wire::jsonrpc::INTERNAL_ERROR,
                "the client takes no stream, so nothing can be asked of it",
            ))),
        }
    }
}

/// A channel to a client that may be gone by then: it keeps nothing of the session.
pub(crate) struct WeakOutbox(Weak<dyn ClientChannel>);

impl WeakOutbox {
    /// Notifies if the client is there and there is room.
    pub(crate) fn tell(&self, method: &str, params: &Value) {
        if let Some(channel) = self.0.upgrade() {
            channel.try_send(notification(method, params));
        }
    }
}
