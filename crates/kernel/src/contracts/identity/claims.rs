//! The contract of claim storage: roles that subjects have by the claims of their tokens.

use crate::contracts::Read;
use crate::identity::grants::Grants;
use crate::values::ids::Millis;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the newest token of a subject claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubjectClaims {
    pub subject: Arc<str>,
    /// The issuer's entry that took the token.
    pub issuer: Arc<str>,
    /// The roles in each realm, after the entry's map.
    pub realms: Grants,
    /// When the token was issued.
    pub issued: Millis,
}

/// What the newest tokens of all subjects claim. They are held in memory: the store is asked at the
/// start and told of every change.
pub trait Claims: Send + Sync {
    /// All of them, by subject.
    fn all_claims(&self) -> Read<'_, Vec<SubjectClaims>>;

    /// Writes those of a subject over what was there. Durable on return.
    fn put_claims<'a>(&'a self, claims: &'a SubjectClaims) -> Read<'a, ()>;

    /// Removes those of these subjects, as far as they are there.
    fn remove_claims<'a>(&'a self, subjects: &'a [Arc<str>]) -> Read<'a, ()>;
}
