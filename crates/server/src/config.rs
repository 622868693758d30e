//! `waypost.toml`, and the layers around it: what an operator can set. An unknown key is an error
//! with its line and the key that was most likely meant: a setting that is silently ignored is
//! worse than none.

use crate::event_sinks::{SinkEntry, WrittenSinks};
use crate::layer::{Layer, merge};
use crate::models::{ModelEntry, Models};
use crate::ranges::{crossed, out_of_range};
use crate::upstreams::{Entry, Sections};
use kernel::ids::{AgentName, RealmId};
use kernel::limits::{Limits, OutOfRange};
use kernel::plan::mistake::{Mistake, meant};
use kernel::rules::{Pattern, ToolLimits, ToolRules};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use toml::de::DeTable;
use toml::{Deserializer, Spanned};
use tools::HttpSettings;

pub use crate::public_url::PublicUrl;

/// The port that `up` listens on unless told otherwise.
pub const PORT_DEFAULT: u16 = 8420;

/// The keys of `[server]`.
pub const SERVER_KEYS: &[&str] = &["host", "port", "hosts", "public_url", "admin"];

/// What the settings say, with defaults for the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    /// `[server]`.
    pub server: ServerConfig,
    /// `[limits]`.
    pub limits: Limits,
    /// `[tools]`: which tools there are, and what they may cost.
    pub tools: ToolRules,
    /// `[tools.http]`.
    pub http: HttpSettings,
    /// `[mcp]`.
    pub mcp: McpConfig,
    /// `[mcp.servers.<name>]` and `[providers.<name>]`.
    pub upstreams: Vec<Entry>,
    /// `[models.<name>]`.
    pub models: Vec<ModelEntry>,
    /// `[agents]`.
    pub agents: AgentsConfig,
    /// `[events.sinks.<name>]`.
    pub sinks: Vec<SinkEntry>,
    /// `session_ttl_ms` of `[realms.<name>]`, where one is written.
    pub session_ttls: BTreeMap<RealmId, u64>,
}

/// `[server]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// The address to listen on; a loopback one.
    pub host: IpAddr,
    /// The port to listen on; 0 lets the system choose.
    pub port: u16,
    /// Names under which a proxy serves us, `wp.example.com` or `wp.example.com:8443`: allowed in
    /// `Host` and `Origin` beside our own loopback names.
    pub hosts: Vec<String>,
    /// The address at which people reach us, where a proxy stands in front; else the one that we
    /// listen on. Its host is one of our names too.
    pub public_url: Option<PublicUrl>,
    /// Who may administer.
    pub admin: AdminRule,
}

/// `[mcp]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct McpConfig {
    /// Takes requests of MCP clients that do not keep to their version; `docs/reference/mcp.md`
    /// says which.
    pub lenient: bool,
}

/// `[agents]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentsConfig {
    /// The agent of requests that name none.
    pub default: Option<AgentName>,
}

/// Who may administer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AdminRule {
    /// Whoever has `WAYPOST_ADMIN_KEY`; where that is not set, everyone on this machine.
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
            hosts: Vec::new(),
            public_url: None,
            admin: AdminRule::Local,
        }
    }
}

impl ServerConfig {
    /// Names under which a proxy serves us.
    pub fn names(&self) -> Vec<String> {
        let public = self.public_url.as_ref().map(|url| url.authority().to_owned());
        self.hosts.iter().cloned().chain(public).collect()
    }
}

impl Config {
    /// Reads the text of a `waypost.toml`; `file` is how mistakes name it.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Mistake>> {
        Self::layered(&[Layer::file(file, text)])
    }

    /// What these layers say together, key by key; a later one goes before those ahead of it. All
    /// mistakes are told, each where it stands, also in what a later layer sets again.
    pub fn layered(layers: &[Layer]) -> Result<Self, Vec<Mistake>> {
        let (mut merged, mut sections) = (DeTable::new(), Sections::default());
        let (mut models, mut sinks) = (Models::default(), WrittenSinks::default());
        let mut mistakes = Vec::new();
        for layer in layers {
            match (Reader { layer }).table() {
                Ok((table, of_layer, its_models, its_sinks)) => {
                    sections.put_over(of_layer);
                    models.put_over(its_models);
                    sinks.put_over(its_sinks);
                    merge(&mut merged, table);
                }
                Err(found) => mistakes.extend(found),
            }
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let merged = Deserializer::from(Spanned::new(0..0, merged));
        // Cannot fail: each layer was read alone, and what is set twice is of the same shape.
        let written = Written::deserialize(merged)
            .map_err(|error| vec![Mistake::error(error.message().to_owned())])?;
        let mut config = config(written)?;
        mistakes.extend(crossed(layers, &config.limits));
        config.upstreams = kept(sections.entries(), &mut mistakes);
        config.models = kept(models.entries(), &mut mistakes);
        config.sinks = kept(sinks.entries(), &mut mistakes);
        if mistakes.is_empty() { Ok(config) } else { Err(mistakes) }
    }
}

/// What was read; nothing where there are mistakes, which are kept.
fn kept<T>(read: Result<Vec<T>, Vec<Mistake>>, mistakes: &mut Vec<Mistake>) -> Vec<T> {
    read.unwrap_or_else(|found| {
        mistakes.extend(found);
        Vec::new()
    })
}

/// The settings as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Written {
    server: WrittenServer,
    limits: Limits,
    tools: WrittenTools,
    mcp: McpConfig,
    agents: WrittenAgents,
    realms: BTreeMap<String, WrittenRealm>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenAgents {
    default: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenRealm {
    session_ttl_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenServer {
    host: Option<Spanned<String>>,
    port: Option<u16>,
    hosts: Vec<Spanned<String>>,
    public_url: Option<Spanned<String>>,
    admin: AdminRule,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenTools {
    allow: Option<Vec<Spanned<String>>>,
    deny: Vec<Spanned<String>>,
    /// By pattern.
    limits: BTreeMap<String, ToolLimits>,
    http: WrittenHttp,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenHttp {
    allow: Vec<Spanned<String>>,
}

/// The keys of each table, by its path.
fn known_keys(table: &str) -> Option<&'static [&'static str]> {
    match table {
        "" => Some(&[
            "server",
            "limits",
            "tools",
            "mcp",
            "providers",
            "models",
            "agents",
            "events",
            "realms",
        ]),
        "server" => Some(SERVER_KEYS),
        "limits" => Some(Limits::NAMES),
        "tools" => Some(&["allow", "deny", "limits", "http"]),
        "tools.http" => Some(&["allow"]),
        "mcp" => Some(&["lenient", "servers"]),
        "agents" => Some(&["default"]),
        "events" => Some(&["sinks"]),
        _ => None,
    }
}

/// The keys of `[realms.<name>]`.
const REALM_KEYS: &[&str] = &["session_ttl_ms"];

/// Reads one layer, and says where in it a mistake is.
struct Reader<'a> {
    layer: &'a Layer,
}

/// The size of a `waypost.toml`. Real ones have some kilobytes, and reading one takes more than
/// twice as long when it is twice as large.
const SETTINGS_BYTES_MAX: usize = 128 * 1024;

impl<'a> Reader<'a> {
    /// The layer's table and what it says of upstreams, models and sinks, if all of it is right.
    fn table(&self) -> Result<(DeTable<'a>, Sections, Models, WrittenSinks), Vec<Mistake>> {
        let text = self.layer.text.as_str();
        if text.len() > SETTINGS_BYTES_MAX {
            let message =
                format!("the settings have {} bytes, more than {SETTINGS_BYTES_MAX}", text.len());
            let mistake = Mistake::error(message).hint("remove what is not needed");
            return Err(vec![self.layer.found(None, mistake)]);
        }
        let table = DeTable::parse(text).map_err(|error| vec![self.unreadable(&error)])?;
        let mut mistakes = Vec::new();
        self.unknown_keys(table.get_ref(), "", &mut mistakes);
        let sections = Sections::of(self.layer, table.get_ref(), &mut mistakes);
        let models = Models::of(self.layer, table.get_ref(), &mut mistakes);
        let sinks = WrittenSinks::of(self.layer, table.get_ref(), &mut mistakes);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let written: Written =
            toml::from_str(text).map_err(|error| vec![self.unreadable(&error)])?;
        self.wrong_values(&written, &mut mistakes);
        mistakes.extend(self.wrong_limits(&written, table.get_ref()));
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Ok((table.into_inner(), sections, models, sinks))
    }

    fn unknown_keys(&self, table: &DeTable<'_>, path: &str, mistakes: &mut Vec<Mistake>) {
        if path == "realms" {
            self.unknown_keys_of_realms(table, mistakes);
        } else if path == "tools.limits" {
            self.unknown_keys_of_tool_limits(table, mistakes);
        } else if let Some(known) = known_keys(path) {
            self.keys_beside(table, (path, known), mistakes);
        }
    }

    /// A realm may have any name; what stands in its table may not.
    fn unknown_keys_of_realms(&self, realms: &DeTable<'_>, mistakes: &mut Vec<Mistake>) {
        for (name, realm) in realms {
            if let Some(table) = realm.get_ref().as_table() {
                let path = format!("realms.{}", name.get_ref());
                self.keys_beside(table, (&path, REALM_KEYS), mistakes);
            }
        }
    }

    /// Any pattern of tools may have limits; what stands in its table may not be anything.
    fn unknown_keys_of_tool_limits(&self, limits: &DeTable<'_>, mistakes: &mut Vec<Mistake>) {
        for (pattern, written) in limits {
            let name: &str = pattern.get_ref();
            if let Err(bad) = Pattern::new(name) {
                mistakes.push(self.at(pattern.span(), Mistake::error(bad.to_string())));
            }
            if let Some(table) = written.get_ref().as_table() {
                let path = format!("tools.limits.\"{name}\"");
                self.keys_beside(table, (&path, ToolLimits::NAMES), mistakes);
            }
        }
    }

    fn keys_beside(
        &self,
        table: &DeTable<'_>,
        (path, known): (&str, &[&str]),
        mistakes: &mut Vec<Mistake>,
    ) {
        for (key, value) in table {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let place = if path.is_empty() { String::new() } else { format!(" in `[{path}]`") };
                let hint = meant(name, known.iter().copied())
                    .unwrap_or_else(|| format!("known here: {}", known.join(", ")));
                let mistake = Mistake::error(format!("unknown key `{name}`{place}")).hint(hint);
                mistakes.push(self.at(key.span(), mistake));
            } else if let Some(inner) = value.get_ref().as_table() {
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                self.unknown_keys(inner, &path, mistakes);
            }
        }
    }

    fn wrong_values(&self, written: &Written, mistakes: &mut Vec<Mistake>) {
        mistakes.extend(written.server.host.as_ref().and_then(|host| self.wrong_host(host)));
        for entry in &written.tools.http.allow {
            if let Err(bad) = HttpSettings::new(&[entry.get_ref()]) {
                mistakes.push(self.at(entry.span(), Mistake::error(bad.to_string())));
            }
        }
        mistakes.extend(written.server.hosts.iter().filter_map(|name| self.proxy_name(name)));
        let public_url = written.server.public_url.as_ref();
        mistakes.extend(public_url.and_then(|url| self.wrong_public_url(url)));
        self.wrong_patterns(&written.tools, mistakes);
        mistakes.extend(written.agents.default.as_ref().and_then(|name| self.no_agent(name)));
    }

    /// Limits with values that they cannot have, also where a realm or a tool has its own. Which
    /// of two may be the larger one is known only with all layers.
    fn wrong_limits(&self, written: &Written, table: &DeTable<'_>) -> Vec<Mistake> {
        let alone = written.limits.check().into_iter().filter(|bad| bad.bounded_by.is_none());
        let mut found: Vec<_> = alone.map(|bad| (vec!["limits", bad.name], bad)).collect();
        for (realm, own) in &written.realms {
            let ttl_ms = own.session_ttl_ms;
            let bad = ttl_ms.and_then(|ms| Limits::check_one("session_ttl_ms", ms));
            found.extend(bad.map(|bad| (vec!["realms", realm.as_str(), bad.name], bad)));
        }
        for (pattern, own) in &written.tools.limits {
            let timeout = own.timeout_ms.map(|ms| ("timeout_ms", "call_timeout_ms", ms.get()));
            let bytes = own.output_bytes.map(|most| most.get() as u64);
            let bytes = bytes.map(|most| ("output_bytes", "call_output_bytes_max", most));
            for (name, limit, value) in timeout.into_iter().chain(bytes) {
                let bad = Limits::check_one(limit, value).map(|bad| OutOfRange { name, ..bad });
                found.extend(bad.map(|bad| (vec!["tools", "limits", pattern.as_str(), name], bad)));
            }
        }
        found.iter().map(|(path, bad)| out_of_range(self.layer, table, path, bad)).collect()
    }

    /// A text that no agent can have for its name.
    fn no_agent(&self, name: &Spanned<String>) -> Option<Mistake> {
        let text = name.get_ref();
        let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if !text.is_empty() && text.chars().all(fits) {
            return None;
        }
        let mistake = Mistake::error(format!("`{text}` cannot be the name of an agent"))
            .hint("write an agent's `refName`");
        Some(self.at(name.span(), mistake))
    }

    /// Patterns of tools that are none.
    fn wrong_patterns(&self, written: &WrittenTools, mistakes: &mut Vec<Mistake>) {
        for text in written.allow.iter().flatten().chain(&written.deny) {
            if let Err(bad) = Pattern::new(text.get_ref()) {
                mistakes.push(self.at(text.span(), Mistake::error(bad.to_string())));
            }
        }
    }

    fn wrong_host(&self, host: &Spanned<String>) -> Option<Mistake> {
        let text = host.get_ref().as_str();
        let mistake = match address(text) {
            Some(address) if address.is_loopback() => return None,
            Some(_) => Mistake::error(format!(
                "`{text}` can be reached from other machines, and nobody is asked who they are"
            ))
            .hint("listen on `127.0.0.1` and let a proxy with a login stand in front"),
            None => Mistake::error(format!("`{text}` is not an address"))
                .hint("write `127.0.0.1` or `::1`"),
        };
        Some(self.at(host.span(), mistake))
    }

    fn proxy_name(&self, name: &Spanned<String>) -> Option<Mistake> {
        let text = name.get_ref();
        let fits = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
        if !text.is_empty() && text.chars().all(fits) {
            return None;
        }
        let mistake = Mistake::error(format!("`{text}` is not a host"))
            .hint("write `wp.example.com` or `wp.example.com:8443`, without `http://`");
        Some(self.at(name.span(), mistake))
    }

    fn wrong_public_url(&self, url: &Spanned<String>) -> Option<Mistake> {
        let what = PublicUrl::parse(url.get_ref()).err()?;
        let mistake = Mistake::error(format!("`public_url` {what}"))
            .hint("write it as `https://wp.example.com`, the address that your proxy serves");
        Some(self.at(url.span(), mistake))
    }

    fn unreadable(&self, error: &toml::de::Error) -> Mistake {
        self.layer.found(error.span().as_ref(), Mistake::error(error.message().to_owned()))
    }

    fn at(&self, span: Range<usize>, mistake: Mistake) -> Mistake {
        self.layer.found(Some(&span), mistake)
    }
}

/// The settings out of what is written; its values were looked at before.
fn config(written: Written) -> Result<Config, Vec<Mistake>> {
    let Written { server, limits, tools, mcp, agents, realms } = written;
    let defaults = ServerConfig::default();
    let rules = tool_rules(&tools);
    let allow: Vec<String> = tools.http.allow.into_iter().map(plain).collect();
    let http = HttpSettings::new(&allow);
    let ttl = |(name, realm): (String, WrittenRealm)| {
        realm.session_ttl_ms.map(|ttl_ms| (RealmId::from(name), ttl_ms))
    };
    Ok(Config {
        server: ServerConfig {
            host: server.host.and_then(|host| address(host.get_ref())).unwrap_or(defaults.host),
            port: server.port.unwrap_or(defaults.port),
            hosts: server.hosts.into_iter().map(plain).collect(),
            public_url: server.public_url.and_then(|url| PublicUrl::parse(url.get_ref()).ok()),
            admin: server.admin,
        },
        limits,
        tools: rules,
        http: http.map_err(|bad| vec![Mistake::error(bad.to_string())])?,
        mcp,
        upstreams: Vec::new(),
        models: Vec::new(),
        sinks: Vec::new(),
        agents: AgentsConfig { default: agents.default.map(|name| plain(name).into()) },
        session_ttls: realms.into_iter().filter_map(ttl).collect(),
    })
}

/// The rules for tools; their patterns were looked at before.
fn tool_rules(written: &WrittenTools) -> ToolRules {
    let patterns = |texts: &[Spanned<String>]| -> Vec<Pattern> {
        texts.iter().filter_map(|text| Pattern::new(text.get_ref()).ok()).collect()
    };
    let limits = |(text, limits): (&String, &ToolLimits)| Some((Pattern::new(text).ok()?, *limits));
    ToolRules {
        allow: written.allow.as_deref().map(patterns),
        deny: patterns(&written.deny),
        tools: written.limits.iter().filter_map(limits).collect(),
    }
}

fn address(text: &str) -> Option<IpAddr> {
    match text {
        "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        text => text.parse::<IpAddr>().ok(),
    }
}

fn plain(spanned: Spanned<String>) -> String {
    spanned.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> Vec<String> {
        let mistakes = Config::parse("waypost.toml", text).unwrap_err();
        mistakes.iter().map(Mistake::to_string).collect()
    }

    #[test]
    fn nothing_written_means_the_defaults() {
        assert_eq!(Config::parse("waypost.toml", ""), Ok(Config::default()));
        assert_eq!(Config::default().server.port, PORT_DEFAULT);
    }

    #[test]
    fn what_is_written_is_set() {
        let text = "[server]\nhost = \"::1\"\nport = 0\nhosts = [\"wp.test\"]\nadmin = \"key\"\n\
                    [limits]\nbody_depth_max = 8\n[tools.http]\nallow = [\"a.test:80\"]\n\
                    [mcp]\nlenient = true\n";
        let config = Config::parse("waypost.toml", text).unwrap();
        assert_eq!(config.server.host, "::1".parse::<IpAddr>().unwrap());
        assert_eq!(config.server.port, 0);
        assert_eq!(config.server.hosts, ["wp.test"]);
        assert_eq!(config.server.admin, AdminRule::Key);
        assert_eq!(config.limits.body_depth_max, 8);
        assert_eq!(config.limits.body_bytes_max, Limits::default().body_bytes_max);
        assert_eq!(config.http, HttpSettings::new(&["a.test:80"]).unwrap());
        assert!(config.mcp.lenient && !Config::default().mcp.lenient);
        assert_eq!(
            mistakes("[mcp]\nleniant = true\n"),
            ["waypost.toml:2:1: error: unknown key `leniant` in `[mcp]`; \
              hint: did you mean `lenient`?"]
        );
    }

    #[test]
    fn unknown_keys_are_told_with_their_line() {
        let text = "[server]\nprot = 1\n\n[limits]\nbody_byte_max = 1\n[modles]\n";
        assert_eq!(
            mistakes(text),
            [
                "waypost.toml:5:1: error: unknown key `body_byte_max` in `[limits]`; \
                 hint: did you mean `body_bytes_max`?",
                "waypost.toml:6:2: error: unknown key `modles`; hint: did you mean `models`?",
                "waypost.toml:2:1: error: unknown key `prot` in `[server]`; \
                 hint: did you mean `port`?",
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
            told[1].ends_with("tools, mcp, providers, models, agents, events, realms"),
            "{told:?}"
        );
    }

    #[test]
    fn a_realm_has_settings_of_its_own() {
        let text = "[realms.shop]\nsession_ttl_ms = 60000\n[realms.\"a b\"]\n";
        let config = Config::parse("waypost.toml", text).unwrap();
        assert_eq!(config.session_ttls, BTreeMap::from([(RealmId::from("shop"), 60_000)]));
        assert_eq!(
            mistakes("[realms.shop]\nsession_tll_ms = 1\n"),
            ["waypost.toml:2:1: error: unknown key `session_tll_ms` in `[realms.shop]`; \
              hint: did you mean `session_ttl_ms`?"]
        );
        let told = mistakes("[realms]\nshop = 1\n");
        assert!(told[0].starts_with("waypost.toml:2:"), "{told:?}");
        assert!(told[0].contains("error: invalid type"), "{told:?}");
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
    fn mistakes_of_all_layers_are_told_where_they_stand() {
        // Also in what is set again further up: it would come to light on another day.
        let layers = [
            Layer::file("below.toml", "[server]\nport = \"x\"\n"),
            Layer::file("above.toml", "[server]\nport = 1\n\nprot = 2\n"),
        ];
        let found = Config::layered(&layers).unwrap_err();
        let told: Vec<String> = found.iter().map(Mistake::to_string).collect();
        assert!(told[0].starts_with("below.toml:2:8: error: invalid type"), "{told:?}");
        assert_eq!(
            told[1],
            "above.toml:4:1: error: unknown key `prot` in `[server]`; hint: did you mean `port`?"
        );
    }

    #[test]
    fn a_limit_out_of_its_range_is_told_with_its_line() {
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
    fn limits_that_contradict_each_other_are_told_where_the_last_was_set() {
        let below = Layer::file("below.toml", "[limits]\npage_items_max = 20\n");
        let above = Layer::file("above.toml", "\n[limits]\npage_items_default = 30\n");
        let told = |layers: &[Layer]| -> Vec<String> {
            let found = Config::layered(layers).err().unwrap_or_default();
            found.iter().map(Mistake::to_string).collect()
        };
        let what = "is more than `page_items_max` = 20; \
                    hint: lower `page_items_default`, or raise `page_items_max`";
        assert_eq!(
            told(&[below.clone(), above]),
            [format!("above.toml:3:22: error: `page_items_default` = 30 {what}")]
        );
        assert_eq!(
            told(std::slice::from_ref(&below)),
            [format!("below.toml:2:18: error: `page_items_default` = 50 {what}")]
        );
        let fits = Layer::file("above.toml", "[limits]\npage_items_default = 20\n");
        assert_eq!(told(&[below, fits]), Vec::<String>::new());
    }

    #[test]
    fn tools_have_rules() {
        let text = "[tools]\nallow = [\"*\"]\ndeny = [\"http::*\"]\n\
                    [tools.limits.\"math::add\"]\nconcurrency = 4\nper_minute = 60\n\
                    timeout_ms = 10000\noutput_bytes = 1048576\n[tools.limits.\"trade/*\"]\n";
        let rules = Config::parse("waypost.toml", text).unwrap().tools;
        assert!(rules.allows("math::add") && !rules.allows("http::request"));
        let limits = rules.limits("math::add");
        assert_eq!(limits.concurrency.unwrap().get(), 4);
        assert_eq!(limits.per_minute.unwrap().get(), 60);
        assert_eq!(limits.timeout_ms.unwrap().get(), 10_000);
        assert_eq!(limits.output_bytes.unwrap().get(), 1_048_576);
        assert_eq!(rules.limits("trade/settle"), ToolLimits::default());
        let nothing = Config::parse("waypost.toml", "[tools]\nallow = []\n").unwrap().tools;
        assert!(!nothing.allows("math::add"));
    }

    #[test]
    fn wrong_rules_are_told_with_their_line() {
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
        let told = mistakes("[tools]\nallow = [\"math::*\", \"\"]\ndeny = [\"a b\"]\n");
        assert!(told[0].starts_with("waypost.toml:2:21: error: a pattern of tools"), "{told:?}");
        assert!(told[1].starts_with("waypost.toml:3:9: error: `a b` has a ` `"), "{told:?}");
        let told = mistakes("[tools.limits.\"*\"]\nconcurrency = 0\n");
        assert!(told[0].starts_with("waypost.toml:2:"), "{told:?}");
    }

    #[test]
    fn wrong_values_are_told_with_their_line() {
        let told = mistakes("[server]\nport = \"x\"\n");
        assert!(told[0].starts_with("waypost.toml:2:8: error: invalid type"), "{told:?}");
        let told = mistakes("[server]\nhost = \"0.0.0.0\"\n[tools.http]\nallow = [\"*\"]\n");
        assert!(told[0].contains("waypost.toml:2:8: error: `0.0.0.0` can be reached"), "{told:?}");
        assert!(told[1].contains("waypost.toml:4:10: error: `*` is not a host"), "{told:?}");
        let told = mistakes("[server\n");
        assert!(told[0].starts_with("waypost.toml:1:"), "{told:?}");
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
