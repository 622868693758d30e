//! Rule: every rule of the query language names queries that show it, each of them a case of the
//! test table; and every section of that table is about a section of the page. A rule that no case
//! holds could be untrue, and a case that no rule explains would be a secret.

use std::collections::BTreeSet;

use super::finding::{Finding, Rule};
use super::tree::File;

/// The page with the rules: tables whose last column has examples.
const PAGE: &str = "docs/reference/query-language.md";
/// The test table: queries below headings, which begin with a heading of the page.
const CASES: &str = "crates/query/tests/language/cases.txt";

/// What stands before a query of the test table.
const QUERY: &str = "query  ";
const COLUMN: &str = "examples";
/// Behind the heading of the page, in a heading of the test table.
const PART: &str = " / ";

/// Checks the page against the test table, and the other way round.
pub fn check(files: &[File]) -> Vec<Finding> {
    let text_of = |path: &str| {
        files.iter().find(|file| file.path == path).map_or("", |file| file.text.as_str())
    };
    let (page, cases) = (Page::read(text_of(PAGE)), text_of(CASES));
    let queries: BTreeSet<&str> =
        cases.lines().filter_map(|line| line.strip_prefix(QUERY)).collect();
    let mut findings = page.untabled.iter().map(|line| without_examples(*line)).collect::<Vec<_>>();
    if page.rules.is_empty() || queries.is_empty() {
        findings.push(finding(PAGE, 1, "there are no rules with examples".to_owned()));
    }
    for rule in &page.rules {
        if rule.examples.is_empty() {
            findings.push(without_examples(rule.line));
        }
        let strange = rule.examples.iter().filter(|query| !queries.contains(query.as_str()));
        findings.extend(
            strange.map(|query| {
                finding(PAGE, rule.line, format!("`{query}` is no case of `{CASES}`"))
            }),
        );
    }
    findings.extend(foreign_sections(&page, cases));
    findings
}

fn without_examples(line: usize) -> Finding {
    finding(PAGE, line, "this rule names no example".to_owned())
}

/// Sections of the test table that the page does not have, and sections with rules that the test
/// table does not have.
fn foreign_sections(page: &Page, cases: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = BTreeSet::new();
    for (index, line) in cases.lines().enumerate() {
        let Some(heading) = line.strip_prefix("## ") else { continue };
        let section = heading.split(PART).next().unwrap_or_default();
        found.insert(section);
        if !page.rules.iter().any(|rule| rule.section == section) {
            let wrong = format!("`{section}` is no section of `{PAGE}` with rules");
            findings.push(finding(CASES, index + 1, wrong));
        }
    }
    let mut missed = BTreeSet::new();
    for rule in &page.rules {
        if !found.contains(rule.section.as_str()) && missed.insert(&rule.section) {
            let wrong = format!("`{CASES}` has no section `{}`", rule.section);
            findings.push(finding(PAGE, rule.line, wrong));
        }
    }
    findings
}

fn finding(path: &str, line: usize, wrong: String) -> Finding {
    Finding {
        path: path.to_owned(),
        line,
        rule: Rule::QueryRules,
        wrong,
        remedy: "give the rule an example that is a case of the test table, in a section of the \
                 same name",
    }
}

/// What the page says in tables.
#[derive(Default)]
struct Page {
    rules: Vec<Written>,
    /// Tables that have no examples, by their first lines.
    untabled: Vec<usize>,
}

struct Written {
    line: usize,
    /// The heading above it.
    section: String,
    examples: Vec<String>,
}

impl Page {
    fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut section = String::new();
        let mut was_table = false;
        let mut has_examples = false;
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            if let Some(heading) = line.strip_prefix('#') {
                heading.trim_start_matches('#').trim().clone_into(&mut section);
            }
            let is_table = line.starts_with('|');
            if is_table && !was_table {
                has_examples = last_cell(line) == COLUMN;
                if !has_examples {
                    page.untabled.push(line_number);
                }
            } else if is_table && has_examples && !line.starts_with("|---") {
                let examples = examples(&last_cell(line));
                page.rules.push(Written { line: line_number, section: section.clone(), examples });
            }
            was_table = is_table;
        }
        page
    }
}

/// The last cell of a row; a bar that is part of a cell is written `\|`.
fn last_cell(row: &str) -> String {
    let cells = row.trim().trim_matches('|').replace("\\|", "\u{0}");
    let last = cells.rsplit('|').next().unwrap_or_default().trim();
    last.replace('\u{0}', "|")
}

/// What stands in backticks.
fn examples(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "## Dates\n\n| rule | examples |\n|---|---|\n";
    const SHOWN: &str = "# Cases\n\n## Dates\n\nquery  a:1\ntree   x\n\nquery  a:1||b:2\n";

    fn found(page: &str, cases: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let findings = check(&[file(PAGE, page), file(CASES, cases)]);
        let shown = findings.iter().map(|it| format!("{}:{}: {}", it.path, it.line, it.wrong));
        shown.collect()
    }

    #[test]
    fn a_rule_names_cases() {
        let page = format!("{HEADER}| one | `a:1`, `a:1\\|\\|b:2` |\n");
        assert!(found(&page, SHOWN).is_empty());
        let page = format!("{HEADER}| one | `a:1` |\n| two | |\n| three | `a:2` |\n");
        let wrong = [
            format!("{PAGE}:6: this rule names no example"),
            format!("{PAGE}:7: `a:2` is no case of `{CASES}`"),
        ];
        assert_eq!(found(&page, SHOWN), wrong);
        let page = format!("{HEADER}| one | `a:1` |\n\n| rule | meaning |\n|---|---|\n| x | y |\n");
        assert_eq!(found(&page, SHOWN), [format!("{PAGE}:7: this rule names no example")]);
    }

    #[test]
    fn sections_are_the_same() {
        let page = format!("{HEADER}| one | `a:1` |\n");
        let cases = SHOWN.replace("## Dates", "## Dates / moments");
        assert!(found(&page, &cases).is_empty());
        let cases = format!("{SHOWN}\n## Secrets\n\nquery  a:3\n");
        let wrong = format!("{CASES}:10: `Secrets` is no section of `{PAGE}` with rules");
        assert_eq!(found(&page, &cases), [wrong]);
        let page = format!("{page}\n## Lists\n\n| rule | examples |\n|---|---|\n| x | `a:1` |\n");
        assert_eq!(found(&page, SHOWN), [format!("{PAGE}:11: `{CASES}` has no section `Lists`")]);
    }

    #[test]
    fn neither_can_go_unnoticed() {
        let page = format!("{HEADER}| one | `a:1` |\n");
        assert_eq!(check(&[]).len(), 1);
        assert!(!found(&page, "").is_empty());
        assert!(!found("", SHOWN).is_empty());
    }
}
