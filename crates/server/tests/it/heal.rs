//! Rules for failed steps, as they are seen from outside: where mistakes in them are, which realm
//! has which, and what is shown while one of them holds a step.

use crate::api_keys::{ADMIN, get, send};
use crate::house::{ADDRESS, Answer, House, assembled, demo_with, setup, text, wait_for};
use axum::http::Method;
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use server::{AssembleError, ProjectPart, assemble};
use std::path::Path;

/// A rule that waits for longer than a test takes.
const LATER: &str = "{ retry = { times = 1, wait_ms = 600000, jitter = 0 } }";

fn demo(settings: &str) -> Project {
    let config = Config::parse("waypost.toml", settings).unwrap();
    Project { config, ..Project::demo() }
}

/// What keeps a server with this project from being built, and which part of it.
async fn mistakes(project: Project) -> (ProjectPart, Vec<String>) {
    let data = tempfile::tempdir().unwrap();
    match assemble(setup(project, &data, ADDRESS.parse().unwrap())).await.map(|_| ()) {
        Err(AssembleError::Mistakes { part, mistakes }) => {
            (part, mistakes.iter().map(ToString::to_string).collect())
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_rule_that_names_a_plan_which_is_not_there_is_refused_with_its_place() {
    let hint = "hint: `waypost plan ls` lists the plans";
    let settings = "[supervisor]\non_error = [{ plan = \"fixes/gone\" }]\n";
    let expected = format!(
        "waypost.toml:2:22: error: rule 1 of `[supervisor]`: there is no plan `fixes/gone`; {hint}"
    );
    assert_eq!(mistakes(demo(settings)).await, (ProjectPart::Plans, vec![expected]));

    let plan = "planId: it/mended\non_error: [{plan: fixes/gone}]\nsteps:\n  - id: call\n    \
                type: tool_call\n    toolId: test::always_fail\n    arguments: {}\n    \
                on_error: [{plan: fixes/lost}]\n    nextStepId: end\n  \
                - {id: end, type: final_response, message: ok}\n";
    let told = mistakes(demo_with("plans/it/mended.yaml", "it/mended", plan)).await;
    let expected = [
        format!("plans/it/mended.yaml:2:19: error: there is no plan `fixes/gone`; {hint}"),
        format!("plans/it/mended.yaml:8:23: error: there is no plan `fixes/lost`; {hint}"),
    ];
    assert_eq!(told, (ProjectPart::Plans, expected.to_vec()));
}

#[tokio::test]
async fn a_rule_of_a_realm_whose_plan_is_not_there_is_told_with_its_place() {
    let settings = "[server]\nhosts = [\"wp.example.com\"]\n\
                    [realms.acme]\n[realms.acme.supervisor]\n\
                    on_error = [{ plan = \"fixes/gone\" }]\n";
    let data = tempfile::tempdir().unwrap();
    let address = ADDRESS.parse().unwrap();
    let server = assembled(demo(settings), &data, address, Some(ADMIN)).await;
    let told: Vec<String> = server.warnings.iter().map(ToString::to_string).collect();
    let expected = "waypost.toml:5:22: warning: left out in the realm `acme`: rule 1 of \
                    `[realms.acme.supervisor]`: there is no plan `fixes/gone`";
    assert!(told.iter().any(|told| told.starts_with(expected)), "{told:?}");
    server.stopper().stop().await;
}

/// The only ask that a list has, once it has one.
async fn only_ask(look: impl AsyncFn() -> Answer) -> Value {
    let is_one = |answer: &Answer| {
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body["items"].as_array().unwrap().len() == 1
    };
    let answer = wait_for("one ask that a rule holds", look, is_one).await;
    answer.body["items"][0].clone()
}

#[tokio::test]
async fn each_realm_has_the_rules_that_are_written_for_it() {
    let settings = format!(
        "[server]\nhosts = [\"wp.example.com\"]\n\
         [supervisor]\nbuiltin = false\non_error = [\"fail\"]\n\
         [realms.acme]\n[realms.acme.supervisor]\nbuiltin = false\non_error = [{LATER}]\n\
         [realms.shop]\n"
    );
    let house = House::build(demo(&settings), Some(ADMIN)).await;
    let fails = json!({"planId": "test::plan_that_fails"});
    for realm in ["default", "shop"] {
        let path = format!("/api/v1/runs?realm={realm}");
        let run = send(&house, ADMIN, Method::POST, &path, fails.clone()).await;
        assert_eq!(run.body["run"]["status"], "failed", "{realm}: {run:?}");
    }
    let path = "/api/v1/runs?realm=acme&wait=0";
    let run = send(&house, ADMIN, Method::POST, path, fails).await;
    let there = "/api/v1/asks?realm=acme&held=true";
    let held = only_ask(async || get(&house, ADMIN, there).await).await;
    assert_eq!(held["held"]["does"], "retry", "{held}");
    let path = format!("/api/v1/runs/{}?realm=acme", text(&run.body["run"]["id"]));
    assert_eq!(get(&house, ADMIN, &path).await.body["run"]["status"], "stuck");
    for realm in ["default", "shop"] {
        let path = format!("/api/v1/asks?realm={realm}&held=true");
        assert_eq!(get(&house, ADMIN, &path).await.body["items"], json!([]), "{realm}");
    }
}

/// The events that a sink wrote so far.
fn written(file: &Path) -> Vec<Value> {
    let lines = std::fs::read_to_string(file).unwrap_or_default();
    // The last one may not be whole yet.
    lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[tokio::test]
async fn a_session_whose_step_a_rule_holds_is_paused_on_error_and_its_event_goes_out() {
    let settings = format!(
        "[supervisor]\non_error = [{LATER}]\n\
         [events.sinks.lines]\ntype = \"file\"\npath = \"events.jsonl\"\n"
    );
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(|| demo(&settings), &data, None).await;
    let body = json!({"planId": "test::plan_that_fails", "session": "f"});
    house.post("/api/v1/runs?wait=0", body).await;
    let held = only_ask(async || house.get("/api/v1/asks?held=true").await).await;
    let core = house.get("/sessions/f").await.body["core"].clone();
    assert_eq!(core["status"], "paused_on_error", "{core}");
    assert_eq!(core["lastError"]["name"], "AlwaysFails", "{core}");

    let file = data.path().join("data/events.jsonl");
    let kind = "waypost.ask.held.v1";
    let is_it = |event: &Value| event["type"] == kind;
    let is_written = |events: &Vec<Value>| events.iter().any(is_it);
    let events = wait_for(&format!("`{kind}`"), async || written(&file), is_written).await;
    let event = events.into_iter().find(is_it).unwrap();
    assert_eq!((&event["subject"], &event["data"]["step"]), (&json!("f"), &json!("fail")));
    assert_eq!(event["data"]["ask"], held["id"], "{event}");
    // It is no person's yet: neither the inbox nor an event says that it is.
    assert_eq!(house.get("/api/v1/asks").await.body["items"], json!([]));
    let told = written(&file);
    assert!(told.iter().all(|event| event["type"] != "waypost.ask.opened.v1"), "{told:?}");
    stopper.stop().await;
}
