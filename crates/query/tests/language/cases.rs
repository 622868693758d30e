//! Holds `cases.txt`. `UPDATE_EXPECT=1` writes it anew.

use super::fixture::{Fixture, REALM};
use super::short::short;
use query::check::check;
use query::evaluate::{Row, takes};
use query::fault::QueryFault;
use query::parser::parse;
use query::plan::{QueryPlan, plan};
use std::fs;
use std::path::PathBuf;

const QUERY: &str = "query  ";
/// Lines that say what becomes of a query.
const ANSWERS: &[&str] = &["print", "tree", "plan", "rows", "fault", "wants", "hint"];

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/language/cases.txt")
}

#[test]
fn every_case_means_what_is_written() {
    let fixture = Fixture::new();
    let kept = fs::read_to_string(file()).unwrap();
    let mut lines: Vec<String> = Vec::new();
    for line in kept.lines() {
        let word = line.split(' ').next().unwrap_or_default();
        if ANSWERS.contains(&word) {
            continue;
        }
        lines.push(line.to_owned());
        if let Some(written) = line.strip_prefix(QUERY) {
            lines.extend(answers(written, &fixture));
        }
    }
    let found = lines.join("\n") + "\n";
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(file(), found).unwrap();
        return;
    }
    for (number, (kept, found)) in kept.lines().zip(found.lines()).enumerate() {
        assert_eq!(found, kept, "line {} of cases.txt", number + 1);
    }
    assert_eq!(found.lines().count(), kept.lines().count());
}

fn answers(written: &str, fixture: &Fixture) -> Vec<String> {
    let text = written.replace("\\\\", "\u{0}").replace("\\n", "\n").replace('\u{0}', "\\");
    let tree = match parse(&text) {
        Ok(tree) => tree,
        Err(fault) => return fault_lines(&fault),
    };
    let printed = tree.to_string();
    assert_eq!(parse(&printed).as_ref(), Ok(&tree), "{written}: {printed}");
    let mut lines = Vec::new();
    if printed != written {
        lines.push(format!("print  {printed}"));
    }
    lines.push(format!("tree   {}", short(&tree)));
    match check(&tree, fixture.scope()) {
        Ok(checked) => {
            let QueryPlan { mode, expand_paths } = plan(&tree);
            let planned = format!("plan   {} {}", mode.name(), expand_paths.join(","));
            lines.push(planned.trim_end().to_owned());
            let mut line = "rows  ".to_owned();
            for record in &fixture.records {
                if takes(&checked, Row { realm: REALM, record }) {
                    line.push(' ');
                    line.push_str(record["refName"].as_str().unwrap());
                }
            }
            lines.push(line.trim_end().to_owned());
        }
        Err(fault) => lines.extend(fault_lines(&fault)),
    }
    lines
}

fn fault_lines(fault: &QueryFault) -> Vec<String> {
    let QueryFault { kind, message, position, line, column, expected, hint } = fault;
    let kind = kind.name();
    let mut lines =
        vec![format!("fault  {kind} at {position}, line {line}, column {column}: {message}")];
    if !expected.is_empty() {
        lines.push(format!("wants  {}", expected.join(" ")));
    }
    lines.extend(hint.iter().map(|hint| format!("hint   {hint}")));
    lines
}
