//! Calls on records that a person must approve, and calls that are sent twice.

use super::{Person, Shop, bare, example, id, named, told, words};
use crate::house::{Answer, text, wait_for};
use axum::http::Method;
use project::policies::PolicyFile;
use serde_json::{Value, json};

const ASKED: &str = r#"
@id("many-at-once")
@ask("it deletes many records at once")
@approvers("role:lead")
forbid (principal, action == Action::"call:query_deleteMany", resource);
"#;

/// A shop in which a lead looks at each deletion of many records.
async fn watched() -> Shop {
    let mut project = bare("", "");
    let file = "policies/asked.cedar".to_owned();
    let policies = project.policies.as_mut().unwrap();
    policies.policies.push(PolicyFile { file, text: ASKED.to_owned() });
    Shop::stocked(project).await
}

fn open_orders() -> Value {
    json!({"rootType": "Order", "query": "status:open"})
}

/// The answer of a person to an ask of one call.
async fn decide(shop: &Shop, who: &Person, ask: &Value, approve: bool) -> Answer {
    let path = format!("/api/v1/asks/{}", text(&ask["id"]));
    let mut decision = json!({"callId": ask["calls"][0]["callId"], "approve": approve});
    if !approve {
        decision["feedback"] = json!("they are needed");
    }
    shop.post(who, &path, json!({"decisions": [decision]})).await
}

/// Looks until so many orders are left for the lead.
async fn left(shop: &Shop, orders: u64) {
    let look = async || shop.count(&shop.lea, "Order", "").await;
    wait_for("the orders to be deleted", look, |left: &u64| *left == orders).await;
}

#[tokio::test]
async fn a_call_that_must_be_approved_is_202_with_the_ask() {
    let shop = watched().await;
    let pending = shop.ask(&shop.ann, "deleteMany", open_orders()).await;
    assert_eq!(pending.status, 202, "{pending:?}");
    assert!(pending.header("location").starts_with("/api/v1/runs/"), "{pending:?}");
    let ask = &pending.body["ask"];
    assert_eq!(
        (&ask["kind"], &ask["calls"][0]["tool"]),
        (&json!("approve"), &json!("query_deleteMany"))
    );
    assert_eq!(ask["calls"][0]["arguments"], open_orders(), "{ask}");
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 4, "nothing is done before");
    let decided = decide(&shop, &shop.lea, ask, true).await;
    assert_eq!(decided.status, 200, "{decided:?}");
    // What she sees is deleted, and not what the lead sees.
    left(&shop, 3).await;
    assert_eq!(shop.names(&shop.lea, "Order", "").await, ["O-2", "O-3", "O-4"]);
}

#[tokio::test]
async fn what_is_not_approved_is_not_done() {
    let shop = watched().await;
    let pending = shop.ask(&shop.ann, "deleteMany", open_orders()).await.body;
    let own = decide(&shop, &shop.ann, &pending["ask"], true).await;
    assert!(own.status == 403 || own.status == 404, "only leads decide: {own:?}");
    let decided = decide(&shop, &shop.lea, &pending["ask"], false).await;
    assert_eq!(decided.status, 200, "{decided:?}");
    let run = format!("/api/v1/runs/{}", text(&pending["run"]["id"]));
    let look = async || text(&shop.get(&shop.ann, &run).await.body["status"]);
    wait_for("the run to end", look, |status: &String| status != "waiting" && status != "running")
        .await;
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 4);
}

#[tokio::test]
async fn every_endpoint_of_a_call_asks() {
    let shop = watched().await;
    let body = json!({"tool": "query_deleteMany", "arguments": open_orders()});
    let executed = shop.post(&shop.ann, "/api/agent/execute", body).await;
    assert_eq!((executed.status, executed.body["ask"].is_object()), (202, true), "{executed:?}");
    let called = shop.tool(&shop.ann, "query_deleteMany", open_orders()).await;
    let ask = words(&called);
    assert!(ask.contains("ask_"), "{called}");
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 4);
}

#[tokio::test]
async fn nobody_is_asked_about_a_call_that_cannot_run() {
    let shop = watched().await;
    for (body, name) in [
        (json!({"rootType": "Order", "query": "a:1 b:2"}), "InvalidQuery"),
        (json!({"rootType": "Order", "query": "expand(customer)"}), "InvalidQuery"),
        (json!({"rootType": "Order"}), "QueryRequired"),
        (json!({"rootType": "Ordre", "query": "a:1"}), "UnknownRootType"),
    ] {
        assert_eq!(shop.fault(&shop.ann, "deleteMany", body).await, told(400, name));
    }
    let asks = shop.get(&shop.lea, "/api/v1/asks").await.body;
    assert_eq!(asks["items"], json!([]));
}

#[tokio::test]
async fn a_failure_after_the_approval_has_its_own_status() {
    let shop = watched().await;
    let mut body = open_orders();
    body["expect"] = json!(7);
    let pending = shop.ask(&shop.ann, "deleteMany", body).await.body;
    let decided = decide(&shop, &shop.lea, &pending["ask"], true).await;
    assert_eq!(decided.status, 200, "{decided:?}");
    let run = format!("/api/v1/runs/{}", text(&pending["run"]["id"]));
    let look = async || shop.get(&shop.ann, &run).await.body;
    let is_over = |shown: &Value| shown["run"]["lastError"].is_object();
    let failed = wait_for("the run to fail", look, is_over).await["run"].clone();
    assert_eq!(failed["lastError"]["name"], "ExpectationNotMet", "{failed}");
    assert_eq!(failed["lastError"]["detail"], json!({"expected": 7, "found": 1}), "{failed}");
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 4);
}

#[tokio::test]
async fn the_analyst_of_the_example_waits_for_a_lead() {
    let shop = Shop::of(example("", "")).await;
    let said = |thread: &str, text: &str| json!({"thread_id": thread, "user_request": text});
    let counted = shop.post(&shop.ann, "/run", said("t-1", "how many orders are open?")).await;
    assert_eq!(counted.status, 200, "{counted:?}");
    let own = shop.count(&shop.ann, "Order", "status:open").await;
    assert!(text(&counted.body["response"]).starts_with(&own.to_string()), "{counted:?}");
    let before = shop.count(&shop.lea, "Order", "").await;
    let wanted = shop.post(&shop.ann, "/run", said("t-2", "delete all cancelled orders")).await;
    assert!(wanted.status < 300, "{wanted:?}");
    let asks = shop.get(&shop.lea, "/api/v1/asks").await.body;
    let ask = &asks["items"][0];
    assert_eq!(ask["calls"][0]["arguments"]["query"], "status:cancelled", "{asks}");
    let decided = decide(&shop, &shop.lea, ask, false).await;
    assert_eq!(decided.status, 200, "{decided:?}");
    assert_eq!(shop.count(&shop.lea, "Order", "").await, before);
}

async fn keyed(shop: &Shop, path: &str, key: &str, body: &Value) -> Answer {
    shop.send(&shop.lea, Method::POST, path, &[("idempotency-key", key)], body.clone()).await
}

#[tokio::test]
async fn a_key_that_is_sent_twice_writes_once() {
    let shop = Shop::new().await;
    let save = json!({"rootType": "Location", "entity": {"city": "Rome"}});
    let execute = json!({"tool": "query_save", "arguments": save});
    for (path, body) in [("/api/query/save", &save), ("/api/agent/execute", &execute)] {
        let first = keyed(&shop, path, "k-1", body).await;
        let second = keyed(&shop, path, "k-1", body).await;
        assert_eq!((first.status, second.status), (200, 200), "{second:?}");
        assert_eq!(first.body, second.body, "{path}");
    }
    assert_eq!(shop.count(&shop.lea, "Location", "city:Rome").await, 2, "one for each path");
    let merge = json!({"rootType": "Location", "merge": true,
        "entity": {"id": id(1), "state": "GA"}});
    for _ in 0..3 {
        let merged = keyed(&shop, "/api/query/save", "k-2", &merge).await;
        assert_eq!(merged.body["version"], 2, "{merged:?}");
    }
}

#[tokio::test]
async fn a_deletion_that_is_sent_twice_deletes_no_more() {
    let shop = Shop::new().await;
    let many = open_orders();
    let first = keyed(&shop, "/api/query/deleteMany", "k-1", &many).await;
    assert_eq!(first.body["deletedCount"], 2, "{first:?}");
    shop.saved(&shop.lea, "Order", super::order(1, "ann", "ada", "open")).await;
    let again = keyed(&shop, "/api/query/deleteMany", "k-1", &many).await;
    assert_eq!(again.body, first.body);
    assert_eq!(shop.count(&shop.lea, "Order", "status:open").await, 1);
    let one = json!({"rootType": "Location", "id": id(3)});
    for _ in 0..2 {
        let gone = keyed(&shop, "/api/query/delete", "k-2", &one).await;
        assert_eq!((gone.status, &gone.body["success"]), (200, &json!(true)), "{gone:?}");
    }
}

#[tokio::test]
async fn a_key_is_its_callers_own() {
    let shop = Shop::new().await;
    let save = json!({"rootType": "Note", "entity": {"body": "mine"}});
    let headers = [("idempotency-key", "k-1")];
    let mut ids = Vec::new();
    for who in [&shop.ann, &shop.bob, &shop.ann] {
        let saved = shop.send(who, Method::POST, "/api/query/save", &headers, save.clone()).await;
        assert_eq!(saved.status, 200, "{saved:?}");
        ids.push(text(&saved.body["id"]));
    }
    assert_ne!(ids[0], ids[1]);
    assert_eq!(ids[0], ids[2]);
    let bad = keyed(&shop, "/api/query/save", "two words", &save).await;
    assert_eq!(named(&bad).0, 400, "{bad:?}");
}
