//! Stored providers are the own of the realm that they are stored in: their tools, connections,
//! logins and variables. Two realms may have one of the same name, and neither sees the other's.

use crate::api_keys::{ADMIN, Key, get, send};
use crate::house::{Answer, House, refused, setup, text, wait_for};
use crate::mcp_lists::each;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use server::{Setup, Stopper};
use std::net::SocketAddr;
use std::sync::Arc;
use tempfile::TempDir;
use testkit::servers::login::LoginServer;
use tokio::net::TcpListener;

const CRM: &str = "/api/v1/providers/crm";

/// An MCP server whose one tool has this name and says so, with the token that it was shown.
async fn serving(tool: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let answer = move |headers: HeaderMap, Json(asked): Json<Value>| async move {
        answered(tool, &headers, &asked)
    };
    let router = Router::new().route("/mcp", post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

fn answered(tool: &str, headers: &HeaderMap, asked: &Value) -> Response {
    let token = headers.get("x-token").map_or("none", |token| token.to_str().unwrap());
    // What it was sent is masked in what it says; a part of it is not.
    let said = format!("{tool} with {}", token.trim_start_matches("hunter2-"));
    let result = match asked["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "prompts": {}},
            "serverInfo": {"name": tool, "version": "1"},
        }),
        "notifications/initialized" => return StatusCode::ACCEPTED.into_response(),
        "tools/list" => json!({"tools": [{"name": tool, "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": said}]}),
        "prompts/list" => json!({"prompts": [{"name": tool}]}),
        _ => {
            let error = json!({"code": -32601, "message": "there is no such method"});
            let id = &asked["id"];
            return Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).into_response()
}

fn project() -> Project {
    let settings = "[server]\nhosts = [\"wp.example.com\"]\n\
        [realms.acme]\nvariables = [\"ACME_*\"]\n[realms.beta]\nvariables = [\"BETA_*\"]\n\
        [realms.bare]\nmax_find_limit = 9\n";
    Project { config: Config::parse("waypost.toml", settings).unwrap(), ..Project::demo() }
}

fn variable(name: &str) -> Option<String> {
    let known = ["ACME_TOKEN", "BETA_TOKEN", "WAYPOST_PROVIDER_TOKEN"];
    known.contains(&name).then(|| format!("hunter2-{}", name.to_lowercase()))
}

/// A server with three realms beside `default`, over this folder.
async fn over(data: &TempDir) -> (House, Stopper) {
    let address: SocketAddr = "127.0.0.1:8420".parse().unwrap();
    House::of(|| Setup {
        admin_key: Some(ADMIN.to_owned()),
        variables: Arc::new(variable),
        ..setup(project(), data, address)
    })
    .await
}

async fn store(house: &House, by: &str, realm: &str, body: Value) -> Answer {
    send(house, by, Method::PUT, &format!("{CRM}?realm={realm}"), body).await
}

/// Waits until a tool is listed in a realm.
async fn until_listed(house: &House, realm: &str, tool: &str) {
    let path = format!("/api/v1/tools/{tool}?realm={realm}");
    let look = async || get(house, ADMIN, &path).await;
    let is_listed = |answer: &Answer| answer.status == 200;
    wait_for(&format!("`{tool}` in `{realm}`"), look, is_listed).await;
}

async fn call(house: &House, realm: &str, tool: &str) -> Answer {
    let path = format!("/api/v1/tools/{tool}/call?realm={realm}");
    send(house, ADMIN, Method::POST, &path, json!({"arguments": {}})).await
}

/// The names of the tools of stored providers in a realm.
async fn tools(house: &House, realm: &str) -> Vec<String> {
    let path = format!("/api/v1/tools?limit=500&realm={realm}");
    let mut names = each(&get(house, ADMIN, &path).await.body["items"], "name");
    names.retain(|name| name.starts_with("crm."));
    names
}

#[tokio::test]
async fn two_realms_have_a_provider_of_the_same_name() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = over(&data).await;
    let urls = [("acme", serving("one").await), ("beta", serving("two").await)];
    for (realm, url) in &urls {
        let token = format!("${{{}_TOKEN}}", realm.to_uppercase());
        let body = json!({"providerType": "MCP", "baseUrl": url, "headers": {"X-Token": token}});
        let stored = store(&house, ADMIN, realm, body).await;
        assert_eq!(stored.status, 201, "{stored:?}");
    }
    until_listed(&house, "acme", "crm.one").await;
    until_listed(&house, "beta", "crm.two").await;
    assert_eq!(tools(&house, "acme").await, ["crm.one"]);
    assert_eq!(tools(&house, "beta").await, ["crm.two"]);
    assert!(tools(&house, "default").await.is_empty() && tools(&house, "bare").await.is_empty());
    let called = call(&house, "acme", "crm.one").await;
    assert!(called.text.contains("one with acme_token"), "{called:?}");
    let missed = call(&house, "acme", "crm.two").await;
    assert_eq!(missed.refusal(), refused(404, "not_found", &[]));
    assert!(!missed.text.contains("beta"), "{missed:?}");
    let listed = async |realm: &str| {
        let path = format!("/api/v1/upstreams?realm={realm}");
        each(&get(&house, ADMIN, &path).await.body["items"], "name")
    };
    assert_eq!((listed("acme").await, listed("beta").await.len()), (vec!["crm".to_owned()], 1));
    assert!(listed("default").await.is_empty());
    let elsewhere = get(&house, ADMIN, "/api/v1/upstreams/crm").await;
    assert_eq!(elsewhere.refusal(), refused(404, "not_found", &[]));

    // Each is there again after a restart, and goes alone.
    stopper.stop().await;
    drop(house);
    let (house, stopper) = over(&data).await;
    until_listed(&house, "acme", "crm.one").await;
    until_listed(&house, "beta", "crm.two").await;
    let gone = send(&house, ADMIN, Method::DELETE, &format!("{CRM}?realm=acme"), Value::Null).await;
    assert_eq!(gone.status, 204, "{gone:?}");
    assert!(tools(&house, "acme").await.is_empty());
    assert_eq!(tools(&house, "beta").await, ["crm.two"]);
    let called = call(&house, "beta", "crm.two").await;
    assert!(called.text.contains("two with beta_token"), "{called:?}");
    stopper.stop().await;
}

#[tokio::test]
async fn a_provider_uses_the_variables_of_its_own_realm_alone() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = over(&data).await;
    let of = |name: &str| {
        json!({"providerType": "MCP", "baseUrl": "https://crm.example.com/mcp", "disabled": true,
            "headers": {"X-Token": format!("${{{name}}}")}})
    };
    for (realm, name) in [
        ("acme", "BETA_TOKEN"),
        ("acme", "WAYPOST_PROVIDER_TOKEN"),
        ("acme", "NOT_SET_ANYWHERE"),
        ("bare", "ACME_TOKEN"),
        ("bare", "WAYPOST_PROVIDER_TOKEN"),
        ("default", "ACME_TOKEN"),
    ] {
        let answer = store(&house, ADMIN, realm, of(name)).await;
        assert_eq!(answer.status, 422, "{realm} {name}: {answer:?}");
        let told = format!("may not use the variable `{name}`");
        assert!(answer.text.contains(&told), "{realm} {name}: {answer:?}");
        assert!(!answer.text.contains("hunter2"), "{answer:?}");
    }
    for (realm, name) in
        [("acme", "ACME_TOKEN"), ("beta", "BETA_TOKEN"), ("default", "WAYPOST_PROVIDER_TOKEN")]
    {
        let answer = store(&house, ADMIN, realm, of(name)).await;
        assert_eq!(answer.status, 201, "{realm} {name}: {answer:?}");
    }
    stopper.stop().await;
}

#[tokio::test]
async fn an_administrator_of_a_realm_does_not_reach_the_servers_own_network() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = over(&data).await;
    let body = json!({"name": "acme", "realms": {"acme": ["admin"]}});
    let key = Key::created(&house, ADMIN, body).await;
    let url = serving("one").await;
    for body in [
        json!({"providerType": "MCP", "baseUrl": url}),
        json!({"providerType": "MCP", "baseUrl": url.replace("127.0.0.1", "localhost")}),
        json!({"providerType": "MCP", "baseUrl": url.replace("127.0.0.1", "2130706433")}),
        json!({"providerType": "MCP", "baseUrl": "https://crm.example.com", "allowPrivate": true}),
        json!({"providerType": "RPC", "baseUrl": "https://${ACME_TOKEN}/"}),
    ] {
        let refusal = store(&house, &key.text, "acme", body.clone()).await;
        assert_eq!(refusal.status, 403, "{body}: {refusal:?}");
    }
    // A name is judged by where it leads.
    let named = url.replace("127.0.0.1", "one.localhost");
    for kind in ["MCP", "RPC"] {
        let body = json!({"providerType": kind, "baseUrl": named});
        let stored = store(&house, &key.text, "acme", body).await;
        assert!(matches!(stored.status, 200 | 201), "{stored:?}");
        let path = "/api/v1/upstreams/crm/check?realm=acme";
        let checked = send(&house, &key.text, Method::POST, path, json!({})).await;
        assert_eq!(checked.body["state"], "failing", "{checked:?}");
    }
    assert!(tools(&house, "acme").await.is_empty());
    // Who administers the whole server may say that it is inside.
    let inside = json!({"providerType": "MCP", "baseUrl": url, "allowPrivate": true});
    assert_eq!(store(&house, ADMIN, "acme", inside).await.status, 200);
    until_listed(&house, "acme", "crm.one").await;
    stopper.stop().await;
}

#[tokio::test]
async fn an_operator_reaches_inside_in_no_realm_by_a_name() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = over(&data).await;
    let url = serving("one").await.replace("127.0.0.1", "one.localhost");
    for realm in ["default", "acme"] {
        let body = json!({"name": realm, "realms": {realm: ["operator"]}});
        let key = Key::created(&house, ADMIN, body).await;
        for kind in ["MCP", "RPC", "REST", "A2A"] {
            let body = json!({"providerType": kind, "baseUrl": url});
            let stored = store(&house, &key.text, realm, body.clone()).await;
            assert!(matches!(stored.status, 200 | 201), "{realm} {kind}: {stored:?}");
            let path = format!("/api/v1/upstreams/crm/check?realm={realm}");
            let checked = send(&house, ADMIN, Method::POST, &path, json!({})).await;
            assert_eq!(checked.body["state"], "failing", "{realm} {kind}: {checked:?}");
            let inside = json!({"providerType": kind, "baseUrl": url, "allowPrivate": true});
            let refusal = store(&house, &key.text, realm, inside).await;
            assert_eq!(refusal.status, 403, "{realm} {kind}: {refusal:?}");
        }
        assert!(tools(&house, realm).await.is_empty());
    }
    stopper.stop().await;
}

/// Logs in at the provider `crm` of a realm.
async fn log_in(house: &House, login: &LoginServer, realm: &str) {
    let path = format!("/api/v1/upstreams/crm/login?realm={realm}");
    let begun = send(house, ADMIN, Method::POST, &path, json!({})).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    let back = login.agree(&text(&begun.body["url"]));
    let (_, query) = back.split_once('?').unwrap();
    let done = house.get(&format!("/oauth/callback?{query}")).await;
    assert_eq!(done.status, 200, "{done:?}");
}

fn vault_files(data: &TempDir) -> usize {
    std::fs::read_dir(data.path().join("data").join("vault")).map_or(0, Iterator::count)
}

#[tokio::test]
async fn a_login_is_the_realms_own_and_goes_with_it() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = over(&data).await;
    for name in ["made", "other"] {
        let made = send(&house, ADMIN, Method::POST, "/api/v1/realms", json!({"name": name})).await;
        assert_eq!(made.status, 201, "{made:?}");
        let body = json!({"providerType": "MCP", "baseUrl": format!("{}/mcp", login.base)});
        assert_eq!(store(&house, ADMIN, name, body).await.status, 201);
    }
    log_in(&house, &login, "made").await;
    until_listed(&house, "made", "crm.add").await;
    let state = async |house: &House| {
        text(&get(house, ADMIN, "/api/v1/upstreams/crm?realm=other").await.body["state"])
    };
    assert_ne!(state(&house).await, "ready", "nobody logged in there");

    stopper.stop().await;
    drop(house);
    let (house, stopper) = over(&data).await;
    until_listed(&house, "made", "crm.add").await;
    assert_ne!(state(&house).await, "ready", "nor after a restart");
    log_in(&house, &login, "other").await;
    until_listed(&house, "other", "crm.add").await;

    let before = vault_files(&data);
    let removed = send(&house, ADMIN, Method::DELETE, "/api/v1/realms/made", Value::Null).await;
    assert_eq!(removed.status, 200, "{removed:?}");
    let look = async || get(&house, ADMIN, "/api/v1/realms/made").await;
    let is_purged = |shown: &Answer| shown.body["purged"] == true;
    wait_for("the realm to be purged", look, is_purged).await;
    let after = vault_files(&data);
    assert!(0 < after && after < before, "{after} of {before} files are left");
    let called = call(&house, "other", "crm.add").await;
    assert_ne!(called.status, 404, "the other realm's is still there: {called:?}");
    stopper.stop().await;
}
