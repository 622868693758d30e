//! `/mcp` in the stateless version: lists, prompts, resources and completion.

use crate::house::{House, demo_with, encoded, question, read, request, text};
use axum::body::Body;
use axum::http::Method;
use kernel::limits::Limits;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The answer to one request: a whole JSON-RPC message.
pub async fn ask(house: &House, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
    });
    let named = params.get("name").or_else(|| params.get("uri")).map(text);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut request = request(Method::POST, "/mcp", Body::from(message.to_string()));
    let headers = request.headers_mut();
    headers.insert("accept", "application/json, text/event-stream".parse().unwrap());
    headers.insert("mcp-protocol-version", "2026-07-28".parse().unwrap());
    headers.insert("mcp-method", method.parse().unwrap());
    if let Some(named) = named {
        headers.insert("mcp-name", named.parse().unwrap());
    }
    let answer = read(house.open(request).await).await;
    if answer.body.is_object() {
        return answer.body;
    }
    let last = answer.text.lines().rev().find_map(|line| line.strip_prefix("data:"));
    serde_json::from_str(last.unwrap_or_else(|| panic!("{method}: {answer:?}"))).unwrap()
}

/// The result of one request, which must have one.
async fn result(house: &House, method: &str, params: Value) -> Value {
    let answer = ask(house, method, params).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{method}: {answer}");
    answer["result"].clone()
}

/// Number and message of the error of one request.
async fn refusal(house: &House, method: &str, params: Value) -> (i64, String) {
    let answer = ask(house, method, params).await;
    let error = &answer["error"];
    (error["code"].as_i64().unwrap_or_else(|| panic!("{answer}")), text(&error["message"]))
}

/// One member of each item.
pub fn each(list: &Value, member: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| text(&item[member])).collect()
}

/// What is at a URI, as JSON.
async fn read_json(house: &House, uri: &str) -> Value {
    let result = result(house, "resources/read", json!({"uri": uri})).await;
    let content = &result["contents"][0];
    assert_eq!(
        (text(&content["uri"]).as_str(), &content["mimeType"]),
        (uri, &json!("application/json")),
        "{result}"
    );
    serde_json::from_str(content["text"].as_str().unwrap()).unwrap()
}

/// All pages of a list, each with one member of its items.
async fn pages(house: &House, method: &str, list: &str, member: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut params = json!({});
    loop {
        let page = result(house, method, params).await;
        pages.push(each(&page[list], member));
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return pages,
        }
        assert!(pages.len() < 100, "{pages:?}");
    }
}

#[tokio::test]
async fn tools_are_listed_under_names_that_clients_take() {
    let house = House::demo().await;
    let list = result(&house, "tools/list", json!({})).await;
    let names = [
        "case.raiseTicket", "events.publish", "interaction__greeting", "math__add",
        "math__conditional_add", "math__fan_out", "test__always_fail", "test__plan_that_fails",
        "validate__is_positive",
    ];
    assert_eq!(each(&list["tools"], "name"), names);
    assert!(list["ttlMs"].is_u64() && list["cacheScope"] == "private", "{list}");
    assert!(list.get("nextCursor").is_none());
    let tools = list["tools"].as_array().unwrap();
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_ne!(text(&tool["description"]), "", "{tool}");
    }
    // In this version an output need not be an object.
    assert_eq!(tools[3]["outputSchema"], json!({"type": "number"}));
    let reads = json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true});
    assert_eq!(tools[3]["annotations"], reads);
    assert_eq!(result(&house, "tools/list", json!({})).await, list);
}

#[tokio::test]
async fn a_new_plan_is_listed_at_once() {
    let house = House::demo().await;
    let before = result(&house, "tools/list", json!({})).await;
    assert!(!each(&before["tools"], "name").contains(&"it--question".to_owned()));
    let stored = house.put("/api/v1/plans/it%2Fquestion", &[], question()).await;
    assert_eq!(stored.status, 201, "{stored:?}");
    for (method, list) in [("tools/list", "tools"), ("prompts/list", "prompts")] {
        let after = result(&house, method, json!({})).await;
        assert!(each(&after[list], "name").contains(&"it--question".to_owned()), "{after}");
    }
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let short = Limits { page_items_default: 2, page_items_max: 2, ..Limits::default() };
    let house = House::within(Limits { mcp_list_items_max: 3, ..short }).await;
    let tools = pages(&house, "tools/list", "tools", "name").await;
    assert_eq!(tools.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3]);
    assert!(tools.concat().is_sorted(), "{tools:?}");
    let prompts = pages(&house, "prompts/list", "prompts", "name").await;
    assert_eq!(prompts.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1]);
    let templates =
        pages(&house, "resources/templates/list", "resourceTemplates", "uriTemplate").await;
    assert_eq!(templates.concat().len(), 5);
    for _ in 0..3 {
        house.greeting().await;
    }
    let resources = pages(&house, "resources/list", "resources", "uri").await.concat();
    let unlike: BTreeSet<&String> = resources.iter().collect();
    assert_eq!((resources.len(), unlike.len()), (7, 7), "four plans, three sessions");
    assert!(resources[..4].iter().all(|uri| uri.starts_with("waypost://plans/")));
    assert!(resources[4..].iter().all(|uri| uri.starts_with("waypost://sessions/ses_")));
}

#[tokio::test]
async fn a_history_goes_on_where_it_is_listed() {
    let house = House::within(Limits { page_items_default: 1, ..Limits::default() }).await;
    let input = json!({"a": 1, "b": 1});
    let run = house.run(json!({"planId": "math::conditional_add", "input": input})).await;
    let id = text(&run["session"]["id"]);
    let newest = read_json(&house, &format!("waypost://sessions/{id}/history")).await;
    assert_eq!(newest["items"][0]["step"], "validate", "{newest}");
    let cursor = encoded(&newest["nextCursor"]);
    let rest = house.get(&format!("/api/v1/sessions/{id}/history?cursor={cursor}")).await.body;
    assert_eq!(rest["items"][0]["step"], "add", "{rest}");
}

#[tokio::test]
async fn a_malformed_cursor_is_refused() {
    let house = House::within(Limits { mcp_list_items_max: 3, ..Limits::default() }).await;
    let first = result(&house, "tools/list", json!({})).await;
    for (method, cursor) in [
        ("tools/list", json!("nope")),
        ("tools/list", json!(7)),
        ("prompts/list", first["nextCursor"].clone()),
        ("resources/list", json!("7265736f75726365733a393a")),
        ("resources/list", json!("7265736f75726365733a303a78")),
        ("resources/templates/list", json!("")),
    ] {
        let (code, _) = refusal(&house, method, json!({"cursor": cursor})).await;
        assert_eq!(code, -32602, "{method} {cursor}");
    }
}

#[tokio::test]
async fn plans_are_prompts() {
    let house = House::demo().await;
    let list = result(&house, "prompts/list", json!({})).await;
    let names = [
        "interaction__greeting", "math__conditional_add", "math__fan_out", "test__plan_that_fails",
    ];
    assert_eq!(each(&list["prompts"], "name"), names);
    let add = &list["prompts"][1];
    assert_eq!(each(&add["arguments"], "name"), ["a", "b"]);
    assert_eq!(add["arguments"][0]["required"], true);
    for name in ["math__conditional_add", "math::conditional_add"] {
        let params = json!({"name": name, "arguments": {"a": "1", "b": "-2.5"}});
        let prompt = result(&house, "prompts/get", params).await;
        let message = &prompt["messages"][0];
        assert_eq!(
            (&message["role"], &message["content"]["type"]),
            (&json!("user"), &json!("text"))
        );
        let words = text(&message["content"]["text"]);
        for part in ["`math__conditional_add`", "\"a\": 1", "\"b\": -2.5", "positive", "pause"] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
}

#[tokio::test]
async fn a_prompt_needs_its_arguments() {
    let house = House::demo().await;
    let get = |params: Value| refusal(&house, "prompts/get", params);
    let name = "math__conditional_add";
    let (code, message) = get(json!({"name": name, "arguments": {"a": "1"}})).await;
    assert!(code == -32602 && message.contains("`b`") && !message.contains("`a`"), "{message}");
    let (code, message) = get(json!({"name": name, "arguments": {"a": 1, "b": "2"}})).await;
    assert!(code == -32602 && message.contains("`a`"), "{message}");
    let (code, message) = get(json!({"name": "math__conditional_ad"})).await;
    assert!(code == -32602 && message.contains("did you mean"), "{message}");
    // A tool that is no plan is no prompt.
    assert_eq!(get(json!({"name": "math__add"})).await.0, -32602);
}

#[tokio::test]
async fn plans_and_sessions_are_resources() {
    let house = House::demo().await;
    let waiting = house.greeting().await;
    let session = text(&waiting["session"]["id"]);
    let list = result(&house, "resources/list", json!({})).await;
    assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(0), &json!("private")));
    let uris = each(&list["resources"], "uri");
    let expected = [
        "waypost://plans/interaction%3A%3Agreeting".to_owned(),
        "waypost://plans/math%3A%3Aconditional_add".to_owned(),
        "waypost://plans/math%3A%3Afan_out".to_owned(),
        "waypost://plans/test%3A%3Aplan_that_fails".to_owned(),
        format!("waypost://sessions/{session}"),
    ];
    assert_eq!(uris, expected);
    let plan = read_json(&house, &uris[0]).await;
    assert_eq!(
        (&plan["planId"], &plan["startStepId"]),
        (&json!("interaction::greeting"), &json!("ask_name"))
    );

    let shown = read_json(&house, &uris[4]).await;
    assert!(shown["session"]["status"] == "waiting" && shown["context"].is_object(), "{shown}");
    let path = format!("/api/v1/sessions/{session}");
    assert_eq!(shown["session"], house.get(&path).await.body);
    assert_eq!(shown["run"]["asks"][0]["kind"], "fill");
    let run = text(&waiting["run"]["id"]);
    let of_run = read_json(&house, &format!("waypost://runs/{run}")).await;
    assert_eq!(of_run, house.get(&format!("/api/v1/runs/{run}")).await.body);
}

#[tokio::test]
async fn histories_and_blobs_are_resources() {
    let house = House::demo().await;
    let plan = json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 2}});
    let session = text(&house.run(plan).await["session"]["id"]);
    let history = read_json(&house, &format!("waypost://sessions/{session}/history")).await;
    assert_eq!(each(&history["items"], "tool"), ["validate::is_positive", "math::add"]);
    let large = "x".repeat(40_000);
    let message = json!({"jsonPath": "$.promptInput"});
    let step = json!({"id": "end", "type": "final_response", "message": message});
    let plan = json!({"planId": "it/large", "description": "echoes", "steps": [step]});
    let echo = json!({"plan": plan, "input": {"text": large}});
    let uri = text(&house.run(echo).await["run"]["answer"]);
    let blob = uri.replace("blob://", "waypost://blobs/");
    assert_eq!(read_json(&house, &blob).await, json!({"text": large}));
}

#[tokio::test]
async fn a_missing_resource_is_an_error_with_its_uri() {
    let house = House::demo().await;
    for uri in [
        "test://nothing",
        "waypost://plans/nope",
        "waypost://plans/math::add",
        "waypost://sessions/ses_00000000000000000000000000000000",
        "waypost://sessions/ses_00000000000000000000000000000000/history",
        "waypost://sessions/mine",
        "waypost://runs/run_00000000000000000000000000000000",
        "waypost://blobs/0000000000000000000000000000000000000000000000000000000000000000",
        "waypost://cases/1",
    ] {
        let answer = ask(&house, "resources/read", json!({"uri": uri})).await;
        let error = &answer["error"];
        assert_eq!(
            (&error["code"], &error["data"]["uri"]),
            (&json!(-32602), &json!(uri)),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn templates_describe_the_uris_of_resources() {
    let house = House::demo().await;
    let list = result(&house, "resources/templates/list", json!({})).await;
    let expected = [
        "waypost://blobs/{hash}",
        "waypost://plans/{id}",
        "waypost://runs/{id}",
        "waypost://sessions/{id}",
        "waypost://sessions/{id}/history",
    ];
    assert_eq!(each(&list["resourceTemplates"], "uriTemplate"), expected);
    assert!(list["ttlMs"].is_u64() && list["cacheScope"] == "private", "{list}");
}

#[tokio::test]
async fn arguments_are_completed() {
    let plan = "description: d\n\
        parameters: {type: object, properties: {mode: {enum: [fast, safe]}}}\n\
        steps:\n  - {id: end, type: final_response, message: hi}\n";
    let house = House::build(demo_with("plans/x/one.yaml", "x/one", plan), None).await;
    let session = text(&house.greeting().await["session"]["id"]);
    let values = async |of: Value, name: &str, value: &str| {
        let params = json!({"ref": of, "argument": {"name": name, "value": value}});
        result(&house, "completion/complete", params).await["completion"].clone()
    };
    let template = |uri: &str| json!({"type": "ref/resource", "uri": uri});
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    let all = |values: Value| {
        let total = values.as_array().unwrap().len();
        json!({"values": values, "total": total, "hasMore": false})
    };
    let plans = values(template("waypost://plans/{id}"), "id", "math::").await;
    assert_eq!(plans, all(json!(["math::conditional_add", "math::fan_out"])));
    for uri in ["waypost://sessions/{id}", "waypost://sessions/{id}/history"] {
        assert_eq!(values(template(uri), "id", "ses_").await, all(json!([session])));
    }
    assert_eq!(values(prompt("x--one"), "mode", "s").await, all(json!(["safe"])));
    assert_eq!(values(prompt("x--one"), "nope", "").await, all(json!([])));
    for of in [prompt("nope"), template("waypost://nope/{id}"), json!({"type": "ref/nope"})] {
        let params = json!({"ref": of, "argument": {"name": "a", "value": ""}});
        assert_eq!(refusal(&house, "completion/complete", params).await.0, -32602);
    }
}
