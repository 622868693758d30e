//! `Idempotency-Key`.

use crate::house::{House, approval, question, refused, text};
use serde_json::{Value, json};

const KEY: &str = "idempotency-key";

async fn sessions(house: &House) -> usize {
    house.get("/api/v1/sessions").await.body["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_run_is_started_once() {
    let house = House::demo().await;
    let body = json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 2}});
    let first = house.post_with("/api/v1/runs", &[(KEY, "k-1")], body.clone()).await;
    assert_eq!((first.status, first.header("idempotency-replayed")), (200, ""));
    let again = house.post_with("/api/v1/runs", &[(KEY, "k-1")], body.clone()).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (200, "true"));
    assert_eq!(again.body["run"]["id"], first.body["run"]["id"]);
    assert_eq!(again.body["run"]["answer"], first.body["run"]["answer"]);
    let other = json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 3}});
    let refusal = house.post_with("/api/v1/runs", &[(KEY, "k-1")], other).await;
    assert_eq!(refusal.refusal(), refused(422, "idempotency_mismatch", &[]));
    assert_eq!(sessions(&house).await, 1);
    house.post_with("/api/v1/runs", &[(KEY, "k-2")], body.clone()).await;
    house.post("/api/v1/runs", body).await;
    assert_eq!(sessions(&house).await, 3);
}

#[tokio::test]
async fn a_reply_is_given_once() {
    let house = House::demo().await;
    let started = house.greeting().await;
    let path = format!("/api/v1/asks/{}", text(&started["run"]["asks"][0]["id"]));
    let reply = json!({"action": "accept", "content": {"name": "Ann"}});
    let first = house.post_with(&path, &[(KEY, "r")], reply.clone()).await;
    assert_eq!((first.status, first.header("idempotency-replayed")), (200, ""));
    let again = house.post_with(&path, &[(KEY, "r")], reply.clone()).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (200, "true"));
    assert_eq!(again.body["run"]["answer"], first.body["run"]["answer"]);
    assert_eq!(again.body["ask"]["decision"], first.body["ask"]["decision"]);
    assert_eq!(house.post(&path, reply).await.status, 409);
}

#[tokio::test]
async fn the_session_endpoints_take_keys() {
    let house = House::demo().await;
    house.post("/sessions", json!({"sessionId": "a"})).await;
    let path = "/sessions/a/execute-plan";
    let body = json!({"plan": question()});
    let first = house.post_with(path, &[(KEY, "e")], body.clone()).await;
    assert_eq!(first.body["status"], "paused_on_human", "{first:?}");
    let again = house.post_with(path, &[(KEY, "e")], body).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (202, "true"));
    assert_eq!(again.body, first.body);
    let answer = json!({"input": "yes"});
    let first = house.post_with("/sessions/a/resume", &[(KEY, "e")], answer.clone()).await;
    assert_eq!(first.body["status"], "completed", "{first:?}");
    let again = house.post_with("/sessions/a/resume", &[(KEY, "e")], answer).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (202, "true"));
    assert_eq!(again.body, first.body);
}

#[tokio::test]
async fn a_tool_is_called_once_and_a_repeat_says_so() {
    let house = House::demo().await;
    let arguments = json!({"a": 1, "b": 2});
    let path = "/api/v1/tools/math::conditional_add/call";
    let body = json!({"arguments": arguments});
    let first = house.post_with(path, &[(KEY, "t")], body.clone()).await;
    assert_eq!((first.status, first.header("idempotency-replayed")), (200, ""), "{first:?}");
    let again = house.post_with(path, &[(KEY, "t")], body).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (200, "true"));
    assert_eq!(again.body, first.body);
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "math::conditional_add", "params": arguments});
    let first = house.post_with("/rpc", &[(KEY, "t")], body.clone()).await;
    assert_eq!((first.status, first.header("idempotency-replayed")), (200, ""), "{first:?}");
    let again = house.post_with("/rpc", &[(KEY, "t")], body).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (200, "true"));
    assert_eq!(again.body, first.body);
    assert_eq!(sessions(&house).await, 2);
}

#[tokio::test]
async fn a_repeat_of_a_call_that_failed_says_so() {
    let house = House::demo().await;
    let plan = json!({
        "planId": "it/fails", "description": "fails", "startStepId": "fail",
        "parameters": {"type": "object"},
        "steps": [
            {"id": "fail", "type": "tool_call", "toolId": "test::always_fail", "arguments": {},
             "on_error": "fail", "nextStepId": "end"},
            {"id": "end", "type": "final_response", "message": "never"},
        ],
    });
    let stored = house.put("/api/v1/plans/it%2Ffails", &[], plan).await;
    assert_eq!(stored.status, 201, "{stored:?}");
    let path = "/api/v1/tools/it%2Ffails/call";
    let first = house.post_with(path, &[(KEY, "f")], json!({})).await;
    assert_eq!(first.refusal(), refused(502, "tool_failed", &[]), "{first:?}");
    assert_eq!(first.header("idempotency-replayed"), "");
    let again = house.post_with(path, &[(KEY, "f")], json!({})).await;
    assert_eq!(again.refusal(), refused(502, "tool_failed", &[]));
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.body["run"], first.body["run"]);
}

#[tokio::test]
async fn a_key_is_one_word() {
    let house = House::demo().await;
    let body = json!({"plan": approval()});
    let long = "x".repeat(256);
    for key in ["a b", "", &long] {
        let answer = house.post_with("/api/v1/runs", &[(KEY, key)], body.clone()).await;
        assert_eq!(answer.refusal(), refused(400, "bad_idempotency_key", &[]), "{key}");
    }
    let two = [(KEY, "a"), (KEY, "b")];
    assert_eq!(house.post_with("/api/v1/runs", &two, body).await.status, 400);
    assert_eq!(house.get("/api/v1/sessions").await.body["items"], Value::Array(Vec::new()));
}
