//! Rule: every limit that an operator can set has a range. Without one a file could set a value
//! with which the server does not work.

use super::finding::{Finding, Rule};
use super::source::Source;

/// The files with tables of limits.
const HOMES: [&str; 2] = ["crates/kernel/src/limits.rs", "crates/project/src/a2a_limits.rs"];

/// Where the table begins, and in it the limits that can be set.
const TABLE: &str = "limits! {";
const SETTABLE: &str = "settable {";

/// Finds limits without a range.
pub fn given(source: &Source) -> Vec<Finding> {
    if !HOMES.contains(&source.path.as_str()) {
        return Vec::new();
    }
    let finding = |line: usize, wrong: String| Finding {
        path: source.path.clone(),
        line,
        rule: Rule::Ranges,
        wrong,
        remedy: "write its least and its greatest value, `1..=1_000`, after its default",
    };
    let table = source.production().skip_while(|line| line.code.trim() != TABLE);
    let lines = table.skip_while(|line| line.code.trim() != SETTABLE).skip(1);
    let mut findings = Vec::new();
    let mut count = 0;
    let mut limit = String::new();
    for line in lines.take_while(|line| line.code.trim() != "}") {
        limit.push_str(line.code.trim());
        if !limit.ends_with(';') {
            continue;
        }
        count += 1;
        if !limit.contains("..=") {
            let name = limit.split(':').next().unwrap_or_default();
            findings.push(finding(line.number, format!("the limit `{name}` has no range")));
        }
        limit.clear();
    }
    if count == 0 {
        findings.push(finding(1, "there is no table of limits".to_owned()));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let findings = given(&Source::parse(path, text));
        findings.iter().map(|finding| format!("{}: {}", finding.line, finding.wrong)).collect()
    }

    #[test]
    fn a_limit_without_a_range_is_found() {
        let text = "macro_rules! limits {\n    (settable { $a:ident = 1; }) => {};\n}\n\
            limits! {\n    settable {\n        /// One; 0..=1.\n        a_max: u32 = 1;\n\
            \x20       b_max: u32 = 1, 0..=2;\n        c_max: u32 =\n            1;\n    }\n\
            \x20   fixed {\n        d_max: u32 = 1;\n    }\n}\n";
        let expected = ["7: the limit `a_max` has no range", "10: the limit `c_max` has no range"];
        for home in HOMES {
            assert_eq!(found(home, text), expected);
        }
        assert!(found("crates/engine/src/limits.rs", text).is_empty());
    }

    #[test]
    fn the_table_cannot_go_unnoticed() {
        assert_eq!(found(HOMES[0], "fn f() {}\n"), ["1: there is no table of limits"]);
    }
}
