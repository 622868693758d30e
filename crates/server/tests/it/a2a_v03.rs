//! A2A 0.3 over both bindings, for clients that send no version: the same tasks in other shapes.

use crate::a2a::{ADD, SETTINGS, house, open, rpc as rpc_of_1_0};
use crate::a2a_push::{OK, PUSH, Receiver};
use crate::a2a_streams::events;
use crate::house::{Answer, House, read, request};
use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};
use wire::a2a::SKILLS_EXTENSION;
use wire::a2a::card::AgentCard;
use wire::a2a::v03::Binding;

/// A message of JSON-RPC for a skill.
fn message(id: &str, skill: &str, data: Value) -> Value {
    json!({"kind": "message", "messageId": id, "role": "user",
        "parts": [{"kind": "data", "data": data}],
        "metadata": {SKILLS_EXTENSION: {"skill": skill}}})
}

fn add(id: &str) -> Value {
    message(id, ADD, json!({"a": 1, "b": 2}))
}

/// The same over HTTP.
fn rest_message(id: &str, skill: &str, data: Value) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "content": [{"data": {"data": data}}],
        "metadata": {SKILLS_EXTENSION: {"skill": skill}}})
}

/// A request without a version.
async fn plain(house: &House, method: Method, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    read(house.open(request(method, path, body)).await).await
}

fn call(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

async fn rpc(house: &House, method: &str, params: Value) -> Value {
    let answer = plain(house, Method::POST, "/a2a/v1", &call(method, params)).await;
    assert_eq!((answer.status, &answer.body["id"]), (200, &json!(7)), "{answer:?}");
    answer.body
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test]
async fn the_same_task_is_told_in_every_version_and_binding() {
    let house = house(SETTINGS).await;
    let answer = rpc(&house, "message/send", json!({"message": add("m1")})).await;
    let task = answer["result"].clone();
    assert_eq!((&task["kind"], &task["status"]["state"]), (&json!("task"), &json!("completed")));
    assert_eq!(task["artifacts"][0]["parts"][0]["kind"], "text", "{task}");
    assert_eq!(task["history"][0]["parts"], add("m1")["parts"]);
    assert_eq!(
        (&task["history"][0]["kind"], &task["history"][0]["role"]),
        (&json!("message"), &json!("user")),
        "{task}"
    );
    let got = rpc(&house, "tasks/get", json!({"id": task["id"], "historyLength": 5})).await;
    assert_eq!(got["result"], task);
    let path = format!("/a2a/v1/v1/tasks/{}", task["id"].as_str().unwrap());
    let rest = plain(&house, Method::GET, &path, &Value::Null).await;
    assert_eq!((rest.status, rest.header("content-type")), (200, "application/json"), "{rest:?}");
    assert_eq!(rest.body["status"]["state"], "TASK_STATE_COMPLETED");
    let current = rpc_of_1_0(&house, "GetTask", json!({"id": task["id"]})).await["result"].clone();
    assert_eq!(json!(Binding::Rpc.read_task(task).unwrap()), current);
    assert_eq!(json!(Binding::Rest.read_task(rest.body).unwrap()), current);
}

#[tokio::test]
async fn a_question_is_asked_answered_and_cancelled_in_0_3() {
    let house = house(SETTINGS).await;
    let ask = |id: &str| json!({"message": message(id, "it/question", json!({}))});
    let task = rpc(&house, "message/send", ask("m1")).await["result"].clone();
    assert_eq!(task["status"]["state"], "input-required", "{task}");
    assert_eq!(task["status"]["message"]["parts"][0], json!({"kind": "text", "text": "go on?"}));
    let reply = json!({"kind": "message", "messageId": "m2", "role": "user", "taskId": task["id"],
        "parts": [{"kind": "text", "text": "yes"}]});
    let done = rpc(&house, "message/send", json!({"message": reply})).await["result"].clone();
    assert_eq!((&done["id"], &done["status"]["state"]), (&task["id"], &json!("completed")));
    let other = rpc(&house, "message/send", ask("m3")).await["result"].clone();
    let gone = rpc(&house, "tasks/cancel", json!({"id": other["id"]})).await;
    assert_eq!(gone["result"]["status"]["state"], "canceled", "{gone}");
    assert_eq!(code(&rpc(&house, "tasks/cancel", json!({"id": other["id"]})).await), -32002);
    assert_eq!(code(&rpc(&house, "tasks/resubscribe", json!({"id": other["id"]})).await), -32004);
    let immediate = json!({"message": message("m4", "it/question", json!({})),
        "configuration": {"blocking": false}});
    let begun = rpc(&house, "message/send", immediate).await;
    assert_eq!(begun["result"]["kind"], "task", "{begun}");
}

#[tokio::test]
async fn streams_of_0_3_say_which_event_is_the_last() {
    let house = house(SETTINGS).await;
    let body = call("message/stream", json!({"message": add("m1")}));
    let response = house.open(request(Method::POST, "/a2a/v1", Body::from(body.to_string()))).await;
    let answers = events(response).await;
    assert!(answers.iter().all(|answer| answer["id"] == 7), "{answers:?}");
    let kinds: Vec<&Value> = answers.iter().map(|answer| &answer["result"]["kind"]).collect();
    assert_eq!(kinds, ["task", "status-update", "artifact-update", "status-update"]);
    let finals: Vec<&Value> = answers.iter().map(|answer| &answer["result"]["final"]).collect();
    assert_eq!((finals[1], finals[3]), (&json!(false), &json!(true)));
    assert_eq!(answers[0]["result"]["status"]["state"], "submitted");
    assert_eq!(answers[3]["result"]["status"]["state"], "completed");
    let body = json!({"message": rest_message("m2", "it/question", json!({}))});
    let path = "/a2a/v1/v1/message:stream";
    let response = house.open(request(Method::POST, path, Body::from(body.to_string()))).await;
    let told = events(response).await;
    assert_eq!(told[0]["task"]["status"]["state"], "TASK_STATE_SUBMITTED", "{told:?}");
    let last = &told.last().unwrap()["statusUpdate"];
    let state = &last["status"]["state"];
    assert_eq!((state, &last["final"]), (&json!("TASK_STATE_INPUT_REQUIRED"), &json!(true)));
}

#[tokio::test]
async fn the_paths_of_0_3_stand_below_v1() {
    let house = house(SETTINGS).await;
    let body = json!({"message": rest_message("m1", "it/question", json!({}))});
    let sent = plain(&house, Method::POST, "/a2a/v1/v1/message:send", &body).await;
    let task = &sent.body["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{sent:?}");
    assert_eq!(task["status"]["message"]["content"][0]["text"], "go on?");
    let listed = plain(&house, Method::GET, "/a2a/v1/v1/tasks?pageSize=5", &Value::Null).await;
    assert_eq!(listed.body["tasks"][0]["id"], task["id"], "{listed:?}");
    let path = format!("/a2a/v1/default/v1/tasks/{}", task["id"].as_str().unwrap());
    let gone = plain(&house, Method::POST, &format!("{path}:cancel"), &Value::Null).await;
    assert_eq!(gone.body["status"]["state"], "TASK_STATE_CANCELLED", "{gone:?}");
    for (method, path, status) in [
        (Method::POST, format!("{path}:cancel"), 400),
        (Method::GET, format!("{path}:cancel"), 405),
        (Method::GET, "/a2a/v1/v1/tasks/unknown".to_owned(), 404),
        (Method::GET, "/a2a/v1/v1/nothing".to_owned(), 404),
        (Method::POST, "/a2a/v1/v1".to_owned(), 404),
        (Method::GET, "/a2a/v1/v1/card".to_owned(), 200),
    ] {
        let answer = plain(&house, method, &path, &Value::Null).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn errors_over_http_have_the_number_of_json_rpc_at_the_top() {
    let house = house(SETTINGS).await;
    let body = json!({"message": rest_message("m1", "it/nothing", json!({}))});
    for (method, path, body, number) in [
        (Method::GET, "tasks/unknown", &Value::Null, -32001),
        (Method::GET, "nothing", &Value::Null, -32601),
        (Method::DELETE, "tasks/unknown", &Value::Null, -32601),
        (Method::POST, "message:send", &body, -32602),
    ] {
        let answer = plain(&house, method, &format!("/a2a/v1/v1/{path}"), body).await;
        assert_eq!(answer.body["code"], number, "{path}: {answer:?}");
        let message = answer.body["message"].as_str().unwrap();
        assert!(!message.is_empty(), "{path}: {answer:?}");
        // In the form of 1.0 as well, for those who read that.
        assert_eq!(answer.body["error"]["message"], message, "{path}: {answer:?}");
    }
    let current = open(&house, Method::GET, "/a2a/v1/tasks/unknown", &Value::Null).await;
    assert!(current.body.get("code").is_none(), "that is of 0.3: {current:?}");
}

#[tokio::test]
async fn a_name_of_one_version_is_not_known_in_the_other() {
    let house = house(SETTINGS).await;
    for (method, number) in [
        ("GetTask", -32009),
        ("CreateTaskPushNotificationConfig", -32009),
        ("tasks/list", -32601),
        ("tasks/pushNotificationConfig/other", -32601),
    ] {
        let answer = rpc(&house, method, json!({"id": "x"})).await;
        assert_eq!(code(&answer), number, "{method}: {answer}");
    }
    let answer = rpc(&house, "GetTask", json!({"id": "x"})).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("A2A-Version: 1.0"), "{answer}");
    assert_eq!(code(&rpc_of_1_0(&house, "tasks/get", json!({"id": "x"})).await), -32009);
    let old = open(&house, Method::GET, "/a2a/v1/v1/tasks", &Value::Null).await;
    let new = plain(&house, Method::GET, "/a2a/v1/tasks", &Value::Null).await;
    for answer in [old, new] {
        let reason = &answer.body["error"]["details"][0]["reason"];
        assert_eq!((answer.status, reason), (400, &json!("VERSION_NOT_SUPPORTED")), "{answer:?}");
    }
}

#[tokio::test]
async fn webhooks_of_0_3_get_the_task_as_each_update_leaves_it() {
    let house = house(&format!("{SETTINGS}{PUSH}")).await;
    let receiver = Receiver::new(&[OK]);
    let config = json!({"url": receiver.url, "token": "mine",
        "authentication": {"schemes": ["Bearer"], "credentials": "hush-hush-hush"}});
    let params = json!({"message": add("m1"), "configuration": {"pushNotificationConfig": config}});
    let task = rpc(&house, "message/send", params).await["result"].clone();
    let got = receiver.wait(3).await;
    let states: Vec<&Value> = got.iter().map(|one| &one.body["status"]["state"]).collect();
    assert_eq!(states.last().unwrap().as_str(), Some("completed"), "{got:?}");
    assert!(got.iter().all(|one| one.body["kind"] == "task" && one.body["id"] == task["id"]));
    assert_eq!(got[2].headers["content-type"], "application/json");
    assert_eq!(got[2].headers["authorization"], "Bearer hush-hush-hush");
    assert_eq!(got[2].headers["x-a2a-notification-token"], "mine");
}

#[tokio::test]
async fn webhooks_of_0_3_are_set_read_listed_and_removed_in_both_bindings() {
    let house = house(&format!("{SETTINGS}{PUSH}")).await;
    let receiver = Receiver::new(&[OK]);
    let ask = json!({"message": message("m1", "it/question", json!({}))});
    let id = rpc(&house, "message/send", ask).await["result"]["id"].clone();
    let config = json!({"id": "one", "url": receiver.url, "token": "mine",
        "authentication": {"schemes": ["Bearer"], "credentials": "hush-hush-hush"}});
    let push = |operation: &str| format!("tasks/pushNotificationConfig/{operation}");
    let params = json!({"taskId": id, "pushNotificationConfig": config});
    let set = rpc(&house, &push("set"), params).await["result"].clone();
    let shown = json!({"taskId": id, "pushNotificationConfig": {"id": "one", "url": receiver.url,
        "token": "mine", "authentication": {"schemes": ["Bearer"]}}});
    assert_eq!(set, shown, "credentials are not read back");
    let named = json!({"id": id, "pushNotificationConfigId": "one"});
    assert_eq!(rpc(&house, &push("get"), named.clone()).await["result"], shown);
    assert_eq!(rpc(&house, &push("get"), json!({"id": id})).await["result"], shown);
    assert_eq!(rpc(&house, &push("list"), json!({"id": id})).await["result"], json!([shown]));
    let path = format!("/a2a/v1/v1/tasks/{}/pushNotificationConfigs", id.as_str().unwrap());
    let body = json!({"parent": format!("tasks/{}", id.as_str().unwrap()), "configId": "two",
        "config": {"pushNotificationConfig": {"id": "two", "url": receiver.url}}});
    let made = plain(&house, Method::POST, &path, &body).await;
    assert_eq!(made.body["pushNotificationConfig"]["id"], "two", "{made:?}");
    assert!(made.body["name"].as_str().unwrap().ends_with("/pushNotificationConfigs/two"));
    let listed = plain(&house, Method::GET, &path, &Value::Null).await;
    assert_eq!(listed.body["configs"].as_array().unwrap().len(), 2, "{listed:?}");
    let one = plain(&house, Method::GET, &format!("{path}/one"), &Value::Null).await;
    assert_eq!(one.body["pushNotificationConfig"], shown["pushNotificationConfig"]);
    let gone = plain(&house, Method::DELETE, &format!("{path}/two"), &Value::Null).await;
    assert_eq!((gone.status, &gone.body), (200, &json!({})));
    assert_eq!(rpc(&house, &push("delete"), named.clone()).await["result"], Value::Null);
    assert_eq!(code(&rpc(&house, &push("get"), named).await), -32001);
    assert_eq!(code(&rpc(&house, &push("get"), json!({"id": id})).await), -32001);
}

#[tokio::test]
async fn the_card_holds_the_members_of_both_versions() {
    let house = house(SETTINGS).await;
    let card = plain(&house, Method::GET, "/.well-known/agent-card.json", &Value::Null).await.body;
    assert_eq!(
        (&card["protocolVersion"], &card["preferredTransport"]),
        (&json!("0.3.0"), &json!("JSONRPC")),
        "{card}"
    );
    assert_eq!(card["url"], "http://localhost:8420/a2a/v1");
    assert_eq!(card["supportsAuthenticatedExtendedCard"], true);
    let versions: Vec<&Value> = card["supportedInterfaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["protocolVersion"])
        .collect();
    assert_eq!(versions, ["1.0", "1.0", "1.0", "0.3", "0.3"]);
    let extended = rpc(&house, "agent/getAuthenticatedExtendedCard", json!({})).await;
    assert_eq!(extended["result"]["url"], card["url"], "{extended}");
    // An operation that only 1.0 has answers with members of 1.0 alone.
    let by_rpc = rpc_of_1_0(&house, "GetExtendedAgentCard", json!({})).await["result"].clone();
    let path = "/a2a/v1/extendedAgentCard";
    let by_http = open(&house, Method::GET, path, &Value::Null).await.body;
    for card in [by_rpc, by_http] {
        let read: AgentCard = serde_json::from_value(card.clone()).unwrap();
        assert_eq!(json!(read), card, "all of it is of 1.0");
        assert_eq!(read.skills.len(), extended["result"]["skills"].as_array().unwrap().len());
    }
}
