//! `waypost.toml`, and the layers around it: what an operator can set. An unknown key is an error
//! with its line and the key that was most likely meant: a setting that is silently ignored is
//! worse than none.

use crate::a2a_serving::{A2aServing, A2aSettings};
use crate::event_sinks::{SinkEntry, SinkKeys};
use crate::layer::Layer;
use crate::limits::SettableLimits;
use crate::models::{ModelEntry, ModelKeys};
use crate::realms::{RealmKeys, realms};
use crate::settings::{
    Each, Kept, Located, Owner, SettingsTree, Text, checked, checked_list, hosts, read,
};
use crate::tables::decisions::{AuditConfig, InboxConfig, PolicyConfig};
use crate::tables::issuers::{IssuerKeys, issuers};
pub use crate::tables::public_url::PublicUrl;
use crate::tables::public_url::{from_here, page_origins};
use crate::tables::supervisor::{SupervisorKeys, rules};
use crate::tables::tls::{TlsConfig, tls};
use crate::upstream_entries::{AgentKeys, Entry, KeyTable, ProviderKeys, ServerKeys, is_loopback};
use engine::RulePlaces;
use kernel::definition::plan::mistake::Mistake;
use kernel::definition::rule::Rules;
use kernel::identity::issuer::IssuerEntry;
use kernel::identity::realm::RealmSettings;
use kernel::limits::{Limits, OutOfRange};
use kernel::tool::rules::{Pattern, ToolLimits, ToolRules};
use kernel::values::ids::{AgentName, RealmId};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tools::{BuiltInSettings, HttpSettings};

/// The port that `up` listens on unless told otherwise.
pub const PORT_DEFAULT: u16 = 8420;

/// The keys of `[server]`.
pub const SERVER_KEYS: &[&str] = &["host", "port", "hosts", "origins", "public_url", "admin"];

/// What the settings say, with defaults for the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    /// `[server]`.
    pub server: ServerConfig,
    /// `[limits]`, but for those of endpoints.
    pub limits: Limits,
    /// `[tools]`: which tools there are, and what they may cost.
    pub tools: ToolRules,
    /// `demo` of `[tools]`, and `[tools.http]`.
    pub built_in: BuiltInSettings,
    /// `[mcp]`.
    pub mcp: McpConfig,
    /// `[a2a]`: how agents of others call this server, and its limits of `[limits]`.
    pub a2a: A2aServing,
    /// `[mcp.servers.<name>]`, `[providers.<name>]` and `[a2a.agents.<name>]`.
    pub upstreams: Vec<Entry>,
    /// `[models.<name>]`.
    pub models: Vec<ModelEntry>,
    /// `[agents]`.
    pub agents: AgentsConfig,
    /// `[policy]`.
    pub policy: PolicyConfig,
    /// `[supervisor]`: what is done about failed steps.
    pub rules: Rules,
    /// `[realms.<name>.supervisor]`: the same in realms that have rules of their own.
    pub realm_rules: BTreeMap<RealmId, Rules>,
    /// Where the rules of both stand.
    pub rule_places: RulePlaces,
    /// `[events.sinks.<name>]`.
    pub sinks: Vec<SinkEntry>,
    /// `[auth.issuers.<name>]`.
    pub issuers: Vec<IssuerEntry>,
    /// `[audit]`.
    pub audit: AuditConfig,
    /// `[inbox]`.
    pub inbox: InboxConfig,
    /// `session_ttl_ms` of `[realms.<name>]`, where one is written.
    pub session_ttls: BTreeMap<RealmId, u64>,
    /// The rest of `[realms.<name>]`: every realm that is written.
    pub realms: BTreeMap<RealmId, RealmSettings>,
    /// What is written and has no effect any more.
    pub warnings: Vec<Mistake>,
}

/// `[server]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServerConfig {
    /// The address to listen on. One that others can reach has conditions, which are checked when
    /// the server starts.
    #[serde(deserialize_with = "host")]
    pub host: IpAddr,
    /// The port to listen on; 0 lets the system choose.
    pub port: u16,
    /// A variable that names the port instead, where it is set.
    pub port_from: Option<String>,
    /// Names under which others reach us, `wp.example.com` or `wp.example.com:8443`: allowed in
    /// `Host` and `Origin` beside our own loopback names.
    #[serde(deserialize_with = "proxy_names")]
    pub hosts: Vec<String>,
    /// Origins whose pages may call us from a browser, `https://app.example.com`.
    #[serde(deserialize_with = "page_origins")]
    pub origins: Vec<String>,
    /// The address at which people reach us, where a proxy stands in front; else the one that we
    /// listen on. Its host is one of our names too.
    #[serde(deserialize_with = "public_url")]
    pub public_url: Option<PublicUrl>,
    /// Who may administer.
    pub admin: AdminRule,
    /// Who handles TLS, if anyone does.
    #[serde(deserialize_with = "tls")]
    pub tls: Option<TlsConfig>,
}

/// `[mcp]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct McpConfig {
    /// Takes requests of MCP clients that do not keep to their version; `docs/reference/mcp.md`
    /// says which.
    pub lenient: bool,
}

/// `[agents]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct AgentsConfig {
    /// The agent of requests that name none.
    #[serde(deserialize_with = "agent_name")]
    pub default: Option<AgentName>,
}

/// Who may administer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AdminRule {
    /// Everyone who has `WAYPOST_ADMIN_KEY`; where that is not set, everyone on this machine.
    #[default]
    Local,
    /// Only who has `WAYPOST_ADMIN_KEY`.
    Key,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: PORT_DEFAULT,
            port_from: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            public_url: None,
            admin: AdminRule::Local,
            tls: None,
        }
    }
}

impl ServerConfig {
    /// Names under which others reach us.
    pub fn names(&self) -> Vec<String> {
        let public = self.public_url.as_ref().map(|url| url.authority().to_owned());
        self.hosts.iter().cloned().chain(public).collect()
    }

    /// `https` where the server itself handles TLS, else `http`.
    pub fn scheme(&self) -> &'static str {
        match self.tls {
            Some(TlsConfig::Files { .. }) => "https",
            Some(TlsConfig::Proxy { .. }) | None => "http",
        }
    }

    /// Where programs on this machine reach a server with these settings that listens there.
    pub fn local_url(&self, address: SocketAddr) -> String {
        format!("{}://{}", self.scheme(), from_here(address))
    }

    /// Those of them that do not mean this machine: with one of them everybody needs a credential.
    pub fn foreign_names(&self) -> Vec<String> {
        let mut names = self.names();
        names.retain(|name| !is_loopback(&without_port(name).to_ascii_lowercase()));
        names
    }
}

/// A host without its port; an IPv6 address stands in brackets.
fn without_port(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => name,
    }
}

impl Config {
    /// Reads the text of a `waypost.toml`; `file` is how mistakes name it.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Mistake>> {
        Self::layered(&[Layer::file(file, text)])
    }

    /// What these layers say together, key by key; a later one overrides those ahead of it. The
    /// mistakes of all layers are reported, also in what a later one sets again.
    pub fn layered(layers: &[Layer]) -> Result<Self, Vec<Mistake>> {
        let mut trees = Vec::new();
        let mut mistakes = Vec::new();
        let mut warnings = Vec::new();
        for layer in layers {
            match tree(layer, &mut warnings) {
                Ok(tree) => trees.push(tree),
                Err(found) => mistakes.extend(found),
            }
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut merged = SettingsTree::empty();
        for tree in &trees {
            merged.put_over(tree.clone());
        }
        let written: Settings = read(&merged, &[], Owner::Ours, &mut mistakes);
        mistakes.extend(crossed(&trees, &written.limits.0));
        let mut config = written.config(&mut mistakes);
        match rules(&merged, &config.limits) {
            Ok((all, _)) => {
                config.rules.project = all.project;
                config.realm_rules = all.realms;
                config.rule_places = all.places;
            }
            Err(found) => mistakes.extend(found),
        }
        if mistakes.is_empty() { Ok(Config { warnings, ..config }) } else { Err(mistakes) }
    }
}

/// The size of a `waypost.toml`. Real ones have some kilobytes.
const SETTINGS_BYTES_MAX: usize = 128 * 1024;

/// What a layer says, if all of it is right. Whether an entry is whole is known only with all
/// layers.
fn tree(layer: &Layer, warnings: &mut Vec<Mistake>) -> Result<SettingsTree, Vec<Mistake>> {
    let bytes = layer.text.len();
    if bytes > SETTINGS_BYTES_MAX {
        let message = format!("the settings have {bytes} bytes, more than {SETTINGS_BYTES_MAX}");
        let mistake = Mistake::error(message).hint("remove what is not needed");
        return Err(vec![layer.locator().of(None).mistake(mistake)]);
    }
    let tree = SettingsTree::of_toml(layer).map_err(|mistake| vec![mistake])?;
    let mut mistakes = Vec::new();
    let written: Settings = read(&tree, &[], Owner::Ours, &mut mistakes);
    mistakes.extend(written.wrong_patterns());
    mistakes.extend(written.wrong_limits(&tree));
    match rules(&tree, &written.limits.0.kernel) {
        Ok((_, found)) => warnings.extend(found),
        Err(found) => mistakes.extend(found),
    }
    mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
    if mistakes.is_empty() { Ok(tree) } else { Err(mistakes) }
}

/// The settings as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Settings {
    server: Kept<ServerConfig>,
    limits: Kept<SettableLimits>,
    tools: Kept<ToolSettings>,
    mcp: Kept<McpSettings>,
    a2a: Kept<A2aSettings>,
    providers: Kept<Each<ProviderKeys>>,
    models: Kept<Each<ModelKeys>>,
    agents: Kept<AgentsConfig>,
    policy: Kept<PolicyConfig>,
    supervisor: Kept<SupervisorKeys>,
    events: Kept<EventSettings>,
    auth: Kept<AuthSettings>,
    realms: Kept<Each<RealmKeys>>,
    audit: Kept<AuditConfig>,
    inbox: Kept<InboxConfig>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolSettings {
    #[serde(deserialize_with = "allowed_tools")]
    allow: Option<Vec<Pattern>>,
    #[serde(deserialize_with = "patterns")]
    deny: Vec<Pattern>,
    demo: bool,
    /// By pattern.
    limits: Kept<Each<ToolLimits>>,
    http: Kept<ToolHttp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ToolHttp {
    #[serde(deserialize_with = "hosts")]
    allow: HttpSettings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct McpSettings {
    lenient: bool,
    servers: Kept<Each<ServerKeys>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EventSettings {
    sinks: Kept<Each<SinkKeys>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AuthSettings {
    issuers: Kept<Each<IssuerKeys>>,
}

impl Settings {
    /// Limits of tools under names that are no patterns.
    fn wrong_patterns(&self) -> Vec<Mistake> {
        let names = self.tools.0.limits.0.0.iter().map(|(name, _)| name);
        let wrong = names.filter_map(|name| Some((name, pattern(&name.text).err()?)));
        wrong.map(|(name, mistake)| name.mistake(mistake)).collect()
    }

    /// Limits with values that they cannot have, also where a realm or a tool has its own. Which
    /// of two may be the larger one is known only with all layers.
    fn wrong_limits(&self, tree: &SettingsTree) -> Vec<Mistake> {
        let alone = self.limits.0.check().into_iter().filter(|bad| bad.bounded_by.is_none());
        let mut found: Vec<_> = alone.map(|bad| (vec!["limits", bad.name], bad)).collect();
        for (realm, own) in &self.realms.0.0 {
            let ttl_ms = own.value.session_ttl_ms;
            let bad = ttl_ms.and_then(|ms| Limits::check_one("session_ttl_ms", ms));
            found.extend(bad.map(|bad| (vec!["realms", realm.text.as_str(), bad.name], bad)));
        }
        for (pattern, own) in &self.tools.0.limits.0.0 {
            let timeout =
                own.value.timeout_ms.map(|ms| ("timeout_ms", "call_timeout_ms", ms.get()));
            let bytes = own.value.output_bytes.map(|most| most.get() as u64);
            let bytes = bytes.map(|most| ("output_bytes", "call_output_bytes_max", most));
            let failures = own.value.breaker_failures.map(|most| u64::from(most.get()));
            let failures = failures.map(|most| ("breaker_failures", "breaker_failures", most));
            for (name, limit, value) in timeout.into_iter().chain(bytes).chain(failures) {
                let bad = Limits::check_one(limit, value).map(|bad| OutOfRange { name, ..bad });
                let path = vec!["tools", "limits", pattern.text.as_str(), name];
                found.extend(bad.map(|bad| (path, bad)));
            }
        }
        let told = |(path, bad): &(Vec<&str>, OutOfRange)| {
            let place = tree.at(path).map(|value| &value.place);
            place.map_or_else(|| out_of_range(bad), |place| place.mistake(out_of_range(bad)))
        };
        found.iter().map(told).collect()
    }

    /// What holds, and the mistakes in entries that are not whole.
    fn config(self, mistakes: &mut Vec<Mistake>) -> Config {
        let tools = self.tools.0;
        let mcp = self.mcp.0;
        let limits = |(name, limits): (Text, Located<ToolLimits>)| {
            Some((pattern(&name.text).ok()?, limits.value))
        };
        let server = |name: &Text, table: Located<ServerKeys>| {
            Entry::new(name, KeyTable::Server, table.value.0)
        };
        let provider = |name: &Text, table: Located<ProviderKeys>| {
            Entry::new(name, KeyTable::Provider, table.value.0)
        };
        let agent = |name: &Text, table: Located<AgentKeys>| {
            Entry::new(name, KeyTable::Agent, table.value.0)
        };
        let mut upstreams = mcp.servers.0.build(mistakes, server);
        upstreams.extend(self.providers.0.build(mistakes, provider));
        let SettableLimits { kernel, a2a: a2a_limits } = self.limits.0;
        let mut a2a = self.a2a.0;
        upstreams.extend(std::mem::take(&mut a2a.agents.0).build(mistakes, agent));
        let models = self.models.0.build(mistakes, ModelEntry::new);
        let mut sinks = self.events.0.sinks.0.build(mistakes, SinkEntry::new);
        sinks.sort_by(|left, right| left.name.cmp(&right.name));
        let has_public_url = self.server.0.public_url.is_some();
        let issuers = issuers(self.auth.0.issuers.0, has_public_url, mistakes);
        let ttl = |(name, realm): &(Text, Located<RealmKeys>)| {
            Some((RealmId::from(name.text.as_str()), realm.value.session_ttl_ms?))
        };
        let session_ttls = self.realms.0.0.iter().filter_map(ttl).collect();
        Config {
            server: self.server.0,
            limits: kernel,
            tools: ToolRules {
                allow: tools.allow,
                deny: tools.deny,
                tools: tools.limits.0.0.into_iter().filter_map(limits).collect(),
            },
            built_in: BuiltInSettings { demo: tools.demo, http: tools.http.0.allow },
            mcp: McpConfig { lenient: mcp.lenient },
            a2a: A2aServing { limits: a2a_limits, ..a2a.serving() },
            upstreams,
            models,
            agents: self.agents.0,
            policy: self.policy.0,
            rules: Rules { built_in: self.supervisor.0.builtin, ..Rules::default() },
            realm_rules: BTreeMap::new(),
            rule_places: RulePlaces::default(),
            sinks,
            issuers,
            audit: self.audit.0,
            inbox: self.inbox.0,
            session_ttls,
            realms: realms(self.realms.0, mistakes),
            warnings: Vec::new(),
        }
    }
}

/// Limits that contradict each other once all layers are merged; each is reported where the last of
/// the two was set.
fn crossed(trees: &[SettingsTree], limits: &SettableLimits) -> Vec<Mistake> {
    let told = |bad: &OutOfRange| {
        let names = || std::iter::once(bad.name).chain(bad.bounded_by);
        let last = |tree: &SettingsTree| {
            names().find_map(|name| Some(tree.at(&["limits", name])?.place.clone()))
        };
        let place = trees.iter().rev().find_map(last);
        // One of both is set: the defaults fit each other.
        place.map_or_else(|| out_of_range(bad), |place| place.mistake(out_of_range(bad)))
    };
    limits.check().iter().map(told).collect()
}

fn out_of_range(bad: &OutOfRange) -> Mistake {
    Mistake::error(bad.to_string()).hint(bad.hint())
}

fn pattern(text: &str) -> Result<Pattern, Mistake> {
    Pattern::new(text).map_err(|bad| Mistake::error(bad.to_string()))
}

fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pattern>, D::Error> {
    checked_list(deserializer, pattern)
}

fn allowed_tools<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<Pattern>>, D::Error> {
    patterns(deserializer).map(Some)
}

/// A text that an agent can have for its name.
fn agent_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AgentName>, D::Error> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let name = checked(deserializer, |text| {
        if !text.is_empty() && text.chars().all(fits) {
            return Ok(AgentName::from(text));
        }
        let what = format!("`{text}` cannot be the name of an agent");
        Err(Mistake::error(what).hint("write an agent's `refName`"))
    });
    name.map(Some)
}

fn host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IpAddr, D::Error> {
    checked(deserializer, |text| {
        address(text).ok_or_else(|| {
            Mistake::error(format!("`{text}` is not an address"))
                .hint("write `127.0.0.1`, `::1`, or another address of this machine")
        })
    })
}

fn address(text: &str) -> Option<IpAddr> {
    match text {
        "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        text => text.parse::<IpAddr>().ok(),
    }
}

fn proxy_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    checked_list(deserializer, |text| {
        if !text.is_empty() && text.chars().all(fits) {
            return Ok(text.to_owned());
        }
        Err(Mistake::error(format!("`{text}` is not a host"))
            .hint("write `wp.example.com` or `wp.example.com:8443`, without `http://`"))
    })
}

fn public_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PublicUrl>, D::Error> {
    let url = checked(deserializer, |text| {
        PublicUrl::parse(text).map_err(|what| {
            Mistake::error(format!("`public_url` {what}"))
                .hint("write it as `https://wp.example.com`, the address that your proxy serves")
        })
    });
    url.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> Vec<String> {
        let mistakes = Config::parse("waypost.toml", text).unwrap_err();
        mistakes.iter().map(Mistake::to_string).collect()
    }

    #[test]
    fn an_empty_file_means_the_defaults() {
        assert_eq!(Config::parse("waypost.toml", ""), Ok(Config::default()));
        assert_eq!(Config::default().server.port, PORT_DEFAULT);
    }

    #[test]
    fn every_setting_is_read() {
        let text = "[server]\nhost = \"::1\"\nport = 0\nhosts = [\"wp.test\"]\nadmin = \"key\"\n\
                    [limits]\nbody_depth_max = 8\n[tools]\ndemo = true\n\
                    [tools.http]\nallow = [\"a.test:80\"]\n[mcp]\nlenient = true\n";
        let config = Config::parse("waypost.toml", text).unwrap();
        assert_eq!(config.server.host, "::1".parse::<IpAddr>().unwrap());
        assert_eq!(config.server.port, 0);
        assert_eq!(config.server.hosts, ["wp.test"]);
        assert_eq!(config.server.admin, AdminRule::Key);
        assert_eq!(config.limits.body_depth_max, 8);
        assert_eq!(config.limits.body_bytes_max, Limits::default().body_bytes_max);
        assert_eq!(config.built_in.http, HttpSettings::new(&["a.test:80"]).unwrap());
        assert!(config.built_in.demo && !Config::default().built_in.demo);
        assert!(config.mcp.lenient && !Config::default().mcp.lenient);
        assert_eq!(
            mistakes("[mcp]\nleniant = true\n"),
            ["waypost.toml:2:1: error: unknown key `leniant` in `[mcp]`; \
              hint: did you mean `lenient`?"]
        );
    }

    #[test]
    fn rules_for_failed_steps_are_read_with_their_positions() {
        let text = "[supervisor]\nbuiltin = false\n\
                    on_error = [{ when = { error = \"Boom\" }, retry = { factor = 1.5 } }, \"ask\"]\n";
        let rules = Config::parse("waypost.toml", text).unwrap().rules;
        assert_eq!((rules.built_in, rules.project.len()), (false, 2));
        assert!(Config::default().rules.built_in);
        let told = mistakes("[supervisor]\non_error = [\"maybe\"]\n");
        let expected = "waypost.toml:2:13: error: a rule cannot be `maybe`";
        assert!(told[0].starts_with(expected), "{told:?}");
        let text = "[realms.shop.supervisor]\nbuiltin = false\non_error = [\"fail\"]\n";
        let config = Config::parse("waypost.toml", text).unwrap();
        let own = &config.realm_rules[&RealmId::from("shop")];
        assert_eq!((own.built_in, own.project.len(), config.rules.project.len()), (false, 1, 0));
        let told = mistakes("[realms.shop.supervisor]\non_error = [\"maybe\"]\n");
        assert!(told[0].contains("a rule cannot be `maybe`"), "{told:?}");
        let told = mistakes("[supervisor]\non_eror = []\n");
        assert!(told[0].contains("did you mean `on_error`?"), "{told:?}");
    }

    #[test]
    fn unknown_keys_are_reported_with_their_line() {
        let text = "[server]\nprot = 1\n\n[limits]\nbody_byte_max = 1\n[modles]\n";
        assert_eq!(
            mistakes(text),
            [
                "waypost.toml:2:1: error: unknown key `prot` in `[server]`; \
                 hint: did you mean `port`?",
                "waypost.toml:5:1: error: unknown key `body_byte_max` in `[limits]`; \
                 hint: did you mean `body_bytes_max`?",
                "waypost.toml:6:2: error: unknown key `modles`; hint: did you mean `models`?",
            ]
        );
    }

    #[test]
    fn an_agent_is_the_one_of_requests_that_name_none() {
        let config = Config::parse("waypost.toml", "[agents]\ndefault = \"assistant\"\n").unwrap();
        assert_eq!(config.agents.default, Some(AgentName::from("assistant")));
        assert_eq!(Config::default().agents.default, None);
        let told = mistakes("[agents]\ndefault = \"a b\"\n");
        assert!(told[0].starts_with("waypost.toml:2:11: error: `a b` cannot be"), "{told:?}");
        let told = mistakes("[agents]\ndefalt = \"a\"\n[rooms]\n");
        assert!(told[0].contains("unknown key `defalt` in `[agents]`"), "{told:?}");
        assert!(
            told[1].ends_with("policy, supervisor, events, auth, realms, audit, inbox"),
            "{told:?}"
        );
    }

    #[test]
    fn a_realm_has_settings_of_its_own() {
        let text = "[realms.shop]\nsession_ttl_ms = 60000\n[realms.other]\n";
        let config = Config::parse("waypost.toml", text).unwrap();
        assert_eq!(config.realms.len(), 2);
        assert_eq!(config.session_ttls, BTreeMap::from([(RealmId::from("shop"), 60_000)]));
        assert_eq!(
            mistakes("[realms.shop]\nsession_tll_ms = 1\n"),
            ["waypost.toml:2:1: error: unknown key `session_tll_ms` in `[realms.shop]`; \
              hint: did you mean `session_ttl_ms`?"]
        );
        assert_eq!(
            mistakes("[realms]\nshop = 1\n"),
            ["waypost.toml:2:8: error: `shop` must be a table, and is a number"]
        );
    }

    #[test]
    fn layers_are_merged_key_by_key_and_a_list_is_replaced() {
        let below = "[server]\nport = 1\nhosts = [\"a.test\", \"b.test\"]\n\
                     [limits]\nbody_depth_max = 8\n[realms.shop]\nsession_ttl_ms = 5\n";
        let above = "[server]\nhosts = [\"c.test\"]\n[limits]\nbody_bytes_max = 9\n\
                     [realms.bar]\nsession_ttl_ms = 6\n";
        let layers = [Layer::file("below.toml", below), Layer::file("above.toml", above)];
        let config = Config::layered(&layers).unwrap();
        assert_eq!((config.server.port, config.server.hosts), (1, vec!["c.test".to_owned()]));
        assert_eq!((config.limits.body_depth_max, config.limits.body_bytes_max), (8, 9));
        let ttls = [(RealmId::from("bar"), 6), (RealmId::from("shop"), 5)];
        assert_eq!(config.session_ttls, BTreeMap::from(ttls));
        assert_eq!(Config::layered(&[]), Ok(Config::default()));
    }

    #[test]
    fn mistakes_of_all_layers_are_reported_with_their_position() {
        // Also in what is set again further up: it would come to light on another day.
        let layers = [
            Layer::file("below.toml", "[server]\nport = \"x\"\n"),
            Layer::file("above.toml", "[server]\nport = 1\n\nprot = 2\n"),
        ];
        let found = Config::layered(&layers).unwrap_err();
        let told: Vec<String> = found.iter().map(Mistake::to_string).collect();
        assert_eq!(
            told,
            [
                "below.toml:2:8: error: `port` must be a whole number from 0 to 65535, and is a \
                 text",
                "above.toml:4:1: error: unknown key `prot` in `[server]`; \
                 hint: did you mean `port`?",
            ]
        );
    }

    #[test]
    fn a_limit_out_of_its_range_is_reported_with_its_line() {
        assert_eq!(
            mistakes(
                "[limits]\nsession_queue_max = 0\n[realms.shop]\n\
                 session_ttl_ms = 99999999999999\n[tools.limits.\"a.*\"]\n\
                 timeout_ms = 86400001\noutput_bytes = 2147483648\n"
            ),
            [
                "waypost.toml:2:21: error: `session_queue_max` = 0 is out of range: it can be 1 to \
                 65536; hint: write a whole number from 1 to 65536",
                "waypost.toml:4:18: error: `session_ttl_ms` = 99999999999999 is out of range: it \
                 can be 0 to 3153600000000; hint: write a whole number from 0 to 3153600000000",
                "waypost.toml:6:14: error: `timeout_ms` = 86400001 is out of range: it can be 1 to \
                 86400000; hint: write a whole number from 1 to 86400000",
                "waypost.toml:7:16: error: `output_bytes` = 2147483648 is out of range: it can be \
                 1 to 1073741824; hint: write a whole number from 1 to 1073741824",
            ]
        );
    }

    #[test]
    fn a_limit_that_cannot_be_set_is_a_mistake_like_a_misspelt_one() {
        let told = mistakes("[limits]\nrpc_batch_max = 5\nrun_calls_mox = 5\n");
        assert!(told[0].starts_with("waypost.toml:2:1: error: unknown key `rpc_batch_max`"));
        assert!(told[1].ends_with("hint: did you mean `run_calls_max`?"), "{told:?}");
    }

    #[test]
    fn contradicting_limits_are_reported_where_the_last_was_set() {
        let below = Layer::file("below.toml", "[limits]\nrun_wait_ms_max = 20\n");
        let above = Layer::file("above.toml", "\n[limits]\nrun_wait_ms = 30\n");
        let told = |layers: &[Layer]| -> Vec<String> {
            let found = Config::layered(layers).err().unwrap_or_default();
            found.iter().map(Mistake::to_string).collect()
        };
        let what = "is more than `run_wait_ms_max` = 20; \
                    hint: lower `run_wait_ms`, or raise `run_wait_ms_max`";
        assert_eq!(
            told(&[below.clone(), above]),
            [format!("above.toml:3:15: error: `run_wait_ms` = 30 {what}")]
        );
        assert_eq!(
            told(std::slice::from_ref(&below)),
            [format!("below.toml:2:19: error: `run_wait_ms` = 30000 {what}")]
        );
        let fits = Layer::file("above.toml", "[limits]\nrun_wait_ms = 20\n");
        assert_eq!(told(&[below, fits]), Vec::<String>::new());
    }

    #[test]
    fn tools_have_rules() {
        let text = "[tools]\nallow = [\"*\"]\ndeny = [\"http::*\"]\n\
                    [tools.limits.\"math::add\"]\nconcurrency = 4\nper_minute = 60\n\
                    timeout_ms = 10000\noutput_bytes = 1048576\nbreaker_failures = 3\n\
                    [tools.limits.\"trade/*\"]\n";
        let rules = Config::parse("waypost.toml", text).unwrap().tools;
        assert!(rules.allows("math::add") && !rules.allows("http::request"));
        let limits = rules.limits("math::add");
        assert_eq!(limits.concurrency.unwrap().get(), 4);
        assert_eq!(limits.per_minute.unwrap().get(), 60);
        assert_eq!(limits.timeout_ms.unwrap().get(), 10_000);
        assert_eq!(limits.output_bytes.unwrap().get(), 1_048_576);
        assert_eq!(limits.breaker_failures.unwrap().get(), 3);
        assert_eq!(rules.limits("trade/settle"), ToolLimits::default());
        let nothing = Config::parse("waypost.toml", "[tools]\nallow = []\n").unwrap().tools;
        assert!(!nothing.allows("math::add"));
    }

    #[test]
    fn wrong_rules_are_reported_with_their_line() {
        let text = "[tools]\nalow = [\"*\"]\n[tools.limits.\"math::*\"]\nper_minut = 1\n\
                    [tools.limits.\"a?\"]\n";
        let told = mistakes(text);
        assert!(
            told.contains(
                &"waypost.toml:2:1: error: unknown key `alow` in `[tools]`; \
              hint: did you mean `allow`?"
                    .to_owned()
            )
        );
        assert!(told.contains(
            &"waypost.toml:4:1: error: unknown key `per_minut` in `[tools.limits.\"math::*\"]`; \
              hint: did you mean `per_minute`?"
                .to_owned()
        ));
        let at_the_name = |line: &String| line.starts_with("waypost.toml:5:1");
        assert!(told.iter().any(|line| at_the_name(line) && line.contains("`a?` has a `?`")));
        assert_eq!(told.len(), 3, "{told:?}");
        let told = mistakes("[tools]\nallow = [\"math::*\", \"\"]\n");
        assert!(told[0].starts_with("waypost.toml:2:21: error: a pattern of tools"), "{told:?}");
        let told = mistakes("[tools]\nallow = []\ndeny = [\"a b\"]\n");
        assert!(told[0].starts_with("waypost.toml:3:9: error: `a b` has a ` `"), "{told:?}");
        assert_eq!(
            mistakes("[tools.limits.\"*\"]\nconcurrency = 0\n"),
            ["waypost.toml:2:15: error: `concurrency` must be a whole number from 1 on, and is 0"]
        );
    }

    #[test]
    fn wrong_values_are_reported_with_their_line() {
        assert_eq!(
            mistakes("[server]\nport = 65536\n[mcp]\nlenient = \"yes\"\n"),
            [
                "waypost.toml:2:8: error: `port` must be a whole number from 0 to 65535, and is \
                 65536",
                "waypost.toml:4:11: error: `lenient` must be true or false, and is a text",
            ]
        );
        assert_eq!(
            mistakes("[server]\nadmin = \"locl\"\n"),
            ["waypost.toml:2:9: error: `admin` cannot be `locl`; hint: did you mean `local`?"]
        );
        let told = mistakes("[server]\nhost = \"a.test\"\n[tools.http]\nallow = [\"*\"]\n");
        assert!(told[0].contains("waypost.toml:2:8: error: `a.test` is not an addr"), "{told:?}");
        assert!(told[1].contains("waypost.toml:4:10: error: `*` is not a host"), "{told:?}");
        let told = mistakes("[server\n");
        assert!(told[0].starts_with("waypost.toml:1:"), "{told:?}");
    }

    #[test]
    fn a_server_is_reached_from_its_own_machine_with_or_without_tls() {
        let url = |text: &str, address: &str| {
            let server = Config::parse("waypost.toml", text).unwrap().server;
            server.local_url(address.parse().unwrap())
        };
        let files = "[server.tls]\ncertificate = \"a\"\nkey = \"b\"\n";
        let proxy = "[server.tls]\nby = \"proxy\"\n";
        assert_eq!(url("", "127.0.0.1:1"), "http://127.0.0.1:1");
        assert_eq!(url(proxy, "10.0.0.7:1"), "http://10.0.0.7:1");
        assert_eq!(url(files, "0.0.0.0:1"), "https://127.0.0.1:1");
        assert_eq!(url(files, "[::]:1"), "https://[::1]:1");
        let open = Config::parse("waypost.toml", "[server]\nhost = \"0.0.0.0\"\n").unwrap();
        assert_eq!(open.server.host, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    }

    #[test]
    fn origins_are_exact_and_have_no_path() {
        let text = "[server]\norigins = [\"https://App.example.com\", \"http://localhost:3000\"]\n";
        let server = Config::parse("waypost.toml", text).unwrap().server;
        assert_eq!(server.origins, ["https://app.example.com", "http://localhost:3000"]);
        for wrong in ["*", "null", "app.example.com", "https://", "https://a.test/", "ftp://a.test"]
        {
            let told = mistakes(&format!("[server]\norigins = [\"{wrong}\"]\n"));
            assert!(told[0].contains("is not an origin"), "{wrong}: {told:?}");
        }
    }

    #[test]
    fn names_of_this_machine_let_nobody_else_in() {
        let text = "[server]\npublic_url = \"http://127.0.0.1:9000\"\n\
                    hosts = [\"localhost:3000\", \"[::1]:1\", \"LOCALHOST\", \"a.test:1\"]\n";
        let server = Config::parse("waypost.toml", text).unwrap().server;
        assert_eq!(server.foreign_names(), ["a.test:1"]);
    }

    #[test]
    fn a_public_address_is_one_of_our_names() {
        let text = "[server]\nhosts = [\"a.test\"]\npublic_url = \"https://wp.test:8443/x/\"\n";
        let server = Config::parse("waypost.toml", text).unwrap().server;
        assert_eq!(server.names(), ["a.test", "wp.test:8443"]);
        assert_eq!(
            mistakes("[server]\npublic_url = \"http://u:hunter2@wp.test\"\n"),
            ["waypost.toml:2:14: error: `public_url` has no host, or a user before it; \
                 hint: write it as `https://wp.example.com`, the address that your proxy serves"]
        );
        let told = mistakes("[server]\npublic_url = \"http://wp.test\"\n");
        assert!(told[0].contains("is not safe from listeners"), "{told:?}");
        let told = mistakes("[server]\npublic_ulr = \"https://wp.test\"\n");
        assert!(told[0].ends_with("did you mean `public_url`?"), "{told:?}");
    }
}
