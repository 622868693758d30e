//! `[a2a]`: how agents of others find and call this server. The agents that it calls itself are
//! upstreams: what their tables say is in `upstream_entries`.

use crate::a2a_limits::A2aLimits;
use crate::realm::DEFAULT_REALM;
use crate::settings::{Each, Kept, checked, checked_list, hosts, refused};
use crate::upstream_entries::AgentKeys;
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::grants::RealmPattern;
use kernel::tool::rules::Pattern;
use kernel::values::ids::RealmId;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::path::PathBuf;
use tools::HttpSettings;

/// How long a repeated message is recognised unless told otherwise: a day.
const REPEAT_WINDOW_S: u64 = 24 * 60 * 60;
/// The longest such time: 30 days. What is older is not kept by everyone.
const REPEAT_WINDOW_S_MAX: u64 = 30 * REPEAT_WINDOW_S;
/// How many keys sign the card: one, and the one that it replaces.
pub const SIGNING_KEYS_MAX: usize = 2;
const NAME: &str = "Waypost";
/// Under which name clients of AgentVault keep their key unless told otherwise.
const SERVICE: &str = "waypost";
const DESCRIPTION: &str = "Agents, pipelines and plans of a Waypost server";
/// The media type that fits all.
pub const ANY_MODE: &str = "*/*";
/// What parts of messages may be unless told otherwise.
const INPUT_MODES: [&str; 7] = [
    "text/plain",
    "text/markdown",
    "application/json",
    "application/octet-stream",
    "image/png",
    "image/jpeg",
    "application/pdf",
];

/// How a card says that this server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    JsonRpc,
    /// HTTP with JSON.
    Rest,
    /// gRPC.
    Grpc,
}

impl Binding {
    /// All of them, by name, in the order of cards.
    const NAMES: [(&'static str, Self); 3] =
        [("jsonrpc", Self::JsonRpc), ("rest", Self::Rest), ("grpc", Self::Grpc)];
}

/// `[a2a]`, but for the agents that this server calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct A2aServing {
    /// The realm of requests that name none, and of the card at the well-known address.
    pub realm: RealmId,
    /// What the card calls this server.
    pub name: String,
    /// What the card says of it.
    pub description: String,
    /// The plans that are skills, beside all agents and pipelines.
    pub expose: Vec<Pattern>,
    /// The skills that strangers are shown.
    pub public: Vec<Pattern>,
    /// The media types of parts that messages may have, in lower case; `*/*` is any.
    pub input_modes: Vec<String>,
    /// The bindings that the card offers, the preferred one first.
    pub bindings: Vec<Binding>,
    /// For how many seconds a message under a used id is the same message again; 0 for none.
    pub repeat_window: u64,
    /// The files of the keys that sign the card, the newest first; paths begin at the project's
    /// folder. Without one the data folder has its own.
    pub signing_keys: Vec<PathBuf>,
    /// Whether tasks can be followed as streams.
    pub streaming: bool,
    /// Whether callers can ask for the card with all that they may use.
    pub extended_card: bool,
    /// Whom webhooks may notify beside public addresses; none where there are no webhooks.
    pub push: Option<HttpSettings>,
    /// The id on AgentVault's card of this realm; `waypost/<realm>` where none is set.
    pub vault_id: Option<String>,
    /// Under which name clients of AgentVault keep their key.
    pub service_identifier: String,
    /// Whether agents of others may call the tools of our MCP and JSON-RPC servers by the skill
    /// `mcp.execute_tool`; where that is not said, they may where there are such servers.
    pub proxy: Option<bool>,
    /// What a file says of AgentVault's card, in the place of what the settings say.
    pub vault_card: Map<String, Value>,
    /// Those of `[limits]` that are its own.
    pub limits: A2aLimits,
}

impl A2aServing {
    /// The id on AgentVault's card of a realm.
    pub fn vault_id_of(&self, realm: &RealmId) -> String {
        let set = self.vault_id.clone().filter(|_| *realm == self.realm);
        set.unwrap_or_else(|| format!("waypost/{realm}"))
    }
}

impl Default for A2aServing {
    fn default() -> Self {
        Self {
            realm: RealmId::from(DEFAULT_REALM),
            name: NAME.to_owned(),
            description: DESCRIPTION.to_owned(),
            expose: Vec::new(),
            public: Vec::new(),
            input_modes: INPUT_MODES.map(str::to_owned).to_vec(),
            bindings: Binding::NAMES.map(|(_, binding)| binding).to_vec(),
            repeat_window: REPEAT_WINDOW_S,
            signing_keys: Vec::new(),
            streaming: true,
            extended_card: true,
            push: Some(HttpSettings::default()),
            vault_id: None,
            service_identifier: SERVICE.to_owned(),
            proxy: None,
            vault_card: Map::new(),
            limits: A2aLimits::default(),
        }
    }
}

/// `[a2a.push]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PushKeys {
    enabled: Option<bool>,
    #[serde(deserialize_with = "hosts")]
    allow: HttpSettings,
}

impl PushKeys {
    fn push(self) -> Option<HttpSettings> {
        self.enabled.unwrap_or(true).then_some(self.allow)
    }
}

/// `[a2a]`, as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct A2aSettings {
    /// By name.
    pub(crate) agents: Kept<Each<AgentKeys>>,
    #[serde(deserialize_with = "realm_name")]
    realm: Option<RealmId>,
    #[serde(deserialize_with = "words")]
    name: Option<String>,
    #[serde(deserialize_with = "words")]
    description: Option<String>,
    #[serde(deserialize_with = "skill_patterns")]
    expose: Vec<Pattern>,
    #[serde(deserialize_with = "skill_patterns")]
    public: Vec<Pattern>,
    #[serde(deserialize_with = "media_types")]
    input_modes: Option<Vec<String>>,
    #[serde(deserialize_with = "bindings")]
    bindings: Option<Vec<Binding>>,
    #[serde(deserialize_with = "repeat_window")]
    repeat_window: Option<u64>,
    #[serde(deserialize_with = "signing_keys")]
    signing_keys: Vec<PathBuf>,
    streaming: Option<bool>,
    extended_card: Option<bool>,
    push: Kept<PushKeys>,
    #[serde(deserialize_with = "vault_id")]
    vault_id: Option<String>,
    #[serde(deserialize_with = "words")]
    service_identifier: Option<String>,
    proxy: Option<bool>,
}

impl A2aSettings {
    /// How agents of others call this server.
    pub(crate) fn serving(self) -> A2aServing {
        let usual = A2aServing::default();
        A2aServing {
            realm: self.realm.unwrap_or(usual.realm),
            name: self.name.unwrap_or(usual.name),
            description: self.description.unwrap_or(usual.description),
            expose: self.expose,
            public: self.public,
            input_modes: self.input_modes.unwrap_or(usual.input_modes),
            bindings: self.bindings.unwrap_or(usual.bindings),
            repeat_window: self.repeat_window.unwrap_or(usual.repeat_window),
            signing_keys: self.signing_keys,
            streaming: self.streaming.unwrap_or(usual.streaming),
            extended_card: self.extended_card.unwrap_or(usual.extended_card),
            push: self.push.0.push(),
            vault_id: self.vault_id,
            service_identifier: self.service_identifier.unwrap_or(usual.service_identifier),
            proxy: self.proxy,
            vault_card: usual.vault_card,
            limits: usual.limits,
        }
    }
}

/// Skills, by their ids with `*` for any characters.
fn skill_patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pattern>, D::Error> {
    checked_list(deserializer, |text| {
        Pattern::new(text).map_err(|bad| Mistake::error(bad.to_string()))
    })
}

/// Media types as cards list them. None at all are a mistake: cards list one.
fn media_types<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    let hint = "write media types without parameters, such as `image/png`, or `*/*` for all";
    let types = checked_list(deserializer, |text| match is_media_type(text) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(Mistake::error(format!("`{text}` is not a media type")).hint(hint)),
    })?;
    match types.is_empty() {
        true => Err(refused(Mistake::error("`input_modes` names no media type").hint(hint))),
        false => Ok(Some(types)),
    }
}

/// The bindings of a card. None at all are a mistake: cards name one.
fn bindings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Binding>>, D::Error> {
    let hint = "write `jsonrpc`, `rest` and `grpc`, or some of them, each once";
    let all = checked_list(deserializer, |text| {
        let found = Binding::NAMES.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, binding)| *binding)
            .ok_or_else(|| Mistake::error(format!("`{text}` is not a binding of A2A")).hint(hint))
    })?;
    let is_repeated =
        all.iter().enumerate().any(|(index, one)| all.iter().skip(index + 1).any(|two| two == one));
    match (all.is_empty(), is_repeated) {
        (true, _) => Err(refused(Mistake::error("`bindings` names no binding").hint(hint))),
        (_, true) => Err(refused(Mistake::error("`bindings` names one twice").hint(hint))),
        (false, false) => Ok(Some(all)),
    }
}

/// Whether it has the form of RFC 6838, or stands for all.
fn is_media_type(text: &str) -> bool {
    let is_name = |name: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        !name.is_empty() && name.bytes().all(fits)
    };
    let parts = text.split_once('/');
    text == ANY_MODE || parts.is_some_and(|(kind, name)| is_name(kind) && is_name(name))
}

/// A text that is not empty: cards require it.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let words = checked(deserializer, |text| match text.trim().is_empty() {
        true => Err(Mistake::error("this text is empty").hint("write some words, or remove it")),
        false => Ok(text.to_owned()),
    });
    words.map(Some)
}

/// An id as AgentVault's cards have it: who and what, with a slash between them.
fn vault_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let id = checked(deserializer, |text| {
        let is_id = text.split_once('/').is_some_and(|(org, name)| {
            !org.is_empty() && !name.is_empty() && !text.contains(char::is_whitespace)
        });
        match is_id {
            true => Ok(text.to_owned()),
            false => Err(Mistake::error(format!("`{text}` cannot be the id of a card"))
                .hint("write an organisation and a name, such as `acme/tools`")),
        }
    });
    id.map(Some)
}

/// For how many seconds repeated messages are recognised.
fn repeat_window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let seconds = u64::deserialize(deserializer)?;
    if seconds <= REPEAT_WINDOW_S_MAX {
        return Ok(Some(seconds));
    }
    let what = format!("`repeat_window` is at most {REPEAT_WINDOW_S_MAX} seconds, not {seconds}");
    Err(refused(Mistake::error(what).hint("write up to 30 days, or 0 to recognise no repeats")))
}

/// The files of the keys that sign the card.
fn signing_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    let files = checked_list(deserializer, |text| match text.trim().is_empty() {
        true => Err(Mistake::error("this names no file").hint("write the path of a key in PEM")),
        false => Ok(PathBuf::from(text)),
    })?;
    if files.len() <= SIGNING_KEYS_MAX {
        return Ok(files);
    }
    let what = format!("`signing_keys` has {} files, and at most two keys sign", files.len());
    Err(refused(Mistake::error(what).hint("leave the new key and the one that it replaces")))
}

fn realm_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RealmId>, D::Error> {
    let realm = checked(deserializer, |text| {
        let is_name = RealmPattern::parse(text).is_ok() && !text.contains('*');
        match is_name {
            true => Ok(RealmId::from(text)),
            false => Err(Mistake::error(format!("`{text}` cannot be the name of a realm"))
                .hint("write the name of one realm, such as `default`")),
        }
    });
    realm.map(Some)
}

#[cfg(test)]
mod tests {
    use crate::a2a_serving::{A2aServing, Binding};
    use crate::config::Config;
    use tools::HttpSettings;

    #[test]
    fn serving_settings_are_read_beside_agents() {
        let text = "[a2a]\nrealm = \"shop\"\nname = \"Shop\"\nexpose = [\"orders::*\"]\n\
                    public = [\"agent/helper\"]\nrepeat_window = 0\n\
                    signing_keys = [\"keys/new.pem\", \"keys/old.pem\"]\n\
                    [a2a.agents.trips]\ncard = \"https://trips.test\"\n";
        let config = Config::parse("waypost.toml", text).unwrap();
        assert_eq!(config.upstreams.len(), 1);
        let serving = config.a2a;
        assert_eq!((serving.realm.as_str(), serving.name.as_str()), ("shop", "Shop"));
        assert_eq!(serving.expose[0].as_str(), "orders::*");
        assert_eq!(serving.public[0].as_str(), "agent/helper");
        assert_eq!(serving.repeat_window, 0);
        assert_eq!(serving.signing_keys[1], std::path::Path::new("keys/old.pem"));
        assert_eq!(serving.input_modes, A2aServing::default().input_modes);
        assert_eq!(Config::parse("waypost.toml", "").unwrap().a2a, A2aServing::default());
        let modes = "[a2a]\ninput_modes = [\"Text/CSV\", \"*/*\"]\n";
        let modes = Config::parse("waypost.toml", modes).unwrap().a2a.input_modes;
        assert_eq!(modes, ["text/csv", "*/*"]);
        assert!(serving.streaming && serving.extended_card);
        let bare = "[a2a]\nstreaming = false\nextended_card = false\n";
        let bare = Config::parse("waypost.toml", bare).unwrap().a2a;
        assert!(!bare.streaming && !bare.extended_card);
        let bindings = "[a2a]\nbindings = [\"rest\", \"jsonrpc\"]\n";
        let bindings = Config::parse("waypost.toml", bindings).unwrap().a2a.bindings;
        assert_eq!(bindings, [Binding::Rest, Binding::JsonRpc]);
        let longest = Config::parse("waypost.toml", "[a2a]\nrepeat_window = 2592000\n").unwrap();
        assert_eq!(longest.a2a.repeat_window, 2_592_000);
    }

    #[test]
    fn webhooks_notify_public_addresses_and_those_that_are_listed_unless_they_are_off() {
        let push = |keys: &str| {
            let text = format!("[a2a.push]\n{keys}\n");
            Config::parse("waypost.toml", &text).unwrap().a2a.push
        };
        assert_eq!(push(""), Some(HttpSettings::default()));
        let listed = HttpSettings::new(&["127.0.0.1:9000"]).unwrap();
        assert_eq!(push("allow = [\"127.0.0.1:9000\"]"), Some(listed));
        assert_eq!(push("enabled = false"), None);
        let wrong = "[a2a.push]\nallow = [\"http://a.test\"]\n";
        let shown = Config::parse("waypost.toml", wrong).unwrap_err()[0].to_string();
        assert!(shown.contains("is not a host"), "{shown}");
    }

    #[test]
    fn a_card_of_agentvault_has_an_id_for_each_realm() {
        let serving = Config::parse("waypost.toml", "").unwrap().a2a;
        assert_eq!(serving.vault_id_of(&"default".into()), "waypost/default");
        assert_eq!(serving.service_identifier, "waypost");
        let text = "[a2a]\nvault_id = \"acme/tools\"\nservice_identifier = \"probe\"\n";
        let serving = Config::parse("waypost.toml", text).unwrap().a2a;
        assert_eq!(serving.vault_id_of(&"default".into()), "acme/tools");
        assert_eq!(serving.vault_id_of(&"other".into()), "waypost/other");
        assert_eq!(serving.service_identifier, "probe");
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        for (line, told) in [
            ("realm = \"a*\"", "cannot be the name of a realm"),
            ("name = \" \"", "this text is empty"),
            ("exposed = []", "unknown key `exposed`"),
            ("expose = [\"a b\"]", "in a pattern of tools"),
            ("repeat_window = 2592001", "at most 2592000 seconds, not 2592001"),
            ("signing_keys = [\"a\", \"b\", \"c\"]", "has 3 files"),
            ("signing_keys = [\" \"]", "names no file"),
            ("vault_id = \"tools\"", "cannot be the id of a card"),
            ("input_modes = []", "names no media type"),
            ("bindings = []", "names no binding"),
            ("bindings = [\"soap\"]", "`soap` is not a binding of A2A"),
            ("bindings = [\"rest\", \"rest\"]", "names one twice"),
            ("input_modes = [\"image/*\"]", "`image/*` is not a media type"),
            ("input_modes = [\"text/plain; charset=utf-8\"]", "is not a media type"),
        ] {
            let mistakes = Config::parse("waypost.toml", &format!("[a2a]\n{line}\n")).unwrap_err();
            let shown = mistakes[0].to_string();
            assert!(shown.starts_with("waypost.toml:2:") && shown.contains(told), "{shown}");
        }
    }
}
