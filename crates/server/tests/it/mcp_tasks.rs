//! The tasks extension at `/mcp`.

use crate::house::text;
use crate::mcp_place::{Place, accept, forms, key, said, tasks};
use serde_json::{Value, json};
use wire::mcp::TASKS;

#[tokio::test]
async fn a_slow_tool_is_a_task() {
    let place = Place::new("").await;
    let slow = json!({"name": "it__slow", "arguments": {}});
    let created = place.call(&tasks(), slow.clone()).await;
    assert_eq!(created["resultType"], "task", "{created}");
    assert_eq!((&created["status"], &created["ttlMs"]), (&json!("working"), &Value::Null));
    assert_eq!(created["pollIntervalMs"], 1_000);
    for absent in ["result", "error", "inputRequests", "requestState", "task"] {
        assert!(created.get(absent).is_none(), "{created}");
    }
    place.release.notify_one();
    let done = place.task_at(&created["taskId"], "completed").await;
    assert_eq!((said(&done["result"]).as_str(), &done["taskId"]), ("done", &created["taskId"]));
    assert!(done["result"]["_meta"]["io.modelcontextprotocol/related-task"].is_null());
    let ack = place.result("tasks/cancel", &tasks(), json!({"taskId": done["taskId"]})).await;
    assert!(ack["resultType"] == "complete" && ack.get("status").is_none(), "{ack}");
    assert_eq!(place.task(&done["taskId"]).await["status"], "completed");
    place.release.notify_one();
    let waited = place.call(&json!({}), slow).await;
    assert_eq!((said(&waited).as_str(), &waited["resultType"]), ("done", &json!("complete")));
}

#[tokio::test]
async fn a_task_can_be_cancelled() {
    let place = Place::new("").await;
    let created = place.call(&tasks(), json!({"name": "it__endless"})).await;
    let id = &created["taskId"];
    let ack = place.result("tasks/cancel", &tasks(), json!({"taskId": id})).await;
    assert_eq!(ack["resultType"], "complete");
    let task = place.task_at(id, "cancelled").await;
    assert!(text(&task["statusMessage"]).contains("cancelled"), "{task}");
    assert!(task.get("result").is_none() && task.get("error").is_none(), "{task}");
}

#[tokio::test]
async fn a_tools_failure_is_a_result_and_the_runtimes_is_not() {
    let place = Place::new("step_visits_max = 10").await;
    let created = place.call(&tasks(), json!({"name": "it__broken"})).await;
    let task = place.task_at(&created["taskId"], "completed").await;
    assert_eq!(task["result"]["isError"], true, "{task}");
    assert!(said(&task["result"]).starts_with("Broken: it is broken"), "{task}");
    let created = place.call(&tasks(), json!({"name": "it--around"})).await;
    let task = place.task_at(&created["taskId"], "failed").await;
    assert_eq!((&task["error"]["code"], task.get("result")), (&json!(-32603), None));
    assert_eq!(task["error"]["data"]["name"], "LimitReached");
}

#[tokio::test]
async fn a_task_asks_for_what_it_waits_for() {
    let place = Place::new("").await;
    let created = place.call(&tasks(), json!({"name": "it--two"})).await;
    let id = &created["taskId"];
    assert_eq!(created["resultType"], "task", "{created}");
    let task = place.task_at(id, "input_required").await;
    let requests = task["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 2, "{task}");
    let of = |start: &str| {
        let asks = |request: &Value| text(&request["params"]["message"]).starts_with(start);
        requests.iter().find(|(_, request)| asks(request)).unwrap().0.clone()
    };
    let left = of("left?");
    let right = of("right?");
    let update = |responses: Value| json!({"taskId": id, "inputResponses": responses});
    let some =
        update(json!({&left: accept(json!({"answer": "L"})), "other": {"action": "cancel"}}));
    let ack = place.result("tasks/update", &tasks(), some.clone()).await;
    assert!(ack["resultType"] == "complete" && ack.get("taskId").is_none(), "{ack}");
    let task = place.task(id).await;
    assert_eq!((key(&task), &task["status"]), (right.clone(), &json!("input_required")));
    place.result("tasks/update", &tasks(), some).await;
    for wrong in [
        update(json!({&right: accept(json!({"answer": "{\"a\": [\"x\"]}"}))})),
        update(json!({&right: accept(json!({"answer": "no JSON"}))})),
        update(json!({&right: 1})),
        update(Value::Null),
        json!({"taskId": id}),
    ] {
        assert_eq!(place.error("tasks/update", &tasks(), wrong.clone()).await, -32602, "{wrong}");
    }
    let rest = update(json!({&right: accept(json!({"answer": "{\"a\": [1]}"}))}));
    place.result("tasks/update", &tasks(), rest).await;
    let done = place.task_at(id, "completed").await;
    assert_eq!(said(&done["result"]), r#"{"left":"L","right":{"a":[1]}}"#);
}

#[tokio::test]
async fn tasks_are_for_clients_that_take_them() {
    let place = Place::new("").await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": "gate-test", "inputResponses": {}});
        assert_eq!(place.error(method, &forms(), params.clone()).await, -32021, "{method}");
        assert_eq!(place.error(method, &tasks(), params).await, -32602, "{method}");
        let unknown = json!({"taskId": format!("run_{}", "0".repeat(32)), "inputResponses": {}});
        assert_eq!(place.error(method, &tasks(), unknown).await, -32602, "{method}");
    }
    let response = place.ask("tools/call", &forms(), json!({"name": "it__endless"})).await;
    assert_eq!(response["error"]["code"], -32021);
    let needed = &response["error"]["data"]["requiredCapabilities"];
    assert_eq!(*needed, json!({"extensions": {TASKS: {}}}));
}
