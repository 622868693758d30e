//! The keys of an upstream's entry, in the words of each file that may hold one.

use super::oauth::{Oauth, TheirLogin};
use crate::settings::{IfTable, Located, Named, Number, Text, limited, named, realm_patterns};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::grants::RealmPattern;
use serde::{Deserialize, Deserializer};

/// The keys that only we know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Own {
    pub display_name: Option<Text>,
    pub prefix: Option<Text>,
    pub trusted: Option<bool>,
    pub journal: Option<bool>,
    pub timeout_ms: Option<u64>,
    pub era: Option<Text>,
    /// The folders that it is told of.
    pub roots: Option<Vec<Text>>,
    pub disabled: Option<bool>,
    /// The realms that it is there for, where that is not the one that every server has.
    pub realms: Option<Vec<RealmPattern>>,
    /// Whose the login at it is.
    pub login: Option<Text>,
    /// Clients have it too; ours adds to theirs.
    pub oauth: Option<Oauth>,
}

impl Own {
    /// These, and below them those.
    pub fn over(self, below: Own) -> Own {
        Own {
            display_name: self.display_name.or(below.display_name),
            prefix: self.prefix.or(below.prefix),
            trusted: self.trusted.or(below.trusted),
            journal: self.journal.or(below.journal),
            timeout_ms: self.timeout_ms.or(below.timeout_ms),
            era: self.era.or(below.era),
            roots: self.roots.or(below.roots),
            disabled: self.disabled.or(below.disabled),
            realms: self.realms.or(below.realms),
            login: self.login.or(below.login),
            oauth: match (self.oauth, below.oauth) {
                (Some(above), Some(below)) => Some(above.over(below)),
                (above, below) => above.or(below),
            },
        }
    }
}

/// `[mcp.servers.<name>]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ServerKeys {
    #[serde(rename = "type")]
    pub(super) kind: Option<Text>,
    pub(super) command: Option<Text>,
    pub(super) args: Vec<Text>,
    #[serde(deserialize_with = "named")]
    pub(super) env: Named,
    pub(super) cwd: Option<Text>,
    pub(super) url: Option<Text>,
    #[serde(deserialize_with = "named")]
    pub(super) headers: Named,
    pub(super) oauth: Option<Oauth>,
    pub(super) login: Option<Text>,
    pub(super) prefix: Option<Text>,
    pub(super) trusted: Option<bool>,
    pub(super) journal: Option<bool>,
    #[serde(deserialize_with = "timeout_ms")]
    pub(super) timeout_ms: Option<u64>,
    pub(super) era: Option<Text>,
    pub(super) roots: Option<Vec<Text>>,
    pub(super) disabled: Option<bool>,
    #[serde(deserialize_with = "realm_patterns")]
    pub(super) realms: Option<Vec<RealmPattern>>,
}

impl ServerKeys {
    /// Takes out the keys that only we know.
    pub(super) fn take_own(&mut self) -> Own {
        Own {
            display_name: None,
            prefix: self.prefix.take(),
            trusted: self.trusted,
            journal: self.journal,
            timeout_ms: self.timeout_ms,
            era: self.era.take(),
            roots: self.roots.take(),
            disabled: self.disabled,
            realms: self.realms.take(),
            login: self.login.take(),
            oauth: self.oauth.take(),
        }
    }
}

/// `[providers.<name>]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ProviderKeys {
    #[serde(rename = "type")]
    pub(super) kind: Option<Text>,
    pub(super) display_name: Option<Text>,
    pub(super) base_url: Option<Text>,
    #[serde(deserialize_with = "named")]
    pub(super) headers: Named,
    pub(super) oauth: Option<Oauth>,
    pub(super) login: Option<Text>,
    pub(super) document: Option<Text>,
    pub(super) auth: Option<Located<AuthKeys>>,
    pub(super) include: Vec<Text>,
    pub(super) allow_private: Option<bool>,
    pub(super) tools: Vec<Text>,
    pub(super) open: Option<bool>,
    pub(super) prefix: Option<Text>,
    pub(super) trusted: Option<bool>,
    pub(super) journal: Option<bool>,
    #[serde(deserialize_with = "timeout_ms")]
    pub(super) timeout_ms: Option<u64>,
    pub(super) era: Option<Text>,
    pub(super) roots: Option<Vec<Text>>,
    pub(super) disabled: Option<bool>,
    #[serde(deserialize_with = "realm_patterns")]
    pub(super) realms: Option<Vec<RealmPattern>>,
}

impl ProviderKeys {
    /// Takes out the keys that only we know.
    pub(super) fn take_own(&mut self) -> Own {
        Own {
            display_name: self.display_name.take(),
            prefix: self.prefix.take(),
            trusted: self.trusted,
            journal: self.journal,
            timeout_ms: self.timeout_ms,
            era: self.era.take(),
            roots: self.roots.take(),
            disabled: self.disabled,
            realms: self.realms.take(),
            login: self.login.take(),
            oauth: self.oauth.take(),
        }
    }
}

/// `auth` of a provider, whatever its type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct AuthKeys {
    #[serde(rename = "type")]
    pub kind: Option<Text>,
    pub token: Option<Text>,
    pub user: Option<Text>,
    pub password: Option<Text>,
    pub name: Option<Text>,
    #[serde(rename = "in")]
    pub place: Option<Text>,
    pub value: Option<Text>,
}

/// How long one call of an upstream may take.
pub(super) fn timeout_ms<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    limited(deserializer, "timeout_ms", "call_timeout_ms")
}

/// A server in a client's JSON: `serverUrl` is Windsurf's word, `httpUrl` Gemini's, and `auth`
/// Cursor's for `oauth`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClientKeys {
    #[serde(rename = "type")]
    kind: Option<Text>,
    command: Option<Text>,
    args: Vec<Text>,
    #[serde(deserialize_with = "named")]
    env: Named,
    cwd: Option<Text>,
    url: Option<Text>,
    #[serde(rename = "serverUrl")]
    server_url: Option<Text>,
    #[serde(rename = "httpUrl")]
    http_url: Option<Text>,
    #[serde(deserialize_with = "named")]
    headers: Named,
    /// Or whether a client logs in by itself; here someone has to say so.
    oauth: IfTable<Located<TheirLogin>>,
    auth: IfTable<Located<TheirLogin>>,
    disabled: Option<bool>,
    enabled: Option<bool>,
}

impl ClientKeys {
    /// The warning that `auth` says something else than how a login goes; `path` is how it names
    /// the server.
    pub fn other_auth(&self, path: &str) -> Option<Mistake> {
        let auth = self.auth.0.as_ref().filter(|auth| auth.value.is_empty())?;
        let what = format!("`{path}.auth` is not followed here");
        let hint = "write what it stands for into `headers`";
        Some(auth.place.mistake(Mistake::warning(what).hint(hint)))
    }
}

impl From<ClientKeys> for ServerKeys {
    fn from(keys: ClientKeys) -> Self {
        let ClientKeys { kind, command, args, env, cwd, headers, .. } = keys;
        let url = keys.url.or(keys.server_url).or(keys.http_url);
        let disabled = keys.disabled.or(keys.enabled.map(|enabled| !enabled));
        let oauth = keys.oauth.0.or(keys.auth.0).map(Oauth::from);
        let keys = Self { disabled, oauth, ..Self::default() };
        Self { kind, command, args, env, cwd, url, headers, ..keys }
    }
}

/// `[mcp_servers.<name>]` of Codex, which names variables where others write `${NAME}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CodexKeys {
    command: Option<Text>,
    args: Vec<Text>,
    #[serde(deserialize_with = "named")]
    env: Named,
    env_vars: Vec<Located<Variable>>,
    cwd: Option<Text>,
    url: Option<Text>,
    #[serde(deserialize_with = "named")]
    http_headers: Named,
    #[serde(deserialize_with = "named")]
    env_http_headers: Named,
    bearer_token_env_var: Option<Text>,
    enabled: Option<bool>,
    tool_timeout_sec: Option<Number>,
}

/// The name of a variable; Codex may say beside it where it reads it.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`env_vars` must be a list of names")]
enum Variable {
    Name(String),
    Table { name: String },
}

impl From<CodexKeys> for ServerKeys {
    fn from(keys: CodexKeys) -> Self {
        let CodexKeys { command, args, mut env, cwd, url, .. } = keys;
        env.extend(keys.env_vars.into_iter().map(|variable| {
            let (Variable::Name(name) | Variable::Table { name }) = variable.value;
            let text = Text { text: format!("${{{name}}}"), place: variable.place };
            (name, text)
        }));
        let bearer = |name: Text| {
            let text = format!("Bearer ${{{}}}", name.text);
            ("Authorization".to_owned(), Text { text, ..name })
        };
        let mut headers: Named = keys.bearer_token_env_var.map(bearer).into_iter().collect();
        headers.extend(keys.http_headers);
        headers.extend(keys.env_http_headers.into_iter().map(|(header, name)| {
            let text = format!("${{{}}}", name.text);
            (header, Text { text, ..name })
        }));
        // Codex takes fractions and 0 too; those are left to the limits.
        let seconds = keys.tool_timeout_sec.and_then(|Number(text)| text.parse::<u64>().ok());
        let seconds = seconds.filter(|seconds| *seconds > 0);
        let timeout_ms = seconds.map(|seconds| seconds.saturating_mul(1_000));
        let disabled = keys.enabled.map(|enabled| !enabled);
        let keys = Self { timeout_ms, disabled, ..Self::default() };
        Self { command, args, env, cwd, url, headers, ..keys }
    }
}
