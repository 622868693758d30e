//! `/api/v1/agents`: stored, versioned, listed and removed; those of files are changed there only.

use crate::house::{House, assembled, demo_with_agents, encoded, refused};
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};

const PATH: &str = "/api/v1/agents/helper";
const FILED: (&str, &str) = (
    "agents/desk.yaml",
    "refName: desk\nname: The desk\nllmConfigRef: rules\ntool_types: {sums: [\"math::*\"]}\n",
);

fn helper() -> Value {
    json!({"name": "Helper", "description": "helps", "llmConfigRef": "openai",
        "promptSteps": [{"content": "It is {{ now }}."}], "approve": ["math::*"]})
}

#[tokio::test]
async fn an_agent_is_stored_in_versions_and_removed() {
    let house = House::demo().await;
    assert_eq!(house.get(PATH).await.refusal(), refused(404, "not_found", &[]));
    let stored = house.put(PATH, &[("if-none-match", "*")], helper()).await;
    assert_eq!((stored.status, stored.header("etag")), (201, "\"1\""), "{stored:?}");
    assert_eq!(stored.body["agent"]["refName"], "helper", "it has the name of its path");
    assert_eq!((&stored.body["version"], &stored.body["fromFile"]), (&json!(1), &json!(false)));

    let again = house.put(PATH, &[("if-none-match", "*")], helper()).await;
    assert_eq!(again.refusal(), refused(412, "version_conflict", &[]));
    let shown = house.get(PATH).await;
    assert_eq!((shown.status, shown.header("etag")), (200, "\"1\""));
    let mut next = shown.body["agent"].clone();
    next["approve"] = json!([]);
    let next = house.put(PATH, &[("if-match", "\"1\"")], next).await;
    assert_eq!((next.status, next.header("etag")), (200, "\"2\""), "{next:?}");
    assert_ne!(next.body["hash"], shown.body["hash"]);
    let late = house.put(PATH, &[("if-match", "\"1\"")], helper()).await;
    assert_eq!(late.refusal(), refused(412, "version_conflict", &[]));
    assert_eq!(house.put(PATH, &[("if-match", "*")], helper()).await.status, 200);

    assert_eq!(house.delete(PATH).await.status, 204);
    assert_eq!(house.delete(PATH).await.refusal(), refused(404, "not_found", &[]));
    let gone = house.put(PATH, &[("if-match", "*")], helper()).await;
    assert_eq!(gone.refusal(), refused(412, "version_conflict", &[]));
}

#[tokio::test]
async fn each_mistake_of_an_agent_has_its_pointer() {
    let house = House::demo().await;
    let body = json!({"llmConfigRef": "openai", "promptSteps": [{"content": "{{ nwo }}"}],
        "limits": {"steps": 0}, "aprove": ["*"]});
    let refusal = house.put(PATH, &[], body).await;
    assert_eq!((refusal.status, &refusal.body["code"]), (422, &json!("invalid_agent")));
    let (_, _, mut pointers) = refusal.refusal();
    pointers.sort();
    assert_eq!(pointers, ["/aprove", "/limits/steps", "/promptSteps/0/content"]);
    assert!(refusal.text.contains("did you mean `approve`?"), "{refusal:?}");
    let other = json!({"refName": "other", "llmConfigRef": "openai"});
    assert_eq!(
        house.put(PATH, &[], other).await.refusal(),
        refused(422, "wrong_shape", &["/refName"])
    );
    assert_eq!(house.get(PATH).await.status, 404, "nothing was stored");
}

#[tokio::test]
async fn agents_of_files_are_listed_and_changed_only_there() {
    let mut project = demo_with_agents(&[FILED]);
    project.config = Config::parse("waypost.toml", "[agents]\ndefault = \"desk\"\n").unwrap();
    let house = House::build(project, None).await;
    house.put(PATH, &[], helper()).await;
    let listed = house.get("/api/v1/agents?limit=1").await.body;
    let desk = &listed["items"][0];
    assert_eq!((&desk["refName"], &desk["name"]), (&json!("desk"), &json!("The desk")));
    assert_eq!((&desk["fromFile"], &desk["default"]), (&json!(true), &json!(true)));
    assert_eq!((&desk["toolTypes"], &desk["version"]), (&json!(["sums"]), &Value::Null));
    let cursor = encoded(&listed["nextCursor"]);
    let rest = house.get(&format!("/api/v1/agents?cursor={cursor}")).await.body;
    assert_eq!(rest["items"][0]["refName"], "helper", "{cursor}");
    let shown = house.get("/api/v1/agents/desk").await;
    assert_eq!((shown.header("etag"), &shown.body["agent"]["llmConfigRef"]), ("", &json!("rules")));
    for answer in [
        house.put("/api/v1/agents/desk", &[], helper()).await,
        house.delete("/api/v1/agents/desk").await,
    ] {
        assert_eq!(answer.refusal(), refused(409, "agent_in_file", &[]));
        assert!(answer.body["hint"].as_str().unwrap().contains("`agents/`"), "{answer:?}");
    }
    let near = house.get("/api/v1/agents/dsek").await;
    assert_eq!(near.body["hint"], "did you mean `desk`?");
}

#[tokio::test]
async fn the_only_agent_is_the_default_one() {
    let mut project = demo_with_agents(&[FILED]);
    project.config = Config::parse("waypost.toml", "").unwrap();
    let house = House::build(project, None).await;
    let listed = house.get("/api/v1/agents").await.body;
    assert_eq!(listed["items"][0]["default"], true, "{listed}");
    assert_eq!(house.get("/api/v1/agents/desk").await.body["default"], true);
    house.put(PATH, &[], helper()).await;
    assert_eq!(house.get("/api/v1/agents/desk").await.body["default"], false);
    let said = house.post("/run", json!({"thread_id": "t", "user_request": "hello"})).await;
    assert_eq!((said.status, &said.body["code"]), (400, &json!("agent_needed")), "{said:?}");
    let hint = said.body["hint"].as_str().unwrap();
    assert!(hint.contains("`default` in `[agents]`"), "{hint}");
}

#[tokio::test]
async fn agents_that_cannot_work_are_warned_of_at_the_start() {
    let data = tempfile::tempdir().unwrap();
    let address = crate::house::ADDRESS.parse().unwrap();
    let mut project = demo_with_agents(&[FILED]);
    let settings = "[agents]\ndefault = \"dsek\"\n[models.rule]\nprovider = \"openai\"\n\
                    model = \"m\"\nbase_url = \"http://127.0.0.1:1/v1\"\n";
    project.config = Config::parse("waypost.toml", settings).unwrap();
    let assembled = assembled(project, &data, address, None).await;
    let told: Vec<String> = assembled.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "agents/desk.yaml:3:15: warning: agent `desk` names the model `rules`, which is not \
             there: its turns will fail; hint: did you mean `rule`?",
            "warning: `default` of `[agents]` names the agent `dsek`, which is not there; \
             hint: did you mean `desk`?",
        ]
    );
}

#[tokio::test]
async fn an_administrator_stores_agents() {
    let house = House::build(Project::demo(), Some("secret")).await;
    assert_eq!(house.put(PATH, &[], helper()).await.status, 401);
    assert_eq!(house.delete(PATH).await.status, 401);
    let key = [("authorization", "Bearer secret")];
    assert_eq!(house.put(PATH, &key, helper()).await.status, 201);
    assert_eq!(house.get(PATH).await.status, 200);
}
