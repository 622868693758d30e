//! Who calls: API keys, tokens of ours and access tokens of issuers are checked here, principals
//! are known, failed attempts counted, and policy by the built-in roles is decided here. Of HTTP
//! nothing here knows more than the text of a header, and how an issuer's documents are read.

pub mod sent;
pub mod failures;
pub mod token;
mod issuer;
mod snapshot;
mod maker;
mod new_key;
mod changes;
pub mod keys;
mod verified;
mod shown;
mod claims;
pub mod principals;
pub mod realms;
pub mod policy;
pub mod realm_policy;
#[cfg(test)]
mod tests;

use crate::claims::{ClaimsBook, claimed};
use crate::failures::Failures;
use crate::failures::failed::Failed;
use crate::issuer::{IssuerParts, Issuers, KnownToken};
use crate::keys::{Holder, KeyParts, KeyRefusal, Keys, Made, NewKey, earliest};
use crate::maker::Maker;
use crate::principals::{PrincipalParts, Principals};
use crate::realms::{FirstRealms, RealmBook};
use crate::sent::{Fingerprint, Fingerprints, Sent};
use crate::shown::Shown;
use crate::snapshot::{Held, Snapshot};
use crate::token::{Claims, TOKEN_MS, Token, TokenRefusal, Tokens};
use crate::verified::{AdminKey, KeyProof, Proof};
use kernel::contracts::identity::api_keys::{ApiKeys, StoredKey};
use kernel::contracts::identity::audit::Audit;
use kernel::contracts::identity::claims::Claims as StoredClaims;
use kernel::contracts::identity::principals::Principals as StoredPrincipals;
use kernel::contracts::identity::realms::StoredRealms;
use kernel::contracts::{Clock, Entropy, Spawn, StoreError};
use kernel::identity::directory::Directory;
use kernel::identity::issuer::IssuerEntry;
use kernel::identity::key::{KeyId, KeyText, TOKEN_PREFIX, hash_of};
use kernel::identity::principal::{Clash, Principal};
use kernel::identity::realm::Realms;
use kernel::values::caller::{Makers, Scope, Scopes};
use kernel::values::ids::{Millis, RealmId};
use kernel::values::secret::Secret;
use outbound::seal::Keyring;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;

pub use crate::issuer::PublicIssuer;
pub use crate::verified::{Denied, Door, Standing, Verified};

/// What an identity is made of.
pub struct IdentityParts {
    /// Where keys are stored.
    pub keys: Arc<dyn ApiKeys>,
    /// Where it is stored what tokens of issuers claim.
    pub claims: Arc<dyn StoredClaims>,
    /// Where principals are stored.
    pub principals: Arc<dyn StoredPrincipals>,
    /// The principals that the project's file names.
    pub principals_file: Vec<Arc<Principal>>,
    /// The realms that the settings name.
    pub realms: Realms,
    /// Where realms are stored that were made at run time.
    pub made_realms: Arc<dyn StoredRealms>,
    /// Whose access tokens are taken.
    pub issuers: Vec<IssuerEntry>,
    /// The address of `/mcp`: tokens that are for it are taken there.
    pub mcp: Option<String>,
    /// Where failed credentials are kept; none where they are not.
    pub audit: Option<Arc<dyn Audit>>,
    /// The admin key; an empty one is none. Whether it is long enough is decided at the start.
    pub admin_key: Option<Secret>,
    /// The server's secrets: tokens are sealed with them.
    pub seal: Keyring,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Tasks: changes are made to their end, and last uses are stored from time to time.
    pub spawn: Arc<dyn Spawn>,
}

/// Everyone who is known, and how it is checked that one of them calls.
pub struct Identity {
    keys: Arc<Keys>,
    admin: Option<AdminKey>,
    tokens: Tokens,
    issuers: Issuers,
    claims: Arc<ClaimsBook>,
    principals: Arc<Principals>,
    realms: RealmBook,
    /// The credentials that were good, and by what they are found again.
    shown: Shown,
    fingerprints: Fingerprints,
    failures: Failures,
    /// What of them is kept.
    failed: Option<Arc<Failed>>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

/// Why it cannot be said who is known.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The principals of the file cannot be distinguished from those that are stored.
    #[error("the principals of the file clash with those that are stored")]
    Principals(Vec<Clash>),
}

/// Why a credential is not recognized at once.
enum Unrecognized {
    /// It is wrong.
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
    /// Reads everyone who is known.
    pub async fn open(parts: IdentityParts) -> Result<Arc<Self>, IdentityError> {
        let IdentityParts { keys: store, claims, issuers, mcp, audit, .. } = parts;
        let IdentityParts { principals, principals_file: file, realms, made_realms, .. } = parts;
        let IdentityParts { admin_key, seal, clock, entropy, spawn, .. } = parts;
        let admin = admin_key.filter(|key| !key.expose().is_empty()).map(AdminKey::new);
        let (tokens, failures) = (Tokens::new(seal), Failures::default());
        let failed = audit.map(|audit| Arc::new(Failed::new(audit, clock.clone(), spawn.clone())));
        let (spawning, entropy_of_keys) = (spawn.clone(), entropy.clone());
        let key_parts =
            KeyParts { store, clock: clock.clone(), entropy: entropy_of_keys, spawn: spawning };
        let realms = FirstRealms::read(made_realms, realms).await?;
        let keys = Keys::open(key_parts, admin.is_some(), realms.all()).await?;
        let everyone = Arc::downgrade(&keys);
        let lost = Arc::new(move || {
            if let Some(keys) = everyone.upgrade() {
                keys.wake();
            }
        });
        let issuer_parts = IssuerParts { clock: clock.clone(), spawn: spawn.clone(), lost };
        let issuers = Issuers::new(issuers, mcp, &issuer_parts);
        let (seen_by, now) = (keys.clone(), clock.clone());
        let claims = ClaimsBook::open(claims, seen_by, issuers.entries(), now, &*spawn).await?;
        let entries = issuers.entries().collect();
        let (store, now) = (principals, clock.clone());
        let parts = PrincipalParts { store, file, issuers: entries, clock: now, spawn };
        let (principals, clashes) = Principals::open(parts, keys.clone()).await?;
        if !clashes.is_empty() {
            return Err(IdentityError::Principals(clashes));
        }
        let realms = RealmBook::new(realms, keys.clone(), principals.clone(), clock.clone());
        let no_key = |_| StoreError::Failed("fingerprints of credentials have no key".to_owned());
        let fingerprints = Fingerprints::new(entropy.bits()).map_err(no_key)?;
        Ok(Arc::new(Self {
            keys,
            admin,
            tokens,
            issuers,
            claims,
            principals,
            realms,
            shown: Shown::default(),
            fingerprints,
            failures,
            failed,
            clock,
            entropy,
        }))
    }

    /// Reads the keys of issuers from now on. A server that asks for no credentials does not.
    pub fn watch_issuers(&self) {
        self.issuers.watch();
    }

    /// The addresses of the issuers whose tokens are taken.
    pub fn issuers(&self) -> Vec<String> {
        self.issuers.entries().map(|entry| entry.url.clone()).collect()
    }

    /// The names of their entries.
    pub fn issuer_names(&self) -> Vec<Arc<str>> {
        self.issuers.entries().map(|entry| entry.name.clone()).collect()
    }

    /// Those whose tokens can enter this realm, for clients that want these scopes.
    pub fn issuers_of(&self, realm: &RealmId, scopes: &[Scope]) -> Vec<PublicIssuer> {
        self.issuers.entering(realm, scopes)
    }

    /// Who sends this credential from this address, as far as it is known at once. Keys and tokens
    /// of ours are cheap to check, so a good one passes whatever else came from there; only what
    /// fails is counted.
    pub fn authenticate(&self, sent: &Sent<'_>, from: IpAddr) -> Result<Arc<Verified>, Denied> {
        self.recognized(sent, Door::Other).map_err(|unrecognized| match unrecognized {
            Unrecognized::Wrong(why) => self.failed(from, why),
            Unrecognized::Unread(_) => self.failed(from, "the token was not seen yet"),
        })
    }

    /// Who sends this credential from this address to a door. A token of an issuer that was not
    /// seen yet is read as well, unless too many of its sender were wrong, and waits for keys of
    /// its issuer that are not known yet.
    pub async fn verify(
        &self,
        sent: &Sent<'_>,
        from: IpAddr,
        door: Door,
    ) -> Result<Arc<Verified>, Denied> {
        let fingerprint = match self.recognized(sent, door) {
            Ok(verified) => return Ok(verified),
            Err(Unrecognized::Wrong(why)) => return Err(self.failed(from, why)),
            Err(Unrecognized::Unread(fingerprint)) => fingerprint,
        };
        // Rare, and large: most requests need no room for it.
        Box::pin(async move {
            self.failures.check(from, self.clock.elapsed()).map_err(too_many)?;
            let token = self.issuers.verify(sent.text()).await;
            let token = token.map_err(|why| self.failed(from, why))?;
            self.claims.note(claimed(&token)).await;
            self.issuers.remember(fingerprint, token.clone());
            self.shown(token, door).map(Arc::new).map_err(|why| self.failed(from, why))
        })
        .await
    }

    /// Counts a failed attempt of this address, and says how it is answered. Attempts that do not
    /// come to `authenticate`, such as a request for a token, are counted by their door.
    pub fn failed(&self, from: IpAddr, why: &'static str) -> Denied {
        if let Some(failed) = &self.failed {
            failed.note(from);
        }
        match self.failures.note(from, self.clock.elapsed()) {
            Ok(()) => Denied::Invalid(why),
            Err(wait) => too_many(wait),
        }
    }

    fn recognized(&self, sent: &Sent<'_>, door: Door) -> Result<Arc<Verified>, Unrecognized> {
        // Taken first: what is found after that is found by this directory, or by a later one.
        let number = self.number();
        let fingerprint = self.fingerprints.of(sent).map_err(|_| "it is too long")?;
        let (known, now) = (self.shown.find(number, fingerprint), self.clock.now());
        if let Some(known) = known.filter(|known| is_shown_at(known, door, now)) {
            if let Some(used) = &known.used {
                used.note(now);
            }
            return Ok(known);
        }
        let verified = Arc::new(self.looked_at(sent.text(), fingerprint, door)?);
        self.shown.keep(number, fingerprint, verified.clone());
        Ok(verified)
    }

    /// The same for the first time.
    fn looked_at(
        &self,
        text: &str,
        fingerprint: Fingerprint,
        door: Door,
    ) -> Result<Verified, Unrecognized> {
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
                Ok(self.shown(token, door)?)
            }
            Some(_) | None => Err(Unrecognized::Unread(fingerprint)),
        }
    }

    /// Who shows a token of an issuer at this door. Its roles are those of the subject's newest
    /// token, and those of the principal that it belongs to, in the realms that this one may enter.
    fn shown(&self, token: Arc<KnownToken>, door: Door) -> Result<Verified, &'static str> {
        let claims = &token.claims;
        if claims.is_for_mcp_only && door != Door::Mcp {
            return Err("the token is for `/mcp` only");
        }
        let directory = self.directory();
        if claims.people().any(|one| directory.is_disabled(one)) {
            return Err("the principal of the token is disabled");
        }
        let realms = token.realms(&directory);
        let who = |subject: &Arc<str>| match directory.principals.of_subject(subject) {
            Some(known) => known.principal.id.clone(),
            None => subject.clone(),
        };
        Ok(Verified {
            subject: who(&claims.subject),
            actor: claims.actor.as_ref().map(who),
            scopes: Some(claims.scopes),
            key: None,
            makers: Makers::default(),
            realms,
            until: Some(claims.until),
            proof: Some(Proof::Token(token.clone())),
            used: None,
            usual: OnceLock::new(),
        })
    }

    /// Who shows this, with at most these scopes.
    fn proved(&self, proof: KeyProof, scopes: Option<Scopes>) -> Result<Verified, &'static str> {
        let now = self.clock.now();
        let holder = self.holder(&proof, now)?;
        let used = holder.note_use(now);
        let Held { subject, realms } = holder.held();
        let Holder { key, until, .. } = holder;
        let makers = self.directory().makers(&key, proof.sha256.expose());
        let scopes = match scopes {
            Some(scopes) => Some(token::below(key.scopes, scopes)),
            None => key.scopes,
        };
        Ok(Verified {
            subject,
            actor: None,
            scopes,
            key: Some(key.id.clone()),
            makers,
            realms,
            until,
            proof: Some(Proof::Key(proof)),
            used,
            usual: OnceLock::new(),
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
    pub fn standing(&self, verified: &Verified) -> Standing {
        let now = self.clock.now();
        match &verified.proof {
            None => Standing::Good { until: None },
            Some(Proof::Key(proof)) => match self.holder(proof, now) {
                Ok(Holder { until, .. }) => Standing::Good { until },
                Err(_) => Standing::Ended,
            },
            Some(Proof::Token(token)) => {
                let (claims, directory) = (&token.claims, self.directory());
                let is_disabled = claims.people().any(|one| directory.is_disabled(one));
                match token.is_good(now) && !is_disabled {
                    true => Standing::Good { until: Some(claims.until) },
                    false => Standing::Ended,
                }
            }
        }
    }

    /// Whether a credential is still good.
    pub fn is_good(&self, verified: &Verified) -> bool {
        self.standing(verified) != Standing::Ended
    }

    /// A token for a key: OAuth's client credentials, where the client is the key's id and its
    /// secret the key's whole text. `scope` narrows what the token allows.
    pub fn token(
        &self,
        client_id: &str,
        client_secret: &str,
        scope: Option<&str>,
    ) -> Result<Token, TokenRefusal> {
        let shown = KeyText::parse(client_secret).filter(|shown| shown.id.as_str() == client_id);
        let KeyText { id, text } =
            shown.ok_or(TokenRefusal::InvalidClient("the secret is not a key of this client"))?;
        let proof = KeyProof { key: id.clone(), sha256: hash_of(text.expose()).into(), ends: None };
        let sha256 = proof.sha256.expose().to_owned();
        let verified = self.proved(proof, None).map_err(TokenRefusal::InvalidClient)?;
        let scopes = token::narrowed(verified.scopes, token::asked(scope)?)?;
        let now = self.clock.now();
        let usual = now.plus_ms(TOKEN_MS);
        let expires = verified.until.map_or(usual, |until| until.min(usual));
        let claims = Claims { key: id, sha256, scopes, expires };
        let sealed = self.tokens.seal(&claims, self.entropy.bits());
        let text = sealed.ok_or(TokenRefusal::Failed)?;
        let left_ms = expires.0.saturating_sub(now.0);
        let expires_in_s = u64::try_from(left_ms / 1_000).unwrap_or_default();
        Ok(Token { text, scopes, expires_in_s })
    }

    /// Everyone who is known now.
    pub fn directory(&self) -> Arc<Directory> {
        self.keys.directory()
    }

    /// The number of the directory. It is cheap to ask for, and grows with every change.
    pub fn number(&self) -> u64 {
        self.keys.number()
    }

    /// The number of the directory, each time that it changes.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.keys.numbers()
    }

    /// The directory, with what is remembered beside it.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.keys.snapshot()
    }

    /// Makes a key. It is good once this returns.
    pub async fn create(&self, maker: &Maker, new: NewKey) -> Result<Made, KeyRefusal> {
        self.keys.create(maker, new).await
    }

    /// Gives a key another text. The one before it stays good for so many milliseconds.
    pub async fn rotate(
        &self,
        maker: &Maker,
        id: &KeyId,
        overlap_ms: u64,
    ) -> Result<Made, KeyRefusal> {
        self.keys.rotate(maker, id, overlap_ms).await
    }

    /// Ends a key for good. No credential of it is good once this returns.
    pub async fn revoke(&self, maker: &Maker, id: &KeyId) -> Result<StoredKey, KeyRefusal> {
        self.keys.revoke(maker, id).await
    }

    /// The keys that this maker administers, by id, those that were revoked included.
    pub fn list(&self, maker: &Maker) -> Vec<StoredKey> {
        self.keys.list(maker)
    }

    /// Writes failed credentials to the audit that are only counted yet. It is done once a minute;
    /// a server that stops does it once more.
    pub async fn store_failures(&self) -> Result<(), StoreError> {
        match &self.failed {
            Some(failed) => failed.store().await,
            None => Ok(()),
        }
    }

    /// Stores when keys were last used, as far as that is not stored yet. It is done once a minute;
    /// a server that stops does it once more.
    pub async fn store_uses(&self) -> Result<(), StoreError> {
        self.keys.store_uses().await
    }
}

/// Whether a credential that was good by this directory has not ended, and is good at this door.
fn is_shown_at(verified: &Verified, door: Door, now: Millis) -> bool {
    match &verified.proof {
        None => true,
        Some(Proof::Key(_)) => verified.until.is_none_or(|until| now < until),
        Some(Proof::Token(token)) => {
            token.is_good(now) && (door == Door::Mcp || !token.claims.is_for_mcp_only)
        }
    }
}

fn too_many(wait: Duration) -> Denied {
    let retry_after_s = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    Denied::TooMany { retry_after_s }
}
