//! Entries of the audit: one decision or change each. How the rows that contain entries are chained
//! is in `chain`, and their storage is a contract.

use crate::values::caller::{Caller, Via};
use crate::values::ids::{AskId, Millis, RealmId, RunId};
use crate::values::named_enum::named;
use crate::values::trace::TraceParent;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// How many bytes a mac has.
const MAC_BYTES: usize = 32;

/// The name of a chain: that of its realm, or `*` for the server's own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChainName(Arc<str>);

impl ChainName {
    /// The chain of what concerns the server as a whole. No realm has this name.
    pub fn server() -> Self {
        Self("*".into())
    }

    pub fn of(realm: &RealmId) -> Self {
        Self(realm.0.clone())
    }

    /// The chain as it is stored.
    pub fn named(name: Arc<str>) -> Self {
        Self(name)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The hexadecimal digits.
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A message authentication code, 64 hexadecimal digits as a text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mac(pub [u8; MAC_BYTES]);

impl Mac {
    /// Its digits, in one piece: they are written for each entry of the audit.
    fn digits(&self) -> [u8; 2 * MAC_BYTES] {
        let mut digits = [0; 2 * MAC_BYTES];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 0xf)];
        }
        digits
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.digits()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mac({self})")
    }
}

/// A text that is no mac.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected 64 hexadecimal digits")]
pub struct BadMac;

impl FromStr for Mac {
    type Err = BadMac;

    fn from_str(text: &str) -> Result<Self, BadMac> {
        let digits = text.as_bytes();
        if digits.len() != 2 * MAC_BYTES || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(BadMac);
        }
        let mut mac = [0; MAC_BYTES];
        for (byte, pair) in mac.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| BadMac)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| BadMac)?;
        }
        Ok(Self(mac))
    }
}

impl Serialize for Mac {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits = self.digits();
        let text = std::str::from_utf8(&digits).map_err(serde::ser::Error::custom);
        text.and_then(|text| serializer.serialize_str(text))
    }
}

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

named! {
    Ruling {
        /// It may be done.
        Allow = "allow",
        /// A person must approve it.
        Ask = "ask",
        /// It must not be done.
        Deny = "deny",
    }
}

/// The object of an act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Its kind, such as `tool`.
    pub kind: Cow<'static, str>,
    /// Its name or id, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Object {
    /// The object of this kind and name.
    pub fn new(kind: &'static str, id: impl Into<String>) -> Self {
        Self { kind: Cow::Borrowed(kind), id: Some(id.into()) }
    }

    pub fn only(kind: &'static str) -> Self {
        Self { kind: Cow::Borrowed(kind), id: None }
    }
}

/// Entries that are written together, each list as one row of its chain.
pub type Entries = Vec<(ChainName, Vec<Entry>)>;

/// The record of one decision or change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub at: Millis,
    /// For whom it was done.
    pub subject: Arc<str>,
    /// The actor, if it is not the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Arc<str>>,
    /// The principal that the realm does it as, where it acts as one: both must be allowed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as: Option<Arc<str>>,
    /// An act, or another audited operation such as `key.create`.
    pub act: Cow<'static, str>,
    pub object: Object,
    /// The keyed digest of the arguments, or of what was answered. Without the key no one can
    /// guess short ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Mac>,
    pub verdict: Ruling,
    /// Why it was not simply allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The policies that decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<Arc<str>>,
    /// The version of the policies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Arc<str>>,
    /// The run that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The ask that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<AskId>,
    /// Kind of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Cow<'static, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// The span that it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
    /// Headers in which the request describes itself. Not verified.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

impl Entry {
    /// An allowed act of a subject that acts for itself; all else is set by who knows it.
    pub fn new(
        at: Millis,
        subject: Arc<str>,
        act: impl Into<Cow<'static, str>>,
        object: Object,
    ) -> Self {
        Self {
            at,
            subject,
            actor: None,
            run_as: None,
            act: act.into(),
            object,
            arguments: None,
            verdict: Ruling::Allow,
            why: None,
            policies: Vec::new(),
            version: None,
            run: None,
            ask: None,
            reply: None,
            door: None,
            trace: None,
            headers: BTreeMap::new(),
            detail: None,
        }
    }

    /// The same for a caller, with who really called, and where.
    pub fn by(
        at: Millis,
        caller: &Caller,
        act: impl Into<Cow<'static, str>>,
        object: Object,
    ) -> Self {
        Self::new(at, caller.subject.clone(), act, object).done_by(caller)
    }

    /// The same, with who really called, and where, as far as this caller knows that.
    #[must_use]
    pub fn done_by(self, caller: &Caller) -> Self {
        let actor = caller.actor.clone().or_else(|| self.actor.clone());
        Self { actor, ..self.come_by(&caller.via) }
    }

    /// The same with where the request came in and what it says, as far as that is known.
    #[must_use]
    pub fn come_by(self, via: &Via) -> Self {
        Self {
            door: via.door().map(str::to_owned).or(self.door),
            trace: via.trace().or(self.trace),
            headers: via.headers().cloned().unwrap_or(self.headers),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_round_trips_as_hexadecimal() {
        for first in 0..=u8::MAX {
            let mut mac = Mac([0x5a; MAC_BYTES]);
            mac.0[0] = first;
            let text = mac.to_string();
            assert_eq!(text, format!("{first:02x}{}", "5a".repeat(MAC_BYTES - 1)));
            assert_eq!(text.parse(), Ok(mac));
            assert_eq!(serde_json::to_string(&mac).unwrap(), format!("\"{text}\""));
        }
    }
}
