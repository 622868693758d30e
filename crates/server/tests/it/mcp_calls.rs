//! `tools/call` at `/mcp`.

use crate::house::{request, text, wait_for};
use crate::mcp_place::{Place, accept, forms, key, message, modern, retry, said, tasks};
use axum::body::Body;
use axum::http::Method;
use kernel::limits::Limits;
use serde_json::{Value, json};
use std::time::Duration;

const GREETING: &str = "interaction__greeting";

async fn greeting(place: &Place) -> Value {
    let asked = place.call(&forms(), json!({"name": GREETING, "arguments": {}})).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    asked
}

#[tokio::test]
async fn a_quick_read_is_answered_with_its_output() {
    let place = Place::new("").await;
    let call = json!({"name": "math__add", "arguments": {"a": 1, "b": 2}});
    let result = place.call(&json!({}), call).await;
    assert_eq!(result["resultType"], "complete");
    assert_eq!((said(&result).as_str(), &result["structuredContent"]), ("3", &json!(3)));
    let own = json!({"name": "math::add", "arguments": {"a": 1, "b": 2}});
    assert_eq!(said(&place.call(&json!({}), own).await), "3", "a name of ours is taken as well");
    let misfit =
        place.call(&json!({}), json!({"name": "math__add", "arguments": {"a": "x"}})).await;
    assert_eq!(misfit["isError"], true);
    assert!(said(&misfit).contains("/a"), "{misfit}");
    let failed = place.call(&json!({}), json!({"name": "test__always_fail"})).await;
    assert_eq!(failed["isError"], true);
    assert!(said(&failed).contains("AlwaysFails"), "{failed}");
    for wrong in [json!({"name": "no__tool"}), json!({"name": "math__add", "arguments": 1})] {
        assert_eq!(place.error("tools/call", &json!({}), wrong.clone()).await, -32602, "{wrong}");
    }
}

#[tokio::test]
async fn a_large_output_of_a_run_comes_whole() {
    let place = Place::new("").await;
    let result = place.call(&json!({}), json!({"name": "it__large"})).await;
    assert_eq!(said(&result).len(), 20_000);
}

#[tokio::test]
async fn a_plan_that_asks_is_called_again_with_the_answer() {
    let place = Place::new("").await;
    let asked = greeting(&place).await;
    let ask = key(&asked);
    assert!(ask.starts_with("ask_"), "{asked}");
    let request = &asked["inputRequests"][&ask];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], "What is your name?");
    let fields = &request["params"]["requestedSchema"]["properties"];
    assert_eq!(*fields, json!({"name": {"type": "string", "minLength": 1}}));

    let misfit = retry(GREETING, &asked, accept(json!({"name": ""})));
    let again = place.call(&forms(), misfit).await;
    let message = text(&again["inputRequests"][&ask]["params"]["message"]);
    assert!(message.starts_with("That did not fit: at `/name`"), "{message}");

    let ann = retry(GREETING, &again, accept(json!({"name": "Ann"})));
    let done = place.call(&forms(), ann.clone()).await;
    assert_eq!((said(&done).as_str(), &done["resultType"]), ("Hello, Ann!", &json!("complete")));
    let decided = place.get(&format!("/api/v1/asks/{ask}")).await;
    assert_eq!(decided["decision"]["via"], "mcp", "{decided}");
    assert_eq!(said(&place.call(&forms(), ann).await), "Hello, Ann!", "the same again");
    let bob = retry(GREETING, &again, accept(json!({"name": "Bob"})));
    let refused = place.ask("tools/call", &forms(), bob).await;
    assert_eq!(refused["error"]["code"], -32602);
    assert!(text(&refused["error"]["message"]).contains("answered otherwise"), "{refused}");
}

#[tokio::test]
async fn a_state_is_good_for_its_request_only() {
    let place = Place::new("").await;
    let asked = greeting(&place).await;
    let good = retry(GREETING, &asked, accept(json!({"name": "Ann"})));
    let changed = |pointer: &str, value: Value| {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    };
    let state = text(&asked["requestState"]);
    for wrong in [
        changed("/requestState", json!(format!("{state}-TAMPERED"))),
        changed("/requestState", json!(&state[1..])),
        changed("/requestState", json!("")),
        changed("/arguments", json!({"other": 1})),
        changed("/name", json!("it__wants")),
        changed("/inputResponses", Value::Null),
        changed("/inputResponses", json!({key(&asked): 12345})),
        changed("/inputResponses", json!({key(&asked): {"action": "perhaps"}})),
    ] {
        assert_eq!(place.error("tools/call", &forms(), wrong.clone()).await, -32602, "{wrong}");
    }
    let others = changed("/inputResponses", json!({"other": {"action": "cancel"}}));
    let again = place.call(&forms(), others).await;
    assert_eq!(key(&again), key(&asked), "what is missing is asked for again");
    assert_eq!(said(&place.call(&forms(), good).await), "Hello, Ann!");
}

#[tokio::test]
async fn an_old_state_is_refused() {
    let place = Place::within(Limits { mcp_state_ttl_ms: 1, ..Limits::default() }).await;
    let asked = greeting(&place).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let late = retry(GREETING, &asked, accept(json!({"name": "Ann"})));
    let refused = place.ask("tools/call", &forms(), late).await;
    assert_eq!(refused["error"]["code"], -32602);
    assert!(text(&refused["error"]["message"]).contains("has expired"), "{refused}");
}

#[tokio::test]
async fn a_declined_form_ends_the_call_and_a_dismissed_one_leaves_the_ask_open() {
    let place = Place::new("").await;
    let asked = greeting(&place).await;
    let declined =
        place.call(&forms(), retry(GREETING, &asked, json!({"action": "decline"}))).await;
    assert_eq!(declined["isError"], true);
    assert!(said(&declined).contains("Declined"), "{declined}");

    let asked = greeting(&place).await;
    let dismissed =
        place.call(&forms(), retry(GREETING, &asked, json!({"action": "cancel"}))).await;
    assert_eq!(
        (&dismissed["resultType"], &dismissed["isError"]),
        (&json!("complete"), &json!(null))
    );
    assert!(said(&dismissed).contains(&key(&asked)), "{dismissed}");
    let ask = place.get(&format!("/api/v1/asks/{}", key(&asked))).await;
    assert_eq!(ask["status"], "open");
}

#[tokio::test]
async fn an_ask_answered_in_the_inbox_settles_the_call() {
    let place = Place::new("").await;
    let asked = greeting(&place).await;
    let body = json!({"action": "accept", "content": {"name": "Inbox"}}).to_string();
    let path = format!("/api/v1/asks/{}", key(&asked));
    let answer = place.send(request(Method::POST, &path, Body::from(body))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let late = retry(GREETING, &asked, accept(json!({"name": "Ann"})));
    assert_eq!(said(&place.call(&forms(), late).await), "Hello, Inbox!");
}

#[tokio::test]
async fn a_client_without_forms_is_told_where_to_answer() {
    let place = Place::new("").await;
    let told = place.call(&json!({}), json!({"name": GREETING})).await;
    assert_eq!((&told["resultType"], &told["isError"]), (&json!("complete"), &json!(null)));
    let run = text(&told["_meta"]["waypost/run"]);
    let ask = text(&told["_meta"]["waypost/asks"][0]);
    let words = said(&told);
    assert!(words.contains(&run) && words.contains(&ask) && words.contains("inbox"), "{words}");
    assert_eq!(place.get(&format!("/api/v1/runs/{run}")).await["run"]["status"], "waiting");
}

#[tokio::test]
async fn an_approval_shows_the_call_and_decides_it() {
    let place = Place::new("").await;
    let name = "it--approval";
    for (approve, words) in [(true, "3"), (false, "Rejected: too much")] {
        let asked = place.call(&forms(), json!({"name": name, "arguments": {}})).await;
        let message = text(&asked["inputRequests"][key(&asked)]["params"]["message"]);
        assert!(message.contains("`math::add`") && message.contains("\"b\": 2"), "{message}");
        let answer = accept(json!({"approve": approve, "feedback": "too much"}));
        let done = place.call(&forms(), retry(name, &asked, answer)).await;
        assert!(said(&done).starts_with(words), "{done}");
        assert_eq!(done["isError"] == true, !approve);
    }
}

#[tokio::test]
async fn an_approval_that_cannot_be_shown_whole_has_no_tick() {
    let place = Place::within(Limits { mcp_shown_chars_max: 10, ..Limits::default() }).await;
    let name = "it--approval";
    let asked = place.call(&forms(), json!({"name": name, "arguments": {}})).await;
    let ask = key(&asked);
    let params = &asked["inputRequests"][&ask]["params"];
    assert_eq!(params["requestedSchema"], json!({"type": "object", "properties": {}}));
    let message = text(&params["message"]);
    assert!(message.contains(&format!("`waypost inbox show {ask}`")), "{message}");
    assert!(message.contains(&format!("/api/v1/asks/{ask}")), "{message}");
    // A tick that was not offered decides nothing.
    let unseen = retry(name, &asked, accept(json!({"approve": true})));
    let left = place.call(&forms(), unseen).await;
    assert!(said(&left).contains("waits for a person"), "{left}");
    let open = place.get("/api/v1/asks?status=open").await;
    assert_eq!(open["items"][0]["id"], ask.as_str(), "{open}");
}

#[tokio::test]
async fn a_failed_step_can_be_skipped() {
    let place = Place::new("").await;
    let name = "test__plan_that_fails";
    let asked = place.call(&forms(), json!({"name": name, "arguments": {}})).await;
    let schema = &asked["inputRequests"][key(&asked)]["params"]["requestedSchema"];
    let offered = json!(["retry", "skip", "abort", "settle"]);
    assert_eq!(schema["properties"]["action"]["enum"], offered);
    let done = place.call(&forms(), retry(name, &asked, accept(json!({"action": "skip"})))).await;
    assert!(said(&done).starts_with("This is only said"), "{done}");
}

#[tokio::test]
async fn a_tool_may_ask_its_caller_first() {
    let place = Place::new("").await;
    let call = json!({"name": "it__wants", "arguments": {}});
    let response = place.ask("tools/call", &json!({"sampling": {}}), call.clone()).await;
    assert_eq!(response["error"]["code"], -32021);
    let needed = &response["error"]["data"]["requiredCapabilities"];
    assert_eq!(*needed, json!({"elicitation": {"form": {}}}));
    let asked = place.call(&forms(), call).await;
    assert_eq!(
        (asked["resultType"].as_str(), key(&asked).as_str()),
        (Some("input_required"), "name")
    );
    let misfit = retry("it__wants", &asked, accept(json!({"name": 1})));
    assert_eq!(place.error("tools/call", &forms(), misfit).await, -32602);
    let mut good = retry("it__wants", &asked, accept(json!({"name": "Ann"})));
    good["inputResponses"]["more"] = accept(json!({}));
    assert_eq!(said(&place.call(&forms(), good).await), "Hello, Ann!");
}

#[tokio::test]
async fn a_call_that_takes_longer_than_its_client_waits_goes_on() {
    let limits = Limits { mcp_task_after_ms: 50, mcp_call_wait_ms: 50, ..Limits::default() };
    let place = Place::within(limits).await;
    let created = place.call(&tasks(), json!({"name": "it--long_plan"})).await;
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    let told = place.call(&json!({}), json!({"name": "it--long_plan"})).await;
    assert_eq!(told["resultType"], "complete");
    assert!(said(&told).contains("still running"), "{told}");
}

/// Waits until the newest of these sessions has this status.
async fn until_newest(place: &Place, sessions: &str, status: &str) {
    let is_so = |listed: &Value| listed["items"][0]["status"] == status;
    wait_for(&format!("a run that is {status}"), async || place.get(sessions).await, is_so).await;
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_run() {
    let place = Place::new("").await;
    let call = modern("tools/call", &json!({}), json!({"name": "it--long_plan", "arguments": {}}));
    let sessions = "/api/v1/sessions?plan=it%2Flong_plan";
    // One that goes away before there is a run has nothing to cancel.
    tokio::select! {
        answer = place.send(call) => panic!("it was answered: {answer:?}"),
        () = until_newest(&place, sessions, "running") => {}
    }
    until_newest(&place, sessions, "cancelled").await;
}

#[tokio::test]
async fn an_older_version_gets_its_own_shapes() {
    let place = Place::new("").await;
    let legacy = |session: Option<&str>, body: Value| {
        let mut request = request(Method::POST, "/mcp", Body::from(body.to_string()));
        let headers = request.headers_mut();
        headers.insert("accept", "application/json, text/event-stream".parse().unwrap());
        if let Some(session) = session {
            headers.insert("mcp-session-id", session.parse().unwrap());
            headers.insert("mcp-protocol-version", "2025-11-25".parse().unwrap());
        }
        request
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "it", "version": "1"}}});
    let greeted = place.send(legacy(None, hello)).await;
    assert_eq!(message(&greeted)["result"]["protocolVersion"], "2025-11-25", "{greeted:?}");
    let session = greeted.header("mcp-session-id").to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    place.send(legacy(Some(&session), ready)).await;
    let call = |id: u64, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        legacy(Some(&session), body)
    };
    let add = json!({"name": "math__add", "arguments": {"a": 1, "b": 2}});
    let sum = message(&place.send(call(2, add)).await)["result"].clone();
    let expected = json!({"content": [{"type": "text", "text": "3"}],
        "structuredContent": {"result": 3}});
    assert_eq!(sum, expected);
    let told = message(&place.send(call(3, json!({"name": GREETING}))).await)["result"].clone();
    assert!(told.get("resultType").is_none(), "{told}");
    assert!(said(&told).contains("waits for a person"), "{told}");
    let tasks =
        json!({"jsonrpc": "2.0", "id": 4, "method": "tasks/get", "params": {"taskId": "x"}});
    let refused = message(&place.send(legacy(Some(&session), tasks)).await);
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
}
