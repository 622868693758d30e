//! Tokens for an agent whose card wants OAuth 2: we ask for them with a client's id and secret
//! (`client_credentials`, in the body), and keep each until shortly before it ends.

use crate::config::TokenClient;
use crate::lock;
use kernel::contracts::Clock;
use kernel::tool::call::ToolError;
use kernel::values::ids::Millis;
use kernel::values::secret::Secret;
use outbound::answer::{ReadError, collect};
use outbound::client::GuardedClient;
use outbound::percent::encoded;
use outbound::words::reasons;
use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// How large an answer with a token may be.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long a token is used that does not say how long it lasts.
const USUAL_S: u64 = 300;
/// How long before its end a token is used no more.
const MARGIN_S: u64 = 60;

/// The tokens of one agent.
pub(super) struct Tokens {
    client: TokenClient,
    /// Token endpoint.
    url: Url,
    clock: Arc<dyn Clock>,
    kept: Mutex<Option<CachedToken>>,
}

#[derive(Clone)]
struct CachedToken {
    token: Secret,
    until: Millis,
}

impl Tokens {
    /// Tokens that this address gives to this client.
    pub(super) fn new(client: TokenClient, url: Url, clock: Arc<dyn Clock>) -> Self {
        Self { client, url, clock, kept: Mutex::new(None) }
    }

    /// A token that is good now.
    pub(super) async fn token(&self, http: &GuardedClient) -> Result<Secret, ToolError> {
        let kept = lock(&self.kept).clone();
        if let Some(kept) = kept.filter(|kept| kept.until > self.clock.now()) {
            return Ok(kept.token);
        }
        let given = self.asked(http).await?;
        let token = given.token.clone();
        *lock(&self.kept) = Some(given);
        Ok(token)
    }

    /// The token was not taken: the next request asks for another.
    pub(super) fn forget(&self) {
        *lock(&self.kept) = None;
    }

    async fn asked(&self, http: &GuardedClient) -> Result<CachedToken, ToolError> {
        let request = http.client()?.post(self.url.clone());
        let request = request
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .body(self.form());
        let mut response = request.send().await.map_err(|error| self.unanswered(error))?;
        let status = response.status().as_u16();
        let bytes = match collect(&mut response, ANSWER_BYTES_MAX).await {
            Ok(bytes) => bytes,
            Err(ReadError::Lost(error)) => return Err(self.unanswered(error)),
            Err(ReadError::TooLarge) => return Err(self.failed("its answer is too large")),
        };
        match status {
            200..=299 => {}
            // What it says may repeat the secret.
            400 | 401 | 403 => {
                let why = format!("it does not take our client id and secret: HTTP {status}");
                return Err(ToolError::not_sent("UpstreamUnauthorized", self.named(&why)));
            }
            status => return Err(self.failed(&format!("HTTP {status}")).passing()),
        }
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let token = answer["access_token"].as_str().filter(|token| !token.is_empty());
        let kind = answer["token_type"].as_str().unwrap_or("bearer");
        match token {
            Some(token) if kind.eq_ignore_ascii_case("bearer") => {
                let lasts_s = answer["expires_in"].as_u64().unwrap_or(USUAL_S);
                let lasts_ms = lasts_s.saturating_sub(MARGIN_S).saturating_mul(1_000);
                let until = self.clock.now().plus_ms(lasts_ms);
                Ok(CachedToken { token: Secret::new(token), until })
            }
            Some(_) => Err(self.failed("its token is no bearer token")),
            None => Err(self.failed("its answer has no `access_token`")),
        }
    }

    fn form(&self) -> String {
        let TokenClient { id, secret, scopes, .. } = &self.client;
        let mut fields = vec![
            ("grant_type", "client_credentials".to_owned()),
            ("client_id", id.clone()),
            ("client_secret", secret.expose().to_owned()),
        ];
        if !scopes.is_empty() {
            fields.push(("scope", scopes.join(" ")));
        }
        let pairs = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    fn unanswered(&self, error: reqwest::Error) -> ToolError {
        self.failed(&reasons(&error.without_url())).passing()
    }

    fn failed(&self, why: &str) -> ToolError {
        ToolError::not_sent("TokenFailed", self.named(why))
    }

    fn named(&self, why: &str) -> String {
        format!("no token from `{}`: {why}", self.url.origin().ascii_serialization())
    }
}
