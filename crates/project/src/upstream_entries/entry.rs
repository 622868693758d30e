//! One upstream as a file writes it: which way leads to it, and what we say of it beside. Nothing
//! is looked up yet, so an entry can be shown, moved to another file and checked without a server.

use super::a2a::{A2aEndpoint, AgentKeys};
use super::expand::{ExpandContext, expanded, has_variables};
use super::keys::{Own, ProviderKeys, ServerKeys};
use super::oauth::{Oauth, login_of};
use super::rest::RestEndpoint;
use super::sendable::{env_of, headers_of, program, shown_url, url_of};
use crate::layer::{Location, NAME_CHARS_MAX};
use crate::realm::default_realm;
use crate::settings::{Located, Named, Text};
use kernel::definition::plan::mistake::{Mistake, meant};
use kernel::values::ids::RealmId;
use std::path::Path;
use upstreams::{EraSetting, OauthConfig, UpstreamConfig, UpstreamKind};

/// An upstream as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// Where it is written.
    pub place: Location,
    /// How the server is reached.
    pub way: Option<Endpoint>,
    /// What is ours to say of it.
    pub own: Own,
}

/// The way to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Http { url: Text, headers: Named },
    Stdio { command: Text, args: Vec<Text>, env: Named, cwd: Option<Text> },
    Rest(RestEndpoint),
    Rpc { url: Text, headers: Named, tools: Vec<Text>, open: bool },
    A2a(A2aEndpoint),
}

/// What may be shown of an upstream: names and places, never a value that may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub name: String,
    /// What stands before the names of its tools and prompts.
    pub prefix: String,
    /// What it is: `http`, `stdio`, `rest`, `rpc` or `a2a`.
    pub kind: &'static str,
    /// Where it is: its program, or its address without query and password.
    pub target: String,
    /// Where it is configured.
    pub origin: String,
    /// The names of the headers that go with every request.
    pub headers: Vec<String>,
    /// The names of the variables that it gets.
    pub env: Vec<String>,
    /// Whether what it says of its tools' effects is taken as it is.
    pub trusted: bool,
    /// Whether its calls are recorded as runs.
    pub journal: bool,
    /// How long one call of it may take.
    pub timeout_ms: Option<u64>,
    /// In which era it is spoken to, where it speaks MCP.
    pub era: Option<EraSetting>,
    /// Whether it is left alone.
    pub disabled: bool,
}

impl Endpoint {
    fn speaks_mcp(&self) -> bool {
        matches!(self, Endpoint::Http { .. } | Endpoint::Stdio { .. })
    }
}

impl Entry {
    /// The server that these keys make; `is_ours` is the file where every key must be meant. A
    /// mistake without a place is one of the whole entry.
    pub fn of_server(name: &Text, mut keys: ServerKeys, is_ours: bool) -> Result<Self, Mistake> {
        let own = keys.take_own();
        Self::new(name, served(keys, is_ours)?, own, is_ours)
    }

    /// The same for a provider.
    pub fn of_provider(name: &Text, mut keys: ProviderKeys) -> Result<Self, Mistake> {
        let own = keys.take_own();
        Self::new(name, Some(provided(keys)?), own, true)
    }

    /// The same for an agent.
    pub(crate) fn of_agent(name: &Text, keys: Located<AgentKeys>) -> Result<Self, Mistake> {
        let mut keys = keys.value;
        let own = keys.take_own();
        Self::new(name, Some(Endpoint::A2a(A2aEndpoint::new(keys)?)), own, true)
    }

    fn new(
        name: &Text,
        way: Option<Endpoint>,
        mut own: Own,
        is_ours: bool,
    ) -> Result<Self, Mistake> {
        let has_no_logins = way.as_ref().is_some_and(|way| !matches!(way, Endpoint::Http { .. }));
        match own.oauth.take_if(|_| has_no_logins) {
            Some(oauth) if is_ours => return Err(misplaced(&oauth)),
            // Programs write idle keys into files of clients.
            Some(_) | None => {}
        }
        if let Some(login) = &own.login {
            let grant = own.oauth.as_ref().and_then(|oauth| oauth.grant).unwrap_or_default();
            login_of(login, grant)?;
            if has_no_logins {
                let what = Mistake::error("`login` goes with an MCP server behind a URL");
                return Err(login.mistake(what.hint("leave it out")));
            }
        }
        if let Some(era) = &own.era {
            era_of(era)?;
            if way.as_ref().is_some_and(|way| !way.speaks_mcp()) {
                let what = Mistake::error("`era` goes with an MCP server");
                return Err(era.mistake(what.hint("leave it out")));
            }
        }
        for root in own.roots.iter().flatten() {
            if way.as_ref().is_some_and(|way| !way.speaks_mcp()) {
                let what = Mistake::error("`roots` go with an MCP server");
                return Err(root.mistake(what.hint("leave them out")));
            }
            if !has_variables(&root.text) {
                is_root(root, &root.text)?;
            }
        }
        Ok(Self { name: name.text.clone(), place: name.place.clone(), way, own })
    }

    /// An MCP server behind a URL, named from outside of any file.
    pub fn of_url(name: &str, url: &str, headers: &[(String, String)], place: &Location) -> Self {
        let text = |text: &str| Text { text: text.to_owned(), place: place.clone() };
        let headers = headers.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        let way = Some(Endpoint::Http { url: text(url), headers });
        Self { name: name.to_owned(), place: place.clone(), way, own: Own::default() }
    }

    /// A server of plain JSON-RPC that need not list its tools, named from outside of any file.
    pub(super) fn of_open_rpc(name: &str, url: &str, place: &Location) -> Self {
        let url = Text { text: url.to_owned(), place: place.clone() };
        let way =
            Some(Endpoint::Rpc { url, headers: Named::default(), tools: Vec::new(), open: true });
        Self { name: name.to_owned(), place: place.clone(), way, own: Own::default() }
    }

    /// The same, with this time for each of its calls.
    #[must_use]
    pub(super) fn timed(mut self, timeout_ms: u64) -> Self {
        self.own.timeout_ms = Some(timeout_ms);
        self
    }

    /// An MCP server that is started with these words, named from outside of any file; without a
    /// word there is none.
    pub fn of_command(
        name: &str,
        words: &[String],
        env: &[(String, String)],
        place: &Location,
    ) -> Option<Self> {
        let text = |text: &str| Text { text: text.to_owned(), place: place.clone() };
        let (command, args) = words.split_first()?;
        let way = Some(Endpoint::Stdio {
            command: text(command),
            args: args.iter().map(|word| text(word)).collect(),
            env: env.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
            cwd: None,
        });
        Some(Self { name: name.to_owned(), place: place.clone(), way, own: Own::default() })
    }

    /// The same with this prefix.
    #[must_use]
    pub fn prefixed(mut self, prefix: &str) -> Self {
        self.own.prefix = Some(Text { text: prefix.to_owned(), place: self.place.clone() });
        self
    }

    /// The same, trusted or not.
    #[must_use]
    pub fn trusted(mut self, trusted: bool) -> Self {
        self.own.trusted = trusted.then_some(true);
        self
    }

    /// What stands before the names of its tools.
    pub fn prefix(&self) -> String {
        match &self.own.prefix {
            Some(prefix) => prefix.text.clone(),
            None => format!("{}.", self.name),
        }
    }

    /// Whether any method of it can be called, and nobody lists them.
    pub fn is_open(&self) -> bool {
        matches!(self.way, Some(Endpoint::Rpc { open: true, .. }))
    }

    /// Whether it is left alone.
    pub fn is_disabled(&self) -> bool {
        self.own.disabled == Some(true)
    }

    /// Whether it is there for a realm.
    pub fn is_for(&self, realm: &RealmId) -> bool {
        match &self.own.realms {
            Some(realms) => realms.iter().any(|pattern| pattern.fits(realm)),
            None => *realm == default_realm(),
        }
    }

    /// What may be shown of it.
    pub fn facts(&self) -> Facts {
        let names = |named: &Named| named.iter().map(|(name, _)| name.clone()).collect();
        let (kind, target, headers, env) = match &self.way {
            Some(Endpoint::Http { url, headers }) => {
                ("http", shown_url(&url.text), names(headers), Vec::new())
            }
            Some(Endpoint::Stdio { command, env, .. }) => {
                ("stdio", command.text.clone(), Vec::new(), names(env))
            }
            Some(Endpoint::Rest(way)) => ("rest", way.target(), way.header_names(), Vec::new()),
            Some(Endpoint::Rpc { url, headers, .. }) => {
                ("rpc", shown_url(&url.text), names(headers), Vec::new())
            }
            Some(Endpoint::A2a(way)) => ("a2a", way.target(), way.header_names(), Vec::new()),
            None => ("", String::new(), Vec::new(), Vec::new()),
        };
        Facts {
            name: self.name.clone(),
            prefix: self.prefix(),
            kind,
            target,
            origin: self.place.to_string(),
            headers,
            env,
            trusted: self.own.trusted == Some(true),
            journal: self.own.journal != Some(false),
            timeout_ms: self.own.timeout_ms,
            era: self.way.as_ref().filter(|way| way.speaks_mcp()).map(|_| self.era()),
            disabled: self.is_disabled(),
        }
    }

    /// In which era it is spoken to. What is written was checked when it was read.
    fn era(&self) -> EraSetting {
        self.own.era.as_ref().and_then(|era| era_of(era).ok()).unwrap_or_default()
    }

    /// What is wrong with its name or its prefix.
    pub fn misnamed(&self) -> Option<Mistake> {
        if let Err(mistake) = self.place.named(&self.name, "an upstream", "`_` and `-`") {
            return Some(mistake);
        }
        let prefix = self.own.prefix.as_ref()?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
        if prefix.text.chars().count() > NAME_CHARS_MAX || !prefix.text.chars().all(fits) {
            let what = format!("`{}` cannot stand before the name of a tool", prefix.text);
            let hint = "a prefix is up to 64 letters, digits, `_`, `-`, `.`, `/` and `:`";
            return Some(prefix.mistake(Mistake::error(what).hint(hint)));
        }
        None
    }

    /// What keeps it from being used, whatever its variables hold.
    pub fn unusable(&self) -> Option<Mistake> {
        // Fits in the place of most of them.
        let around = ExpandContext { folder: Path::new(""), variables: &|_| Some("1".to_owned()) };
        let unsent = |url: &Text, headers: &Named| {
            let is_plain = !has_variables(&url.text);
            let url = if is_plain { url_of(url, &around) } else { expanded(url, &around) };
            url.err().or_else(|| headers_of(headers, &around).err())
        };
        self.misnamed().or_else(|| match &self.way {
            Some(Endpoint::Http { url, headers } | Endpoint::Rpc { url, headers, .. }) => {
                unsent(url, headers)
            }
            Some(Endpoint::Stdio { env, .. }) => env_of(env, &around).err(),
            Some(Endpoint::Rest(_) | Endpoint::A2a(_)) | None => None,
        })
    }

    /// What to connect to, with everything looked up; relative paths begin at the project's folder.
    pub fn config(&self, around: &ExpandContext<'_>) -> Result<UpstreamConfig, Mistake> {
        let oauth = self.own.oauth.as_ref();
        // Only here for what our settings added to an entry of a client.
        if let (Some(oauth), false) =
            (oauth, matches!(self.way, Some(Endpoint::Http { .. }) | None))
        {
            return Err(misplaced(oauth));
        }
        let kind = match &self.way {
            Some(Endpoint::Http { url, headers }) => UpstreamKind::Http {
                url: url_of(url, around)?,
                headers: headers_of(headers, around)?,
                oauth: self.logins(around)?,
            },
            Some(Endpoint::Stdio { command, args, env, cwd }) => {
                let cwd = match cwd {
                    Some(cwd) => around.folder.join(expanded(cwd, around)?),
                    None => around.folder.to_path_buf(),
                };
                let args = args.iter().map(|text| expanded(text, around));
                UpstreamKind::Stdio {
                    command: program(&expanded(command, around)?, &cwd),
                    args: args.collect::<Result<_, _>>()?,
                    env: env_of(env, around)?,
                    cwd: Some(cwd),
                }
            }
            Some(Endpoint::Rest(way)) => UpstreamKind::Rest(way.config(around)?),
            Some(Endpoint::Rpc { open: true, .. }) if self.prefix().is_empty() => {
                let what = format!("`{}` is open, and its tools have no prefix", self.name);
                let hint = "give it a `prefix`: else every name would be a method of it";
                return Err(self.place.mistake(Mistake::error(what).hint(hint)));
            }
            Some(Endpoint::Rpc { url, headers, tools, open }) => UpstreamKind::Rpc {
                url: url_of(url, around)?,
                headers: headers_of(headers, around)?,
                tools: tools.iter().map(|tool| tool.text.clone()).collect(),
                open: *open,
            },
            Some(Endpoint::A2a(way)) => UpstreamKind::A2a(way.config(around)?),
            None => {
                let what = format!("`{}` has neither `command` nor `url`", self.name);
                return Err(self.place.mistake(Mistake::error(what)));
            }
        };
        Ok(UpstreamConfig {
            name: self.name.clone(),
            prefix: self.prefix(),
            kind,
            trusted: self.own.trusted == Some(true),
            journal: self.own.journal != Some(false),
            timeout_ms: self.own.timeout_ms,
            era: self.era(),
            roots: self.roots(around)?,
            origin: self.place.to_string(),
        })
    }
}

impl Entry {
    /// The folders that it is told of.
    fn roots(&self, around: &ExpandContext<'_>) -> Result<Vec<String>, Mistake> {
        let looked_up = |root: &Text| {
            let uri = expanded(root, around)?;
            is_root(root, &uri).map(|()| uri)
        };
        self.own.roots.iter().flatten().map(looked_up).collect()
    }

    /// How logins at it go.
    fn logins(&self, around: &ExpandContext<'_>) -> Result<OauthConfig, Mistake> {
        let oauth = self.own.oauth.as_ref();
        let config = oauth.map(|oauth| oauth.config(around)).transpose()?.unwrap_or_default();
        let login = self.own.login.as_ref().map(|login| login_of(login, config.grant));
        Ok(OauthConfig { login: login.transpose()?.unwrap_or_default(), ..config })
    }
}

/// Roots of MCP are `file:` URIs.
fn is_root(root: &Text, uri: &str) -> Result<(), Mistake> {
    if uri.starts_with("file://") {
        return Ok(());
    }
    let what = format!("`{}` is no root: a root is a `file:` URI", root.text);
    Err(root.mistake(Mistake::error(what).hint("write it as `file:///srv/data`")))
}

fn era_of(era: &Text) -> Result<EraSetting, Mistake> {
    let words = EraSetting::WORDS;
    let known = words.iter().find(|(word, _)| *word == era.text);
    known.map(|(_, era)| *era).ok_or_else(|| {
        let what = format!("`{}` is no era of MCP", era.text);
        let hint = meant(&era.text, words.iter().map(|(word, _)| *word))
            .unwrap_or_else(|| "it is `auto`, `2025` or `2026`".to_owned());
        era.mistake(Mistake::error(what).hint(hint))
    })
}

/// `oauth` where no one logs in.
fn misplaced(oauth: &Oauth) -> Mistake {
    oauth.mistake("`oauth` goes with an MCP server behind a URL", "leave it out")
}

/// The way that `command` or `url` names; none where there is neither, which adds our own keys to
/// an entry of the same name.
fn served(keys: ServerKeys, is_ours: bool) -> Result<Option<Endpoint>, Mistake> {
    let of_url = [("headers", keys.headers.is_empty())];
    let of_command =
        [("args", keys.args.is_empty()), ("env", keys.env.is_empty()), ("cwd", keys.cwd.is_none())];
    let first = |all: &[(&'static str, bool)]| all.iter().find(|(_, is_empty)| !is_empty).copied();
    let kind = transport(keys.kind.as_ref())?;
    // Files of clients may hold keys of both: programs write empty or idle ones.
    match (keys.command, keys.url, kind) {
        (Some(_), Some(url), _) => {
            let what = Mistake::error("both `command` and `url` are there");
            Err(url.mistake(what.hint("leave out the one that is not meant")))
        }
        (None, None, None) => match first(&of_url).or(first(&of_command)) {
            None if is_ours => Ok(None),
            None => Err(Mistake::error("there is neither `command` nor `url`")),
            Some((key, _)) => {
                let what = format!("`{key}` is there, but neither `command` nor `url`");
                Err(Mistake::error(what))
            }
        },
        (Some(command), None, None | Some(Transport::Stdio)) => match first(&of_url) {
            Some((key, _)) if is_ours => {
                Err(Mistake::error(format!("`{key}` goes with `url`, not with `command`")))
            }
            _ => {
                Ok(Some(Endpoint::Stdio { command, args: keys.args, env: keys.env, cwd: keys.cwd }))
            }
        },
        (None, Some(url), None | Some(Transport::Http)) => match first(&of_command) {
            Some((key, _)) if is_ours => {
                Err(Mistake::error(format!("`{key}` goes with `command`, not with `url`")))
            }
            _ => Ok(Some(Endpoint::Http { url, headers: keys.headers })),
        },
        (_, _, Some(Transport::Stdio)) => {
            Err(Mistake::error("`type` is `stdio`, and `command` is missing"))
        }
        (_, _, Some(Transport::Http)) => {
            Err(Mistake::error("`type` is that of a server with a `url`, and that is missing"))
        }
    }
}

/// What `type` says of a server.
#[derive(Clone, Copy)]
enum Transport {
    Stdio,
    Http,
}

/// The types as clients write them. `sse` is the older way over HTTP: such a server is spoken to
/// as any other, and answers or not.
const TRANSPORTS: &[(&str, Transport)] = &[
    ("stdio", Transport::Stdio),
    ("local", Transport::Stdio),
    ("http", Transport::Http),
    ("streamable-http", Transport::Http),
    ("streamable_http", Transport::Http),
    ("streamableHttp", Transport::Http),
    ("remote", Transport::Http),
    ("sse", Transport::Http),
];

fn transport(kind: Option<&Text>) -> Result<Option<Transport>, Mistake> {
    let Some(kind) = kind else { return Ok(None) };
    let known = TRANSPORTS.iter().find(|(word, _)| *word == kind.text);
    let unknown = || {
        let what = format!("`{}` is no type of server", kind.text);
        let hint = meant(&kind.text, TRANSPORTS.iter().map(|(word, _)| *word))
            .unwrap_or_else(|| "the types are `stdio` and `http`".to_owned());
        kind.mistake(Mistake::error(what).hint(hint))
    };
    known.map(|(_, transport)| Some(*transport)).ok_or_else(unknown)
}

/// The kinds of `[providers.<name>]`.
const PROVIDERS: [&str; 4] = ["rest", "mcp", "rpc", "a2a"];

fn provided(keys: ProviderKeys) -> Result<Endpoint, Mistake> {
    let Some(kind) = keys.kind.clone() else {
        return Err(Mistake::error("`type` is missing").hint("it is `rest`, `mcp`, `rpc` or `a2a`"));
    };
    let url = |keys: &ProviderKeys| {
        let missing = || Mistake::error("`base_url` is missing").hint("it is the server's address");
        keys.base_url.clone().ok_or_else(missing)
    };
    // `REST` is how the stored form says it.
    match kind.text.to_ascii_lowercase().as_str() {
        "rest" => Ok(Endpoint::Rest(RestEndpoint::new(keys)?)),
        "mcp" => Ok(Endpoint::Http { url: url(&keys)?, headers: keys.headers }),
        "rpc" => {
            let url = url(&keys)?;
            let open = keys.open == Some(true);
            Ok(Endpoint::Rpc { url, headers: keys.headers, tools: keys.tools, open })
        }
        "a2a" => Ok(Endpoint::A2a(A2aEndpoint::of_provider(url(&keys)?, keys)?)),
        other => {
            let hint = meant(other, PROVIDERS);
            let what = format!("`{}` is no type of provider", kind.text);
            let hint = hint.unwrap_or_else(|| "it is `rest`, `mcp`, `rpc` or `a2a`".to_owned());
            Err(Mistake::error(what).hint(hint))
        }
    }
}
