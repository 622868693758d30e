//! `POST /mcp`: one message, of either era. A request that says itself who sends it is stateless;
//! any other needs the session that `initialize` began.

use super::delivery::{self, Accept, Channel, PendingAnswer, written};
use super::headers::{self, VERSION, header};
use crate::acts::act_of;
use crate::answer::AnswerResult;
use crate::client::{Client, Version};
use crate::dispatch::{self, INITIALIZE, InSession, MethodEntry};
use crate::exchange::{Exchange, ResolvedCall};
use crate::lists;
use crate::messages::message::{self, Message, Meta, MethodCall, RequestMembers, RequestMessage};
use crate::messages::outbox::Outbox;
use crate::messages::requests::{Cancelled, REQUESTS_MAX};
use crate::methods::handshake;
use crate::methods::listen::{self, LISTEN};
use crate::sessions::Session;
use crate::state::McpState;
use axum::extract::Request;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::acts::out_of_scope;
use edge::problem::rate_limit;
use edge::request::body::{self, is_deeper};
use edge::request::server_state::missing_scope;
use edge::request::trace;
use engine::refusal::Quota;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all, ready};
use kernel::tool::call::Caller;
use kernel::values::caller::{Act, Scope, Scopes};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::sync::mpsc;
use wire::jsonrpc::{self, INTERNAL_ERROR, INVALID_REQUEST, Id, RpcError};
use wire::mcp::{HEADER_SESSION, MODERN};

/// A request that is not answered by its method.
pub(crate) struct PostRefusal {
    status: StatusCode,
    error: Box<RpcError>,
    /// What the client's credential lacks.
    challenge: Option<HeaderValue>,
    /// What the client has used up, where it is known how much it may use.
    quota: Option<Quota>,
}

impl PostRefusal {
    pub(crate) fn new(status: StatusCode, error: RpcError) -> Self {
        Self { status, error: Box::new(error), challenge: None, quota: None }
    }

    /// It is no request that we can take.
    pub(crate) fn invalid(status: StatusCode, message: &str) -> Self {
        Self::new(status, RpcError::new(INVALID_REQUEST, message))
    }

    /// There is no room for it now.
    pub(crate) fn too_many(message: &str) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, RpcError::new(INTERNAL_ERROR, message))
    }

    /// The same with what the client has used up, if that is known.
    pub(crate) fn quota(self, quota: Option<Quota>) -> Self {
        Self { quota, ..self }
    }

    /// The whole answer.
    pub(crate) fn response(&self, id: Option<&Id>) -> Response {
        let mut response = delivery::json(self.status, jsonrpc::error(id, &self.error));
        let later = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
        if later.contains(&self.status) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Some(challenge) = &self.challenge {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge.clone());
        }
        let used_up = self.quota.and_then(|quota| rate_limit(quota, None));
        response.headers_mut().extend(used_up.into_iter().flatten());
        response
    }
}

impl From<RpcError> for PostRefusal {
    fn from(error: RpcError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }
}

/// Answers a `POST`.
pub(crate) async fn post(mcp: Arc<McpState>, caller: &Arc<Caller>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(accept) = Accept::read(&parts.headers) else {
        let why = "`Accept` must take `application/json` or `text/event-stream`";
        return PostRefusal::invalid(StatusCode::NOT_ACCEPTABLE, why).response(None);
    };
    let bytes = match body::read(&mcp.server, body).await {
        Ok(bytes) => bytes,
        Err(failure) => {
            return PostRefusal::new(failure.status(), failure.rpc_error()).response(None);
        }
    };
    let arrival = IncomingMessage { mcp: &mcp, caller, headers: &parts.headers, accept };
    let (answered, id) = if bytes.trim_ascii_start().first() == Some(&b'[') {
        // Rare, and large: it need not be a part of every request.
        (Box::pin(arrival.batch(&bytes)).await, None)
    } else {
        match message::read(&bytes, mcp.server.limits().body_depth_max) {
            Ok(Message::Request(request)) => (arrival.request(&request).await, Some(request.id)),
            Ok(Message::Notification(noted)) => (arrival.notification(&noted), None),
            Ok(Message::Response { id, answer }) => (arrival.response(id, answer), None),
            Err(unread) => (Err((*unread.error).into()), unread.id),
        }
    };
    answered.unwrap_or_else(|refused| refused.response(id.as_ref()))
}

/// The caller's session that these headers name.
pub(crate) fn session(
    mcp: &McpState,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Arc<Session>, PostRefusal> {
    if let Some(version) = header(headers, &VERSION)
        && Version::named(version).is_none_or(Version::is_modern)
    {
        return Err(handshake::unsupported(version).into());
    }
    let id = session_id(headers)?;
    mcp.sessions.find(id, caller).ok_or_else(no_session)
}

/// The session id in these headers.
pub(crate) fn session_id(headers: &HeaderMap) -> Result<&str, PostRefusal> {
    header(headers, HEADER_SESSION).ok_or_else(|| {
        let why = "`Mcp-Session-Id` is missing; begin with `initialize`, or say in `_meta` of each \
                   request which version it is";
        PostRefusal::invalid(StatusCode::BAD_REQUEST, why)
    })
}

/// There is no such session: the client begins another one.
pub(crate) fn no_session() -> PostRefusal {
    let why = "there is no such session, or it is over; begin another one with `initialize`";
    PostRefusal::invalid(StatusCode::NOT_FOUND, why)
}

/// A message that came in.
struct IncomingMessage<'a> {
    mcp: &'a Arc<McpState>,
    caller: &'a Arc<Caller>,
    headers: &'a HeaderMap,
    accept: Accept,
}

impl IncomingMessage<'_> {
    async fn request(&self, request: &RequestMessage<'_>) -> Result<Response, PostRefusal> {
        let members = RequestMembers::read(request.call.params)?;
        let method: &str = &request.call.method;
        self.within_scopes(method)?;
        if self.is_stateless(method, &members.meta) {
            return self.stateless(request, &members).await;
        }
        if method == INITIALIZE {
            return self.initialize(request);
        }
        self.in_session(request, &members.meta).await
    }

    /// Refuses a method that the scopes of the credential do not cover: a client that learns which
    /// one is missing can get another credential.
    fn within_scopes(&self, method: &str) -> Result<(), PostRefusal> {
        let server = &self.mcp.server;
        let missing = act_of(method).and_then(|act| missing_scope(server, self.caller, act));
        missing.map_or(Ok(()), |scope| Err(self.out_of_scope(scope)))
    }

    /// Refuses an answer to a question of ours whose credential covers neither the call that asks
    /// nor answers: the call continues with the scopes of the one that began it.
    fn may_respond(&self) -> Result<(), PostRefusal> {
        let acts = [Act::Call, Act::Answer];
        let is_covered = |scopes: Scopes| acts.into_iter().any(|act| scopes.allow(act));
        match self.caller.scopes.is_none_or(is_covered) {
            true => Ok(()),
            false => Err(self.out_of_scope(Scope::Answer)),
        }
    }

    fn out_of_scope(&self, scope: Scope) -> PostRefusal {
        let challenge = self.mcp.server.entrance.step_up(scope, self.caller.scopes);
        PostRefusal { challenge, ..PostRefusal::new(StatusCode::FORBIDDEN, out_of_scope(scope)) }
    }

    fn is_stateless(&self, method: &str, meta: &Meta<'_>) -> bool {
        meta.names_version()
            || dispatch::is_modern_only(method)
            || header(self.headers, &VERSION) == Some(MODERN)
    }

    async fn stateless(
        &self,
        request: &RequestMessage<'_>,
        members: &RequestMembers<'_>,
    ) -> Result<Response, PostRefusal> {
        let method: &str = &request.call.method;
        // Before all else, so that a client of an older version learns what is amiss.
        let line = dispatch::modern(method)
            .map_err(|error| PostRefusal::new(StatusCode::NOT_FOUND, error))?;
        let (client, called) = self.client(method, members)?;
        let listens = method == LISTEN;
        if listens && !self.accept.events {
            let why = "the answer is a stream: `Accept` must take `text/event-stream`";
            return Err(PostRefusal::invalid(StatusCode::NOT_ACCEPTABLE, why));
        }
        let hears = listens || client.progress.is_some() || client.log.is_some();
        let server = &self.mcp.server;
        let permit =
            (hears && line.tells()).then(|| self.accept.room(server, self.caller)).flatten();
        if listens && permit.is_none() {
            let refused = PostRefusal::too_many("there is no room for one more stream now");
            return Err(refused.quota(server.stream_quota(self.caller)));
        }
        let (outbox, messages) = channel_before_answer(permit.is_some(), None);
        let version = client.version;
        let exchange = Exchange { called, ..self.exchange(request, client, outbox) };
        let answering = (line.handler)(exchange);
        let handling = PendingAnswer::new(request.id.clone(), version, answering, messages);
        Ok(delivery::stateless(server, self.caller, handling, self.accept, permit).await)
    }

    /// The client of a stateless request, once headers and body say the same, and what the request
    /// calls, if it calls a tool that is there.
    fn client(
        &self,
        method: &str,
        members: &RequestMembers<'_>,
    ) -> Result<(Client, Option<ResolvedCall>), RpcError> {
        let strict = !self.mcp.lenient;
        let meta = &members.meta;
        if strict {
            headers::has_version(self.headers)?;
            meta.check()?;
        }
        let version = match meta.version()? {
            Some(version) => version,
            None => Cow::Borrowed(header(self.headers, &VERSION).unwrap_or(MODERN)),
        };
        if strict {
            headers::check(self.headers, &version, method, members)?;
        }
        let version = handshake::supported(&version)?;
        let name = members.name.filter(|_| method == "tools/call").and_then(message::text);
        let tool = name.and_then(|name| lists::find(self.mcp, self.caller, &name));
        if strict && let Some(tool) = &tool {
            headers::check_arguments(self.headers, &tool.spec().input_schema, members)?;
        }
        let called = tool.map(|tool| ResolvedCall { tool, params: members.plain() });
        Ok((meta.client(version)?, called))
    }

    fn initialize(&self, request: &RequestMessage<'_>) -> Result<Response, PostRefusal> {
        let mcp = self.mcp;
        let client = handshake::initialized_client(request.call.params, mcp.lenient)?;
        let (session, wishes) = Session::begin(&mcp.server, self.caller, &client, None);
        mcp.sessions
            .add(&session)
            .map_err(|error| PostRefusal::new(StatusCode::TOO_MANY_REQUESTS, error))
            .map_err(|refused| refused.quota(session.quota()))?;
        let realm = self.caller.realm.clone();
        let herald = listen::herald(mcp.clone(), realm, session.news(), wishes);
        mcp.spawn.task("mcp session", Box::pin(herald));
        let greeting = Ok(handshake::greeting(client.version));
        let message = written(&request.id, client.version, &greeting);
        let mut response = self.accept.whole(StatusCode::OK, message);
        if let Ok(id) = HeaderValue::from_str(session.id()) {
            response.headers_mut().insert(HeaderName::from_static(HEADER_SESSION), id);
        }
        Ok(response)
    }

    async fn in_session(
        &self,
        request: &RequestMessage<'_>,
        meta: &Meta<'_>,
    ) -> Result<Response, PostRefusal> {
        let session = session(self.mcp, self.caller, self.headers)?;
        let line = known(request)?;
        let permit =
            line.tells().then(|| self.accept.room(&self.mcp.server, self.caller)).flatten();
        let (outbox, messages) = channel_before_answer(permit.is_some(), Some(session.clone()));
        let progress = meta.progress()?;
        let answering = self.begin(&session, line, request, progress, outbox)?;
        let handling = PendingAnswer::new(request.id.clone(), session.version, answering, messages);
        Ok(delivery::resumable(self.mcp, &session, handling, self.accept, permit).await)
    }

    /// Begins to answer a request of a session, which can be cancelled from then on. Its client may
    /// hear of progress under a token.
    fn begin(
        &self,
        session: &Arc<Session>,
        line: &MethodEntry<InSession>,
        request: &RequestMessage<'_>,
        progress: Option<Value>,
        outbox: Outbox,
    ) -> Result<BoxFuture<'static, AnswerResult>, PostRefusal> {
        let client =
            Client { version: session.version, can: session.can, log: session.log(), progress };
        let exchange = self.exchange(request, client, outbox);
        let cancelled = exchange.cancelled.clone();
        let answering = (line.handler)(exchange, session.clone());
        session.requests.begin(&request.id, cancelled, answering).map_err(|error| {
            match error.code {
                INTERNAL_ERROR => PostRefusal::new(StatusCode::TOO_MANY_REQUESTS, error),
                _ => error.into(),
            }
        })
    }

    fn exchange(&self, request: &RequestMessage<'_>, client: Client, outbox: Outbox) -> Exchange {
        Exchange {
            mcp: self.mcp.clone(),
            caller: self.caller.clone(),
            client,
            id: request.id.clone(),
            params: request.call.params.map(RawValue::to_owned),
            outbox,
            trace: trace::of(self.headers),
            called: None,
            cancelled: Cancelled::default(),
        }
    }

    fn notification(&self, noted: &MethodCall<'_>) -> Result<Response, PostRefusal> {
        let meta = RequestMembers::read(noted.params)?.meta;
        // Without a session a client cancels by closing the stream; nothing else is worth noting.
        if !self.is_stateless(&noted.method, &meta) {
            let session = session(self.mcp, self.caller, self.headers)?;
            dispatch::notified(&noted.method, noted.params, &session.requests);
        }
        Ok(StatusCode::ACCEPTED.into_response())
    }

    fn response(
        &self,
        id: &RawValue,
        answer: Result<&RawValue, &RawValue>,
    ) -> Result<Response, PostRefusal> {
        let session = session(self.mcp, self.caller, self.headers)?;
        self.may_respond()?;
        session.answer(id, answer);
        Ok(StatusCode::ACCEPTED.into_response())
    }

    /// Several messages at once, which only the oldest version has.
    async fn batch(&self, bytes: &[u8]) -> Result<Response, PostRefusal> {
        let invalid = |why: &str| PostRefusal::invalid(StatusCode::BAD_REQUEST, why);
        let depth_max = self.mcp.server.limits().body_depth_max;
        if is_deeper(bytes, depth_max) {
            return Err(invalid(&format!("the messages nest deeper than {depth_max} levels")));
        }
        let items: Vec<&RawValue> =
            serde_json::from_slice(bytes).map_err(|error| *message::malformed(&error).error)?;
        let session = session(self.mcp, self.caller, self.headers)
            .ok()
            .filter(|session| session.version == Version::March2025)
            .ok_or_else(|| invalid("send one message at a time; only 2025-03-26 has batches"))?;
        if items.is_empty() || items.len() > REQUESTS_MAX {
            return Err(invalid(&format!("a batch has 1 to {REQUESTS_MAX} messages")));
        }
        let mut answers: Vec<BoxFuture<'static, String>> = Vec::new();
        for item in items {
            match message::read(item.get().as_bytes(), depth_max) {
                Ok(Message::Request(request)) => answers.push(self.one_of_many(&session, &request)),
                Ok(Message::Notification(noted)) => {
                    dispatch::notified(&noted.method, noted.params, &session.requests);
                }
                Ok(Message::Response { id, answer }) => {
                    self.may_respond()?;
                    session.answer(id, answer);
                }
                Err(unread) => {
                    let answer = jsonrpc::error(unread.id.as_ref(), &unread.error);
                    answers.push(ready(answer).boxed());
                }
            }
        }
        if answers.is_empty() {
            return Ok(StatusCode::ACCEPTED.into_response());
        }
        let answers = join_all(answers).await.join(",");
        Ok(self.accept.whole(StatusCode::OK, format!("[{answers}]")))
    }

    /// The answer to one request of a batch; nothing is sent before it.
    fn one_of_many(
        &self,
        session: &Arc<Session>,
        request: &RequestMessage<'_>,
    ) -> BoxFuture<'static, String> {
        let id = request.id.clone();
        let version = session.version;
        let begun = known(request).and_then(|line| {
            let progress = RequestMembers::read(request.call.params)?.meta.progress()?;
            self.begin(session, line, request, progress, Outbox::default())
        });
        async move {
            let answered = match begun {
                Ok(answering) => answering.await,
                Err(refused) => Err(*refused.error),
            };
            written(&id, version, &answered)
        }
        .boxed()
    }
}

/// A channel for what is sent before an answer, and where it comes out. Where nothing can be sent
/// there is no channel, and nothing to wait for but the answer.
fn channel_before_answer(
    is_open: bool,
    session: Option<Arc<Session>>,
) -> (Outbox, Option<mpsc::Receiver<String>>) {
    if !is_open {
        return (Outbox::default(), None);
    }
    let (channel, messages) = Channel::open(session);
    (Outbox::new(Arc::new(channel)), Some(messages))
}

/// Who answers a request of a session. That no one does is an answer like any other.
fn known(request: &RequestMessage<'_>) -> Result<&'static MethodEntry<InSession>, PostRefusal> {
    dispatch::legacy(&request.call.method).map_err(|error| PostRefusal::new(StatusCode::OK, error))
}
