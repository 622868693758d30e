//! `/api/v1/asks`.

use crate::house::{House, approval, encoded, question, refused, text};
use serde_json::{Value, json};

fn first_ask(started: &Value) -> String {
    format!("/api/v1/asks/{}", text(&started["run"]["asks"][0]["id"]))
}

/// An ask without what it says of its reader, and without what its tools said of themselves.
fn without_yours(ask: &Value) -> Value {
    let mut ask = ask.clone();
    ask.as_object_mut().unwrap().remove("yours");
    let calls = ask.get_mut("calls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten() {
        let call = call.as_object_mut().unwrap();
        for member in ["title", "inputSchema"] {
            call.remove(member);
        }
    }
    ask
}

#[tokio::test]
async fn the_inbox_lists_what_is_open() {
    let house = House::demo().await;
    let greeting = house.greeting().await;
    let failing = house.run(json!({"planId": "test::plan_that_fails", "session": "f"})).await;
    let all = house.get("/api/v1/asks").await.body;
    let kinds: Vec<String> =
        all["items"].as_array().unwrap().iter().map(|ask| text(&ask["kind"])).collect();
    assert_eq!(kinds, ["fill", "fix"]);
    let fixes = house.get("/api/v1/asks?kind=fix&status=open&session=f").await.body;
    assert_eq!(fixes["items"].as_array().unwrap().len(), 1);
    assert_eq!(without_yours(&fixes["items"][0]), failing["run"]["asks"][0]);
    let run = text(&greeting["run"]["id"]);
    let of_run = house.get(&format!("/api/v1/asks?run={run}&step=ask_name")).await.body;
    assert_eq!(of_run["items"][0]["id"], greeting["run"]["asks"][0]["id"]);
    let page = house.get("/api/v1/asks?limit=1").await.body;
    let rest =
        house.get(&format!("/api/v1/asks?cursor={}", encoded(&page["nextCursor"]))).await.body;
    assert_eq!(rest["items"][0]["kind"], "fix");
    for query in ["kind=fil", "status=opne", "run=x", "limit=x", "who=me"] {
        let answer = house.get(&format!("/api/v1/asks?{query}")).await;
        assert_eq!(answer.refusal(), refused(400, "bad_query", &[]), "{query}");
    }
    assert_eq!(house.get("/api/v1/asks?session=nope").await.status, 404);
    let unknown = format!("ask_{}", "0".repeat(32));
    for id in ["nope", unknown.as_str()] {
        let path = format!("/api/v1/asks/{id}");
        assert_eq!(house.get(&path).await.refusal(), refused(404, "not_found", &[]));
        assert_eq!(house.post(&path, json!({})).await.status, 404);
    }
    let answer = house.post(&format!("/api/v1/asks/{unknown}"), json!({})).await;
    assert_eq!(answer.body["hint"], "`GET /api/v1/asks` lists the open asks");
}

#[tokio::test]
async fn a_form_takes_what_fits_and_stays_open_for_what_does_not() {
    let house = House::demo().await;
    let started = house.greeting().await;
    let ask = first_ask(&started);
    let shown = house.get(&ask).await.body;
    // Whose answer would be taken is said where an ask is read by itself.
    assert_eq!(shown["yours"], json!({"answer": true}));
    assert_eq!(shown["plan"], "interaction::greeting");
    assert_eq!(without_yours(&shown), started["run"]["asks"][0]);
    assert_eq!(shown["body"], "What is your name?");
    assert_eq!(shown["mayAnswer"], json!(["*"]));
    assert_eq!(shown["expiresAt"], Value::Null);
    for (body, expected) in [
        (json!({}), refused(422, "wrong_shape", &[""])),
        (json!({"action": "perhaps"}), refused(422, "wrong_shape", &["/action"])),
        (json!({"action": "accept"}), refused(422, "wrong_shape", &["/content"])),
        (json!({"action": "decline", "content": {}}), refused(400, "contradiction", &[])),
        (
            json!({"action": "accept", "content": {"name": ""}}),
            refused(422, "input_misfit", &["/content/name"]),
        ),
    ] {
        let answer = house.post(&ask, body.clone()).await;
        assert_eq!(answer.refusal(), expected, "{body}: {answer:?}");
        assert_eq!(house.get(&ask).await.body["status"], "open");
    }
    let other = house.post(&ask, json!({"answer": "Ann"})).await;
    assert_eq!(other.refusal().1, "wrong_shape", "a reply of another kind");
    let done = house.post(&ask, json!({"action": "accept", "content": {"name": "Ann"}})).await;
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(done.body["run"]["answer"], "Hello, Ann!");
    assert_eq!(done.body["ask"]["status"], "decided");
    assert_eq!(done.body["ask"]["decision"]["by"], "local");
    assert_eq!(done.body["ask"]["decision"]["via"], "rest");
    assert_eq!(done.body["ask"]["decision"]["reply"]["content"], json!({"name": "Ann"}));
    let late = house.post(&ask, json!({"action": "accept", "content": {"name": "Bob"}})).await;
    assert_eq!(late.refusal(), refused(409, "ask_decided", &[]));
    assert_eq!(late.body["state"], "decided");
    assert_eq!(late.body["decision"]["reply"]["content"], json!({"name": "Ann"}));
    assert_eq!(late.body["decision"]["via"], "rest");
    assert_eq!(house.get("/api/v1/asks").await.body["items"], json!([]));
    let any = house.get("/api/v1/asks?status=any").await.body;
    assert_eq!(any["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_declined_form_ends_the_run() {
    let house = House::demo().await;
    let ask = first_ask(&house.greeting().await);
    let declined = house.post(&ask, json!({"action": "decline"})).await;
    assert_eq!(declined.body["run"]["status"], "failed", "{declined:?}");
    assert_eq!(declined.body["run"]["lastError"]["name"], "Declined");
}

#[tokio::test]
async fn a_question_takes_any_answer() {
    let house = House::demo().await;
    let started = house.run(json!({"plan": question()})).await;
    assert_eq!(started["run"]["asks"][0]["kind"], "clarify");
    let ask = first_ask(&started);
    let empty = house.post(&ask, json!({})).await;
    assert_eq!(empty.refusal(), refused(422, "wrong_shape", &["/answer"]));
    let done = house.post(&ask, json!({"answer": "yes"})).await;
    assert_eq!(done.body["run"]["answer"], "yes", "{done:?}");
}

#[tokio::test]
async fn an_approval_decides_every_call() {
    let house = House::demo().await;
    let started = house.run(json!({"plan": approval()})).await;
    let shown = &started["run"]["asks"][0];
    assert_eq!(shown["kind"], "approve");
    assert_eq!(shown["calls"][0]["tool"], "math::add");
    assert_eq!(shown["calls"][0]["arguments"], json!({"a": 1, "b": 2}));
    assert_eq!(shown["next"], json!({"yes": {"step": "end"}, "no": {"ends": true}}));
    assert_eq!(shown["calls"][0]["why"], json!({"by": "plan"}));
    assert_eq!(shown["calls"][0]["reach"], "reads");
    assert_eq!(shown["calls"][0].get("inputSchema"), None, "it is read with the ask itself");
    let ask = first_ask(&started);
    let read = house.get(&ask).await.body;
    let listed = house.get("/api/v1/asks").await.body;
    for whole in [&read, &listed["items"][0]] {
        let asked = without_yours(whole);
        let call = &whole["calls"][0];
        assert_eq!(&asked, shown);
        let tool = house.get("/api/v1/tools/math::add").await.body;
        assert_eq!(call["title"], "Add", "{whole}");
        assert_eq!(call["inputSchema"], tool["inputSchema"], "{whole}");
    }
    let call = &shown["calls"][0]["callId"];
    let none = house.post(&ask, json!({"decisions": []})).await;
    assert_eq!(none.refusal(), refused(400, "calls_mismatch", &["/decisions"]));
    let odd = house.post(&ask, json!({"decisions": [{"callId": "x", "approve": true}]})).await;
    assert_eq!(odd.refusal(), refused(422, "wrong_shape", &["/decisions/0/callId"]));
    let done = house.post(&ask, json!({"decisions": [{"callId": call, "approve": true}]})).await;
    assert_eq!(done.body["run"]["answer"], 3, "{done:?}");

    let started = house.run(json!({"plan": approval()})).await;
    let call = &started["run"]["asks"][0]["calls"][0]["callId"];
    let no = json!({"decisions": [{"callId": call, "approve": false, "feedback": "not now"}]});
    let rejected = house.post(&first_ask(&started), no).await;
    assert_eq!(rejected.body["run"]["status"], "failed", "{rejected:?}");
    assert_eq!(rejected.body["run"]["lastError"]["name"], "Rejected");
}

#[tokio::test]
async fn a_failed_step_is_retried_skipped_or_aborted() {
    let house = House::demo().await;
    let started = house.run(json!({"planId": "test::plan_that_fails"})).await;
    assert_eq!(started["run"]["status"], "stuck");
    assert_eq!(started["run"]["lastError"]["name"], "AlwaysFails");
    let shown = &started["run"]["asks"][0];
    assert_eq!((&shown["kind"], &shown["how"]), (&json!("fix"), &json!("failed")));
    assert_eq!(shown["fault"]["name"], "AlwaysFails");
    let ask = first_ask(&started);
    let bad = house.post(&ask, json!({"action": "retry", "output": 1})).await;
    assert_eq!(bad.refusal(), refused(422, "bad_action", &["/action"]));
    let retried = house.post(&ask, json!({"action": "retry"})).await;
    assert_eq!(retried.body["run"]["status"], "stuck", "{retried:?}");
    let next = format!("/api/v1/asks/{}", text(&retried.body["run"]["asks"][0]["id"]));
    assert_ne!(next, ask);
    let skipped = house.post(&next, json!({"action": "skip", "output": 7})).await;
    assert_eq!(skipped.body["run"]["status"], "completed", "{skipped:?}");
    let other = house.run(json!({"planId": "test::plan_that_fails"})).await;
    let aborted = house.post(&first_ask(&other), json!({"action": "abort"})).await;
    assert_eq!(aborted.body["run"]["status"], "failed", "{aborted:?}");
}
