//! The keys of `[events.sinks.<name>]`.

use crate::realm::DEFAULT_REALM;
use crate::settings::{Text, checked, checked_list, limited, realm_patterns};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::grants::RealmPattern;
use kernel::tool::rules::Pattern;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// All keys of an entry, as far as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SinkKeys {
    #[serde(rename = "type")]
    pub(super) kind: Option<Text>,
    pub(super) path: Option<Text>,
    pub(super) url: Option<Text>,
    pub(super) secret: Option<Text>,
    /// Patterns of the types that go there.
    #[serde(deserialize_with = "types")]
    pub(super) types: Option<Vec<Pattern>>,
    #[serde(deserialize_with = "timeout_ms")]
    pub(super) timeout_ms: Option<u64>,
    pub(super) from: Begin,
    /// Whose events, where that is not the realm that every server has.
    #[serde(deserialize_with = "realm_patterns")]
    pub(super) realms: Option<Vec<RealmPattern>>,
    #[serde(rename = "realm", deserialize_with = "realm")]
    _realm: (),
}

/// Where a sink begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Begin {
    /// With what happens from its first start on.
    #[default]
    Now,
    /// With all that is kept.
    Start,
}

fn types<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Pattern>>, D::Error> {
    let patterns = checked_list(deserializer, |text| {
        let what = format!("`{text}` is no pattern of event types");
        let hint = "write a type, with `*` for any characters: `TradeRepaired`, `waypost.run.*`";
        Pattern::new(text).map_err(|_| Mistake::error(what).hint(hint))
    })?;
    if patterns.is_empty() {
        let what = "`types` is empty, so nothing would go there";
        let hint = "leave it out to send all events";
        return Err(D::Error::custom(format_args!("{what}; hint: {hint}")));
    }
    Ok(Some(patterns))
}

fn timeout_ms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    limited(deserializer, "timeout_ms", "delivery_timeout_ms")
}

fn realm<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    checked(deserializer, |text| {
        if text == DEFAULT_REALM {
            return Ok(());
        }
        let what = format!("`realm` can only be `{DEFAULT_REALM}`, and not `{text}`");
        let hint = format!("write `realms = [\"{text}\"]` instead");
        Err(Mistake::error(what).hint(hint))
    })
}
