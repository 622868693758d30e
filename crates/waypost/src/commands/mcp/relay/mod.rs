//! A bridge: lines on standard input and output on one side, a server's `/mcp` on the other, for
//! both eras. Each message of the client is one POST; what the server answers goes back as it
//! comes. A session of the older versions is kept here, and begun again where the server forgot
//! it, so that the client does not notice that the server was restarted.
//!
//! What a version asks of headers is the client's of crate `upstreams`. The rest of that client
//! reads answers into values, masks secrets in them, takes a refusal for the failure of a call and
//! cancels what nobody waits for. A bridge must leave all of that to the two who talk through it,
//! and it reaches the server as every other command does.

mod message;
mod headers;
mod answers;
mod requests;
mod session;

use crate::remote::client::Client;
use crate::remote::sse::{REOPEN_PAUSE, REOPENS_MAX};
use answers::Answers;
use headers::ListedTools;
use message::{Kind, Message, is_answer_to, key};
use outbound::answer::is_passing;
use outbound::sse::ResumePoint;
use requests::{Nature, Requests};
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, StatusCode};
use session::{HandshakeResult, Session};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use upstreams::mcp_headers::{opened, posted};
use wire::jsonrpc::{Frame, INTERNAL_ERROR, Id, PARSE_ERROR, RpcError, error};

/// How many lines wait for a client that reads slowly.
const LINES_WAITING_MAX: usize = 64;
/// A longer line is not read; the server has a limit of its own.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long a message without an answer may take to be delivered.
const DELIVERY_LIMIT: Duration = Duration::from_secs(10);
/// How long requests may continue after the client closed its side.
const DRAIN_LIMIT: Duration = Duration::from_secs(3);
/// How long the last lines and the end of the session may take.
const END_LIMIT: Duration = Duration::from_secs(2);
/// How long to wait at most before the stream of what nobody asked for is opened again.
const REOPEN_PAUSE_MAX: Duration = Duration::from_secs(30);

const INITIALIZE: &str = "initialize";
const INITIALIZED: &str = "notifications/initialized";
const CANCELLED: &str = "notifications/cancelled";
const LISTEN: &str = "subscriptions/listen";

/// Relays between these lines and this server until the input ends or `stop` is done.
pub(super) async fn run<R, W>(client: Client, input: R, output: W, stop: impl Future<Output = ()>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (out, lines) = mpsc::channel(LINES_WAITING_MAX);
    let writer = tokio::spawn(write(lines, output));
    let relay = Arc::new(Relay::new(client, out));
    let mut requests = Requests::default();
    let drained = tokio::select! {
        () = relay.read(BufReader::new(input), &mut requests) => true,
        () = stop => false,
        // No one reads what we write.
        () = relay.out.closed() => false,
    };
    if drained {
        requests.drain(DRAIN_LIMIT).await;
    }
    requests.end().await;
    relay.end().await;
    drop(relay);
    // A client that does not read must not keep us.
    let _ = tokio::time::timeout(END_LIMIT, writer).await;
}

/// Writes lines until there are no more, or no one reads them.
async fn write<W: AsyncWrite + Unpin>(mut lines: mpsc::Receiver<String>, mut output: W) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        let written = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
}

struct Relay {
    client: Client,
    out: mpsc::Sender<String>,
    listed: Mutex<ListedTools>,
    /// Who the client is and what the server calls it; none before the handshake and in the
    /// stateless version.
    session: Mutex<Option<Arc<Session>>>,
    /// Held by the task that begins the session again.
    renewal: tokio::sync::Mutex<()>,
    /// Follows what the server says without being asked.
    listener: Mutex<Option<JoinHandle<()>>>,
}

impl Relay {
    fn new(client: Client, out: mpsc::Sender<String>) -> Self {
        Self {
            client,
            out,
            listed: Mutex::default(),
            session: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
            listener: Mutex::default(),
        }
    }

    /// Reads messages until the input ends.
    async fn read<R: AsyncRead + Unpin>(
        self: &Arc<Self>,
        mut input: BufReader<R>,
        requests: &mut Requests,
    ) {
        loop {
            let mut line = Vec::new();
            let mut bounded = (&mut input).take(LINE_BYTES_MAX);
            match bounded.read_until(b'\n', &mut line).await {
                Ok(0) => return,
                Ok(_) if line.len() as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") => {
                    // The rest of the line is no message, so nothing after this can be trusted.
                    let why = format!("a message has more than {LINE_BYTES_MAX} bytes");
                    self.say(error(None, &RpcError::new(PARSE_ERROR, why))).await;
                    return;
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "standard input cannot be read");
                    return;
                }
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            match Message::read(text.to_owned()) {
                Ok(message) => self.take(message, requests).await,
                Err(answer) => self.say(answer).await,
            }
        }
    }

    /// Sends a message on its way. What has no answer is delivered before the next one is read, so
    /// that the server gets it in order; requests run beside each other.
    async fn take(self: &Arc<Self>, message: Message, requests: &mut Requests) {
        match message.kind.clone() {
            Kind::Request { id, method } if method == INITIALIZE => {
                if let Err(error) = self.greet(&message, &id).await {
                    self.say(wire::jsonrpc::error(Some(&id), &error)).await;
                }
            }
            Kind::Request { id, method } => {
                let nature = Nature {
                    is_stateless: message.version().is_some(),
                    is_endless: method == LISTEN,
                };
                let relay = self.clone();
                let asked = key(&id);
                let answering = async move { relay.answer(&message, &id, &method).await };
                requests.start(asked, nature, answering);
            }
            Kind::Notification { method } if method == CANCELLED => {
                let asked = message.cancelled();
                // In the stateless version a closed connection says it, and nothing else does.
                if !requests.is_stateless(&asked) {
                    self.deliver(&message).await;
                }
                requests.cancel(&asked);
            }
            Kind::Notification { method } => {
                let is_delivered = self.deliver(&message).await;
                if is_delivered && method == INITIALIZED {
                    self.listen();
                }
            }
            Kind::Response => {
                self.deliver(&message).await;
            }
        }
    }

    /// Says a line to the client.
    async fn say(&self, line: String) {
        // It fails only when no one reads any more, and then everything ends.
        let _ = self.out.send(line).await;
    }

    /// Delivers what has no answer; whether the server took it.
    async fn deliver(self: &Arc<Self>, message: &Message) -> bool {
        if message.version().is_none() && self.session().is_none() {
            tracing::debug!("a message has no session that it could belong to");
            return false;
        }
        match tokio::time::timeout(DELIVERY_LIMIT, self.send(message)).await {
            Ok(Ok(response)) if response.status().is_success() => return true,
            Ok(Ok(response)) => {
                let status = response.status().as_u16();
                tracing::warn!(status, "the server did not take a message");
            }
            Ok(Err(error)) => tracing::warn!("{}", error.message),
            Err(_) => tracing::warn!("the server did not take a message in time"),
        }
        false
    }

    /// Brings the answer to a request.
    async fn answer(self: &Arc<Self>, message: &Message, id: &Id, method: &str) {
        let answered = match self.send(message).await {
            Ok(response) if response.status().is_success() => {
                self.pass(Answers::of(response, ResumePoint::default()), id, method).await
            }
            Ok(response) => {
                self.say(refusal(&self.client, id, response).await).await;
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = answered {
            self.say(wire::jsonrpc::error(Some(id), &error)).await;
        }
    }

    /// Passes on what comes before the answer, and the answer. A stream that is cut is taken up
    /// again where it has events that can be named.
    async fn pass(&self, mut from: Answers, id: &Id, method: &str) -> Result<(), RpcError> {
        let asked = key(id);
        let mut tries = 0;
        loop {
            let why = loop {
                let line = match from.next().await {
                    Ok(line) => line,
                    Err(why) => break why,
                };
                let is_answer = is_answer_to(&line, &asked);
                if is_answer && method == "tools/list" {
                    lock(&self.listed).learn(&line);
                }
                self.say(line).await;
                if is_answer {
                    return Ok(());
                }
            };
            tries += 1;
            let place = from.place();
            let can_be = place.last_id.is_some() && tries <= REOPENS_MAX;
            let Some(session) = self.session().filter(|_| can_be) else { return Err(lost(&why)) };
            tokio::time::sleep(REOPEN_PAUSE * tries).await;
            match self.stream(&session, &place).send().await {
                Ok(response) if response.status().is_success() => {
                    from = Answers::of(response, place);
                }
                Ok(_) | Err(_) => return Err(lost(&why)),
            }
        }
    }

    /// Sends a message with the headers of its era. A session that the server does not know any
    /// more is begun again, and the message sent once more: the server did not look at it.
    async fn send(self: &Arc<Self>, message: &Message) -> Result<Response, RpcError> {
        if let Some(version) = message.version() {
            let headers = lock(&self.listed).headers(message, version);
            return self.post(&message.text, headers).await;
        }
        let Some(session) = self.session() else {
            return self.post(&message.text, HeaderMap::new()).await;
        };
        let response = self.post(&message.text, session.headers.to_map()).await?;
        if response.status() != StatusCode::NOT_FOUND || !session.headers.is_named() {
            return Ok(response);
        }
        let renewed = self.renew(&session).await?;
        self.post(&message.text, renewed.headers.to_map()).await
    }

    async fn post(&self, text: &str, headers: HeaderMap) -> Result<Response, RpcError> {
        let request = self.client.mcp(Method::POST).headers(posted(headers));
        request.body(text.to_owned()).send().await.map_err(|error| {
            let failure = self.client.unreachable(&error);
            let hint = failure.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            RpcError::new(INTERNAL_ERROR, format!("{}{hint}", failure.message))
        })
    }

    /// Opens what the server says without being asked, or takes a stream up again at a place.
    fn stream(&self, session: &Session, place: &ResumePoint) -> reqwest::RequestBuilder {
        let headers = opened(session.headers.to_map(), place.last_id.as_deref());
        self.client.mcp(Method::GET).headers(headers)
    }

    /// The handshake, answered before anything else is read: what follows needs its session.
    async fn greet(self: &Arc<Self>, message: &Message, id: &Id) -> Result<(), RpcError> {
        let response = self.post(&message.text, HeaderMap::new()).await?;
        if !response.status().is_success() {
            self.say(refusal(&self.client, id, response).await).await;
            return Ok(());
        }
        let greeted = HandshakeResult::read(response, &message.text, &key(id)).await;
        let greeted = greeted.map_err(|why| lost(&why))?;
        *lock(&self.session) = greeted.session;
        for line in greeted.lines {
            self.say(line).await;
        }
        Ok(())
    }

    /// Begins a session again as the client began it, unless someone else just did.
    async fn renew(self: &Arc<Self>, gone: &Arc<Session>) -> Result<Arc<Session>, RpcError> {
        let _turn = self.renewal.lock().await;
        if let Some(session) = self.session().filter(|session| !Arc::ptr_eq(session, gone)) {
            return Ok(session);
        }
        let response = self.post(&gone.hello, HeaderMap::new()).await?;
        let refused = || lost("the server forgot the session and does not begin another one");
        if !response.status().is_success() {
            return Err(refused());
        }
        let greeted = HandshakeResult::read(response, &gone.hello, &gone.greeting).await;
        let session = greeted.map_err(|why| lost(&why))?.session.ok_or_else(refused)?;
        let told = wire::jsonrpc::notification(INITIALIZED, &serde_json::json!({}));
        self.post(&told, session.headers.to_map()).await?;
        tracing::info!("the server was restarted; the session continues as a new one");
        *lock(&self.session) = Some(session.clone());
        self.listen();
        Ok(session)
    }

    /// Follows what the server says without being asked, instead of what it said before.
    fn listen(self: &Arc<Self>) {
        let Some(session) = self.session() else { return };
        let listening = tokio::spawn(self.clone().follow(session));
        if let Some(old) = lock(&self.listener).replace(listening) {
            old.abort();
        }
    }

    async fn follow(self: Arc<Self>, session: Arc<Session>) {
        let mut place = ResumePoint::default();
        let mut pause = REOPEN_PAUSE;
        loop {
            match self.stream(&session, &place).send().await {
                Ok(response) if response.status().is_success() => {
                    let mut from = Answers::of(response, place);
                    while let Ok(line) = from.next().await {
                        pause = REOPEN_PAUSE;
                        self.say(line).await;
                    }
                    place = from.place();
                }
                Ok(response) if place.is_forgotten(response.status().as_u16()) => {
                    place.last_id = None;
                }
                // There is no such stream, or no such session any more: the next request begins
                // another one.
                Ok(response) if is_final(response.status()) => return,
                Ok(_) | Err(_) => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(REOPEN_PAUSE_MAX);
        }
    }

    /// Ends the session: most servers would keep it for a while.
    async fn end(&self) {
        let listener = lock(&self.listener).take();
        if let Some(listener) = listener {
            listener.abort();
            // It was just cancelled; there is nothing to learn from how it ended.
            let _ = listener.await;
        }
        let session = lock(&self.session).take();
        if let Some(session) = session.filter(|session| session.headers.is_named()) {
            let ending = self.client.mcp(Method::DELETE).headers(session.headers.to_map());
            if let Err(error) = ending.timeout(END_LIMIT).send().await {
                tracing::debug!(%error, "could not end the session on the server");
            }
        }
    }

    fn session(&self) -> Option<Arc<Session>> {
        lock(&self.session).clone()
    }
}

/// Whether a refusal will be the same later.
fn is_final(status: StatusCode) -> bool {
    status.is_client_error() && !is_passing(status.as_u16())
}

/// What the server refused, as an answer to this request.
async fn refusal(client: &Client, id: &Id, response: Response) -> String {
    let status = response.status().as_u16();
    let url = response.url().to_string();
    let bytes = response.bytes().await.unwrap_or_default();
    let frame = serde_json::from_slice::<Frame<'_>>(&bytes).ok();
    let told = frame.filter(|frame| frame.jsonrpc.as_deref() == Some("2.0"));
    if let Some(told) = told.and_then(|frame| frame.error) {
        // With our id: a server that could not read the request could not repeat it.
        let told = told.get().replace(['\n', '\r'], " ");
        return format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{told}}}", id.as_json());
    }
    let failure = client.refused(status, serde_json::from_slice(&bytes).ok());
    let hint =
        failure.hint.unwrap_or_else(|| "is this a Waypost server? see `--server`".to_owned());
    let message = format!("`{url}` answered {status}: {}; {hint}", failure.message);
    error(Some(id), &RpcError::new(INTERNAL_ERROR, message))
}

/// No one will answer this request any more.
fn lost(why: &str) -> RpcError {
    let message = format!(
        "the answer got lost on the way: {why}; it may have happened: see `waypost session ls`"
    );
    RpcError::new(INTERNAL_ERROR, message)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
