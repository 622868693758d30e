//! Maps the keys of clients' files to ours.

use super::keys::Keys;
use super::oauth::Login;
use crate::settings::{IfTable, Located, Named, Number, Text, named};
use kernel::definition::plan::mistake::Mistake;
use serde::Deserialize;

/// A server in a client's JSON: `serverUrl` is Windsurf's word, `httpUrl` Gemini's, and `auth`
/// Cursor's for `oauth`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClientKeys {
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
    oauth: IfTable<Located<Login>>,
    auth: IfTable<Located<Login>>,
    disabled: Option<bool>,
    enabled: Option<bool>,
}

impl ClientKeys {
    /// The warning that `auth` says something else than how a login goes; `path` is how it names
    /// the server.
    pub(super) fn other_auth(&self, path: &str) -> Option<Mistake> {
        let auth = self.auth.0.as_ref().filter(|auth| auth.value == Login::default())?;
        let what = format!("`{path}.auth` is not followed here");
        let hint = "write what it stands for into `headers`";
        Some(auth.place.mistake(Mistake::warning(what).hint(hint)))
    }
}

impl From<ClientKeys> for Keys {
    fn from(keys: ClientKeys) -> Self {
        let ClientKeys { kind, command, args, env, cwd, headers, .. } = keys;
        let url = keys.url.or(keys.server_url).or(keys.http_url);
        let oauth = keys.oauth.0.or(keys.auth.0);
        let is_disabled = keys.disabled.or(keys.enabled.map(|enabled| !enabled)) == Some(true);
        let disabled = is_disabled.then_some(true);
        Self { kind, command, args, env, cwd, url, headers, oauth, disabled, ..Self::default() }
    }
}

/// `[mcp_servers.<name>]` of Codex, which names variables where others write `${NAME}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CodexKeys {
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

impl From<CodexKeys> for Keys {
    fn from(keys: CodexKeys) -> Self {
        let CodexKeys { command, args, mut env, cwd, url, .. } = keys;
        env.extend(keys.env_vars.into_iter().map(|variable| {
            let (Variable::Name(name) | Variable::Table { name }) = variable.value;
            let text = Text::at(&variable.place, &format!("${{{name}}}"));
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
        let disabled = (keys.enabled == Some(false)).then_some(true);
        Self { command, args, env, cwd, url, headers, timeout_ms, disabled, ..Self::default() }
    }
}
