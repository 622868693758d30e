//! Rule: one file names the realm of a server. Code that names it elsewhere would still mean that
//! one where a caller has another.

use super::finding::{Finding, Rule};
use super::source::{Line, Source};

/// The file that names it.
const HOME: &str = "crates/project/src/realm.rs";

/// Crates that know callers and could put a realm of their own in their place.
const CHECKED: &[&str] = &[
    "crates/edge/src/", "crates/rest/src/", "crates/mcp/src/", "crates/a2a/src/",
    "crates/compat/src/", "crates/server/src/", "crates/waypost/src/",
];

/// What makes a realm, or a caller in one, of a literal.
const NAMED: &[&str] = &["RealmId::from(\"", "Caller::new(\""];

/// The name itself; beside a realm it is one.
const NAME: &str = "\"default\"";

/// Finds realms that are named outside that file.
pub fn named(source: &Source) -> Vec<Finding> {
    let is_checked = CHECKED.iter().any(|folder| source.path.starts_with(folder));
    if !is_checked || source.path == HOME {
        return Vec::new();
    }
    let finding = |line: &Line| Finding {
        path: source.path.clone(),
        line: line.number,
        rule: Rule::Realm,
        wrong: format!("a realm is named outside `{HOME}`"),
        remedy: "take the realm of the caller, or `default_realm()` where there is none",
    };
    source.production().filter(|line| names_realm(&line.raw)).map(finding).collect()
}

fn names_realm(line: &str) -> bool {
    let beside_realm = line.contains(NAME) && line.to_lowercase().contains("realm");
    beside_realm || NAMED.iter().any(|token| line.contains(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        named(&Source::parse(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_realm_is_named_in_one_file() {
        let text = "const REALM: &str = \"default\";\n\
            fn f() {\n    Caller::new(\"a\", by);\n    RealmId::from(\"a\");\n}\n\
            fn g() { json!({\"realm\": \"default\"}) }\n";
        for path in ["crates/edge/src/request/server_state.rs", "crates/waypost/src/examples.rs"] {
            assert_eq!(lines(path, text), [1, 3, 4, 6], "{path}");
        }
        assert!(lines(HOME, text).is_empty());
        assert!(lines("crates/kernel/src/values/caller.rs", text).is_empty());
        assert!(lines("crates/server/tests/it/runs.rs", text).is_empty());
    }

    #[test]
    fn other_defaults_and_realms_of_others_are_not_meant() {
        let text = "fn f() {\n    keys.push(\"default\");\n    RealmId::from(name);\n}\n\
            #[cfg(test)]\nmod tests {\n    fn g() { Caller::new(\"default\", \"ann\"); }\n}\n";
        assert!(lines("crates/project/src/config.rs", text).is_empty());
    }
}
