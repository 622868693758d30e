//! `/openapi.json`.

use crate::house::{House, request};
use axum::body::Body;
use axum::http::Method;
use serde_json::Value;

#[tokio::test]
async fn the_document_is_served() {
    let house = House::demo().await;
    let answer = house.get("/openapi.json").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.body, server::openapi());
    assert_eq!(answer.body["openapi"], "3.1.0");
    assert_eq!(answer.body["info"]["title"], "Waypost");
}

#[tokio::test]
async fn the_document_is_made_once_and_not_sent_to_a_client_that_has_it() {
    let house = House::demo().await;
    let first = house.get("/openapi.json").await;
    let tag = first.header("etag").to_owned();
    assert!(tag.starts_with('"') && tag.len() > 2, "a strong tag: {tag}");
    assert_eq!(first.header("cache-control"), "private, no-cache");
    let again = house.get("/openapi.json").await;
    assert_eq!((again.header("etag"), &again.text), (&*tag, &first.text));
    for (given, status) in [(tag.as_str(), 304), ("\"other\"", 200)] {
        let mut asked = request(Method::GET, "/openapi.json", Body::empty());
        asked.headers_mut().insert("if-none-match", given.parse().unwrap());
        let answer = house.open(asked).await;
        assert_eq!(answer.status().as_u16(), status, "{given}");
        assert_eq!(answer.headers()["etag"].to_str().unwrap(), tag);
    }
}

#[tokio::test]
async fn examples_of_requests_are_requests() {
    let house = House::demo().await;
    let document = server::openapi();
    let examples = |name: &str| -> Vec<Value> {
        document["components"]["schemas"][name]["examples"].as_array().unwrap().clone()
    };
    for body in examples("CreateSession") {
        assert_eq!(house.post("/sessions", body).await.status, 201);
    }
    // An agent that is talked to needs a model, which the demo need not have.
    let of_plans = |body: &Value| body.get("agent").is_none();
    for body in examples("RunBody").into_iter().filter(of_plans) {
        assert_eq!(house.post("/api/v1/runs", body).await.status, 200);
    }
    for body in examples("ExecutePlan") {
        let answer = house.post("/sessions/order-7/execute-plan", body).await;
        assert_eq!(answer.status, 202);
    }
    for body in examples("CallBody") {
        assert_eq!(house.post("/api/v1/tools/math::add/call", body).await.status, 200);
    }
    for body in examples("Plan") {
        let answer = house.post("/api/v1/plans/validate", body).await;
        assert_eq!(answer.body["valid"], true, "{answer:?}");
    }
    for body in examples("Discover") {
        assert_eq!(house.post("/capabilities/discover", body).await.status, 200);
    }
    for body in examples("Register") {
        assert_eq!(house.post("/admin/capabilities", body).await.status, 201);
    }
    for body in examples("Agent") {
        assert_eq!(house.post("/api/agent/config?realm=default", body).await.status, 200);
    }
    for body in examples("PrincipalBody") {
        let answer = house.put("/api/v1/principals/ann", &[], body).await;
        assert!([200, 201].contains(&answer.status), "{answer:?}");
    }
    for body in examples("KeyBody") {
        assert_eq!(house.post("/api/v1/keys", body).await.status, 201);
    }
    for body in examples("RealmBody") {
        assert_eq!(house.post("/api/v1/realms", body).await.status, 201);
    }
    for body in examples("ForkBody") {
        assert_eq!(house.post("/api/v1/sessions/order-7/fork", body).await.status, 201);
    }
    for body in examples("PruneBody") {
        assert_eq!(house.post("/api/v1/sessions/prune", body).await.status, 200);
    }
}
