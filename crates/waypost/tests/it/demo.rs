//! `waypost demo`: every story is told with real answers, without a terminal, a key or a network,
//! and nothing is left behind.

use crate::process::{command, terminate, waypost, waypost_with};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use testkit::harness::{processes_with, wait_for};

const LIMIT: Duration = Duration::from_secs(60);
const STORIES: [&str; 9] =
    ["plans", "trade", "calendar", "tools", "heal", "a2a", "realms", "records", "crash"];

/// What the server itself said, story by story.
const SAID: [&str; 34] = [
    "\"status\": \"waiting\"",
    "\"answer\": \"Hello, Ada!\"",
    "HTTP 409",
    "\"path\": \"deterministic\"",
    "\"type\": \"TradeRepaired\"",
    "\"isin\": \"US0378331005\"",
    "\"ticketId\": \"TICKET-",
    "Missing required field(s): reason",
    "\"reason\": \"Amount mismatch\"",
    "\"status\": \"confirmation_required\"",
    "\"tool_name\": \"create_event\"",
    // In the list at the end, once it is approved.
    "- Standup",
    "\"resultType\": \"input_required\"",
    "\"price\": 20",
    "\"price\": 23",
    "\"receipt\": \"R-1\"",
    "\"path\": \"/country\"",
    "\"shipped\": \"DE\"",
    "\"version\": \"A2A 1.0",
    "\"state\": \"TASK_STATE_INPUT_REQUIRED\"",
    "approve `math::add`",
    "\"state\": \"TASK_STATE_COMPLETED\"",
    "\"subject\": \"ann\"",
    "HTTP 403",
    "it is more than 500",
    ": 601",
    "\"valid\": true",
    "24 (Order, `status:open`)",
    "\"error\": \"InvalidQuery\"",
    "\"totalCount\": 13",
    "\"margin\": 1497.34",
    "Nothing was deleted: the audit needs them",
    "kill -9 ",
    "\"how\": \"unknown\"",
];

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path().display().to_string()).collect()
}

#[test]
fn every_story_runs_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    // What a shell may have set is not used: no other server, no model, no port.
    let variables = [
        ("TMPDIR", temporary.to_str().unwrap()),
        ("ASSISTANT_MCP_URL", "http://127.0.0.1:1/mcp"),
        ("OPENAI_API_KEY", "never sent"),
        ("WAYPOST_PORT", "1"),
    ];
    let told = waypost_with(folder.path(), &["demo", "--all"], &variables).code(0);
    for story in STORIES {
        assert!(told.stdout.contains(&format!("== {story}: ")), "no {story} in {}", told.stdout);
    }
    // Long lines are folded.
    let whole = told.stdout.split_whitespace().collect::<Vec<&str>>().join(" ");
    for said in SAID {
        assert!(whole.contains(said), "nobody said `{said}` in {}", told.stdout);
    }
    assert_eq!(told.stderr, "", "nothing but the story");
    assert_eq!(entries(&temporary), Vec::<String>::new());
    assert_eq!(entries(folder.path()), [temporary.display().to_string()]);
    let ours = |seen: &testkit::harness::Seen| {
        seen.words.iter().any(|word| word.starts_with(temporary.to_str().unwrap()))
    };
    // What was killed may take a moment to be gone.
    for kind in ["calendar-server", "up"] {
        wait_for(&format!("`waypost .. {kind}` to end with its demo"), LIMIT, || {
            (!processes_with(kind).iter().any(ours)).then_some(())
        });
    }
}

#[test]
fn a_demo_that_is_ended_in_the_middle_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let mut demo = command(folder.path(), &["demo", "--all"]);
    demo.env("TMPDIR", &temporary).stdout(Stdio::null()).stderr(Stdio::null());
    let mut demo = demo.spawn().unwrap();
    let has_begun = || (!entries(&temporary).is_empty()).then_some(());
    wait_for("the demo's own folder", LIMIT, has_begun);
    terminate(demo.id());
    let status = wait_for("the demo to end", LIMIT, || demo.try_wait().unwrap());
    assert_eq!(status.code(), Some(130));
    assert_eq!(entries(&temporary), Vec::<String>::new());
}

#[test]
fn without_a_story_the_tour_runs_and_the_others_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let told = waypost(folder.path(), &["demo", "--fast"]).code(0).stdout;
    let heads: Vec<&str> =
        told.lines().filter_map(|line| line.strip_prefix("== ")?.split(':').next()).collect();
    assert_eq!(heads, ["crash", "heal", "realms"]);
    let end = told.split_whitespace().collect::<Vec<&str>>().join(" ");
    for said in ["More stories: plans, trade, calendar, tools, a2a, records.", " chat`", " inbox`"]
    {
        assert!(end.contains(said), "nobody said `{said}` in {told}");
    }
    let is_sentence = |line: &&str| line.starts_with(char::is_alphanumeric);
    let is_long = |line: &&str| line.chars().count() > 80;
    assert_eq!(told.lines().filter(is_sentence).find(is_long), None);
}

#[test]
fn one_story_runs_alone_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let told = waypost(folder.path(), &["--json", "demo", "trade", "--fast"]).code(0);
    let lines: Vec<Value> =
        told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["story"], "trade");
    let heads = lines.iter().filter(|line| line["story"].is_string()).count();
    assert_eq!(heads, 1);
    let answers: Vec<&Value> = lines.iter().filter(|line| line["curl"].is_string()).collect();
    assert_eq!(answers[1]["status"], 200);
    assert_eq!(answers[1]["answer"]["path"], "deterministic");
    assert!(answers[1]["curl"].as_str().unwrap().contains("/trade/failures"), "{}", answers[1]);
    let stats = &answers.last().unwrap()["answer"];
    assert_eq!((&stats["total"], &stats["deterministic"]), (&json!(4), &json!(2)), "{stats}");
}

#[test]
fn a_story_of_teams_shows_no_key_and_who_decided() {
    let folder = tempfile::tempdir().unwrap();
    let told = waypost(folder.path(), &["--json", "demo", "realms", "--fast"]).code(0);
    assert!(!told.stdout.contains("wp_"), "a key is shown in {}", told.stdout);
    let lines: Vec<Value> =
        told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answers: Vec<&Value> = lines.iter().filter(|line| line["curl"].is_string()).collect();
    let statuses: Vec<u64> = answers.iter().filter_map(|line| line["status"].as_u64()).collect();
    assert_eq!(statuses, [201, 200, 200, 403, 202, 403, 201, 404, 201, 200, 200, 200, 200]);
    let [calls, replies] = [3, 2].map(|from_end| &answers[statuses.len() - from_end]["answer"]);
    assert!(calls.to_string().contains("large-sums"), "{calls}");
    let items = replies["items"].as_array().unwrap();
    let subjects: Vec<&Value> = items.iter().map(|item| &item["subject"]).collect();
    assert!(subjects.contains(&&json!("ann")) && subjects.contains(&&json!("bob")), "{replies}");
    let check = &answers[statuses.len() - 1]["answer"];
    assert_eq!((&check["valid"], &check["flaws"]), (&json!(true), &json!(0)), "{check}");
}

/// Orders of Ann that are cancelled, in the first records of the example.
const CANCELLED_BY_ANN: u64 = 3;

#[test]
fn a_story_of_records_shows_a_place_two_callers_and_what_was_not_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let told = waypost(folder.path(), &["--json", "demo", "records", "--fast"]).code(0);
    assert!(!told.stdout.contains("wp_"), "a key is shown in {}", told.stdout);
    let lines: Vec<Value> =
        told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answers: Vec<&Value> = lines.iter().filter(|line| line["curl"].is_string()).collect();
    let statuses: Vec<u64> = answers.iter().filter_map(|line| line["status"].as_u64()).collect();
    assert_eq!(statuses, [201, 201, 200, 200, 400, 200, 200, 400, 202, 200, 200, 200]);
    let answer = |place: usize| &answers[place]["answer"];
    assert_eq!(answer(2)["response"], json!("24 (Order, `status:open`)"));
    assert_eq!(answer(3)["count"], json!(24));

    let pointed = lines.iter().find(|line| line["position"].is_u64()).unwrap();
    let query = pointed["line"].as_str().unwrap();
    let position = usize::try_from(pointed["position"].as_u64().unwrap()).unwrap();
    assert!(position > 0 && position < query.chars().count(), "{pointed}");
    assert_eq!(answer(4)["column"], json!(position + 1));

    let (own, all) = (answer(5), answer(6));
    assert_eq!((&own["totalCount"], &all["totalCount"]), (&json!(4), &json!(13)));
    let rows = |found: &Value| found["rows"].as_array().unwrap().clone();
    assert!(rows(own).iter().all(|row| row["salesRep"] == "ann" && row.get("margin").is_none()));
    assert!(rows(all).iter().all(|row| row["margin"].is_number()), "{all}");
    assert_eq!(answer(7)["error"], json!("InvalidQuery"));

    assert_eq!(answer(8)["status"], json!("running"), "it waits for somebody else");
    assert_eq!(answer(10)["run"]["answer"], json!("Nothing was deleted: the audit needs them"));
    assert_eq!(answer(11)["count"], json!(CANCELLED_BY_ANN));
}

#[test]
fn stories_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let listed = waypost(folder.path(), &["demo", "--list"]).code(0);
    let names: Vec<&str> =
        listed.stdout.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, STORIES);
    waypost(folder.path(), &["demo", "trades"]).code(2).says("'trade'");
}

#[test]
fn the_trade_example_looks_up_what_its_plan_expects() {
    let empty = tempfile::tempdir().unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/trade-failures");
    let tested = waypost(empty.path(), &["--json", "plan", "test", example]).code(0);
    assert!(tested.stdout.contains("the table has it"), "{tested:#?}");
}
