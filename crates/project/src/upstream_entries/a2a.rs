//! `[a2a.agents.<name>]`: agents of others that speak A2A. Which keys may sign a card is checked
//! when the settings are read; everything else that a card says is the client's to judge.

use super::expand::{ExpandContext, expanded};
use super::keys::{AuthKeys, Own, ProviderKeys, timeout_ms};
use super::rest::{Auth, auth};
use super::sendable::{address, headers_of, shown_url};
use crate::settings::{Located, Named, Text, named, realm_patterns};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::grants::RealmPattern;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use upstreams::{
    A2aConfig, CardPlace, Keyring, KeysByCard, PinnedKey, RestAuth, Secret, StoredKey, TokenClient,
};

/// How a card is written, for hints.
const EXAMPLE: &str = "https://agent.example.com";
/// The header of AgentVault's keys.
const KEY_HEADER: &str = "X-Api-Key";
/// How the variables of AgentVault's keys begin.
const KEY_VARIABLE: &str = "AGENTVAULT_KEY_";
/// How those of its clients begin.
const CLIENT_VARIABLE: &str = "AGENTVAULT_OAUTH_";
/// What reads the keyring.
const KEYRING_COMMAND: &str = if cfg!(target_os = "macos") { "security" } else { "secret-tool" };

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
    keyring: bool,
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
pub struct A2aEndpoint {
    card: Text,
    registry: Option<Text>,
    origin: Option<Text>,
    auth: Option<Auth>,
    service: Option<Text>,
    key_file: Option<Text>,
    keyring: bool,
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

impl A2aEndpoint {
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
        if let (Some(file), Some(_)) = (&keys.key_file, &keys.auth) {
            let what = Mistake::error("both `auth` and `key_file` are there");
            return Err(file.mistake(what.hint("leave out the one that is not meant")));
        }
        if keys.keyring && keys.auth.is_some() {
            let hint = "leave out the one that is not meant";
            return Err(Mistake::error("both `auth` and `keyring` are there").hint(hint));
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
            keyring: keys.keyring,
            headers: keys.headers,
            allow_private: keys.allow_private,
            keys: pinned,
            require_signature,
        })
    }

    /// The way of a provider, whose address is that of the agent or of its card. It has no files.
    pub(super) fn of_provider(card: Text, keys: ProviderKeys) -> Result<Self, Mistake> {
        if !is_url(&card.text) {
            let what = format!("`{}` is not the address of an agent", shown_url(&card.text));
            return Err(card.mistake(Mistake::error(what).hint(format!("write `{EXAMPLE}`"))));
        }
        Ok(Self {
            card,
            registry: None,
            origin: None,
            auth: keys.auth.map(auth).transpose()?,
            service: None,
            key_file: None,
            keyring: false,
            headers: keys.headers,
            allow_private: keys.allow_private == Some(true),
            keys: Vec::new(),
            require_signature: false,
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
    pub(super) fn config(&self, around: &ExpandContext<'_>) -> Result<A2aConfig, Mistake> {
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
        let found = match (&self.auth, &self.service) {
            (Some(auth), _) => {
                let auth = Some(auth.looked_up(around)?);
                ServiceKeys { auth, ..ServiceKeys::default() }
            }
            (None, Some(service)) => self.service_keys(service, around)?,
            (None, None) => {
                let by_card = self.keys_by_card(around)?;
                ServiceKeys { by_card, ..ServiceKeys::default() }
            }
        };
        let ServiceKeys { auth, stored: StoredKey { key, client }, keyring, by_card } = found;
        Ok(A2aConfig {
            origin,
            auth,
            key,
            client,
            keyring,
            keys_by_card: by_card,
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

/// What an agent is shown, or where that is found.
#[derive(Default)]
struct ServiceKeys {
    auth: Option<RestAuth>,
    stored: StoredKey,
    /// Where the rest is looked up, when the agent is connected to.
    keyring: Option<Keyring>,
    /// The same where its card says which key it is.
    by_card: Option<KeysByCard>,
}

impl A2aEndpoint {
    /// The key of an agent, or the client as which tokens are asked for, as AgentVault's clients
    /// find them: in a file, else in the environment, else in the keyring.
    fn service_keys(
        &self,
        service: &Text,
        around: &ExpandContext<'_>,
    ) -> Result<ServiceKeys, Mistake> {
        let id = service.text.to_lowercase();
        let in_file = self.keys_in_file(around)?.remove(&id).unwrap_or_default();
        let variable = format!("{KEY_VARIABLE}{}", id.to_uppercase());
        let set = |name: &str| (around.variables)(name).filter(|value| !value.is_empty());
        let key = in_file.key.or_else(|| set(&variable).map(Secret::new));
        let client = in_file.client.or_else(|| {
            let of = |half: &str| set(&format!("{CLIENT_VARIABLE}{}_{half}", id.to_uppercase()));
            let both = of("CLIENT_ID").zip(of("CLIENT_SECRET"));
            both.map(|(id, secret)| client_of(id, secret))
        });
        let stored = StoredKey { key, client };
        if !stored.is_empty() {
            return Ok(ServiceKeys { stored, ..ServiceKeys::default() });
        }
        if self.keyring {
            let keyring = Keyring { id, command: KEYRING_COMMAND.into() };
            return Ok(ServiceKeys { keyring: Some(keyring), ..ServiceKeys::default() });
        }
        let what = match &self.key_file {
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
    fn keys_by_card(&self, around: &ExpandContext<'_>) -> Result<Option<KeysByCard>, Mistake> {
        if self.key_file.is_none() && !self.keyring {
            return Ok(None);
        }
        let keyring = self.keyring.then(|| PathBuf::from(KEYRING_COMMAND));
        Ok(Some(KeysByCard { file: self.keys_in_file(around)?, keyring }))
    }

    fn keys_in_file(
        &self,
        around: &ExpandContext<'_>,
    ) -> Result<BTreeMap<String, StoredKey>, Mistake> {
        match &self.key_file {
            Some(file) => kept_in(file, around),
            None => Ok(BTreeMap::new()),
        }
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
