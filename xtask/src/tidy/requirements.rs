//! Rule: every requirement in the table of A2A names tests that exist, or says why it has none. A
//! renamed or removed test would leave a requirement that nothing holds.

use super::finding::{Finding, Rule};
use super::invariants::{Row, Workspace, rows};
use super::source::Source;
use super::tree::File;

/// The page with the tables: section, requirement, tests.
const PAGE: &str = "docs/reference/a2a-requirements.md";

/// How a row begins that needs no test; its reason follows.
const NOT_APPLICABLE: &str = "not applicable: ";

/// Checks each row of the page, in the way of the table of invariants.
pub fn check(files: &[File], sources: &[Source]) -> Vec<Finding> {
    let finding = |line: usize, wrong: String| Finding {
        path: PAGE.to_owned(),
        line,
        rule: Rule::Requirements,
        wrong,
        remedy: "name a test with the file or folder that has it, or write `not applicable: ` and \
                 why",
    };
    let page = files.iter().find(|file| file.path == PAGE);
    let rows: Vec<Row<'_>> = page.map(|page| rows(&page.text)).unwrap_or_default();
    if rows.is_empty() {
        return vec![finding(1, "there is no table of requirements".to_owned())];
    }
    let workspace = Workspace { files, sources };
    let mut findings = Vec::new();
    for row in rows.iter().filter(|row| !has_reason(row)) {
        let mistakes = workspace.mistakes(row).into_iter();
        findings.extend(mistakes.map(|wrong| finding(row.line, wrong)));
    }
    findings
}

fn has_reason(row: &Row<'_>) -> bool {
    let cell = row.tests.trim_start();
    cell.strip_prefix(NOT_APPLICABLE).is_some_and(|why| !why.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "crates/a/tests/it/gate.rs";
    const HEADER: &str = "# A2A\n\n| section | requirement | tests |\n|---|---|---|\n";

    fn found(rows: &str) -> Vec<String> {
        let text = "fn streams_end() {}\n";
        let page = File { path: PAGE.to_owned(), text: format!("{HEADER}{rows}") };
        let files = [page, File { path: SOURCE.to_owned(), text: text.to_owned() }];
        let findings = check(&files, &[Source::parse(SOURCE, text)]);
        findings.iter().map(|finding| format!("{}: {}", finding.line, finding.wrong)).collect()
    }

    #[test]
    fn a_row_has_a_test_or_a_reason() {
        let rows = "| 3.1 | a | `crates/a/tests` `streams_end` |\n\
            | 3.2 | b | not applicable: a rule for others |\n";
        assert!(found(rows).is_empty());
        let rows = "| 3.1 | a | `crates/a/tests` `streams_begin` |\n\
            | 3.2 | b | not applicable: |\n\
            | 3.3 | c | not yet: gRPC |\n";
        let wrong = [
            "5: `crates/a/tests` has no test `streams_begin`",
            "6: this row names no test",
            "7: this row names no test",
        ];
        assert_eq!(found(rows), wrong);
    }

    #[test]
    fn the_table_cannot_go_unnoticed() {
        assert_eq!(found(""), ["1: there is no table of requirements"]);
        assert_eq!(check(&[], &[]).len(), 1);
    }
}
