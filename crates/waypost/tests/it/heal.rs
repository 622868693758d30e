//! Failed steps and drafted plans at the command line: what rules hold, what a model proposes, and
//! a plan that a model of rules writes.

use crate::process::{Server, waypost, write};
use crate::rest::{self, Rest};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use testkit::harness::wait_for;

/// How long the demo takes at most until it has its calendar.
const CALENDAR_LIMIT: Duration = Duration::from_secs(120);
/// How long a run may take until its failed step is held, on a busy machine.
const HELD_LIMIT: Duration = Duration::from_secs(120);

/// A model that writes one correction: it continues without the failed step.
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
fn asks_held_by_rules_are_listed_only_on_request() {
    let folder = project("{retry: {times: 1, wait_ms: 600000, jitter: 0}}");
    let server = Server::of_project(folder.path());
    let _ = server.run(&["plan", "run", "work/fails", "--session", "s", "--wait", "1"]);
    // The command need not have waited for it.
    let held = wait_for("the ask that the rule holds", HELD_LIMIT, || {
        Some(asks(&server, &["--held"])).filter(|held| !held.is_empty())
    });
    assert_eq!(asks(&server, &[]), Vec::<Value>::new());
    assert_eq!((held.len(), &held[0]["held"]["does"]), (1, &json!("retry")), "{held:?}");
    let shown = server.run(&["inbox", "show", held[0]["id"].as_str().unwrap()]).code(0);
    assert!(shown.stdout.contains("by rule `step 1`: retry, 1 of 1"), "{shown:#?}");
}

/// A project whose plan `shop/rate` asks a bank that fails twice, and is tried again so much later.
pub fn flaky(wait_ms: u32) -> tempfile::TempDir {
    let asked = AtomicU32::new(0);
    let bank = Rest::start(Arc::new(move |_: &str| match asked.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => Some((503, "{}".to_owned())),
        _ => Some((200, "{\"rate\": 7}".to_owned())),
    }));
    let plan = format!(
        "steps:\n  - {{id: ask, type: tool_call, toolId: bank.rate, arguments: {{}}, \
         on_error: [{{retry: {{times: 3, wait_ms: {wait_ms}, jitter: 0}}}}], nextStepId: end}}\n  \
         - {{id: end, type: final_response, message: done}}\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let settings = bank.settings();
    let files = [
        ("waypost.toml", settings.as_str()),
        ("bank.yaml", rest::DOCUMENT),
        ("plans/shop/rate.yaml", plan.as_str()),
    ];
    write(folder.path(), &files);
    folder
}

#[test]
fn a_command_waits_for_a_run_held_by_rules() {
    let folder = flaky(700);
    let server = Server::of_project(folder.path());
    rest::await_tool(&server, "bank.rate");
    let ended = server.run(&["plan", "run", "shop/rate"]).code(0);
    assert_eq!(ended.stdout, "done\n");
    // No person was asked, and none is said to be.
    assert!(!ended.stderr.contains("waits for a person"), "{ended:#?}");
}

#[test]
fn a_run_held_for_longer_is_reported_as_continuing() {
    let folder = project("{retry: {times: 1, wait_ms: 600000, jitter: 0}}");
    let server = Server::of_project(folder.path());
    let run = ["plan", "run", "work/fails", "--wait", "20"];
    let held = server.run(&run).code(124).says("a rule tries again in ");
    assert!(!held.stderr.contains("waits for a person"), "{held:#?}");
}

#[test]
fn a_proposal_is_shown_and_accepted_as_it_is() {
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
    let plan: Value = serde_saphyr::from_str(&drafted.stdout).unwrap();
    assert_eq!(plan["planId"], "math/add_three", "{plan}");
    // The tools of its calendar server are there a moment after the demo itself.
    wait_for("the demo to have calendars", CALENDAR_LIMIT, || {
        (server.run(&["tool", "show", "create_event"]).code == Some(0)).then_some(())
    });
    let meeting = server.json(&["plan", "draft", "schedule a meeting"]).code(0).json();
    let writes = meeting["draft"]["writes"].as_array().unwrap();
    assert!(!writes.is_empty(), "{meeting}");
    assert!(writes.iter().all(|write| write["approve"] == json!(true)), "{meeting}");
    let failed = server.run(&["plan", "draft", "fly to the moon"]).code(1);
    let failed = failed.says("no JSON object: `I only write plans that add three numbers, or");
    assert_eq!(failed.stdout, "", "what is no plan is not printed as one");
    assert!(!failed.stderr.contains("answer with"), "{failed:#?}");
    // Nothing of it is there.
    server.run(&["plan", "show", "math/add_three"]).code(1);
}

/// A model that writes plans for the goals that it knows.
const DRAFTS: &str = include_str!("../../../../examples/calendar/rules/drafts.yaml");

#[test]
fn a_drafted_plan_is_saved_under_its_id_and_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "[tools]\ndemo = true\n\n[models.default]\nprovider = \"rules\"\n\
                    rules = \"rules/drafts.yaml\"\n";
    write(folder.path(), &[("waypost.toml", settings), ("rules/drafts.yaml", DRAFTS)]);
    let server = Server::of_project(folder.path());
    let draft = |id: &str| {
        let goal = "add three numbers";
        let server = ["--server", server.url.as_str()];
        waypost(folder.path(), &[&server[..], &["plan", "draft", goal, "--save", id]].concat())
    };
    let file = folder.path().join("plans/math/three.yaml");
    draft("../three").code(2).says("cannot be the id of a new plan");
    let saved = draft("math/three").code(0).says("written to plans/math/three.yaml");
    let kept = fs::read_to_string(&file).unwrap();
    let plan: Value = serde_saphyr::from_str(&kept).unwrap();
    assert_eq!((&plan["planId"], &plan["steps"][0]["id"]), (&json!("math/three"), &json!("first")));
    let printed: Value = serde_saphyr::from_str(&saved.stdout).unwrap();
    assert_eq!(plan["steps"], printed["steps"], "what was shown is what was written");
    waypost(folder.path(), &["plan", "validate"]).code(0);

    fs::write(&file, "mine").unwrap();
    draft("math/three").code(2).says("`plans/math/three.yaml` is there already");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_plan_not_yet_reloaded_is_distinguished_from_an_unknown_one() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("plans/a/first.yaml", about("description: d\n").as_str())]);
    let server = Server::of_project(folder.path());
    write(folder.path(), &[("plans/a/second.yaml", about("description: d\n").as_str())]);
    let run = |id: &str| {
        let server = ["--server", server.url.as_str()];
        waypost(folder.path(), &[&server[..], &["plan", "run", id]].concat())
    };
    run("a/second").code(1).says("`plans/a/second.yaml` is there").says("--watch");
    assert!(!run("a/third").code(1).stderr.contains("is there"));
}

/// A plan of one step, with these lines at its top.
fn about(lines: &str) -> String {
    format!("{lines}steps: [{{id: end, type: final_response, message: ok}}]\n")
}

#[test]
fn plans_that_match_a_text_are_listed_best_first() {
    let folder = tempfile::tempdir().unwrap();
    let parameters = "parameters: {type: object, properties: {invoice: {type: string}}}\n";
    let files = [
        ("waypost.toml", "[tools]\ndemo = false\n".to_owned()),
        ("plans/a/stock.yaml", about(&format!("description: Counts what is left.\n{parameters}"))),
        ("plans/b/total.yaml", about("description: Adds up the lines of an invoice.\n")),
        ("plans/c/invoice_total.yaml", about("description: Adds up.\n")),
        ("plans/d/month.yaml", about("description: The invoice total of a month.\n")),
        ("plans/e/other.yaml", about("description: Says hello.\n")),
    ];
    write(folder.path(), &files.each_ref().map(|(file, text)| (*file, text.as_str())));
    let server = Server::of_project(folder.path());
    let listed = server.json(&["plan", "ls", "--match", "Invoice total"]).code(0).json();
    let ids: Vec<&str> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plan| plan["id"].as_str().unwrap())
        .collect();
    // First what has the whole text; then by words: in ids, in descriptions, in parameters.
    assert_eq!(ids, ["d/month", "c/invoice_total", "b/total", "a/stock"]);
    let table = server.run(&["plan", "ls", "--match", "Invoice total"]).code(0).stdout;
    let places: Vec<usize> = ids.iter().map(|id| table.find(id).unwrap()).collect();
    assert!(places.is_sorted(), "{table}");
    let none = server.json(&["plan", "ls", "--match", "spaceship"]).code(0).json();
    assert_eq!(none["items"], json!([]));
}
