//! Rule: every test that the table of invariants names exists, and the table says which command
//! runs it. Without it a renamed or removed test would leave a promise that nothing holds.

use super::finding::{Finding, Rule};
use super::lexer::has_token;
use super::source::Source;
use super::tree::File;
use crate::shares;

/// The page with the table: number, invariant, command, tests. A row without a number adds to the
/// one above.
const PAGE: &str = "docs/internals/invariants.md";

/// Where scenes live, one file each.
const SCENES: &str = "crates/kernel/tests/scenes";

/// What a name of the table begins with if it is a scene and not a function.
const SCENE: &str = "scene ";

/// Checks each row. In its last cell a name in backticks with a slash is a file or a folder, and
/// the names after it are tests in there.
pub fn check(files: &[File], sources: &[Source]) -> Vec<Finding> {
    let finding = |line: usize, wrong: String| Finding {
        path: PAGE.to_owned(),
        line,
        rule: Rule::Invariants,
        wrong,
        remedy: "name a test that holds the invariant, with the file or folder that has it",
    };
    let page = files.iter().find(|file| file.path == PAGE);
    let rows: Vec<Row<'_>> = page.map(|page| rows(&page.text)).unwrap_or_default();
    if rows.is_empty() {
        return vec![finding(1, "there is no table of invariants".to_owned())];
    }
    let workspace = Workspace { files, sources };
    let mut findings = Vec::new();
    for row in &rows {
        let mistakes = workspace.mistakes(row).into_iter().chain(misplaced(row));
        findings.extend(mistakes.map(|wrong| finding(row.line, wrong)));
    }
    findings
}

/// What is wrong with what a row says of the command that runs its tests.
fn misplaced(row: &Row<'_>) -> Option<String> {
    let mut place = "";
    let mut quick = false;
    let mut long = false;
    for name in row.tests.split('`').skip(1).step_by(2) {
        if name.starts_with(SCENE) {
            quick = true;
        } else if name.contains('/') {
            place = name;
        } else {
            let (program, modules) = program_of(place);
            match shares::is_quick(&program, &format!("{modules}{name}")) {
                true => quick = true,
                false => long = true,
            }
        }
    }
    let command = match (quick, long) {
        (true, true) => "both",
        (false, true) => "prove",
        (_, false) => "test",
    };
    let says = row.command.trim();
    (says != command).then(|| format!("this row says `{says}`, but its command is `{command}`"))
}

/// The test program of a file or folder, and the modules that stand before its tests' names. The
/// contract suite is run by `testkit/it`.
fn program_of(place: &str) -> (String, String) {
    let mut parts = place.trim_end_matches(".rs").split('/').skip_while(|part| *part == "crates");
    let package = parts.next().unwrap_or_default();
    let program = match parts.next() {
        Some("tests") => format!("{package}/{}", parts.next().unwrap_or_default()),
        _ => package.to_owned(),
    };
    let modules = parts.filter(|part| *part != "mod").map(|part| format!("{part}::"));
    (program, modules.collect())
}

/// One row of the table.
pub(super) struct Row<'a> {
    /// Counted from one.
    pub(super) line: usize,
    /// The cell before the last.
    pub(super) command: &'a str,
    /// Its last cell.
    pub(super) tests: &'a str,
}

/// The rows below the lines that separate a table from its header.
pub(super) fn rows(text: &str) -> Vec<Row<'_>> {
    let mut in_body = false;
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(cells) = line.strip_prefix('|') else {
            in_body = false;
            continue;
        };
        if in_body {
            let cells = cells.trim_end().trim_end_matches('|');
            let mut cells = cells.rsplit('|');
            let tests = cells.next().unwrap_or_default();
            let command = cells.next().unwrap_or_default();
            rows.push(Row { line: index + 1, command, tests });
        }
        in_body |= cells.starts_with("---");
    }
    rows
}

/// What names of the table can stand for.
pub(super) struct Workspace<'a> {
    pub(super) files: &'a [File],
    pub(super) sources: &'a [Source],
}

impl Workspace<'_> {
    /// What is wrong with the tests that a row names.
    pub(super) fn mistakes(&self, row: &Row<'_>) -> Vec<String> {
        let mut mistakes = Vec::new();
        let mut place = None;
        let mut tests = 0;
        for name in row.tests.split('`').skip(1).step_by(2) {
            if let Some(scene) = name.strip_prefix(SCENE) {
                tests += 1;
                if !self.has_file(&format!("{SCENES}/{scene}.scene")) {
                    mistakes.push(format!("`{SCENES}` has no scene `{scene}`"));
                }
            } else if name.contains('/') {
                place = Some(name);
                if !self.has_file(name) {
                    mistakes.push(format!("there is no `{name}`"));
                }
            } else {
                tests += 1;
                match place {
                    Some(place) if self.has_test(place, name) => {}
                    Some(place) => mistakes.push(format!("`{place}` has no test `{name}`")),
                    None => mistakes.push(format!("`{name}` is in no file")),
                }
            }
        }
        if tests == 0 {
            mistakes.push("this row names no test".to_owned());
        }
        mistakes
    }

    fn has_file(&self, place: &str) -> bool {
        self.files.iter().any(|file| is_in(&file.path, place))
    }

    fn has_test(&self, place: &str, name: &str) -> bool {
        let function = format!("fn {name}");
        let sources = self.sources.iter().filter(|source| is_in(&source.path, place));
        sources.flat_map(|source| &source.lines).any(|line| has_token(&line.code, &function))
    }
}

/// True for the file of this name and for files in the folder of this name.
fn is_in(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "crates/a/tests/it/gate.rs";
    const HEADER: &str = "# Invariants\n\n| | invariant | command | tests |\n|---|---|---|---|\n";

    fn found(page: &str) -> Vec<String> {
        let text = "async fn calls_end() {}\n// fn only_said() {}\n";
        let files = [
            File { path: PAGE.to_owned(), text: page.to_owned() },
            File { path: SOURCE.to_owned(), text: text.to_owned() },
            File { path: format!("{SCENES}/ask.scene"), text: String::new() },
        ];
        let sources = [Source::parse(SOURCE, text)];
        let findings = check(&files, &sources);
        findings.iter().map(|finding| format!("{}: {}", finding.line, finding.wrong)).collect()
    }

    fn found_in_rows(rows: &str) -> Vec<String> {
        found(&format!("{HEADER}{rows}"))
    }

    #[test]
    fn tests_that_exist_are_no_finding() {
        let rows = "| 1 | calls end | test | `crates/a/tests/it/gate.rs` `calls_end` |\n\
            | | so do asks | test | `scene ask`; `crates/a/tests` `calls_end` |\n\
            \nText `after` the table.\n";
        assert!(found_in_rows(rows).is_empty());
    }

    #[test]
    fn tests_that_do_not_exist_are_found() {
        let rows = "| 1 | `a` | test | `crates/a/tests/it/gate.rs` `calls_end`, `calls`, `only_said` |\n\
            | 2 | b | test | `scene asks` |\n\
            | 3 | c | test | `crates/a/test` `calls_end` |\n\
            | 4 | d | test | `calls_end` |\n";
        assert_eq!(
            found_in_rows(rows),
            [
                "5: `crates/a/tests/it/gate.rs` has no test `calls`",
                "5: `crates/a/tests/it/gate.rs` has no test `only_said`",
                "6: `crates/kernel/tests/scenes` has no scene `asks`",
                "7: there is no `crates/a/test`",
                "7: `crates/a/test` has no test `calls_end`",
                "8: `calls_end` is in no file",
            ]
        );
    }

    #[test]
    fn an_invariant_names_at_least_one_test() {
        let rows = "| 1 | a | test | by hand |\n| 2 | b | test | `crates/a/tests` |\n";
        let nothing = ["5: this row names no test", "6: this row names no test"];
        assert_eq!(found_in_rows(rows), nothing);
    }

    #[test]
    fn a_row_says_which_command_runs_its_tests() {
        let of = |place: &str| program_of(place);
        let named = |program: &str, modules: &str| (program.to_owned(), modules.to_owned());
        assert_eq!(
            of("crates/engine/tests/it/failure_rules.rs"),
            named("engine/it", "failure_rules::")
        );
        assert_eq!(of("crates/kernel/tests/scenes.rs"), named("kernel/scenes", ""));
        assert_eq!(of("crates/kernel/src/plan/tests.rs"), named("kernel", "plan::tests::"));
        assert_eq!(of("xtask/src/tidy/mod.rs"), named("xtask", "tidy::"));
        let row = |command, tests| misplaced(&Row { line: 1, command, tests });
        let long = "`crates/fixture/tests/process/kill/mod.rs` `a_killed_server`";
        assert_eq!(row(" prove ", long), None);
        let both = format!("{long}; `scene ask`");
        assert_eq!(row(" both ", &both), None);
        let wrong = row("test", long).unwrap_or_default();
        assert_eq!(wrong, "this row says `test`, but its command is `prove`");
    }

    #[test]
    fn the_table_cannot_go_unnoticed() {
        let nothing = ["1: there is no table of invariants"];
        assert_eq!(found("Nothing here.\n"), nothing);
        assert_eq!(found(HEADER), nothing);
        let without_page = check(&[], &[]);
        assert_eq!(without_page.len(), 1);
    }
}
