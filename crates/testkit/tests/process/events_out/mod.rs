//! Events on their way out of the real server: to a webhook that is unwell, and through kills. The
//! receiver and the file are held against what the server acknowledged.

mod unwell;
mod kill;

use crate::api;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use testkit::harness::{Project, Server, StartOptions, wait_for};
use testkit::http::Client;
use testkit::servers::webhook::{WebhookReceiver, place_of};

/// The base64 of 32 bytes.
pub(crate) const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
/// What was the secret until a while ago: both sign.
const OLD_SECRET: &str = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
/// How long everything may take to be out.
const OUT_LIMIT: Duration = Duration::from_secs(600);

const PLAN_ID: &str = "out/three";
/// How many events each run of the plan tells.
const PARTS: u64 = 3;
const PLAN: &str = r#"planId: out/three
description: tells three events, one after the other
parameters: {type: object, required: [number]}
startStepId: one
steps:
  - id: one
    type: publish_event
    event: {type: Told, number: {jsonPath: $.promptInput.number}, part: 1}
    nextStepId: two
  - id: two
    type: publish_event
    event: {type: Told, number: {jsonPath: $.promptInput.number}, part: 2}
    nextStepId: three
  - id: three
    type: publish_event
    event: {type: Told, number: {jsonPath: $.promptInput.number}, part: 3}
    nextStepId: end
  - {id: end, type: final_response, message: {jsonPath: $.promptInput.number}}
"#;

/// A receiver, a project that sends to it and to a file, and its data.
struct Site {
    receiver: WebhookReceiver,
    project: Project,
    data: PathBuf,
    folder: TempDir,
}

impl Site {
    /// `timeout_ms` is how long the server waits for the receiver.
    fn build(name: &str, timeout_ms: u64) -> Self {
        let folder = tempfile::Builder::new().prefix(name).tempdir().unwrap();
        let receiver = WebhookReceiver::start(&[SECRET]);
        let url = receiver.url();
        // Nothing is given up, and nobody waits long: the receiver is well again soon.
        let settings = format!(
            "[limits]\ndelivery_backoff_ms = 20\ndelivery_backoff_ms_max = 1500\n\
             delivery_attempts_max = 1000000\n\n\
             [events.sinks.lines]\ntype = \"file\"\npath = \"events.jsonl\"\n\n\
             [events.sinks.hook]\ntype = \"webhook\"\nurl = \"{url}\"\n\
             secret = \"${{HOOK_SECRET}} ${{OLD_SECRET}}\"\ntimeout_ms = {timeout_ms}\n"
        );
        let place = folder.path().join("project");
        let project = Project::write(&place, &[("out/three.yaml", PLAN)], &settings);
        let variables = format!("HOOK_SECRET={SECRET}\nOLD_SECRET={OLD_SECRET}\n");
        fs::write(place.join(".env"), variables).unwrap();
        let data = folder.path().join("data");
        Self { receiver, project, data, folder }
    }

    fn start(&self) -> Server {
        let (project, data) = (self.project.path(), self.data.as_path());
        Server::start(&StartOptions { project, data, args: &[] })
    }

    /// What the receiver took.
    fn received(&self) -> Events {
        let taken = self.receiver.taken();
        let all = taken.into_iter().map(|taken| taken.event).collect();
        Events { place: "the receiver", all, broken: 0 }
    }

    /// What the file holds.
    fn written(&self) -> Events {
        let text = fs::read_to_string(self.data.join("events.jsonl")).unwrap();
        let lines: Vec<Option<Value>> =
            text.lines().map(|line| serde_json::from_str(line).ok()).collect();
        let broken = lines.iter().filter(|line| line.is_none()).count();
        Events { place: "the file", all: lines.into_iter().flatten().collect(), broken }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if thread::panicking() {
            // The journal, the server's log and the file are what a failure is found by.
            self.folder.disable_cleanup(true);
            crate::tell(&format!("events out: kept `{}`", self.folder.path().display()));
        }
    }
}

/// Events that arrived somewhere, in the order in which they did.
pub(crate) struct Events {
    pub(crate) place: &'static str,
    pub(crate) all: Vec<Value>,
    /// Lines that are no event: a kill may break one off, and its event comes again.
    pub(crate) broken: usize,
}

impl Events {
    /// The ids by which each event of a run was told: by the run's number, and by its part.
    fn told(&self) -> BTreeMap<(u64, u64), BTreeSet<&str>> {
        let mut told: BTreeMap<(u64, u64), BTreeSet<&str>> = BTreeMap::new();
        for event in self.all.iter().filter(|event| event["type"] == "Told") {
            let number = |name: &str| event["data"][name].as_u64().unwrap();
            let key = (number("number"), number("part"));
            told.entry(key).or_default().insert(event["id"].as_str().unwrap());
        }
        told
    }

    /// The runs that were told to be completed.
    fn completed(&self) -> BTreeSet<&str> {
        let is_end = |event: &&Value| event["type"] == "waypost.run.completed.v1";
        self.all.iter().filter(is_end).map(|event| event["data"]["run"].as_str().unwrap()).collect()
    }

    /// Whatever came twice was the same, nothing came under two ids, and what came for the first
    /// time came in the order of its session.
    pub(crate) fn check(&self) {
        let mut first: BTreeMap<&str, &Value> = BTreeMap::new();
        let mut last: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        // A server that runs for minutes also sends heads of the audit. They belong to no session,
        // and say after a restart what they said before, at another time.
        for event in self.all.iter().filter(|event| event["type"] != "waypost.audit.head.v1") {
            let id = event["id"].as_str().unwrap();
            if let Some(before) = first.insert(id, event) {
                assert_eq!(before, event, "{}: one id, two events", self.place);
                continue;
            }
            let (session, at) = place_of(id);
            if let Some(before) = last.insert(session.clone(), at) {
                let place = self.place;
                assert!(before < at, "{place}: {session}: {at:?} came after {before:?}");
            }
        }
        for (key, ids) in self.told() {
            assert_eq!(ids.len(), 1, "{}: {key:?} was told as {ids:?}", self.place);
        }
    }

    /// Everything that these runs told is here.
    fn hold<'r>(&self, runs: impl IntoIterator<Item = (u64, &'r str)>) {
        let (told, completed) = (self.told(), self.completed());
        for (number, run) in runs {
            for part in 1..=PARTS {
                let place = self.place;
                assert!(told.contains_key(&(number, part)), "{place}: no {number}.{part} of {run}");
            }
            assert!(completed.contains(run), "{}: nothing of the end of {run}", self.place);
        }
    }
}

/// Runs the plan in a session, to its end; the run's id.
fn publish(client: &mut Client, session: &str, number: u64) -> String {
    let body = json!({"planId": PLAN_ID, "session": session, "input": {"number": number}});
    let answer = client.post("/api/v1/runs", &body);
    let answer = answer.unwrap_or_else(|error| panic!("{body}: {error}"));
    assert_eq!(answer.status, 200, "{body}: {}", answer.body);
    answer.json()["run"]["id"].as_str().unwrap().to_owned()
}

/// How a sink is.
fn sink(client: &mut Client, name: &str) -> Value {
    let sinks = api::get(client, "/api/v1/sinks");
    let items = sinks["items"].as_array().cloned().unwrap_or_default();
    let found = items.into_iter().find(|sink| sink["name"] == name);
    found.unwrap_or_else(|| panic!("no sink `{name}` in {sinks}"))
}

/// Waits until both sinks have taken all that there is.
fn wait_until_out(client: &mut Client) {
    wait_for_sinks(client, &["lines", "hook"]);
}

/// Waits until these sinks have taken all that there is.
pub(crate) fn wait_for_sinks(client: &mut Client, names: &[&str]) {
    for name in names {
        wait_for(&format!("`{name}` to have taken everything"), OUT_LIMIT, || {
            let sink = sink(client, name);
            (sink["lag"] == 0 && sink["retrying"] == 0).then_some(())
        });
    }
}
