//! The OAuth account at one server: the token that goes with every request. Changes of the account
//! are made by one task at a time and run to completion even if their caller has gone: a renewed
//! token that is not stored would be lost.

use super::challenge::Challenge;
use super::client::Registration;
use super::discovery::Discovery;
use super::error::{OauthError, Result};
use super::scopes::Scopes;
use super::stored::{self, Token, VaultRecord};
use super::urls;
use super::web::Web;
use crate::RemoteParts;
use crate::config::{Grant, OauthConfig, Secret, UpstreamConfig, UpstreamKind};
use kernel::contracts::{VaultCondition, VaultError};
use kernel::values::ids::Millis;
use outbound::redaction::Redactor;
use reqwest::Url;
use reqwest::header::HeaderValue;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};

/// Scope for a refresh token.
const OFFLINE: &str = "offline_access";

/// How long an authorization server is left alone that did not renew a token.
const REST_MS: u64 = 10_000;

/// The account at one upstream.
pub(crate) struct Account {
    /// The upstream's name.
    pub(super) name: String,
    /// The server that tokens are shown to, and no one else.
    pub(super) server: Url,
    /// How logins at it go.
    pub(super) config: OauthConfig,
    /// Time, limits, the vault and so on.
    pub(super) parts: RemoteParts,
    /// The way to authorization servers.
    pub(super) web: Web,
    /// Secrets that are always redacted.
    fixed: Redactor,
    /// Held by the task that changes the account.
    pub(super) turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    page: watch::Sender<Option<Page>>,
}

#[derive(Default)]
pub(super) struct State {
    /// Whether the vault was looked into.
    is_loaded: bool,
    /// The token in use.
    pub(super) token: Option<Arc<Token>>,
    /// The version of what is kept of it, as far as we know: the one that we read or wrote last.
    pub(super) version: Option<u64>,
    /// Redacts secrets, including the current token and the previous one: the server may still
    /// answer requests that carried that one.
    hidden: Arc<Redactor>,
    /// Whether the server took this token, as far as is known.
    pub(super) is_proven: bool,
    /// How many tokens, pages and looks at the server there were.
    pub(super) counts: Counts,
    /// The result of the last check of the server, if that helps no one.
    pub(super) fruitless: Option<Result<RetryDecision>>,
    /// Since when it is not tried to renew the token, and why.
    resting: Option<(Millis, OauthError)>,
    /// The last challenge.
    pub(super) challenge: Option<Challenge>,
}

impl State {
    /// The headers of a request without a token.
    fn pass(&self) -> Pass {
        Pass { bearer: None, counts: self.counts, is_proven: self.is_proven }
    }

    /// Why it is not tried to renew the token now. A clock that is set back makes that no longer.
    fn rests(&self, now: Millis) -> Option<&OauthError> {
        let (since, why) = self.resting.as_ref()?;
        (*since <= now && now < since.plus_ms(REST_MS)).then_some(why)
    }
}

/// The page of a login under way.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Page {
    pub(super) url: String,
    /// Under which key the login is kept.
    pub(super) key: String,
    /// Where someone logs in.
    pub(super) issuer: String,
    /// Resource of the token.
    pub(super) resource: String,
    pub(super) asked: Scopes,
    /// Until when.
    pub(super) expires_at: Millis,
}

/// Authorization of one request.
pub(crate) struct Pass {
    /// The header that shows our token, if we have one.
    pub(crate) bearer: Option<HeaderValue>,
    /// How many tokens, pages and looks there were when it was made: what came later was not known
    /// to the request.
    pub(super) counts: Counts,
    /// Whether the server took the same before.
    is_proven: bool,
}

/// Monotonic counters.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) tokens: u64,
    /// Pages where someone logs in, opened and closed.
    pub(super) pages: u64,
    /// Looks at the server for who gives tokens.
    pub(super) looks: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    /// It can be sent again: there is another token.
    Again,
    /// It stays refused: the server knows nothing of logins.
    NotOurs,
}

impl Account {
    /// The account at this upstream; none where it has no logins, because it is no MCP server
    /// behind a URL or is always shown the same credentials.
    pub(crate) fn new(config: &UpstreamConfig, parts: &RemoteParts) -> Option<Arc<Self>> {
        let UpstreamKind::Http { url, headers, oauth } = &config.kind else { return None };
        let is_fixed = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let server = urls::web("the server", url).ok().filter(|_| !is_fixed)?;
        let client_secret = oauth.client_secret.as_ref().map(Secret::expose);
        let fixed = Redactor::default().headers(headers).url(&server).credentials(client_secret);
        let state = State { hidden: Arc::new(fixed.clone()), ..State::default() };
        Some(Arc::new(Self {
            name: config.name.clone(),
            server,
            fixed,
            config: oauth.clone(),
            parts: parts.clone(),
            web: Web::new(parts),
            turn: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
            page: watch::Sender::new(None),
        }))
    }

    /// The authorization of a request. A token that expires soon is renewed first.
    pub(crate) async fn pass(self: &Arc<Self>) -> Result<Pass> {
        // Most servers want no login: that takes one look.
        if let Some(pass) = self.pass_without_token() {
            return Ok(pass);
        }
        self.load().await;
        if let Some(tokens) = self.due()? {
            let renewing =
                self.apart(move |account| async move { account.renew_one(tokens).await });
            match renewing.await.unwrap_or_else(|| Err(stopping())) {
                Err(trouble) if self.is_over() => return Err(trouble),
                // One that is still good is good enough.
                Ok(()) | Err(_) => {}
            }
        }
        let state = self.state();
        let bearer = state.token.as_ref().and_then(|token| bearer(&token.access));
        Ok(Pass { bearer, ..state.pass() })
    }

    /// The authorization of a request if it is known that there is no token.
    fn pass_without_token(&self) -> Option<Pass> {
        let state = self.state();
        (state.is_loaded && state.token.is_none()).then(|| state.pass())
    }

    /// The server took what went with a request.
    pub(crate) fn accepted(&self, pass: &Pass) {
        if pass.is_proven {
            return;
        }
        let mut state = self.state();
        if state.counts.tokens == pass.counts.tokens {
            state.is_proven = true;
        }
    }

    pub(crate) async fn has_token(&self) -> bool {
        self.load().await;
        self.token().is_some()
    }

    /// The page where someone logs in, if a login is under way.
    pub(crate) fn login_url(&self) -> Option<String> {
        let now = self.parts.clock.now();
        self.page().filter(|page| now < page.expires_at).map(|page| page.url)
    }

    /// Whether a login is under way that no one finished.
    pub(crate) fn waits_for_login(&self) -> bool {
        self.page.borrow().is_some()
    }

    /// Waits until no login is under way.
    pub(crate) async fn login_over(&self) {
        // An error would mean that the account is gone, which we hold.
        let _ = self.page.subscribe().wait_for(Option::is_none).await;
    }

    /// Redacts what we send, in case the server repeats it.
    pub(crate) fn hidden(&self) -> Arc<Redactor> {
        self.state().hidden.clone()
    }

    /// Waits until nothing is done to the account.
    pub(crate) async fn at_rest(&self) {
        drop(self.turn.lock().await);
    }

    /// Does something to its end, whether or not someone waits for it; none if we stop before.
    pub(super) async fn apart<T, W>(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>) -> W,
    ) -> Option<T>
    where
        T: Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        let (done, result) = oneshot::channel();
        let working = work(self.clone());
        let task = async move {
            // The one who waited may have gone.
            let _ = done.send(working.await);
        };
        self.parts.spawn.task("upstream login", Box::pin(task));
        result.await.ok()
    }

    /// The token in use.
    pub(super) fn token(&self) -> Option<Arc<Token>> {
        self.state().token.clone()
    }

    /// The login under way.
    pub(super) fn page(&self) -> Option<Page> {
        self.page.borrow().clone()
    }

    /// From now on this login is under way, or none.
    pub(super) fn turn_page(&self, page: Option<Page>) {
        self.state().counts.pages += 1;
        self.page.send_replace(page);
    }

    /// Keeps the token of a login, whatever is kept, then uses it: one that is used and not kept
    /// would be lost with us.
    pub(super) async fn keep(&self, token: Token) {
        self.write(&token, VaultCondition::Any).await;
        self.take(Some(token), false);
    }

    /// Keeps a token, if what is kept is as expected; false where it is not.
    pub(super) async fn write(&self, token: &Token, expected: VaultCondition) -> bool {
        let key = stored::token_key(&self.name);
        match stored::write(&*self.parts.vault, &key, token, expected).await {
            Ok(version) => self.state().version = Some(version),
            Err(VaultError::Conflict(_)) => return false,
            Err(VaultError::Failed(fault)) => {
                let upstream = self.name.as_str();
                let told = "a token could not be kept; it is lost when we stop";
                tracing::error!(upstream, %fault, "{told}");
            }
        }
        true
    }

    /// From now on this token is used, or none.
    pub(super) fn take(&self, token: Option<Token>, is_proven: bool) {
        let mut state = self.state();
        let before = state.token.take();
        state.hidden = self.hiding(before.as_deref().into_iter().chain(token.as_ref()));
        state.token = token.map(Arc::new);
        state.is_proven = is_proven;
        state.is_loaded = true;
        state.counts.tokens += 1;
        state.resting = None;
    }

    /// The token is not renewed for a while, for this reason.
    pub(super) fn rest(&self, why: OauthError) {
        self.state().resting = Some((self.parts.clock.now(), why));
    }

    /// Why it is not tried to renew the token now.
    pub(super) fn rests(&self) -> Option<OauthError> {
        let now = self.parts.clock.now();
        self.state().rests(now).cloned()
    }

    /// Forgets the client that we registered at this issuer.
    pub(super) async fn forget_client(&self, issuer: &str) {
        let vault = &*self.parts.vault;
        let key = stored::client_key(&self.name);
        let known: Option<Registration> = stored::read(vault, &key).await;
        if known.is_some_and(|known| known.issuer == issuer) {
            stored::forget(vault, &key).await;
        }
    }

    /// The token as it is kept, if it is one for this server and this client.
    pub(super) async fn kept_token(&self) -> Result<VaultRecord<Token>, VaultError> {
        let key = stored::token_key(&self.name);
        let VaultRecord { record, version } =
            stored::look::<Token>(&*self.parts.vault, &key).await?;
        Ok(VaultRecord { record: record.and_then(|token| self.ours(token)), version })
    }

    fn ours(&self, mut token: Token) -> Option<Token> {
        if token.server != urls::plain(&self.server) {
            return None;
        }
        if let Some(id) = &self.config.client_id {
            if *id != token.client.id {
                return None;
            }
            token.client.secret = self.config.client_secret.clone();
        }
        Some(token)
    }

    /// How many tokens there were when a token was made that should be renewed now. Trouble, if
    /// that failed a moment ago and the token is over.
    fn due(&self) -> Result<Option<u64>> {
        let now = self.parts.clock.now();
        let state = self.state();
        let Some(token) = state.token.as_ref().filter(|token| token.is_due(now)) else {
            return Ok(None);
        };
        if token.refresh.is_none() && self.config.grant == Grant::Person {
            return Ok(None);
        }
        match state.rests(now) {
            Some(why) if token.is_over(now) => Err(why.clone()),
            Some(_) => Ok(None),
            None => Ok(Some(state.counts.tokens)),
        }
    }

    fn is_over(&self) -> bool {
        let now = self.parts.clock.now();
        self.token().is_none_or(|token| token.is_over(now))
    }

    /// Scopes to request: those of the operator, or else those of the challenge or of the metadata,
    /// together with those requested before.
    pub(super) fn asked(&self, challenge: &Challenge, found: &Discovery) -> Scopes {
        if let Some(scopes) = &self.config.scopes {
            return Scopes::of(scopes.iter().map(String::as_str));
        }
        let now = challenge.scope.as_ref().or(found.scopes.as_ref()).cloned().unwrap_or_default();
        let same = |token: &Arc<Token>| {
            token.issuer == found.issuer.name && token.resource == found.resource
        };
        let before = self.token().filter(same).map(|token| token.asked.clone());
        let all = before.unwrap_or_default().and(&now);
        let outlasts = self.config.grant == Grant::Person && found.issuer.scopes.contains(OFFLINE);
        // Alone it would leave out what the server gives where nothing is asked for.
        if outlasts && !all.is_empty() { all.and(&Scopes::of([OFFLINE])) } else { all }
    }

    fn hiding<'t>(&self, tokens: impl IntoIterator<Item = &'t Token>) -> Arc<Redactor> {
        let secrets = |token: &'t Token| {
            [Some(&token.access), token.refresh.as_ref(), token.client.secret.as_ref()]
        };
        let secrets = tokens.into_iter().flat_map(secrets).flatten().map(Secret::expose);
        Arc::new(self.fixed.clone().credentials(secrets))
    }

    /// Begins to use the token that is kept, if that was not done yet. A vault that does not answer
    /// is asked again the next time.
    pub(super) async fn load(&self) {
        if self.state().is_loaded {
            return;
        }
        let seen = match self.kept_token().await {
            Ok(seen) => seen,
            Err(error) => {
                let upstream = self.name.as_str();
                tracing::warn!(upstream, %error, "what was kept of a login cannot be read");
                return;
            }
        };
        let mut state = self.state();
        // Someone may have logged in meanwhile.
        if !state.is_loaded {
            state.is_loaded = true;
            state.token = seen.record.map(Arc::new);
            state.version = seen.version;
            state.hidden = self.hiding(state.token.as_deref());
            // As far as we know: it was used before we stopped.
            state.is_proven = true;
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The header that shows a token.
fn bearer(access: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", access.expose())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

pub(super) fn stopping() -> OauthError {
    OauthError::away("we are being stopped")
}
