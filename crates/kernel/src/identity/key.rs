//! API keys: `wp_<id>_<secret>`. The text is shown once; what is stored is a hash of it.

use crate::identity::grants::Grants;
use crate::values::caller::Scopes;
use crate::values::ids::Millis;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The id of a key, which is no secret: ten characters of base32 in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(pub Arc<str>);

/// A key as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// Its id.
    pub id: KeyId,
    /// What people call it.
    pub name: String,
    /// The realms that it may enter, and its roles there.
    pub realms: Grants,
    /// The most that it allows; none is no ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Scopes>,
    /// The hashes of the texts that are good: one, or two while it is being rotated, the newest
    /// first.
    pub secrets: Vec<SecretHash>,
    /// The subject that made it.
    pub by: Arc<str>,
    /// When it was made.
    pub created: Millis,
    /// When it stops to be good; never where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Millis>,
    /// When it was revoked, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Millis>,
}

/// SHA-256 of the whole text of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretHash {
    /// The hash, in hexadecimal digits.
    pub sha256: String,
    /// When it stops to be good, where a newer one took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
}
