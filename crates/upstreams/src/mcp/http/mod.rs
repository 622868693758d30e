//! An MCP server behind a URL: streamable HTTP, in both eras. The stateless version posts requests
//! that speak for themselves, and closing an answer cancels; the older ones keep a session, have a
//! stream for what belongs to no request, and take a lost stream up again.

mod message;
pub mod headers;
mod waiters;
mod negotiated;
mod direct;
mod response;
mod endpoint;
mod answer;
mod stream;
mod shared;
mod response_stream;
mod notification_stream;
mod sse_legacy;
#[cfg(test)]
mod tests;

use super::line::{Incoming, Line, Outgoing, PeerErrorKind, Replies, Result};
use crate::RemoteParts;
use crate::config::Secret;
use crate::oauth::Account;
use answer::Answer;
use endpoint::Endpoint;
use futures::future::BoxFuture;
use headers::SessionHeaders;
use kernel::tool::call::CallProgress;
use message::Message;
use negotiated::{INITIALIZE, MessageHeaders};
use reqwest::header::HeaderMap;
use response_stream::Follow;
use shared::{Cancel, Shared};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use wire::jsonrpc::{Frame, Id};

/// The client's word that the session can begin.
const INITIALIZED: &str = "notifications/initialized";
/// How long the other side may take to end a session that we let go of.
const DELETE_MS: u64 = 2_000;

/// A line over HTTP.
pub(crate) struct HttpLine {
    shared: Arc<Shared>,
    server_messages: Mutex<Option<mpsc::Receiver<Incoming>>>,
    /// Over the transport of 2024-11-05: all answers come on one stream.
    is_legacy_sse: bool,
}

impl HttpLine {
    /// A line to this URL, with these headers on everything, and the token of our account there.
    /// Nothing is sent yet.
    #[allow(clippy::new_ret_no_self, reason = "the maker of a line need not know which it is")]
    pub(crate) fn new(
        url: &str,
        headers: Vec<(String, Secret)>,
        account: Option<Arc<Account>>,
        parts: &RemoteParts,
    ) -> Result<Arc<dyn Line>> {
        let endpoint = Endpoint::new(url, &headers, account, parts)?;
        let (shared, heard) = Shared::new(endpoint, parts.clone());
        Ok(Arc::new(Self {
            shared,
            server_messages: Mutex::new(Some(heard)),
            is_legacy_sse: false,
        }))
    }

    /// The same over the oldest transport, whose stream is opened first. Nothing was asked where
    /// this fails.
    pub(crate) async fn connect_legacy_sse(
        url: &str,
        headers: Vec<(String, Secret)>,
        account: Option<Arc<Account>>,
        parts: &RemoteParts,
    ) -> Result<Arc<dyn Line>> {
        let endpoint = Endpoint::new(url, &headers, account, parts)?;
        let (shared, heard) = sse_legacy::connect(&endpoint, parts).await?;
        Ok(Arc::new(Self { shared, server_messages: Mutex::new(Some(heard)), is_legacy_sse: true }))
    }

    async fn ask(&self, request: Outgoing) -> Result<Replies> {
        let shared = &self.shared;
        if request.method == headers::CALL {
            shared.hears_news().await;
        }
        shared.check_open()?;
        let begins = request.method == INITIALIZE;
        if begins {
            shared.begin_anew();
        }
        let deadline = shared.parts.clock.now().plus_ms(request.timeout_ms);
        let named = MessageHeaders::named(&request);
        let mut manner = named.unwrap_or_else(|| shared.agreed().manner(&request));
        let told = (manner.legacy && !begins).then(|| manner.clone());
        let mut cancel = Cancel::new(shared, &request.id, told);
        // A stream of the stateless version cannot be taken up again: these are sent once.
        let headers = match manner.legacy {
            true => manner.headers.clone(),
            false => std::mem::take(&mut manner.headers),
        };
        let posting = pin!(self.post(&request, headers, manner.in_session));
        let answered = match request.is_watched {
            true => Some(posting.await),
            false => shared.parts.within(request.timeout_ms, posting).await,
        };
        match answered.unwrap_or_else(|| Err(shared.late(request.timeout_ms))) {
            Ok(Answer::One(message)) => {
                cancel.done();
                self.replies(&request.id, [message])
            }
            Ok(Answer::Several(messages)) => {
                cancel.done();
                self.replies(&request.id, messages)
            }
            Ok(Answer::Events(response)) => {
                // The session began with the answer's head: its stream is taken up again in it.
                let manner = if begins { shared.agreed().manner_of_message(None) } else { manner };
                let (follow, replies) = Follow::new(shared, &request, manner, cancel, deadline);
                shared.parts.spawn.task("mcp stream", Box::pin(follow.stream(response)));
                Ok(replies)
            }
            Err(error) => {
                cancel.failed(&error);
                Err(error)
            }
        }
    }

    async fn post(
        &self,
        request: &Outgoing,
        headers: HeaderMap,
        in_session: bool,
    ) -> Result<Answer> {
        let shared = &self.shared;
        let headers = headers::traced(headers, &request.params);
        let response = shared.endpoint.post(headers, request.message()).await?;
        if request.method == INITIALIZE && response.status().is_success() {
            shared.agreed().began(SessionHeaders::begun(response.headers()));
        }
        let bytes_max = shared.parts.limits.call_output_bytes_max;
        let read = answer::read(&shared.endpoint, response, in_session, bytes_max).await;
        read.inspect(|_| shared.endpoint.understood())
    }

    /// The replies of an answer that came as a whole: ours is the last of them.
    fn replies(&self, id: &Id, messages: impl IntoIterator<Item = Message>) -> Result<Replies> {
        let mut told = Vec::new();
        let mut ours = None;
        for message in messages {
            match message {
                Message::Told(incoming) => told.push(incoming),
                Message::Answer { id: Some(other), answer } if other != *id => {
                    self.shared.waiting.deliver(&other, answer);
                }
                Message::Answer { id: Some(_), answer } => ours = Some(answer),
                Message::Answer { id: None, answer: Incoming::Error(error) } => {
                    ours = Some(Incoming::Error(error));
                }
                Message::Answer { id: None, .. } => {}
            }
        }
        let Some(ours) = ours else {
            let what = "answered, but not what it was asked";
            let endpoint = &self.shared.endpoint;
            return Err(endpoint.error(CallProgress::Unknown, PeerErrorKind::NotMcp, what));
        };
        Ok(Replies::Whole(told.into_iter(), Some(ours)))
    }

    async fn tell(&self, message: String) -> Result<()> {
        let shared = &self.shared;
        shared.check_open()?;
        let method = method_of(&message);
        let manner = shared.agreed().manner_of_message(method.as_deref());
        shared.tell(manner, message, shared.parts.limits.call_timeout_ms).await?;
        if method.as_deref() == Some(INITIALIZED) {
            shared.agreed().initialized();
            self.listen();
        }
        Ok(())
    }

    /// Begins to listen for news, once the session is open on both sides.
    fn listen(&self) {
        let shared = &self.shared;
        let turn = shared.turn();
        // It may have been closed while the other side was told that it can begin: that turn never
        // ends.
        if shared.is_closed() {
            return;
        }
        let begins = shared.agreed().begin_listening();
        if let Some(manner) = begins {
            shared.opens_news();
            let listening = notification_stream::listen(shared.clone(), manner, turn);
            shared.parts.spawn.task("mcp news", Box::pin(listening));
        }
    }

    async fn end(&self) {
        let shared = &self.shared;
        let kept = shared.agreed().kept_session().filter(|_| !shared.is_closed());
        shared.close();
        if let Some(manner) = kept {
            // Best effort: a session that is not used any more ends by itself.
            let _ = shared.parts.within(DELETE_MS, shared.endpoint.delete(manner.headers)).await;
        }
    }
}

impl Line for HttpLine {
    fn request<'a>(&'a self, request: Outgoing) -> BoxFuture<'a, Result<Replies>> {
        match self.is_legacy_sse {
            true => Box::pin(async move { sse_legacy::ask(&self.shared, &request) }),
            false => Box::pin(self.ask(request)),
        }
    }

    fn send<'a>(&'a self, message: String) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.tell(message))
    }

    fn server_messages(&self) -> Option<mpsc::Receiver<Incoming>> {
        self.server_messages.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn agreed(&self, version: &str) {
        // The oldest transport does not name it, and its stream is open already.
        if !self.is_legacy_sse {
            self.shared.agreed().agree(version);
            self.listen();
        }
    }

    fn is_apart(&self) -> bool {
        self.is_legacy_sse || self.shared.agreed().kept_session().is_some()
    }

    fn close<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(self.end())
    }
}

impl Drop for HttpLine {
    fn drop(&mut self) {
        // The tasks behind it end with it.
        self.shared.close();
    }
}

fn method_of(message: &str) -> Option<String> {
    let frame: Frame<'_> = serde_json::from_str(message).ok()?;
    frame.method.map(|method| method.into_owned())
}
