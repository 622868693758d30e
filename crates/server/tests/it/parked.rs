//! Sessions that cannot be read: they are parked and shown as such, they delay nobody else, and
//! they continue once they can be read again.

use crate::desk::{Wait, project};
use crate::house::{ADDRESS, House, encoded, refused, setup, text};
use futures::future::join_all;
use serde_json::{Value, json};
use server::{Extra, Setup, Stopper};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::damage::{make_readable, make_unreadable};
use tokio::sync::Semaphore;

/// More than recovery takes at once.
const DAMAGED: usize = 300;
const LIMIT: Duration = Duration::from_secs(120);
/// The session of the second test.
const ORDER: &str = "/api/v1/sessions/order";
/// What the reason of each begins with.
const REASON: &str = "event 1 of type `lost.session.created` v1 cannot be read by this release";

/// A server over this folder that waits for nothing when it stops; the gate lets calls of its
/// waiting tool end.
async fn served(data: &TempDir, gate: Semaphore) -> (House, Stopper) {
    let address: SocketAddr = ADDRESS.parse().unwrap();
    let gate = Arc::new(gate);
    House::of(|| {
        let extra = Extra { tools: vec![Arc::new(Wait::new(&gate))], ..Extra::default() };
        Setup { extra, ..setup(project(&[], "stop_wait_ms = 0"), data, address) }
    })
    .await
}

/// A run that waits for the gate, in a session of this key.
async fn begin(house: &House, key: String) {
    let body = json!({"planId": "it/wait", "session": key});
    let begun = house.post("/api/v1/runs?wait=0", body).await;
    assert_eq!(begun.status, 202, "{begun:?}");
}

/// All sessions of this status.
async fn listed(house: &House, status: &str) -> Vec<Value> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/api/v1/sessions?status={status}&limit=200{cursor}");
        let page = house.get(&path).await.body;
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        match &page["nextCursor"] {
            Value::Null => return items,
            next => cursor = format!("&cursor={}", encoded(next)),
        }
    }
}

/// Waits until so many sessions have this status.
async fn until(house: &House, status: &str, count: usize) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let found = listed(house, status).await;
        if found.len() == count {
            return found;
        }
        let now = found.len();
        assert!(begun.elapsed() < LIMIT, "waited {LIMIT:?} for {count} {status}: {now}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn counted(house: &House) -> String {
    let metrics = house.get("/metrics").await.text;
    let name = "waypost_sessions_open{status=\"parked\"} ";
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no `{name}` in\n{metrics}")).to_owned()
}

#[tokio::test]
async fn sessions_that_cannot_be_read_do_not_delay_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (house, stopper) = served(&folder, Semaphore::new(0)).await;
    join_all((0..DAMAGED).map(|number| begin(&house, format!("damaged-{number}")))).await;
    begin(&house, "healthy".to_owned()).await;
    stopper.stop().await;
    drop(house);
    make_unreadable(&data, "damaged-%");

    let (house, stopper) = served(&folder, Semaphore::new(1)).await;
    until(&house, "completed", 1).await;
    let parked = until(&house, "parked", DAMAGED).await;
    for session in &parked {
        let reason = text(&session["parked"]["reason"]);
        assert!(reason.starts_with(REASON), "{session}");
        assert_eq!(session["status"], "running", "{session}");
    }
    assert_eq!(counted(&house).await, DAMAGED.to_string());
    // What is over can be removed, also beside sessions that cannot be read.
    house.prune(1).await;
    let export = house.get("/api/v1/sessions/damaged-7/export").await;
    assert_eq!(export.body["events"][0]["type"], "lost.session.created", "{export:?}");
    stopper.stop().await;
    drop(house);
    make_readable(&data);

    let (house, stopper) = served(&folder, Semaphore::new(2 * DAMAGED)).await;
    until(&house, "completed", DAMAGED).await;
    assert_eq!(listed(&house, "parked").await, Vec::<Value>::new());
    assert_eq!(counted(&house).await, "0");
    stopper.stop().await;
}

/// Calls a tool, then asks.
fn adds_and_asks() -> Value {
    json!({
        "planId": "it/add-and-ask",
        "description": "adds, then asks",
        "startStepId": "add",
        "steps": [
            {"id": "add", "type": "tool_call", "toolId": "math::add",
             "arguments": {"a": 1, "b": 2}, "saveAs": "sum", "nextStepId": "ask"},
            {"id": "ask", "type": "human_in_the_loop", "message": "go on?",
             "nextStepIdOnInput": "end"},
            {"id": "end", "type": "final_response", "message": {"jsonPath": "$.context.sum"}},
        ],
    })
}

#[tokio::test]
async fn a_command_to_a_session_that_cannot_be_read_is_refused_and_parks_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (house, stopper) = served(&folder, Semaphore::new(0)).await;
    let begun = house.run(json!({"plan": adds_and_asks(), "session": "order"})).await;
    let ask = format!("/api/v1/asks/{}", text(&begun["run"]["asks"][0]["id"]));
    let cancel = format!("/api/v1/runs/{}/cancel", text(&begun["run"]["id"]));
    stopper.stop().await;
    drop(house);
    make_unreadable(&data, "order");

    let (house, stopper) = served(&folder, Semaphore::new(0)).await;
    // It waits for a person, so nobody has tried to read it yet.
    assert_eq!(house.get(ORDER).await.body["parked"], Value::Null);
    let unreadable = refused(500, "unreadable", &[]);
    let mut until = String::new();
    for (path, body) in [(&ask, json!({"answer": "yes"})), (&cancel, json!({}))] {
        let answer = house.post(path, body).await;
        assert_eq!(answer.refusal(), unreadable, "{path}");
        assert!(text(&answer.body["detail"]).starts_with(REASON), "{answer:?}");
        let parked = house.get(ORDER).await.body["parked"].take();
        assert!(text(&parked["reason"]).starts_with(REASON), "{parked}");
        // Each try that fails makes the wait longer.
        assert!(text(&parked["until"]) > until, "{parked} is not later than {until}");
        until = text(&parked["until"]);
    }
    assert_eq!(house.get("/api/v1/sessions/order/context").await.refusal(), unreadable);
    let export = house.get("/api/v1/sessions/order/export").await;
    assert_eq!(export.body["events"][0]["type"], "lost.session.created", "{export:?}");
    assert_eq!(export.body["history"], json!([]));
    stopper.stop().await;
    drop(house);
    make_readable(&data);

    let (house, stopper) = served(&folder, Semaphore::new(0)).await;
    let replied = house.post(&ask, json!({"answer": "yes"})).await;
    assert_eq!((replied.status, &replied.body["run"]["answer"]), (200, &json!(3)), "{replied:?}");
    let session = house.get(ORDER).await.body;
    assert_eq!((&session["status"], &session["parked"]), (&json!("completed"), &Value::Null));
    stopper.stop().await;
}
