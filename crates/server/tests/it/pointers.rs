//! Pointers of inline plans that would take the server down: each has an end, and a clear one.

use crate::house::{House, refused, text};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A plan whose answer is what this pointer selects.
fn pointing(pointer: &str) -> Value {
    json!({
        "planId": "it/pointing",
        "description": "points",
        "startStepId": "end",
        "steps": [{"id": "end", "type": "final_response", "message": {"jsonPath": pointer}}],
    })
}

/// How long it may take on a busy machine; what has no end takes longer.
const LIMIT: Duration = Duration::from_secs(120);

fn parentheses(levels: usize) -> String {
    format!("$.promptInput[?{}@{}]", "(".repeat(levels), ")".repeat(levels))
}

fn filters(levels: usize) -> String {
    format!("$.promptInput{}{}", "[?@".repeat(levels), "]".repeat(levels))
}

#[tokio::test]
async fn a_pointer_that_is_too_long_or_too_deep_is_refused_at_every_endpoint() {
    let house = House::demo().await;
    let session = house.post("/sessions", json!({"sessionId": "s"})).await;
    assert_eq!(session.status, 201, "{session:?}");
    let at = "/steps/0/message/jsonPath";
    let deep = "filters, parentheses and functions nest deeper than 32 levels";
    for (pointer, why) in [
        (parentheses(1_030), deep),
        (filters(510), deep),
        (parentheses(100_000), "it has 200017 bytes, more than 8192"),
    ] {
        let body = json!({"plan": pointing(&pointer)});
        for path in ["/api/v1/runs", "/sessions/s/execute-plan"] {
            let answer = house.post(path, body.clone()).await;
            let expected = refused(422, "invalid_plan", &[format!("/plan{at}").as_str()]);
            assert_eq!(answer.refusal(), expected, "{path}: {answer:?}");
        }
        let checked = house.post("/api/v1/plans/validate", pointing(&pointer)).await;
        assert_eq!((checked.status, &checked.body["valid"]), (200, &json!(false)), "{checked:?}");
        let errors = checked.body["errors"].as_array().unwrap();
        let told: Vec<String> = errors.iter().map(|error| text(&error["pointer"])).collect();
        assert_eq!(told, [at], "{checked:?}");
        assert!(checked.text.contains(why), "{checked:?}");
    }
}

#[tokio::test]
async fn nested_filters_are_read_at_once() {
    let house = House::demo().await;
    let begun = Instant::now();
    let done = house.run(json!({"plan": pointing(&filters(22)), "input": {"a": []}})).await;
    assert_eq!(done["run"]["answer"], json!([]));
    assert!(begun.elapsed() < LIMIT / 2, "it took {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_pointer_that_selects_without_end_fails_its_step() {
    let house = House::demo().await;
    let pointer = "$.promptInput..*..*..*..*..*..*";
    let deep = (0..55).fold(json!(1), |inner, _| json!([inner]));
    let begun = Instant::now();
    let body = json!({"plan": pointing(pointer), "input": {"deep": deep}});
    let stuck = house.post("/api/v1/runs?wait=300", body).await.body;
    assert!(begun.elapsed() < LIMIT, "it took {:?}", begun.elapsed());
    let why = "it looks at more than 2000000 nodes";
    let fault = json!({
        "name": "PointerError",
        "message": format!("pointer `{pointer}` cannot be resolved: {why}"),
        "hint": "select less, or raise `pointer_nodes_max` in [limits]",
    });
    let run = &stuck["run"];
    assert_eq!((&run["status"], &run["asks"][0]["kind"]), (&json!("stuck"), &json!("fix")));
    assert_eq!(run["asks"][0]["fault"], fault);
}
