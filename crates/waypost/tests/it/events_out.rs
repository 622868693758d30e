//! Where events go, from the outside: the demo's file, standard output, a webhook that failed and
//! an event that is sent to it again.

use crate::peer::Peer;
use crate::process::{Server, waypost, write};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use testkit::harness::wait_for;
use testkit::servers::webhook::{Mood, WebhookReceiver};

const LIMIT: Duration = Duration::from_secs(120);
/// The base64 of 32 bytes.
const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const PLAN: &str = "description: tells one event\nstartStepId: tell\nsteps:\n\
     \x20 - {id: tell, type: publish_event, event: {type: Told, text: hello}, nextStepId: end}\n\
     \x20 - {id: end, type: final_response, message: done}\n";

/// A project with a plan that tells an event, and with these settings.
fn project(settings: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let secret = format!("HOOK_SECRET={SECRET}\n");
    let files =
        [("waypost.toml", settings), ("plans/out/tell.yaml", PLAN), (".env", secret.as_str())];
    write(folder.path(), &files);
    folder
}

fn hook(receiver: &WebhookReceiver) -> String {
    let url = receiver.url();
    format!(
        "[limits]\ndelivery_attempts_max = 2\ndelivery_backoff_ms = 10\n\
         [events.sinks.hook]\ntype = \"webhook\"\nurl = \"{url}\"\nsecret = \"${{HOOK_SECRET}}\"\n\
         types = [\"Told\"]\n"
    )
}

fn tell(server: &Server) {
    server.run(&["plan", "run", "out/tell"]).code(0);
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_demo_writes_its_events_into_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&["--demo", "--data", data.to_str().unwrap()], &[]);
    server.run(&["plan", "run", "math::conditional_add", "--input", "a=2", "b=3"]).code(0);
    let is_over = |line: &&Value| line["type"] == "waypost.run.completed.v1";
    let line = wait_for("the end of the run in `events.jsonl`", LIMIT, || {
        lines(&data.join("events.jsonl")).iter().find(is_over).cloned()
    });
    assert_eq!(line["specversion"], "1.0");
    let listed = server.json(&["events", "sinks"]).code(0).json();
    assert_eq!(listed["items"][0]["name"], "events");
    assert_eq!(listed["items"][0]["failed"], 0);
    let table = server.run(&["events", "sinks"]).code(0).stdout;
    assert!(table.starts_with("NAME") && table.contains("events.jsonl"), "{table}");
}

#[test]
fn an_event_that_failed_is_sent_again() {
    let receiver = WebhookReceiver::start(&[SECRET]);
    receiver.be(Mood::Failing(422));
    let folder = project(&hook(&receiver));
    let server = Server::of_project(folder.path());
    tell(&server);
    let failed = wait_for("a delivery that failed", LIMIT, || {
        let log = server.json(&["events", "deliveries", "hook", "--status", "failed"]);
        log.code(0).json()["items"].as_array().unwrap().first().cloned()
    });
    assert_eq!((&failed["type"], &failed["attempts"]), (&json!("Told"), &json!(2)), "{failed}");
    assert_eq!(failed["code"], 422, "{failed}");
    let event = failed["event"].as_str().unwrap();
    let table = server.run(&["events", "deliveries", "hook"]).code(0).stdout;
    assert!(table.contains(event) && table.contains("failed"), "{table}");
    let again = server.run(&["events", "resend", "hook", event]).code(1);
    assert!(!again.stdout.starts_with("delivered"), "{again:#?}");
    receiver.be(Mood::Well);
    let again = server.run(&["events", "resend", "hook", event]).code(0);
    assert_eq!(again.stdout, format!("delivered  {event}\n"));
    let taken = receiver.taken();
    assert_eq!((taken.len(), taken[0].id.as_str(), taken[0].kind()), (1, event, "Told"));
    assert_eq!(taken[0].event["data"], json!({"type": "Told", "text": "hello"}));
    assert_eq!(receiver.faults(), Vec::<String>::new());
    server.run(&["events", "deliveries", "hok"]).code(1).says("did you mean `hook`?");
}

#[test]
fn a_receiver_that_answers_410_is_paused_until_it_is_resumed() {
    let receiver = WebhookReceiver::start(&[SECRET]);
    receiver.be(Mood::Failing(410));
    let folder = project(&hook(&receiver));
    let server = Server::of_project(folder.path());
    tell(&server);
    let sink = || server.json(&["events", "sinks"]).code(0).json()["items"][0].clone();
    wait_for("the sink to be gone", LIMIT, || (sink()["status"] == "gone").then_some(()));
    assert_eq!(sink()["failed"], 0);
    let table = server.run(&["events", "sinks"]).code(0).stdout;
    assert!(table.contains("STATUS") && table.contains("gone"), "{table}");
    receiver.be(Mood::Well);
    let resumed = server.run(&["events", "resume", "hook"]).code(0);
    assert_eq!(resumed.stdout, "sending  hook\n");
    wait_for("the event", LIMIT, || (receiver.taken().len() == 1).then_some(()));
    assert_eq!(receiver.faults(), Vec::<String>::new());
    server.run(&["events", "resume", "hok"]).code(1).says("did you mean `hook`?");
}

/// A project whose webhook took nothing of one event before it was taken out of the settings.
fn without_its_hook(receiver: &WebhookReceiver) -> TempDir {
    receiver.be(Mood::Failing(500));
    let folder = project(&hook(receiver));
    let server = Server::of_project(folder.path());
    tell(&server);
    wait_for("a delivery that is tried again", LIMIT, || {
        let log = server.json(&["events", "deliveries", "hook", "--status", "retrying"]);
        log.code(0).json()["items"].as_array().unwrap().first().cloned()
    });
    server.stop().0.code(0);
    write(folder.path(), &[("waypost.toml", "")]);
    folder
}

#[test]
fn a_sink_that_is_no_longer_configured_is_listed_until_it_is_forgotten() {
    let receiver = WebhookReceiver::start(&[SECRET]);
    let folder = without_its_hook(&receiver);
    let server = Server::of_project(folder.path());
    let sinks = server.json(&["events", "sinks"]).code(0).json();
    let sink = &sinks["items"][0];
    assert_eq!((&sink["name"], &sink["status"]), (&json!("hook"), &json!("unconfigured")));
    let behind = format!(
        "`hook` is not configured any more and is {} rows of the feed behind: retention keeps what \
         it has not passed",
        sink["lag"]
    );
    let settings = format!("[server]\nport = {}\n", server.port());
    write(folder.path(), &[("waypost.toml", settings.as_str())]);
    let found = || -> Vec<Value> {
        let report = waypost(folder.path(), &["--json", "doctor"]).code(0).json();
        let checks = report["checks"].as_array().unwrap().iter();
        checks.filter(|check| check["name"] == "sinks").cloned().collect()
    };
    let none = json!({"level": "ok", "name": "sinks", "what": "no events go out"});
    let hint = "`waypost events forget hook`, or configure it again";
    let left = json!({"level": "warn", "name": "sinks", "what": behind, "hint": hint});
    assert_eq!(found(), [none.clone(), left]);

    server.run(&["events", "forget", "hok"]).code(1).says("did you mean `hook`?");
    let tried = server.run(&["events", "forget", "hook", "--dry-run"]).code(0).stdout;
    assert!(tried.contains("the sink `hook` (unconfigured) would be forgotten"), "{tried}");
    let forgotten = server.json(&["events", "forget", "hook"]).code(0).json();
    assert_eq!(forgotten, json!({"name": "hook", "forgotten": true}));
    server.run(&["events", "forget", "hook"]).code(1).says("there is no sink `hook`");
    assert_eq!(found(), [none]);
    let (ended, _) = server.stop();
    let warned = format!("the sink {behind}");
    assert!(ended.stderr.contains(&warned), "{ended:#?}");
    assert!(ended.stderr.contains("`waypost events forget hook` lets go of it"), "{ended:#?}");
}

#[test]
fn a_sink_that_is_configured_again_gets_what_waited_for_it() {
    let receiver = WebhookReceiver::start(&[SECRET]);
    let folder = without_its_hook(&receiver);
    let server = Server::of_project(folder.path());
    tell(&server);
    server.stop().0.code(0);
    receiver.be(Mood::Well);
    write(folder.path(), &[("waypost.toml", hook(&receiver).as_str())]);
    let server = Server::of_project(folder.path());
    let refused = server.run(&["events", "forget", "hook"]).code(1);
    refused.says("remove `[events.sinks.hook]` from the settings");
    wait_for("both events", LIMIT, || (receiver.taken().len() == 2).then_some(()));
    assert_eq!(receiver.faults(), Vec::<String>::new());
}

#[test]
fn standard_output_gets_events_unless_a_client_reads_it() {
    let folder = project("[events.sinks.out]\ntype = \"stdout\"\ntypes = [\"Told\"]\n");
    let server = Server::of_project(folder.path());
    tell(&server);
    wait_for("the event to be out", LIMIT, || {
        let sinks = server.json(&["events", "sinks"]).code(0).json();
        (sinks["items"][0]["lag"] == 0).then_some(())
    });
    let (ended, _) = server.stop();
    let told: Vec<Value> =
        ended.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(told.len(), 1, "{ended:#?}");
    assert_eq!(told[0]["data"]["text"], "hello");

    // Every line that this client reads must be a message.
    let mut peer = Peer::start(folder.path(), &[]);
    peer.greet("2025-06-18");
    let listed = peer.ask("tools/list", &json!({}));
    assert!(listed.to_string().contains("out"), "{listed}");
    let ended = peer.end();
    assert!(ended.stderr.contains("the sink `out` rests"), "{ended:#?}");
}

#[test]
fn a_tail_shows_one_type_alone() {
    let folder = project("");
    let server = Server::of_project(folder.path());
    tell(&server);
    let tail = ["--json", "events", "tail", "--type", "Told"];
    let said = server.follow(&tail, |said| said.contains("hello"));
    let told: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&Value> = told.iter().filter(|line| line["event"].is_object()).collect();
    assert!(events.iter().all(|line| line["event"]["type"] == "event.published"), "{said}");
}

#[test]
fn a_secret_is_needed_and_never_shown() {
    let receiver = WebhookReceiver::start(&[SECRET]);
    let folder = project(&hook(&receiver));
    let shown = waypost(folder.path(), &["config", "show"]).code(0).stdout;
    let line = shown.lines().find(|line| line.starts_with("events.sinks.hook.secret")).unwrap();
    assert!(line.ends_with("\"set\""), "{line}");
    write(folder.path(), &[(".env", "HOOK_SECRET=hunter2\n")]);
    let ended = waypost(folder.path(), &["up", "--port", "0"]).code(2).says("openssl rand");
    assert!(ended.stderr.contains("waypost.toml:7:10"), "{ended:#?}");
    assert!(!ended.stderr.contains("hunter2"), "{ended:#?}");
}
