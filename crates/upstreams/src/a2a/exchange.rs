//! One request to an agent and its complete answer. Our credentials are redacted from what comes
//! back.

use super::token::Tokens;
use crate::rest::Credentials;
use kernel::tool::call::ToolError;
use kernel::values::trace::TraceParent;
use outbound::answer::{self, Effect, ReadError};
use outbound::client::GuardedClient;
use outbound::trace::traced;
use outbound::words::reasons;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::Value;
use std::borrow::Cow;
use wire::a2a::proto::status::Status;

/// How much of what the other side said is quoted.
const TOLD_CHARS_MAX: usize = 500;

pub(super) struct Request<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    /// Headers beside credentials.
    pub(super) headers: Vec<(HeaderName, &'static str)>,
    /// The media type of its body and of the answer.
    pub(super) media_type: &'static str,
    pub(super) body: Option<&'a Value>,
    pub(super) effect: Effect,
    /// How many bytes the answer may have.
    pub(super) bytes_max: usize,
    /// The call's own span.
    pub(super) trace: Option<TraceParent>,
}

/// A whole answer.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// Null where it is not JSON.
    pub(super) body: Value,
    /// How it begins, for messages.
    pub(super) told: String,
    /// How a call of gRPC ended.
    pub(super) ended: Option<Status>,
}

/// The way to an agent.
pub(super) struct AgentChannel {
    /// Its name in the settings.
    pub(super) name: String,
    pub(super) client: GuardedClient,
    /// The same over HTTP/2, for gRPC.
    pub(super) http2: GuardedClient,
    pub(super) credentials: Credentials,
    /// Where a token comes from, if the agent wants one.
    pub(super) tokens: Option<Tokens>,
}

impl AgentChannel {
    /// Whether the agent is shown who calls.
    pub(super) fn has_credentials(&self) -> bool {
        self.tokens.is_some() || !self.credentials.is_empty()
    }

    /// Sends a request once and reads its answer, whatever its status.
    pub(super) async fn exchange(&self, request: Request<'_>) -> Result<Reply, ToolError> {
        let Request { method, url, headers, media_type, body, effect, bytes_max, trace } = request;
        let mut all = HeaderMap::new();
        all.insert(ACCEPT, accepted(media_type));
        if body.is_some() {
            all.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        for (name, value) in headers {
            all.insert(name, HeaderValue::from_static(value));
        }
        let shown = self.shown().await?;
        let (url, mut headers) = shown.added(&url, &all);
        traced(&mut headers, trace);
        let mut sending = self.client.client()?.request(method, url).headers(headers);
        if let Some(body) = body {
            sending = sending.body(body.to_string());
        }
        let mut response = sending.send().await.map_err(|error| self.unanswered(error, effect))?;
        let status = response.status().as_u16();
        if let (401, Some(tokens)) = (status, &self.tokens) {
            tokens.forget();
        }
        match answer::collect(&mut response, bytes_max).await {
            Ok(bytes) => Ok(read(&shown, status, &bytes)),
            Err(ReadError::Lost(error)) => Err(self.unanswered(error, effect)),
            Err(ReadError::TooLarge) => Err(self.too_large(bytes_max, effect)),
        }
    }

    /// The error of an answer that has more bytes than it may.
    pub(super) fn too_large(&self, bytes_max: usize, effect: Effect) -> ToolError {
        let message =
            format!("the answer of agent `{}` has more than {bytes_max} bytes", self.name);
        effect.lost("OutputTooLarge", message)
    }

    /// Credentials of a request.
    pub(super) async fn shown(&self) -> Result<Cow<'_, Credentials>, ToolError> {
        let Some(tokens) = &self.tokens else { return Ok(Cow::Borrowed(&self.credentials)) };
        let token = tokens.token(&self.client).await?;
        let shown = self.credentials.with_token(&token);
        shown.map(Cow::Owned).map_err(|why| ToolError::not_sent("TokenFailed", why))
    }

    /// The error of a request that got no whole answer.
    pub(super) fn unanswered(&self, error: reqwest::Error, effect: Effect) -> ToolError {
        let name = &self.name;
        if error.is_connect() || error.is_builder() {
            let is_passing = error.is_connect();
            let why = reasons(&error.without_url());
            let failed =
                ToolError::not_sent("ConnectFailed", format!("cannot reach agent `{name}`: {why}"))
                    .hint("check that it runs and that its card names the right address");
            return if is_passing { failed.passing() } else { failed };
        }
        let why = reasons(&error.without_url());
        self.lost(&why, effect)
    }

    /// The error of an answer that broke off.
    pub(super) fn lost(&self, why: &str, effect: Effect) -> ToolError {
        let name = &self.name;
        let message = format!("the connection to agent `{name}` broke before it answered: {why}");
        effect.lost("AnswerLost", message).passing()
    }
}

fn read(shown: &Credentials, status: u16, bytes: &[u8]) -> Reply {
    let hidden = shown.hidden();
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let body = hidden.json(text);
    let told = hidden.told(&String::from_utf8_lossy(bytes));
    let told = told.trim().chars().take(TOLD_CHARS_MAX).collect();
    Reply { status, body, told, ended: None }
}

/// Accepted media types: the dialect's own and plain JSON, because agents of 1.0.0 have no type of
/// their own.
fn accepted(media_type: &'static str) -> HeaderValue {
    match media_type {
        wire::a2a::MEDIA_TYPE => HeaderValue::from_static("application/a2a+json, application/json"),
        other => HeaderValue::from_static(other),
    }
}
