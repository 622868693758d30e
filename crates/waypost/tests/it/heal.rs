//! Failed steps and drafted plans at the command line: what rules hold, what a model proposes, and
//! a plan that a model of rules writes.

use crate::process::{Server, write};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::harness::wait_for;

/// How long the demo takes at most until it has its calendar.
const CALENDAR_LIMIT: Duration = Duration::from_secs(120);

/// A model that writes one correction: it goes on without the failed step.
const MODEL: &str = "version: 1\nabout: Writes one correction.\nrules:\n  \
    - rule: go on without it\n    \
    when: { turn: executor, said: '\"tool\":\"test::always_fail\"' }\n    say: |\n      \
    {\"planId\": \"fix/skip\", \"description\": \"Goes on without it.\", \"steps\": [\n      \
    {\"id\": \"say\", \"type\": \"final_response\", \"message\": {\"action\": \"skip\"} }]}\n\
    fallback: {say: I cannot help with that.}\n";

/// A plan whose call fails, with this rule.
fn failing(rule: &str) -> String {
    format!(
        "steps:\n  - {{id: call, type: tool_call, toolId: 'test::always_fail', arguments: {{}}, \
         on_error: [{rule}], nextStepId: end}}\n  \
         - {{id: end, type: final_response, message: done}}\n"
    )
}

/// A project with such a plan, and with that model.
pub fn project(rule: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let settings = "[tools]\ndemo = true\n\n[models.default]\nprovider = \"rules\"\n\
                    rules = \"rules/mend.yaml\"\n";
    write(
        folder.path(),
        &[
            ("waypost.toml", settings),
            ("rules/mend.yaml", MODEL),
            ("plans/work/fails.yaml", failing(rule).as_str()),
        ],
    );
    folder
}

/// The open asks of a session, as a list shows them.
pub fn asks(server: &Server, arguments: &[&str]) -> Vec<Value> {
    let listed = server.json(&[&["inbox", "ls", "--session", "s"][..], arguments].concat());
    listed.code(0).json()["items"].as_array().unwrap().clone()
}

#[test]
fn what_a_rule_holds_is_listed_only_if_it_is_wanted() {
    let folder = project("{retry: {times: 1, wait_ms: 60000, jitter: 0}}");
    let server = Server::of_project(folder.path());
    let _ = server.run(&["plan", "run", "work/fails", "--session", "s", "--wait", "1"]);
    assert_eq!(asks(&server, &[]), Vec::<Value>::new());
    let held = asks(&server, &["--held"]);
    assert_eq!((held.len(), &held[0]["held"]["does"]), (1, &json!("retry")), "{held:?}");
    let shown = server.run(&["inbox", "show", held[0]["id"].as_str().unwrap()]).code(0);
    assert!(shown.stdout.contains("by rule `step 1`: retry, 1 of 1"), "{shown:#?}");
}

#[test]
fn a_proposal_is_shown_and_taken_as_it_is() {
    let folder = project("{draft: {}}");
    let server = Server::of_project(folder.path());
    server.run(&["plan", "run", "work/fails", "--session", "s"]).code(3);
    let open = asks(&server, &[]);
    assert_eq!(open.len(), 1, "{open:?}");
    let ask = open[0]["id"].as_str().unwrap();
    let shown = server.run(&["inbox", "show", ask]).code(0);
    for part in ["proposal", "correct", "Goes on without it."] {
        assert!(shown.stdout.contains(part), "no `{part}` in {shown:#?}");
    }
    let taken = server.run(&["inbox", "answer", ask, "--proposal"]).code(0);
    assert!(taken.stdout.contains("done"), "{taken:#?}");
    assert_eq!(asks(&server, &[]), Vec::<Value>::new());
}

#[test]
fn a_plan_is_drafted_by_the_model_of_the_demo() {
    let server = Server::demo();
    let known = server.run(&["plan", "draft", "add two numbers"]).code(0);
    assert!(known.stdout.contains("math::conditional_add"), "{known:#?}");
    let drafted = server.run(&["plan", "draft", "add three numbers"]).code(0).says("it only reads");
    let plan: Value = serde_json::from_str(&drafted.stdout).unwrap();
    assert_eq!(plan["planId"], "math/add_three", "{plan}");
    // The tools of its calendar server are there a moment after the demo itself.
    wait_for("the demo to have calendars", CALENDAR_LIMIT, || {
        (server.run(&["tool", "show", "create_event"]).code == Some(0)).then_some(())
    });
    let meeting = server.json(&["plan", "draft", "schedule a meeting"]).code(0).json();
    let writes = meeting["draft"]["writes"].as_array().unwrap();
    assert!(!writes.is_empty(), "{meeting}");
    assert!(writes.iter().all(|write| write["approve"] == json!(true)), "{meeting}");
    server.run(&["plan", "draft", "fly to the moon"]).code(1);
    // Nothing of it is there.
    server.run(&["plan", "show", "math/add_three"]).code(1);
}
