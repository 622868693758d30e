//! Tokens that no one must log in for: renewed ones, and those that we get ourselves. Others may
//! share our vault, and a token is renewed only once: the one who renews it holds it, checks
//! whether another did so before, asks, keeps the outcome if no one changed it meanwhile, and lets
//! go.

use super::account::Account;
use super::client::Client;
use super::discovery::Discovery;
use super::error::{OauthError, Result};
use super::issuer::Issuer;
use super::scopes::Scopes;
use super::stored::{self, Token, VaultRecord};
use super::token::{NotGiven, ask, revoke};
use super::urls;
use super::web::Ground;
use crate::config::{Grant, Secret};
use kernel::contracts::{VaultCondition, VaultLease};
use std::sync::Arc;

/// How much longer a token is held than the authorization server may take to answer: enough to read
/// and write what is kept.
const HOLD_SPARE_MS: u64 = 10_000;
/// How often we check whether another who holds a token has renewed it.
const LOOK_MS: u64 = 100;
/// How often what is kept may have been changed by others while we keep a token.
const CONFLICTS_MAX: usize = 8;

impl Account {
    /// Renews the token, unless someone did so since there were so many.
    pub(super) async fn renew_one(&self, tokens: u64) -> Result<()> {
        let _turn = self.turn.lock().await;
        if self.state().counts.tokens != tokens {
            return Ok(());
        }
        // It may have failed for someone else while we waited for our turn.
        match self.rests() {
            Some(why) => Err(why),
            None => self.renew().await.map(drop),
        }
    }

    /// Renews the token; whether there is another now. It must be our turn.
    pub(super) async fn renew(&self) -> Result<bool> {
        if self.token().is_none() {
            return Ok(false);
        }
        let _hold = match self.hold().await {
            Ok(Some(hold)) => hold,
            Ok(None) => return Ok(self.token().is_some()),
            Err(trouble) => {
                self.rest(trouble.clone());
                return Err(trouble);
            }
        };
        match self.token() {
            Some(token) => self.ask_anew(&token).await,
            None => Ok(false),
        }
    }

    /// Holds the token, so that we alone renew it; none if another has changed what is kept of it,
    /// which is used from now on.
    async fn hold(&self) -> Result<Option<VaultLease>> {
        let key = stored::token_key(&self.name);
        let clock = &self.parts.clock;
        let ms = self.parts.limits.upstream_connect_timeout_ms.saturating_add(HOLD_SPARE_MS);
        // A hold that no one lets go of ends by itself.
        for _ in 0..=ms / LOOK_MS {
            let held = self.parts.vault.hold(&key, ms).await;
            let held = held.map_err(|error| OauthError::away(error.to_string()))?;
            // In this order: the one who held it before us has kept what they got.
            if self.is_overtaken().await {
                return Ok(None);
            }
            if held.is_some() {
                return Ok(held);
            }
            clock.sleep_ms(LOOK_MS).await;
        }
        Err(OauthError::away(format!("another renewal of its token has been running for {ms} ms")))
    }

    /// Whether another changed what is kept of the token, or removed it. Then that is used from now
    /// on: it is newer, and ours may be good no more.
    async fn is_overtaken(&self) -> bool {
        let VaultRecord { record, version } = match self.kept_token().await {
            Ok(seen) => seen,
            Err(error) => {
                // What we have is the best that we know of.
                let upstream = self.name.as_str();
                tracing::warn!(upstream, %error, "what was kept of a login cannot be read");
                return false;
            }
        };
        if std::mem::replace(&mut self.state().version, version) == version {
            return false;
        }
        let is_other = match &record {
            // It can be our own, if the vault reported that it could not be kept.
            Some(kept) => self.token().as_deref() != Some(kept),
            // What is kept for another server or client, as others are configured, does not count.
            None => version.is_none(),
        };
        if is_other {
            self.take(record, true);
        }
        is_other
    }

    /// Asks for a token in place of this one; whether there is another now. It must be held.
    async fn ask_anew(&self, token: &Token) -> Result<bool> {
        let asked = token.asked.text();
        let mut fields = match (self.config.grant, &token.refresh) {
            (Grant::Ourselves, _) => ourselves(&asked),
            (Grant::Person, Some(refresh)) => {
                vec![("grant_type", "refresh_token"), ("refresh_token", refresh.expose())]
            }
            (Grant::Person, None) => return Ok(false),
        };
        fields.push(("resource", &token.resource));
        match ask(&self.web, token, &fields, self.parts.clock.now()).await {
            Ok(renewed) => {
                self.keep_renewed(renewed).await;
                Ok(self.token().is_some())
            }
            Err(NotGiven::Away(trouble)) => {
                self.rest(trouble.clone());
                Err(trouble)
            }
            Err(denied) => {
                self.not_renewed(token, denied).await;
                Ok(false)
            }
        }
    }

    /// Keeps a renewed token, then uses it: one that is used and not kept would be lost with us,
    /// and the one before it is good for nothing any more.
    async fn keep_renewed(&self, token: Token) {
        if self.replace_kept(&token).await {
            self.take(Some(token), false);
        } else if self.token().is_none() {
            // Someone logged out meanwhile.
            revoke(&self.web, &token).await;
        }
    }

    /// The token in use cannot be renewed any more.
    async fn wear_out(&self, token: &Token) {
        let token = Token { refresh: None, ..token.clone() };
        if self.replace_kept(&token).await {
            self.state().token = Some(Arc::new(token));
        }
    }

    /// Keeps a token in place of the one in use; false if another changed that meanwhile, because
    /// our hold had ended or someone logged in or out: then theirs is used.
    async fn replace_kept(&self, token: &Token) -> bool {
        for _ in 0..CONFLICTS_MAX {
            let expected = VaultCondition::from(self.state().version);
            if self.write(token, expected).await {
                return true;
            }
            if self.is_overtaken().await {
                return false;
            }
        }
        let upstream = self.name.as_str();
        tracing::error!(upstream, "a token could not be kept; it is lost when we stop");
        true
    }

    /// A token that we get ourselves, with the client's secret.
    pub(super) async fn log_in_ourselves(&self, found: Discovery, asked: Scopes) -> Result<()> {
        let client = self.configured(&found.issuer).await?;
        let client = client.filter(|client| client.secret.is_some()).ok_or_else(|| {
            OauthError::refused("we have no client there to log in as")
                .hint("set `client_id` and `client_secret` in its `oauth`")
        })?;
        let text = asked.text();
        let mut fields = ourselves(&text);
        fields.push(("resource", &found.resource));
        let blank = self.blank(&found.issuer, &found.resource, found.ground, client, asked);
        let given = ask(&self.web, &blank, &fields, self.parts.clock.now()).await;
        self.keep(given.map_err(NotGiven::trouble)?).await;
        Ok(())
    }

    /// All of a token but the token.
    pub(super) fn blank(
        &self,
        issuer: &Issuer,
        resource: &str,
        ground: Ground,
        client: Client,
        asked: Scopes,
    ) -> Token {
        Token {
            server: urls::plain(&self.server),
            issuer: issuer.name.clone(),
            resource: resource.to_owned(),
            endpoint: issuer.token.clone(),
            revocation: issuer.revocation.clone(),
            client,
            ground,
            asked,
            access: Secret::default(),
            refresh: None,
            given_at: self.parts.clock.now(),
            expires_at: None,
        }
    }

    /// The token is used as long as it is good, then someone must log in.
    async fn not_renewed(&self, token: &Token, denied: NotGiven) {
        let upstream = self.name.as_str();
        if denied.is_unknown_client() {
            self.forget_client(&token.issuer).await;
        }
        let why = denied.trouble();
        let issuer = token.issuer.as_str();
        tracing::warn!(upstream, issuer, %why, "a token is not renewed any more");
        match self.config.grant {
            Grant::Person => self.wear_out(token).await,
            // It may be a secret that was changed: it is tried again, but not all the time.
            Grant::Ourselves => self.rest(why),
        }
    }
}

/// The form of a client that asks for itself.
fn ourselves(asked: &str) -> Vec<(&'static str, &str)> {
    let mut fields = vec![("grant_type", "client_credentials")];
    if !asked.is_empty() {
        fields.push(("scope", asked));
    }
    fields
}
