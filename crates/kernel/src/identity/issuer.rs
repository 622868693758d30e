//! Configured issuers of access tokens, and how their claims are mapped.

use crate::identity::grants::RealmPattern;
use crate::identity::roles::Roles;
use crate::values::caller::Scopes;
use crate::values::named_enum::named;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Default claim for roles.
pub const ROLES_CLAIM: &str = "roles";

/// For how many days the roles of a subject's newest token count where nothing else is said.
pub const CLAIMS_MAX_AGE_DAYS: u32 = 7;

/// Names that no issuer's entry can have: subjects begin with the entry's name, and these begin or
/// are subjects of another kind.
pub const RESERVED_NAMES: [&str; 4] = ["admin", "local", "supervisor", "key"];

named! {
    /// How a token can be signed. All of them use a public key: one who can check a token cannot
    /// make one.
    Algorithm {
        /// RSA with PKCS #1 padding.
        Rs256 = "RS256",
        /// RSA with PSS padding.
        Ps256 = "PS256",
        /// ECDSA on P-256.
        Es256 = "ES256",
        /// Ed25519.
        EdDsa = "EdDSA",
    }
}

named! {
    /// The `typ` of a token.
    TokenType {
        /// An access token (RFC 9068).
        Access = "at+jwt",
        /// Anything, so that other signs must tell an access token from an id token.
        Plain = "JWT",
    }
}

/// An issuer of access tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerEntry {
    /// Its configured name, which prefixes the subjects of its tokens.
    pub name: Arc<str>,
    /// Its address, letter by letter as its tokens write it.
    pub url: String,
    /// Required audience. Without one, only tokens for `/mcp` are accepted, and only there.
    pub audience: Option<String>,
    /// How its tokens can be signed.
    pub algorithms: Vec<Algorithm>,
    /// Which roles the values of the claim stand for. What is not in it counts for nothing.
    pub roles: BTreeMap<String, Roles>,
    /// Where the values are in a token: a member, or a path with dots.
    pub roles_claim: String,
    /// The realms that its tokens can enter at most.
    pub realms: Vec<RealmPattern>,
    /// Where a token says which of them it can enter; all of them where this is not set.
    pub realm_claim: Option<String>,
    /// Prefix of our scopes in a token.
    pub scope_prefix: String,
    /// The scopes of a token that has none of ours; nothing is allowed where this is not set.
    pub default_scopes: Option<Scopes>,
    /// Accepted token types.
    pub types: Vec<TokenType>,
    /// For how many days the roles of a subject's newest token count.
    pub claims_max_age_days: u32,
}

impl IssuerEntry {
    /// An entry with what holds where nothing else is said, and no realm.
    pub fn new(name: impl Into<Arc<str>>, url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            audience: None,
            algorithms: Algorithm::ALL.to_vec(),
            roles: BTreeMap::new(),
            roles_claim: ROLES_CLAIM.to_owned(),
            realms: Vec::new(),
            realm_claim: None,
            scope_prefix: String::new(),
            default_scopes: None,
            types: vec![TokenType::Access],
            claims_max_age_days: CLAIMS_MAX_AGE_DAYS,
        }
    }
}
