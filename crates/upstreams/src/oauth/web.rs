//! HTTP to authorization servers: allowed addresses only, bounded in time and size, no redirects to
//! other origins. No error contains a secret.

use super::challenge::Challenge;
use super::error::{OauthError, Result};
use crate::{RemoteParts, one_line};
use outbound::addresses::{HttpSettings, is_public};
use outbound::answer::{self, Effect};
use outbound::client::{Client, GuardedClient};
use outbound::percent::escaped;
use outbound::redaction::Redactor;
use outbound::redirects::{REDIRECTS_MAX, Redirect, redirect};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The size of an answer.
const BYTES_MAX: usize = 256 * 1024;
/// The type of what is posted to a token endpoint.
pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// Which addresses a server may send us to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ground {
    /// Public ones: so it is for a server that is at one itself.
    Public,
    /// Any: the server is on this machine or in this network.
    Private,
}

/// Response to a POST. It may contain a token, so it cannot be printed.
pub(super) struct PostReply {
    /// How it was taken.
    pub(super) status: StatusCode,
    /// The answer; null where it is not JSON.
    pub(super) body: Value,
}

/// The way to authorization servers.
pub(super) struct Web {
    parts: RemoteParts,
    public: GuardedClient,
    private: GuardedClient,
}

impl Web {
    /// A way; no connection is made yet.
    pub(super) fn new(parts: &RemoteParts) -> Self {
        let outbound = |private: bool| {
            GuardedClient::new(HttpSettings::default().private(private), parts.client_options())
        };
        Self { parts: parts.clone(), public: outbound(false), private: outbound(parts.is_open()) }
    }

    /// On which ground a server stands that said this.
    pub(super) fn ground(&self, server: &Url, challenge: &Challenge) -> Ground {
        let heard_nearby = challenge.from.is_some_and(|from| !is_public(from.to_canonical()));
        if heard_nearby || !self.public.settings().permits_host(server) {
            Ground::Private
        } else {
            Ground::Public
        }
    }

    /// The JSON object that is at this URL, if one is.
    pub(super) async fn document(&self, ground: Ground, url: &Url) -> Result<Option<Value>> {
        self.timely(url, self.read_document(ground, url)).await
    }

    /// Posts something and reads what is answered.
    pub(super) async fn post(
        &self,
        ground: Ground,
        url: &Url,
        headers: HeaderMap,
        body: String,
    ) -> Result<PostReply> {
        let exchange = async {
            let request = self.client(ground, url)?.post(url.clone()).headers(headers).body(body);
            let mut response = sent(json(request), url).await?;
            let status = response.status();
            if status.is_redirection() {
                return Err(OauthError::refused(format!(
                    "`{}` answered {status} and points elsewhere, which is not followed",
                    shown(url)
                )));
            }
            let body = body_of(&mut response, url).await?;
            Ok(PostReply { status, body: serde_json::from_slice(&body).unwrap_or_default() })
        };
        self.timely(url, exchange).await
    }

    /// The server's challenge to a request without a token.
    pub(super) async fn probe(&self, server: &Url) -> Result<Challenge> {
        let request = self.client(Ground::Private, server)?.get(server.clone());
        let request = request.header(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let response = self.timely(server, sent(request, server)).await?;
        let from = response.remote_addr().map(|address| address.ip());
        let challenge = Challenge::of(response.status(), response.headers(), from);
        Ok(challenge.unwrap_or_else(|| Challenge::unknown(from)))
    }

    async fn read_document(&self, ground: Ground, url: &Url) -> Result<Option<Value>> {
        let mut place = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let request = self.client(ground, &place)?.get(place.clone());
            let mut response = sent(json(request), &place).await?;
            let status = response.status();
            if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
                return Err(OauthError::away(format!("`{}` answered {status}", shown(&place))));
            }
            if let Some(Redirect::Within(next)) = redirect(&place, status, response.headers()) {
                place = next;
                continue;
            }
            if !status.is_success() {
                return Ok(None);
            }
            let body = body_of(&mut response, &place).await?;
            // Some servers answer everything that they do not know with a page.
            let document: Value = serde_json::from_slice(&body).unwrap_or_default();
            return Ok(Some(document).filter(Value::is_object));
        }
        Ok(None)
    }

    fn client(&self, ground: Ground, url: &Url) -> Result<&Client> {
        let outbound = match ground {
            Ground::Public => &self.public,
            Ground::Private => &self.private,
        };
        if !outbound.settings().permits_host(url) {
            return Err(OauthError::refused(format!(
                "`{}` is not a public address, but the server is at one",
                shown(url)
            )));
        }
        outbound.client().map_err(|error| OauthError::away(error.fault.message))
    }

    async fn timely<T>(&self, url: &Url, exchange: impl Future<Output = Result<T>>) -> Result<T> {
        let ms = self.parts.limits.upstream_connect_timeout_ms;
        let answered = self.parts.within(ms, exchange).await;
        answered.unwrap_or_else(|| {
            Err(OauthError::away(format!("`{}` did not answer within {ms} ms", shown(url))))
        })
    }
}

/// A form as it is sent.
pub(super) fn form(fields: &[(&str, &str)]) -> String {
    let field = |(name, value): &(&str, &str)| format!("{}={}", encoded(name), encoded(value));
    fields.iter().map(field).collect::<Vec<_>>().join("&")
}

/// A text as it stands in a form.
pub(super) fn encoded(text: &str) -> String {
    // Other than in a path, a space is a plus sign here and a tilde is written as a number.
    escaped(text, b"* ").replace(' ', "+").replace('~', "%7E")
}

/// The headers of something of this type.
pub(super) fn typed(kind: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))])
}

/// A URL for messages.
pub(super) fn shown(url: &Url) -> String {
    super::urls::plain(url)
}

/// A text of another server for messages: short, on one line, without these secrets.
pub(super) fn told(text: &str, secrets: &[&str]) -> String {
    const CHARS_MAX: usize = 300;
    let told = Redactor::default().credentials(secrets.iter().copied()).told(text);
    one_line(&told, CHARS_MAX)
}

fn json(request: RequestBuilder) -> RequestBuilder {
    request.header(ACCEPT, HeaderValue::from_static("application/json"))
}

async fn sent(request: RequestBuilder, url: &Url) -> Result<Response> {
    request.send().await.map_err(|error| {
        let fault = answer::unanswered(error, Effect::Reads).fault;
        let why = format!("`{}`: {}", shown(url), fault.message);
        if fault.name == "AddressNotAllowed" {
            OauthError::refused(why)
        } else {
            OauthError::away(why)
        }
    })
}

async fn body_of(response: &mut Response, url: &Url) -> Result<Vec<u8>> {
    let status = response.status();
    answer::collect(response, BYTES_MAX).await.map_err(|unread| {
        let error = unread.error(status, Effect::Reads, BYTES_MAX);
        OauthError::away(format!("`{}`: {}", shown(url), error.fault.message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_bodies_are_url_encoded() {
        assert_eq!(form(&[("a", "1 2"), ("b", "x&y=\u{fc}")]), "a=1+2&b=x%26y%3D%C3%BC");
        assert_eq!(form(&[]), "");
        assert_eq!(encoded("my:client id%"), "my%3Aclient+id%25");
        assert_eq!(encoded("*-._~+/"), "*-._%7E%2B%2F");
    }

    #[test]
    fn error_texts_are_short_and_hold_no_secret() {
        assert_eq!(told("no\n`hushhush`,\u{7} not x", &["hushhush", "x"]), "no `***`, not x");
        assert_eq!(told("hush and hush-hush", &["hush", "hush-hush"]), "*** and ***");
        assert_eq!(told(&"y".repeat(1_000), &[]).len(), 300);
    }
}
