//! SIGTERM: a server that is in the middle of something ends in good order and soon, and what it
//! was doing continues after the next start.

use crate::api;
use serde_json::json;
use std::path::Path;
use std::thread;
use std::time::Duration;
use testkit::harness::{Project, Server, StartOptions, wait_for};
use testkit::http::{Client, NoAnswer};
use testkit::kill::{Run, read};
use testkit::servers::receiver::Receiver;

const LIMIT: Duration = Duration::from_secs(120);
/// The promise is 10 seconds. A busy machine may take much longer, but never the ten minutes of the
/// write, for which nobody may wait.
const END_LIMIT: Duration = Duration::from_secs(150);

/// Its write is answered long after everything here is over.
const SLOW: &str = r#"planId: budgets/slow
description: one write that takes ten minutes
parameters: {type: object}
startStepId: write
steps:
  - id: write
    type: tool_call
    toolId: "http::request"
    arguments: {method: POST, url: "http://RECEIVER/slow?ms=600000", body: {run: slow}}
    saveAs: written
    nextStepId: end
  - {id: end, type: final_response, message: "wrote {{ context.written.body.n }}"}
"#;

fn start(project: &Project, data: &Path) -> Server {
    let mut server = Server::start(&StartOptions { project: project.path(), data, args: &[] });
    server.wait_until_ready();
    server
}

#[test]
fn a_busy_server_ends_at_sigterm_and_its_run_goes_on_after_a_restart() {
    let _turn = crate::my_turn();
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(folder.path());
    let slow = SLOW.replace("RECEIVER", &receiver.address().to_string());
    let files = [("budgets/slow.yaml", slow.as_str())];
    let project = Project::write(&folder.path().join("project"), &files, &receiver.allow());
    let data = folder.path().join("data");

    let server = start(&project, &data);
    let address = server.address();
    // A connection that is kept and idle must not hold up the end either.
    let mut idle = server.client();
    assert_eq!(idle.get("/livez").unwrap().status, 200);
    let body = json!({"planId": "budgets/slow", "session": "slow", "input": {}});
    let (ended, told) = thread::scope(|scope| {
        let waiting = scope.spawn(|| Client::new(address).post("/api/v1/runs", &body));
        wait_for("the write in the receiver's log", LIMIT, || receiver.effects().pop());
        (server.terminate(), waiting.join().unwrap())
    });
    assert!(ended.status.success(), "not in good order: {ended:?}");
    assert!(ended.took <= END_LIMIT, "{ended:?}");
    // The client that waited for the run hears that it continues, or nothing: never that it failed.
    match told {
        Ok(answer) => assert!([202, 503].contains(&answer.status), "{answer:?}"),
        Err(NoAnswer::Broken(_)) => {}
        Err(error) => panic!("the client that waited: {error}"),
    }
    crate::tell(&format!("budgets: SIGTERM took {} ms", ended.took.as_millis()));

    let server = start(&project, &data);
    let mut client = server.client();
    let ask = wait_for("the ask about the unknown outcome", LIMIT, || {
        api::open_asks(&mut client, Some("slow")).pop()
    });
    let effects = receiver.effects();
    let [effect] = effects.as_slice() else {
        panic!("the write was repeated: {effects:?}");
    };
    assert_eq!((ask.kind.as_str(), ask.how.as_deref()), ("fix", Some("unknown")), "{ask:?}");
    let call = ask.calls.first().map(|call| call.call_id.as_str());
    assert_eq!(call, effect.key.as_deref(), "{ask:?}");
    let output = json!({"status": 200, "headers": {}, "body": {"ok": true, "n": effect.n}});
    let reply = json!({"action": "settle", "output": output});
    let answer = client.post(&format!("/api/v1/asks/{}", ask.id), &reply).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    let run: Run = read(&answer.json()["run"]);
    let answer = Some(json!(format!("wrote {}", effect.n)));
    assert_eq!((run.status.as_str(), &run.answer), ("completed", &answer), "{run:?}");
    assert_eq!(receiver.effects().len(), 1);
}
