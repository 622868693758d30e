//! `/api/v1/providers`: upstreams that are stored, started and removed over HTTP.

use crate::house::{House, request};
use axum::body::Body;
use axum::http::Method;
use futures::FutureExt;
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

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
async fn unusable_providers_are_not_stored() {
    let house = house().await;
    let url = "http://127.0.0.1:1/mcp";
    for (body, words) in [
        (json!({"baseUrl": "nowhere", "providerType": "MCP"}), "is not the address"),
        (json!({"baseUrl": url, "providerType": "SOAP"}), "is no type of provider"),
        (json!({"baseUrl": url, "headers": {"X-Key": "hunter2"}}), "secrets are not stored"),
        (
            json!({"baseUrl": url, "headers": {"X-Key": "${OTHER}"}}),
            "may not use the variable `OTHER`",
        ),
        (json!({"baseUrl": url, "document": "/etc/passwd"}), "is no URL of a document"),
        (json!({"baseUrl": url, "refName": "other"}), "is not the name in the path"),
        (json!({"baseUrl": "http://me:hunter2@127.0.0.1:1"}), "says who logs in"),
        (json!({"baseUrl": url, "headers": {"X": "${workspaceFolder}"}}), "says its value"),
        (json!({"baseUrl": url, "timeoutMs": 0}), "`timeoutMs` must be"),
        (json!({"baseUrl": url, "prefix": "web."}), "`web` (waypost.toml:1) begin with `web.`"),
        (
            json!({"baseUrl": "http://127.0.0.1:8420/mcp", "providerType": "MCP"}),
            "leads back to this server",
        ),
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

/// How long something may take on a busy machine that is done at once.
const LIMIT: Duration = Duration::from_secs(120);

/// Waits until the upstream answers with this status.
async fn until(house: &House, status: u16) {
    let seen = async {
        while house.get("/api/v1/upstreams/crm").await.status != status {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = timeout(LIMIT, seen).await;
    assert!(waited.is_ok(), "waited for `/api/v1/upstreams/crm` to answer {status}");
}

/// Sends a request and goes away before it is answered.
fn begin_and_leave(house: &House, method: Method, body: &Value) {
    let request = request(method, PATH, Body::from(body.to_string()));
    // It is looked at once, and then let go.
    let left = house.open(request).now_or_never();
    assert!(left.is_none(), "it was answered at once: {left:?}");
}

#[tokio::test]
async fn the_stored_and_the_running_provider_stay_the_same() {
    let house = house().await;
    let body = json!({"providerType": "MCP", "baseUrl": "http://127.0.0.1:1/mcp"});
    begin_and_leave(&house, Method::PUT, &body);
    until(&house, 200).await;
    assert_eq!(house.get(PATH).await.status, 200);
    begin_and_leave(&house, Method::DELETE, &body);
    until(&house, 404).await;
    assert_eq!(house.get(PATH).await.status, 404);
}

/// Listens and never answers; tells on which path each is that asks who we are.
async fn hear(listener: TcpListener, heard: mpsc::UnboundedSender<String>) {
    let mut open = Vec::new();
    while let Ok((mut connection, _)) = listener.accept().await {
        let mut bytes: Vec<u8> = Vec::new();
        // The end of a JSON body.
        while bytes.last() != Some(&b'}') {
            if connection.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                break;
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if text.contains("server/discover") {
            let path = text.split(' ').nth(1).unwrap_or_default();
            // The test may be over.
            let _ = heard.send(path.to_owned());
        }
        open.push(connection);
    }
}

#[tokio::test]
async fn storing_the_same_provider_does_not_restart_it() {
    let house = house().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (heard, mut asked) = mpsc::unbounded_channel();
    tokio::spawn(hear(listener, heard));
    let one = json!({"providerType": "MCP", "baseUrl": format!("{base}/one")});
    let two = json!({"providerType": "MCP", "baseUrl": format!("{base}/two")});
    assert_eq!(house.put(PATH, &[], one.clone()).await.status, 201);
    let first = timeout(LIMIT, asked.recv()).await.expect("waited for the first connection");
    assert_eq!(first.as_deref(), Some("/one"));
    assert_eq!(house.put(PATH, &[], one).await.status, 200);
    assert_eq!(house.put(PATH, &[], two).await.status, 200);
    let next = timeout(LIMIT, asked.recv()).await.expect("waited for the next connection");
    assert_eq!(next.as_deref(), Some("/two"), "the same again is no change");
}

#[tokio::test]
async fn secrets_in_an_address_are_shown_only_to_administrators() {
    let house = House::build(Project::demo(), Some("secret")).await;
    let url = "http://127.0.0.1:1/mcp?key=hunter2";
    let body = json!({"providerType": "MCP", "baseUrl": url});
    let admin = ("authorization", "Bearer secret");
    assert_eq!(house.put(PATH, &[admin], body).await.status, 201);
    assert_eq!(house.get(PATH).await.body["baseUrl"], "http://127.0.0.1:1/mcp");
    let mut asked = request(Method::GET, PATH, Body::empty());
    asked.headers_mut().insert("authorization", "Bearer secret".parse().unwrap());
    assert_eq!(house.send(asked).await.body["baseUrl"], url);
}
