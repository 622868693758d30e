//! Browser logins: how one begins, and how its callback is handled. Its state is in the vault, so
//! that a restart in between does not matter.

use super::account::{Account, Page, stopping};
use super::client::{self, Client, Registration};
use super::discovery::{Discovery, discover};
use super::error::{OauthError, Result};
use super::issuer::Issuer;
use super::pkce;
use super::proof::LoginOutcome;
use super::scopes::Scopes;
use super::stored::{self, Logins, Pending, PinnedClient};
use super::token::{NotGiven, ask, revoke};
use super::urls;
use super::web::{told, typed};
use super::{LoginCallback, LoginPlaces};
use crate::config::Grant;
use kernel::contracts::{Vault, VaultCondition, VaultError};
use kernel::values::fault::Fault;
use kernel::values::ids::Millis;
use reqwest::Url;
use std::sync::Arc;

/// How long a user may take for a login.
const LOGIN_MS: u64 = 3_600_000;
/// How many logins at one server are under way; of more, the oldest cannot be finished.
const LOGINS_MAX: usize = 8;
/// The address of a page: more than any browser opens.
const PAGE_BYTES_MAX: usize = 32 * 1024;
/// How long one who takes a login out of the vault keeps others from it: far longer than it takes.
const TAKE_MS: u64 = 10_000;
/// How often it is begun again because someone else changed what is kept.
const CONFLICTS_MAX: usize = 8;

/// The login that someone comes back from, wherever it began.
pub(crate) async fn pending(vault: &dyn Vault, state: &str) -> Option<Pending> {
    stored::read(vault, &stored::login_key(state)).await
}

impl Account {
    /// Begins a login afresh: the page for it.
    pub(crate) async fn begin(self: &Arc<Self>) -> Result<String, Fault> {
        if self.config.grant == Grant::Ourselves {
            let why = "no user logs in there: Waypost does, with its `client_secret`";
            return Err(self.fault("LoginNotPossible", why));
        }
        self.places().map_err(|trouble| self.not_begun(trouble))?;
        let beginning = self.apart(|account| async move { account.begin_now().await });
        let begun = beginning.await.unwrap_or_else(|| Err(stopping()));
        begun.map_err(|trouble| self.not_begun(trouble))
    }

    /// Someone came back from this login.
    pub(crate) async fn finish(
        self: &Arc<Self>,
        login: Pending,
        returned: LoginCallback,
    ) -> Result<LoginOutcome, Fault> {
        let finishing =
            self.apart(|account| async move { account.finish_now(login, returned).await });
        let finished = finishing.await;
        finished.unwrap_or_else(|| Err(self.fault("LoginFailed", "we are being stopped")))
    }

    /// Forgets the token and whom we are known as; the token is given back where that can be done.
    pub(crate) async fn log_out(self: &Arc<Self>) -> Result<(), Fault> {
        let going = self.apart(|account| async move { account.log_out_now().await });
        going.await.unwrap_or_else(|| Err(self.fault("LogoutFailed", "we are being stopped")))
    }

    /// The page of a login at this issuer: the one that is open already, if it asks for the same,
    /// else another. It must be our turn.
    pub(super) async fn open_page(
        &self,
        found: Discovery,
        asked: Scopes,
        open: Option<Page>,
    ) -> Result<Page> {
        let places = self.places()?;
        let now = self.parts.clock.now();
        // One that ends soon is not shown to anybody any more.
        let long_enough = |page: &Page| now.plus_ms(LOGIN_MS / 2) <= page.expires_at;
        if let Some(page) = open.filter(|page| page.asks(&found, &asked) && long_enough(page)) {
            return Ok(page);
        }
        let client = self.client(&found, &asked, places).await?;
        let state = self.parts.scope.state(pkce::secret(&*self.parts.entropy));
        let login = Pending {
            upstream: self.name.clone(),
            server: urls::plain(&self.server),
            resource: found.resource,
            client,
            callback: places.callback.clone(),
            verifier: pkce::secret(&*self.parts.entropy).into(),
            asked,
            ground: found.ground,
            expires_at: now.plus_ms(LOGIN_MS),
            issuer: found.issuer,
        };
        let page = Page {
            url: page_url(&login, &state)?,
            key: stored::login_key(&state),
            issuer: login.issuer.name.clone(),
            resource: login.resource.clone(),
            asked: login.asked.clone(),
            expires_at: login.expires_at,
        };
        let noted = self.note(&page.key, &login).await;
        noted.map_err(|error| OauthError::away(format!("a login cannot be kept: {error}")))?;
        self.turn_page(Some(page.clone()));
        Ok(page)
    }

    /// The client of the configuration, if there is one and it belongs to this issuer.
    pub(super) async fn configured(&self, issuer: &Issuer) -> Result<Option<Client>> {
        let Some(client) = Client::configured(&self.config, issuer)? else { return Ok(None) };
        // Where that cannot be read no one is believed.
        let pinned = self.pinned(&client, issuer).await;
        let pinned = pinned.map_err(|error| OauthError::away(error.to_string()))?;
        // Or else a server could have the secret sent to whomever it names.
        if pinned.issuer != issuer.name {
            let why = format!(
                "its authorization server is `{}` now, but the configured client is of `{}`",
                issuer.name, pinned.issuer
            );
            let hint = format!("if that is right, `waypost mcp logout {}` forgets it", self.name);
            return Err(OauthError::refused(why).hint(hint));
        }
        Ok(Some(client))
    }

    /// Where this configured client was first shown: at this issuer, if nowhere before.
    async fn pinned(&self, client: &Client, issuer: &Issuer) -> Result<PinnedClient, VaultError> {
        let vault = &*self.parts.vault;
        let key = stored::issuer_key(&self.name);
        for _ in 0..CONFLICTS_MAX {
            let seen = stored::look::<PinnedClient>(vault, &key).await?;
            if let Some(pinned) = seen.record.filter(|pinned| pinned.client_id == client.id) {
                return Ok(pinned);
            }
            let pinned = PinnedClient { client_id: client.id.clone(), issuer: issuer.name.clone() };
            match stored::write(vault, &key, &pinned, seen.version.into()).await {
                Ok(_) => return Ok(pinned),
                // Someone else showed it somewhere at the same moment.
                Err(VaultError::Conflict(_)) => {}
                Err(failed) => return Err(failed),
            }
        }
        Err(VaultError::Conflict(key))
    }

    async fn begin_now(&self) -> Result<String> {
        let _turn = self.turn.lock().await;
        self.load().await;
        let last = self.state().challenge.clone();
        let challenge = match last {
            Some(challenge) => challenge,
            None => self.web.probe(&self.server).await?,
        };
        let token = self.token();
        let known = token.as_ref().map(|token| token.issuer.as_str());
        let found = discover(&self.web, &self.server, &challenge, known).await?;
        let found = found.ok_or_else(|| {
            OauthError::refused("nothing there says that it has logins")
                .hint("it may take a key in a header instead: see its documentation")
        })?;
        let asked = self.asked(&challenge, &found);
        self.open_page(found, asked, None).await.map(|page| page.url)
    }

    async fn finish_now(
        &self,
        login: Pending,
        returned: LoginCallback,
    ) -> Result<LoginOutcome, Fault> {
        let _turn = self.turn.lock().await;
        let key = stored::login_key(&returned.state);
        let finished = match self.take_login(&key).await {
            Ok(()) => self.exchange(&login, &returned).await,
            Err(fault) => Err(fault),
        };
        // A login that failed begins again with another page; one that failed late leaves the page
        // of another.
        if finished.is_ok() || self.page().is_some_and(|page| page.key == key) {
            self.turn_page(None);
        }
        finished
    }

    /// Takes a login out of the vault: it can be finished only once, wherever it comes back to.
    async fn take_login(&self, key: &str) -> Result<(), Fault> {
        let vault = &*self.parts.vault;
        let hold = vault.hold(key, TAKE_MS).await?;
        if hold.is_none() || stored::read::<Pending>(vault, key).await.is_none() {
            return Err(unknown_login());
        }
        Ok(vault.remove(key).await?)
    }

    async fn exchange(
        &self,
        login: &Pending,
        returned: &LoginCallback,
    ) -> Result<LoginOutcome, Fault> {
        let code = self.checked(login, returned).await?;
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", login.callback.as_str()),
            ("code_verifier", login.verifier.expose()),
            ("resource", login.resource.as_str()),
        ];
        let client = login.client.clone();
        let asked = login.asked.clone();
        let blank = self.blank(&login.issuer, &login.resource, login.ground, client, asked);
        let finished = match ask(&self.web, &blank, &fields, self.parts.clock.now()).await {
            Ok(token) => self.settle(token).await?,
            Err(error) => return Err(self.not_given(login, error).await),
        };
        let upstream = self.name.as_str();
        let issuer = login.issuer.name.as_str();
        tracing::info!(upstream, issuer, "a user logged in");
        Ok(finished)
    }

    /// The code, if all is as it should be.
    async fn checked<'r>(
        &self,
        login: &Pending,
        returned: &'r LoginCallback,
    ) -> Result<&'r str, Fault> {
        if login.server != urls::plain(&self.server) {
            let why = "the login began when it was configured with another URL";
            return Err(self.fault("LoginNotFound", why).hint(self.again()));
        }
        if self.parts.clock.now() >= login.expires_at {
            return Err(self.fault("LoginExpired", "the login took too long").hint(self.again()));
        }
        // Before anything else is believed: it could be said by someone else (RFC 9207).
        if !login.issuer.sent(returned.iss.as_deref()) {
            let why = match &returned.iss {
                Some(iss) => format!(
                    "the login was at `{}`, but `{}` says that it is from there",
                    login.issuer.name,
                    told(iss, &[])
                ),
                None => format!("`{}` does not say that it is from there", login.issuer.name),
            };
            return Err(self.fault("LoginWrongIssuer", &why).hint(self.again()));
        }
        if let Some(error) = &returned.error {
            let words = returned.error_description.as_deref().unwrap_or_default();
            let said = told(&format!("{error} {words}"), &[]);
            let why = format!("`{}` did not let us in: {said}", login.issuer.name);
            if matches!(error.as_str(), "invalid_client" | "unauthorized_client") {
                self.forget_client(&login.issuer.name).await;
            }
            return Err(self.fault("LoginRefused", &why).hint(self.again()));
        }
        let code = returned.code.as_deref().filter(|code| !code.is_empty());
        code.ok_or_else(|| self.fault("LoginRefused", "no code came back").hint(self.again()))
    }

    async fn not_given(&self, login: &Pending, error: NotGiven) -> Fault {
        if error.is_unknown_client() {
            self.forget_client(&login.issuer.name).await;
        }
        self.fault("LoginFailed", &error.trouble().why).hint(self.again())
    }

    async fn log_out_now(&self) -> Result<(), Fault> {
        let _turn = self.turn.lock().await;
        self.load().await;
        let vault = &*self.parts.vault;
        let token = self.token();
        vault.remove(&stored::token_key(&self.name)).await?;
        vault.remove(&stored::issuer_key(&self.name)).await?;
        vault.remove(&stored::client_key(&self.name)).await?;
        self.forget_logins().await;
        self.forget_unproven().await;
        self.state().version = None;
        self.take(None, false);
        self.turn_page(None);
        if let Some(token) = token {
            revoke(&self.web, &token).await;
        }
        Ok(())
    }

    /// Forgets the logins under way: a person at a page of one cannot come back from it.
    async fn forget_logins(&self) {
        let vault = &*self.parts.vault;
        let index = stored::logins_key(&self.name);
        let known: Logins = stored::read(vault, &index).await.unwrap_or_default();
        for (key, _) in &known {
            stored::forget(vault, key).await;
        }
        stored::forget(vault, &index).await;
    }

    /// Our client there: configured, described by our metadata document, or registered.
    async fn client(
        &self,
        found: &Discovery,
        asked: &Scopes,
        places: &LoginPlaces,
    ) -> Result<Client> {
        if let Some(client) = self.configured(&found.issuer).await? {
            return Ok(client);
        }
        if let Some(client) = Client::documented(&found.issuer, places) {
            return Ok(client);
        }
        let vault = &*self.parts.vault;
        let key = stored::client_key(&self.name);
        let known: Option<Registration> = stored::read(vault, &key).await;
        let now = self.parts.clock.now();
        let is_good = |known: &Registration| {
            known.issuer == found.issuer.name
                && known.callback == places.callback
                && known.expires_at.is_none_or(|end| now < end)
        };
        if let Some(known) = known.filter(is_good) {
            return Ok(known.client);
        }
        let registration = self.register(found, asked, places).await?;
        // Of several who register at once the last one is kept; each continues with its own.
        let written = stored::write(vault, &key, &registration, VaultCondition::Any).await;
        written.map_err(|error| OauthError::away(error.to_string()))?;
        Ok(registration.client)
    }

    async fn register(
        &self,
        found: &Discovery,
        asked: &Scopes,
        places: &LoginPlaces,
    ) -> Result<Registration> {
        let issuer = &found.issuer;
        let callback = places.callback.as_str();
        let endpoint = issuer.registration.as_deref().ok_or_else(|| {
            let why = format!("we cannot register ourselves at `{}`", issuer.name);
            OauthError::refused(why)
                .hint("register a client there by hand, and set its `client_id` in `oauth`")
        })?;
        let url = urls::endpoint("its `registration_endpoint`", endpoint)?;
        let method = client::registered_method(issuer, callback)?;
        let body = client::description(method, callback, asked).to_string();
        let posted = self.web.post(found.ground, &url, typed("application/json"), body).await?;
        client::registered(issuer, callback, method, &posted)
    }

    /// Keeps a login, and no more of them than the limit.
    async fn note(&self, key: &str, login: &Pending) -> Result<(), VaultError> {
        let vault = &*self.parts.vault;
        let index = stored::logins_key(&self.name);
        for _ in 0..CONFLICTS_MAX {
            let seen = stored::look::<Logins>(vault, &index).await?;
            let now = self.parts.clock.now();
            let (mut left, gone) = with_room_for_one(seen.record.unwrap_or_default(), now);
            // Before they are left out of the list: what is in no list is never removed.
            for (key, _) in &gone {
                stored::forget(vault, key).await;
            }
            left.push((key.to_owned(), login.expires_at));
            match stored::write(vault, &index, &left, seen.version.into()).await {
                Ok(_) => {
                    return stored::write(vault, key, login, VaultCondition::Any).await.map(drop);
                }
                // Someone else began a login at the same moment.
                Err(VaultError::Conflict(_)) => {}
                Err(failed) => return Err(failed),
            }
        }
        Err(VaultError::Conflict(index))
    }

    fn places(&self) -> Result<&LoginPlaces> {
        self.parts.login.as_ref().ok_or_else(|| {
            OauthError::refused("there is no address here that a login could come back to")
                .hint("logins are done by `waypost up`")
        })
    }

    fn not_begun(&self, trouble: OauthError) -> Fault {
        Fault { hint: trouble.hint, ..self.fault("LoginNotPossible", &trouble.why) }
    }

    fn fault(&self, name: &str, why: &str) -> Fault {
        Fault::new(name, format!("upstream `{}`: {why}", self.name))
    }

    fn again(&self) -> String {
        format!("begin again: `waypost mcp login {}`", self.name)
    }
}

impl Page {
    /// Whether it asks for the same.
    fn asks(&self, found: &Discovery, asked: &Scopes) -> bool {
        self.issuer == found.issuer.name && self.resource == found.resource && self.asked == *asked
    }
}

/// The logins that stay so that there is room for one more, and those that must go: the ones that
/// are over, and the oldest.
fn with_room_for_one(known: Logins, now: Millis) -> (Logins, Logins) {
    let open = known.iter().filter(|(_, end)| now < *end).count();
    let mut surplus = (open + 1).saturating_sub(LOGINS_MAX);
    let mut stays = |end: Millis| {
        let is_over = now >= end;
        let is_surplus = !is_over && surplus > 0;
        surplus -= usize::from(is_surplus);
        !is_over && !is_surplus
    };
    known.into_iter().partition(|(_, end)| stays(*end))
}

/// The fault of someone who comes back from a login that is not under way.
pub(crate) fn unknown_login() -> Fault {
    let why = "this login is not known: it is finished already, too old, or did not begin here";
    Fault::new("LoginNotFound", why).hint("begin again: `waypost mcp login NAME`")
}

fn page_url(login: &Pending, state: &str) -> Result<String> {
    let page = login.issuer.authorization.as_deref().ok_or_else(|| {
        let name = &login.issuer.name;
        OauthError::refused(format!("the authorization server `{name}` has no page to log in"))
    })?;
    let mut url: Url = urls::endpoint("its `authorization_endpoint`", page)?;
    let challenge = pkce::challenge(login.verifier.expose());
    let asked = login.asked.text();
    let mut fields = vec![
        ("response_type", "code"),
        ("client_id", login.client.id.as_str()),
        ("redirect_uri", login.callback.as_str()),
        ("state", state),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
        ("resource", login.resource.as_str()),
    ];
    if !asked.is_empty() {
        fields.push(("scope", &asked));
    }
    if login.asked.contains("offline_access") {
        // Without it some servers give nothing that outlasts the visit (OpenID Connect 11).
        fields.push(("prompt", "consent"));
    }
    url.query_pairs_mut().extend_pairs(fields);
    if url.as_str().len() > PAGE_BYTES_MAX {
        let name = &login.issuer.name;
        return Err(OauthError::refused(format!(
            "the address of the page to log in at `{name}` has more than {PAGE_BYTES_MAX} bytes"
        )));
    }
    Ok(url.into())
}
