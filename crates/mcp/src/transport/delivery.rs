//! How an answer reaches an HTTP client: as JSON if nothing comes before it, else as a stream of
//! server-sent events. The stateless version cancels by closing the stream, so there the stream
//! owns the work; in a session the work continues, and the client may come back for what it missed.

use crate::answer::AnswerResult;
use crate::client::Version;
use crate::messages::outbox::{AskError, ClientChannel, Outbox};
use crate::messages::pieces::Pieces;
use crate::messages::replay::{Reader, Replay, STANDALONE};
use crate::messages::requests::is_cancelled;
use crate::sessions::{self, Session};
use crate::state::McpState;
use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::request::server_state::{Closing, Shared, StreamPlace};
use futures::future::{BoxFuture, Either, ready, select};
use futures::{Stream, StreamExt, stream};
use kernel::contracts::Clock;
use kernel::tool::call::Caller;
use serde_json::Value;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use wire::jsonrpc::{self, INTERNAL_ERROR, Id, RpcError};
use wire::mcp::{HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION};

/// How often a silent stream says that it is still there.
const HEARTBEAT_MS: u64 = 15_000;
/// A comment, which clients skip.
const STILL_HERE: &[u8] = b": still here\n\n";
/// How soon a client that lost its stream comes back.
const RETRY_MS: u64 = 1_000;
/// How many messages wait to be sent before an answer.
const MESSAGES_MAX: usize = 64;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// What a client takes for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) json: bool,
    /// A stream of events.
    pub(crate) events: bool,
}

impl Accept {
    /// What these headers say; none if it is nothing that we have.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let mut accept = Self { json: false, events: false };
        let mut said = false;
        for value in headers.get_all(ACCEPT) {
            for range in value.to_str().unwrap_or_default().split(',') {
                said = true;
                match range.split(';').next().unwrap_or_default().trim() {
                    "*/*" => accept = Self { json: true, events: true },
                    JSON | "application/*" => accept.json = true,
                    EVENTS | "text/*" => accept.events = true,
                    _ => {}
                }
            }
        }
        if !said {
            return Some(Self { json: true, events: true });
        }
        (accept.json || accept.events).then_some(accept)
    }

    /// Room for one more stream of this caller, if its client takes one.
    pub(crate) fn room(self, server: &Shared, caller: &Caller) -> Option<StreamPlace> {
        self.events.then(|| server.free_stream(caller).ok()).flatten()
    }

    /// The response to a request as a whole answer.
    fn answer(
        self,
        handling: &PendingAnswer,
        answered: &AnswerResult,
        status: StatusCode,
    ) -> Response {
        match answered {
            Ok(outcome) if self.json => {
                let pieces = outcome.pieces(&handling.id, handling.version);
                let body: Body = match pieces {
                    // Most answers are one text.
                    [only, second, third] if second.is_empty() && third.is_empty() => only.into(),
                    pieces => Body::new(Pieces(pieces.into())),
                };
                as_json(status, body)
            }
            _ => self.whole(status, handling.written(answered)),
        }
    }

    /// One message as a whole answer.
    pub(crate) fn whole(self, status: StatusCode, message: String) -> Response {
        if self.json || status != StatusCode::OK {
            return json(status, message);
        }
        streamed(stream::iter([event(None, &message)]))
    }
}

/// Whether a client says by name that it takes a stream of events.
pub(crate) fn wants_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges = values.flat_map(|value| value.split(','));
    ranges.any(|range| range.split(';').next().unwrap_or_default().trim() == EVENTS)
}

pub(crate) fn json(status: StatusCode, message: String) -> Response {
    as_json(status, message.into())
}

fn as_json(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

/// The response to a request.
pub(crate) fn written(id: &Id, version: Version, answered: &AnswerResult) -> String {
    match answered {
        Ok(outcome) => jsonrpc::result(id, &outcome.write(version)),
        Err(error) => jsonrpc::error(Some(id), error),
    }
}

/// Sends by a channel of tokio; a session's client can be asked for something, too.
pub(crate) struct Channel {
    /// Where messages go.
    pub(crate) sender: mpsc::Sender<String>,
    /// The session, in the versions that have one.
    pub(crate) session: Option<Arc<Session>>,
}

impl Channel {
    /// A channel, and where its messages come out.
    pub(crate) fn open(session: Option<Arc<Session>>) -> (Self, mpsc::Receiver<String>) {
        let (sender, messages) = mpsc::channel(MESSAGES_MAX);
        (Self { sender, session }, messages)
    }
}

impl ClientChannel for Channel {
    fn try_send(&self, message: String) {
        // No room, or no one there: news during a call may be lost.
        let _ = self.sender.try_send(message);
    }

    fn send(&self, message: String) -> BoxFuture<'_, bool> {
        Box::pin(async move { self.sender.send(message).await.is_ok() })
    }

    fn ask<'a>(&'a self, method: &'a str, params: Value) -> BoxFuture<'a, Result<Value, AskError>> {
        match &self.session {
            Some(session) => Box::pin(sessions::ask(session, self, method, params)),
            None => {
                let message = format!("`{method}` cannot be sent in this version");
                Box::pin(ready(Err(AskError::Silent(RpcError::new(INTERNAL_ERROR, message)))))
            }
        }
    }

    fn news(&self) -> Option<Outbox> {
        self.session.as_ref().map(|session| session.news())
    }
}

/// A request that is being answered, with what is sent before its answer.
pub(crate) struct PendingAnswer {
    id: Id,
    version: Version,
    answering: Option<BoxFuture<'static, AnswerResult>>,
    answered: Option<AnswerResult>,
    messages: Option<mpsc::Receiver<String>>,
}

/// Its answer, step by step.
enum Step {
    /// Something to send.
    Message(String),
    /// It is answered; nothing comes after this.
    Answered(AnswerResult),
}

impl PendingAnswer {
    /// A request with this id.
    pub(crate) fn new(
        id: Id,
        version: Version,
        answering: BoxFuture<'static, AnswerResult>,
        messages: Option<mpsc::Receiver<String>>,
    ) -> Self {
        Self { id, version, answering: Some(answering), answered: None, messages }
    }

    fn written(&self, answered: &AnswerResult) -> String {
        written(&self.id, self.version, answered)
    }

    async fn step(&mut self) -> Step {
        poll_fn(|context| self.poll_step(context)).await
    }

    /// The first step, or none if it takes longer than this. A quick one needs no timer.
    async fn first(&mut self, clock: &dyn Clock, wait_ms: u64) -> Option<Step> {
        let mut deadline = None;
        poll_fn(|context| {
            if let Poll::Ready(step) = self.poll_step(context) {
                return Poll::Ready(Some(step));
            }
            let until = || clock.sleep_ms(wait_ms);
            deadline.get_or_insert_with(until).as_mut().poll(context).map(|()| None)
        })
        .await
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        if let Some(answering) = &mut self.answering
            && let Poll::Ready(answered) = answering.as_mut().poll(context)
        {
            self.answering = None;
            self.answered = Some(answered);
        }
        // What was reported before the answer is sent before it. With the answer all of that is
        // there, and is taken at once: tokio may put off a task that polls a channel, as if it were
        // empty.
        if let Some(messages) = &mut self.messages {
            let heard = match &self.answered {
                Some(_) => Poll::Ready(messages.try_recv().ok()),
                None => messages.poll_recv(context),
            };
            match heard {
                Poll::Ready(Some(message)) => return Poll::Ready(Step::Message(message)),
                Poll::Ready(None) => self.messages = None,
                Poll::Pending => {}
            }
        }
        match self.answered.take() {
            Some(answered) => Poll::Ready(Step::Answered(answered)),
            None => Poll::Pending,
        }
    }
}

/// Answers a stateless request. A client that goes away drops the work.
pub(crate) async fn stateless(
    server: &Shared,
    caller: &Caller,
    mut handling: PendingAnswer,
    accept: Accept,
    permit: Option<StreamPlace>,
) -> Response {
    let clock = server.engine.clock();
    let first = match handling.first(clock.as_ref(), server.limits().mcp_quiet_ms).await {
        Some(Step::Answered(answered)) => {
            return accept.answer(&handling, &answered, status_of(&answered));
        }
        Some(Step::Message(message)) => event(None, &message),
        None => Bytes::from_static(STILL_HERE),
    };
    let Some(permit) = permit.or_else(|| accept.room(server, caller)) else {
        let answered = alone(&mut handling).await;
        return accept.answer(&handling, &answered, status_of(&answered));
    };
    let clock = clock.clone();
    let first = Some(first);
    let telling = RequestStream { handling, clock, first, over: false, _permit: permit };
    streamed(stream::unfold(telling, |mut telling| async move {
        let event = telling.next().await?;
        Some((event, telling))
    }))
}

/// Answers a request of a session. Once it is a stream, the work continues without the client.
pub(crate) async fn resumable(
    mcp: &Arc<McpState>,
    session: &Arc<Session>,
    mut handling: PendingAnswer,
    accept: Accept,
    permit: Option<StreamPlace>,
) -> Response {
    let server = &mcp.server;
    let clock = server.engine.clock().as_ref();
    let early = match handling.first(clock, server.limits().mcp_quiet_ms).await {
        Some(Step::Answered(answered)) => {
            return accept.answer(&handling, &answered, StatusCode::OK);
        }
        Some(Step::Message(message)) => Some(message),
        None => None,
    };
    let Some(permit) = permit.or_else(|| accept.room(server, session.caller())) else {
        let answered = alone(&mut handling).await;
        return accept.answer(&handling, &answered, StatusCode::OK);
    };
    let replay = session.new_stream();
    let reader = replay.reader(None);
    if let Some(message) = early {
        replay.push(message);
    }
    mcp.spawn.task("mcp answer", Box::pin(carry(handling, replay)));
    follow(server, session, reader, permit)
}

/// The answer of a request whose client hears nothing else.
async fn alone(handling: &mut PendingAnswer) -> AnswerResult {
    loop {
        match handling.step().await {
            Step::Message(_) => {}
            Step::Answered(answered) => return answered,
        }
    }
}

/// Carries the answer to a request to its stream.
async fn carry(mut handling: PendingAnswer, replay: Arc<Replay>) {
    loop {
        match handling.step().await {
            Step::Message(message) => replay.push(message),
            Step::Answered(answered) => {
                // Who cancelled waits for nothing.
                if !is_cancelled(&answered) {
                    replay.push(handling.written(&answered));
                }
                break;
            }
        }
    }
    replay.end();
}

/// A stream of a session as an answer.
pub(crate) fn follow(
    server: &Shared,
    session: &Arc<Session>,
    reader: Reader,
    permit: StreamPlace,
) -> Response {
    let position = reader.position();
    // Older clients take an event without data for a broken message.
    let first = if session.version >= Version::November2025 {
        Bytes::from(format!("id: {position}\nretry: {RETRY_MS}\ndata:\n\n"))
    } else {
        Bytes::from_static(STILL_HERE)
    };
    let following = SessionConnection {
        reader,
        session: session.clone(),
        clock: server.engine.clock().clone(),
        // An answer may still come while the server closes; news do not.
        closing: (position.stream == STANDALONE).then(|| server.closing()),
        first: Some(first),
        _permit: permit,
    };
    streamed(stream::unfold(following, |mut following| async move {
        let event = following.next().await?;
        Some((event, following))
    }))
}

/// The stream of a stateless request.
struct RequestStream {
    handling: PendingAnswer,
    clock: Arc<dyn Clock>,
    first: Option<Bytes>,
    over: bool,
    _permit: StreamPlace,
}

impl RequestStream {
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let step = engine::timeout(self.clock.as_ref(), HEARTBEAT_MS, self.handling.step()).await;
        Some(match step {
            None => Bytes::from_static(STILL_HERE),
            Some(Step::Message(message)) => event(None, &message),
            Some(Step::Answered(answered)) => {
                self.over = true;
                event(None, &self.handling.written(&answered))
            }
        })
    }
}

/// One connection to a stream of a session.
struct SessionConnection {
    reader: Reader,
    session: Arc<Session>,
    clock: Arc<dyn Clock>,
    closing: Option<Closing>,
    first: Option<Bytes>,
    _permit: StreamPlace,
}

impl SessionConnection {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let next = engine::timeout(self.clock.as_ref(), HEARTBEAT_MS, self.reader.next());
        let next = match &mut self.closing {
            None => next.await,
            Some(closing) => match select(pin!(next), pin!(closing.begun())).await {
                Either::Left((next, _)) => next,
                Either::Right(((), _)) => return None,
            },
        };
        match next {
            None => Some(Bytes::from_static(STILL_HERE)),
            Some(None) => None,
            Some(Some(next)) => Some(event(Some(&next.position.to_string()), &next.message)),
        }
    }
}

impl Drop for SessionConnection {
    fn drop(&mut self) {
        // It was in use until now.
        self.session.touch();
    }
}

/// The status of a stateless answer.
fn status_of(answered: &AnswerResult) -> StatusCode {
    match answered.as_ref().map_err(|error| error.code) {
        Err(jsonrpc::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Err(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => StatusCode::BAD_REQUEST,
        Ok(_) | Err(_) => StatusCode::OK,
    }
}

fn streamed(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let headers = [
        (CONTENT_TYPE, EVENTS),
        (CACHE_CONTROL, "no-cache"),
        // A proxy that collects an answer before it passes it on would hold everything back.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(events.map(Ok::<Bytes, Infallible>))).into_response()
}

fn event(id: Option<&str>, message: &str) -> Bytes {
    let mut text = String::with_capacity(message.len() + 32);
    if let Some(id) = id {
        text.push_str("id: ");
        text.push_str(id);
        text.push('\n');
    }
    // A line break can stand between the tokens of a message, and would end the event's line.
    for line in message.split(['\r', '\n']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Outcome;
    use axum::http::HeaderValue;
    use futures::FutureExt;

    fn accepted(values: &[&str]) -> Option<(bool, bool)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, HeaderValue::from_str(value).unwrap());
        }
        Accept::read(&headers).map(|accept| (accept.json, accept.events))
    }

    #[test]
    fn the_accept_header_is_read() {
        assert_eq!(accepted(&[]), Some((true, true)));
        assert_eq!(accepted(&["*/*"]), Some((true, true)));
        assert_eq!(accepted(&["application/json, text/event-stream"]), Some((true, true)));
        assert_eq!(accepted(&["application/json;q=0.9"]), Some((true, false)));
        assert_eq!(accepted(&["text/event-stream"]), Some((false, true)));
        assert_eq!(accepted(&["text/html", "application/json"]), Some((true, false)));
        assert_eq!(accepted(&["text/html"]), None);
        assert_eq!(accepted(&[""]), None);
    }

    #[test]
    fn an_event_has_one_line_for_each_line() {
        assert_eq!(event(None, "{}"), Bytes::from_static(b"data: {}\n\n"));
        let broken = event(Some("1-2"), "{\n}");
        assert_eq!(broken, Bytes::from_static(b"id: 1-2\ndata: {\ndata: }\n\n"));
    }

    fn steps(handling: &mut PendingAnswer) -> Vec<String> {
        let mut steps = Vec::new();
        while let Some(step) = handling.step().now_or_never() {
            steps.push(match step {
                Step::Message(message) => message,
                Step::Answered(answered) => handling.written(&answered),
            });
        }
        steps
    }

    #[test]
    fn messages_go_before_the_answer() {
        let (channel, messages) = Channel::open(None);
        let answering = async move {
            channel.try_send("a".to_owned());
            channel.send("b".to_owned()).await;
            assert!(channel.ask("roots/list", Value::Null).await.is_err());
            Ok(Outcome::empty())
        };
        let id = Id::number(1);
        let mut handling =
            PendingAnswer::new(id, Version::June2025, answering.boxed(), Some(messages));
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(steps(&mut handling), ["a", "b", answer]);
    }

    #[tokio::test]
    async fn messages_go_before_the_answer_of_a_task_that_used_its_budget() {
        let (channel, messages) = Channel::open(None);
        let answering = async move {
            channel.try_send("a".to_owned());
            // From here on whatever this task asks of a channel has to wait for its next turn.
            while tokio::task::coop::has_budget_remaining() {
                tokio::task::coop::consume_budget().await;
            }
            Ok(Outcome::empty())
        };
        let id = Id::number(1);
        let mut handling =
            PendingAnswer::new(id, Version::June2025, answering.boxed(), Some(messages));
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(steps(&mut handling), ["a", answer]);
    }

    #[test]
    fn a_stateless_error_has_its_status() {
        let status = |code| status_of(&Err(RpcError::new(code, ""))).as_u16();
        assert_eq!([status(-32601), status(-32021), status(-32602)], [404, 400, 200]);
        assert_eq!(status_of(&Ok(Outcome::empty())), StatusCode::OK);
    }
}
