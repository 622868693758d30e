//! Streams of A2A: the task first, then the same events in the same order for everyone.

use crate::a2a::{ADD, SETTINGS, house, message, reply, rpc, send};
use crate::house::{House, read, request};
use axum::body::Body;
use axum::http::{Method, Response};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// How long a stream may take to end.
const WAIT: Duration = Duration::from_secs(120);

async fn opened(house: &House, method: Method, path: &str, body: &Value) -> Response<Body> {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let mut request = request(method, path, body);
    request.headers_mut().insert("a2a-version", "1.0".parse().unwrap());
    let response = house.open(request).await;
    assert_eq!(response.status(), 200);
    let kind = response.headers()["content-type"].to_str().unwrap();
    assert!(kind.starts_with("text/event-stream"), "{kind}");
    response
}

/// All events of a stream, once it has ended.
pub async fn events(response: Response<Body>) -> Vec<Value> {
    let answer = timeout(WAIT, read(response)).await.expect("the stream has not ended");
    let lines = answer.text.lines();
    assert!(
        lines
            .clone()
            .all(|line| { line.is_empty() || line.starts_with("data:") || line.starts_with(':') })
    );
    let data = lines.filter_map(|line| line.strip_prefix("data:"));
    data.map(|text| serde_json::from_str(text.trim()).unwrap()).collect()
}

fn words(events: &[Value]) -> Vec<String> {
    let word = |event: &Value| match event.as_object().unwrap().keys().next().unwrap().as_str() {
        "task" => format!("task {}", event["task"]["status"]["state"].as_str().unwrap()),
        "statusUpdate" => event["statusUpdate"]["status"]["state"].as_str().unwrap().to_owned(),
        "artifactUpdate" => "artifact".to_owned(),
        other => other.to_owned(),
    };
    events.iter().map(word).collect()
}

#[tokio::test]
async fn a_stream_begins_with_the_submitted_task_and_ends_with_its_end() {
    let house = house(SETTINGS).await;
    let body = json!({"message": message("m1", ADD, json!({"data": {"a": 1, "b": 2}}))});
    let response = opened(&house, Method::POST, "/a2a/v1/message:stream", &body).await;
    let told = words(&events(response).await);
    assert_eq!(told.first().unwrap(), "task TASK_STATE_SUBMITTED", "{told:?}");
    let end = ["TASK_STATE_WORKING", "artifact", "TASK_STATE_COMPLETED"];
    assert_eq!(told[1..], end, "{told:?}");
    // A repeat begins with the task as it is, and has nothing more to tell.
    let response = opened(&house, Method::POST, "/a2a/v1/message:stream", &body).await;
    assert_eq!(words(&events(response).await), ["task TASK_STATE_COMPLETED"]);
}

#[tokio::test]
async fn a_stream_of_json_rpc_answers_its_request_and_ends_with_a_question() {
    let house = house(SETTINGS).await;
    let params = json!({"message": message("m1", "it/question", json!({"data": {}}))});
    let body =
        json!({"jsonrpc": "2.0", "id": "r", "method": "SendStreamingMessage", "params": params});
    let response = opened(&house, Method::POST, "/a2a/v1", &body).await;
    let answers = events(response).await;
    assert!(answers.iter().all(|answer| answer["id"] == "r" && answer["jsonrpc"] == "2.0"));
    let results: Vec<Value> = answers.iter().map(|answer| answer["result"].clone()).collect();
    let told = words(&results);
    assert_eq!(told.last().unwrap(), "TASK_STATE_INPUT_REQUIRED", "{told:?}");
}

#[tokio::test]
async fn a_late_subscriber_gets_what_an_early_one_gets() {
    let house = house(SETTINGS).await;
    let task = send(&house, message("m1", "it/approval", json!({"data": {}}))).await;
    let path = format!("/a2a/v1/tasks/{}:subscribe", task["id"].as_str().unwrap());
    let early = opened(&house, Method::GET, &path, &Value::Null).await;
    let again = send(&house, reply("m2", &task, json!({"text": "perhaps"}))).await;
    assert_eq!(again["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let late = opened(&house, Method::POST, &path, &Value::Null).await;
    let done = send(&house, reply("m3", &task, json!({"text": "yes"}))).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    let early = events(early).await;
    let late = events(late).await;
    assert_eq!(words(&early)[..2], ["task TASK_STATE_INPUT_REQUIRED", "TASK_STATE_INPUT_REQUIRED"]);
    assert_eq!(early[2..], late[1..], "the same events follow");
    assert_eq!(words(&late).last().unwrap(), "TASK_STATE_COMPLETED");
    assert_eq!(late[0]["task"], again, "the first is the task as it was");
    let over = rpc(&house, "SubscribeToTask", json!({"id": task["id"]})).await;
    assert_eq!(over["error"]["code"], -32004, "{over}");
}
