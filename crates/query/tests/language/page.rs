//! The reference page: each of its examples is a case of `cases.txt`, and so it is known what it
//! means.

use super::cases;
use std::fs;
use std::path::Path;

/// The code in the last column of every table whose last column is for examples.
fn examples(page: &str) -> Vec<String> {
    let mut examples = Vec::new();
    let mut has_examples = false;
    let mut was_table = false;
    for line in page.lines() {
        let is_table = line.starts_with('|');
        let cells = line.trim().trim_matches('|').replace("\\|", "\u{0}");
        let last = cells.split('|').next_back().unwrap_or_default().trim().to_owned();
        if is_table && !was_table {
            has_examples = matches!(last.as_str(), "example" | "examples");
        } else if is_table && has_examples {
            let code = last.split('`').skip(1).step_by(2);
            examples.extend(code.map(|code| code.replace('\u{0}', "|")));
        }
        was_table = is_table;
    }
    examples
}

#[test]
fn every_example_of_the_page_is_a_case() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/query-language.md");
    let examples = examples(&fs::read_to_string(page).unwrap());
    assert!(examples.len() > 60, "only {} examples were found", examples.len());
    let queries = cases::queries();
    let missing: Vec<&String> =
        examples.iter().filter(|example| !queries.contains(*example)).collect();
    assert!(missing.is_empty(), "no case of cases.txt: {missing:?}");
}
