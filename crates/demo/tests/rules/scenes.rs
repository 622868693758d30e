//! Scenes: what a person writes, and what comes of it. The files in `scenes/` hold both; a test
//! plays the lines of the person and compares all others. `UPDATE_EXPECT=1` writes them anew.
//!
//! `user>` asks, `answer>` answers a question, `decide>` approves (`yes`) or refuses (`no: words`)
//! each call, `wait>` lets minutes pass, `break>` makes a tool fail.

use crate::desk::{Desk, Stop};
use jiff::SignedDuration;
use kernel::values::canonical;
use std::path::Path;

/// Sunday, 15 November 2026, 10:30, with a week before it.
fn desk() -> Desk {
    let mut desk = Desk::new("2026-11-15T10:30:00".parse().unwrap(), "Europe/Berlin");
    for (name, start, end) in [
        ("Test Event", "2026-11-16T13:30:00", "2026-11-16T14:30:00"),
        ("Team Meeting", "2026-11-15T15:00:00", "2026-11-15T16:00:00"),
        ("Review", "2026-11-17T15:00:00", "2026-11-17T16:00:00"),
        ("Dentist Appointment", "2026-11-20T10:00:00", "2026-11-20T10:30:00"),
        ("Lunch with Bob", "2026-11-18T12:00:00", "2026-11-18T13:00:00"),
        ("Standup", "2026-11-16T09:00:00", "2026-11-16T09:15:00"),
        ("Standup", "2026-11-17T09:00:00", "2026-11-17T09:15:00"),
        ("Breakfast", "2026-11-19T08:00:00", "2026-11-19T09:00:00"),
        ("Run", "2026-11-19T08:00:00", "2026-11-19T09:00:00"),
    ] {
        desk.put(name, start, end);
    }
    desk
}

fn play(script: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut desk = desk();
    for line in script.lines() {
        if line.starts_with("# ") {
            if !out.is_empty() {
                out.push(String::new());
            }
            desk = self::desk();
        }
        let Some((who, what)) = line.split_once("> ").filter(|_| !line.starts_with(' ')) else {
            if line.starts_with("# ") {
                out.push(line.to_owned());
            }
            continue;
        };
        out.push(line.to_owned());
        match who {
            "user" => {
                let stop = desk.run(what);
                out.push(route(&desk));
                out.extend(lines(stop));
            }
            "answer" => out.extend(lines(desk.answer(what))),
            "decide" => {
                let decision = |word: &'_ str| word.trim().strip_prefix("no: ").map(str::to_owned);
                let decisions: Vec<Option<String>> = what.split(" | ").map(decision).collect();
                let decisions: Vec<Option<&str>> =
                    decisions.iter().map(|decision| decision.as_deref()).collect();
                out.extend(lines(desk.decide(&decisions)));
            }
            "wait" => desk.now = &desk.now + SignedDuration::from_mins(what.parse().unwrap()),
            "break" => {
                let (tool, why) = what.split_once(' ').unwrap();
                desk.broken.insert(tool.to_owned(), why.to_owned());
            }
            other => panic!("`{other}>` is not known"),
        }
    }
    out.push(String::new());
    out.join("\n")
}

fn route(desk: &Desk) -> String {
    let types = desk.route["allowed_tool_types"].as_array().unwrap();
    let types: Vec<&str> = types.iter().filter_map(|name| name.as_str()).collect();
    let decision = desk.route["decision"].as_str().unwrap();
    format!("  route: {decision} {}", types.join(",")).trim_end().to_owned()
}

fn lines(stop: Stop) -> Vec<String> {
    match stop {
        Stop::Said(text) => {
            text.lines().map(|line| format!("  | {line}").trim_end().to_owned()).collect()
        }
        Stop::Clarify(asks) => asks
            .iter()
            .map(|ask| {
                let text = |key: &str| ask[key].as_str().unwrap_or_default();
                format!("  clarify: {} ({})", text("question"), text("context"))
            })
            .collect(),
        Stop::Confirm(calls) => calls
            .iter()
            .map(|(tool, arguments)| format!("  ask: {tool} {}", canonical::sorted(arguments)))
            .collect(),
    }
}

fn check(name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules/scenes").join(name);
    let expected = std::fs::read_to_string(&file).unwrap();
    let played = play(&expected);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&file, &played).unwrap();
        return;
    }
    for (number, (expected, played)) in expected.lines().zip(played.lines()).enumerate() {
        assert_eq!(played, expected, "{name}:{}", number + 1);
    }
    assert_eq!(played, expected);
}

#[test]
fn the_flows_of_the_contract() {
    check("contract.txt");
}

#[test]
fn events_in_other_words() {
    check("words.txt");
}

#[test]
fn events_are_moved_and_renamed() {
    check("moves.txt");
}

#[test]
fn lists_maps_and_refusals() {
    check("others.txt");
}
