//! `/livez`, `/readyz`, `/metrics`.

use crate::api_keys::{ADMIN, Key, asking, get};
use crate::house::{ADDRESS, House, refused};
use axum::body::Body;
use axum::http::Request;
use project::folder::Project;
use serde_json::json;
use std::path::Path;

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
async fn only_a_reader_of_all_realms_sees_verbose_readiness() {
    let house = asking("").await;
    let body = json!({"name": "ann", "realms": {"default": ["admin"]}});
    let ann = Key::created(&house, ADMIN, body).await;
    let plain = json!({"status": "ready"});
    let more = json!({"status": "ready", "reloadRefused": false});
    for (credential, path, expected) in [
        (ann.text.as_str(), "/readyz", &plain),
        (ann.text.as_str(), "/readyz?verbose", &plain),
        (ADMIN, "/readyz", &plain),
        (ADMIN, "/readyz?verbose", &more),
    ] {
        let answer = get(&house, credential, path).await;
        assert_eq!((answer.status, &answer.body), (200, expected), "{path}");
    }
    let stranger = house.get("/readyz?verbose").await;
    assert_eq!(stranger.status, 401, "{stranger:?}");
}

#[tokio::test]
async fn a_client_with_a_challenge_learns_which_server_answers() {
    let asked = async |house: &House, challenge: &str| {
        let request = Request::get("/livez").header("host", ADDRESS);
        let request = request.header("waypost-challenge", challenge).body(Body::empty());
        house.send(request.unwrap()).await.body
    };
    let house = House::demo().await;
    let told = asked(&house, "one").await;
    let instance = &told["instance"];
    assert_eq!(instance["pid"], std::process::id());
    assert!(Path::new(instance["data"].as_str().unwrap()).is_absolute(), "{told}");
    assert_eq!(asked(&house, "one").await, told);
    assert_ne!(asked(&house, "two").await["instance"]["proof"], instance["proof"]);
    // Another server has another token.
    let other = House::build(Project::demo(), Some("key")).await;
    let proven = asked(&other, "one").await;
    assert_ne!(proven["instance"]["proof"], instance["proof"]);
    // And who may not administer it learns nothing but the proof.
    let members: Vec<&String> = proven["instance"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["proof"]);
    assert_eq!(asked(&house, &"x".repeat(65)).await, json!({"status": "live"}));
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

#[tokio::test]
async fn an_administrator_of_one_realm_learns_nothing_of_the_machine() {
    let house = asking("").await;
    let body = json!({"name": "acme", "realms": {"default": ["admin"]}});
    let of_realm = Key::created(&house, ADMIN, body).await.text;
    for (key, is_told) in [(ADMIN, true), (of_realm.as_str(), false)] {
        let request = Request::get("/livez").header("host", ADDRESS).header("x-api-key", key);
        let request = request.header("waypost-challenge", "one").body(Body::empty());
        let instance = house.send(request.unwrap()).await.body["instance"].clone();
        assert!(instance["proof"].is_string(), "{instance}");
        let told = [instance.get("pid").is_some(), instance.get("data").is_some()];
        assert_eq!(told, [is_told; 2], "{instance}");
    }
}
