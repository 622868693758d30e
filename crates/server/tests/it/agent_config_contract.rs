//! `/api/agent/config`: agents as a framework's entities.

use crate::house::{House, demo_with_agents};
use serde_json::{Value, json};

const BASE: &str = "/api/agent/config";

fn at(path: &str) -> String {
    format!("{BASE}{path}?realm=default")
}

fn entity() -> Value {
    json!({
        "refName": "reader", "name": "Reader", "llmConfigRef": "openai",
        "context": [{"order": 1, "role": "system", "content": "Read only, for {{tenantName}}."}],
        "enabledTools": ["query_find", "query_plan"],
        "dataDomain": {"tenantId": "acme"},
    })
}

#[tokio::test]
async fn an_entity_is_kept_as_it_came() {
    let house = House::demo().await;
    let saved = house.post(&at(""), entity()).await;
    assert_eq!(saved.status, 200, "{saved:?}");
    let id = saved.body["id"].as_str().unwrap().to_owned();
    assert_eq!(id.len(), 24, "an id is assigned");
    let mut expected = entity();
    expected["id"] = json!(id);
    assert_eq!(saved.body, expected);
    assert_eq!(house.get(&at("/reader")).await.body, expected);
    assert_eq!(house.get(&at(&format!("/id/{id}"))).await.body, expected);
    assert_eq!(house.get(&at("/list")).await.body, json!([expected]));
    // It is the same agent at the other endpoint.
    let shown = house.get("/api/v1/agents/reader").await;
    assert_eq!((&shown.body["version"], &shown.body["agent"]), (&json!(1), &expected));
}

#[tokio::test]
async fn a_name_is_one_agents_whether_it_comes_with_an_id_or_not() {
    let house = House::demo().await;
    let first = house.post(&at(""), entity()).await.body;
    let mut changed = entity();
    changed["name"] = json!("Another reader");
    let second = house.post(&at("/"), changed).await;
    assert_eq!((second.status, &second.body["id"]), (200, &first["id"]), "it keeps its id");
    assert_eq!(house.get(&at("/list/")).await.body.as_array().unwrap().len(), 1);
    let mut chosen = entity();
    chosen["id"] = json!("6571a1f0c2a4d5e6f7081920");
    assert_eq!(house.post(&at(""), chosen.clone()).await.body["id"], chosen["id"]);
    assert_eq!(house.post(&at(""), entity()).await.body["id"], chosen["id"]);
    chosen["refName"] = json!("other");
    let taken = house.post(&at(""), chosen).await;
    assert_eq!((taken.status, &taken.body["code"]), (409, &json!("id_taken")));
}

#[tokio::test]
async fn a_realm_must_be_named_at_all_six_routes() {
    let house = House::demo().await;
    house.post(&at(""), entity()).await;
    for query in ["", "?realm=", "?realm=%20"] {
        let answers = [
            house.get(&format!("{BASE}/list{query}")).await,
            house.get(&format!("{BASE}/reader{query}")).await,
            house.get(&format!("{BASE}/id/x{query}")).await,
            house.post(&format!("{BASE}{query}"), entity()).await,
            house.delete(&format!("{BASE}/reader{query}")).await,
            house.delete(&format!("{BASE}/id/x{query}")).await,
        ];
        for answer in answers {
            assert_eq!(answer.status, 400, "{answer:?}");
            assert_eq!(answer.body["error"], "realm query parameter is required");
        }
    }
    let elsewhere = house.get(&format!("{BASE}/list?realm=acme")).await;
    assert_eq!((elsewhere.status, &elsewhere.body["code"]), (404, &json!("not_found")));
}

#[tokio::test]
async fn a_missing_agent_is_404_and_a_removal_is_confirmed() {
    let house = House::demo().await;
    let id = house.post(&at(""), entity()).await.body["id"].clone();
    let id = id.as_str().unwrap();
    let missing = house.get(&at("/nobody")).await;
    assert_eq!((missing.status, &missing.body["error"]), (404, &json!("agent not found: nobody")));
    assert_eq!(house.get(&at("/id/0123")).await.body["error"], "agent not found: 0123");
    let gone = house.delete(&at("/reader/")).await;
    assert_eq!((gone.status, gone.body), (200, json!({"deleted": true, "refName": "reader"})));
    assert_eq!(house.delete(&at("/reader")).await.status, 404);
    assert_eq!(house.post(&at(""), entity()).await.body["id"], id, "the id is always the same");
    let gone = house.delete(&at(&format!("/id/{id}"))).await;
    assert_eq!((gone.status, gone.body), (200, json!({"deleted": true, "id": id})));
    assert_eq!(house.delete(&at(&format!("/id/{id}"))).await.status, 404);
    assert_eq!(house.get(&at("/list")).await.body, json!([]));
}

#[tokio::test]
async fn an_invalid_agent_is_refused_in_the_endpoints_own_shape() {
    let house = House::demo().await;
    let refused = house.post(&at(""), json!({"refName": "x", "enabledTools": ["a b"]})).await;
    assert_eq!((refused.status, &refused.body["code"]), (422, &json!("invalid_agent")));
    assert!(refused.body["error"].as_str().unwrap().contains("`llmConfigRef` is missing"));
    assert!(refused.body["trace_id"].is_string(), "{refused:?}");
    let nameless = house.post(&at(""), json!({"llmConfigRef": "openai"})).await;
    assert_eq!(nameless.status, 422, "{nameless:?}");
    assert_eq!(house.post_text(&at(""), "{").await.status, 400);
    let wrong = house.post(&at("/reader"), entity()).await;
    assert_eq!(wrong.status, 405);
    assert!(wrong.body["hint"].as_str().unwrap().contains("GET or DELETE"), "{wrong:?}");
}

#[tokio::test]
async fn an_agent_of_a_file_is_an_entity_that_cannot_be_changed() {
    let text = "refName: desk\nllmConfigRef: m\npromptSteps: [{content: hi}]\n";
    let house = House::build(demo_with_agents(&[("agents/desk.yaml", text)]), None).await;
    let shown = house.get(&at("/desk")).await.body;
    assert_eq!(shown["context"], json!([{"content": "hi"}]));
    let id = shown["id"].as_str().unwrap();
    let body = json!({"refName": "desk", "llmConfigRef": "other"});
    for answer in [
        house.post(&at(""), body).await,
        house.delete(&at("/desk")).await,
        house.delete(&at(&format!("/id/{id}"))).await,
    ] {
        assert_eq!((answer.status, &answer.body["code"]), (409, &json!("agent_in_file")));
    }
}
