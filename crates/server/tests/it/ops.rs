//! `/livez`, `/readyz`, `/metrics`.

use crate::house::{House, refused};
use serde_json::json;

#[tokio::test]
async fn health_follows_the_engine() {
    let house = House::demo().await;
    let live = house.get("/livez").await;
    assert_eq!((live.status, live.body), (200, json!({"status": "live"})));
    let ready = house.get("/readyz").await;
    assert_eq!((ready.status, ready.body), (200, json!({"status": "ready"})));
    house.engine.stop().await;
    assert_eq!(house.get("/readyz").await.refusal(), refused(503, "stopping", &[]));
    assert_eq!(house.get("/livez").await.status, 200);
    let refusal = house.post("/api/v1/runs", json!({"planId": "interaction::greeting"})).await;
    assert_eq!(refusal.refusal(), refused(503, "stopping", &[]));
}

#[tokio::test]
async fn metrics_count_what_happened() {
    let house = House::demo().await;
    house.run(json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 1}})).await;
    house.greeting().await;
    let metrics = house.get("/metrics").await;
    assert_eq!(metrics.status, 200);
    assert!(metrics.header("content-type").starts_with("application/openmetrics-text"));
    for line in [
        "waypost_runs_started_total 2",
        "waypost_runs_ended_total{status=\"completed\"} 1",
        "waypost_calls_started_total 2",
        "waypost_asks_opened_total 1",
        "waypost_asks_open{kind=\"fill\"} 1",
        "waypost_run_duration_seconds_count{kind=\"plan\",status=\"completed\"} 1",
        "waypost_ready 1",
        "waypost_disk_full 0",
        "# EOF",
    ] {
        assert!(metrics.text.lines().any(|told| told == line), "{line}\n{}", metrics.text);
    }
}
