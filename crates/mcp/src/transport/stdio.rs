//! MCP over a pipe: one message a line, both eras on one stream. Requests run beside each other,
//! and whatever belongs to them goes out on the same pipe. The pipe's end is the client's: what is
//! under way may finish for a moment, and that is all.

use super::delivery::{Channel, written};
use crate::acts::act_of;
use crate::answer::AnswerResult;
use crate::client::{Client, Version};
use crate::dispatch::{self, INITIALIZE};
use crate::exchange::Exchange;
use crate::messages::message::{self, Message, Meta, RequestMembers, RequestMessage};
use crate::messages::outbox::Outbox;
use crate::messages::requests::{Cancelled, REQUESTS_MAX, Requests, is_cancelled};
use crate::methods::handshake;
use crate::methods::listen;
use crate::sessions::Session;
use crate::state::McpState;
use edge::acts::out_of_scope;
use edge::request::auth::Visitor;
use edge::request::server_state::missing_scope;
use futures::future::{BoxFuture, Either, pending, select};
use identity::VerifiedCaller;
use kernel::tool::call::Caller;
use kernel::values::ids::RealmId;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use wire::jsonrpc::{self, INVALID_REQUEST, RpcError};
use wire::mcp::MODERN;

/// How many lines wait to be written.
const LINES_MAX: usize = 256;
/// How long requests may continue after the client closed its end.
const DRAIN_MS: u64 = 3_000;

/// Serves one client until it closes its end, or its credential ends.
pub async fn serve<R, W>(mcp: Arc<McpState>, client: Visitor, input: R, output: W)
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (sender, lines) = mpsc::channel(LINES_MAX);
    let (done, mut finished) = oneshot::channel();
    let writing = async move {
        if let Err(error) = write(output, lines).await {
            tracing::debug!(%error, "the client does not read any more");
        }
        // No one waits if the client left first.
        let _ = done.send(());
    };
    mcp.spawn.task("mcp output", Box::pin(writing));
    let requests = Requests::new(REQUESTS_MAX);
    let Visitor { caller, verified, .. } = client;
    let mut lapsed = pin!(lapsed(&mcp, verified, caller.realm.clone()));
    let mut pipe = Pipe { mcp: mcp.clone(), caller, sender, requests, session: None };
    let mut input = BufReader::new(input);
    while !pipe.sender.is_closed() {
        let next = line(&mut input, mcp.server.limits().body_bytes_max);
        let read = match select(pin!(next), lapsed.as_mut()).await {
            Either::Left((read, _)) => read,
            Either::Right(((), _)) => {
                tracing::error!("the key of the client is not good any more");
                pipe.requests.end_all();
                break;
            }
        };
        match read {
            Ok(Line::Whole(bytes)) => pipe.take(&bytes).await,
            Ok(Line::TooLong) => pipe.refuse_length().await,
            Ok(Line::End) => break,
            Err(error) => {
                tracing::debug!(%error, "the client's pipe broke");
                break;
            }
        }
    }
    // Streams of news end, and no one answers what we ask.
    mcp.server.close();
    let Pipe { sender, requests, session, .. } = pipe;
    drop(sender);
    if let Some(session) = session {
        session.give_up_asking();
    }
    let clock = mcp.server.engine.clock().as_ref();
    if engine::timeout(clock, DRAIN_MS, &mut finished).await.is_none() {
        requests.end_all();
        let _ = engine::timeout(clock, DRAIN_MS, finished).await;
    }
}

/// Waits until the client's credential is not good any more, or its realm is gone; for ever where
/// it needs no credential.
async fn lapsed(mcp: &McpState, verified: Option<Arc<VerifiedCaller>>, realm: RealmId) {
    match verified {
        Some(verified) => mcp.server.lapse(&verified, &realm).await,
        None => pending().await,
    }
}

/// One client's pipe.
struct Pipe {
    mcp: Arc<McpState>,
    /// Who is at its other end.
    caller: Arc<Caller>,
    sender: mpsc::Sender<String>,
    /// Its requests, of either era.
    requests: Requests,
    /// Its session, if it began one.
    session: Option<Arc<Session>>,
}

impl Pipe {
    async fn take(&mut self, bytes: &[u8]) {
        if bytes.trim_ascii().is_empty() {
            return;
        }
        match message::read(bytes, self.mcp.server.limits().body_depth_max) {
            Ok(Message::Request(request)) => match self.begin(&request) {
                Ok(BeginResult::Answered(message)) => self.say(message).await,
                Ok(BeginResult::UnderWay) => {}
                Err(error) => self.say(jsonrpc::error(Some(&request.id), &error)).await,
            },
            Ok(Message::Notification(noted)) => {
                dispatch::notified(&noted.method, noted.params, &self.requests);
            }
            Ok(Message::Response { id, answer }) => {
                if let Some(session) = &self.session {
                    session.answer(id, answer);
                }
            }
            Err(unread) => {
                self.say(jsonrpc::error(unread.id.as_ref(), &unread.error)).await;
            }
        }
    }

    /// Begins to answer a request.
    fn begin(&mut self, request: &RequestMessage<'_>) -> Result<BeginResult, RpcError> {
        let meta = RequestMembers::read(request.call.params)?.meta;
        let method: &str = &request.call.method;
        let server = &self.mcp.server;
        let missing = act_of(method).and_then(|act| missing_scope(server, &self.caller, act));
        if let Some(scope) = missing {
            return Err(out_of_scope(scope));
        }
        if meta.names_version() || dispatch::is_modern_only(method) {
            let line = dispatch::modern(method)?;
            let client = self.stateless_client(&meta)?;
            let version = client.version;
            let exchange = self.exchange(request, client);
            let cancelled = exchange.cancelled.clone();
            return self.run(request, version, cancelled, (line.handler)(exchange));
        }
        if method == INITIALIZE {
            return self.initialize(request);
        }
        let Some(session) = self.session.clone() else {
            let message = "there is no session; begin with `initialize`, or say in `_meta` of \
                           each request which version it is";
            return Err(RpcError::invalid_params(message));
        };
        let line = dispatch::legacy(method)?;
        let version = session.version;
        let progress = meta.progress()?;
        let client = Client { version, can: session.can, log: session.log(), progress };
        let exchange = self.exchange(request, client);
        let cancelled = exchange.cancelled.clone();
        self.run(request, version, cancelled, (line.handler)(exchange, session))
    }

    fn stateless_client(&self, meta: &Meta<'_>) -> Result<Client, RpcError> {
        if !self.mcp.lenient {
            meta.check()?;
        }
        let version = meta.version()?.unwrap_or(Cow::Borrowed(MODERN));
        meta.client(handshake::supported(&version)?)
    }

    fn initialize(&mut self, request: &RequestMessage<'_>) -> Result<BeginResult, RpcError> {
        if self.session.is_some() {
            return Err(RpcError::new(INVALID_REQUEST, "the session has begun already"));
        }
        let client = handshake::initialized_client(request.call.params, self.mcp.lenient)?;
        let news = Outbox::new(Arc::new(self.channel(None)));
        let (session, wishes) = Session::begin(&self.mcp.server, &self.caller, &client, Some(news));
        let realm = self.caller.realm.clone();
        let herald = listen::herald(self.mcp.clone(), realm, session.news(), wishes);
        self.mcp.spawn.task("mcp session", Box::pin(herald));
        self.session = Some(session);
        let greeting = Ok(handshake::greeting(client.version));
        Ok(BeginResult::Answered(written(&request.id, client.version, &greeting)))
    }

    fn exchange(&self, request: &RequestMessage<'_>, client: Client) -> Exchange {
        let session = self.session.clone().filter(|_| !client.version.is_modern());
        Exchange {
            mcp: self.mcp.clone(),
            caller: self.caller.clone(),
            client,
            id: request.id.clone(),
            params: request.call.params.map(RawValue::to_owned),
            outbox: Outbox::new(Arc::new(self.channel(session))),
            trace: None,
            called: None,
            cancelled: Cancelled::default(),
        }
    }

    fn channel(&self, session: Option<Arc<Session>>) -> Channel {
        Channel { sender: self.sender.clone(), session }
    }

    /// Answers beside the others: a slow request holds no one up.
    fn run(
        &self,
        request: &RequestMessage<'_>,
        version: Version,
        cancelled: Cancelled,
        answering: BoxFuture<'static, AnswerResult>,
    ) -> Result<BeginResult, RpcError> {
        let answering = self.requests.begin(&request.id, cancelled, answering)?;
        let sender = self.sender.clone();
        let id = request.id.clone();
        let task = async move {
            let answered = answering.await;
            if !is_cancelled(&answered) {
                // A client that is gone needs no answer.
                let _ = sender.send(written(&id, version, &answered)).await;
            }
        };
        self.mcp.spawn.task("mcp request", Box::pin(task));
        Ok(BeginResult::UnderWay)
    }

    async fn refuse_length(&self) {
        let max = self.mcp.server.limits().body_bytes_max;
        let message = format!(
            "the message has more than {max} bytes; send less, or raise `body_bytes_max` in \
             `[limits]`"
        );
        self.say(jsonrpc::error(None, &RpcError::new(INVALID_REQUEST, message))).await;
    }

    async fn say(&self, message: String) {
        // If no one writes any more, reading ends as well.
        let _ = self.sender.send(message).await;
    }
}

/// The immediate answer to a request.
enum BeginResult {
    Answered(String),
    /// Nothing: the answer comes later.
    UnderWay,
}

/// Writes each message as a line.
async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<String>,
) -> io::Result<()> {
    while let Some(message) = lines.recv().await {
        // A line break can stand between the tokens of a message, and would end it.
        let mut bytes = message.into_bytes();
        for byte in &mut bytes {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        bytes.push(b'\n');
        output.write_all(&bytes).await?;
        output.flush().await?;
    }
    output.shutdown().await
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole(Vec<u8>),
    /// One that is longer than allowed; it was read over.
    TooLong,
    End,
}

async fn line(input: &mut (impl AsyncBufRead + Unpin), bytes_max: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let read = input.fill_buf().await?;
        if read.is_empty() {
            let nothing = line.is_empty() && !too_long;
            return Ok(if nothing { Line::End } else { whole(line, too_long) });
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(read.len());
        too_long |= line.len() + taken > bytes_max;
        if too_long {
            line.clear();
        } else {
            line.extend_from_slice(&read[..taken]);
        }
        input.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(whole(line, too_long));
        }
    }
}

fn whole(line: Vec<u8>, too_long: bool) -> Line {
    if too_long { Line::TooLong } else { Line::Whole(line) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;

    #[test]
    fn lines_are_read_one_by_one_and_long_ones_over() {
        let text: &[u8] = b"ab\n\nlonger than five\ncd\r\nlast";
        // A small buffer, so that lines come in pieces.
        let mut input = BufReader::with_capacity(3, text);
        let mut read = Vec::new();
        loop {
            match block_on(line(&mut input, 5)).unwrap() {
                Line::End => break,
                line => read.push(line),
            }
        }
        let expected: Vec<Line> = ["ab", "", "-", "cd\r", "last"]
            .into_iter()
            .map(|text| match text {
                "-" => Line::TooLong,
                text => Line::Whole(text.as_bytes().to_vec()),
            })
            .collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn a_message_is_one_line() {
        let (sender, lines) = mpsc::channel(2);
        sender.try_send("{\n}".to_owned()).unwrap();
        drop(sender);
        let mut output = Vec::new();
        block_on(write(&mut output, lines)).unwrap();
        assert_eq!(output, b"{ }\n");
    }
}
