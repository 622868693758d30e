//! `[a2a.agents.<name>]`: agents of others that speak A2A. Which keys may sign a card is checked
//! when the settings are read; everything else that a card says is the client's to judge.

use super::expand::{Around, expanded};
use super::keys::{AuthKeys, Own, timeout_ms};
use super::rest::{Auth, auth};
use super::sendable::{address, headers_of, shown_url};
use crate::a2a_serving::{
    A2aServing, ServingKeys, realm_name, repeat_window, skill_patterns, words,
};
use crate::settings::{Each, Kept, Located, Named, Text, named, realm_patterns};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::grants::RealmPattern;
use kernel::tool::rules::Pattern;
use kernel::values::ids::RealmId;
use serde::Deserialize;
use serde_json::Value;
use upstreams::{A2aConfig, CardPlace, KeyPlace, PinnedKey, RestAuth, Secret};

/// How a card is written, for hints.
const EXAMPLE: &str = "https://agent.example.com";
/// The header of AgentVault's keys.
const KEY_HEADER: &str = "X-Api-Key";
/// How the variables of AgentVault's keys begin.
const KEY_VARIABLE: &str = "AGENTVAULT_KEY_";

/// `[a2a]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct A2aSettings {
    /// By name.
    pub(crate) agents: Kept<Each<AgentKeys>>,
    #[serde(deserialize_with = "realm_name")]
    pub(crate) realm: Option<RealmId>,
    #[serde(deserialize_with = "words")]
    pub(crate) name: Option<String>,
    #[serde(deserialize_with = "words")]
    pub(crate) description: Option<String>,
    #[serde(deserialize_with = "skill_patterns")]
    pub(crate) expose: Vec<Pattern>,
    #[serde(deserialize_with = "skill_patterns")]
    pub(crate) public: Vec<Pattern>,
    #[serde(deserialize_with = "repeat_window")]
    pub(crate) repeat_window: Option<u64>,
}

impl A2aSettings {
    /// How agents of others call this server, and the agents that it calls.
    pub(crate) fn parts(self) -> (A2aServing, Each<AgentKeys>) {
        let Self { agents, realm, name, description, expose, public, repeat_window } = self;
        let keys = ServingKeys { realm, name, description, expose, public, repeat_window };
        (keys.serving(), agents.0)
    }
}

/// `[a2a.agents.<name>]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgentKeys {
    card: Option<Text>,
    registry: Option<Text>,
    origin: Option<Text>,
    auth: Option<Located<AuthKeys>>,
    service: Option<Text>,
    key_file: Option<Text>,
    #[serde(deserialize_with = "named")]
    headers: Named,
    allow_private: bool,
    keys: Vec<Located<SigningKeys>>,
    require_signature: Option<bool>,
    prefix: Option<Text>,
    journal: Option<bool>,
    #[serde(deserialize_with = "timeout_ms")]
    timeout_ms: Option<u64>,
    disabled: Option<bool>,
    #[serde(deserialize_with = "realm_patterns")]
    realms: Option<Vec<RealmPattern>>,
}

/// A key that may sign a card, with the members of a JWK.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SigningKeys {
    kid: Option<Text>,
    x: Option<Text>,
    y: Option<Text>,
}

/// The way to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct A2aWay {
    card: Text,
    registry: Option<Text>,
    origin: Option<Text>,
    auth: Option<Auth>,
    service: Option<Text>,
    key_file: Option<Text>,
    headers: Named,
    allow_private: bool,
    keys: Vec<PinnedKey>,
    require_signature: bool,
}

impl AgentKeys {
    /// Takes out the keys that are the same for every upstream.
    pub(super) fn take_own(&mut self) -> Own {
        Own {
            prefix: self.prefix.take(),
            journal: self.journal,
            timeout_ms: self.timeout_ms,
            disabled: self.disabled,
            realms: self.realms.take(),
            ..Own::default()
        }
    }
}

impl A2aWay {
    /// The way that these keys name.
    pub(super) fn new(keys: AgentKeys) -> Result<Self, Mistake> {
        let Some(card) = keys.card else {
            let hint = "it is the agent's address, a file, or with `registry` an id there";
            return Err(Mistake::error("`card` is missing").hint(hint));
        };
        if let (Some(auth), Some(service)) = (&keys.auth, &keys.service) {
            let what = Mistake::error("both `auth` and `service` are there");
            let place =
                if auth.place.line > service.place.line { &auth.place } else { &service.place };
            return Err(place.mistake(what.hint("leave out the one that is not meant")));
        }
        if let (Some(file), None) = (&keys.key_file, &keys.service) {
            let what = Mistake::error("`key_file` goes with `service`");
            return Err(
                file.mistake(what.hint("say which of its keys is meant: `service = \"..\"`"))
            );
        }
        let pinned = keys.keys.into_iter().map(pinned).collect::<Result<Vec<_>, _>>()?;
        let require_signature = keys.require_signature.unwrap_or(!pinned.is_empty());
        if require_signature && pinned.is_empty() {
            let what = "`require_signature` is true, and there are no `keys`";
            let hint =
                "add `keys = [{ kid = \"..\", x = \"..\", y = \"..\" }]`, which may sign the card";
            return Err(Mistake::error(what).hint(hint));
        }
        Ok(Self {
            card,
            registry: keys.registry,
            origin: keys.origin,
            auth: keys.auth.map(auth).transpose()?,
            service: keys.service,
            key_file: keys.key_file,
            headers: keys.headers,
            allow_private: keys.allow_private,
            keys: pinned,
            require_signature,
        })
    }

    /// Where its card is, without what may be a secret.
    pub(super) fn target(&self) -> String {
        match &self.registry {
            Some(registry) => format!("{} at {}", self.card.text, shown_url(&registry.text)),
            None if is_url(&self.card.text) => shown_url(&self.card.text),
            None => self.card.text.clone(),
        }
    }

    /// The names of what is sent with every request.
    pub(super) fn header_names(&self) -> Vec<String> {
        let of_auth = self.auth.as_ref().and_then(Auth::header);
        let of_service = self.service.as_ref().map(|_| KEY_HEADER.to_owned());
        let named = self.headers.iter().map(|(name, _)| name.clone());
        of_auth.into_iter().chain(of_service).chain(named).collect()
    }

    /// What to connect to.
    pub(super) fn config(&self, around: &Around<'_>) -> Result<A2aConfig, Mistake> {
        let card = match &self.registry {
            Some(registry) => CardPlace::Registry {
                url: address(registry, around, "registry", "https://registry.example.com")?,
                id: expanded(&self.card, around)?,
            },
            None if is_url(&self.card.text) => {
                CardPlace::Url(address(&self.card, around, "agent", EXAMPLE)?)
            }
            None => CardPlace::File(around.folder.join(expanded(&self.card, around)?)),
        };
        let origin = self.origin.as_ref();
        let origin = origin.map(|text| address(text, around, "server", EXAMPLE)).transpose()?;
        let auth = match (&self.auth, &self.service) {
            (Some(auth), _) => Some(auth.looked_up(around)?),
            (None, Some(service)) => Some(vault_key(service, self.key_file.as_ref(), around)?),
            (None, None) => None,
        };
        Ok(A2aConfig {
            origin,
            auth,
            headers: headers_of(&self.headers, around)?,
            allow_private: self.allow_private,
            keys: self.keys.clone(),
            require_signature: self.require_signature,
            ..A2aConfig::new(card)
        })
    }
}

fn is_url(text: &str) -> bool {
    // A variable may hold all of it.
    ["http://", "https://", "${"].iter().any(|begin| text.starts_with(begin))
}

/// The key of an agent as AgentVault's clients find it: in a file, else in the environment.
fn vault_key(
    service: &Text,
    file: Option<&Text>,
    around: &Around<'_>,
) -> Result<RestAuth, Mistake> {
    let in_file = match file {
        Some(file) => key_in(file, &service.text, around)?,
        None => None,
    };
    let variable = format!("{KEY_VARIABLE}{}", service.text.to_uppercase());
    let in_environment = || (around.variables)(&variable).filter(|key| !key.is_empty());
    let Some(key) = in_file.or_else(in_environment) else {
        let what = match file {
            Some(file) => {
                let (file, id) = (&file.text, &service.text);
                format!("`{file}` has no key `{id}`, and the variable `{variable}` is not set")
            }
            None => format!("the variable `{variable}` is not set"),
        };
        let hint = "set it to the agent's key, or write `auth` instead of `service`";
        return Err(service.mistake(Mistake::error(what).hint(hint)));
    };
    let (name, place) = (KEY_HEADER.to_owned(), KeyPlace::Header);
    Ok(RestAuth::ApiKey { name, place, value: Secret::new(key) })
}

/// The key of this id in a file: `id=key` in each line, or an object of keys in a `.json` file. No
/// mistake repeats what stands in it.
fn key_in(file: &Text, id: &str, around: &Around<'_>) -> Result<Option<String>, Mistake> {
    let path = around.folder.join(expanded(file, around)?);
    let unread = |why: String| {
        let what = format!("the file of keys `{}` cannot be read: {why}", file.text);
        file.mistake(Mistake::error(what))
    };
    let text = std::fs::read_to_string(&path).map_err(|error| unread(error.to_string()))?;
    let is_meant = |known: &str| known.trim().eq_ignore_ascii_case(id);
    if path.extension().is_none_or(|extension| extension != "json") {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let found = pairs.filter(|(known, _)| is_meant(known)).map(|(_, key)| key.trim());
        return Ok(found.filter(|key| !key.is_empty()).map(str::to_owned).next());
    }
    let keys: Value = serde_json::from_str(&text).map_err(|_| unread("not JSON".to_owned()))?;
    let entries = keys.as_object().into_iter().flatten();
    let found = entries.filter(|(known, _)| is_meant(known)).find_map(|(_, entry)| {
        let key = entry.as_str().or_else(|| entry["apiKey"].as_str());
        key.filter(|key| !key.is_empty()).map(str::to_owned)
    });
    Ok(found)
}

fn pinned(written: Located<SigningKeys>) -> Result<PinnedKey, Mistake> {
    let Located { place, value: SigningKeys { kid, x, y }, .. } = written;
    let text =
        |text: &Option<Text>| text.as_ref().map(|text| text.text.clone()).unwrap_or_default();
    PinnedKey::new(kid.map(|kid| kid.text), &text(&x), &text(&y)).map_err(|wrong| {
        let what = format!("`{wrong}` of a key is not a coordinate on P-256");
        let hint = "write `x` and `y` as the agent's key set does: 32 bytes in base64url";
        place.mistake(Mistake::error(what).hint(hint))
    })
}
