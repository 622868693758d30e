//! Our account at one server: the token that goes with every request, and what becomes of a request
//! that is refused. Whatever changes the account is done by one task at a time, and to its end even
//! if whoever wanted it has gone: a token that is renewed and then not kept would be lost.

use super::challenge::{Challenge, Lacks};
use super::discovery::{Found, discover};
use super::kept::{self, Token};
use super::place;
use super::scopes::Scopes;
use super::trouble::{Trouble, TroubleKind};
use super::web::Web;
use crate::remote::RemoteParts;
use crate::remote::config::{Grant, OauthConfig, Secret, UpstreamConfig, UpstreamKind};
use kernel::ids::Millis;
use reqwest::Url;
use reqwest::header::HeaderValue;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};

/// What is asked for where a token should outlive the person's visit.
const OFFLINE: &str = "offline_access";

/// A shorter text is found in any sentence, and is no secret.
const SECRET_CHARS_MIN: usize = 4;

/// The account at one upstream.
pub(crate) struct Account {
    /// The upstream's name.
    pub(super) name: String,
    /// The server that tokens are shown to, and nobody else.
    pub(super) server: Url,
    /// How logins at it go.
    pub(super) config: OauthConfig,
    /// Time, limits, the vault and so on.
    pub(super) parts: RemoteParts,
    /// The way to authorization servers.
    pub(super) web: Web,
    /// Who changes the account holds this.
    pub(super) turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    page: watch::Sender<Option<Page>>,
}

#[derive(Default)]
struct State {
    /// Whether the vault was looked into.
    is_loaded: bool,
    token: Option<Arc<Token>>,
    /// Whether the server took this token, as far as is known.
    is_proven: bool,
    /// They grow with every token, and with every page.
    tokens: u64,
    pages: u64,
    /// Until when it is not tried to renew the token, and why.
    resting: Option<(Millis, Trouble)>,
    /// What the server wanted last.
    challenge: Option<Challenge>,
}

/// The page of a login under way.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Page {
    /// Where it is.
    pub(super) url: String,
    /// Under which key the login is kept.
    pub(super) key: String,
    /// Where somebody logs in.
    pub(super) issuer: String,
    /// What the token will be for.
    pub(super) resource: String,
    /// What is asked for.
    pub(super) asked: Scopes,
    /// Until when.
    pub(super) expires_at: Millis,
}

/// What goes with one request.
pub(crate) struct Pass {
    /// The header that shows our token, if we have one.
    pub(crate) bearer: Option<HeaderValue>,
    tokens: u64,
    pages: u64,
}

/// What to do with a request that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
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
        let server = place::web("the server", url).ok().filter(|_| !is_fixed)?;
        Some(Arc::new(Self {
            name: config.name.clone(),
            server,
            config: oauth.clone(),
            parts: parts.clone(),
            web: Web::new(parts),
            turn: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            page: watch::Sender::new(None),
        }))
    }

    /// What goes with a request now. A token that ends soon is renewed first.
    pub(crate) async fn pass(self: &Arc<Self>) -> Result<Pass, Trouble> {
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
        Ok(Pass { bearer, tokens: state.tokens, pages: state.pages })
    }

    /// The server took what went with a request.
    pub(crate) fn accepted(&self, pass: &Pass) {
        let mut state = self.state();
        if state.tokens == pass.tokens {
            state.is_proven = true;
        }
    }

    /// The server wants this of a request that went with a pass.
    pub(crate) async fn challenged(
        self: &Arc<Self>,
        pass: &Pass,
        challenge: Challenge,
    ) -> Result<Answered, Trouble> {
        let sent = (pass.tokens, pass.pages);
        let answering =
            self.apart(move |account| async move { account.answer(sent, challenge).await });
        answering.await.unwrap_or_else(|| Err(stopping()))
    }

    /// The page where somebody logs in, if a login is under way.
    pub(crate) fn login_url(&self) -> Option<String> {
        let now = self.parts.clock.now();
        self.page().filter(|page| now < page.expires_at).map(|page| page.url)
    }

    /// Whether a login is under way that nobody finished.
    pub(crate) fn waits_for_login(&self) -> bool {
        self.page.borrow().is_some()
    }

    /// Waits until no login is under way.
    pub(crate) async fn login_over(&self) {
        // An error would mean that the account is gone, which we hold.
        let _ = self.page.subscribe().wait_for(Option::is_none).await;
    }

    /// A text without our secrets, should the other side repeat them.
    pub(crate) fn hidden(&self, text: &str) -> String {
        let Some(token) = self.token() else { return text.to_owned() };
        let secrets = [Some(&token.access), token.refresh.as_ref(), token.client.secret.as_ref()];
        let secrets: Vec<&str> = secrets.into_iter().flatten().map(Secret::expose).collect();
        let secrets = secrets.iter().filter(|secret| secret.len() >= SECRET_CHARS_MIN);
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }

    /// Does something to its end, whether or not somebody waits for it; none if we stop before.
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
            // Whoever waited may have gone.
            let _ = done.send(working.await);
        };
        self.parts.spawn.task("upstream login", Box::pin(task));
        result.await.ok()
    }

    /// The token in use.
    pub(super) fn token(&self) -> Option<Arc<Token>> {
        self.state().token.clone()
    }

    /// How many tokens there were.
    pub(super) fn tokens(&self) -> u64 {
        self.state().tokens
    }

    /// What the server wanted last.
    pub(super) fn last_challenge(&self) -> Option<Challenge> {
        self.state().challenge.clone()
    }

    /// The login under way.
    pub(super) fn page(&self) -> Option<Page> {
        self.page.borrow().clone()
    }

    /// From now on this login is under way, or none.
    pub(super) fn turn_page(&self, page: Option<Page>) {
        self.state().pages += 1;
        self.page.send_replace(page);
    }

    /// Keeps a token, then uses it: one that is used and not kept would be lost with us, and the
    /// one before it is good for nothing any more.
    pub(super) fn keep(&self, token: Token) {
        self.write(&token);
        self.take(Some(token), false);
    }

    /// The token in use cannot be renewed any more.
    pub(super) fn wear_out(&self, token: &Token) {
        let token = Token { refresh: None, ..token.clone() };
        self.write(&token);
        self.state().token = Some(Arc::new(token));
    }

    /// From now on this token is used, or none.
    pub(super) fn take(&self, token: Option<Token>, is_proven: bool) {
        let mut state = self.state();
        state.token = token.map(Arc::new);
        state.is_proven = is_proven;
        state.is_loaded = true;
        state.tokens += 1;
        state.resting = None;
    }

    /// The token is not renewed for a while, for this reason.
    pub(super) fn rest(&self, ms: u64, why: Trouble) {
        self.state().resting = Some((self.parts.clock.now().plus_ms(ms), why));
    }

    /// The token as it is kept, if it is one for this server and this client.
    pub(super) fn kept_token(&self) -> Option<Token> {
        let mut token: Token = kept::read(&*self.parts.vault, &kept::token_key(&self.name))?;
        if token.server != place::plain(&self.server) {
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

    fn write(&self, token: &Token) {
        let key = kept::token_key(&self.name);
        if let Err(fault) = kept::write(&*self.parts.vault, &key, token) {
            let upstream = self.name.as_str();
            tracing::error!(upstream, %fault, "a token could not be kept; it is lost when we stop");
        }
    }

    /// How many tokens there were when a token was made that should be renewed now. Trouble, if
    /// that failed a moment ago and the token is over.
    fn due(&self) -> Result<Option<u64>, Trouble> {
        let now = self.parts.clock.now();
        let state = self.state();
        let Some(token) = state.token.as_ref().filter(|token| token.is_due(now)) else {
            return Ok(None);
        };
        if token.refresh.is_none() && self.config.grant == Grant::Person {
            return Ok(None);
        }
        match &state.resting {
            Some((until, why)) if now < *until && token.is_over(now) => Err(why.clone()),
            Some((until, _)) if now < *until => Ok(None),
            _ => Ok(Some(state.tokens)),
        }
    }

    fn is_over(&self) -> bool {
        let now = self.parts.clock.now();
        self.token().is_none_or(|token| token.is_over(now))
    }

    async fn answer(
        &self,
        (tokens, pages): (u64, u64),
        challenge: Challenge,
    ) -> Result<Answered, Trouble> {
        let _turn = self.turn.lock().await;
        let (token, is_proven, has_turned) = {
            let state = self.state();
            if state.tokens != tokens && state.token.is_some() {
                return Ok(Answered::Again);
            }
            (state.token.clone(), state.is_proven, state.pages != pages)
        };
        if let (Some(token), Lacks::Scope) = (&token, challenge.lacks) {
            self.check_step(&challenge, token)?;
        }
        let page = self.page();
        let now = self.parts.clock.now();
        let is_open = |page: &&Page| now < page.expires_at && page.answers(&challenge, has_turned);
        if let Some(page) = page.as_ref().filter(is_open) {
            return Err(self.wanted(page, &challenge));
        }
        self.state().challenge = Some(challenge.clone());
        let is_refused = token.is_some() && challenge.lacks == Lacks::Token;
        if is_refused && self.replaced(is_proven).await? {
            return Ok(Answered::Again);
        }
        let known = token.as_ref().map(|token| token.issuer.as_str());
        let found = discover(&self.web, &self.server, &challenge, known).await?;
        let Some(found) = found else { return Ok(Answered::NotOurs) };
        let asked = self.asked(&challenge, &found);
        match self.config.grant {
            Grant::Ourselves => self.log_in_ourselves(found, asked).await.map(|()| Answered::Again),
            Grant::Person => {
                let page = self.open_page(found, asked, page).await?;
                Err(self.wanted(&page, &challenge))
            }
        }
    }

    /// Whether a token that is refused could be replaced by another.
    async fn replaced(&self, is_proven: bool) -> Result<bool, Trouble> {
        if let (Grant::Ourselves, false) = (self.config.grant, is_proven) {
            // The next try begins from the beginning.
            self.take(None, false);
            let why = "the token that we were given for it a moment ago is refused";
            return Err(Trouble::refused(why));
        }
        if self.config.grant == Grant::Ourselves || !is_proven {
            return Ok(false);
        }
        let resting = self.state().resting.clone();
        match resting {
            Some((until, why)) if self.parts.clock.now() < until => Err(why),
            _ => self.renew().await,
        }
    }

    /// Whether a login can bring what a request lacks: not what was asked for already, or else
    /// there would be no end to it.
    fn check_step(&self, challenge: &Challenge, token: &Token) -> Result<(), Trouble> {
        let wanted = challenge.scope.clone().unwrap_or_default();
        if self.config.scopes.is_some() {
            let why = format!("its `scopes` in the configuration leave out `{}`", wanted.text());
            return Err(Trouble::refused(why).hint("add it there, if it should be allowed"));
        }
        if token.asked.covers(&wanted) {
            let hint =
                format!("log in as somebody who may do this: `waypost mcp login {}`", self.name);
            let why = match wanted.is_empty() {
                true => "it does not say what our token lacks".to_owned(),
                false => format!("`{}` was asked for in the last one already", wanted.text()),
            };
            return Err(Trouble::refused(why).hint(hint));
        }
        Ok(())
    }

    /// What is asked for: what the operator says, else what the server wants now or lists, together
    /// with what was asked for before.
    pub(super) fn asked(&self, challenge: &Challenge, found: &Found) -> Scopes {
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

    fn wanted(&self, page: &Page, challenge: &Challenge) -> Trouble {
        let more = challenge.lacks == Lacks::Scope && self.token().is_some();
        let (kind, why) = match more {
            true => (
                TroubleKind::Scope,
                format!(
                    "wants a login at `{}` for more than our token is good for: `{}`",
                    page.issuer,
                    page.asked.text()
                ),
            ),
            false => (TroubleKind::Login, format!("wants a login at `{}`", page.issuer)),
        };
        let hint = format!("log in once for everybody here: `waypost mcp login {}`", self.name);
        Trouble { kind, why, hint: Some(hint) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_loaded {
            state.is_loaded = true;
            state.token = self.kept_token().map(Arc::new);
            // As far as we know: it was used before we stopped.
            state.is_proven = true;
        }
        state
    }
}

impl Page {
    /// Whether this login brings what a request lacks, as far as can be told without a look at the
    /// server: if it is new since the request was sent, or asks for what was lacking.
    fn answers(&self, challenge: &Challenge, is_new: bool) -> bool {
        match (challenge.lacks, &challenge.scope) {
            (Lacks::Token, _) | (Lacks::Scope, None) => is_new,
            (Lacks::Scope, Some(scope)) => self.asked.covers(scope),
        }
    }
}

/// The header that shows a token.
fn bearer(access: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", access.expose())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn stopping() -> Trouble {
    Trouble::away("we are being stopped")
}
