//! The keys of an upstream's entry, in the words of each file that may hold one.

use super::oauth::Oauth;
use super::text::{Named, Reading, Text};
use super::written::{Shape, Table, Word, Written};
use kernel::plan::mistake::{Mistake, meant};

/// In whose words an entry is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `[mcp.servers.<name>]` of our settings.
    Servers,
    /// `[providers.<name>]` of our settings.
    Providers,
    /// `mcpServers` or `servers` of a client's JSON.
    Json,
    /// `[mcp_servers.<name>]` of Codex.
    Codex,
}

const SERVER_KEYS: &[&str] = &[
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "oauth",
    "prefix",
    "trusted",
    "journal",
    "timeout_ms",
    "disabled",
];

const PROVIDER_KEYS: &[&str] = &[
    "type",
    "display_name",
    "base_url",
    "headers",
    "oauth",
    "document",
    "auth",
    "include",
    "allow_private",
    "tools",
    "prefix",
    "trusted",
    "journal",
    "timeout_ms",
    "disabled",
];

/// `serverUrl` is Windsurf's word, `httpUrl` Gemini's, and `auth` Cursor's for `oauth`.
const JSON_KEYS: &[&str] = &[
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "oauth",
    "auth",
    "disabled",
    "enabled",
];

const CODEX_KEYS: &[&str] = &[
    "command",
    "args",
    "env",
    "env_vars",
    "cwd",
    "url",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "enabled",
    "tool_timeout_sec",
];

/// Keys of clients that change what a server gets, and that we cannot follow.
const NOT_FOLLOWED: &[&str] = &["envFile", "headersHelper", "oauth", "auth"];

impl Dialect {
    fn known(self) -> &'static [&'static str] {
        match self {
            Dialect::Servers => SERVER_KEYS,
            Dialect::Providers => PROVIDER_KEYS,
            Dialect::Json => JSON_KEYS,
            Dialect::Codex => CODEX_KEYS,
        }
    }

    /// Whether this key says how a login goes.
    fn names_oauth(self, key: &str) -> bool {
        match self {
            Dialect::Servers | Dialect::Providers => key == "oauth",
            Dialect::Json => key == "oauth" || key == "auth",
            Dialect::Codex => false,
        }
    }

    /// Whether the file is ours, so that every key in it must be one of ours.
    pub(crate) fn is_ours(self) -> bool {
        match self {
            Dialect::Servers | Dialect::Providers => true,
            Dialect::Json | Dialect::Codex => false,
        }
    }

    /// What to say of a key that is not known. In a client's file it may be another program's; one
    /// that is nearly ours is a slip of the pen.
    fn unknown(self, word: &Word, path: &str) -> Option<Mistake> {
        let known = self.known().iter().copied();
        let near = meant(&word.text, known.clone());
        let what = format!("unknown key `{}` in `{path}`", word.text);
        let mistake = match (near, self.is_ours()) {
            (Some(near), _) => Mistake::error(what).hint(near),
            (None, true) => {
                let all: Vec<&str> = known.collect();
                Mistake::error(what).hint(format!("known here: {}", all.join(", ")))
            }
            (None, false) if NOT_FOLLOWED.contains(&word.text.as_str()) => {
                let what = format!("`{}` of `{path}` is not followed here", word.text);
                Mistake::warning(what).hint("write what it stands for into `env` or `headers`")
            }
            (None, false) => return None,
        };
        Some(word.place.mistake(mistake))
    }
}

/// The keys that only we know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Own {
    pub(crate) display_name: Option<Text>,
    pub(crate) prefix: Option<Text>,
    pub(crate) trusted: Option<bool>,
    pub(crate) journal: Option<bool>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) disabled: Option<bool>,
    /// Clients have it too; ours adds to theirs.
    pub(crate) oauth: Option<Oauth>,
}

impl Own {
    /// These, and below them those.
    pub(crate) fn over(self, below: Own) -> Own {
        Own {
            display_name: self.display_name.or(below.display_name),
            prefix: self.prefix.or(below.prefix),
            trusted: self.trusted.or(below.trusted),
            journal: self.journal.or(below.journal),
            timeout_ms: self.timeout_ms.or(below.timeout_ms),
            disabled: self.disabled.or(below.disabled),
            oauth: match (self.oauth, below.oauth) {
                (Some(above), Some(below)) => Some(above.over(below)),
                (above, below) => above.or(below),
            },
        }
    }
}

/// All keys of an entry, as far as they are written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Keys {
    pub(crate) kind: Option<Text>,
    pub(crate) command: Option<Text>,
    pub(crate) args: Vec<Text>,
    pub(crate) env: Named,
    pub(crate) cwd: Option<Text>,
    /// `url`, or `base_url` of a provider.
    pub(crate) url: Option<Text>,
    pub(crate) headers: Named,
    pub(crate) document: Option<Text>,
    pub(crate) auth: Option<(Written, Table)>,
    pub(crate) include: Vec<Text>,
    pub(crate) allow_private: Option<bool>,
    pub(crate) tools: Vec<Text>,
    pub(crate) own: Own,
}

impl Keys {
    /// The keys of this table; `path` is how mistakes name it.
    pub(crate) fn read(
        dialect: Dialect,
        table: &Table,
        path: &str,
        mistakes: &mut Vec<Mistake>,
    ) -> Self {
        let mut keys = Self::default();
        for (word, value) in &table.0 {
            let key = word.text.as_str();
            if dialect.names_oauth(key) {
                keys.own.oauth = if dialect.is_ours() {
                    Oauth::ours(value, mistakes)
                } else {
                    Oauth::theirs(value, &format!("{path}.{key}"), mistakes)
                };
            } else if dialect.known().contains(&key) {
                let mut reading = Reading::new(mistakes);
                keys.take(key, value, &mut reading);
            } else {
                mistakes.extend(dialect.unknown(word, path));
            }
        }
        keys
    }

    fn take(&mut self, key: &str, value: &Written, reading: &mut Reading<'_>) {
        let own = &mut self.own;
        match key {
            "type" => self.kind = reading.text(key, value),
            "command" => self.command = reading.text(key, value),
            "args" => self.args = reading.texts(key, value).unwrap_or_default(),
            "env" => self.env.extend(reading.named(key, value).unwrap_or_default()),
            "cwd" => self.cwd = reading.text(key, value),
            "url" | "base_url" | "serverUrl" | "httpUrl" => self.url = reading.text(key, value),
            "headers" | "http_headers" => {
                self.headers.extend(reading.named(key, value).unwrap_or_default());
            }
            "document" => self.document = reading.text(key, value),
            "auth" => {
                let table = reading.table(key, value).cloned();
                self.auth = table.map(|table| (value.clone(), table));
            }
            "include" => self.include = reading.texts(key, value).unwrap_or_default(),
            "allow_private" => self.allow_private = reading.flag(key, value),
            "tools" => self.tools = reading.texts(key, value).unwrap_or_default(),
            "display_name" => own.display_name = reading.text(key, value),
            "prefix" => own.prefix = reading.text(key, value),
            "trusted" => own.trusted = reading.flag(key, value),
            "journal" => own.journal = reading.flag(key, value),
            "timeout_ms" => own.timeout_ms = reading.within(key, value, "call_timeout_ms"),
            "disabled" => own.disabled = reading.flag(key, value),
            "enabled" => own.disabled = reading.flag(key, value).map(|enabled| !enabled),
            _ => self.take_codex(key, value, reading),
        }
    }

    /// Codex names variables where others write `${NAME}`.
    fn take_codex(&mut self, key: &str, value: &Written, reading: &mut Reading<'_>) {
        match key {
            "bearer_token_env_var" => {
                let name = reading.text(key, value);
                let header = |name: Text| {
                    let text = format!("Bearer ${{{}}}", name.text);
                    ("Authorization".to_owned(), Text { text, ..name })
                };
                self.headers.extend(name.map(header));
            }
            "env_http_headers" => {
                let named = reading.named(key, value).unwrap_or_default();
                self.headers.extend(named.into_iter().map(|(header, name)| (header, of(name))));
            }
            "env_vars" => {
                let names = reading.texts(key, &names_alone(value)).unwrap_or_default();
                self.env.extend(names.into_iter().map(|name| (name.text.clone(), of(name))));
            }
            "tool_timeout_sec" => {
                // Codex takes fractions and 0 too; those are left to the limits.
                if let Shape::Whole(seconds @ 1..) = value.value {
                    self.own.timeout_ms = Some(seconds.saturating_mul(1_000));
                }
            }
            // Each dialect's keys are taken above.
            _ => {}
        }
    }
}

/// The same list with names alone: Codex may say beside one where it reads it.
fn names_alone(value: &Written) -> Written {
    let Written { place, value: Shape::List(items) } = value else { return value.clone() };
    let alone = |item: &Written| {
        if let Shape::Table(table) = &item.value
            && let Some((_, name)) = table.get("name")
        {
            return name.clone();
        }
        item.clone()
    };
    Written { place: place.clone(), value: Shape::List(items.iter().map(alone).collect()) }
}

/// The variable of this name.
fn of(name: Text) -> Text {
    Text { text: format!("${{{}}}", name.text), ..name }
}
