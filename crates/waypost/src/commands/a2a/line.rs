//! A connection to one interface of an agent, in A2A 1.0 over JSON-RPC, HTTP with JSON or gRPC.
//! Sends requests as they are and returns raw answers; the rules judge them.

use crate::exit::{Exit, Failure, Result};
use outbound::answer::{ReadError, collect};
use outbound::client::ClientOptions;
use outbound::grpc::{self, StreamError};
use outbound::percent::encoded;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Map, Value, json};
use std::time::Duration;
use wire::a2a::card::AgentInterface;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::proto::status::Status;
use wire::a2a::proto::{self, to_json, write};
use wire::a2a::{GRPC, GRPC_SERVICE, HEADER_VERSION, HTTP_JSON, JSONRPC, MEDIA_TYPE, VERSION};

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The type of a stream of gRPC, without the form of its messages.
pub(super) const GRPC_TYPE: &str = "application/grpc";
/// How deep an answer of gRPC nests at most.
const DEPTH_MAX: usize = 128;

/// How the interface is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    Rpc,
    Rest,
    Grpc,
}

/// An operation in all bindings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    /// It in the definition: the method of JSON-RPC and of gRPC, and the messages of gRPC.
    defined: proto::Operation,
    verb: Verb,
    /// The path of HTTP; `{id}` is the parameter `id`.
    path: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Get,
    Post,
}

const fn operation(defined: proto::Operation, verb: Verb, path: &'static str) -> Operation {
    Operation { defined, verb, path }
}

pub(super) static SEND: Operation =
    operation(proto::Operation::SendMessage, Verb::Post, "/message:send");
pub(super) static STREAM: Operation =
    operation(proto::Operation::SendStreamingMessage, Verb::Post, "/message:stream");
pub(super) static GET: Operation = operation(proto::Operation::GetTask, Verb::Get, "/tasks/{id}");
pub(super) static LIST: Operation = operation(proto::Operation::ListTasks, Verb::Get, "/tasks");
pub(super) static CANCEL: Operation =
    operation(proto::Operation::CancelTask, Verb::Post, "/tasks/{id}:cancel");
pub(super) static SUBSCRIBE: Operation =
    operation(proto::Operation::SubscribeToTask, Verb::Post, "/tasks/{id}:subscribe");
pub(super) static WEBHOOKS: Operation = operation(
    proto::Operation::ListTaskPushNotificationConfigs,
    Verb::Get,
    "/tasks/{id}/pushNotificationConfigs",
);
pub(super) static EXTENDED_CARD: Operation =
    operation(proto::Operation::GetExtendedAgentCard, Verb::Get, "/extendedAgentCard");

/// A line to one interface.
pub(super) struct Line {
    http: outbound::client::Client,
    pub(super) binding: Binding,
    url: Url,
    tenant: String,
    headers: Vec<(String, String)>,
}

/// An answer as it came.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Its media type.
    pub(super) kind: String,
    /// Its bytes as text; over gRPC its messages as events, so that streams are judged alike.
    pub(super) text: String,
    /// Null where it is not JSON; over gRPC the first message.
    pub(super) body: Value,
    /// How a call of gRPC ended.
    pub(super) ended: Option<Status>,
}

/// The way to speak to an interface, if it is one of 1.0 that is spoken here.
pub(super) fn binding_of(interface: &AgentInterface) -> Option<Binding> {
    let mut numbers = interface.protocol_version.split('.');
    let version = [numbers.next(), numbers.next()].map(Option::unwrap_or_default).join(".");
    match interface.protocol_binding.as_str() {
        JSONRPC if version == VERSION => Some(Binding::Rpc),
        HTTP_JSON if version == VERSION => Some(Binding::Rest),
        GRPC if version == VERSION => Some(Binding::Grpc),
        _ => None,
    }
}

impl Line {
    /// A line to this address, which may be shown these headers.
    pub(super) fn open(
        binding: Binding,
        url: Url,
        tenant: &str,
        headers: Vec<(String, String)>,
    ) -> Result<Self> {
        let options = ClientOptions::default().connect_within(CONNECT_LIMIT).only(&url);
        let options = if binding == Binding::Grpc { options.http2() } else { options };
        let is_here = url.host_str().is_some_and(project::upstream_entries::is_loopback);
        // A proxy passes on what is encrypted, and otherwise speaks HTTP/1.1.
        let is_passed_on = binding != Binding::Grpc || url.scheme() == "https";
        let http = options.of_command(!is_here && is_passed_on).build().map_err(|error| {
            Failure::new(Exit::Failed, "client", format!("cannot start a client: {error}"))
        })?;
        Ok(Self { http, binding, url, tenant: tenant.to_owned(), headers })
    }

    /// Does an operation of 1.0.
    pub(super) async fn call(&self, operation: &Operation, params: &Value) -> Result<Answer> {
        self.call_in(operation, params, VERSION).await
    }

    /// The same in this version.
    pub(super) async fn call_in(
        &self,
        operation: &Operation,
        params: &Value,
        version: &str,
    ) -> Result<Answer> {
        let mut params = params.as_object().cloned().unwrap_or_default();
        if self.binding != Binding::Rest && !self.tenant.is_empty() {
            params.insert("tenant".to_owned(), json!(self.tenant));
        }
        match self.binding {
            Binding::Rpc => {
                let method = operation.defined.name();
                let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
                self.exchange(Method::POST, self.url.clone(), Some(body.to_string()), version).await
            }
            Binding::Rest => {
                let url = self.rest_url(operation, &mut params);
                let (method, body) = match operation.verb {
                    Verb::Get => (Method::GET, None),
                    Verb::Post => (Method::POST, Some(json!(params).to_string())),
                };
                self.exchange(method, url, body, version).await
            }
            Binding::Grpc => {
                let calling = self.called(operation, &params, version);
                match tokio::time::timeout(ANSWER_LIMIT, calling).await {
                    Ok(answer) => answer,
                    Err(_) => Err(self.unreachable(&format!("none came in {ANSWER_LIMIT:?}"))),
                }
            }
        }
    }

    /// A call of gRPC, with all that comes back.
    async fn called(
        &self,
        operation: &Operation,
        params: &Map<String, Value>,
        version: &str,
    ) -> Result<Answer> {
        let defined = operation.defined;
        let mut url = self.url.clone();
        url.set_path(&format!("{GRPC_SERVICE}/{}", defined.name()));
        url.set_query(None);
        let shown = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers = shown.chain([(HEADER_VERSION, version)]).filter_map(|(name, value)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
        });
        let call = grpc::Call {
            url,
            headers: headers.collect::<HeaderMap>(),
            message: write(defined.request(), params),
            within_ms: ANSWER_LIMIT.as_millis() as u64,
            bytes_max: ANSWER_BYTES_MAX,
        };
        let answer = grpc::call(&self.http, call).await;
        let mut answer = answer.map_err(|error| self.unanswered(error))?;
        let status = answer.status().as_u16();
        let mut first = None;
        let mut text = String::new();
        if !answer.is_grpc() {
            let kind = String::new();
            let body = Value::Null;
            return Ok(Answer { status, kind, text, body, ended: None });
        }
        while let Some(message) = answer.message().await.map_err(|broken| self.broken(broken))? {
            let read = to_json(defined.answer(), &message, DEPTH_MAX);
            let read = read.map_err(|why| self.not_a2a(&format!("a message is none: {why}")))?;
            text.push_str(&format!("data: {}\n\n", json!(read)));
            first.get_or_insert(Value::Object(read));
        }
        let header = |name: &str| answer.ending()?.get(name)?.to_str().ok();
        let ended = Status::of_headers(header);
        let ended = ended.map_err(|why| self.not_a2a(&format!("its status is none: {why}")))?;
        let body = first.unwrap_or_default();
        Ok(Answer { status, kind: GRPC_TYPE.to_owned(), text, body, ended: Some(ended) })
    }

    fn rest_url(&self, operation: &Operation, params: &mut Map<String, Value>) -> Url {
        let mut url = self.url.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        let tenant = match self.tenant.as_str() {
            "" => String::new(),
            tenant => format!("/{}", encoded(tenant)),
        };
        let mut path = operation.path.to_owned();
        if path.contains("{id}") {
            let id = params.remove("id").unwrap_or_default();
            path = path.replace("{id}", &encoded(id.as_str().unwrap_or_default()));
        }
        url.set_path(&format!("{base}{tenant}{path}"));
        if operation.verb == Verb::Get && !params.is_empty() {
            let mut query = url.query_pairs_mut();
            for (name, value) in params.iter() {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                query.append_pair(name, &text);
            }
        }
        url
    }

    /// Sends a text as the body of a request to the address itself.
    pub(super) async fn post(&self, body: &str) -> Result<Answer> {
        self.exchange(Method::POST, self.url.clone(), Some(body.to_owned()), VERSION).await
    }

    async fn exchange(
        &self,
        method: Method,
        url: Url,
        body: Option<String>,
        version: &str,
    ) -> Result<Answer> {
        let media_type = match self.binding {
            Binding::Rpc => "application/json",
            Binding::Rest => MEDIA_TYPE,
            Binding::Grpc => GRPC_TYPE,
        };
        let mut request = self.http.request(method, url).timeout(ANSWER_LIMIT);
        request = request
            .header(HEADER_VERSION, version)
            .header(ACCEPT, "application/a2a+json, application/json, text/event-stream");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, media_type).body(body);
        }
        let mut response = request.send().await.map_err(|error| self.unanswered(error))?;
        let status = response.status().as_u16();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().to_owned();
        let bytes = match collect(&mut response, ANSWER_BYTES_MAX).await {
            Ok(bytes) => bytes,
            Err(ReadError::Lost(error)) => return Err(self.unanswered(error)),
            Err(ReadError::TooLarge) => return Err(self.too_large()),
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or_default();
        let kind = kind.trim().to_ascii_lowercase();
        Ok(Answer { status, kind, text, body, ended: None })
    }

    fn unanswered(&self, error: reqwest::Error) -> Failure {
        self.unreachable(&outbound::words::reasons(&error.without_url()))
    }

    fn broken(&self, broken: StreamError) -> Failure {
        match broken {
            StreamError::TooLarge => self.too_large(),
            StreamError::Lost(error) => self.unanswered(error),
            StreamError::CutOff => self.unreachable("the answer has no end"),
            StreamError::Malformed(why) => self.not_a2a(why),
        }
    }

    fn too_large(&self) -> Failure {
        let what = format!("`{}` answered more than {ANSWER_BYTES_MAX} bytes", self.url);
        Failure::new(Exit::Upstream, "too_large", what)
    }

    fn not_a2a(&self, why: &str) -> Failure {
        let what = format!("what `{}` answered is not A2A: {why}", self.url);
        Failure::new(Exit::Upstream, "not_a2a", what)
    }

    fn unreachable(&self, why: &str) -> Failure {
        let origin = self.url.origin().ascii_serialization();
        Failure::new(Exit::Unreachable, "unreachable", format!("no answer from `{origin}`: {why}"))
            .hint("check its address, and that it runs")
    }

    /// The result of an operation, or the error that the agent says.
    pub(super) fn result(&self, answer: &Answer) -> Result<Value, A2aError> {
        match &answer.ended {
            Some(ended) if ended.code == 0 => return Ok(answer.body.clone()),
            Some(ended) => return Err(ended.error()),
            None => {}
        }
        let error = answer.body.get("error").filter(|error| error.is_object());
        match (self.binding, error) {
            // A caller that is refused learns it by the status.
            (Binding::Rpc, _) if matches!(answer.status, 401 | 403) => {
                Err(A2aError::of_rest(answer.status, &answer.body))
            }
            (Binding::Rpc, Some(error)) => Err(A2aError::of_rpc(error)),
            (Binding::Rest | Binding::Grpc, _) if !(200..300).contains(&answer.status) => {
                Err(A2aError::of_rest(answer.status, &answer.body))
            }
            (Binding::Rpc, None) => answer.body.get("result").cloned().ok_or_else(|| {
                let what = format!("HTTP {} without a result", answer.status);
                A2aError::new(ErrorKind::InvalidAgentResponse, what)
            }),
            (Binding::Rest, _) => Ok(answer.body.clone()),
            (Binding::Grpc, _) => {
                let what = "the answer is not of gRPC";
                Err(A2aError::new(ErrorKind::InvalidAgentResponse, what))
            }
        }
    }
}
