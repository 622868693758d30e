//! Logs as JSON: every line parses, every line of a run says whose it is, and nothing is told of
//! what a person typed.

use crate::process::Server;
use serde_json::Value;

/// What lines of this kind say beside realm, session and plan.
const MORE: [(&str, &[&str]); 6] = [
    ("run started", &["subject", "run"]),
    ("run ended", &["subject", "run", "status"]),
    ("call started", &["subject", "step", "call"]),
    ("call finished", &["subject", "call"]),
    ("ask opened", &["subject", "step", "ask"]),
    ("ask decided", &["subject", "ask", "by"]),
];

#[test]
fn every_log_line_of_a_run_names_the_run() {
    let server = Server::start(&["--demo", "--log", "json"], &[("LOG_LEVEL", "debug")]);
    server.run(&["plan", "run", "math::conditional_add", "--input", "a=2", "b=3"]).code(0);
    server.run(&["plan", "run", "interaction::greeting", "--session", "logged"]).code(3);
    let asks = server.json(&["inbox", "ls"]).code(0).json();
    let ask = asks["items"][0]["id"].as_str().unwrap();
    server.run(&["inbox", "answer", ask, "name=Rumpelstiltskin"]).code(0);
    server.run(&["plan", "run", "test::plan_that_fails"]).code(3);

    let (ended, _) = server.stop();
    let lines: Vec<Value> = ended
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    for line in &lines {
        for name in ["timestamp", "level", "target"] {
            assert!(line[name].is_string(), "no `{name}` in {line}");
        }
        if line.get("session").is_some() {
            assert_eq!(line["realm"], "default", "{line}");
            assert!(line["plan"].is_string(), "{line}");
        }
    }
    for (message, names) in MORE {
        let line = lines.iter().find(|line| line["message"] == message);
        let line = line.unwrap_or_else(|| panic!("nothing says `{message}`: {}", ended.stderr));
        assert!(line["session"].is_string(), "{line}");
        for name in names {
            assert!(line[name].is_string(), "no `{name}` in {line}");
        }
    }
    assert!(!ended.stderr.contains("Rumpelstiltskin"), "{}", ended.stderr);
}
