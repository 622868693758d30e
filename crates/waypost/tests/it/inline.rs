//! Asks that are answered at a terminal: `waypost inbox` walks through them, `waypost plan run`
//! asks at once. A script gets the list and exit code 3. A chat shows at once what others answer.

use crate::heal;
use crate::process::Server;
use crate::rest;
use crate::talk;
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const CHOICE: &str = "[a]pprove [r]eject [e]dit [s]kip [q]uit> ";
const CARD: &str = "run it? [y]es [n]o [e]dit [a]ll> ";
const LEFT: &str = "\u{1b}[D";
const BACKSPACE: &str = "\u{7f}";
const CTRL_A: &str = "\u{1}";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

fn at<'a>(server: &'a Server, words: &[&'a str]) -> Vec<&'a str> {
    [&["--server", server.url.as_str()][..], words].concat()
}

fn open_asks(server: &Server) -> usize {
    let asks = server.json(&["inbox", "ls"]).code(0).json();
    asks["items"].as_array().unwrap().len()
}

#[test]
fn a_plan_asks_at_the_terminal() {
    let server = Server::demo();
    let folder = tempfile::tempdir().unwrap();
    let run = at(&server, &["plan", "run", "interaction::greeting"]);
    let mut terminal = Terminal::open(folder.path(), &run);
    terminal.shows("name (string)> ", 1);
    terminal.at_prompt().types("\n");
    terminal.shows("name (string)> ", 2);
    terminal.at_prompt().types(&format!("dax{BACKSPACE}{CTRL_A}A\r"));
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Hello, Ada!"), "{shown}");

    let mut terminal = Terminal::open(folder.path(), &run);
    terminal.shows("name (string)> ", 1);
    terminal.at_prompt().types("/skip\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(3), "{shown}");
    assert!(shown.contains("waits for a person"), "{shown}");
    assert_eq!(open_asks(&server), 1);
    server.run(&["plan", "run", "interaction::greeting"]).code(3).says("waits for a person");
}

#[test]
fn answers_at_the_terminal_are_recorded() {
    let server = Server::demo();
    let folder = tempfile::tempdir().unwrap();
    let run = at(&server, &["plan", "run", "interaction::greeting", "--record", "run.yaml"]);
    let mut terminal = Terminal::open(folder.path(), &run);
    terminal.shows("name (string)> ", 1);
    terminal.at_prompt().types("Ada\r");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    let text = fs::read_to_string(folder.path().join("run.yaml")).unwrap();
    let recorded: Value = serde_saphyr::from_str(&text).unwrap();
    let example = &recorded["examples"][0];
    assert_eq!(example["replies"], json!([{"input": {"name": "Ada"}}]), "{text}");
    let expected = json!({"status": "completed", "answer": "Hello, Ada!"});
    assert_eq!((&example["expect"], &example["stubs"]), (&expected, &Value::Null), "{text}");
}

#[test]
fn nobody_is_asked_about_a_step_that_a_rule_holds() {
    let folder = heal::flaky(2_000);
    let server = Server::of_project(folder.path());
    rest::await_tool(&server, "bank.rate");
    let terminal = Terminal::open(folder.path(), &at(&server, &["plan", "run", "shop/rate"]));
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("a rule tries again in ") && shown.contains("done"), "{shown}");
    assert!(!shown.contains("/skip"), "{shown}");
}

#[test]
fn an_approval_shows_agent_request_and_approver() {
    let (folder, server) = talk::served();
    server.run(&["run", "add 2 and 3", "--thread", "a"]).code(3);
    let shown = server.json(&["inbox", "show", "--last"]).code(0).json();
    let agent = shown["agent"].as_str().unwrap();
    assert_eq!(shown["plan"], format!("agent/{agent}"));
    assert_eq!(shown["yours"]["answer"], true, "{shown}");
    let told = server.run(&["inbox", "show", "--last"]).code(0).stdout;
    for line in [
        format!("asked by    agent `{agent}`"),
        "said        add 2 and 3".to_owned(),
        "may answer  everyone who sees it".to_owned(),
        "does        reads (Add)".to_owned(),
        "because     the agent wants it".to_owned(),
        "if yes      the agent continues".to_owned(),
        "if no       the agent reads it and continues".to_owned(),
    ] {
        assert!(told.lines().any(|shown| shown == line), "no `{line}` in {told}");
    }
    let mut terminal = Terminal::open(folder.path(), &at(&server, &["inbox"]));
    terminal.shows(&format!("  agent `{agent}`"), 1);
    terminal.shows("  said: add 2 and 3", 1);
    terminal.shows("  asked because the agent wants it", 1);
    terminal.shows("  if yes: the agent continues", 1);
    terminal.shows("  if no: the agent reads it and continues", 1);
    terminal.shows(CHOICE, 1);
    terminal.at_prompt().types("a\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    let kept = server.json(&["session", "show", "a"]).code(0).json();
    assert_eq!(kept["decisions"].as_array().unwrap().len(), 1, "{kept}");
    let by = kept["decisions"][0]["decision"]["by"].as_str().unwrap();
    assert_eq!(kept["decisions"][0]["decision"]["via"], "rest", "{kept}");
    let table = server.run(&["session", "show", "a"]).code(0).stdout;
    let row = table.lines().find(|line| line.contains("approved"));
    assert!(row.is_some_and(|row| row.contains(&format!("{by}  rest"))), "{table}");
    let id = kept["decisions"][0]["id"].as_str().unwrap();
    let told = server.run(&["inbox", "show", id]).code(0).stdout;
    assert!(told.contains(&format!("by {by} via rest at ")), "{told}");
}

#[test]
fn a_request_asks_at_the_terminal_unless_all_is_approved() {
    let (folder, server) = talk::served();
    let run = at(&server, &["run", "add 2 and 3", "--thread", "a"]);
    let mut terminal = Terminal::open(folder.path(), &run);
    terminal.shows(CHOICE, 1);
    terminal.at_prompt().types("a\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("The sum is 5."), "{shown}");
    let all = server.run(&["run", "add 4 and 5", "--thread", "b", "--approve-all"]).code(0);
    assert_eq!(all.stdout, "The sum is 9.\n");
    // A question is no call: it is still asked.
    server.run(&["run", "add something", "--thread", "c", "--approve-all"]).code(3);
    assert_eq!(open_asks(&server), 1);
}

#[test]
fn the_inbox_asks_one_by_one() {
    let (folder, server) = talk::served();
    for (thread, request) in [("a", "add 2 and 3"), ("b", "add 4 and 5"), ("c", "add something")] {
        server.run(&["run", request, "--thread", thread]).code(3);
    }
    let mut terminal = Terminal::open(folder.path(), &at(&server, &["inbox"]));
    // What was typed before the card, or is pasted, decides nothing.
    terminal.shows(CHOICE, 1);
    terminal.at_prompt().types("\u{1b}[200~approve\u{1b}[201~\n");
    terminal.shows(CHOICE, 2);
    assert_eq!(open_asks(&server), 3, "{}", terminal.screen());
    terminal.at_prompt().types("perhaps\n");
    terminal.shows("`perhaps` is not offered here", 1);
    terminal.shows(CHOICE, 3);
    terminal.at_prompt().types("a\n");
    terminal.shows("The sum is 5.", 1);
    terminal.shows(CHOICE, 4);
    terminal.at_prompt().types("r\n");
    terminal.shows("why not> ", 1);
    terminal.at_prompt().types("too much\n");
    terminal.shows("As you like.", 1);
    terminal.shows("answer> ", 1);
    terminal.at_prompt().types("/skip\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("3 asks to go") && shown.contains("1 ask left for later"), "{shown}");
    assert_eq!(open_asks(&server), 1);

    let listed = server.run(&["inbox"]).code(0);
    assert!(listed.stdout.starts_with("ASK ") && listed.stdout.contains("clarify"), "{listed:#?}");
}

#[test]
fn an_ask_answered_by_someone_else_is_reported() {
    let (folder, server) = talk::served();
    server.run(&["run", "add 2 and 3", "--thread", "a"]).code(3);
    let mut terminal = Terminal::open(folder.path(), &at(&server, &["inbox"]));
    terminal.shows(CHOICE, 1);
    server.run(&["inbox", "approve", "--last"]).code(0);
    terminal.at_prompt().types("a\n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("was decided by"), "{shown}");
    assert!(shown.contains("no asks are open"), "{shown}");
}

/// A terminal in front of one approval.
fn inbox(folder: &Path, server: &Server, variables: &[(&str, &str)]) -> Terminal {
    let terminal = Terminal::open_with(folder, &at(server, &["inbox"]), 100, variables);
    terminal.shows(CHOICE, 1);
    terminal
}

#[test]
fn arguments_are_edited_in_the_inbox() {
    let (folder, server) = talk::served();
    server.run(&["run", "add 2 and 3", "--thread", "a"]).code(3);
    let mut terminal = inbox(folder.path(), &server, &[]);
    terminal.at_prompt().types("e\r");
    let prompt = "arguments of math::add, JSON or @file> ";
    terminal.shows(&format!("{prompt}{{\"a\":2,\"b\":3}}"), 1);
    // Not JSON: it is asked for again, and nothing that was typed is lost.
    terminal.at_prompt().types(&format!("{BACKSPACE}0\r"));
    terminal.shows("is not JSON", 1);
    terminal.shows(&format!("{prompt}{{\"a\":2,\"b\":30\n"), 2);
    terminal.at_prompt().types(&format!("{LEFT}{BACKSPACE}4"));
    terminal.shows(&format!("{prompt}{{\"a\":2,\"b\":40\n"), 1);
    terminal.at_prompt().types("\u{5}}\r");
    terminal.shows("The sum is 42.", 1);
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(open_asks(&server), 0);
}

#[test]
fn ctrl_c_interrupts_and_ctrl_d_leaves() {
    let (folder, server) = talk::served();
    server.run(&["run", "add 2 and 3", "--thread", "a"]).code(3);
    for (keys, expected) in [(format!("app{CTRL_C}"), 130), (CTRL_D.to_owned(), 0)] {
        let mut terminal = inbox(folder.path(), &server, &[]);
        terminal.at_prompt().types(&keys);
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(expected), "{shown}");
        assert!(shown.ends_with('\n'), "the shell's prompt begins a line: {shown:?}");
    }
    assert_eq!(open_asks(&server), 1);
}

#[test]
fn a_terminal_without_a_cursor_gets_plain_lines() {
    let (folder, server) = talk::served();
    server.run(&["run", "add 2 and 3", "--thread", "a"]).code(3);
    let mut terminal = inbox(folder.path(), &server, &[("TERM", "dumb")]);
    terminal.types("a\n");
    terminal.shows("The sum is 5.", 1);
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("\u{1b}[?2004h"), "no editor asked for marks: {shown:?}");
}

/// A chat that shows a card.
fn chat(folder: &Path, server: &Server) -> Terminal {
    let mut terminal = Terminal::open(folder, &at(server, &["chat", "--thread", "t"]));
    terminal.shows("\n> ", 1);
    terminal.at_prompt().types("add 2 and 3\r");
    terminal.shows(CARD, 1);
    terminal
}

#[test]
fn a_chat_shows_decisions_of_others_at_once() {
    let (folder, server) = talk::served();
    let mut terminal = chat(folder.path(), &server);
    server.run(&["inbox", "approve", "--last"]).code(0);
    // No key is pressed.
    terminal.shows("was decided by `", 1);
    terminal.shows("The sum is 5.", 1);
    terminal.shows("\n> ", 2);
    terminal.shows(CARD, 0);
    terminal.at_prompt().types("what is this?\r");
    terminal.shows("\n> what is this?\n", 1);
    terminal.shows("I can only add.", 1);
    terminal.quit();
}

#[test]
fn a_chat_leaves_a_line_that_is_being_typed_alone() {
    let (folder, server) = talk::served();
    let mut terminal = chat(folder.path(), &server);
    terminal.at_prompt().types("x");
    terminal.shows(&format!("{CARD}x"), 1);
    server.run(&["inbox", "approve", "--last"]).code(0);
    terminal.at_prompt().types(&format!("{BACKSPACE}y\r"));
    terminal.shows(&format!("{CARD}y\n"), 1);
    terminal.shows("was decided by `", 1);
    terminal.shows("The sum is 5.", 1);
    terminal.quit();
}
