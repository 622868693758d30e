//! One sink as the settings write it, and what is opened for it. Nothing is looked up before it is
//! asked for, and a secret is never shown.

use super::keys::{Begin, SinkKeys};
use super::{ResolvedSink, SinkContext};
use crate::layer::Location;
use crate::settings::{Located, Text, meaning};
use crate::upstream_entries::expand::{self, expanded};
use crate::upstream_entries::sendable::{address, shown_url};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::grants::RealmPattern;
use kernel::tool::rules::Pattern;
use kernel::values::secret::Secret;
use sinks::config::{SinkConfig, SinkKind};
use std::path::PathBuf;

/// What stands before each secret.
const SECRET_PREFIX: &str = "whsec_";
/// How many bytes a secret may have, by the specification of Standard Webhooks.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// How to make a secret.
const MAKE_SECRET: &str = "make one with `echo \"whsec_$(openssl rand -base64 32)\"`, put it into \
                           a variable, and write `secret = \"${WEBHOOK_SECRET}\"`";
const ALL_TYPES: &str = "it is `stdout`, `file` or `webhook`";

/// A sink as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkEntry {
    pub name: String,
    /// Where it is written.
    pub place: Location,
    way: SinkDestination,
    types: Option<Vec<Pattern>>,
    from_start: bool,
    realms: Option<Vec<RealmPattern>>,
}

/// Where events go.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SinkDestination {
    Stdout,
    File { path: Text },
    Webhook { url: Text, secret: Text, timeout_ms: Option<u64> },
}

/// What `type` may say, and the keys that each knows beside those of all.
const KINDS: &[(&str, &[&str])] =
    &[("stdout", &[]), ("file", &["path"]), ("webhook", &["url", "secret", "timeout_ms"])];

impl SinkEntry {
    /// The entry that these keys make. A mistake without a place is one of the whole entry.
    pub fn new(name: &Text, keys: Located<SinkKeys>) -> Result<Self, Mistake> {
        let place = name.place.clone();
        let name = name.text.clone();
        place.check_name(&name, "a sink", "`_` and `-`")?;
        let types = keys.value.types.clone();
        let from_start = keys.value.from == Begin::Start;
        let realms = keys.value.realms.clone();
        Ok(Self { name, place, way: way(keys)?, types, from_start, realms })
    }

    /// What to open and what goes there, with everything looked up.
    pub(super) fn sending(&self, around: &SinkContext<'_>) -> Result<ResolvedSink, Mistake> {
        let texts = expand::ExpandContext { folder: around.folder, variables: around.variables };
        let (kind, target) = match &self.way {
            SinkDestination::Stdout => (SinkKind::Stdout, None),
            SinkDestination::File { path } => {
                let path = file(path, around, &texts)?;
                let target = path.display().to_string();
                (SinkKind::File { path }, Some(target))
            }
            SinkDestination::Webhook { url, secret, timeout_ms } => {
                let example = "https://hooks.example.com/waypost";
                let address = address(url, &texts, "receiver", example)?;
                let target = shown_url(&address);
                let secret = secrets(secret, &texts)?;
                let timeout_ms = *timeout_ms;
                (SinkKind::Webhook { url: address, secret, timeout_ms }, Some(target))
            }
        };
        Ok(ResolvedSink {
            config: SinkConfig { name: self.name.clone(), kind },
            target,
            types: self.types.clone(),
            from_start: self.from_start,
            realms: self.realms.clone(),
            place: self.place.clone(),
        })
    }
}

fn way(
    Located { keys: there, value: keys, .. }: Located<SinkKeys>,
) -> Result<SinkDestination, Mistake> {
    let missing = |key: &str, hint: &str| Mistake::error(format!("`{key}` is missing")).hint(hint);
    let Some(said) = &keys.kind else { return Err(missing("type", ALL_TYPES)) };
    let kind = said.text.as_str();
    let own = meaning(kind, KINDS, "is no type of sink", ALL_TYPES);
    let own = own.map_err(|mistake| said.mistake(mistake))?;
    if let Some(mistake) = misplaced(&there, kind, own) {
        return Err(mistake);
    }
    match kind {
        "stdout" => Ok(SinkDestination::Stdout),
        "file" => {
            let hint = "it is the file that gets a line for each event, such as \
                        \"events.jsonl\" in the data folder";
            Ok(SinkDestination::File { path: keys.path.ok_or_else(|| missing("path", hint))? })
        }
        _ => {
            let hint = "it is where events are posted to, such as \
                        \"https://hooks.example.com/waypost\"";
            Ok(SinkDestination::Webhook {
                url: keys.url.ok_or_else(|| missing("url", hint))?,
                secret: keys.secret.ok_or_else(|| missing("secret", MAKE_SECRET))?,
                timeout_ms: keys.timeout_ms,
            })
        }
    }
}

/// A key that means nothing to this type of sink.
fn misplaced(there: &[Text], kind: &str, own: &[&str]) -> Option<Mistake> {
    let of_others =
        KINDS.iter().flat_map(|(other, keys)| keys.iter().map(move |key| (*other, *key)));
    let mut idle = of_others.filter(|(_, key)| !own.contains(key));
    idle.find_map(|(other, key)| {
        let found = there.iter().find(|there| there.text == key)?;
        let what = format!("`{key}` has no place beside `type = \"{kind}\"`");
        let hint = format!("it goes with `type = \"{other}\"`; leave it out");
        Some(found.mistake(Mistake::error(what).hint(hint)))
    })
}

/// The file; a relative path begins at the data folder.
fn file(
    path: &Text,
    around: &SinkContext<'_>,
    texts: &expand::ExpandContext<'_>,
) -> Result<PathBuf, Mistake> {
    let named = expanded(path, texts)?;
    if named.is_empty() || named.ends_with('/') {
        let what = format!("`{}` is not the path of a file", path.text);
        let hint = "write it as `events.jsonl`, which is in the data folder";
        return Err(path.mistake(Mistake::error(what).hint(hint)));
    }
    Ok(around.data.join(named))
}

/// One secret, or several with spaces between them: each signs, so that a receiver can change from
/// one to the next.
fn secrets(text: &Text, texts: &expand::ExpandContext<'_>) -> Result<Secret, Mistake> {
    let held = expanded(text, texts)?;
    let words: Vec<&str> = held.split_whitespace().collect();
    let is_whole = |word: &&str| {
        let key = word.strip_prefix(SECRET_PREFIX).and_then(|key| STANDARD.decode(key).ok());
        key.is_some_and(|key| SECRET_BYTES.contains(&key.len()))
    };
    if !words.is_empty() && words.iter().all(is_whole) {
        return Ok(Secret::new(words.join(" ")));
    }
    let what = "`secret` must be `whsec_` and the base64 of 24 to 64 bytes, or several such with \
                spaces between them";
    Err(text.mistake(Mistake::error(what).hint(MAKE_SECRET)))
}
