//! A provider's base URL and HTTP client: keep-alive, no redirects, no proxy, no client-side
//! retries. No error contains a secret.

use crate::config::{ModelConfig, Remote};
use crate::provider_error::{self, ProviderError};
use kernel::conversation::llm::{LlmError, LlmErrorKind};
use kernel::definition::plan::mistake::Mistake;
use kernel::values::secret::Secret;
use kernel::values::trace::TraceParent;
use outbound::addresses::web_url;
use outbound::client::{ClientOptions, LazyClient};
use outbound::redaction::Redactor;
use outbound::words::{place, reasons};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Response, StatusCode, Url};
use serde_json::Value;
use std::time::Duration;

/// The header that names a turn's span.
const TRACEPARENT: &str = "traceparent";
/// How much of the body of an unsuccessful response is read.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// How much of what a provider says is quoted.
const TOLD_CHARS_MAX: usize = 500;
/// How long a turn may take where its configuration says nothing: as the providers' own clients.
const TURN_MS_DEFAULT: u64 = 600_000;
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Providers keep idle connections for longer; a turn that finds one closed would have failed.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// A model that can be talked to.
pub(crate) struct Endpoint {
    client: LazyClient,
    url: Url,
    headers: HeaderMap,
    timeout: Duration,
    /// Secrets that must never be shown, even if the provider repeats them.
    hidden: Redactor,
    /// Its name in messages.
    name: String,
}

impl Endpoint {
    /// The endpoint at this URL. What the operator gave goes with every request and replaces ours
    /// of the same name.
    pub(crate) fn new(
        config: &ModelConfig,
        remote: &Remote,
        url: Url,
        ours: &[(&'static str, Secret)],
    ) -> Result<Self, Mistake> {
        let mut headers = HeaderMap::new();
        let given = remote.headers.iter().map(|(name, value)| (name.as_str(), value));
        for (name, value) in ours.iter().map(|(name, value)| (*name, value)).chain(given) {
            let (name, value) = header(name, value)?;
            headers.insert(name, value);
        }
        let hidden = hidden(&url, remote);
        let place = place(&url);
        let name = format!("model `{}` (`{}` at {place})", config.name, remote.model);
        let timeout = Duration::from_millis(config.timeout_ms.unwrap_or(TURN_MS_DEFAULT));
        let options = ClientOptions::default().connect_within(CONNECT_WITHIN).idle_max(IDLE_MAX);
        let client = LazyClient::new(options.certified().only(&url));
        Ok(Self { client, url, headers, timeout, hidden, name })
    }

    /// Posts a request of a turn with this span and gives its answer, whatever it is.
    pub(crate) async fn post(
        &self,
        more: HeaderMap,
        trace: Option<TraceParent>,
        body: &Value,
    ) -> Result<Response, LlmError> {
        let client = self.client.get().map_err(|why| {
            let what = format!("cannot be talked to: there is no HTTP client: {why}");
            self.error(LlmErrorKind::Unreachable, &what)
        })?;
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.extend(more);
        // Digits and dashes, which every header can hold.
        if let Some(Ok(span)) = trace.map(|trace| HeaderValue::from_str(&trace.to_string())) {
            headers.insert(TRACEPARENT, span);
        }
        let request = client.post(self.url.clone()).headers(headers).timeout(self.timeout);
        request.body(body.to_string()).send().await.map_err(|error| self.unanswered(error))
    }

    /// The error for the caller, from what the provider reported.
    pub(crate) fn provider_error(
        &self,
        status: Option<StatusCode>,
        reported: &ProviderError,
    ) -> LlmError {
        let words = self.told(&reported.words);
        let said = match status {
            Some(status) => format!("answered {status}"),
            None => "failed in the middle of its answer".to_owned(),
        };
        let what = match words.as_str() {
            "" => said,
            // A page for people says nothing that helps here.
            page if page.starts_with('<') => format!("{said} with a page"),
            words => format!("{said}: {words}"),
        };
        let error = self.error(reported.kind, &what).retry_after_ms(reported.wait_ms);
        match status {
            Some(StatusCode::NOT_FOUND) if reported.kind == LlmErrorKind::BadRequest => {
                error.hint("check the model's base URL")
            }
            _ => error,
        }
    }

    /// An answer that points elsewhere: a key goes nowhere that was not named.
    pub(crate) fn redirected(&self, status: StatusCode, headers: &HeaderMap) -> LlmError {
        let place = headers.get(LOCATION).map(|place| String::from_utf8_lossy(place.as_bytes()));
        let place = place.unwrap_or_default();
        let place = self.told(place.split(['?', '#']).next().unwrap_or_default());
        let what = format!("answered {status} and points to `{place}`, which is not followed");
        self.error(LlmErrorKind::BadRequest, &what)
            .hint("set the base URL that it points to, if you trust it")
    }

    /// The connection broke while an answer was read.
    pub(crate) fn broken(&self, error: reqwest::Error) -> LlmError {
        if error.is_timeout() {
            return self.late();
        }
        let why = self.told(&reasons(&error.without_url()));
        let what = format!("closed the connection before its answer was whole: {why}");
        self.error(LlmErrorKind::Unreachable, &what).hint("try again")
    }

    /// An error of this model, with the hint of its kind.
    pub(crate) fn error(&self, kind: LlmErrorKind, what: &str) -> LlmError {
        let hint = provider_error::hint(kind).map(str::to_owned);
        LlmError { hint, ..LlmError::new(kind, format!("{} {what}", self.name)) }
    }

    /// What a provider says, for messages: short, on one line, without our secrets. Words that hide
    /// the middle of a key still show its ends; they are left out as well.
    pub(crate) fn told(&self, text: &str) -> String {
        let spaced = |letter: char| if letter.is_control() { ' ' } else { letter };
        let told = self.hidden.told(&text.chars().map(spaced).collect::<String>());
        let shown = |word: &&str| !(word.contains("**") && word.trim_matches(is_mark) != "***");
        let words: Vec<&str> = told.split_whitespace().filter(shown).collect();
        words.join(" ").chars().take(TOLD_CHARS_MAX).collect()
    }

    fn unanswered(&self, error: reqwest::Error) -> LlmError {
        let unreachable = error.is_connect() || error.is_builder();
        if error.is_timeout() && !unreachable {
            return self.late();
        }
        let why = self.told(&reasons(&error.without_url()));
        let what = if unreachable {
            format!("cannot be reached: {why}")
        } else {
            format!("closed the connection before it answered: {why}")
        };
        self.error(LlmErrorKind::Unreachable, &what)
    }

    fn late(&self) -> LlmError {
        let what = format!("was not done within {} ms", self.timeout.as_millis());
        self.error(LlmErrorKind::Timeout, &what)
    }
}

/// The body of an unsuccessful response; a JSON string if it is not JSON.
pub(crate) async fn error_body(response: &mut Response) -> Value {
    let mut body = Vec::new();
    while let Ok(Some(part)) = response.chunk().await {
        body.extend_from_slice(&part);
        if body.len() >= ERROR_BYTES_MAX {
            body.truncate(ERROR_BYTES_MAX);
            break;
        }
    }
    let text = String::from_utf8_lossy(&body);
    serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.into_owned()))
}

/// Where a provider is: as configured, else its own address.
pub(crate) fn base(remote: &Remote, own: &str) -> Result<Url, Mistake> {
    let given = remote.base_url.as_deref().unwrap_or(own);
    web_url("it", given).map_err(|why| {
        Mistake::error(format!("the model's base URL cannot be used: {why}"))
            .hint(format!("write it as `{own}`"))
    })
}

/// The same address with more at the end of its path.
pub(crate) fn join(mut url: Url, more: &str) -> Url {
    let path = format!("{}/{more}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}

/// The path of an address without slashes at its end.
pub(crate) fn path(url: &Url) -> &str {
    url.path().trim_end_matches('/')
}

fn header(name: &str, value: &Secret) -> Result<(HeaderName, HeaderValue), Mistake> {
    let misfit = |what: &str| Mistake::error(format!("the model's header `{name}` {what}"));
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| misfit("has no good name"))?;
    let mut value = HeaderValue::from_str(value.expose().trim())
        .map_err(|_| misfit("has a value that no header can have"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

/// Secrets of the configuration.
fn hidden(url: &Url, remote: &Remote) -> Redactor {
    let values = remote.key.iter().chain(remote.headers.iter().map(|(_, value)| value));
    let values = values.map(|value| value.expose().trim());
    // `Bearer abc` is one secret, `abc` is the same one.
    let tokens = values.clone().filter_map(|value| Some(value.rsplit_once(' ')?.1));
    let given = values.chain(tokens).chain(url.password()).map(str::to_owned);
    let asked = url.query_pairs().map(|(_, value)| value.into_owned());
    Redactor::default().credentials(asked.chain(given))
}

fn is_mark(letter: char) -> bool {
    letter.is_ascii_punctuation() && letter != '*'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelKind;

    fn endpoint(url: &str) -> Endpoint {
        let remote = Remote {
            model: "m-1".to_owned(),
            base_url: Some(url.to_owned()),
            key: Some(Secret::new("sk-hushhush")),
            headers: vec![("x-team".to_owned(), Secret::new("Token abcdef"))],
        };
        let config = ModelConfig {
            name: "main".to_owned(),
            kind: ModelKind::OpenAi(remote.clone()),
            max_tokens: None,
            temperature: None,
            timeout_ms: Some(5),
            price: None,
            origin: String::new(),
        };
        let url = base(&remote, "https://own.test").unwrap();
        let ours = [("authorization", Secret::new("Bearer sk-hushhush"))];
        Endpoint::new(&config, &remote, url, &ours).unwrap()
    }

    #[test]
    fn what_is_told_holds_no_secret() {
        let endpoint = endpoint("http://user:whisper@a.test:81/v1?key=letmein#part");
        assert_eq!(endpoint.name, "model `main` (`m-1` at http://a.test:81)");
        let said = "no `sk-hushhush`,\n `Token abcdef`, abcdef letmein or whisper\u{7}";
        assert_eq!(endpoint.told(said), "no `***`, `***`, *** *** or ***");
        let masked = "Incorrect API key provided: sk-hu***hush. Find yours elsewhere.";
        assert_eq!(endpoint.told(masked), "Incorrect API key provided: Find yours elsewhere.");
        assert_eq!(endpoint.told(&"x".repeat(1_000)).len(), TOLD_CHARS_MAX);
        assert!(!format!("{:?}", endpoint.headers).contains("hush"));
    }

    #[test]
    fn a_provider_error_has_a_hint() {
        let endpoint = endpoint("http://a.test/v1");
        let mut reported = ProviderError::new(LlmErrorKind::RateLimited, "slow\ndown");
        reported.wait_ms = Some(7_000);
        let error = endpoint.provider_error(Some(StatusCode::TOO_MANY_REQUESTS), &reported);
        let message =
            "model `main` (`m-1` at http://a.test) answered 429 Too Many Requests: slow down";
        assert_eq!(error.message, message);
        assert_eq!(error.retry_after_ms, Some(7_000));
        assert_eq!(error.hint.as_deref(), Some("try again later"));
        let page = ProviderError::new(LlmErrorKind::Overloaded, "<html>Sorry</html>");
        let error = endpoint.provider_error(Some(StatusCode::BAD_GATEWAY), &page);
        assert!(error.message.ends_with("answered 502 Bad Gateway with a page"), "{error}");
        let nowhere = ProviderError::new(LlmErrorKind::BadRequest, "");
        let error = endpoint.provider_error(Some(StatusCode::NOT_FOUND), &nowhere);
        assert_eq!(error.hint.as_deref(), Some("check the model's base URL"));
    }

    #[test]
    fn base_url_and_path_are_joined() {
        let joined = |url: &str| join(Url::parse(url).unwrap(), "chat/completions").to_string();
        assert_eq!(joined("http://a.test/v1"), "http://a.test/v1/chat/completions");
        assert_eq!(joined("http://a.test/v1/"), "http://a.test/v1/chat/completions");
        assert_eq!(joined("http://a.test/v1?x=1"), "http://a.test/v1/chat/completions?x=1");
    }
}
