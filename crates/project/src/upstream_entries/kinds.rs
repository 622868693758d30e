//! The kinds of upstreams: how each table names them, which keys each needs, where it is and what
//! is connected to. Another kind is a variant here; the compiler lists the arms.

use super::a2a;
use super::auth;
use super::expand::{ExpandContext, expanded, has_variables};
use super::keys::{KeyTable, Keys};
use super::oauth::{self, login_of};
use super::rest;
use super::sendable::{env_of, headers_of, program, shown_url, url_of};
use crate::settings::{Text, meaning};
use kernel::definition::plan::mistake::Mistake;
use upstreams::{OauthConfig, UpstreamKind};

/// What an upstream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An MCP server behind a URL.
    Http,
    /// An MCP server that is started here.
    Stdio,
    Rest,
    /// Plain JSON-RPC.
    Rpc,
    A2a,
}

/// What `type` says of a server, as clients write it. `sse` is the older way over HTTP: such a
/// server is spoken to as any other, and answers or not.
const TRANSPORTS: &[(&str, Kind)] = &[
    ("stdio", Kind::Stdio),
    ("local", Kind::Stdio),
    ("http", Kind::Http),
    ("streamable-http", Kind::Http),
    ("streamable_http", Kind::Http),
    ("streamableHttp", Kind::Http),
    ("remote", Kind::Http),
    ("sse", Kind::Http),
];

/// What `type` says of a provider.
const PROVIDERS: &[(&str, Kind)] =
    &[("rest", Kind::Rest), ("mcp", Kind::Http), ("rpc", Kind::Rpc), ("a2a", Kind::A2a)];
const PROVIDER_WORDS: &str = "it is `rest`, `mcp`, `rpc` or `a2a`";

impl Kind {
    /// The kind that these keys name; none where they only add to an entry of the same name.
    pub(super) fn of(table: KeyTable, keys: &Keys) -> Result<Option<Self>, Mistake> {
        let kind = match table {
            KeyTable::Server | KeyTable::Client => return of_server(table, keys),
            KeyTable::Provider => of_provider(keys)?,
            KeyTable::Agent => {
                a2a::check(keys)?;
                Kind::A2a
            }
        };
        if let Some(auth) = keys.auth.as_ref().filter(|_| kind.takes_auth()) {
            auth::as_written(auth)?;
        }
        Ok(Some(kind))
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Http => "http",
            Kind::Stdio => "stdio",
            Kind::Rest => "rest",
            Kind::Rpc => "rpc",
            Kind::A2a => "a2a",
        }
    }

    pub(super) fn speaks_mcp(self) -> bool {
        matches!(self, Kind::Http | Kind::Stdio)
    }

    fn takes_auth(self) -> bool {
        matches!(self, Kind::Rest | Kind::A2a)
    }

    /// Takes out what would be shown or written, and says nothing of this kind: programs write idle
    /// keys into files of clients.
    pub(super) fn drop_idle(self, keys: &mut Keys) {
        match self {
            Kind::Stdio => keys.headers.clear(),
            Kind::Http | Kind::Rest | Kind::Rpc | Kind::A2a => {
                keys.args.clear();
                keys.env.clear();
                keys.cwd = None;
            }
        }
        if !self.takes_auth() {
            keys.auth = None;
        }
    }

    /// Where it is, without what may be a secret.
    pub(super) fn target(self, keys: &Keys) -> String {
        let shown = |text: Option<&Text>| text.map(|text| shown_url(&text.text));
        let target = match self {
            Kind::Stdio => keys.command.as_ref().map(|command| command.text.clone()),
            Kind::Http | Kind::Rpc => shown(keys.address()),
            Kind::Rest => shown(keys.address().or(keys.document.as_ref())),
            Kind::A2a => keys.address().map(|card| a2a::target(card, keys.registry.as_ref())),
        };
        target.unwrap_or_default()
    }

    /// What cannot be sent or set, whatever variables hold.
    pub(super) fn unsendable(self, keys: &Keys, around: &ExpandContext<'_>) -> Option<Mistake> {
        match self {
            Kind::Http | Kind::Rpc => {
                let url = keys.address()?;
                let is_plain = !has_variables(&url.text);
                let url = if is_plain { url_of(url, around) } else { expanded(url, around) };
                url.err().or_else(|| headers_of(&keys.headers, around).err())
            }
            Kind::Stdio => env_of(&keys.env, around).err(),
            Kind::Rest | Kind::A2a => None,
        }
    }

    /// What to connect to, with everything looked up; relative paths begin at the project's folder.
    pub(super) fn config(
        self,
        keys: &Keys,
        around: &ExpandContext<'_>,
    ) -> Result<UpstreamKind, Mistake> {
        let headers = || headers_of(&keys.headers, around);
        Ok(match self {
            Kind::Http => UpstreamKind::Http {
                url: url_of(there_is(keys.address(), "url")?, around)?,
                headers: headers()?,
                oauth: logins(keys, around)?,
            },
            Kind::Stdio => {
                let command = there_is(keys.command.as_ref(), "command")?;
                let cwd = match &keys.cwd {
                    Some(cwd) => around.folder.join(expanded(cwd, around)?),
                    None => around.folder.to_path_buf(),
                };
                let args = keys.args.iter().map(|text| expanded(text, around));
                UpstreamKind::Stdio {
                    command: program(&expanded(command, around)?, &cwd),
                    args: args.collect::<Result<_, _>>()?,
                    env: env_of(&keys.env, around)?,
                    cwd: Some(cwd),
                }
            }
            Kind::Rest => UpstreamKind::Rest(rest::config(keys, around)?),
            Kind::Rpc => UpstreamKind::Rpc {
                url: url_of(there_is(keys.address(), "url")?, around)?,
                headers: headers()?,
                tools: keys.tools.iter().map(|tool| tool.text.clone()).collect(),
                open: keys.open == Some(true),
            },
            Kind::A2a => {
                let card = there_is(keys.address(), "card")?;
                UpstreamKind::A2a(a2a::config(card, keys, around)?)
            }
        })
    }
}

/// The names of the headers that go with every request.
pub(super) fn header_names(keys: &Keys) -> Vec<String> {
    let auth = keys.auth.as_ref().and_then(|auth| auth::header(auth::as_written(auth).ok()?));
    let service = keys.service.as_ref().map(|_| a2a::KEY_HEADER.to_owned());
    let named = keys.headers.iter().map(|(name, _)| name.clone());
    auth.into_iter().chain(service).chain(named).collect()
}

/// How logins at it go.
fn logins(keys: &Keys, around: &ExpandContext<'_>) -> Result<OauthConfig, Mistake> {
    let oauth = keys.oauth.as_ref().map(|oauth| oauth::config(oauth, around)).transpose()?;
    let config = oauth.unwrap_or_default();
    let login = keys.login.as_ref().map(|login| login_of(login, config.grant));
    Ok(OauthConfig { login: login.transpose()?.unwrap_or_default(), ..config })
}

/// A key without which there is nothing to connect to. What was read has it.
fn there_is<'k>(text: Option<&'k Text>, key: &str) -> Result<&'k Text, Mistake> {
    text.ok_or_else(|| Mistake::error(format!("`{key}` is missing")))
}

/// The kind that `command` or `url` names; none where there is neither, which adds our own keys to
/// an entry of the same name.
fn of_server(table: KeyTable, keys: &Keys) -> Result<Option<Kind>, Mistake> {
    let is_ours = table == KeyTable::Server;
    let of_url = (!keys.headers.is_empty()).then_some("headers");
    let of_command = [
        ("args", !keys.args.is_empty()),
        ("env", !keys.env.is_empty()),
        ("cwd", keys.cwd.is_some()),
    ];
    let of_command = of_command.iter().find(|(_, is_there)| *is_there).map(|(key, _)| *key);
    let kind = keys.kind.as_ref().map(transport).transpose()?;
    // Files of clients may hold keys of both: programs write empty or idle ones.
    match (&keys.command, &keys.url, kind) {
        (Some(_), Some(url), _) => {
            let what = Mistake::error("both `command` and `url` are there");
            Err(url.mistake(what.hint("leave out the one that is not meant")))
        }
        (None, None, None) => match of_url.or(of_command) {
            None if is_ours => Ok(None),
            None => Err(Mistake::error("there is neither `command` nor `url`")),
            Some(key) => {
                let what = format!("`{key}` is there, but neither `command` nor `url`");
                Err(Mistake::error(what))
            }
        },
        (Some(_), None, None | Some(Kind::Stdio)) => match of_url {
            Some(key) if is_ours => {
                Err(Mistake::error(format!("`{key}` goes with `url`, not with `command`")))
            }
            _ => Ok(Some(Kind::Stdio)),
        },
        (None, Some(_), None | Some(Kind::Http)) => match of_command {
            Some(key) if is_ours => {
                Err(Mistake::error(format!("`{key}` goes with `command`, not with `url`")))
            }
            _ => Ok(Some(Kind::Http)),
        },
        (_, _, Some(Kind::Stdio)) => {
            Err(Mistake::error("`type` is `stdio`, and `command` is missing"))
        }
        (_, _, Some(_)) => {
            Err(Mistake::error("`type` is that of a server with a `url`, and that is missing"))
        }
    }
}

fn transport(kind: &Text) -> Result<Kind, Mistake> {
    let hint = "the types are `stdio` and `http`";
    let kind_of = meaning(&kind.text, TRANSPORTS, "is no type of server", hint);
    kind_of.map_err(|mistake| kind.mistake(mistake))
}

fn of_provider(keys: &Keys) -> Result<Kind, Mistake> {
    let Some(written) = &keys.kind else {
        return Err(Mistake::error("`type` is missing").hint(PROVIDER_WORDS));
    };
    // `REST` is how the stored form says it.
    let is_kind = |(word, _): &&(&str, Kind)| word.eq_ignore_ascii_case(&written.text);
    let word = PROVIDERS.iter().find(is_kind).map_or(written.text.as_str(), |(word, _)| *word);
    let kind = meaning(word, PROVIDERS, "is no type of provider", PROVIDER_WORDS)?;
    match (kind, &keys.base_url) {
        (Kind::Rest, None) if keys.document.is_none() => {
            Err(Mistake::error("there is neither `base_url` nor `document`")
                .hint("`document` is an OpenAPI document: a file, or a URL"))
        }
        (Kind::Rest, _) => Ok(kind),
        (_, None) => {
            Err(Mistake::error("`base_url` is missing").hint("it is the server's address"))
        }
        (Kind::A2a, Some(url)) => a2a::check_address(url).map(|()| kind),
        (_, Some(_)) => Ok(kind),
    }
}
