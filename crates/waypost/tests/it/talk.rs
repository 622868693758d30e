//! `waypost run`, `resume`, `chat` and `inbox` with an agent whose model is made of rules: no key,
//! no network.

use crate::process::{Server, command, write};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

const SETTINGS: &str = r#"
[tools]
demo = true

[models.adding]
provider = "rules"
rules = "rules/adding.yaml"

[agents]
default = "adder"
"#;

const AGENT: &str = r#"
refName: adder
name: Adder
description: Adds numbers.
llmConfigRef: adding
enabledTools: ["math::*"]
approve: ["math::add"]
"#;

/// Adds what stands in the request; asks where it names no numbers.
const RULES: &str = r#"
version: 1
about: Adds two numbers.
patterns:
  numbers: 'add (?P<a>\d+) and (?P<b>\d+)'
rules:
  - rule: somebody said no
    when: {rejected: '.'}
    say: As you like.
  - rule: say what came of it
    when: {after: math__add, failed: false}
    say: 'The sum is {{ (calls|last).outcome }}.'
  - rule: add what was answered
    let: {found: "match('numbers', (fresh|first).answer)"}
    when: {clarified: true, if: found}
    calls:
      - tool: math__add
        args: {a: '{{ found.a|int }}', b: '{{ found.b|int }}'}
  - rule: add
    let: {found: "match('numbers', text)"}
    when: {if: found}
    calls:
      - tool: math__add
        args: {a: '{{ found.a|int }}', b: '{{ found.b|int }}'}
  - rule: ask
    when: {said: 'add something'}
    calls:
      - tool: request_clarification
        args: {question: 'Which numbers?'}
fallback: {say: I can only add.}
"#;

/// A project with that agent.
fn project(folder: &Path) {
    write(
        folder,
        &[("waypost.toml", SETTINGS), ("agents/adder.yaml", AGENT), ("rules/adding.yaml", RULES)],
    );
}

/// A server with that agent, and its folder.
pub fn served() -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    project(folder.path());
    let server = Server::of_project(folder.path());
    (folder, server)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_request_waits_for_an_approval_and_goes_on() {
    let (_folder, server) = served();
    let waiting = server.run(&["run", "add 2 and 3", "--thread", "sum"]).code(3);
    let action: Value = serde_json::from_str(&waiting.stdout).unwrap();
    assert_eq!(action["kind"], "confirmation");
    let call = text(&action["tool_calls"][0]["call_id"]);
    let resume = format!("waypost --server {} resume sum --approve {call}", server.url);
    let waiting = waiting.says(&resume);
    assert!(waiting.stderr.contains("--feedback"), "{waiting:#?}");
    server.run(&["run", "add 1 and 1", "--thread", "sum"]).code(1).says("waits for an answer");

    let shown = server.json(&["resume", "sum"]).code(3).json();
    assert_eq!(shown["tool_calls"][0]["call_id"], call);
    server.run(&["resume", "sum", "--reject", &call]).code(2).says("--feedback");
    server
        .run(&["resume", "sum", "--approve", "call_x"])
        .code(2)
        .says("nothing in this thread asks about");
    let done = server.run(&["resume", "sum", "--approve", &call]).code(0);
    assert_eq!(done.stdout, "The sum is 5.\n");
    server.run(&["resume", "sum", "--approve", &call]).code(1).says("was decided by");
    server.run(&["resume", "sum"]).code(2).says("waits for no one");
    server.run(&["resume", "nobody", "--approve", &call]).code(1).says("no thread `nobody`");
    let nobody = server.run(&["resume", "nobody"]).code(1).says("no thread `nobody`");
    nobody.says("`waypost run --thread` begins one");
}

#[test]
fn programs_get_the_whole_answer() {
    let (_folder, server) = served();
    let answer = server.json(&["run", "adder", "what is this?"]).code(0).json();
    assert_eq!(answer["status"], "success");
    assert_eq!(answer["response"], "I can only add.");
    let asked = server.json(&["run", "add something", "--thread", "q"]).code(3).json();
    assert_eq!(asked["pending_action"]["clarifications"][0]["question"], "Which numbers?");
    let waiting = server.json(&["resume", "q", "--answer", "add 4 and 5"]).code(3).json();
    let call = text(&waiting["pending_action"]["tool_calls"][0]["call_id"]);
    let edit = format!("{call}={{\"a\": 40, \"b\": 5}}");
    let done = server.json(&["resume", "q", "--edit", &edit]).code(0).json();
    assert_eq!(done["response"], "The sum is 45.");
    server.run(&["run", "nobody", "hello there"]).code(1).says("no agent `nobody`");
}

#[test]
fn the_inbox_answers_an_agent_too() {
    let (_folder, server) = served();
    server.run(&["run", "add 2 and 3", "--thread", "sum"]).code(3);
    let asks = server.json(&["inbox", "ls"]).code(0).json();
    let ask = text(&asks["items"][0]["id"]);
    let call = text(&asks["items"][0]["calls"][0]["callId"]);
    let shown = server.run(&["inbox", "show", &ask]).code(0);
    assert!(shown.stdout.contains("math::add"), "{shown:#?}");
    server.run(&["inbox", "approve", &ask, "--call", "call_x"]).code(2).says("is not part of");
    let edit = format!("{call}={{\"a\": 2, \"b\": 30}}");
    let done = server.run(&["inbox", "approve", &ask, "--edit", &edit]).code(0);
    assert_eq!(done.stdout, "The sum is 32.\n");
    server.run(&["run", "add 2 and 3", "--thread", "no"]).code(3);
    let asks = server.json(&["inbox", "ls"]).code(0).json();
    let ask = text(&asks["items"][0]["id"]);
    server.run(&["inbox", "reject", &ask, "--feedback", "not today"]).code(0);
}

/// What a chat says to these lines.
fn chat(server: &Server, folder: &Path, arguments: &[&str], lines: &str) -> (Option<i32>, String) {
    let mut all = vec!["--server", server.url.as_str()];
    all.extend(arguments);
    let mut chat = command(folder, &all)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    chat.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let ended = chat.wait_with_output().unwrap();
    (ended.status.code(), String::from_utf8(ended.stdout).unwrap())
}

#[test]
fn a_chat_asks_for_approval_in_place() {
    let (folder, server) = served();
    let lines =
        "add something\nadd 2 and 3\ny\nadd 1 and 1\nn\nI changed my mind\n/thread\n/quit\n";
    let (code, said) = chat(&server, folder.path(), &["chat", "--thread", "c"], lines);
    assert_eq!(code, Some(0), "{said}");
    let card = |a: u8, b: u8| {
        format!(
            "[approve] math::add\n  {{\n    \"a\": {a},\n    \"b\": {b}\n  }}\n  \
             asked because the agent wants it\n  if yes: the agent continues\n  \
             if no: the agent reads it and continues\n"
        )
    };
    let expected = format!(
        "[question] Which numbers?\n  if answered: the agent continues\n  \
         if declined: the agent reads it and continues\n{}The sum is 5.\n{}",
        card(2, 3),
        card(1, 1)
    );
    assert!(said.starts_with(&expected), "{said}");
    assert!(said.ends_with("\nc\n"), "{said}");
}

#[test]
fn a_chat_that_ends_before_its_answer_leaves_it_open() {
    let (folder, server) = served();
    let (code, said) = chat(&server, folder.path(), &["chat", "--thread", "c"], "add 2 and 3\n");
    assert_eq!(code, Some(3), "{said}");
    let shown = server.json(&["resume", "c"]).code(3).json();
    assert_eq!(shown["kind"], "confirmation");
    let json = ["--json", "chat", "--thread", "d"];
    let (code, said) =
        chat(&server, folder.path(), &json, "add 2 and 3\ne\n{\"a\": 1, \"b\": 1}\n");
    assert_eq!(code, Some(0), "{said}");
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.last().unwrap()["data"]["response"], "The sum is 2.");
    assert_eq!(lines[0]["event"], "tool_call");
}
