//! Access tokens of issuers (RFC 9068): parsing, verification, and mapping of claims. Pure
//! functions of the token, the issuer's keys, its entry and the time.

use crate::credential::SENT_BYTES_MAX;
use crate::issuer::key_set::{KeySet, NoKey, PublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::identity::grants::{Grants, RealmPattern, check_realm};
use kernel::identity::issuer::{Algorithm, IssuerEntry, TokenType};
use kernel::identity::roles::Roles;
use kernel::values::caller::{Scope, Scopes};
use kernel::values::ids::{Millis, RealmId};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::sync::Arc;

/// How much the clock of an issuer may differ from ours.
pub(crate) const LEEWAY_MS: u64 = 30 * 1_000;
/// The longest lifetime of a token that is accepted.
const LIFETIME_MS_MAX: i64 = 24 * 60 * 60 * 1_000;
/// The last second of the year 9999: later times are refused.
const SECONDS_MAX: i64 = 253_402_300_799;
/// The longest subject that an issuer may name.
const SUBJECT_CHARS_MAX: usize = 255;
/// Claims that only id tokens have. An id token tells a client who logged in, and is no access
/// token.
const OF_ID_TOKENS: [&str; 3] = ["nonce", "at_hash", "c_hash"];

/// A parsed token. Nothing in it is verified yet.
pub(crate) struct Jwt<'t> {
    algorithm: Algorithm,
    /// The id of the key that signed it, as the token claims.
    key: Option<String>,
    kind: String,
    claims: Map<String, Value>,
    signed: &'t str,
    signature: Vec<u8>,
}

/// What a token is verified against, beside the keys.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) entry: &'a IssuerEntry,
    /// The address of `/mcp`, which tokens may be for as well.
    pub(crate) mcp: Option<&'a str>,
    pub(crate) now: Millis,
}

/// Claims of a verified token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenClaims {
    pub(crate) subject: Arc<str>,
    /// The actor, if it is not the subject.
    pub(crate) actor: Option<Arc<str>>,
    pub(crate) scopes: Scopes,
    /// The realms that it may enter, and the roles there.
    pub(crate) realms: Grants,
    pub(crate) issued: Millis,
    /// When it ends, with the leeway for clocks.
    pub(crate) until: Millis,
    /// Whether it is for `/mcp` alone.
    pub(crate) is_for_mcp_only: bool,
}

impl TokenClaims {
    /// Its subject, and its actor where that is somebody else.
    pub(crate) fn people(&self) -> impl Iterator<Item = &Arc<str>> {
        std::iter::once(&self.subject).chain(&self.actor)
    }
}

/// Why a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Its key is not in the set, which may have changed.
    UnknownKey,
    /// It does not fit the key that it names, which the issuer may have replaced under its id.
    Unfit(&'static str),
    /// It is wrong, whatever the keys are.
    Wrong(&'static str),
}

impl From<&'static str> for Flaw {
    fn from(why: &'static str) -> Self {
        Self::Wrong(why)
    }
}

/// The header, as far as it is read: no key, no certificate and no address in it is ever used.
#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    typ: Option<String>,
    #[serde(default)]
    crit: Present,
}

/// Whether a member is there, whatever its value is.
#[derive(Default)]
struct Present(bool);

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(true))
    }
}

/// Whether a text has the form of a token: three parts.
pub(crate) fn has_form(text: &str) -> bool {
    text.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl<'t> Jwt<'t> {
    /// Parses a token; verifies nothing.
    pub(crate) fn parse(text: &'t str) -> Result<Self, &'static str> {
        if text.len() > SENT_BYTES_MAX {
            return Err("the token is longer than 16 KiB");
        }
        let mut parts = text.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("the token does not have three parts");
        };
        let header: Header = read(header).ok_or("the token's header cannot be read")?;
        if header.crit.0 {
            return Err("the token demands extensions that are not known here");
        }
        let algorithm = Algorithm::from_name(&header.alg);
        let algorithm = algorithm.ok_or("the token's algorithm is never taken")?;
        let claims = read(payload).ok_or("the token's claims cannot be read")?;
        let signed = &text[..text.len() - signature.len() - 1];
        let signature = URL_SAFE_NO_PAD.decode(signature);
        let signature = signature.map_err(|_| "the token's signature cannot be read")?;
        let key = header.kid;
        let kind = header.typ.unwrap_or_default();
        Ok(Self { algorithm, key, kind, claims, signed, signature })
    }

    /// The issuer that it names.
    pub(crate) fn issuer(&self) -> Option<&str> {
        self.text("iss")
    }

    /// The claims, if the token is valid. Cheap checks come first: an invalid token must not cause
    /// a key lookup.
    pub(crate) fn verify(
        &self,
        keys: Option<&KeySet>,
        rules: &Rules<'_>,
    ) -> Result<(Arc<PublicKey>, TokenClaims), Flaw> {
        let entry = rules.entry;
        if self.issuer() != Some(entry.url.as_str()) {
            return Err("the token is of another issuer".into());
        }
        if !entry.algorithms.contains(&self.algorithm) {
            return Err("the entry does not take the token's algorithm".into());
        }
        self.check_kind(entry)?;
        let claims = self.claims(rules)?;
        let key = match keys.map(|keys| keys.key(self.key.as_deref(), self.algorithm)) {
            Some(Ok(key)) => key,
            None | Some(Err(NoKey::Unknown)) => return Err(Flaw::UnknownKey),
            Some(Err(NoKey::Unfit(why))) => return Err(Flaw::Unfit(why)),
        };
        if !key.signed(self.algorithm, self.signed.as_bytes(), &self.signature) {
            return Err(Flaw::Unfit("the token's signature is wrong"));
        }
        Ok((key.clone(), claims))
    }

    /// An id token is not an access token, even if nothing else tells them apart.
    fn check_kind(&self, entry: &IssuerEntry) -> Result<(), &'static str> {
        const MEDIA: &str = "application/";
        let long = self.kind.get(..MEDIA.len()).filter(|head| head.eq_ignore_ascii_case(MEDIA));
        let kind: &str = if long.is_some() { &self.kind[MEDIA.len()..] } else { &self.kind };
        let is_kind = |known: &&TokenType| known.name().eq_ignore_ascii_case(kind);
        match entry.types.iter().find(is_kind) {
            None => Err("the token's type is not taken"),
            Some(TokenType::Plain) if OF_ID_TOKENS.iter().any(|name| self.has(name)) => {
                Err("the token is an id token")
            }
            Some(TokenType::Plain | TokenType::Access) => Ok(()),
        }
    }

    fn claims(&self, rules: &Rules<'_>) -> Result<TokenClaims, &'static str> {
        let Rules { entry, now, .. } = *rules;
        let (issued, until) = self.times(now)?;
        let is_for_mcp_only = self.is_for_mcp_only(rules)?;
        let subject =
            subject_of(entry, self.claims.get("sub")).ok_or("the token has no subject")?;
        let actor = match self.claims.get("act") {
            None => None,
            Some(actor) => Some(
                subject_of(entry, actor.get("sub")).ok_or("the token's actor cannot be read")?,
            ),
        };
        let scopes = self.scopes(entry);
        let realms = self.realms(entry)?;
        Ok(TokenClaims { subject, actor, scopes, realms, issued, until, is_for_mcp_only })
    }

    /// When it was issued and when it ends, if it is good now.
    fn times(&self, now: Millis) -> Result<(Millis, Millis), &'static str> {
        let moment = |name: &str| self.claims.get(name).and_then(moment);
        let expires = moment("exp").ok_or("the token does not say when it ends")?;
        let issued = moment("iat").ok_or("the token does not say when it was issued")?;
        let lifetime_ms = expires.0 - issued.0;
        if lifetime_ms <= 0 || lifetime_ms > LIFETIME_MS_MAX {
            return Err("the token is good for longer than a day, or for no time");
        }
        let until = expires.plus_ms(LEEWAY_MS);
        let latest = now.plus_ms(LEEWAY_MS);
        if until <= now {
            return Err("the token has expired");
        }
        let begins = match self.has("nbf") {
            true => moment("nbf").ok_or("the token's `nbf` cannot be read")?,
            false => issued,
        };
        if issued > latest || begins > latest {
            return Err("the token is not good yet");
        }
        Ok((issued, until))
    }

    /// Whether it is for `/mcp` alone; refused where it is not for this server at all.
    fn is_for_mcp_only(&self, rules: &Rules<'_>) -> Result<bool, &'static str> {
        let named = self.claims.get("aud").map(texts).unwrap_or_default();
        let is_for = |audience: &str| named.contains(&audience);
        if rules.entry.audience.as_deref().is_some_and(is_for) {
            return Ok(false);
        }
        match rules.mcp.is_some_and(is_for) {
            true => Ok(true),
            false => Err("the token is for another audience"),
        }
    }

    /// Our scopes in it.
    fn scopes(&self, entry: &IssuerEntry) -> Scopes {
        let said = self.claims.get("scope").or_else(|| self.claims.get("scp"));
        let words = said.map(texts).unwrap_or_default();
        let words = words.iter().flat_map(|text| text.split_ascii_whitespace());
        let ours = words.filter_map(|word| word.strip_prefix(entry.scope_prefix.as_str()));
        let scopes: Scopes = ours.filter_map(Scope::from_name).collect();
        match entry.default_scopes {
            Some(default) if scopes == Scopes::default() => default,
            _ => scopes,
        }
    }

    /// The realms that it may enter, with the roles that its claims stand for.
    fn realms(&self, entry: &IssuerEntry) -> Result<Grants, &'static str> {
        let values = self.at(&entry.roles_claim).map(texts).unwrap_or_default();
        let mut roles = Roles::default();
        for held in values.iter().filter_map(|value| entry.roles.get(*value)) {
            roles.add(held);
        }
        let realms = match &entry.realm_claim {
            None => entry.realms.clone(),
            Some(claim) => {
                let named = self.at(claim).map(texts).unwrap_or_default();
                named.iter().filter_map(|name| realm_within(entry, name)).collect()
            }
        };
        if realms.is_empty() {
            return Err("the token names no realm that its issuer's entry has");
        }
        Ok(Grants(realms.into_iter().map(|realm| (realm, roles.clone())).collect()))
    }

    /// A claim: the member of this name, or the one that a path with dots leads to.
    fn at(&self, path: &str) -> Option<&Value> {
        // The names of some issuers' claims are addresses, which have dots.
        if let Some(value) = self.claims.get(path) {
            return Some(value);
        }
        let mut names = path.split('.');
        let first = self.claims.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get(name))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.claims.get(name).and_then(Value::as_str)
    }

    fn has(&self, name: &str) -> bool {
        self.claims.contains_key(name)
    }
}

/// The JSON of a part.
fn read<T: for<'de> Deserialize<'de>>(part: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// The subject that a claim names: `<issuer>:<sub>`.
fn subject_of(entry: &IssuerEntry, name: Option<&Value>) -> Option<Arc<str>> {
    let name = name?.as_str()?;
    let characters = name.chars().count();
    let fits = (1..=SUBJECT_CHARS_MAX).contains(&characters) && !name.chars().any(char::is_control);
    fits.then(|| format!("{}:{name}", entry.name).into())
}

/// A text, or the texts of a list.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Seconds since 1970, with or without a fraction.
fn moment(value: &Value) -> Option<Millis> {
    if let Some(seconds) = value.as_i64() {
        return (0..=SECONDS_MAX).contains(&seconds).then(|| Millis(seconds * 1_000));
    }
    let seconds = value.as_f64()?;
    let is_meant = (0.0..=SECONDS_MAX as f64).contains(&seconds);
    is_meant.then_some(Millis((seconds * 1_000.0) as i64))
}

/// The realm of this name, if it is a name and the entry has it: a claim cannot stand for several.
fn realm_within(entry: &IssuerEntry, name: &str) -> Option<RealmPattern> {
    check_realm(name).ok()?;
    let realm = RealmId::from(name);
    let is_within = entry.realms.iter().any(|pattern| pattern.fits(&realm));
    if is_within { RealmPattern::parse(name).ok() } else { None }
}
