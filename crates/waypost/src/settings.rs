//! A project's settings as they hold now, each with where it comes from: a flag goes before the
//! environment, that before `waypost.toml`, that before the default.

use crate::client::DEFAULT_SERVER;
use crate::exit::Failure;
use kernel::limits::Limits;
use kernel::plan::mistake::Mistake;
use serde_json::{Map, Value, json};
use server::config::{AdminRule, Config};
use server::project::CONFIG_FILE;
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody said anything.
    Default,
    /// A line of the project's file.
    File(usize),
    /// A variable.
    Environment(&'static str),
    /// The command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(line) => write!(f, "{CONFIG_FILE}:{line}"),
            Origin::Environment(name) => write!(f, "environment {name}"),
            Origin::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// One setting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    /// Its name, such as `server.port`.
    pub(crate) key: String,
    /// Its value; of a secret only whether there is one.
    pub(crate) value: Value,
    /// Where it comes from.
    pub(crate) origin: Origin,
}

/// A project's file, and what it says.
#[derive(Debug, Default)]
pub(crate) struct File {
    /// Where it is, or would be.
    pub(crate) path: PathBuf,
    /// What it says, with defaults for the rest.
    pub(crate) config: Config,
    /// Its text; none where there is no file.
    text: Option<String>,
}

impl File {
    /// Reads the file of this project folder; without one the defaults hold.
    pub(crate) fn read(folder: &Path) -> Result<Self, Failure> {
        let joined = folder.join(CONFIG_FILE);
        let path = joined.strip_prefix(".").unwrap_or(&joined).to_path_buf();
        if !folder.is_dir() {
            return Err(Failure::usage(format!("there is no folder `{}`", folder.display()))
                .hint("`waypost init DIR` writes a project that runs as it is"));
        }
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { path, ..Self::default() });
            }
            Err(error) => {
                return Err(Failure::usage(format!("cannot read `{}`: {error}", path.display())));
            }
        };
        let config = Config::parse(&path.display().to_string(), &text).map_err(faulty)?;
        Ok(Self { path, config, text: Some(text) })
    }

    /// Whether there is such a file.
    pub(crate) fn is_there(&self) -> bool {
        self.text.is_some()
    }

    /// Every setting, in the order of the reference; `server` is what the client talks to.
    pub(crate) fn settings(&self, server: &str) -> Vec<Setting> {
        let text = self.text.as_deref().unwrap_or_default();
        let mut settings = defaults();
        for (key, value) in written(text) {
            match settings.iter_mut().find(|setting| setting.key == key) {
                Some(known) => (known.value, known.origin) = value,
                None => settings.push(Setting { key, value: value.0, origin: value.1 }),
            }
        }
        for setting in &mut settings {
            overrule(setting);
        }
        settings.extend(beside_the_file(server));
        settings
    }
}

fn faulty(mistakes: Vec<Mistake>) -> Failure {
    let lines = mistakes.iter().map(Mistake::to_string).collect();
    Failure::usage(format!("there are mistakes in {CONFIG_FILE}")).lines(lines)
}

/// All settings of the file with their defaults.
fn defaults() -> Vec<Setting> {
    let Config { server, limits, .. } = Config::default();
    let admin = match server.admin {
        AdminRule::Local => "local",
        AdminRule::Key => "key",
    };
    let setting = |key: String, value: Value| Setting { key, value, origin: Origin::Default };
    let mut all = vec![
        setting("server.host".to_owned(), json!(server.host)),
        setting("server.port".to_owned(), json!(server.port)),
        setting("server.hosts".to_owned(), json!(server.hosts)),
        setting("server.admin".to_owned(), json!(admin)),
        setting("tools.http.allow".to_owned(), json!([])),
    ];
    let limits = json!(limits);
    let limit = |name: &&str| setting(format!("limits.{name}"), limits[*name].clone());
    all.extend(Limits::NAMES.iter().map(limit));
    all
}

/// What the file's text sets, by key.
fn written(text: &str) -> BTreeMap<String, (Value, Origin)> {
    let mut all = BTreeMap::new();
    // Both read well: the text was read as settings before.
    let values: Map<String, Value> = toml::from_str(text).unwrap_or_default();
    if let Ok(table) = DeTable::parse(text) {
        collect(text, table.get_ref(), &Value::Object(values), "", &mut all);
    }
    all
}

fn collect(
    text: &str,
    table: &DeTable<'_>,
    values: &Value,
    path: &str,
    all: &mut BTreeMap<String, (Value, Origin)>,
) {
    for (key, value) in table {
        let name: &str = key.get_ref();
        let inner = &values[name];
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match value.get_ref().as_table() {
            Some(table) => collect(text, table, inner, &path, all),
            None => {
                let before = text.get(..key.span().start).unwrap_or_default();
                let line = before.matches('\n').count() + 1;
                all.insert(path, (inner.clone(), Origin::File(line)));
            }
        }
    }
}

/// Variables that `waypost up` takes for a setting of the file.
const OVERRULING: [(&str, &str); 2] =
    [("server.host", "WAYPOST_HOST"), ("server.port", "WAYPOST_PORT")];

fn overrule(setting: &mut Setting) {
    let found = OVERRULING.into_iter().find(|(key, _)| *key == setting.key);
    let Some((_, variable)) = found else { return };
    if let Some(text) = variable_text(variable) {
        // A port is a number; what is none is shown as it is, and refused by `waypost up`.
        setting.value = text.parse::<u16>().map_or(json!(text), |port| json!(port));
        setting.origin = Origin::Environment(variable);
    }
}

/// What no file holds: where the client looks, how much is logged, and whether there is a key.
fn beside_the_file(server: &str) -> Vec<Setting> {
    let server_origin = match variable_text("WAYPOST_SERVER") {
        Some(text) if text == server => Origin::Environment("WAYPOST_SERVER"),
        _ if server == DEFAULT_SERVER => Origin::Default,
        _ => Origin::Flag("--server"),
    };
    let of = |name: &'static str| match variable_text(name) {
        Some(text) => (Some(text), Origin::Environment(name)),
        None => (None, Origin::Default),
    };
    let (level, level_origin) = of("LOG_LEVEL");
    let (admin_key, key_origin) = of("WAYPOST_ADMIN_KEY");
    let admin_key = if admin_key.is_some() { "set" } else { "unset" };
    let setting = |key: &str, value: Value, origin| Setting { key: key.to_owned(), value, origin };
    vec![
        setting("client.server", json!(server), server_origin),
        setting("log.level", json!(level.as_deref().unwrap_or("info")), level_origin),
        setting("admin.key", json!(admin_key), key_origin),
    ]
}

/// A variable that says something.
fn variable_text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(settings: &'a [Setting], key: &str) -> &'a Setting {
        settings.iter().find(|setting| setting.key == key).unwrap()
    }

    #[test]
    fn every_value_says_where_it_comes_from() {
        let text = "# ours\n[tools.http]\nallow = [\"a.test\"]\n\n[limits]\nbody_depth_max = 8\n";
        let file = File {
            path: PathBuf::from(CONFIG_FILE),
            config: Config::parse(CONFIG_FILE, text).unwrap(),
            text: Some(text.to_owned()),
        };
        let settings = file.settings(DEFAULT_SERVER);
        let allow = found(&settings, "tools.http.allow");
        assert_eq!((&allow.value, &allow.origin), (&json!(["a.test"]), &Origin::File(3)));
        let depth = found(&settings, "limits.body_depth_max");
        assert_eq!((&depth.value, &depth.origin), (&json!(8), &Origin::File(6)));
        let bytes = found(&settings, "limits.body_bytes_max");
        assert_eq!(bytes.value, json!(Limits::default().body_bytes_max));
        assert_eq!(bytes.origin, Origin::Default);
        assert_eq!(settings.len(), 5 + Limits::NAMES.len() + 3);
    }

    #[test]
    fn dotted_keys_and_inline_tables_are_found() {
        let all = written("server.port = 1\nlimits = {body_depth_max = 2}\n");
        assert_eq!(all["server.port"], (json!(1), Origin::File(1)));
        assert_eq!(all["limits.body_depth_max"], (json!(2), Origin::File(2)));
    }
}
