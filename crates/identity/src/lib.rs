//! Who calls: API keys, tokens of ours and access tokens of issuers are checked here, principals
//! are known, failed attempts counted, and policy by the built-in roles is decided here. Of HTTP
//! nothing here knows more than the text of a header, and how an issuer's documents are read.

pub mod credential;
pub mod failures;
pub mod token;
mod issuer;
mod snapshot;
mod maker;
mod new_key;
mod audit_entries;
pub mod keys;
mod verified;
mod credential_cache;
mod claims;
mod recognition;
pub mod principals;
pub mod realms;
pub mod policy;
pub mod realm_policy;
#[cfg(test)]
mod tests;

use crate::claims::ClaimsBook;
use crate::credential::Fingerprints;
use crate::credential_cache::CredentialCache;
use crate::failures::Failures;
use crate::failures::audit::FailureLog;
use crate::issuer::{IssuerParts, Issuers};
use crate::keys::{KeyParts, KeyRefusal, KeyWithText, Keys, NewKey};
use crate::maker::Maker;
use crate::principals::{PrincipalParts, Principals};
use crate::realms::{FirstRealms, RealmBook};
use crate::snapshot::Snapshot;
use crate::token::{Claims, TOKEN_MS, Token, TokenRefusal, Tokens};
use crate::verified::{AdminKey, KeyProof};
use kernel::contracts::identity::api_keys::{ApiKeys, StoredKey};
use kernel::contracts::identity::audit::Audit;
use kernel::contracts::identity::claims::Claims as StoredClaims;
use kernel::contracts::identity::principals::Principals as StoredPrincipals;
use kernel::contracts::identity::realms::StoredRealms;
use kernel::contracts::{Clock, Entropy, Spawn, StoreError};
use kernel::identity::directory::Directory;
use kernel::identity::issuer::IssuerEntry;
use kernel::identity::key::{KeyId, KeyText, hash_of};
use kernel::identity::principal::{Clash, Principal};
use kernel::identity::realm::Realms;
use kernel::values::caller::Scope;
use kernel::values::ids::RealmId;
use kernel::values::secret::Secret;
use outbound::seal::Keyring;
use std::sync::Arc;
use tokio::sync::watch;

pub use crate::issuer::PublicIssuer;
pub use crate::verified::{CredentialRefusal, Endpoint, Standing, VerifiedCaller};

pub struct IdentityParts {
    /// Where keys are stored.
    pub keys: Arc<dyn ApiKeys>,
    /// Storage of claims of issuer tokens.
    pub claims: Arc<dyn StoredClaims>,
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
    pub clock: Arc<dyn Clock>,
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
    fingerprints: Fingerprints,
    /// The credentials that were good, by their fingerprints.
    verified: CredentialCache,
    failures: Failures,
    /// Their audit, if it is on.
    failed: Option<Arc<FailureLog>>,
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

impl Identity {
    /// Reads everyone who is known.
    pub async fn open(parts: IdentityParts) -> Result<Arc<Self>, IdentityError> {
        let IdentityParts { keys: store, claims, issuers, mcp, audit, .. } = parts;
        let IdentityParts { principals, principals_file: file, realms, made_realms, .. } = parts;
        let IdentityParts { admin_key, seal, clock, entropy, spawn, .. } = parts;
        let admin = admin_key.filter(|key| !key.expose().is_empty()).map(AdminKey::new);
        let tokens = Tokens::new(seal);
        let failures = Failures::default();
        let failed =
            audit.map(|audit| Arc::new(FailureLog::new(audit, clock.clone(), spawn.clone())));
        let spawning = spawn.clone();
        let entropy_of_keys = entropy.clone();
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
        let seen_by = keys.clone();
        let now = clock.clone();
        let claims = ClaimsBook::open(claims, seen_by, issuers.entries(), now, &*spawn).await?;
        let entries = issuers.entries().collect();
        let store = principals;
        let now = clock.clone();
        let parts = PrincipalParts { store, file, issuers: entries, clock: now, spawn };
        let (principals, clashes) = Principals::open(parts, keys.clone()).await?;
        if !clashes.is_empty() {
            return Err(IdentityError::Principals(clashes));
        }
        let realms = RealmBook::new(realms, keys.clone(), principals.clone(), clock.clone());
        let fingerprints = Fingerprints::new(keys.random());
        Ok(Arc::new(Self {
            keys,
            admin,
            tokens,
            issuers,
            claims,
            principals,
            realms,
            fingerprints,
            verified: CredentialCache::default(),
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
        let VerifiedCaller { subject, realms, .. } = verified;
        Ok(Token { text, scopes, expires_in_s, subject, realms })
    }

    /// Everyone who is known now.
    pub fn directory(&self) -> Arc<Directory> {
        self.keys.directory()
    }

    /// The number of the directory. It grows with every change.
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
    pub async fn create(&self, maker: &Maker, new: NewKey) -> Result<KeyWithText, KeyRefusal> {
        self.keys.create(maker, new).await
    }

    /// Gives a key another text. The one before it stays good for so many milliseconds.
    pub async fn rotate(
        &self,
        maker: &Maker,
        id: &KeyId,
        overlap_ms: u64,
    ) -> Result<KeyWithText, KeyRefusal> {
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
