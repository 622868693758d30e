//! `auth`: our credentials for a REST server or an agent.

use crate::settings::{Located, Text, meaning};
use kernel::definition::plan::mistake::Mistake;
use serde::{Deserialize, Serialize};
use upstreams::{KeyPlace, RestAuth, Secret};

/// `auth`, whatever its type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AuthKeys {
    #[serde(rename = "type")]
    kind: Option<Text>,
    token: Option<Text>,
    user: Option<Text>,
    password: Option<Text>,
    name: Option<Text>,
    #[serde(rename = "in")]
    place: Option<Text>,
    value: Option<Text>,
}

/// The keys of each type.
const TYPES: &[(&str, &[&str])] = &[
    ("bearer", &["type", "token"]),
    ("basic", &["type", "user", "password"]),
    ("api_key", &["type", "name", "in", "value"]),
];

/// What `auth` says, with its texts as they are written.
pub(super) fn as_written(written: &Located<AuthKeys>) -> Result<RestAuth, Mistake> {
    looked_up(written, &|text: &Text| Ok(text.text.clone()))
}

/// What `auth` says; `value` is what a text stands for.
pub(super) fn looked_up(
    written: &Located<AuthKeys>,
    value: &dyn Fn(&Text) -> Result<String, Mistake>,
) -> Result<RestAuth, Mistake> {
    let Located { place: at, keys: there, value: keys } = written;
    let there_is = |text: &Option<Text>, key: &str| {
        let missing = || at.mistake(Mistake::error(format!("`auth.{key}` is missing")));
        text.clone().ok_or_else(missing)
    };
    let secret = |text: &Option<Text>, key: &str| value(&there_is(text, key)?).map(Secret::new);
    let kind = there_is(&keys.kind, "type")?;
    let hint = "it is `bearer`, `basic` or `api_key`";
    let known = meaning(&kind.text, TYPES, "is no type of `auth`", hint)
        .map_err(|mistake| kind.mistake(mistake))?;
    if let Some(key) = there.iter().find(|key| !known.contains(&key.text.as_str())) {
        let what = format!("`{}` has no place beside `type = \"{}\"`", key.text, kind.text);
        let hint = format!("known here: {}", known.join(", "));
        return Err(key.mistake(Mistake::error(what).hint(hint)));
    }
    Ok(match kind.text.as_str() {
        "bearer" => RestAuth::Bearer(secret(&keys.token, "token")?),
        "basic" => RestAuth::Basic {
            user: value(&there_is(&keys.user, "user")?)?,
            password: secret(&keys.password, "password")?,
        },
        _ => RestAuth::ApiKey {
            name: there_is(&keys.name, "name")?.text,
            place: key_place(&there_is(&keys.place, "in")?)?,
            value: secret(&keys.value, "value")?,
        },
    })
}

/// The header that it is sent in, if it is sent in one.
pub(super) fn header(auth: RestAuth) -> Option<String> {
    match auth {
        RestAuth::Bearer(_) | RestAuth::Basic { .. } => Some("Authorization".to_owned()),
        RestAuth::ApiKey { name, place: KeyPlace::Header, .. } => Some(name),
        RestAuth::ApiKey { place: KeyPlace::Query, .. } => None,
    }
}

fn key_place(text: &Text) -> Result<KeyPlace, Mistake> {
    let places = [("header", KeyPlace::Header), ("query", KeyPlace::Query)];
    let hint = "it is `header` or `query`";
    let place = meaning(&text.text, &places, "is no place for a key", hint);
    place.map_err(|mistake| text.mistake(mistake))
}
