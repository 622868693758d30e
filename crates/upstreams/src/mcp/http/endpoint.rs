//! The server's URL and the connections to it: keep-alive, no proxy, no client-side retries,
//! redirects within the same origin only. No error contains a secret.

use super::super::line::{PeerError, PeerErrorKind, Result};
use super::direct::{DirectRequest, PreparedEndpoint};
use super::headers;
use super::response::Response;
use crate::config::Secret;
use crate::oauth::{Account, Challenge, OauthError, OauthErrorKind, Pass, RetryDecision};
use crate::{RemoteParts, one_line};
use bytes::Bytes;
use kernel::tool::call::CallProgress;
use outbound::addresses::web_url;
use outbound::client::{Client, is_garbled};
use outbound::plain::ExchangeError;
use outbound::redaction::Redactor;
use outbound::redirects::{REDIRECTS_MAX, elsewhere, same_origin};
use outbound::words::{place, reasons};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How much of what the other side says is quoted.
const TOLD_CHARS_MAX: usize = 500;
/// How often one request is sent again because there is another token: a renewed one may not be
/// good for enough.
const PASSES_MAX: usize = 3;
/// After so many answers in a row that are not HTTP the other side is taken to be away. Fewer fail
/// their own requests only.
const GARBLED_MAX: u32 = 3;

/// An address that can be talked to.
#[derive(Clone)]
pub(crate) struct Endpoint {
    client: Client,
    /// The shorter way, where nothing is encrypted.
    direct: Option<PreparedEndpoint>,
    url: Url,
    given: HeaderMap,
    /// Redacts secrets, even if the server repeats them.
    hidden: Arc<Redactor>,
    /// Its name in messages: its URL without secrets.
    name: String,
    /// Our account there, if it has logins.
    account: Option<Arc<Account>>,
    /// How many answers in a row were not HTTP.
    garbled: Arc<AtomicU32>,
}

impl Endpoint {
    /// The endpoint of this URL, to which the given headers are always sent, and this account's
    /// token.
    pub(crate) fn new(
        url: &str,
        headers: &[(String, Secret)],
        account: Option<Arc<Account>>,
        parts: &RemoteParts,
    ) -> Result<Self> {
        let url = web_url("it", url).map_err(misfit)?;
        let given = headers::given(headers)?;
        let client = parts.client_options().only(&url).following().build();
        let client =
            client.map_err(|why| unusable(format!("cannot make an HTTP client: {why}")))?;
        // Plain connections look names up by themselves.
        let direct = PreparedEndpoint::new(&url, &given, parts).filter(|_| parts.is_open());
        let hidden = Arc::new(Redactor::default().headers(headers).url(&url));
        let name = name(&url);
        let garbled = Arc::default();
        Ok(Self { client, direct, url, given, hidden, name, account, garbled })
    }

    /// The same connections to another address of the same origin.
    pub(crate) fn at(&self, place: &str) -> Option<Self> {
        let url = self.url.join(place).ok().filter(|url| same_origin(url, &self.url))?;
        let name = name(&url);
        let hidden = Arc::new(Redactor::clone(&self.hidden).url(&url));
        let direct = self.direct.as_ref().and_then(|direct| direct.at(&url));
        Some(Self { direct, url, name, hidden, ..self.clone() })
    }

    /// Posts a message.
    pub(crate) async fn post(&self, headers: HeaderMap, body: String) -> Result<Response> {
        let method = Method::POST;
        let headers = headers::posted(headers);
        let body = body.into();
        self.send(&DirectRequest { method, headers, body }).await
    }

    /// Opens a stream, or takes one up again after an event.
    pub(crate) async fn get(&self, headers: HeaderMap, last_id: Option<&str>) -> Result<Response> {
        let headers = headers::opened(headers, last_id);
        self.send(&DirectRequest { method: Method::GET, headers, body: Bytes::new() }).await
    }

    /// Ends a session. No one logs in for that.
    pub(crate) async fn delete(&self, headers: HeaderMap) -> Result<Response> {
        self.last(&DirectRequest { method: Method::DELETE, headers, body: Bytes::new() }).await
    }

    /// The current redactor for the server's messages, which changes with our token.
    pub(crate) fn hidden(&self) -> Arc<Redactor> {
        match &self.account {
            Some(account) => account.hidden(),
            None => self.hidden.clone(),
        }
    }

    /// A text of the server for messages: short, on one line, without our secrets.
    pub(crate) fn told(&self, text: &str) -> String {
        let told = match &self.account {
            Some(account) => self.hidden.told(&account.hidden().told(text)),
            None => self.hidden.told(text),
        };
        one_line(&told, TOLD_CHARS_MAX)
    }

    pub(crate) fn error(&self, how: CallProgress, kind: PeerErrorKind, what: &str) -> PeerError {
        PeerError::new(how, kind, format!("`{}` {what}", self.name))
    }

    /// The connection broke while an answer was read.
    pub(crate) fn broken(&self, why: &str) -> PeerError {
        let why = self.told(why);
        let what = format!("closed the connection before its answer was whole: {why}");
        self.error(CallProgress::Unknown, PeerErrorKind::Unreachable, &what)
    }

    /// The same error for an answer that is not HTTP: only the last of several in a row says that
    /// the connection is of no use.
    pub(crate) fn garbled(&self, error: PeerError) -> PeerError {
        let in_a_row = self.garbled.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if in_a_row >= GARBLED_MAX {
            return error;
        }
        PeerError { kind: PeerErrorKind::Garbled, ..error }
    }

    /// An answer was understood.
    pub(crate) fn understood(&self) {
        // Most often nothing was garbled: then no other core has to hear of it.
        if self.garbled.load(Ordering::Relaxed) > 0 {
            self.garbled.store(0, Ordering::Relaxed);
        }
    }

    /// Sends a request, and again with another token where one can be had. A refusal that no one
    /// can do anything about is an answer like any other.
    async fn send(&self, asking: &DirectRequest) -> Result<Response> {
        for _ in 0..PASSES_MAX {
            let Some((account, pass)) = self.pass().await? else { break };
            let response = self.once(asking, pass.bearer.as_ref()).await?;
            let status = response.status();
            let challenge = Challenge::of(status, response.headers(), response.address());
            let Some(challenge) = challenge else {
                if status != StatusCode::UNAUTHORIZED {
                    account.accepted(&pass);
                }
                return Ok(response);
            };
            // Rare, and large: it need not be a part of every request.
            let answered = Box::pin(account.challenged(&pass, challenge)).await;
            match answered.map_err(|trouble| self.troubled(Some(status), trouble))? {
                RetryDecision::Again => {}
                RetryDecision::NotOurs => return Ok(response),
            }
        }
        self.last(asking).await
    }

    /// Sends a request with what we have, whatever is answered.
    async fn last(&self, asking: &DirectRequest) -> Result<Response> {
        let pass = self.pass().await?;
        self.once(asking, pass.as_ref().and_then(|(_, pass)| pass.bearer.as_ref())).await
    }

    /// The authorization of a request, if there is an account.
    async fn pass(&self) -> Result<Option<(&Arc<Account>, Pass)>> {
        let Some(account) = &self.account else { return Ok(None) };
        let pass = account.pass().await.map_err(|trouble| self.troubled(None, trouble))?;
        Ok(Some((account, pass)))
    }

    /// Sends a request once, with our token if we have one. Only requests to the endpoint itself
    /// are shown it.
    async fn once(&self, asking: &DirectRequest, bearer: Option<&HeaderValue>) -> Result<Response> {
        if let Some(direct) = &self.direct {
            return self.directly(direct, asking, bearer).await;
        }
        let sending = Box::pin(self.request(asking, bearer).send());
        match sending.await {
            Ok(response) => Ok(Response::Other(response)),
            Err(error) => {
                let error = error.without_url();
                let is_away = error.is_connect() || error.is_builder();
                let why = reasons(&error);
                Err(match is_away {
                    true => self.away(&why),
                    false if is_garbled(&error) => self.garbled(self.lost(&why)),
                    false => self.lost(&why),
                })
            }
        }
    }

    fn request(&self, asking: &DirectRequest, bearer: Option<&HeaderValue>) -> RequestBuilder {
        let DirectRequest { method, headers, body } = asking;
        let request = self.client.request(method.clone(), self.url.clone());
        // Ours go last: they replace what was given under the same name.
        let mut request = request.headers(self.given.clone()).headers(headers.clone());
        if let Some(bearer) = bearer {
            request = request.header(AUTHORIZATION, bearer.clone());
        }
        if body.is_empty() { request } else { request.body(body.clone()) }
    }

    /// The same the shorter way.
    async fn directly(
        &self,
        direct: &PreparedEndpoint,
        asking: &DirectRequest,
        bearer: Option<&HeaderValue>,
    ) -> Result<Response> {
        let mut url = Cow::Borrowed(&self.url);
        let mut way = Cow::Borrowed(direct);
        let mut redirects = 0;
        loop {
            let request = way.request(asking, bearer);
            let response = match way.send(request).await {
                Ok(response) => Response::Plain(response),
                Err(ExchangeError::Unreachable(why)) => return Err(self.away(&why)),
                Err(ExchangeError::Lost(why)) => return Err(self.lost(&why)),
                Err(ExchangeError::Garbled(why)) => return Err(self.garbled(self.lost(&why))),
            };
            let next = match redirects < REDIRECTS_MAX {
                true => elsewhere(&url, response.status(), response.headers()),
                false => None,
            };
            let Some((next, next_way)) = next.and_then(|next| way.at(&next).map(|way| (next, way)))
            else {
                return Ok(response);
            };
            url = Cow::Owned(next);
            way = Cow::Owned(next_way);
            redirects += 1;
        }
    }

    /// The error of a request that was refused with this status, or not sent at all.
    fn troubled(&self, status: Option<StatusCode>, trouble: OauthError) -> PeerError {
        let how = if status.is_some() { CallProgress::Failed } else { CallProgress::NotSent };
        let forbidden = status == Some(StatusCode::FORBIDDEN);
        let kind = match trouble.kind {
            OauthErrorKind::Login => PeerErrorKind::Login,
            OauthErrorKind::Scope => PeerErrorKind::Scope,
            OauthErrorKind::Refused if forbidden => PeerErrorKind::Forbidden,
            OauthErrorKind::Refused => PeerErrorKind::Unauthorized,
            OauthErrorKind::Away => PeerErrorKind::Unreachable,
        };
        let what = match trouble.kind {
            OauthErrorKind::Login | OauthErrorKind::Scope => trouble.why,
            OauthErrorKind::Refused | OauthErrorKind::Away => {
                format!("wants a login, but {}", trouble.why)
            }
        };
        PeerError { hint: trouble.hint, ..self.error(how, kind, &self.told(&what)) }
    }

    /// No one can be reached there.
    fn away(&self, why: &str) -> PeerError {
        let what = format!("cannot be reached: {}", self.told(why));
        self.error(CallProgress::NotSent, PeerErrorKind::Unreachable, &what)
            .hint("check that it runs and that the URL names it")
    }

    /// It was sent, and no one knows the outcome.
    fn lost(&self, why: &str) -> PeerError {
        let what = format!("closed the connection before it answered: {}", self.told(why));
        self.error(CallProgress::Unknown, PeerErrorKind::Unreachable, &what)
    }
}

fn name(url: &Url) -> String {
    format!("{}{}", place(url), url.path())
}

fn misfit(what: String) -> PeerError {
    unusable(format!("the server's URL cannot be used: {what}"))
        .hint("write it as `https://example.com/mcp`")
}

fn unusable(message: String) -> PeerError {
    PeerError::new(CallProgress::NotSent, PeerErrorKind::Unreachable, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;

    fn endpoint(url: &str, secret: &str) -> Endpoint {
        let headers = [("authorization".to_owned(), Secret::new(secret))];
        Endpoint::new(url, &headers, None, &Stage::new().parts()).unwrap()
    }

    #[test]
    fn what_is_told_holds_no_secret() {
        let endpoint =
            endpoint("http://user:hushhush@a.test:81/mcp?key=letmein#part", "Bearer abcdef");
        assert_eq!(endpoint.name, "http://a.test:81/mcp");
        let said = "no `abcdef`,\n `Bearer abcdef`, letmein or hushhush\u{7}";
        assert_eq!(endpoint.told(said), "no `***`, `***`, *** or ***");
        assert_eq!(endpoint.told(&"x".repeat(1_000)).len(), TOLD_CHARS_MAX);
    }

    #[test]
    fn only_http_and_https_urls_are_accepted() {
        for url in ["nowhere", "ftp://a.test/", "file:///etc/passwd"] {
            let error = Endpoint::new(url, &[], None, &Stage::new().parts()).err().unwrap();
            assert_eq!(error.how, CallProgress::NotSent);
            assert!(error.message.contains("URL"), "{}", error.message);
        }
    }

    #[test]
    fn an_advertised_address_must_have_the_same_origin() {
        let endpoint = endpoint("http://a.test/sse", "x");
        let at = |place: &str| endpoint.at(place).map(|endpoint| endpoint.url.to_string());
        assert_eq!(at("/messages?id=1").as_deref(), Some("http://a.test/messages?id=1"));
        assert_eq!(at("http://a.test:80/m").as_deref(), Some("http://a.test/m"));
        for place in ["https://a.test/m", "http://b.test/m", "//b.test/m", "http://a.test:81/m"] {
            assert_eq!(at(place), None, "{place}");
        }
    }
}
