//! Rules about the shape of a file: how long it is, how wide, what it is called, and that it
//! begins by saying what lives in it.

use super::finding::{Finding, Rule};
use super::lexer::has_token;
use super::source::{Line, Source};

const FILE_LINES_MAX: usize = 500;
const LINE_CHARACTERS_MAX: usize = 100;

/// Names that say nothing about what belongs inside, and so invite everything.
const BANNED_NAMES: &[&str] =
    &["core", "common", "utils", "util", "helpers", "helper", "manager", "misc"];

/// Finds files that are too long, tests not counted.
pub fn length(source: &Source) -> Vec<Finding> {
    let first_too_many = source.production().nth(FILE_LINES_MAX);
    let finding = first_too_many.map(|line| Finding {
        path: source.path.clone(),
        line: line.number,
        rule: Rule::Length,
        wrong: format!(
            "`{}` lines without tests, more than `{FILE_LINES_MAX}`",
            source.production().count()
        ),
        remedy: "find the missing noun and give it a file",
    });
    finding.into_iter().collect()
}

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

/// Finds lines that are too wide and could be shorter.
pub fn width(source: &Source) -> Vec<Finding> {
    let too_wide = source.lines.iter().filter(|line| is_too_wide(line));
    too_wide
        .map(|line| Finding {
            path: source.path.clone(),
            line: line.number,
            rule: Rule::Width,
            wrong: format!(
                "`{}` characters, more than `{LINE_CHARACTERS_MAX}`",
                line.raw.chars().count()
            ),
            remedy: "break the line",
        })
        .collect()
}

fn is_too_wide(line: &Line) -> bool {
    let has_address = line.raw.contains("http://") || line.raw.contains("https://");
    // A literal that is itself too wide cannot be helped; in a test it is the test's data.
    let is_literal = line.literal_length > LINE_CHARACTERS_MAX;
    let is_test_data = line.in_test && line.literal_length > 0;
    let excused = has_address || is_literal || is_test_data;
    !excused && line.raw.chars().count() > LINE_CHARACTERS_MAX
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
    fn a_long_file_is_found_but_its_tests_do_not_count() {
        let full = "fn f() {}\n".repeat(FILE_LINES_MAX);
        let tests = format!("{full}#[cfg(test)]\nmod tests {{\n{full}}}\n");
        assert!(report(length, PATH, &tests).is_empty());
        assert!(report(length, "crates/kernel/tests/it.rs", &full.repeat(2)).is_empty());
        let over = format!("{full}fn g() {{}}\n");
        let found = report(length, PATH, &over);
        assert_eq!(found, ["501: `501` lines without tests, more than `500`"]);
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

    #[test]
    fn wide_lines_are_found() {
        let wide = format!("let a = {};\n", "b".repeat(LINE_CHARACTERS_MAX));
        assert_eq!(report(width, PATH, &wide), ["1: `109` characters, more than `100`"]);
        let address = format!("// https://{}\n", "b".repeat(LINE_CHARACTERS_MAX));
        assert!(report(width, PATH, &address).is_empty());
        let literal = format!("let a = \"{}\";\n", "b ".repeat(LINE_CHARACTERS_MAX));
        assert!(report(width, PATH, &literal).is_empty());
        let short_literal = format!("let a = f({}, \"b\");\n", "c".repeat(LINE_CHARACTERS_MAX));
        assert_eq!(report(width, PATH, &short_literal).len(), 1);
        assert!(report(width, "crates/kernel/tests/it.rs", &short_literal).is_empty());
    }
}
