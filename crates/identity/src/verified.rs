//! Result of verifying a credential: the caller, what must be checked again later, and refusals.

use crate::issuer::KnownToken;
use crate::keys::only_holding;
use crate::snapshot::LastUse;
use kernel::identity::directory::{ADMIN, Directory};
use kernel::identity::grants::{Grants, RealmPattern};
use kernel::identity::key::{ApiKey, KeyId, hash_of};
use kernel::identity::roles::{Role, Roles};
use kernel::values::caller::{Act, Caller, KeyMakers, Scopes, Via};
use kernel::values::ids::{Millis, RealmId};
use kernel::values::secret::Secret;
use std::sync::Arc;

/// The admin key: not itself, only its hash.
pub(crate) struct AdminKey {
    pub(crate) hash: ApiKey,
    pub(crate) verified: VerifiedCaller,
}

/// A verified caller.
#[derive(Debug, Clone)]
pub struct VerifiedCaller {
    pub subject: Arc<str>,
    /// The actor, if it is not the subject.
    pub actor: Option<Arc<str>>,
    /// The most that the credential allows; none is no ceiling.
    pub scopes: Option<Scopes>,
    /// The key that it is, or that its token was given for.
    pub key: Option<KeyId>,
    /// Others who could have its credential.
    pub makers: KeyMakers,
    /// The realms that it may enter, and its roles there.
    pub realms: Arc<Grants>,
    /// When the credential ends, as far as it is known now.
    pub until: Option<Millis>,
    /// `None` for the admin key, which is valid as long as the server runs.
    pub(crate) proof: Option<Proof>,
    /// When the key was last used.
    pub(crate) used: Option<Arc<LastUse>>,
}

/// The proof behind a verified caller, which is checked again as long as it is used.
#[derive(Debug, Clone)]
pub(crate) enum Proof {
    /// A key, or a token of ours.
    Key(KeyProof),
    /// A token of an issuer.
    Token(Arc<KnownToken>),
}

/// That someone has a key, or a token that was given for it.
#[derive(Debug, Clone)]
pub(crate) struct KeyProof {
    pub(crate) key: KeyId,
    /// The hash of the key's text.
    pub(crate) sha256: Secret,
    /// When the token ends, if it is one.
    pub(crate) ends: Option<Millis>,
}

/// Whether a credential that was good still is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is, until then if it ends.
    Good {
        /// When it ends, as far as it is known now.
        until: Option<Millis>,
    },
    /// It is not: it expired, was replaced or revoked.
    Ended,
}

/// Why a credential is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CredentialRefusal {
    /// It is wrong or not good any more; why, for logs alone.
    #[error("the credential is not valid")]
    Invalid(&'static str),
    /// It is not known to be good, and too many of its sender were not.
    #[error("too many failed attempts; try again in {retry_after_s} s")]
    TooMany { retry_after_s: u64 },
}

/// Where a credential is shown: some are good at one endpoint only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// `/mcp`.
    Mcp,
    Other,
}

impl VerifiedCaller {
    /// This subject as the caller in a realm, which it must be allowed to enter.
    pub fn caller(&self, realm: RealmId, directory: &Directory) -> Caller {
        let is_within_scopes = self.scopes.is_none_or(|scopes| scopes.allow(Act::Administer));
        let administers = directory.has_role(&realm, &self.subject, Role::Admin);
        Caller {
            realm,
            subject: self.subject.clone(),
            actor: self.actor.clone(),
            scopes: self.scopes,
            admin: administers && is_within_scopes,
            makers: self.makers.clone(),
            via: Via::default(),
        }
    }
}

impl AdminKey {
    pub(crate) fn new(key: Secret) -> Self {
        let everywhere = RealmPattern::parse("*");
        let realms = everywhere.map(|every| Grants::one(every, Roles::of(&[Role::Admin])));
        let verified = VerifiedCaller {
            subject: ADMIN.into(),
            actor: None,
            scopes: None,
            key: None,
            makers: KeyMakers::default(),
            // The pattern is good; without it the key would open nothing.
            realms: Arc::new(realms.unwrap_or_default()),
            until: None,
            proof: None,
            used: None,
        };
        Self { hash: only_holding(hash_of(key.expose())), verified }
    }
}
