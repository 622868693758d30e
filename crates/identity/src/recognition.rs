//! Verification of a credential, with the cache of known ones.

use crate::Identity;
use crate::claims::claimed;
use crate::credential::{Fingerprint, SentCredential};
use crate::issuer::{self, KnownToken};
use crate::keys::{Holder, earliest};
use crate::token::{self, Claims};
use crate::verified::{CredentialRefusal, Endpoint, KeyProof, Proof, Standing, VerifiedCaller};
use kernel::identity::key::{KeyText, TOKEN_PREFIX, hash_of};
use kernel::values::caller::{KeyMakers, Scopes};
use kernel::values::ids::Millis;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Why a credential is not recognized at once.
enum Unrecognized {
    Wrong(&'static str),
    /// It looks like a token of an issuer that was not seen yet.
    Unread(Fingerprint),
}

impl From<&'static str> for Unrecognized {
    fn from(why: &'static str) -> Self {
        Self::Wrong(why)
    }
}

impl Identity {
    /// Verifies a credential without waiting. Our keys and tokens are cheap to check, so a valid
    /// one passes regardless of failures from its address; only failures are counted.
    pub fn authenticate(
        &self,
        sent: &SentCredential<'_>,
        from: IpAddr,
    ) -> Result<Arc<VerifiedCaller>, CredentialRefusal> {
        self.recognized(sent, Endpoint::Other).map_err(|unrecognized| match unrecognized {
            Unrecognized::Wrong(why) => self.failed(from, why),
            Unrecognized::Unread(_) => self.failed(from, "the token was not seen yet"),
        })
    }

    /// Verifies a credential at an endpoint. A new token of an issuer is verified too, unless its
    /// address failed too often, and waits for keys of its issuer that are not known yet.
    pub async fn verify(
        &self,
        sent: &SentCredential<'_>,
        from: IpAddr,
        endpoint: Endpoint,
    ) -> Result<Arc<VerifiedCaller>, CredentialRefusal> {
        let fingerprint = match self.recognized(sent, endpoint) {
            Ok(verified) => return Ok(verified),
            Err(Unrecognized::Wrong(why)) => return Err(self.failed(from, why)),
            Err(Unrecognized::Unread(fingerprint)) => fingerprint,
        };
        self.failures.check(from, self.clock.elapsed()).map_err(too_many)?;
        let token = self.issuers.verify(sent.text()).await;
        let token = token.map_err(|why| self.failed(from, why))?;
        self.claims.note(claimed(&token)).await;
        self.issuers.remember(fingerprint, token.clone());
        self.shown(token, endpoint).map(Arc::new).map_err(|why| self.failed(from, why))
    }

    /// Counts a failed attempt of this address, and says how it is answered. Attempts that do not
    /// come to `authenticate`, such as a request for a token, are counted by their endpoint.
    pub fn failed(&self, from: IpAddr, why: &'static str) -> CredentialRefusal {
        if let Some(failed) = &self.failed {
            failed.note(from);
        }
        match self.failures.note(from, self.clock.elapsed()) {
            Ok(()) => CredentialRefusal::Invalid(why),
            Err(wait) => too_many(wait),
        }
    }

    /// Counts that a good credential asked for a realm that it may not enter. The server's own
    /// audit has it once a minute: who knocks at other realms is no business of theirs.
    pub fn realm_refused(&self, verified: &VerifiedCaller, realm: &str) {
        if let Some(failed) = &self.failed {
            failed.note_realm(&verified.subject, realm);
        }
    }

    fn recognized(
        &self,
        sent: &SentCredential<'_>,
        endpoint: Endpoint,
    ) -> Result<Arc<VerifiedCaller>, Unrecognized> {
        // Taken first: what is found after that is found by this directory, or by a later one.
        let number = self.number();
        let now = self.clock.now();
        let fingerprint = self.fingerprints.of(sent.text());
        let known = self.verified.get(number, fingerprint);
        if let Some(known) = known.filter(|known| is_shown_at(known, endpoint, now)) {
            if let Some(used) = &known.used {
                used.note(now);
            }
            return Ok(known);
        }
        let verified = Arc::new(self.looked_at(sent.text(), fingerprint, endpoint)?);
        self.verified.insert(number, fingerprint, verified.clone());
        Ok(verified)
    }

    /// Verifies a credential that is not cached.
    fn looked_at(
        &self,
        text: &str,
        fingerprint: Fingerprint,
        endpoint: Endpoint,
    ) -> Result<VerifiedCaller, Unrecognized> {
        let sha256 = hash_of(text);
        let admin = self.admin.as_ref().filter(|admin| admin.hash.holds(&sha256, Millis(0)));
        if let Some(admin) = admin {
            return Ok(admin.verified.clone());
        }
        if let Some(KeyText { id, .. }) = KeyText::parse(text) {
            let proof = KeyProof { key: id, sha256: sha256.into(), ends: None };
            return Ok(self.proved(proof, None)?);
        }
        if let Some(sealed) = text.strip_prefix(TOKEN_PREFIX) {
            let claims = self.tokens.open(sealed).ok_or("the token is not one of this server")?;
            let Claims { key, sha256, scopes, expires } = claims;
            let proof = KeyProof { key, sha256: sha256.into(), ends: Some(expires) };
            return Ok(self.proved(proof, scopes)?);
        }
        if self.issuers.is_empty() || !issuer::jwt::has_form(text) {
            return Err("it is neither a key nor a token".into());
        }
        match self.issuers.known(fingerprint) {
            // A subject that was forgotten is noted again.
            Some(token) if self.directory().claims.contains_key(&token.claims.subject) => {
                Ok(self.shown(token, endpoint)?)
            }
            Some(_) | None => Err(Unrecognized::Unread(fingerprint)),
        }
    }

    /// Who shows a token of an issuer at this endpoint. Its roles are those of the subject's newest
    /// token, and those of the principal that it belongs to, in the realms that this one may enter.
    fn shown(
        &self,
        token: Arc<KnownToken>,
        endpoint: Endpoint,
    ) -> Result<VerifiedCaller, &'static str> {
        let claims = &token.claims;
        if claims.is_for_mcp_only && endpoint != Endpoint::Mcp {
            return Err("the token is for `/mcp` only");
        }
        let directory = self.directory();
        if claims.people().any(|one| directory.is_disabled(one)) {
            return Err("the principal of the token is disabled");
        }
        let realms = Arc::new(token.realms(&directory));
        let who = |subject: &Arc<str>| match directory.principals.of_subject(subject) {
            Some(known) => known.principal.id.clone(),
            None => subject.clone(),
        };
        Ok(VerifiedCaller {
            subject: who(&claims.subject),
            actor: claims.actor.as_ref().map(who),
            scopes: Some(claims.scopes),
            key: None,
            makers: KeyMakers::default(),
            realms,
            until: Some(claims.until),
            proof: Some(Proof::Token(token.clone())),
            used: None,
        })
    }

    /// Who shows this, with at most these scopes.
    pub(crate) fn proved(
        &self,
        proof: KeyProof,
        scopes: Option<Scopes>,
    ) -> Result<VerifiedCaller, &'static str> {
        let now = self.clock.now();
        let holder = self.holder(&proof, now)?;
        let used = holder.note_use(now);
        let realms = Arc::new(holder.realms());
        let Holder { key, until, .. } = holder;
        let makers = self.directory().makers(&key, proof.sha256.expose());
        let scopes = match scopes {
            Some(scopes) => Some(token::below(key.scopes, scopes)),
            None => key.scopes,
        };
        Ok(VerifiedCaller {
            subject: key.subject(),
            actor: None,
            scopes,
            key: Some(key.id.clone()),
            makers,
            realms,
            until,
            proof: Some(Proof::Key(proof)),
            used,
        })
    }

    /// The key that is shown, if all of it is good now.
    fn holder(&self, proof: &KeyProof, now: Millis) -> Result<Holder, &'static str> {
        if proof.ends.is_some_and(|ends| ends <= now) {
            return Err("the token has expired");
        }
        let mut holder = self.keys.verify(&proof.key, proof.sha256.expose(), now)?;
        holder.until = earliest([holder.until, proof.ends]);
        Ok(holder)
    }

    /// Whether a credential still stands: for streams and waits, which look again at every change
    /// and when it ends.
    pub fn standing(&self, verified: &VerifiedCaller) -> Standing {
        let now = self.clock.now();
        match &verified.proof {
            None => Standing::Good { until: None },
            Some(Proof::Key(proof)) => match self.holder(proof, now) {
                Ok(Holder { until, .. }) => Standing::Good { until },
                Err(_) => Standing::Ended,
            },
            Some(Proof::Token(token)) => {
                let claims = &token.claims;
                let directory = self.directory();
                let is_disabled = claims.people().any(|one| directory.is_disabled(one));
                match token.is_good(now) && !is_disabled {
                    true => Standing::Good { until: Some(claims.until) },
                    false => Standing::Ended,
                }
            }
        }
    }

    /// Whether a credential is still good.
    pub fn is_good(&self, verified: &VerifiedCaller) -> bool {
        self.standing(verified) != Standing::Ended
    }
}

/// Whether a credential that was good by this directory has not ended, and is good at this
/// endpoint.
fn is_shown_at(verified: &VerifiedCaller, endpoint: Endpoint, now: Millis) -> bool {
    match &verified.proof {
        None => true,
        Some(Proof::Key(_)) => verified.until.is_none_or(|until| now < until),
        Some(Proof::Token(token)) => {
            token.is_good(now) && (endpoint == Endpoint::Mcp || !token.claims.is_for_mcp_only)
        }
    }
}

fn too_many(wait: Duration) -> CredentialRefusal {
    let retry_after_s = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    CredentialRefusal::TooMany { retry_after_s }
}
