//! Help: a snapshot of the top level, and what else must be found there.

use crate::process::waypost;
use std::path::Path;

/// Written anew with `UPDATE_EXPECT=1`.
const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/help.txt");

#[test]
fn the_top_level_says_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let help = waypost(folder.path(), &["--help"]).code(0);
    let lines: Vec<&str> = help.stdout.lines().map(str::trim_end).collect();
    let text = format!("{}\n", lines.join("\n"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(SNAPSHOT, text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(Path::new(SNAPSHOT)).unwrap();
    assert_eq!(text, expected, "`UPDATE_EXPECT=1` writes {SNAPSHOT} anew");
}

#[test]
fn every_command_begins_its_help_with_examples() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["up", "init", "plan", "session", "inbox", "tool"] {
        let help = waypost(folder.path(), &[command, "--help"]).code(0);
        assert!(help.stdout.starts_with("Examples:\n"), "{help:#?}");
        let same = waypost(folder.path(), &["help", command]).code(0);
        assert!(same.stdout.starts_with("Examples:\n"), "{same:#?}");
    }
    let run = waypost(folder.path(), &["help", "plan", "run"]).code(0);
    assert!(run.stdout.contains("Usage: waypost plan run"), "{run:#?}");
    waypost(folder.path(), &["help", "nothing"]).code(2).says("no command `nothing`");
}

#[test]
fn exit_codes_and_version_can_be_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    let codes = waypost(folder.path(), &["help", "exit-codes"]).code(0).stdout;
    let numbers: Vec<&str> =
        codes.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(numbers, ["0", "1", "2", "3", "4", "5", "6", "7", "124", "130"]);
    let version = waypost(folder.path(), &["--version"]).code(0).stdout;
    assert_eq!(version, format!("waypost {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_wrong_command_line_is_told_to_people_and_to_programs() {
    let folder = tempfile::tempdir().unwrap();
    let ended = waypost(folder.path(), &["plan", "rnu"]).code(2).says("rnu");
    assert_eq!(ended.stdout, "");
    let ended = waypost(folder.path(), &["--json", "plan", "rnu"]).code(2);
    let line: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(line["code"], "usage");
    assert_eq!(line["exit"], 2);
}
