//! `waypost demo crash`, again and again: a payment whose server is killed is never made twice and
//! never lost, and where it is unknown whether it was made, a person gets the right question. The
//! guide shows what it prints.

use crate::process::{waypost, waypost_with};
use serde_json::{Value, json};
use std::fs;
use std::thread;
use testkit::harness::processes_with;

const GUIDE: &str = include_str!("../../../../docs/guides/crash.md");
/// How often the story is played, by as many at the same time.
const PLAYS: usize = 50;
const PLAYERS: usize = 2;

/// How often the bank is asked to pay each invoice: twice where Waypost or a person sends it again.
const REQUESTS: [(&str, u64); 3] = [("A-1", 2), ("A-2", 1), ("A-3", 2)];

/// The lines of one play.
fn play(temporary: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let variables = [("TMPDIR", temporary)];
    let told = waypost_with(folder.path(), &["--json", "demo", "crash"], &variables).code(0);
    assert_eq!(told.stderr, "", "nothing but the story");
    told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The answers to requests whose command has this in it.
fn answers<'a>(lines: &'a [Value], part: &str) -> Vec<&'a Value> {
    let is_it = |line: &&Value| line["curl"].as_str().is_some_and(|curl| curl.contains(part));
    lines.iter().filter(is_it).map(|line| &line["answer"]).collect()
}

fn count(lines: &[Value], part: &str) -> usize {
    let is_it = |line: &&Value| line["happened"].as_str().is_some_and(|text| text.contains(part));
    lines.iter().filter(is_it).count()
}

/// Nothing is paid twice, nothing is lost, and the questions are right.
fn check(lines: &[Value]) {
    assert_eq!((count(lines, "kill -9 "), count(lines, " listens at ")), (3, 4), "{lines:#?}");
    for (invoice, requests) in REQUESTS {
        let books = answers(lines, &format!("/books/{invoice}"));
        let last = books.last().unwrap_or_else(|| panic!("no books of {invoice}: {lines:#?}"));
        let payments = last["payments"].as_array().unwrap();
        assert_eq!((payments.len(), &last["requests"]), (1, &json!(requests)), "{last}");
        assert_eq!(payments[0]["invoice"], invoice);
    }
    let questions: Vec<&Value> = answers(lines, "/api/v1/asks/")
        .into_iter()
        .filter(|answer| answer["kind"] == "fix")
        .collect();
    let expected =
        [json!({"invoice": "A-2", "amount": 80}), json!({"invoice": "A-3", "amount": 45})];
    assert_eq!(questions.len(), expected.len(), "{lines:#?}");
    for (question, arguments) in questions.iter().zip(&expected) {
        assert_eq!(question["title"], "outcome unknown: `bank.transfer` at step `transfer`");
        assert_eq!(question["how"], "unknown", "{question}");
        assert_eq!(question["calls"], json!([{"tool": "bank.transfer", "arguments": arguments}]));
        for action in ["settle", "retry", "abort"] {
            let actions = question["actions"].as_array().unwrap();
            assert!(actions.contains(&json!(action)), "no `{action}` in {question}");
        }
    }
    let ends = lines.iter().filter(|line| line["answer"]["run"]["status"] == "completed");
    assert_eq!(ends.count(), REQUESTS.len(), "every run ends: {lines:#?}");
}

#[test]
fn a_payment_outlives_every_crash() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().to_str().unwrap();
    thread::scope(|scope| {
        for _ in 0..PLAYERS {
            scope.spawn(|| {
                for _ in 0..PLAYS / PLAYERS {
                    check(&play(temporary));
                }
            });
        }
    });
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap()).collect();
    assert!(left.is_empty(), "{left:?}");
    let is_ours =
        |seen: &testkit::harness::Seen| seen.words.iter().any(|word| word.starts_with(temporary));
    assert!(!processes_with("up").iter().any(is_ours), "no server outlives its story");
}

/// The text with what differs from play to play made alike.
fn alike(text: &str) -> String {
    let is_hex = |c: char| c.is_ascii_hexdigit();
    let is_digit = |c: char| c.is_ascii_digit();
    let mut text = text.to_owned();
    for mark in ["call_", "run_", "ask_"] {
        text = without(&text, mark, is_hex);
    }
    for mark in ["127.0.0.1:", "kill -9 ", "server "] {
        text = without(&text, mark, is_digit);
    }
    text
}

/// The text without the characters of this kind that follow a mark.
fn without(text: &str, mark: &str, is_volatile: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(mark);
        kept.push_str(part.trim_start_matches(&is_volatile));
    }
    kept
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_guide_matches_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let told = alike(&waypost(folder.path(), &["demo", "crash", "--fast"]).code(0).stdout);
    let blocks = crate::blocks::read(GUIDE);
    assert!(blocks.iter().any(|block| block.text == "waypost demo crash\n"), "the guide says how");
    let mut rest = lines(&told).join("\n");
    let mut shown = 0;
    for block in blocks.iter().filter(|block| block.language == "text") {
        let expected = lines(&alike(&block.text)).join("\n");
        let Some(at) = rest.find(&expected) else {
            panic!(
                "line {}: this is not printed, or not here:\n{expected}\n---\n{rest}",
                block.line
            );
        };
        rest = rest.split_off(at + expected.len());
        shown += 1;
    }
    assert!(shown > 4, "the guide shows only {shown} parts");
}
