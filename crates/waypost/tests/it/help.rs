//! Help: what the binary prints is what the snapshots hold, and what else must be found there. The
//! snapshots of all commands are compared, and written, by a test in `src/main.rs`.

use crate::process::waypost;

const TOP_LEVEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/help/waypost.txt");

#[test]
fn the_top_level_help_lists_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    let help = waypost(folder.path(), &["--help"]).code(0);
    let lines: Vec<&str> = help.stdout.lines().map(str::trim_end).collect();
    let kept = std::fs::read_to_string(TOP_LEVEL)
        .unwrap_or_else(|error| panic!("{TOP_LEVEL}: {error}; `UPDATE_EXPECT=1` writes it"));
    assert_eq!(format!("{}\n", lines.join("\n")), kept);
}

#[test]
fn every_command_says_what_it_is_before_its_examples() {
    let folder = tempfile::tempdir().unwrap();
    let commands = [
        "up", "serve", "init", "demo", "run", "resume", "chat", "plan", "pipeline", "session",
        "inbox", "record", "tool", "mcp", "a2a", "key", "principal", "realm", "policy", "whoami",
        "audit", "events", "config", "doctor", "backup", "restore", "schema", "completions", "man",
    ];
    for command in commands {
        for words in [[command, "--help"], ["help", command]] {
            let help = waypost(folder.path(), &words).code(0).stdout;
            let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
            assert!(place("Usage:") < place("\nGlobal options:\n"), "{help}");
            assert!(place("\nGlobal options:\n") < place("\nExamples:\n"), "{help}");
            assert!(!help.starts_with("Usage:"), "{help}");
        }
    }
    let run = waypost(folder.path(), &["help", "plan", "run"]).code(0);
    assert!(run.stdout.contains("Usage: waypost plan run"), "{run:#?}");
    waypost(folder.path(), &["help", "nothing"]).code(2).says("no command `nothing`");
    waypost(folder.path(), &["help", "plan", "rnu"]).code(2).says("did you mean `run`?");
}

#[test]
fn exit_codes_and_version_can_be_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    let codes = waypost(folder.path(), &["help", "exit-codes"]).code(0).stdout;
    let numbers: Vec<&str> =
        codes.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(numbers, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "124", "130"]);
    let version = waypost(folder.path(), &["--version"]).code(0).stdout;
    assert_eq!(version, format!("waypost {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(waypost(folder.path(), &["version"]).code(0).stdout, version);
    let codes = waypost(folder.path(), &["--json", "help", "exit-codes"]).code(0).json();
    assert_eq!(codes["items"][3]["code"], 3);
    let version = waypost(folder.path(), &["--version", "--json"]).code(0).json();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(waypost(folder.path(), &["--json", "version"]).code(0).json(), version);
}

#[test]
fn a_wrong_command_line_is_reported_to_people_and_programs() {
    let folder = tempfile::tempdir().unwrap();
    let ended = waypost(folder.path(), &["plan", "rnu"]).code(2).says("rnu");
    assert_eq!(ended.stdout, "");
    let ended = waypost(folder.path(), &["--json", "plan", "rnu"]).code(2);
    let line: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(line["code"], "usage");
    assert_eq!(line["exit"], 2);
    assert_eq!(line["hint"], "did you mean `run`?");
    // An option before it, and its value, are no commands.
    let far = ["--server", "http://127.0.0.1:1", "plan", "rnu"];
    waypost(folder.path(), &far).code(2).says("tip: a similar subcommand exists: 'run'");
    waypost(folder.path(), &["logs"]).code(2).says("tip: a server logs to its standard error");
    for (words, tip) in [
        (&["plan", "rn"][..], "tip: a similar subcommand exists: 'run'"),
        (&["session", "logs"], "tip: 'waypost session tail' follows"),
        (&["ps"], "tip: 'waypost session ls' lists"),
        (&["status"], "'waypost doctor' tells whether a server does"),
        (&["ls"], "tip: each thing has a list of its own"),
        (&["agent", "add"], "'waypost agent apply FILE' stores"),
        (&["agent", "create"], "'waypost agent apply FILE' stores"),
        (&["plan", "add"], "tip: a plan is a file in 'plans/'"),
        (&["plan", "create"], "tip: a plan is a file in 'plans/'"),
    ] {
        let ended = waypost(folder.path(), words).code(2).says(tip);
        assert_eq!(ended.stderr.matches("tip:").count(), 1, "one tip each: {ended:#?}");
    }
    waypost(folder.path(), &["plan", "rm"]).code(2).says("<ID>");
    let ended = waypost(folder.path(), &["--json", "plna"]).code(2);
    let line: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(line["hint"], "did you mean `plan`?");
}

#[test]
fn every_shell_gets_its_completions() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = waypost(folder.path(), &["completions", shell]).code(0).stdout;
        for word in ["waypost", "WAYPOST_COMPLETE"] {
            assert!(script.contains(word), "no `{word}` for {shell}:\n{script}");
        }
    }
    waypost(folder.path(), &["completions", "csh"]).code(2).says("bash");
    let nushell = waypost(folder.path(), &["--json", "completions", "nushell"]).code(0).json();
    assert_eq!(nushell["shell"], "nushell");
    let script = nushell["script"].as_str().unwrap();
    assert!(script.contains("export extern \"waypost plan validate\""), "{script}");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let main = waypost(folder.path(), &["man"]).code(0).stdout;
    assert!(main.contains(".TH waypost 1") && main.contains(".SH EXAMPLES"), "{main}");
    let written = waypost(folder.path(), &["man", "--dir", "pages"]).code(0).stdout;
    for page in ["waypost.1", "waypost-plan.1", "waypost-plan-run.1", "waypost-doctor.1"] {
        assert!(written.lines().any(|line| line.ends_with(page)), "no {page}: {written}");
        let text = std::fs::read_to_string(folder.path().join("pages").join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
    assert!(!written.contains("waypost-child"), "{written}");
}
