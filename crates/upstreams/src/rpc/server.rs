//! URL, headers and HTTP client of one JSON-RPC server.

use super::super::config::{Secret, UpstreamConfig};
use super::super::{RemoteParts, secret_header};
use kernel::tool::call::ToolError;
use kernel::values::fault::Fault;
use kernel::values::trace::TraceParent;
use outbound::answer::{self, Effect, ReadError};
use outbound::client::Client;
use outbound::redaction::Redactor;
use outbound::trace::traced;
use outbound::words::reasons;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};

/// A server.
pub(super) struct RpcServer {
    /// Its name in the settings, for messages.
    pub(super) name: String,
    /// Redacts its texts.
    pub(super) hidden: Redactor,
    url: Url,
    headers: HeaderMap,
    client: Client,
}

/// One request.
pub(super) struct Request<'a> {
    /// Its id; the answer must have the same.
    pub(super) id: &'a str,
    pub(super) method: &'a str,
    pub(super) params: &'a Value,
    /// A noun for the response, for messages.
    pub(super) what: &'static str,
    pub(super) effect: Effect,
    /// How many bytes the answer may have.
    pub(super) bytes_max: usize,
    /// Whether it must not be done twice: a server that knows our header sees to that.
    pub(super) once: bool,
    /// The call's own span.
    pub(super) trace: Option<TraceParent>,
}

/// A whole answer, whatever it says.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl RpcServer {
    /// The server at this address.
    pub(super) fn new(
        config: &UpstreamConfig,
        url: &str,
        headers: &[(String, Secret)],
        parts: &RemoteParts,
    ) -> Result<Self, Fault> {
        let name = config.name.clone();
        let wrong = |what: String| {
            Fault::new("BadSettings", format!("`{name}`: {what}"))
                .hint(format!("correct it in {}", config.origin))
        };
        let url = Url::parse(url).map_err(|error| wrong(format!("its `url` is none: {error}")))?;
        let hidden = Redactor::default().headers(headers).url(&url);
        let headers = read_headers(headers).map_err(wrong)?;
        let client = parts.client_options().build();
        let client =
            client.map_err(|why| Fault::new("ClientFailed", format!("no HTTP client: {why}")))?;
        Ok(Self { name, hidden, url, headers, client })
    }

    /// Sends a request once and reads its answer, whatever its status.
    pub(super) async fn post(&self, request: &Request<'_>) -> Result<Reply, ToolError> {
        let Request { id, method, params, what, effect, bytes_max, once, trace } = *request;
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut headers = self.headers.clone();
        traced(&mut headers, trace);
        let mut sending = self.client.post(self.url.clone()).headers(headers);
        if once {
            sending = sending.header("idempotency-key", id);
        }
        let server = &self.name;
        let lost = |error: reqwest::Error| {
            let why = reasons(&error.without_url());
            let message =
                format!("the connection to `{server}` broke before its {what} was whole: {why}");
            effect.lost("AnswerLost", message).passing()
        };
        let mut response = match sending.body(body.to_string()).send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() || error.is_builder() => {
                let is_passing = error.is_connect();
                let why = reasons(&error.without_url());
                let message = format!("cannot reach `{server}`: {why}");
                let failed = ToolError::not_sent("ConnectFailed", message)
                    .hint("check that it runs and that its `url` is right");
                return Err(if is_passing { failed.passing() } else { failed });
            }
            Err(error) => return Err(lost(error)),
        };
        let status = response.status().as_u16();
        match answer::collect(&mut response, bytes_max).await {
            Ok(body) => Ok(Reply { status, body }),
            Err(ReadError::Lost(error)) => Err(lost(error)),
            Err(ReadError::TooLarge) => {
                let message = format!("the {what} of `{server}` has more than {bytes_max} bytes");
                Err(effect.lost("OutputTooLarge", message))
            }
        }
    }
}

/// The operator's headers and our own. Their values are not shown anywhere.
fn read_headers(given: &[(String, Secret)]) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in given {
        let (name, value) = secret_header(name, value.expose())?;
        headers.insert(name, value);
    }
    Ok(headers)
}
