//! `[tools]`: what an operator says of tools, as it is seen from outside.

use crate::house::{ADDRESS, House, assembled, refused, text};
use project::config::Config;
use project::folder::Project;
use serde_json::json;

fn ruled(settings: &str) -> Project {
    let mut project = Project::demo();
    project.config = Config::parse("waypost.toml", settings).unwrap();
    project
}

#[tokio::test]
async fn whoever_calls_too_often_is_answered_429() {
    let settings = "[tools.limits.\"math::*\"]\nper_minute = 2\n";
    let house = House::build(ruled(settings), None).await;
    let path = "/api/v1/tools/math::add/call";
    let body = json!({"arguments": {"a": 1, "b": 2}});
    for _ in 0..2 {
        assert_eq!(house.post(path, body.clone()).await.status, 200);
    }
    let late = house.post(path, body).await;
    assert_eq!(late.refusal(), refused(429, "rate_limited", &[]));
    let retry_ms = late.body["retryAfterMs"].as_u64().unwrap();
    let seconds: u64 = late.header("retry-after").parse().unwrap();
    assert_eq!(seconds, retry_ms.div_ceil(1_000));
    assert!((1..=30).contains(&seconds), "{late:?}");
    assert!(text(&late.body["hint"]).contains("per_minute"), "{late:?}");
}

#[tokio::test]
async fn what_is_kept_out_is_neither_listed_nor_called() {
    let settings = "[tools]\nallow = [\"math::*\", \"validate::*\", \"test::*\"]\n\
                    deny = [\"math::fan_out\"]\n";
    let house = House::build(ruled(settings), None).await;
    let all = house.get("/api/v1/tools").await.body;
    let names: Vec<String> =
        all["items"].as_array().unwrap().iter().map(|tool| text(&tool["name"])).collect();
    let expected = [
        "math::add", "math::conditional_add", "test::always_fail", "test::plan_that_fails",
        "validate::is_positive",
    ];
    assert_eq!(names, expected);
    for name in ["http::request", "math::fan_out"] {
        let shown = house.get(&format!("/api/v1/tools/{name}")).await;
        assert_eq!(shown.refusal(), refused(404, "not_found", &[]), "{name}");
        let called = house.post(&format!("/api/v1/tools/{name}/call"), json!({})).await;
        assert_eq!(called.refusal(), refused(404, "not_found", &[]), "{name}");
    }
    // The rules are about tools: a plan that is none can be run.
    let run = house.run(json!({"planId": "interaction::greeting"})).await;
    assert_eq!(run["run"]["status"], "waiting");
}

#[tokio::test]
async fn a_server_warns_of_rules_that_fit_nothing() {
    let data = tempfile::tempdir().unwrap();
    let settings = "[tools]\ndeny = [\"htpp::request\"]\n";
    let started = assembled(ruled(settings), &data, ADDRESS.parse().unwrap(), None).await;
    let told: Vec<String> = started.warnings.iter().map(ToString::to_string).collect();
    let expected = "warning: `htpp::request` in `deny` of `[tools]` fits no tool and no plan; \
                    hint: did you mean `http::request`?";
    assert_eq!(told.last().map(String::as_str), Some(expected), "{told:?}");
}
