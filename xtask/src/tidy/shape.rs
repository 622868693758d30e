//! Rules about the shape of a file: that it begins by saying what lives in it, and that its name
//! says so too.

use super::finding::{Finding, Rule};
use super::lexer::has_token;
use super::source::Source;

/// Names that say nothing about what belongs inside, and so invite everything.
const BANNED_NAMES: &[&str] =
    &["core", "common", "utils", "util", "helpers", "helper", "manager", "misc"];

/// Finds files without a head.
pub fn head(source: &Source) -> Vec<Finding> {
    let first = source.lines.iter().find(|line| !line.raw.trim().is_empty());
    if first.is_some_and(|line| line.raw.starts_with("//!")) {
        return Vec::new();
    }
    vec![Finding {
        path: source.path.clone(),
        line: first.map_or(1, |line| line.number),
        rule: Rule::Head,
        wrong: "the file does not begin with a `//!` head".to_owned(),
        remedy: "say in one to five lines what lives here and why",
    }]
}

/// Finds files, folders, crates and inline modules with a name that invites everything.
pub fn name(source: &Source) -> Vec<Finding> {
    let own = module_name(&source.path);
    let mut found = Vec::new();
    found.extend(BANNED_NAMES.iter().find(|banned| **banned == own).map(|banned| (1, banned)));
    for line in source.lines.iter().filter(|line| line.code.trim_end().ends_with('{')) {
        let declares = |banned: &str| has_token(&line.code, &format!("mod {banned}"));
        let inline = BANNED_NAMES.iter().find(|banned| declares(banned));
        found.extend(inline.map(|banned| (line.number, banned)));
    }
    found
        .into_iter()
        .map(|(line, banned)| Finding {
            path: source.path.clone(),
            line,
            rule: Rule::Name,
            wrong: format!("nothing is called `{banned}` here"),
            remedy: "name it after the noun that lives in it",
        })
        .collect()
}

/// What a file is called when it is imported: a `mod.rs` and a crate's root bear their folder's
/// name.
fn module_name(path: &str) -> &str {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        [.., folder, "mod.rs"] => folder,
        [.., folder, "src", "lib.rs" | "main.rs"] => folder,
        [.., file] => file.trim_end_matches(".rs"),
        [] => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/kernel/src/definition/plan.rs";

    fn report(rule: fn(&Source) -> Vec<Finding>, path: &str, text: &str) -> Vec<String> {
        let findings = rule(&Source::parse(path, text));
        findings.iter().map(|finding| format!("{}: {}", finding.line, finding.wrong)).collect()
    }

    #[test]
    fn a_missing_head_is_found() {
        assert!(report(head, PATH, "\n//! Plans.\nfn f() {}\n").is_empty());
        assert_eq!(report(head, PATH, "\nfn f() {}\n//! Late.\n").len(), 1);
        assert_eq!(report(head, PATH, "").len(), 1);
    }

    #[test]
    fn names_that_invite_everything_are_found() {
        for path in [
            "crates/kernel/src/utils.rs",
            "crates/kernel/src/decide/helpers/mod.rs",
            "crates/core/src/lib.rs",
            "crates/kernel/tests/common/mod.rs",
        ] {
            assert_eq!(report(name, path, "").len(), 1, "{path}");
        }
        assert!(report(name, "crates/kernel/src/utility.rs", "").is_empty());
        assert!(report(name, "crates/kernel/src/lib.rs", "use std::core;\n").is_empty());
        let inline = report(name, PATH, "pub mod misc {\n}\n");
        assert_eq!(inline, ["1: nothing is called `misc` here"]);
    }
}
