//! `waypost tool`: tools and plans are one catalog, and how a call ended is in the exit code.

use crate::process::{Server, write};
use serde_json::Value;

#[test]
fn tools_are_listed_shown_and_called() {
    let server = Server::demo();
    let tools = server.run(&["tool", "ls"]).code(0);
    assert!(tools.stdout.starts_with("TOOL"), "{tools:#?}");
    assert!(tools.stdout.contains("\nmath::add "), "{tools:#?}");
    assert!(!tools.stderr.contains("there are more"), "{tools:#?}");
    let some = server.run(&["tool", "ls", "--limit", "2"]).code(0);
    assert_eq!(some.says("there are more than these 2").stdout.lines().count(), 3);
    let tool = server.json(&["tool", "show", "math::add"]).code(0).json();
    assert_eq!(tool["reach"], "reads");
    server.run(&["tool", "show", "math::ad"]).code(1).says("math::add");

    assert_eq!(server.run(&["tool", "call", "math::add", "a=1", "b=2"]).code(0).stdout, "3\n");
    let called = server.json(&["tool", "call", "math::add", r#"{"a": 1, "b": 2}"#]).code(0).json();
    assert_eq!(called["result"], 3);
    server.run(&["tool", "call", "math::add", "a=one", "b=2"]).code(2).says("/a");
    server.run(&["tool", "call", "test::always_fail"]).code(5).says("error: ");
    let failed = server.json(&["tool", "call", "test::always_fail"]).code(5);
    let line: Value = serde_json::from_str(&failed.stderr).unwrap();
    assert_eq!((failed.stdout.as_str(), &line["exit"]), ("", &Value::from(5)));
}

#[test]
fn plans_are_called_like_tools() {
    let server = Server::demo();
    let tools = server.run(&["tool", "ls"]).code(0).stdout;
    let kind = |name: &str| {
        let line = tools.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.and_then(|line| line.split_whitespace().nth(1)).map(str::to_owned)
    };
    assert_eq!(kind("math::add").as_deref(), Some("tool"), "{tools}");
    assert_eq!(kind("math::conditional_add").as_deref(), Some("plan"), "{tools}");
    let shown = server.run(&["tool", "show", "math::fan_out"]).code(0).stdout;
    for line in ["in MCP       math__fan_out", "kind         plan", "pace         quick"] {
        assert!(shown.lines().any(|shown| shown == line), "no `{line}` in {shown}");
    }
    let called = server.run(&["tool", "call", "math::conditional_add", "a=2", "b=3"]).code(0);
    assert_eq!(called.stdout, "The sum 5 is positive.\n");
}

#[test]
fn a_call_that_asks_a_person_says_how_to_answer() {
    let server = Server::demo();
    let asked = server.run(&["tool", "call", "interaction::greeting"]).code(3);
    assert!(asked.stdout.contains("What is your name?"), "{asked:#?}");
    asked.says(&format!("waypost --server {} inbox answer ask_", server.url)).says("name=..");
    let asked = server.json(&["tool", "call", "interaction::greeting"]).code(3).json();
    assert_eq!(asked["ask"]["kind"], "fill", "{asked}");
    let ask = asked["ask"]["id"].as_str().unwrap();
    let answered = server.run(&["inbox", "answer", ask, "name=Ada"]).code(0);
    assert_eq!(answered.stdout, "Hello, Ada!\n");
}

/// A plan whose arguments look like something else than they are.
const HIDING: &str = "description: d\nstartStepId: a\nsteps:\n\
    \x20 - {id: a, type: tool_call, toolId: case.raiseTicket, approve: true, nextStepId: b,\n\
    \x20    arguments: {tradeId: \"T\u{2066}-1\", category: c,\n\
    \x20      summary: \"alice\u{202e}moc\u{200b}\u{e0041}\"}}\n\
    \x20 - {id: b, type: final_response, message: done}\n";

#[test]
fn control_characters_of_others_are_escaped_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "[tools]\ndemo = true\n";
    write(folder.path(), &[("waypost.toml", settings), ("plans/x/hiding.yaml", HIDING)]);
    let server = Server::of_project(folder.path());
    let asked = server.json(&["plan", "run", "x/hiding"]).code(3).json();
    let ask = asked["run"]["asks"][0]["id"].as_str().unwrap();
    let shown = server.run(&["inbox", "show", ask]).code(0).stdout;
    let call = concat!(
        r#"case.raiseTicket {"tradeId":"T\u2066-1","category":"c","#,
        r#""summary":"alice\u202emoc\u200b\udb40\udc41"}"#
    );
    assert!(shown.contains(call), "{shown}");
    let hidden = ['\u{1b}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200b}', '\u{e0041}'];
    let session = asked["run"]["session"].as_str().unwrap();
    let exported = server.run(&["session", "export", session]).code(0).stdout;
    assert!(!shown.contains(hidden) && !exported.contains(hidden), "{shown}{exported}");
    // What is exported is JSON for programs, and what is hidden in it is still in it.
    let exported: Value = serde_json::from_str(&exported).unwrap();
    assert!(exported.to_string().contains("T\u{2066}-1"), "{exported}");

    let name = "no\u{1b}[2J\u{202e}tool";
    let failed = server.run(&["tool", "call", name]).code(1).says(r"`no\u{1b}[2J\u{202e}tool`");
    assert!(!failed.stderr.contains(hidden), "{failed:#?}");
    let value = "a=\u{9b}2J\u{200b}";
    let failed = server.run(&["tool", "call", "math::add", value, "b=2"]).code(2);
    assert!(failed.stderr.contains(r"\u{9b}2J\u{200b}"), "{failed:#?}");
    assert!(!failed.stderr.contains(hidden), "{failed:#?}");
}
