//! Logins at upstreams, from the first refusal to a call that works: an authorization server and an
//! MCP server behind ours, which share no code with it.

use crate::house::{Answer, House, is_in_clear, request, wait_for};
use crate::mcp_client::{Client, Events, LIMIT, asked};
use axum::body::Body;
use axum::http::{Method, Uri};
use engine::{RunMetadata, RunRequest, RunSession, RunTarget};
use kernel::tool::call::Caller;
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;
use testkit::servers::login::LoginServer;
use tokio::time::timeout;

const HUB: &str = "/api/v1/upstreams/hub";
const LOGIN: &str = "/api/v1/upstreams/hub/login";

fn behind(login: &LoginServer) -> Project {
    let url = format!("{}/mcp", login.base);
    project(&format!("[mcp.servers.hub]\nurl = \"{url}\"\ntrusted = true\n"))
}

fn project(settings: &str) -> Project {
    let config = Config::parse("waypost.toml", settings).unwrap();
    Project { config, ..Project::demo() }
}

/// The upstream once it is in this state.
async fn until(house: &House, state: &str) -> Value {
    let is_so = |shown: &Value| shown["state"] == state;
    wait_for(&format!("the state `{state}`"), async || house.get(HUB).await.body, is_so).await
}

/// The upstream once it is ready and its tool can be called: the catalog takes its tools in a
/// moment later.
async fn until_ready(house: &House) -> Value {
    let ready = until(house, "ready").await;
    let look = async || house.get("/api/v1/tools/hub.add").await;
    wait_for("its tool in the catalog", look, |answer: &Answer| answer.status == 200).await;
    ready
}

/// Begins a login: the page.
async fn begun(house: &House) -> String {
    let begun = house.post(LOGIN, json!({})).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    begun.body["url"].as_str().unwrap().to_owned()
}

/// A person is sent to this address of ours.
async fn comes_back(house: &House, to: &str) -> Answer {
    let to: Uri = to.parse().unwrap();
    assert_eq!(to.authority().unwrap().as_str(), "127.0.0.1:8420");
    house.get(to.path_and_query().unwrap().as_str()).await
}

/// Logs in, so that its tools are known, and out again: the page of the next login.
async fn known_and_logged_out(house: &House, login: &LoginServer) -> String {
    until(house, "login").await;
    let back = login.agree(&begun(house).await);
    assert_eq!(comes_back(house, &back).await.status, 200);
    until_ready(house).await;
    assert_eq!(house.delete(LOGIN).await.status, 204);
    until(house, "login").await;
    begun(house).await
}

async fn sum(house: &House) -> Answer {
    let arguments = json!({"arguments": {"a": 2, "b": 3}});
    house.post("/api/v1/tools/hub.add/call", arguments).await
}

fn vault_files(data: &TempDir) -> usize {
    fs::read_dir(data.path().join("data").join("vault")).map_or(0, Iterator::count)
}

#[tokio::test]
async fn tools_work_after_a_login() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(|| behind(&login), &data, None).await;
    let waiting = until(&house, "login").await;
    assert_eq!((&waiting["tools"], login.refused() > 0), (&json!(0), true), "{waiting}");

    let page = begun(&house).await;
    assert!(page.starts_with(&format!("{}/authorize?", login.base)), "{page}");
    let shown = until(&house, "login").await;
    assert_eq!(shown["loginUrl"], json!(page), "{shown}");
    let back = login.agree(&page);
    let done = comes_back(&house, &back).await;
    assert_eq!(done.status, 200, "{done:?}");
    assert!(done.text.contains("<h1>You are logged in</h1>"), "{done:?}");
    assert!(done.text.contains("<code>hub</code>") && !done.text.contains("hunter"), "{done:?}");
    assert_eq!(done.header("referrer-policy"), "no-referrer");
    assert!(done.header("content-security-policy").starts_with("default-src 'none'"));

    let ready = until_ready(&house).await;
    assert!(ready["loginUrl"].is_null() && ready["lastError"].is_null(), "{ready}");
    let called = sum(&house).await;
    assert_eq!(called.status, 200, "{called:?}");
    assert!(called.text.contains('5'), "{called:?}");
    let again = comes_back(&house, &back).await;
    assert_eq!(again.status, 400, "a login comes back once: {again:?}");

    // What a login brought lasts, and nobody can read it.
    stopper.stop().await;
    drop(house);
    assert!(vault_files(&data) > 0);
    assert!(!is_in_clear(data.path(), &login.secrets()));
    let (house, stopper) = House::over(|| behind(&login), &data, None).await;
    until_ready(&house).await;
    assert_eq!(sum(&house).await.status, 200);

    let gone = house.delete(LOGIN).await;
    assert_eq!(gone.status, 204, "{gone:?}");
    until(&house, "login").await;
    assert!(!login.revoked().is_empty(), "the server was told");
    stopper.stop().await;
}

#[tokio::test]
async fn a_person_may_come_back_after_a_restart() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(|| behind(&login), &data, None).await;
    until(&house, "login").await;
    let back = login.agree(&begun(&house).await);
    stopper.stop().await;
    drop(house);
    let (house, stopper) = House::over(|| behind(&login), &data, None).await;
    let done = comes_back(&house, &back).await;
    assert_eq!(done.status, 200, "{done:?}");
    until_ready(&house).await;
    assert_eq!(sum(&house).await.status, 200);
    stopper.stop().await;
}

#[tokio::test]
async fn a_stored_provider_has_logins_too() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(Project::demo, &data, None).await;
    let body = json!({"providerType": "MCP", "baseUrl": format!("{}/mcp", login.base)});
    for name in ["aaa", "hub", "zzz"] {
        let stored = house.put(&format!("/api/v1/providers/{name}"), &[], body.clone()).await;
        assert_eq!(stored.status, 201, "{stored:?}");
    }
    until(&house, "login").await;
    let back = login.agree(&begun(&house).await);
    let done = comes_back(&house, &back).await;
    assert_eq!(done.status, 200, "{done:?}");
    assert!(done.text.contains("<code>hub</code>"), "{done:?}");
    until_ready(&house).await;
    let other = house.get("/api/v1/upstreams/aaa").await.body;
    assert_eq!(other["state"], "login", "{other}");
    assert_eq!(house.delete("/api/v1/providers/hub").await.status, 204);
    assert!(!login.revoked().is_empty(), "with the provider goes its login");
    stopper.stop().await;
}

#[tokio::test]
async fn an_unfinishable_login_is_answered_as_text() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(|| behind(&login), &data, None).await;
    until(&house, "login").await;
    let evil = "%3Cscript%3Ealert(1)%3C/script%3E";
    for query in [
        String::new(),
        "state=nobody".to_owned(),
        format!("state=nobody&code={evil}"),
        format!("state={evil}&error={evil}&error_description={evil}&iss={evil}"),
    ] {
        let told = house.get(&format!("/oauth/callback?{query}")).await;
        assert_eq!(told.status, 400, "{told:?}");
        assert!(told.text.contains("<h1>The login did not work</h1>"), "{told:?}");
        assert!(!told.text.contains("<script"), "{told:?}");
        assert_eq!(told.header("cache-control"), "no-store");
    }
    let page: Uri = begun(&house).await.parse().unwrap();
    let query = page.query().unwrap();
    let state = query.split('&').find_map(|pair| pair.strip_prefix("state=")).unwrap();
    let denied = format!(
        "/oauth/callback?state={state}&error=access_denied&error_description={evil}&iss={}",
        login.base.replace(':', "%3A").replace('/', "%2F")
    );
    let told = house.get(&denied).await;
    assert_eq!(told.status, 400, "{told:?}");
    assert!(!told.text.contains("<script"), "{told:?}");
    until(&house, "login").await;
    stopper.stop().await;
}

#[tokio::test]
async fn an_administrator_logs_in() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(|| behind(&login), &data, Some("secret")).await;
    until(&house, "login").await;
    assert_eq!(house.post(LOGIN, json!({})).await.status, 401);
    assert_eq!(house.delete(LOGIN).await.status, 401);
    let key = [("authorization", "Bearer secret")];
    let begun = house.post_with(LOGIN, &key, json!({})).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    let page = begun.body["url"].as_str().unwrap();
    let shown = house.get(HUB).await;
    assert!(shown.body.get("loginUrl").is_none(), "{shown:?}");
    let listed = house.get("/api/v1/upstreams").await;
    assert!(!listed.text.contains("loginUrl"), "{listed:?}");
    let mut asked = request(Method::GET, HUB, Body::empty());
    asked.headers_mut().insert("authorization", "Bearer secret".parse().unwrap());
    assert_eq!(house.send(asked).await.body["loginUrl"], page);
    // The user who comes back has no key, and a page of the other server behind them.
    let back = login.agree(page);
    let back: Uri = back.parse().unwrap();
    let path = back.path_and_query().unwrap().as_str();
    let mut returning = request(Method::GET, path, Body::empty());
    returning.headers_mut().insert("origin", login.base.parse().unwrap());
    assert_eq!(house.send(returning).await.status, 200);
    until_ready(&house).await;
    stopper.stop().await;
}

#[tokio::test]
async fn not_every_upstream_has_logins() {
    let settings = "[mcp.servers.fixed]\nurl = \"http://127.0.0.1:1/mcp\"\n\
                    headers = { authorization = \"Bearer x\" }\n\
                    [mcp.servers.own]\nurl = \"http://127.0.0.1:1/mcp\"\n\
                    oauth = { client_id = \"a\", client_secret = \"b\", grant = \"ourselves\" }\n\
                    [mcp.servers.off]\ncommand = \"x\"\ndisabled = true\n\
                    [providers.rpc]\ntype = \"rpc\"\nbase_url = \"http://127.0.0.1:1/rpc\"\n\
                    [mcp.servers.dead]\nurl = \"http://127.0.0.1:1/mcp\"\n";
    let house = House::build(project(settings), None).await;
    for (name, status, code) in [
        ("fixed", 409, "upstream_no_login"),
        ("own", 409, "upstream_no_login"),
        ("rpc", 409, "upstream_no_login"),
        ("off", 409, "upstream_disabled"),
        ("nobody", 404, "not_found"),
        ("dead", 502, "upstream_login_failed"),
    ] {
        let refused = house.post(&format!("/api/v1/upstreams/{name}/login"), json!({})).await;
        assert_eq!((refused.status, &refused.body["code"]), (status, &json!(code)), "{refused:?}");
    }
    for name in ["fixed", "rpc", "off"] {
        assert_eq!(house.delete(&format!("/api/v1/upstreams/{name}/login")).await.status, 409);
    }
}

#[tokio::test]
async fn logins_are_counted() {
    let settings = "[limits]\nlogins_per_minute = 2\n[mcp.servers.hub]\n\
                    url = \"http://127.0.0.1:1/mcp\"\n";
    let house = House::build(project(settings), None).await;
    for _ in 0..2 {
        assert_eq!(house.get("/oauth/callback?state=x&code=y").await.status, 400);
        assert_eq!(house.post(LOGIN, json!({})).await.status, 502);
    }
    let later = house.get("/oauth/callback?state=x&code=y").await;
    assert_eq!(later.status, 429, "{later:?}");
    assert!(later.header("retry-after").parse::<u64>().unwrap() > 0);
    assert_eq!(later.header("content-type"), "text/html; charset=utf-8");
    let later = house.post(LOGIN, json!({})).await;
    assert_eq!((later.status, &later.body["code"]), (429, &json!("logins_limited")), "{later:?}");
}

#[tokio::test]
async fn invalid_callbacks_do_not_block_a_login_under_way() {
    let login = LoginServer::start();
    let hub = format!("[mcp.servers.hub]\nurl = \"{}/mcp\"\n", login.base);
    let settings = format!("[limits]\nlogins_per_minute = 1\n{hub}");
    let house = House::build(project(&settings), None).await;
    until(&house, "login").await;
    let back = login.agree(&begun(&house).await);
    for status in [400, 429] {
        let stranger = house.get("/oauth/callback?state=x&code=y").await;
        assert_eq!(stranger.status, status, "{stranger:?}");
    }
    let done = comes_back(&house, &back).await;
    assert_eq!(done.status, 200, "{done:?}");
}

#[tokio::test]
async fn other_callers_learn_that_an_administrator_logs_in() {
    let login = LoginServer::start();
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(|| behind(&login), &data, Some("secret")).await;
    until(&house, "login").await;
    let key = [("authorization", "Bearer secret")];
    let begun = house.post_with(LOGIN, &key, json!({})).await;
    let back = login.agree(begun.body["url"].as_str().unwrap());
    assert_eq!(comes_back(&house, &back).await.status, 200);
    until_ready(&house).await;
    let mut ending = request(Method::DELETE, LOGIN, Body::empty());
    ending.headers_mut().insert("authorization", "Bearer secret".parse().unwrap());
    assert_eq!(house.send(ending).await.status, 204);
    until(&house, "login").await;
    let called = sum(&house).await;
    assert_ne!(called.status, 200, "{called:?}");
    assert!(called.text.contains("an administrator of this server logs in"), "{called:?}");
    assert!(called.text.contains("waypost mcp login hub"), "{called:?}");
    assert!(!called.text.contains("/authorize"), "{called:?}");
    stopper.stop().await;
}

#[tokio::test]
async fn the_client_document_is_served_under_a_public_url() {
    let house = House::demo().await;
    let missing = house.get("/oauth/client.json").await;
    assert_eq!((missing.status, &missing.body["code"]), (404, &json!("no_client_document")));
    let public = project("[server]\npublic_url = \"https://wp.test/\"\n");
    // Others reach it, so that callers need a credential; this is for servers without one.
    let house = House::build(public, Some("an-admin-key-of-thirty-two-chars")).await;
    let mut asked = request(Method::GET, "/oauth/client.json", Body::empty());
    asked.headers_mut().insert("host", "wp.test".parse().unwrap());
    let document = house.send(asked).await;
    assert_eq!(document.status, 200, "{document:?}");
    assert_eq!(document.body["client_id"], "https://wp.test/oauth/client.json");
    assert_eq!(document.body["redirect_uris"], json!(["https://wp.test/oauth/callback"]));
    assert_eq!(document.body["token_endpoint_auth_method"], "none");
}

#[tokio::test]
async fn a_thread_that_waits_for_a_login_goes_on_when_it_is_done() {
    let login = LoginServer::start();
    let url = format!("{}/mcp", login.base);
    // Nobody lives to see it looked at in its own time.
    let mut project = project(&format!("[mcp.servers.hub]\nurl = \"{url}\"\ntrusted = true\n"));
    let limits = &mut project.config.limits;
    limits.authorize_poll_ms = 3_600_000;
    limits.authorize_poll_ms_max = 3_600_000;
    let house = House::build(project, None).await;
    let page = known_and_logged_out(&house, &login).await;

    let caller = Caller::new("default", "local").administering();
    let plan = json!({"planId": "sum", "steps": [
        {"id": "add", "type": "tool_call", "toolId": "hub.add",
            "arguments": {"a": 2, "b": 3}, "saveAs": "sum", "nextStepId": "end"},
        {"id": "end", "type": "final_response", "message": {"jsonPath": "$.context.sum"}}]});
    let request = RunRequest {
        target: RunTarget::Inline(plan),
        input: json!({}),
        session: RunSession::Thread("t".to_owned()),
        once: None,
        about: RunMetadata::default(),
    };
    let waiting = house.engine.runs().start(&caller, request, 60_000).await.unwrap();
    let asks: Vec<Value> = waiting.asks.iter().map(|ask| json!(ask.row.ask)).collect();
    assert!(asks.len() == 1 && json!(asks).to_string().contains(&page), "{page}: {asks:?}");
    assert_eq!(comes_back(&house, &login.agree(&page)).await.status, 200);
    let look = async || {
        let report = house.engine.runs().report(&caller, waiting.run.id).await.unwrap();
        report.run.status.name().to_owned()
    };
    let is_over = |status: &String| status != "waiting" && status != "running";
    let status = wait_for("the run to end after the login", look, is_over).await;
    assert_eq!(status, "completed", "the run does not resume after the login");
}

#[tokio::test]
async fn a_client_that_was_shown_the_page_hears_when_the_login_is_done() {
    let login = LoginServer::start();
    let house = House::build(behind(&login), None).await;
    let page = known_and_logged_out(&house, &login).await;
    let params = json!({"name": "hub.add", "arguments": {"a": 2, "b": 3}});

    let bare = Client::hello(&house, "2025-11-25", json!({})).await;
    let refused = bare.ask("tools/call", params.clone()).await;
    assert_eq!(refused.body["error"]["code"], -32042, "who opens no pages is told: {refused:?}");
    assert_eq!(refused.body["error"]["data"]["elicitations"][0]["url"], json!(page));

    let can = json!({"elicitation": {"url": {}}});
    let client = Client::hello(&house, "2025-11-25", can).await;
    let call = client.request(&asked(1, "tools/call", params));
    let mut events = Events::of(timeout(LIMIT, house.open(call)).await.unwrap());
    assert_eq!(events.next().await.unwrap().data, Value::Null);
    let question = events.next().await.unwrap().data;
    assert_eq!(question["params"]["url"], json!(page), "{question}");
    let mut news = Events::of(house.open(client.get(None)).await);
    let accepted = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    assert_eq!(client.send(&accepted).await.status, 202);
    assert_eq!(comes_back(&house, &login.agree(&page)).await.status, 200);
    let mut told = Value::Null;
    while told["method"] != "notifications/elicitation/complete" {
        told = news.next().await.expect("the stream of news goes on").data;
    }
    assert_eq!(told["params"]["elicitationId"], question["params"]["elicitationId"]);
}
