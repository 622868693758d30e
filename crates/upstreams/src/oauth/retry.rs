//! What happens to a request that was refused for lack of a token or of scope: it is sent again
//! with another token, or a login is required.

use super::account::{Account, Counts, Page, Pass, RetryDecision, stopping};
use super::challenge::{Challenge, MissingGrant};
use super::discovery::discover;
use super::error::{OauthError, OauthErrorKind, Result};
use super::stored::Token;
use crate::config::Grant;
use std::sync::Arc;

impl Account {
    /// The server wants this of a request that went with a pass.
    pub(crate) async fn challenged(
        self: &Arc<Self>,
        pass: &Pass,
        challenge: Challenge,
    ) -> Result<RetryDecision> {
        let sent = pass.counts;
        let answering =
            self.apart(move |account| async move { account.answer(sent, challenge).await });
        answering.await.unwrap_or_else(|| Err(stopping()))
    }

    async fn answer(&self, sent: Counts, challenge: Challenge) -> Result<RetryDecision> {
        let _turn = self.turn.lock().await;
        let (token, fruitless, has_turned) = {
            let state = self.state();
            let now = state.counts;
            if now.tokens != sent.tokens && state.token.is_some() {
                return Ok(RetryDecision::Again);
            }
            let fruitless = state.fruitless.clone().filter(|_| now.looks != sent.looks);
            (state.token.clone(), fruitless, now.pages != sent.pages)
        };
        if let (Some(token), MissingGrant::Scope) = (&token, challenge.lacks) {
            self.check_step(&challenge, token)?;
        }
        let page = self.page();
        let now = self.parts.clock.now();
        let is_open = |page: &&Page| now < page.expires_at && page.answers(&challenge, has_turned);
        if let Some(page) = page.as_ref().filter(is_open) {
            return Err(self.wanted(page, &challenge));
        }
        // One who waited for their turn during a look need not look again: with a server
        // that takes its time there would be no end to it.
        if let Some(fruitless) = fruitless {
            return fruitless;
        }
        let looked = self.look(token, &challenge, page).await;
        let is_fruitless = match &looked {
            Ok(answered) => *answered == RetryDecision::NotOurs,
            Err(trouble) => matches!(trouble.kind, OauthErrorKind::Refused | OauthErrorKind::Away),
        };
        let mut state = self.state();
        state.counts.looks += 1;
        state.fruitless = is_fruitless.then(|| looked.clone());
        drop(state);
        looked
    }

    /// Looks at the server for what a request lacks. It must be our turn.
    async fn look(
        &self,
        token: Option<Arc<Token>>,
        challenge: &Challenge,
        page: Option<Page>,
    ) -> Result<RetryDecision> {
        let is_proven = {
            let mut state = self.state();
            state.challenge = Some(challenge.clone());
            state.is_proven
        };
        let is_refused = token.is_some() && challenge.lacks == MissingGrant::Token;
        if is_refused && self.replaced(is_proven).await? {
            return Ok(RetryDecision::Again);
        }
        let known = token.as_ref().map(|token| token.issuer.as_str());
        let found = discover(&self.web, &self.server, challenge, known).await?;
        let Some(found) = found else { return Ok(RetryDecision::NotOurs) };
        let asked = self.asked(challenge, &found);
        match self.config.grant {
            Grant::Ourselves => {
                self.log_in_ourselves(found, asked).await.map(|()| RetryDecision::Again)
            }
            Grant::Person => {
                let page = self.open_page(found, asked, page).await?;
                Err(self.wanted(&page, challenge))
            }
        }
    }

    /// Whether a token that is refused could be replaced by another.
    async fn replaced(&self, is_proven: bool) -> Result<bool> {
        if let (Grant::Ourselves, false) = (self.config.grant, is_proven) {
            // The next try begins from the beginning.
            self.take(None, false);
            let why = "the token that we were given for it a moment ago is refused";
            return Err(OauthError::refused(why));
        }
        if self.config.grant == Grant::Ourselves || !is_proven {
            return Ok(false);
        }
        match self.rests() {
            Some(why) => Err(why),
            None => self.renew().await,
        }
    }

    /// Whether a login can bring what a request lacks: not what was asked for already, or else
    /// there would be no end to it.
    fn check_step(&self, challenge: &Challenge, token: &Token) -> Result<()> {
        let wanted = challenge.scope.clone().unwrap_or_default();
        if self.config.scopes.is_some() {
            let why = format!("its `scopes` in the configuration leave out `{}`", wanted.text());
            return Err(OauthError::refused(why).hint("add it there, if it should be allowed"));
        }
        if token.asked.covers(&wanted) {
            let hint =
                format!("log in as a user who may do this: `waypost mcp login {}`", self.name);
            let why = match wanted.is_empty() {
                true => "it does not say what our token lacks".to_owned(),
                false => format!("`{}` was asked for in the last one already", wanted.text()),
            };
            return Err(OauthError::refused(why).hint(hint));
        }
        Ok(())
    }

    fn wanted(&self, page: &Page, challenge: &Challenge) -> OauthError {
        let more = challenge.lacks == MissingGrant::Scope && self.token().is_some();
        let (kind, why) = match more {
            true => (
                OauthErrorKind::Scope,
                format!(
                    "wants a login at `{}` for more than our token is good for: `{}`",
                    page.issuer,
                    page.asked.text()
                ),
            ),
            false => (OauthErrorKind::Login, format!("wants a login at `{}`", page.issuer)),
        };
        let hint = match self.parts.scope.person {
            Some(_) => {
                format!(
                    "log in for yourself: `waypost mcp login {0} --mine`, or `POST \
                     /api/v1/upstreams/{0}/my-login`, gives the page",
                    self.name
                )
            }
            None => format!(
                "an administrator of this server logs in, once for all users: `waypost mcp login \
                 {}`",
                self.name
            ),
        };
        OauthError { kind, why, hint: Some(hint) }
    }
}

impl Page {
    /// Whether this login brings what a request lacks, as far as we know without a look at the
    /// server: if it is new since the request was sent, or asks for what was lacking.
    fn answers(&self, challenge: &Challenge, is_new: bool) -> bool {
        match (challenge.lacks, &challenge.scope) {
            (MissingGrant::Token, _) | (MissingGrant::Scope, None) => is_new,
            (MissingGrant::Scope, Some(scope)) => self.asked.covers(scope),
        }
    }
}
