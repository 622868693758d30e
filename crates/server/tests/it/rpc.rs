//! `POST /rpc`: tools as methods of JSON-RPC 2.0.

use crate::house::{Answer, House, read, request, text};
use axum::body::Body;
use axum::http::Method;
use kernel::limits::Limits;
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};

/// Sends a body to `/rpc`; the answer is JSON-RPC, whatever became of it.
async fn post(house: &House, body: &str, key: Option<&str>) -> Answer {
    let mut request = request(Method::POST, "/rpc", Body::from(body.to_owned()));
    if let Some(key) = key {
        request.headers_mut().insert("idempotency-key", key.parse().unwrap());
    }
    let answer = read(house.open(request).await).await;
    if answer.status == 200 {
        assert_eq!(answer.header("content-type"), "application/json");
    } else {
        assert_eq!((answer.status, answer.text.as_str()), (204, ""), "{answer:?}");
    }
    answer
}

/// One request, and its response.
async fn ask(house: &House, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let response = post(house, &body.to_string(), None).await.body;
    assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!(7)), "{response}");
    response
}

/// The code of the error in the response to this body.
async fn code(house: &House, body: &str) -> (i64, Value) {
    let response = post(house, body, None).await.body;
    assert!(response["error"]["message"].is_string(), "{body}: {response}");
    (response["error"]["code"].as_i64().unwrap(), response["id"].clone())
}

async fn sessions(house: &House) -> usize {
    house.get("/api/v1/sessions").await.body["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_method_is_a_tool_by_any_of_its_names() {
    let house = House::demo().await;
    let expected = json!({"content": [{"type": "text", "text": "3"}], "structuredContent": 3});
    for method in ["math::add", "math__add", "math.add"] {
        let response = ask(&house, method, json!({"a": 1, "b": 2})).await;
        assert_eq!(response["result"], expected, "{method}");
    }
    let plan = ask(&house, "math::conditional_add", json!({"a": 1, "b": 2})).await;
    assert!(plan["result"]["content"][0]["text"].is_string(), "{plan}");
    let failed = ask(&house, "test.always_fail", json!({})).await;
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    assert!(!text(&failed["result"]["content"][0]["text"]).is_empty(), "{failed}");
}

#[tokio::test]
async fn malformed_requests_are_jsonrpc_errors() {
    let house = House::limited("body_depth_max = 8").await;
    let deep = format!("{{\"params\": {}{}}}", "[".repeat(8), "]".repeat(8));
    for (body, expected) in [
        ("", -32700),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1", -32700),
        ("[1,", -32700),
        ("nope", -32700),
        ("7", -32600),
        ("[]", -32600),
        ("{\"foo\": \"boo\"}", -32600),
        ("{\"jsonrpc\": \"1.0\", \"method\": \"math::add\"}", -32600),
        ("{\"jsonrpc\": \"2.0\", \"method\": 1}", -32600),
        ("{\"jsonrpc\": \"2.0\", \"method\": \"\"}", -32600),
        ("{\"jsonrpc\": \"2.0\", \"method\": \"math::add\", \"id\": null}", -32600),
        ("{\"jsonrpc\": \"2.0\", \"method\": \"math::add\", \"id\": {}}", -32600),
        (deep.as_str(), -32600),
    ] {
        assert_eq!(code(&house, body).await, (expected, Value::Null), "{body}");
    }
    let wrong = "{\"jsonrpc\": \"2.0\", \"id\": \"x\"}";
    assert_eq!(code(&house, wrong).await, (-32600, json!("x")));
    for (params, expected) in [
        ("[1, 2]", -32602),
        ("\"a\"", -32602),
        ("{\"a\": 1}", -32602),
        ("{\"a\": 1, \"b\": 2, \"c\": 3}", -32602),
    ] {
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"math::add\",\"params\":{params}}}"
        );
        assert_eq!(code(&house, &body).await, (expected, json!(1)), "{params}");
    }
    let misfit = ask(&house, "math::add", json!({"a": "x", "b": 2})).await;
    assert_eq!(misfit["error"]["data"]["errors"][0]["pointer"], "/a", "{misfit}");
    let unknown = ask(&house, "math::ad", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
    assert_eq!(unknown["error"]["data"]["hint"], "did you mean `math::add`?");
    let get = read(house.open(request(Method::GET, "/rpc", Body::empty())).await).await;
    assert_eq!(get.status, 405);
}

#[tokio::test]
async fn a_notification_is_done_and_not_answered() {
    let house = House::demo().await;
    let body = json!({"jsonrpc": "2.0", "method": "interaction::greeting"});
    assert_eq!(post(&house, &body.to_string(), None).await.status, 204);
    assert_eq!(sessions(&house).await, 1);
    let wrong = json!({"jsonrpc": "2.0", "method": "no::such"});
    assert_eq!(post(&house, &wrong.to_string(), None).await.status, 204);
}

#[tokio::test]
async fn a_batch_is_answered_in_its_order() {
    let house = House::demo().await;
    let add = |id: i64| {
        let params = json!({"a": id, "b": 1});
        json!({"jsonrpc": "2.0", "id": id, "method": "math::add", "params": params})
    };
    let quiet = json!({"jsonrpc": "2.0", "method": "math::add", "params": {"a": 1, "b": 1}});
    let batch = json!([add(1), 7, quiet, add(3)]);
    let answers = post(&house, &batch.to_string(), None).await.body;
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert_eq!(
        (&answers[0]["id"], &answers[0]["result"]["structuredContent"]),
        (&json!(1), &json!(2))
    );
    assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&Value::Null, &json!(-32600)));
    assert_eq!(
        (&answers[2]["id"], &answers[2]["result"]["structuredContent"]),
        (&json!(3), &json!(4))
    );
    assert_eq!(post(&house, &json!([quiet, quiet]).to_string(), None).await.status, 204);
    let many: Vec<Value> = (1..=65).map(add).collect();
    let all = post(&house, &json!(many[..64]).to_string(), None).await.body;
    assert_eq!(all.as_array().map(Vec::len), Some(64), "{all}");
    let many = json!(many);
    assert_eq!(code(&house, &many.to_string()).await, (-32600, Value::Null));
}

#[tokio::test]
async fn a_waiting_call_names_its_ask() {
    let house = House::demo().await;
    let response = ask(&house, "interaction::greeting", json!({})).await;
    let result = &response["result"];
    assert_eq!(result["isError"], false, "{response}");
    let values = &result["structuredContent"];
    let run = text(&values["run"]);
    let asked = text(&values["asks"][0]["id"]);
    assert_eq!(values["status"], "waiting");
    let words = text(&result["content"][0]["text"]);
    assert!(words.contains(&run) && words.contains(&asked), "{words}");
    assert_eq!(house.get(&format!("/api/v1/runs/{run}")).await.body["run"]["status"], "waiting");
}

#[tokio::test]
async fn a_key_stands_for_a_request_whatever_its_id() {
    let house = House::demo().await;
    let body = |id: i64, params: Value| {
        let method = "interaction::greeting";
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let first = post(&house, &body(1, json!({})), Some("k")).await;
    let again = post(&house, &body(2, json!({})), Some("k")).await;
    let run = |answer: &Answer| answer.body["result"]["structuredContent"]["run"].clone();
    assert_eq!(run(&first), run(&again));
    assert_eq!(first.header("idempotency-replayed"), "");
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.body["id"], 2);
    let other = post(&house, &body(3, json!({"x": 1})), Some("k")).await.body;
    assert_eq!(other["error"]["data"]["code"], "idempotency_mismatch", "{other}");
    assert_eq!(sessions(&house).await, 1);
    // In a batch each request has a place under the key.
    let batch = format!("[{},{}]", body(1, json!({})), body(2, json!({})));
    post(&house, &batch, Some("b")).await;
    post(&house, &batch, Some("b")).await;
    assert_eq!(sessions(&house).await, 3);
}

#[tokio::test]
async fn tools_are_listed_and_called_as_in_mcp() {
    let short = Limits { page_items_default: 5, page_items_max: 5, ..Limits::default() };
    let house = House::within(short).await;
    let first = ask(&house, "tools/list", json!({})).await["result"].clone();
    let cursor = first["nextCursor"].clone();
    let rest = ask(&house, "tools/list", json!({"cursor": cursor})).await["result"].clone();
    let page = house.get("/api/v1/tools?limit=1").await.body;
    let other = ask(&house, "tools/list", json!({"cursor": page["nextCursor"]})).await;
    assert_eq!(other["error"]["code"], -32602, "a cursor of another list: {other}");
    assert!(rest.get("nextCursor").is_none(), "{rest}");
    let of = |page: &Value| page["tools"].as_array().unwrap().clone();
    let tools = [of(&first), of(&rest)].concat();
    let names: Vec<String> = tools.iter().map(|tool| text(&tool["name"])).collect();
    assert!(names.contains(&"math__add".to_owned()) && names.len() == 9, "{names:?}");
    assert!(tools.iter().all(|tool| tool["inputSchema"]["type"] == "object"), "{tools:?}");
    for name in names {
        let known = ask(&house, "tools/call", json!({"name": name, "arguments": {"x": []}})).await;
        assert_ne!(known["error"]["code"], -32602, "{name}: {known}");
    }
    let add = |arguments: Value| json!({"name": "math__add", "arguments": arguments});
    let done = ask(&house, "tools/call", add(json!({"a": 1, "b": 2}))).await;
    assert_eq!(done["result"]["structuredContent"], 3);
    // A model can mend its arguments, but not a name that is nobody's.
    let misfit = ask(&house, "tools/call", add(json!({"a": "x", "b": 2}))).await;
    assert_eq!(misfit["result"]["isError"], true, "{misfit}");
    assert!(text(&misfit["result"]["content"][0]["text"]).contains("/a"), "{misfit}");
    let unknown = ask(&house, "tools/call", json!({"name": "no::such"})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let nameless = ask(&house, "tools/call", json!({"arguments": {}})).await;
    assert_eq!(nameless["error"]["code"], -32602, "{nameless}");
}

#[tokio::test]
async fn denied_tools_are_unknown_methods() {
    let mut project = Project::demo();
    project.plans.clear();
    let rules = "[tools]\ndeny = [\"math::*\"]\n";
    project.config = Config::parse("waypost.toml", rules).unwrap();
    let house = House::build(project, None).await;
    for (hidden, absent) in [("math::add", "meth::add"), ("math__add", "meth__add")] {
        let hidden_told = ask(&house, hidden, json!({"a": 1, "b": 2})).await.to_string();
        let absent_told = ask(&house, absent, json!({"a": 1, "b": 2})).await.to_string();
        assert_eq!(hidden_told.replace(hidden, absent), absent_told);
    }
    let listed = ask(&house, "tools/list", json!({})).await.to_string();
    assert!(!listed.contains("math__add"), "{listed}");
}
