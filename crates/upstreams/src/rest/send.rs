//! Sends requests: only to addresses that may be talked to, with what goes with every request,
//! within a time, following redirects on the same server.

use super::credentials::Credentials;
use super::request::Request;
use super::spooled::spooled;
use crate::{RemoteParts, Result};
use kernel::tool::call::ToolError;
use kernel::values::datum::BlobRef;
use outbound::answer::{self, Body, BodyDestination, Effect};
use outbound::client::GuardedClient;
use outbound::redirects::{REDIRECTS_MAX, Redirect, redirect};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, Response, StatusCode};
use std::sync::Arc;

/// Sends requests to one server.
pub(super) struct Sender {
    pub(super) outbound: Arc<GuardedClient>,
    pub(super) credentials: Credentials,
    pub(super) parts: RemoteParts,
    /// How long one request may take, if this is not left to the gate.
    pub(super) timeout_ms: Option<u64>,
}

/// A whole answer below 400.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// Where the output is, if the body was too large to be held.
    pub(super) stored: Option<BlobRef>,
}

impl Sender {
    /// The answer to a request, if it is below 400; no error tells a secret.
    pub(super) async fn send(
        &self,
        request: Request,
        effect: Effect,
        destination: BodyDestination<'_>,
    ) -> Result<Answer> {
        let exchange = self.exchange(request, effect, destination);
        let answered = match self.timeout_ms {
            None => exchange.await,
            Some(ms) => match self.parts.within(ms, exchange).await {
                Some(answered) => answered,
                None => {
                    let message = format!("the other side did not answer within {ms} ms");
                    Err(effect.lost("Timeout", message).passing())
                }
            },
        };
        answered.map_err(|error| self.told(error))
    }

    async fn exchange(
        &self,
        request: Request,
        effect: Effect,
        destination: BodyDestination<'_>,
    ) -> Result<Answer> {
        let mut done = false;
        let answered = self.follow(request, effect, destination, &mut done).await;
        answered.map_err(|error| if done { unseen(error) } else { error })
    }

    /// The answer that redirects lead to; also whether something was done on the way.
    async fn follow(
        &self,
        mut request: Request,
        effect: Effect,
        destination: BodyDestination<'_>,
        done: &mut bool,
    ) -> Result<Answer> {
        for _ in 0..=REDIRECTS_MAX {
            let response = self.once(&request, effect).await?;
            let Some(next) = redirected(&request, &response, effect)? else {
                return self.read(response, effect, destination).await;
            };
            *done |= effect == Effect::Writes && next.method != request.method;
            request = next;
        }
        let message = format!("the other side redirects more than {REDIRECTS_MAX} times");
        Err(ToolError::failed("Redirected", message))
    }

    async fn once(&self, request: &Request, effect: Effect) -> Result<Response> {
        if !self.outbound.settings().permits_host(&request.url) {
            let host = request.url.host_str().unwrap_or_default();
            let message = format!("`{host}` is not a public address");
            return Err(ToolError::not_sent("AddressNotAllowed", message));
        }
        let (url, headers) = self.credentials.added(&request.url, &request.headers);
        let sending = self.outbound.client()?.request(request.method.clone(), url).headers(headers);
        let sending = match &request.body {
            Some(body) => sending.body(body.clone()),
            None => sending,
        };
        sending.send().await.map_err(|error| answer::unanswered(error, effect))
    }

    async fn read(
        &self,
        mut response: Response,
        effect: Effect,
        destination: BodyDestination<'_>,
    ) -> Result<Answer> {
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        if status.as_u16() >= 400 {
            let body = answer::collect(&mut response, destination.bytes_max).await;
            // Before it is cut: half a secret is one, too.
            let body = body.unwrap_or_default();
            let told = self.credentials.hidden().told(&String::from_utf8_lossy(&body));
            return Err(answer::refused(status, told.as_bytes(), effect));
        }
        let text = || spooled(&headers, self.credentials.hidden());
        let taken = destination.take(response, effect, text).await?;
        let (body, stored) = match taken {
            Body::Whole(body) => (body, None),
            Body::Stored(blob) => (Vec::new(), Some(blob)),
        };
        Ok(Answer { status, headers, body, stored })
    }

    /// The error as it may be shown.
    fn told(&self, mut error: ToolError) -> ToolError {
        error.fault.message = self.credentials.hidden().told(&error.fault.message);
        if error.fault.name == "AddressNotAllowed" {
            error = error.hint(
                "write `base_url` with the address itself, or set `allow_private = true`, if it \
                 should be reached",
            );
        }
        error
    }
}

/// Where an answer leads to, if it is a redirect: the next request, or why it is not followed.
fn redirected(request: &Request, response: &Response, effect: Effect) -> Result<Option<Request>> {
    let status = response.status();
    let refused = |what: String| {
        Err(not_followed(status, effect, format!("the other side answered {status}{what}")))
    };
    let url = match redirect(&request.url, status, response.headers()) {
        None => return Ok(None),
        Some(Redirect::Within(url)) => url,
        Some(Redirect::Away(url)) => {
            let origin = url.origin().ascii_serialization();
            return refused(format!(": it redirects to another server, `{origin}`"));
        }
        Some(Redirect::Nowhere) => return refused(" with a location that is no URL".to_owned()),
    };
    let mut next = Request { url, ..request.clone() };
    match (status, &request.method) {
        (_, &Method::GET | &Method::HEAD | &Method::OPTIONS) => {}
        // The answer to what was done is there: we read it and do not do it again.
        (StatusCode::SEE_OTHER, _) => {
            next.method = Method::GET;
            next.body = None;
            next.headers.remove(CONTENT_TYPE);
        }
        (StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT, _) => {}
        (_, method) => {
            return refused(format!(", which does not say how `{method}` continues"));
        }
    }
    Ok(Some(next))
}

/// The error of looking at the result of something that was done: no one may take it for undone.
fn unseen(error: ToolError) -> ToolError {
    let message = format!("it was taken, but its result cannot be seen: {}", error.fault.message);
    let unseen = ToolError::unknown(&error.fault.name, message)
        .hint("look at the other side whether it happened, then settle, retry or skip");
    if error.fault.passing { unseen.passing() } else { unseen }
}

/// 302 and 303 may answer something that was done; the others say that it should be done elsewhere.
fn not_followed(status: StatusCode, effect: Effect, message: String) -> ToolError {
    match status {
        StatusCode::FOUND | StatusCode::SEE_OTHER => effect.lost("Redirected", message),
        _ => ToolError::failed("Redirected", message),
    }
}
