//! Variables that stand for a setting: `WAYPOST_<SECTION>_<KEY>`, and the short `WAYPOST_HOST` and
//! `WAYPOST_PORT`. Each becomes a layer of one line, read as the same line of a file would be.

use crate::environment::{Environment, Variable};
use kernel::definition::plan::mistake::{Mistake, Position, did_you_mean};
use project::config::SERVER_KEYS;
use project::layer::{Layer, Source};
use project::limits::SettableLimits;
use serde_json::{Value, json};

/// A table of the settings whose keys are variables too.
struct Section {
    name: &'static str,
    /// How its variables begin. The client's own `WAYPOST_SERVER` does not: it ends before the `_`.
    prefix: &'static str,
    keys: &'static [&'static str],
}

const SECTIONS: [Section; 2] = [
    Section { name: "server", prefix: "WAYPOST_SERVER_", keys: SERVER_KEYS },
    Section { name: "limits", prefix: "WAYPOST_LIMITS_", keys: SettableLimits::NAMES },
];

/// The short names of two settings; they go before the long ones.
const SHORT: [(&str, &str); 2] = [("WAYPOST_HOST", "host"), ("WAYPOST_PORT", "port")];

/// One layer for each variable that stands for a setting, and the mistakes in their names.
pub(super) fn layers(environment: &Environment) -> (Vec<Layer>, Vec<Mistake>) {
    let mut layers = Vec::new();
    let mut mistakes = Vec::new();
    for section in &SECTIONS {
        for variable in environment.beginning_with(section.prefix) {
            match section.key_of(&variable.name) {
                Some(key) => layers.push(layer(section.name, key, variable)),
                None => mistakes.push(section.unknown(variable)),
            }
        }
    }
    for (name, key) in SHORT {
        layers.extend(environment.get(name).map(|variable| layer("server", key, variable)));
    }
    // Whatever the process sets overrides the project's file, under a long or a short name.
    layers.sort_by_key(|layer| matches!(layer.source, Source::Variable(_)));
    (layers, mistakes)
}

impl Section {
    fn key_of(&self, variable: &str) -> Option<&'static str> {
        let word = variable.strip_prefix(self.prefix)?;
        self.keys.iter().copied().find(|key| key.to_uppercase() == word)
    }

    fn unknown(&self, variable: &Variable) -> Mistake {
        let Section { name: section, prefix, keys } = self;
        let word = variable.name.strip_prefix(prefix).unwrap_or_default();
        let hint = match did_you_mean(word, keys.iter().copied()) {
            Some(key) => format!("did you mean `{prefix}{}`?", key.to_uppercase()),
            None => format!("`waypost config show` lists all settings of `[{section}]`"),
        };
        let what = format!("there is no setting for the variable `{}`", variable.name);
        let mut mistake = Mistake::error(what).hint(hint);
        // A variable of the process has no place beside its name.
        if let Source::Line { file, line } = &variable.source {
            mistake = mistake.at(Position { line: *line, column: 1 }, "");
            mistake.file = Some(file.clone());
        }
        mistake
    }
}

fn layer(section: &str, key: &str, variable: &Variable) -> Layer {
    let value = value(section, key, &variable.text);
    // A JSON value is written as a TOML value is: a number, a text or a list of texts.
    Layer { source: variable.source.clone(), text: format!("{section}.{key} = {value}") }
}

/// The value that the text stands for. What is no number stays a text, and is refused where a
/// number must be.
fn value(section: &str, key: &str, text: &str) -> Value {
    match (section, key) {
        ("server", "hosts" | "origins") => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            json!(items.collect::<Vec<_>>())
        }
        ("server", "host" | "public_url" | "admin") => json!(text),
        _ => text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use project::config::Config;

    fn told(process: &[(&str, &str)], file: &str) -> Vec<String> {
        let (layers, mut mistakes) = layers(&Environment::of_test(process, file));
        mistakes.extend(Config::layered(&layers).err().unwrap_or_default());
        mistakes.iter().map(Mistake::to_string).collect()
    }

    #[test]
    fn every_setting_of_both_sections_has_its_variable() {
        let variables = [
            ("WAYPOST_SERVER", "http://127.0.0.1:1"),
            ("WAYPOST_ADMIN_KEY", "secret"),
            ("WAYPOST_SERVER_HOST", "::1"),
            ("WAYPOST_SERVER_HOSTS", "a.test, b.test:8443,"),
            ("WAYPOST_SERVER_ORIGINS", "https://d.test,"),
            ("WAYPOST_SERVER_ADMIN", "key"),
            ("WAYPOST_SERVER_PUBLIC_URL", "https://c.test"),
            ("WAYPOST_SERVER_PORT", "1"),
            ("WAYPOST_PORT", "2"),
            ("WAYPOST_LIMITS_BODY_BYTES_MAX", "9"),
        ];
        let (layers, mistakes) = layers(&Environment::of_test(&variables, ""));
        assert!(mistakes.is_empty(), "{mistakes:?}");
        let config = Config::layered(&layers).unwrap();
        assert_eq!(config.server.host.to_string(), "::1");
        assert_eq!(config.server.hosts, ["a.test", "b.test:8443"]);
        assert_eq!(config.server.names(), ["a.test", "b.test:8443", "c.test"]);
        assert_eq!(config.server.origins, ["https://d.test"]);
        assert_eq!(config.server.admin, project::config::AdminRule::Key);
        assert_eq!(config.server.port, 2, "the short name goes first");
        assert_eq!(config.limits.body_bytes_max, 9);
        let file = Environment::of_test(&[("WAYPOST_SERVER_PORT", "1")], "WAYPOST_PORT=2\n");
        let config = Config::layered(&self::layers(&file).0).unwrap();
        assert_eq!(config.server.port, 1, "the process goes before the file");
        for section in &SECTIONS {
            for key in section.keys {
                let name = format!("{}{}", section.prefix, key.to_uppercase());
                assert_eq!(section.key_of(&name), Some(*key));
            }
        }
    }

    #[test]
    fn a_misspelt_variable_is_reported() {
        assert_eq!(
            told(&[("WAYPOST_SERVER_PROT", "1")], "\nWAYPOST_LIMITS_BODY_BYTE_MAX=1\n"),
            [
                "error: there is no setting for the variable `WAYPOST_SERVER_PROT`; \
                 hint: did you mean `WAYPOST_SERVER_PORT`?",
                ".env:2:1: error: there is no setting for the variable \
                 `WAYPOST_LIMITS_BODY_BYTE_MAX`; hint: did you mean \
                 `WAYPOST_LIMITS_BODY_BYTES_MAX`?",
            ]
        );
        let told = told(&[("WAYPOST_LIMITS_SOMETHING_ELSE", "1")], "");
        assert!(told[0].ends_with("`waypost config show` lists all settings of `[limits]`"));
    }

    #[test]
    fn a_wrong_value_is_reported_with_its_variable() {
        let told = told(&[("WAYPOST_PORT", "soon")], "WAYPOST_LIMITS_BODY_DEPTH_MAX=-1\n");
        assert_eq!(
            told,
            [
                ".env:1:1: error: `body_depth_max` must be a whole number, and is a text",
                "environment WAYPOST_PORT: error: `port` must be a whole number from 0 to 65535, \
                 and is a text",
            ]
        );
        let told = self::told(&[("WAYPOST_HOST", "a.test")], "");
        assert!(told[0].contains("environment WAYPOST_HOST: error: `a.test` is not"), "{told:?}");
        let told = self::told(
            &[("WAYPOST_LIMITS_CALLS_ACTIVE_MAX", "0")],
            "WAYPOST_LIMITS_RUN_EVENTS_MAX=0\n",
        );
        assert_eq!(
            told,
            [
                ".env:1:1: error: `run_events_max` = 0 is out of range: it can be 10 to \
                 1000000000; hint: write a whole number from 10 to 1000000000",
                "environment WAYPOST_LIMITS_CALLS_ACTIVE_MAX: error: `calls_active_max` = 0 is out \
                 of range: it can be 1 to 100000; hint: write a whole number from 1 to 100000",
            ]
        );
        let told = self::told(&[("WAYPOST_PORT", "99999")], "");
        assert_eq!(
            told,
            ["environment WAYPOST_PORT: error: `port` must be a whole number from 0 to 65535, \
                 and is 99999"]
        );
    }
}
