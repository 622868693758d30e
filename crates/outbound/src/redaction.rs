//! The secrets that we send, taken out of what other servers say: they appear in no error, result,
//! log or journal, even if the other side repeats them. Each transport masks what comes in where it
//! is read, so that nothing behind it has to think of secrets.
//!
//! Two lists. Credentials are taken out of everything. The other settings of an upstream, such as a
//! header that names a tenant, are taken out of the words of errors only: they are part of many
//! results, and a result without them would be wrong.

use crate::percent::{decoded, encoded};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kernel::values::secret::Secret;
use reqwest::Url;
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Reverse;

/// A shorter text is no secret, and taking it out would make other words unreadable.
const SECRET_CHARS_MIN: usize = 4;
/// A shorter value is no credential where only the name of its setting suggests one.
const NAMED_CHARS_MIN: usize = 6;
/// A value of this length is a credential if any word in the name of its setting suggests one.
const LONG_CHARS_MIN: usize = 16;

/// Replaces a secret.
const MASK: &str = "***";

/// Texts that are shown to no one.
#[derive(Clone, Default)]
pub struct Redactor {
    /// All of them, the longest first: one may be a part of another, as in `Bearer abc` and `abc`.
    words: Vec<String>,
    /// Those that are taken out of everything, in the same order.
    credentials: Vec<String>,
    /// The credentials that contain no other: a text without these has none of them.
    cores: Vec<String>,
}

impl Redactor {
    /// Hides these credentials too, in every form in which they are usually repeated.
    #[must_use]
    pub fn credentials<T: Into<String>>(self, credentials: impl IntoIterator<Item = T>) -> Self {
        let Self { mut words, credentials: mut all, .. } = self;
        for credential in credentials {
            let credential: String = credential.into();
            all.extend(forms(&credential));
        }
        let all = sorted(all);
        words.extend(all.iter().cloned());
        let is_core = |one: &&String| !all.iter().any(|other| *one != other && one.contains(other));
        let cores = all.iter().filter(is_core).cloned().collect();
        Self { words: sorted(words), cores, credentials: all }
    }

    /// Hides the values of headers too, and what follows the scheme of those that have one:
    /// `Bearer ..`.
    #[must_use]
    pub fn headers(mut self, headers: &[(String, Secret)]) -> Self {
        let whole = headers.iter().map(|(_, value)| value.expose().trim());
        let tokens = whole.clone().map(after_scheme);
        self.words.extend(whole.chain(tokens).map(str::to_owned));
        let settings = headers.iter().map(|(name, value)| (name.as_str(), value.expose()));
        self.credentials(settings.flat_map(|(name, value)| in_setting(name, value)))
    }

    /// Hides the user's part and the query of an address too, and each value in it.
    #[must_use]
    pub fn url(mut self, url: &Url) -> Self {
        let values = url.query_pairs().map(|(_, value)| value.into_owned());
        self.words.extend(url.query().map(str::to_owned).into_iter().chain(values));
        // One who has no password may be a key.
        self.words.extend(url.password().is_none().then(|| decoded(url.username())));
        self.credentials(in_url(url))
    }

    /// Hides the credentials among the variables and the arguments of a child process. What else it
    /// is given, such as a folder, may be said.
    pub fn of_child(env: &[(String, Secret)], args: &[String]) -> Self {
        let env = env.iter().map(|(name, value)| (name.as_str(), value.expose()));
        // `--token=..` and `Authorization: ..`
        let single = args.iter().filter_map(|arg| arg.split_once(['=', ':']));
        // `--token ..`
        let double = args.windows(2).filter(|pair| pair[0].starts_with('-'));
        let double = double.map(|pair| (pair[0].as_str(), pair[1].as_str()));
        let addresses = args.iter().map(|arg| ("", arg.as_str()));
        let settings = env.chain(single).chain(double).chain(addresses);
        Self::default().credentials(settings.flat_map(|(name, value)| in_setting(name, value)))
    }

    /// Whether there is no credential to take out.
    pub fn is_empty(&self) -> bool {
        self.cores.is_empty()
    }

    /// The words of an error with none of them left. Asked before a text is cut: half a secret is
    /// one, too.
    pub fn told(&self, text: &str) -> String {
        replaced(text, &self.words)
    }

    /// A text with no credential left.
    pub fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.is_in(text) {
            true => Cow::Owned(replaced(text, &self.credentials)),
            false => Cow::Borrowed(text),
        }
    }

    /// Takes the credentials out of a value: out of its texts and the names of its members.
    pub fn mask(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(masked) = self.masked(text) {
                    *text = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::Object(members) => {
                members.values_mut().for_each(|member| self.mask(member));
                if members.keys().any(|name| self.is_in(name)) {
                    let named = std::mem::take(members).into_iter();
                    let named = named.map(|(name, value)| (self.masked(&name).into_owned(), value));
                    *members = named.collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The value of a JSON text with no credential left; null where it is none.
    pub fn json(&self, text: &str) -> Value {
        let mut value: Value = serde_json::from_str(text).unwrap_or_default();
        if self.may_be_in(text) {
            self.mask(&mut value);
        }
        value
    }

    /// Whether a JSON text may have a credential in it. Only then its values need a look: most
    /// upstreams have no credentials, and most texts do not repeat them. An escape can hide one.
    pub fn may_be_in(&self, json: &str) -> bool {
        !self.cores.is_empty() && (json.contains('\\') || self.is_in(json))
    }

    fn is_in(&self, text: &str) -> bool {
        self.cores.iter().any(|core| text.contains(core.as_str()))
    }
}

fn sorted(mut secrets: Vec<String>) -> Vec<String> {
    secrets.retain(|secret| secret.chars().count() >= SECRET_CHARS_MIN);
    secrets.sort_unstable();
    secrets.dedup();
    secrets.sort_by_key(|secret| Reverse(secret.len()));
    secrets
}

fn replaced(text: &str, secrets: &[String]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK))
}

/// A credential as it is, as it is written in a URL, and as JSON is written by those who escape
/// more than they must: such a text may be a string in another JSON text.
fn forms(credential: &str) -> [String; 6] {
    let escaped = |escape: fn(u32) -> String| -> String {
        let written = |c: char| match c {
            '+' | '=' | '<' | '>' | '&' | '\'' => escape(u32::from(c)),
            plain => plain.to_string(),
        };
        credential.chars().map(written).collect()
    };
    let in_url = encoded(credential);
    [
        credential.to_owned(),
        in_url.replace("%20", "+"),
        in_url,
        credential.replace('/', "\\/"),
        escaped(|code| format!("\\u{code:04x}")),
        escaped(|code| format!("\\u{code:04X}")),
    ]
}

/// The value after the scheme, if there is one.
fn after_scheme(value: &str) -> &str {
    value.split_once(' ').map_or(value, |(_, token)| token.trim_start())
}

/// The credentials in a setting: all of it and its token, or what an address has of them.
fn in_setting(name: &str, value: &str) -> Vec<String> {
    let value = value.trim();
    if let Some(url) = Url::parse(value).ok().filter(Url::has_host) {
        return in_url(&url);
    }
    if !is_credential(name, value) {
        return Vec::new();
    }
    let token = after_scheme(value);
    let is_basic = value.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("basic "));
    let pair = STANDARD.decode(token).ok().filter(|_| is_basic);
    let pair = pair.and_then(|pair| String::from_utf8(pair).ok());
    let password = pair.as_ref().and_then(|pair| Some(pair.split_once(':')?.1.to_owned()));
    let as_written = [value, token].map(str::to_owned);
    as_written.into_iter().chain(pair).chain(password).collect()
}

/// The credentials in an address: a password, or a long user without one, who is a key; how both
/// are sent; and what stands in its query under a name that says so.
fn in_url(url: &Url) -> Vec<String> {
    let named = |(name, value): (Cow<'_, str>, Cow<'_, str>)| {
        is_credential(&name, &value).then(|| value.into_owned())
    };
    let mut found: Vec<String> = url.query_pairs().filter_map(named).collect();
    let user = decoded(url.username());
    match url.password().map(decoded) {
        Some(password) => {
            let pair = format!("{user}:{password}");
            found.extend([STANDARD.encode(&pair), pair, password]);
        }
        None if user.chars().count() >= LONG_CHARS_MIN => {
            found.extend([STANDARD.encode(format!("{user}:")), user]);
        }
        None => {}
    }
    found
}

/// Whether a setting of this name holds a credential.
fn is_credential(name: &str, value: &str) -> bool {
    const EXACT: [&str; 7] = ["auth", "creds", "jwt", "pass", "passwd", "pat", "pwd"];
    const ENDINGS: [&str; 9] = [
        "apikey", "authorization", "bearer", "cookie", "credential", "credentials", "password",
        "secret", "token",
    ];
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> =
        name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let says = |word: &str| EXACT.contains(&word) || ENDINGS.iter().any(|end| word.ends_with(end));
    let chars = value.chars().count();
    if is_path(value) || chars < NAMED_CHARS_MIN {
        return false;
    }
    match words.as_slice() {
        [.., last] if says(last) => true,
        [.., "api", "key"] => true,
        // Short ones name something: the key of a project, the type of a token.
        words => chars >= LONG_CHARS_MIN && words.iter().any(|word| says(word) || *word == "key"),
    }
}

/// Whether it names a file or a folder: a place where a credential is, not the credential.
fn is_path(value: &str) -> bool {
    let is_absolute = value.strip_prefix('/').is_some_and(|rest| rest.contains('/'));
    is_absolute || ["./", "../", "~/"].iter().any(|start| value.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secrets(named: &[(&str, &str)]) -> Vec<(String, Secret)> {
        named.iter().map(|(name, value)| ((*name).to_owned(), Secret::from(*value))).collect()
    }

    #[test]
    fn secrets_in_headers_and_urls_are_redacted_in_all_parts() {
        let headers = secrets(&[("authorization", "Bearer abcdef"), ("x-tenant", "7")]);
        let hidden = Redactor::default().headers(&headers);
        assert_eq!(hidden.told("`Bearer abcdef`, abcdef, 7"), "`***`, ***, 7");
        let url = Url::parse("http://me:hushhush@a.test/x?key=let%20me&n=1").unwrap();
        let hidden = hidden.url(&url);
        let told = hidden.told("abcdef, hushhush at /x?key=let%20me&n=1 or `let me`");
        assert_eq!(told, "***, *** at /x?*** or `***`");
    }

    #[test]
    fn credentials_are_redacted_everywhere_and_other_settings_in_messages_only() {
        let headers = secrets(&[("Authorization", "Bearer s3cr/t-token"), ("X-Tenant", "acme")]);
        let hidden = Redactor::default().headers(&headers);
        let mut value = json!({
            "a": ["Bearer s3cr/t-token", "is s3cr/t-token.", "?t=s3cr%2Ft-token", 7, null],
            "json": r#"{"t":"s3cr\/t-token"}"#,
            "s3cr/t-token": {"tenant": "acme"},
        });
        hidden.mask(&mut value);
        let expected = json!({
            "a": ["***", "is ***.", "?t=***", 7, null],
            "json": r#"{"t":"***"}"#,
            "***": {"tenant": "acme"},
        });
        assert_eq!(value, expected);
        assert_eq!(hidden.told("acme: s3cr/t-token"), "***: ***");
    }

    #[test]
    fn texts_that_cannot_contain_a_credential_are_skipped() {
        let hidden = Redactor::default().credentials(["hushhush"]);
        assert!(hidden.may_be_in(r#"{"a":"hushhush"}"#));
        assert!(hidden.may_be_in(r#"{"a":"hush\u0068ush"}"#), "an escape may hide one");
        assert!(!hidden.may_be_in(r#"{"a":"hush"}"#));
        assert!(!Redactor::default().may_be_in(r#"{"a":"\n"}"#), "nothing is hidden");
    }

    #[test]
    fn basic_credentials_are_redacted_as_sent() {
        let pair = STANDARD.encode("ada:pass:word");
        let basic = format!("Basic {pair}");
        let basic = secrets(&[("Authorization", basic.as_str())]);
        let url = Url::parse("https://ada:pass%3Aword@a.test/mcp").unwrap();
        for hidden in [Redactor::default().headers(&basic), Redactor::default().url(&url)] {
            assert_eq!(hidden.masked(&format!("{pair}, pass:word")), "***, ***");
            assert_eq!(hidden.masked("ada"), "ada");
        }
        let key = Url::parse("https://k3y-without-a-user@a.test/").unwrap();
        assert_eq!(Redactor::default().url(&key).masked("k3y-without-a-user"), "***");
        let user = Url::parse("https://admin@a.test/").unwrap();
        assert_eq!(Redactor::default().url(&user).masked("admin"), "admin");
        assert_eq!(Redactor::default().url(&user).told("admin"), "***");
    }

    #[test]
    fn only_credential_variables_of_a_child_are_redacted() {
        let long = "0123456789abcdef";
        for (name, value, is_hidden) in [
            ("GITHUB_TOKEN", "ghp_123", true),
            ("DB_PASSWORD", "letmein", true),
            ("X-Api-Key", "letmein", true),
            ("SERVICE_KEY", long, true),
            ("OPENAI_API_KEY_2", long, true),
            ("githubToken", "ghp_123", true),
            ("JIRA_PROJECT_KEY", "MOBILE", false),
            ("GIT_AUTHOR_NAME", "Ada Lovelace of London", false),
            ("MAX_TOKENS", "100000", false),
            ("AUTH_MODE", "bearer", false),
            ("TOKEN_FILE", "/run/secrets/token", false),
            ("ROOT", "/home/ada/projects", false),
            ("LOG_LEVEL", "warning", false),
            ("DB_PASSWORD", "x", false),
        ] {
            let hidden = Redactor::of_child(&secrets(&[(name, value)]), &[]);
            let expected = if is_hidden { MASK } else { value };
            assert_eq!(hidden.masked(value), expected, "{name}");
        }
        let url = Redactor::of_child(&secrets(&[("DATABASE", "pg://me:hushhush@db.test/x")]), &[]);
        assert_eq!(url.masked("hushhush at db.test"), "*** at db.test");
    }

    #[test]
    fn credentials_in_command_arguments_are_redacted() {
        let args = ["--header", "Authorization: Bearer t0ken-one", "--token", "t0ken-two"];
        let more =
            ["--api-key=t0ken-three", "https://a.test/?token=t0ken-four", "--root", "/tmp/x"];
        let args: Vec<String> = args.into_iter().chain(more).map(str::to_owned).collect();
        let hidden = Redactor::of_child(&[], &args);
        let said = "t0ken-one t0ken-two t0ken-three t0ken-four /tmp/x";
        assert_eq!(hidden.masked(said), "*** *** *** *** /tmp/x");
    }
}
