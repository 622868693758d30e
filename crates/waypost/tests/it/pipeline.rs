//! `waypost pipeline`: a file tested offline, cases sent to a server, and what it counted.

use crate::process::{Server, command, waypost, write};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

const DESK: &str = r#"description: cases of a desk
http: {route: /desk/cases}
schema:
  caseIdField: tradeId
  allowedFields: [tradeId, reason]
  requiredFields: [tradeId, reason]
handlers:
  - {reason: Missing ISIN, type: lookup-enrich, params: {identifier: ISIN}}
  - {reason: Greet, plan: desk/greet}
tools:
  - type: publish-event
  - type: raise-ticket
llm: {type: stub}
"#;

const GREET: &str = r#"description: asks before it goes on
startStepId: ask
steps:
  - {id: ask, type: human_in_the_loop, message: go on?, nextStepIdOnInput: end}
  - {id: end, type: final_response, message: '{{ context.human_input }}'}
"#;

fn project(pipeline: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("plans/desk/greet.yaml", GREET), ("pipelines/desk.yaml", pipeline)]);
    folder
}

fn case(id: &str, reason: &str) -> String {
    json!({"tradeId": id, "reason": reason}).to_string()
}

#[test]
fn a_file_is_tested_with_its_cases_offline() {
    let folder = project(DESK);
    let known = case("1", "Missing ISIN");
    write(folder.path(), &[("case.json", &case("2", "missing isin"))]);
    let test = ["pipeline", "test", "pipelines/desk.yaml"];
    let words = [&test[..], &["--case", known.as_str(), "--case", "@case.json"]].concat();
    let told = waypost(folder.path(), &words).code(0).says("2 handlers, 0 errors, 0 warnings");
    assert_eq!(
        told.stdout,
        "CASE  REASON        PATH\n\
         1     Missing ISIN  deterministic: lookup-enrich\n\
         2     missing isin  unknown -> agent\n"
    );
    let words =
        ["--json", "pipeline", "test", "pipelines/desk.yaml", "--case", "{\"tradeId\": \"3\"}"];
    let told = waypost(folder.path(), &words).code(1).json();
    assert_eq!((&told["valid"], &told["pipeline"]), (&json!(true), &json!("desk")));
    assert_eq!(told["cases"][0]["refused"], "Missing required field(s): reason");
}

#[test]
fn mistakes_are_shown_with_their_lines() {
    let broken = DESK.replace("lookup-enrich", "lookup-enrch");
    let folder = project(&broken);
    let told = waypost(folder.path(), &["pipeline", "test", "pipelines/desk.yaml"]).code(1);
    let line = told.stdout.lines().next().unwrap_or_default().to_owned();
    assert!(line.starts_with("pipelines/desk.yaml:8:"), "{told:#?}");
    assert!(line.contains("`lookup-enrich`"), "{told:#?}");
    told.says("1 error");

    // What the file names must be there: its plans and tools.
    let lost = DESK
        .replace("desk/greet", "desk/gret")
        .replace("- type: raise-ticket", "- case.raiseTiket");
    let folder = project(&lost);
    let told = waypost(folder.path(), &["pipeline", "test", "pipelines/desk.yaml"]).code(1);
    let lines: Vec<&str> = told.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{told:#?}");
    assert!(lines[0].starts_with("pipelines/desk.yaml:9:"), "{told:#?}");
    assert!(lines[0].contains("did you mean `desk/greet`?"), "{told:#?}");
    let place = "pipelines/desk.yaml:12:5: error: there is no tool `case.raiseTiket`";
    assert!(lines[1].starts_with(place), "{told:#?}");
    assert!(lines[1].ends_with("did you mean `case.raiseTicket`?"), "{told:#?}");

    // A tool of the demo has a switch.
    write(folder.path(), &[("off.yaml", &DESK.replace("- type: raise-ticket", "- math::add"))]);
    let told = waypost(folder.path(), &["pipeline", "test", "off.yaml"]).code(1);
    assert!(told.stdout.contains("`math::add`; hint: set `demo = true`"), "{told:#?}");

    waypost(folder.path(), &["pipeline", "test", "nowhere.yaml"]).code(2).says("cannot read");

    // Where it stands is checked too: the server has routes of its own, and a name is one's alone.
    let hidden =
        DESK.replace("/desk/cases", "/run").replace("- type: raise-ticket", "- desk/greet");
    write(folder.path(), &[("pipelines/desk.yaml", DESK), ("desk.yaml", &hidden)]);
    let told = waypost(folder.path(), &["pipeline", "test", "desk.yaml"]).code(1);
    for expected in
        ["route` cannot be `/run`", "`desk` is already defined in", "no tool `desk/greet`"]
    {
        assert!(told.stdout.contains(expected), "no {expected}: {told:#?}");
    }
    waypost(folder.path(), &["pipeline", "test", "pipelines/desk.yaml"]).code(0);
}

#[test]
fn cases_are_sent_and_counted() {
    let folder = project(DESK);
    let server = Server::of_project(folder.path());
    let listed = server.run(&["pipeline", "ls"]).code(0);
    assert!(listed.stdout.contains("desk") && listed.stdout.contains("/desk/cases"), "{listed:#?}");

    let known =
        server.json(&["pipeline", "send", "desk", &case("1", "Missing ISIN")]).code(0).json();
    assert_eq!(known["path"], "deterministic");
    assert_eq!(known["resultEvent"]["type"], "TradeRepaired");
    let pairs = ["pipeline", "send", "desk", "tradeId=2", "reason=LEI unknown"];
    let unknown = server.json(&pairs).code(0).json();
    assert_eq!(
        (&unknown["path"], &unknown["result"]["status"]),
        (&json!("agent"), &json!("created"))
    );

    // Somebody is asked on the way: exit code 3, and the command that answers.
    let waits = server.run(&["pipeline", "send", "desk", &case("3", "Greet")]).code(3);
    let shown: Value = waits.json();
    assert_eq!((&shown["status"], &shown["tradeId"]), (&json!("pending"), &json!("3")), "{shown}");
    let ask = shown["ask"]["id"].as_str().unwrap().to_owned();
    let answer = format!("waypost --server {} inbox answer {ask}", server.url);
    let waits = waits.says(&answer);
    assert!(waits.stderr.contains("the case waits for a person"), "{waits:#?}");

    server.run(&["pipeline", "send", "desk", "{\"tradeId\": \"4\"}"]).code(2).says("reason");
    server.run(&["pipeline", "send", "dsk", &case("5", "x")]).code(1).says("did you mean `desk`?");

    let stats = server.run(&["pipeline", "stats", "desk"]).code(0);
    assert!(stats.stdout.contains("deterministic  2 (66.7 %)"), "{stats:#?}");
    assert!(stats.stdout.contains("agent          1 (33.3 %)"), "{stats:#?}");
    stats.says("1 case said `LEI unknown`: a handler would take it off the model");
    let stats = server.json(&["pipeline", "stats", "desk"]).code(0).json();
    assert_eq!((&stats["total"], &stats["unknown"][0]["count"]), (&json!(3), &json!(1)));
    server.run(&["pipeline", "stats", "nowhere"]).code(1);
}

#[test]
fn a_case_comes_from_standard_input() {
    let folder = project(DESK);
    let server = Server::of_project(folder.path());
    let words = ["--server", server.url.as_str(), "--json", "pipeline", "send", "desk", "-"];
    let mut child = command(folder.path(), &words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(case("1", "Missing ISIN").as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let answer: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(answer["path"], "deterministic");
}
