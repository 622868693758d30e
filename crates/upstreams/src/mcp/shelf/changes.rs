//! Subscriptions to changes of a server's resources: by `resources/subscribe` in the older
//! versions, by a stream in the stateless one. A lost connection counts as a change, because
//! changes may have been missed.

use super::super::Link;
use super::super::lanes::handshake;
use super::super::line::{Incoming, PeerError, PeerErrorKind, Replies};
use super::super::peer::{AskError, Era, Peer};
use super::timeout_ms;
use futures::future::{BoxFuture, Either, select};
use kernel::contracts::shelf::Changes;
use kernel::tool::call::CallProgress;
use kernel::values::ids::Millis;
use serde_json::json;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use wire::jsonrpc::{INVALID_PARAMS, METHOD_NOT_FOUND};

/// How long a server may take to say whether it tells of changes: it does that at once, or never.
const AGREE_MS: u64 = 5_000;
/// A stream that lasted this long counts as stable.
const STEADY_MS: u64 = 10_000;

/// A watch of this resource; `None` if the server cannot report changes.
pub(super) async fn watch(
    link: &Arc<Link>,
    uri: &str,
) -> Result<Option<Box<dyn Changes>>, AskError> {
    let Some(source) = Source::open(link, uri).await? else { return Ok(None) };
    let since = link.parts.clock.now();
    let link = link.clone();
    let uri = uri.to_owned();
    Ok(Some(Box::new(Watching { link, uri, source, since, failures: 0 })))
}

struct Watching {
    link: Arc<Link>,
    uri: String,
    source: Source,
    /// Since when there is this source, and how often in a row there was none, or one that ended at
    /// once.
    since: Millis,
    failures: u32,
}

impl Changes for Watching {
    fn next(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if !self.source.changed().await {
                self.open_again().await;
            }
        })
    }
}

impl Watching {
    async fn open_again(&mut self) {
        let parts = &self.link.parts;
        if parts.clock.now() >= self.since.plus_ms(STEADY_MS) {
            self.failures = 0;
        }
        loop {
            self.failures = self.failures.saturating_add(1);
            let wait_ms = parts.backoff_ms(self.failures);
            parts.clock.sleep_ms(wait_ms).await;
            // One that cannot tell now may be able to again: it comes and goes, as it did.
            if let Ok(Some(source)) = Source::open(&self.link, &self.uri).await {
                self.source = source;
                self.since = parts.clock.now();
                return;
            }
        }
    }
}

/// Where the news come from.
enum Source {
    /// From where all news go, since we subscribed.
    Subscribed(Subscription),
    /// From a stream of our own; dropping it ends it.
    Stream(Replies),
}

impl Source {
    async fn open(link: &Arc<Link>, uri: &str) -> Result<Option<Self>, AskError> {
        let peer = link.peer().await?;
        if peer.era() == Era::Legacy {
            return Ok(Subscription::open(link, peer, uri).await?.map(Source::Subscribed));
        }
        let stream = stream(link, &peer, uri).await;
        if let Ok(Some(replies)) = stream {
            return Ok(Some(Source::Stream(replies)));
        }
        // A server of both eras may tell it to those who have a handshake.
        let subscribed = match Box::pin(handshake(link)).await {
            Some(peer) => Subscription::open(link, peer, uri).await?,
            None => None,
        };
        match subscribed {
            Some(subscribed) => Ok(Some(Source::Subscribed(subscribed))),
            None => stream.map(|_| None),
        }
    }

    /// Waits for a change; whether there was one. If not, no more will be heard.
    async fn changed(&mut self) -> bool {
        match self {
            Source::Subscribed(subscribed) => subscribed.changed().await,
            Source::Stream(replies) => loop {
                match replies.recv().await {
                    // Of nothing else does this stream tell; it may name a part of the resource.
                    Some(Incoming::Notification { method, .. })
                        if method == "notifications/resources/updated" =>
                    {
                        return true;
                    }
                    Some(Incoming::Notification { .. } | Incoming::Request { .. }) => {}
                    Some(Incoming::Result(_) | Incoming::Error(_) | Incoming::Broken(_)) | None => {
                        return false;
                    }
                }
            },
        }
    }
}

/// A stream that tells when this resource changes, if the server agrees to.
async fn stream(link: &Link, peer: &Peer, uri: &str) -> Result<Option<Replies>, AskError> {
    let notifications = json!({"resourceSubscriptions": [uri]});
    let opening = async {
        let mut replies = peer.listen(notifications).await?;
        let first = replies.recv().await;
        Ok::<_, PeerError>((replies, first))
    };
    let ms = timeout_ms(link).min(AGREE_MS);
    let opened = link.parts.within(ms, opening).await.unwrap_or_else(|| Err(silent(ms)));
    let (replies, first) = opened?;
    match first {
        Some(Incoming::Notification { method, params })
            if method == "notifications/subscriptions/acknowledged" =>
        {
            let agreed = params["notifications"]["resourceSubscriptions"].as_array();
            let agrees = agreed.is_some_and(|agreed| agreed.iter().any(|agreed| agreed == uri));
            Ok(agrees.then_some(replies))
        }
        Some(Incoming::Error(error))
            if !matches!(error.code, METHOD_NOT_FOUND | INVALID_PARAMS) =>
        {
            Err(error.into())
        }
        Some(Incoming::Broken(error)) => Err(error.into()),
        _ => Ok(None),
    }
}

fn silent(ms: u64) -> PeerError {
    let message = format!("it did not say within {ms} ms whether it reports changes");
    PeerError::new(CallProgress::Unknown, PeerErrorKind::Timeout, message)
}

/// A subscription, which ends with the last who has it.
struct Subscription {
    link: Arc<Link>,
    peer: Arc<Peer>,
    uri: String,
    updates: broadcast::Receiver<String>,
}

impl Subscription {
    async fn open(link: &Arc<Link>, peer: Arc<Peer>, uri: &str) -> Result<Option<Self>, AskError> {
        if peer.capabilities()["resources"]["subscribe"] != true {
            return Ok(None);
        }
        // Before the subscription: news that comes at once is heard, and no one ends it who drops
        // the same resource meanwhile. From here on it is ended, also if we go away ourselves.
        let updates = link.updates.subscribe();
        link.pending.watch(uri);
        let subscribed = Self { link: link.clone(), peer, uri: uri.to_owned(), updates };
        ask(link, &subscribed.peer, "resources/subscribe", uri).await?;
        Ok(Some(subscribed))
    }

    async fn changed(&mut self) -> bool {
        loop {
            let heard = match select(pin!(self.updates.recv()), pin!(self.peer.lost())).await {
                Either::Left((heard, _)) => heard,
                Either::Right(_) => return false,
            };
            match heard {
                // It may name a part of the resource.
                Ok(uri) if uri.starts_with(&self.uri) => return true,
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => return true,
                Err(RecvError::Closed) => return false,
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if !self.link.pending.unwatch(&self.uri) || self.peer.is_lost() {
            return;
        }
        let link = self.link.clone();
        let peer = self.peer.clone();
        let uri = self.uri.clone();
        self.link.parts.spawn.task("unsubscribe", Box::pin(unsubscribe(link, peer, uri)));
    }
}

/// Ends a subscription, unless someone watches the resource again.
async fn unsubscribe(link: Arc<Link>, peer: Arc<Peer>, uri: String) {
    if link.pending.is_watched(&uri) {
        return;
    }
    if let Err(error) = ask(&link, &peer, "resources/unsubscribe", &uri).await {
        tracing::debug!(uri, %error, "a subscription could not be ended");
    }
    // Who began meanwhile subscribed, and no one knows what the server heard last.
    if link.pending.is_watched(&uri)
        && let Err(error) = ask(&link, &peer, "resources/subscribe", &uri).await
    {
        tracing::debug!(uri, %error, "a subscription could not be renewed");
    }
}

async fn ask(link: &Link, peer: &Peer, method: &str, uri: &str) -> Result<(), AskError> {
    peer.ask(method, json!({"uri": uri}), None, timeout_ms(link)).await.map(drop)
}
