//! `/api/v1/providers`: upstreams that are stored, started and removed over HTTP.

use crate::house::House;
use serde_json::json;
use server::config::Config;
use server::project::Project;

const PATH: &str = "/api/v1/providers/crm";

async fn house() -> House {
    let settings = "[mcp.servers.web]\nurl = \"http://127.0.0.1:1/mcp\"\n";
    let config = Config::parse("waypost.toml", settings).unwrap();
    let project = Project { config, ..Project::demo() };
    House::with_variables(project, &[("WAYPOST_PROVIDER_CRM", "hunter2"), ("OTHER", "x")]).await
}

#[tokio::test]
async fn a_provider_is_stored_started_and_removed() {
    let house = house().await;
    let body = json!({"providerType": "mcp", "baseUrl": "http://127.0.0.1:1/mcp",
        "headers": {"Authorization": "Bearer ${WAYPOST_PROVIDER_CRM}"}});
    let stored = house.put(PATH, &[("if-none-match", "*")], body.clone()).await;
    assert_eq!((stored.status, stored.header("etag")), (201, "\"1\""), "{stored:?}");
    assert_eq!(stored.body["refName"], "crm");
    assert_eq!(stored.body["providerType"], "MCP");
    let upstream = house.get("/api/v1/upstreams/crm").await;
    assert_eq!(upstream.body["origin"], "stored provider `crm`", "{upstream:?}");
    assert!(!upstream.text.contains("hunter2"), "{upstream:?}");

    let again = house.put(PATH, &[("if-none-match", "*")], body.clone()).await;
    assert_eq!((again.status, &again.body["code"]), (412, &json!("version_conflict")));
    let shown = house.get(PATH).await;
    assert_eq!((shown.status, shown.header("etag")), (200, "\"1\""));
    let next = house.put(PATH, &[("if-match", "\"1\"")], shown.body.clone()).await;
    assert_eq!((next.status, next.header("etag")), (200, "\"2\""), "what was read is taken");

    assert_eq!(house.delete(PATH).await.status, 204);
    assert_eq!(house.delete(PATH).await.status, 404);
    assert_eq!(house.get(PATH).await.status, 404);
    assert_eq!(house.get("/api/v1/upstreams/crm").await.status, 404);
}

#[tokio::test]
async fn what_cannot_be_used_is_not_stored() {
    let house = house().await;
    let url = "http://127.0.0.1:1/mcp";
    for (body, words) in [
        (json!({"baseUrl": "nowhere", "providerType": "MCP"}), "is not the address"),
        (json!({"baseUrl": url, "providerType": "SOAP"}), "is no type of provider"),
        (json!({"baseUrl": url, "headers": {"X-Key": "hunter2"}}), "secrets are not stored"),
        (json!({"baseUrl": url, "headers": {"X-Key": "${OTHER}"}}), "`OTHER` is not set"),
        (json!({"baseUrl": url, "document": "/etc/passwd"}), "is no URL of a document"),
        (json!({"baseUrl": url, "refName": "other"}), "is not the name in the path"),
    ] {
        let refused = house.put(PATH, &[], body.clone()).await;
        assert_eq!(refused.status, 422, "{body}: {refused:?}");
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{body}: {detail}");
        assert!(!detail.contains("hunter2"), "{detail}");
    }
    let taken = house.put("/api/v1/providers/web", &[], json!({"baseUrl": url})).await;
    assert_eq!((taken.status, &taken.body["code"]), (409, &json!("upstream_configured")));
    assert_eq!(house.get(PATH).await.status, 404);
}
