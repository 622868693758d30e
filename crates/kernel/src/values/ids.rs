//! Prefixed 128-bit ids, session keys, fences and timestamps.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// An id that does not read as one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not an id; expected `{prefix}` and 32 hexadecimal digits")]
pub struct BadId {
    /// What was given.
    pub given: String,
    /// The prefix that such an id has.
    pub prefix: &'static str,
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u128);

        impl $name {
            /// Prefix of every id of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// An id that is the hash of its parts: the same parts always give the same id.
            pub fn of(parts: &[&[u8]]) -> Self {
                Self(hash_parts($prefix, parts))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{:032x}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                read_hex(text, $prefix).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut text = [0u8; $prefix.len() + 32];
                text[..$prefix.len()].copy_from_slice($prefix.as_bytes());
                write_hex(self.0, &mut text[$prefix.len()..]);
                serializer.serialize_str(std::str::from_utf8(&text).unwrap_or_default())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id_type!(
    /// A session's own id, whatever key its client chose.
    SessionId, "ses_"
);
id_type!(
    /// One execution of one plan in one session.
    RunId, "run_"
);
id_type!(
    /// One question to a person.
    AskId, "ask_"
);
id_type!(
    /// One try of one tool call; the idempotency key that tools are given.
    CallId, "call_"
);

fn hash_parts(prefix: &str, parts: &[&[u8]]) -> u128 {
    let mut hasher = Sha256::new();
    hasher.update(prefix.as_bytes());
    for part in parts {
        // Length first, so that no two lists of parts run together.
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let digest = hasher.finalize();
    let mut first = [0u8; 16];
    first.copy_from_slice(&digest[..16]);
    u128::from_be_bytes(first)
}

fn write_hex(value: u128, out: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (index, slot) in out.iter_mut().enumerate() {
        *slot = DIGITS[((value >> (124 - 4 * index)) & 0xf) as usize];
    }
}

fn read_hex(text: &str, prefix: &'static str) -> Result<u128, BadId> {
    let bad = || BadId { given: text.chars().take(80).collect(), prefix };
    let digits = text.strip_prefix(prefix).ok_or_else(bad)?;
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != 32 || !digits.bytes().all(lower) {
        return Err(bad());
    }
    u128::from_str_radix(digits, 16).map_err(|_| bad())
}

/// The bits of a UUIDv7: 48 bits of time, then randomness, so that ids sort by age.
pub fn time_ordered_bits(now: Millis, random: u128) -> u128 {
    let time = (now.0.max(0) as u128 & 0xffff_ffff_ffff) << 80;
    let random = random & ((1u128 << 80) - 1);
    let version = 0x7u128 << 76;
    let variant = 0b10u128 << 62;
    time | version | variant | (random & !(0xfu128 << 76) & !(0b11u128 << 62))
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name_type!(
    /// Whose data this is; every key begins with it.
    RealmId
);
name_type!(
    /// The endpoint family that a session belongs to: `session`, `thread`, `context`, `call`, ...
    Space
);
name_type!(
    /// A plan's id, `<domain>/<name>` or as the plan says.
    PlanId
);
name_type!(
    /// A step's id, unique in its plan.
    StepId
);
name_type!(
    /// An agent's stable name: `refName`.
    AgentName
);
name_type!(
    /// A tool's name, such as `math::add`.
    ToolName
);
name_type!(
    /// A key of the context.
    ContextKey
);
name_type!(
    /// A pipeline's stable name.
    PipelineName
);
name_type!(
    /// Hex sha256 of some content.
    ContentHash
);

impl ContentHash {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hashing = Hashing::default();
        hashing.add(bytes);
        hashing.hash()
    }
}

/// Makes the hash of content that comes in pieces.
#[derive(Default)]
pub struct Hashing(Sha256);

impl Hashing {
    /// The next piece.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all pieces.
    pub fn hash(self) -> ContentHash {
        let digest = self.0.finalize();
        let mut text = String::with_capacity(64);
        for byte in digest.iter() {
            text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
            text.push(char::from_digit(u32::from(byte & 0xf), 16).unwrap_or('0'));
        }
        ContentHash(text.into())
    }
}

/// Prefix of the spaces of cases.
const CASES: &str = "case:";
/// The space of direct calls.
const CALLS: &str = "call";
/// The space of contexts.
const CONTEXTS: &str = "context";

impl Space {
    /// Where `/sessions` and `/api/v1/runs` keep theirs.
    pub fn session() -> Self {
        Self::from("session")
    }
    /// Where conversations are kept.
    pub fn thread() -> Self {
        Self::from("thread")
    }
    /// Where several runs work side by side on what a caller groups under one id.
    pub fn context() -> Self {
        Self::from(CONTEXTS)
    }
    /// The spaces whose ids are their owner's: the same id from another subject is another session.
    pub const OWNED: [&'static str; 3] = ["session", "thread", CONTEXTS];
    /// Whether ids here are their owner's.
    pub fn is_owned(&self) -> bool {
        Self::OWNED.contains(&self.as_str())
    }
    /// Where a pipeline keeps its cases: no case of another one has its ids.
    pub fn case(pipeline: &PipelineName) -> Self {
        Self::from(format!("{CASES}{pipeline}"))
    }
    /// The pipeline whose cases are here, by its name.
    pub fn pipeline(&self) -> Option<&str> {
        self.as_str().strip_prefix(CASES)
    }
    /// Whether what is said here continues from run to run.
    pub fn keeps_talk(&self) -> bool {
        let is_case = self.as_str().starts_with(CASES);
        is_case || *self == Self::thread() || self.has_many_runs()
    }
    /// Whether several runs of a session here may be active at once. Each agent has a conversation
    /// of its own then.
    pub fn has_many_runs(&self) -> bool {
        self.as_str() == CONTEXTS
    }
    /// Where direct calls keep their one-step runs.
    pub fn call() -> Self {
        Self::from(CALLS)
    }
    /// Whether direct calls are kept here.
    pub fn is_call(&self) -> bool {
        self.as_str() == CALLS
    }
}

/// What names a session: ids of different endpoints never meet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    /// Whose it is.
    pub realm: RealmId,
    /// Which endpoint family it belongs to.
    pub space: Space,
    /// The client's own key, or the session's id where the client chose none.
    pub id: Arc<str>,
    /// The subject that chose the id, in a space whose ids are their owner's. There is none in
    /// local mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Arc<str>>,
}

impl SessionKey {
    /// A key that is no one's own. `Caller::key` gives a caller's.
    pub fn new(
        realm: impl Into<RealmId>,
        space: impl Into<Space>,
        id: impl Into<Arc<str>>,
    ) -> Self {
        Self { realm: realm.into(), space: space.into(), id: id.into(), owner: None }
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.realm, self.space, self.id)?;
        match &self.owner {
            Some(owner) => write!(f, "@{owner}"),
            None => Ok(()),
        }
    }
}

/// A frame's number, unique in its session.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct FrameId(pub u32);

/// The number of a session's latest change in the store. It grows by one with every change, so
/// a decision on an older state is found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence(pub u64);

impl Fence {
    /// Of a session that is not there yet.
    pub const NONE: Self = Self(0);

    /// The fence after one more change.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Which session someone looked at, and in which state. The id belongs to it: another session may
/// have come under the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionVersion {
    /// The session.
    pub id: SessionId,
    pub fence: Fence,
}

/// Milliseconds since 1970-01-01 UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// This moment and so many milliseconds more.
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add_unsigned(ms))
    }

    /// RFC 3339 in UTC with milliseconds, `2026-11-15T02:17:25.123Z`.
    pub fn rfc3339(self) -> String {
        let days = self.0.div_euclid(86_400_000);
        let ms_of_day = self.0.rem_euclid(86_400_000);
        let (year, month, day) = civil_from_days(days);
        let seconds = ms_of_day / 1000;
        format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            ms_of_day % 1000
        )
    }
}

/// Year, month and day of a day number since 1970-01-01, in the proleptic Gregorian calendar.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // Years begin in March here, so that the leap day is the last day of a year.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_other_prefixes_are_refused() {
        let id = RunId(0x0192_abcd);
        assert_eq!(id.to_string().parse::<RunId>(), Ok(id));
        assert!("ses_00".parse::<RunId>().is_err());
        assert!(format!("run_{}", "G".repeat(32)).parse::<RunId>().is_err());
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, format!("\"{id}\""));
        assert_eq!(serde_json::from_str::<RunId>(&json).unwrap(), id);
    }

    #[test]
    fn a_session_key_without_an_owner_keeps_its_old_form() {
        let text = r#"{"realm":"r","space":"thread","id":"t"}"#;
        let key: SessionKey = serde_json::from_str(text).unwrap();
        assert_eq!(key, SessionKey::new("r", Space::thread(), "t"));
        assert_eq!(serde_json::to_string(&key).unwrap(), text);
        assert_eq!(key.to_string(), "r/thread/t");
    }

    #[test]
    fn session_keys_of_two_owners_differ() {
        let nobodys = SessionKey::new("r", Space::thread(), "t");
        let anns = SessionKey { owner: Some("ann".into()), ..nobodys.clone() };
        assert_ne!(anns, nobodys);
        assert_ne!(anns.to_string(), nobodys.to_string());
        let text = serde_json::to_string(&anns).unwrap();
        assert_eq!(serde_json::from_str::<SessionKey>(&text).unwrap(), anns);
    }

    #[test]
    fn moments_read_as_rfc_3339() {
        assert_eq!(Millis(0).rfc3339(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Millis(1_709_210_096_789).rfc3339(), "2024-02-29T12:34:56.789Z");
        assert_eq!(Millis(-1).rfc3339(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn time_ordered_bits_sort_by_time() {
        assert!(time_ordered_bits(Millis(1), u128::MAX) < time_ordered_bits(Millis(2), 0));
    }
}
