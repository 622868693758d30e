//! Tokens that nobody must log in for: renewed ones, and those that we get ourselves.

use super::account::Account;
use super::client::Client;
use super::discovery::Found;
use super::kept::Token;
use super::place;
use super::scopes::Scopes;
use super::token::{Asking, NotGiven, ask};
use super::trouble::Trouble;
use crate::remote::config::{Grant, Secret};

impl Account {
    /// Renews the token, unless somebody did so since there were so many.
    pub(super) async fn renew_one(&self, tokens: u64) -> Result<(), Trouble> {
        let _turn = self.turn.lock().await;
        if self.tokens() != tokens {
            return Ok(());
        }
        // It may have failed for somebody else while we waited for our turn.
        match self.rests() {
            Some(why) => Err(why),
            None => self.renew().await.map(drop),
        }
    }

    /// Renews the token; whether there is another now. It must be our turn.
    pub(super) async fn renew(&self) -> Result<bool, Trouble> {
        let Some(token) = self.token() else { return Ok(false) };
        // Another process that shares our vault may have done it: a token is renewed only once.
        if let Some(other) = self.kept_token().filter(|kept| kept.given_at > token.given_at) {
            self.take(Some(other), true);
            return Ok(true);
        }
        let asked = token.asked.text();
        let mut fields = match (self.config.grant, &token.refresh) {
            (Grant::Ourselves, _) => ourselves(&asked),
            (Grant::Person, Some(refresh)) => {
                vec![("grant_type", "refresh_token"), ("refresh_token", refresh.expose())]
            }
            (Grant::Person, None) => return Ok(false),
        };
        fields.push(("resource", &token.resource));
        let asking = Asking {
            endpoint: &token.endpoint,
            ground: token.ground,
            client: &token.client,
            fields: &fields,
        };
        let now = self.parts.clock.now();
        match ask(&self.web, &asking).await {
            Ok(given) => {
                self.keep(token.renewed(given, now));
                Ok(true)
            }
            Err(NotGiven::Away(trouble)) => {
                self.rest(trouble.clone());
                Err(trouble)
            }
            Err(denied) => {
                self.not_renewed(&token, denied);
                Ok(false)
            }
        }
    }

    /// A token that we get ourselves, with the client's secret.
    pub(super) async fn log_in_ourselves(
        &self,
        found: Found,
        asked: Scopes,
    ) -> Result<(), Trouble> {
        let client = self.configured(&found.issuer)?.filter(|client| client.secret.is_some());
        let client = client.ok_or_else(|| {
            Trouble::refused("we have no client there to log in as")
                .hint("set `client_id` and `client_secret` in its `oauth`")
        })?;
        let text = asked.text();
        let mut fields = ourselves(&text);
        fields.push(("resource", &found.resource));
        let asking = Asking {
            endpoint: &found.issuer.token,
            ground: found.ground,
            client: &client,
            fields: &fields,
        };
        let now = self.parts.clock.now();
        let given = ask(&self.web, &asking).await.map_err(NotGiven::trouble)?;
        let token = self.blank(&found, client, asked).renewed(given, now);
        self.keep(token);
        Ok(())
    }

    /// All of a token but the token.
    pub(super) fn blank(&self, found: &Found, client: Client, asked: Scopes) -> Token {
        Token {
            server: place::plain(&self.server),
            issuer: found.issuer.name.clone(),
            resource: found.resource.clone(),
            endpoint: found.issuer.token.clone(),
            revocation: found.issuer.revocation.clone(),
            client,
            ground: found.ground,
            asked,
            access: Secret::default(),
            refresh: None,
            given_at: self.parts.clock.now(),
            expires_at: None,
        }
    }

    /// The token is used as long as it is good, then somebody must log in.
    fn not_renewed(&self, token: &Token, denied: NotGiven) {
        let upstream = self.name.as_str();
        if denied.is_unknown_client() {
            self.forget_client(&token.issuer);
        }
        let why = denied.trouble();
        let issuer = token.issuer.as_str();
        tracing::warn!(upstream, issuer, %why, "a token is not renewed any more");
        match self.config.grant {
            Grant::Person => self.wear_out(token),
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
