//! A line to one interface of an agent, in A2A 1.0 over JSON-RPC or HTTP with JSON: requests as
//! they are written, answers as they come. What is right is judged elsewhere.

use crate::exit::{Exit, Failure, Result};
use outbound::answer::{Unread, collect};
use outbound::client::ClientOptions;
use outbound::percent::encoded;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, Url};
use serde_json::{Map, Value, json};
use std::time::Duration;
use wire::a2a::card::AgentInterface;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::{HEADER_VERSION, HTTP_JSON, JSONRPC, MEDIA_TYPE, VERSION};

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How the interface is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    Rpc,
    Rest,
}

/// An operation in both bindings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    /// The method of JSON-RPC.
    pub(super) method: &'static str,
    verb: Verb,
    /// The path of HTTP; `{id}` is the parameter `id`.
    path: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Get,
    Post,
}

const fn operation(method: &'static str, verb: Verb, path: &'static str) -> Operation {
    Operation { method, verb, path }
}

pub(super) const SEND: Operation = operation("SendMessage", Verb::Post, "/message:send");
pub(super) const STREAM: Operation =
    operation("SendStreamingMessage", Verb::Post, "/message:stream");
pub(super) const GET: Operation = operation("GetTask", Verb::Get, "/tasks/{id}");
pub(super) const LIST: Operation = operation("ListTasks", Verb::Get, "/tasks");
pub(super) const CANCEL: Operation = operation("CancelTask", Verb::Post, "/tasks/{id}:cancel");
pub(super) const SUBSCRIBE: Operation =
    operation("SubscribeToTask", Verb::Post, "/tasks/{id}:subscribe");
pub(super) const WEBHOOKS: Operation =
    operation("ListTaskPushNotificationConfigs", Verb::Get, "/tasks/{id}/pushNotificationConfigs");
pub(super) const EXTENDED_CARD: Operation =
    operation("GetExtendedAgentCard", Verb::Get, "/extendedAgentCard");

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
    pub(super) text: String,
    /// Null where it is not JSON.
    pub(super) body: Value,
}

/// The way to speak to an interface, if it is one of 1.0 that is spoken here.
pub(super) fn binding_of(interface: &AgentInterface) -> Option<Binding> {
    let mut numbers = interface.protocol_version.split('.');
    let version = [numbers.next(), numbers.next()].map(Option::unwrap_or_default).join(".");
    match interface.protocol_binding.as_str() {
        JSONRPC if version == VERSION => Some(Binding::Rpc),
        HTTP_JSON if version == VERSION => Some(Binding::Rest),
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
        let is_here = url.host_str().is_some_and(project::upstream_entries::is_loopback);
        let http = options.of_command(!is_here).build().map_err(|error| {
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
        match self.binding {
            Binding::Rpc => {
                if !self.tenant.is_empty() {
                    params.insert("tenant".to_owned(), json!(self.tenant));
                }
                let method = operation.method;
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
        }
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
            Err(Unread::Lost(error)) => return Err(self.unanswered(error)),
            Err(Unread::TooLarge) => {
                let what = format!("`{}` answered more than {ANSWER_BYTES_MAX} bytes", self.url);
                return Err(Failure::new(Exit::Upstream, "too_large", what));
            }
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or_default();
        Ok(Answer { status, kind: kind.trim().to_ascii_lowercase(), text, body })
    }

    fn unanswered(&self, error: reqwest::Error) -> Failure {
        let origin = self.url.origin().ascii_serialization();
        let why = outbound::words::reasons(&error.without_url());
        Failure::new(Exit::Unreachable, "unreachable", format!("no answer from `{origin}`: {why}"))
            .hint("check its address, and that it runs")
    }

    /// The result of an operation, or the error that the agent says.
    pub(super) fn result(&self, answer: &Answer) -> Result<Value, A2aError> {
        let error = answer.body.get("error").filter(|error| error.is_object());
        match (self.binding, error) {
            // A caller that is refused learns it by the status.
            (Binding::Rpc, _) if matches!(answer.status, 401 | 403) => {
                Err(A2aError::of_rest(answer.status, &answer.body))
            }
            (Binding::Rpc, Some(error)) => Err(A2aError::of_rpc(error)),
            (Binding::Rest, _) if !(200..300).contains(&answer.status) => {
                Err(A2aError::of_rest(answer.status, &answer.body))
            }
            (Binding::Rpc, None) => answer.body.get("result").cloned().ok_or_else(|| {
                let what = format!("HTTP {} without a result", answer.status);
                A2aError::new(ErrorKind::InvalidAgentResponse, what)
            }),
            (Binding::Rest, _) => Ok(answer.body.clone()),
        }
    }
}
