//! A run whose tool ends the process: it must not end every process that is started after it. Two
//! recoveries may die of it, then a person is asked, and everything else works.

use crate::api;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use testkit::harness::{DEMO_TOOLS, Project, Server, wait_for};
use testkit::http::Client;
use testkit::kill::{Ask, Run, read};

const LIMIT: Duration = Duration::from_secs(120);
/// More than it may take until the run is stopped.
const STARTS_MAX: usize = 6;
const SESSION: &str = "ends-the-process";

const ENDING: &str = r#"planId: abort/ending
description: waits, then calls a tool that ends the process
parameters: {type: object}
startStepId: hold
steps:
  - {id: hold, type: tool_call, toolId: "test::hold", arguments: {}, nextStepId: abort}
  - {id: abort, type: tool_call, toolId: "test::abort", arguments: {}, nextStepId: end}
  - {id: end, type: final_response, message: survived}
"#;

const SUM: &str = r#"planId: abort/sum
description: one read
parameters: {type: object}
startStepId: add
steps:
  - id: add
    type: tool_call
    toolId: "math::add"
    arguments: {a: 2, b: 3}
    saveAs: sum
    nextStepId: end
  - {id: end, type: final_response, message: "sum {{ context.sum }}"}
"#;

#[test]
fn a_run_that_ends_every_process_is_stopped_after_the_second_recovery() {
    let _turn = crate::my_turn();
    let site = Site::build();
    site.set("abort");
    let mut server = site.start().unwrap_or_else(|failure| panic!("{failure}"));
    server.wait_until_ready();
    let mut client = server.client();
    let before = completed(&mut client, "before");
    let run = started(&mut client);
    site.set("go");
    wait_until_ended(&mut server);

    let (deaths, server) = site.until_stuck(&run);
    assert_eq!(deaths, 2, "recoveries that died before the run was stopped");
    let mut client = server.client();
    let ask = given_up(&mut client);
    assert_eq!(api::run(&mut client, &before.id).answer, before.answer, "another run was lost");
    completed(&mut client, "beside");

    // A retry that ends the process again: the next start asks again, without another try.
    site.clear("go");
    let retried = reply(&mut client, &ask, "?wait=0");
    assert_eq!(retried.status, "running", "{retried:?}");
    site.set("go");
    let mut server = server;
    wait_until_ended(&mut server);
    let (deaths, server) = site.until_stuck(&run);
    assert_eq!(deaths, 0, "recoveries that died of a run that was stopped before");
    let mut client = server.client();
    let again = given_up(&mut client);
    assert_ne!(again.id, ask.id, "the retry was acknowledged");

    // What ended the process is mended: a retry completes the run.
    site.clear("abort");
    let mended = reply(&mut client, &again, "");
    let over = (mended.status.as_str(), mended.answer);
    assert_eq!(over, ("completed", Some(json!("survived"))));
    completed(&mut client, "after");
    server.kill9();
}

/// The project with the files that its tools look at, and the data of all servers of this test.
struct Site {
    project: Project,
    data: PathBuf,
    _folder: TempDir,
}

impl Site {
    fn build() -> Self {
        let folder = tempfile::Builder::new().prefix("waypost-abort-").tempdir().unwrap();
        let plans = [("abort/ending.yaml", ENDING), ("abort/sum.yaml", SUM)];
        let project = Project::write(&folder.path().join("project"), &plans, DEMO_TOOLS);
        Self { project, data: folder.path().join("data"), _folder: folder }
    }

    fn set(&self, file: &str) {
        fs::write(self.project.path().join(file), "").unwrap();
    }

    fn clear(&self, file: &str) {
        fs::remove_file(self.project.path().join(file)).unwrap();
    }

    fn start(&self) -> Result<Server, String> {
        Server::abortive(self.project.path(), &self.data)
    }

    /// Starts the server until it stays; how many ended before that.
    fn until_stuck(&self, run: &str) -> (usize, Server) {
        let mut ended = Vec::new();
        for deaths in 0..STARTS_MAX {
            match self.start() {
                Ok(mut server) => match stays(&mut server, run) {
                    true => return (deaths, server),
                    false => ended.push(server.log_tail()),
                },
                // It may end before it says where it listens.
                Err(failure) => ended.push(failure),
            }
        }
        panic!("the run ends every process; what the last one wrote: {:?}", ended.pop());
    }
}

/// Whether the server stays until the run is stuck; false if it ends first.
fn stays(server: &mut Server, run: &str) -> bool {
    let mut client = server.client();
    let path = format!("/api/v1/runs/{run}");
    wait_for("the run to be stuck, or the server to end", LIMIT, || {
        if server.has_ended() {
            return Some(false);
        }
        let answer = client.get(&path).ok().filter(|answer| answer.status == 200)?;
        (answer.json()["run"]["status"] == "stuck").then_some(true)
    })
}

fn wait_until_ended(server: &mut Server) {
    wait_for("the server to end", LIMIT, || server.has_ended().then_some(()));
}

/// The run that ends the process, while it waits.
fn started(client: &mut Client) -> String {
    let body = json!({"planId": "abort/ending", "session": SESSION, "input": {}});
    let run = run_of(client, "/api/v1/runs?wait=0", &body);
    assert_eq!(run.status, "running", "{run:?}");
    run.id
}

/// A run of another session, which is none of this.
fn completed(client: &mut Client, session: &str) -> Run {
    let body = json!({"planId": "abort/sum", "session": session, "input": {}});
    let run = run_of(client, "/api/v1/runs", &body);
    assert_eq!((run.status.as_str(), &run.answer), ("completed", &Some(json!("sum 5"))));
    run
}

/// The one open ask: it says that the run was stopped, and warns of a retry.
fn given_up(client: &mut Client) -> Ask {
    let mut asks = api::open_asks(client, Some(SESSION));
    let ask = asks.pop().unwrap_or_else(|| panic!("nobody is asked"));
    assert!(asks.is_empty(), "more is asked: {asks:?}");
    let fault = ask.fault.clone().unwrap_or_default();
    assert_eq!((ask.kind.as_str(), &fault["name"]), ("fix", &json!("RecoveryGaveUp")), "{ask:?}");
    let hint = fault["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("may end the server again"), "{ask:?}");
    assert!(ask.actions.iter().any(|action| action == "retry"), "{ask:?}");
    ask
}

/// Retries what the ask is about.
fn reply(client: &mut Client, ask: &Ask, query: &str) -> Run {
    run_of(client, &format!("/api/v1/asks/{}{query}", ask.id), &json!({"action": "retry"}))
}

fn run_of(client: &mut Client, path: &str, body: &Value) -> Run {
    let answer = client.post(path, body).unwrap_or_else(|error| panic!("POST {path}: {error}"));
    assert!(matches!(answer.status, 200 | 202), "POST {path}: {} {}", answer.status, answer.body);
    read(&answer.json()["run"])
}
