//! `/api/v1/upstreams`: what is shown of the servers behind this one, and what never is.

use crate::house::House;
use serde_json::{Value, json};
use server::config::Config;
use server::project::Project;

/// Nobody listens on port 1.
const SETTINGS: &str = "[mcp.servers.web]\nurl = \"http://u:hunter2@127.0.0.1:1/mcp?k=${TOKEN}\"\n\
     headers = { Authorization = \"Bearer ${TOKEN}\" }\ntrusted = true\ntimeout_ms = 5000\n\
     [mcp.servers.off]\ncommand = \"x\"\nenv = { A = \"hunter2\" }\ndisabled = true\n\
     [mcp.servers.self]\nurl = \"http://127.0.0.1:8420/mcp\"\n";

async fn house() -> House {
    let config = Config::parse("waypost.toml", SETTINGS).unwrap();
    let project = Project { config, ..Project::demo() };
    House::with_variables(project, &[("TOKEN", "hunter2")]).await
}

#[tokio::test]
async fn upstreams_are_shown_without_secrets() {
    let house = house().await;
    let answer = house.get("/api/v1/upstreams").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!answer.text.contains("hunter2"), "{answer:?}");
    let items = answer.body["items"].as_array().unwrap();
    let names: Vec<&Value> = items.iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["off", "web"], "our own address is left out");
    let off = &items[0];
    assert_eq!((&off["state"], &off["env"]), (&json!("disabled"), &json!(["A"])));
    let web = house.get("/api/v1/upstreams/web").await.body;
    assert_eq!(web["target"], "http://127.0.0.1:1/mcp");
    assert_eq!((&web["headers"], &web["prefix"]), (&json!(["Authorization"]), &json!("web.")));
    assert_eq!((&web["trusted"], &web["timeoutMs"]), (&json!(true), &json!(5000)));
    assert_eq!(web["origin"], "waypost.toml:1");
    let page = house.get("/api/v1/upstreams?limit=1").await.body;
    assert_eq!(page["nextCursor"], "off");
    let missing = house.get("/api/v1/upstreams/wbe").await;
    assert_eq!((missing.status, &missing.body["hint"]), (404, &json!("did you mean `web`?")));
}

#[tokio::test]
async fn a_check_answers_how_it_is_now() {
    let house = house().await;
    let checked = house.post("/api/v1/upstreams/web/check", json!({})).await;
    assert_eq!((checked.status, &checked.body["state"]), (200, &json!("failing")), "{checked:?}");
    assert!(checked.body["lastError"]["message"].is_string(), "{checked:?}");
    assert!(!checked.text.contains("hunter2"), "{checked:?}");
    let off = house.post("/api/v1/upstreams/off/check", json!({})).await;
    assert_eq!((off.status, &off.body["code"]), (409, &json!("upstream_disabled")), "{off:?}");
    let missing = house.post("/api/v1/upstreams/none/check", json!({})).await;
    assert_eq!(missing.status, 404, "{missing:?}");
    // One that cannot be reached takes nothing from the others.
    let tools = house.get("/api/v1/tools").await.body;
    assert!(tools["items"].as_array().unwrap().iter().any(|tool| tool["name"] == "math::add"));
}

#[tokio::test]
async fn only_who_administers_may_check() {
    let house = House::build(Project::demo(), Some("secret")).await;
    let refused = house.post("/api/v1/upstreams/none/check", json!({})).await;
    assert_eq!(refused.status, 401, "{refused:?}");
}
