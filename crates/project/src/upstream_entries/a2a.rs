//! A2A agents as upstreams: the connection that their keys describe. Keys that may sign a card are
//! checked when the settings are read; the rest of a card is judged by the client.

use super::expand::{ExpandContext, expanded};
use super::keys::{Keys, SigningKey};
use super::sendable::{address, headers_of, shown_url};
use crate::settings::{Located, Text};
use kernel::definition::plan::mistake::Mistake;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use upstreams::{
    A2aConfig, CardPlace, Keyring, KeysByCard, PinnedKey, Secret, StoredKey, TokenClient,
};

/// How a card is written, for hints.
const EXAMPLE: &str = "https://agent.example.com";
/// The header of AgentVault's keys.
pub(super) const KEY_HEADER: &str = "X-Api-Key";
/// How the variables of AgentVault's keys begin.
const KEY_VARIABLE: &str = "AGENTVAULT_KEY_";
/// How those of its clients begin.
const CLIENT_VARIABLE: &str = "AGENTVAULT_OAUTH_";
/// The command that reads the keyring.
const KEYRING: &str = if cfg!(target_os = "macos") { "security" } else { "secret-tool" };

/// What contradicts itself in a table of an agent.
pub(super) fn check(keys: &Keys) -> Result<(), Mistake> {
    if keys.card.is_none() {
        let hint = "it is the agent's address, a file, or with `registry` an id there";
        return Err(Mistake::error("`card` is missing").hint(hint));
    }
    if let Some(auth) = &keys.auth {
        let both = |key: &str| {
            let what = Mistake::error(format!("both `auth` and `{key}` are there"));
            what.hint("leave out the one that is not meant")
        };
        if let Some(service) = &keys.service {
            let is_below = auth.place.line > service.place.line;
            let place = if is_below { &auth.place } else { &service.place };
            return Err(place.mistake(both("service")));
        }
        if let Some(file) = &keys.key_file {
            return Err(file.mistake(both("key_file")));
        }
        if keys.keyring == Some(true) {
            return Err(both("keyring"));
        }
    }
    if pinned(keys)?.is_empty() && keys.require_signature == Some(true) {
        let what = "`require_signature` is true, and there are no `keys`";
        let hint =
            "add `keys = [{ kid = \"..\", x = \"..\", y = \"..\" }]`, which may sign the card";
        return Err(Mistake::error(what).hint(hint));
    }
    Ok(())
}

/// Refuses the address of a provider that is none: it has no files.
pub(super) fn check_address(card: &Text) -> Result<(), Mistake> {
    if is_url(&card.text) {
        return Ok(());
    }
    let what = format!("`{}` is not the address of an agent", shown_url(&card.text));
    Err(card.mistake(Mistake::error(what).hint(format!("write `{EXAMPLE}`"))))
}

/// Where its card is, without what may be a secret.
pub(super) fn target(card: &Text, registry: Option<&Text>) -> String {
    match registry {
        Some(registry) => format!("{} at {}", card.text, shown_url(&registry.text)),
        None if is_url(&card.text) => shown_url(&card.text),
        None => card.text.clone(),
    }
}

/// What to connect to.
pub(super) fn config(
    card: &Text,
    keys: &Keys,
    around: &ExpandContext<'_>,
) -> Result<A2aConfig, Mistake> {
    let place = match &keys.registry {
        Some(registry) => CardPlace::Registry {
            url: address(registry, around, "registry", "https://registry.example.com")?,
            id: expanded(card, around)?,
        },
        None if is_url(&card.text) => CardPlace::Url(address(card, around, "agent", EXAMPLE)?),
        None => CardPlace::File(around.folder.join(expanded(card, around)?)),
    };
    let mut config = A2aConfig::new(place);
    let origin = keys.origin.as_ref();
    config.origin = origin.map(|text| address(text, around, "server", EXAMPLE)).transpose()?;
    config.auth = keys.auth(around)?;
    match (&config.auth, &keys.service) {
        (Some(_), _) => {}
        (None, Some(service)) => {
            let stored = stored_key(service, keys, around)?;
            let id = service.text.to_lowercase();
            // Looked up when the agent is connected to.
            config.keyring = stored.is_empty().then(|| Keyring { id, command: KEYRING.into() });
            config.key = stored.key;
            config.client = stored.client;
        }
        (None, None) => config.keys_by_card = keys_by_card(keys, around)?,
    }
    config.headers = headers_of(&keys.headers, around)?;
    config.allow_private = keys.allow_private == Some(true);
    config.keys = pinned(keys)?;
    config.require_signature = keys.require_signature.unwrap_or(!config.keys.is_empty());
    Ok(config)
}

fn is_url(text: &str) -> bool {
    // A variable may hold all of it.
    ["http://", "https://", "${"].iter().any(|begin| text.starts_with(begin))
}

/// The key of an agent, or the client as which tokens are asked for, as AgentVault's clients find
/// them: in a file, else in the environment. Neither is there where the keyring has them.
fn stored_key(
    service: &Text,
    keys: &Keys,
    around: &ExpandContext<'_>,
) -> Result<StoredKey, Mistake> {
    let id = service.text.to_lowercase();
    let in_file = keys_in_file(keys, around)?.remove(&id).unwrap_or_default();
    let variable = format!("{KEY_VARIABLE}{}", id.to_uppercase());
    let set = |name: &str| (around.variables)(name).filter(|value| !value.is_empty());
    let key = in_file.key.or_else(|| set(&variable).map(Secret::new));
    let client = in_file.client.or_else(|| {
        let of = |half: &str| set(&format!("{CLIENT_VARIABLE}{}_{half}", id.to_uppercase()));
        let both = of("CLIENT_ID").zip(of("CLIENT_SECRET"));
        both.map(|(id, secret)| client_of(id, secret))
    });
    let stored = StoredKey { key, client };
    if !stored.is_empty() || keys.keyring == Some(true) {
        return Ok(stored);
    }
    let what = match &keys.key_file {
        Some(file) => {
            let file = &file.text;
            let id = &service.text;
            format!("`{file}` has no key `{id}`, and the variable `{variable}` is not set")
        }
        None => format!("the variable `{variable}` is not set"),
    };
    let hint = "set it to the agent's key, say `keyring = true` if it is in your keyring, or \
                write `auth` instead of `service`";
    Err(service.mistake(Mistake::error(what).hint(hint)))
}

/// The keys of which the card names one. A card is from outside: it names no variable of ours.
fn keys_by_card(keys: &Keys, around: &ExpandContext<'_>) -> Result<Option<KeysByCard>, Mistake> {
    let keyring = (keys.keyring == Some(true)).then(|| PathBuf::from(KEYRING));
    if keys.key_file.is_none() && keyring.is_none() {
        return Ok(None);
    }
    Ok(Some(KeysByCard { file: keys_in_file(keys, around)?, keyring }))
}

fn keys_in_file(
    keys: &Keys,
    around: &ExpandContext<'_>,
) -> Result<BTreeMap<String, StoredKey>, Mistake> {
    match &keys.key_file {
        Some(file) => kept_in(file, around),
        None => Ok(BTreeMap::new()),
    }
}

/// What a file has, by ids in lower case: `id=key` in each line, or an object of keys in a `.json`
/// file. The first of an id counts. No mistake repeats what stands in it.
fn kept_in(
    file: &Text,
    around: &ExpandContext<'_>,
) -> Result<BTreeMap<String, StoredKey>, Mistake> {
    let path = around.folder.join(expanded(file, around)?);
    let unread = |why: String| {
        let what = format!("the file of keys `{}` cannot be read: {why}", file.text);
        file.mistake(Mistake::error(what))
    };
    let text = std::fs::read_to_string(&path).map_err(|error| unread(error.to_string()))?;
    let mut kept = BTreeMap::new();
    let mut keep = |id: &str, stored: StoredKey| {
        if !stored.is_empty() {
            kept.entry(id.trim().to_lowercase()).or_insert(stored);
        }
    };
    if path.extension().is_none_or(|extension| extension != "json") {
        for (id, key) in text.lines().filter_map(|line| line.split_once('=')) {
            let key = Some(key.trim()).filter(|key| !key.is_empty()).map(Secret::new);
            keep(id, StoredKey { key, client: None });
        }
        return Ok(kept);
    }
    let keys: Value = serde_json::from_str(&text).map_err(|_| unread("not JSON".to_owned()))?;
    let filled = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    for (id, entry) in keys.as_object().into_iter().flatten() {
        let key = filled(entry).or_else(|| filled(&entry["apiKey"])).map(Secret::new);
        let oauth = &entry["oauth"];
        let client = filled(&oauth["clientId"]).zip(filled(&oauth["clientSecret"]));
        let client = client.map(|(id, secret)| client_of(id, secret));
        keep(id, StoredKey { key, client });
    }
    Ok(kept)
}

fn client_of(id: String, secret: String) -> TokenClient {
    TokenClient { id, secret: Secret::new(secret), scopes: Vec::new() }
}

/// The keys that may sign its card.
fn pinned(keys: &Keys) -> Result<Vec<PinnedKey>, Mistake> {
    let key = |Located { place, value, .. }: &Located<SigningKey>| {
        let text = |text: &Option<Text>| text.as_ref().map(|text| text.text.clone());
        let [x, y] = [&value.x, &value.y].map(|half| text(half).unwrap_or_default());
        PinnedKey::new(text(&value.kid), &x, &y).map_err(|wrong| {
            let what = format!("`{wrong}` of a key is not a coordinate on P-256");
            let hint = "write `x` and `y` as the agent's key set does: 32 bytes in base64url";
            place.mistake(Mistake::error(what).hint(hint))
        })
    };
    keys.signing_keys.iter().map(key).collect()
}
