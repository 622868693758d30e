//! `waypost tool`: tools and plans are one catalog, and how a call ended is in the exit code.

use crate::process::Server;
use serde_json::Value;

#[test]
fn tools_are_listed_shown_and_called() {
    let server = Server::demo();
    let tools = server.run(&["tool", "ls"]).code(0);
    assert!(tools.stdout.starts_with("TOOL"), "{tools:#?}");
    assert!(tools.stdout.contains("\nmath::add "), "{tools:#?}");
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
