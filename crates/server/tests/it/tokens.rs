//! `/oauth/token`, and what OAuth clients read about a server before they come there.

use crate::api_keys::{ADMIN, Key, asking, get, send};
use crate::house::{Answer, House, encoded, refused, request, text};
use crate::mcp_client::{asked as message, posted};
use axum::body::Body;
use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const WELL_KNOWN: [&str; 3] = [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server",
];

/// The answer to a form, with these headers.
async fn asked(house: &House, headers: &[(&'static str, String)], form: &str) -> Answer {
    let mut request = request(Method::POST, "/oauth/token", Body::from(form.to_owned()));
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    house.send(request).await
}

/// The form of a client that proves itself in it.
fn form(id: &str, secret: &str, more: &str) -> String {
    let secret = encoded(&json!(secret));
    format!("grant_type=client_credentials&client_id={id}&client_secret={secret}{more}")
}

fn basic(id: &str, secret: &str) -> (&'static str, String) {
    ("authorization", format!("Basic {}", STANDARD.encode(format!("{id}:{secret}"))))
}

/// The text of a key with another character in the middle of its secret.
fn mistyped(key: &Key) -> String {
    let mut bytes = key.text.clone().into_bytes();
    bytes[20] = if bytes[20] == b'a' { b'b' } else { b'a' };
    String::from_utf8(bytes).unwrap()
}

async fn token(house: &House, key: &Key, more: &str) -> String {
    let answer = asked(house, &[], &form(&key.id, &key.text, more)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    text(&answer.body["access_token"])
}

async fn whoami(house: &House, credential: &str) -> Answer {
    get(house, credential, "/api/v1/whoami").await
}

#[tokio::test]
async fn a_key_is_exchanged_for_a_token_by_form_and_by_header() {
    let house = asking("").await;
    let body = json!({"name": "agent", "roles": ["member"], "scopes": ["read", "use"]});
    let key = Key::created(&house, ADMIN, body).await;
    let by_form = asked(&house, &[], &form(&key.id, &key.text, "")).await;
    let by_header =
        asked(&house, &[basic(&key.id, &key.text)], "grant_type=client_credentials").await;
    for answer in [by_form, by_header] {
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("pragma"), "no-cache");
        let told = (&answer.body["token_type"], &answer.body["expires_in"], &answer.body["scope"]);
        assert_eq!(told, (&json!("Bearer"), &json!(900), &json!("read use")));
        let token = text(&answer.body["access_token"]);
        assert!(token.starts_with("wpt_"), "{token}");
        let who = whoami(&house, &token).await.body;
        assert_eq!(who["subject"], format!("key:{}", key.id));
        assert_eq!(
            (&who["key"]["name"], &who["scopes"]),
            (&json!("agent"), &json!(["read", "use"]))
        );
    }
    let admin = Key::created(&house, ADMIN, json!({"name": "all", "roles": ["admin"]})).await;
    let answer = asked(&house, &[], &form(&admin.id, &admin.text, "")).await;
    assert_eq!(answer.body["scope"], "admin", "no ceiling");
}

#[tokio::test]
async fn a_scope_narrows_a_token_and_never_widens_it() {
    let house = asking("").await;
    let body = json!({"name": "agent", "scopes": ["use"]});
    let key = Key::created(&house, ADMIN, body).await;
    let narrow = token(&house, &key, "&scope=read").await;
    let run = json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 2}});
    let refusal = send(&house, &narrow, Method::POST, "/api/v1/runs", run.clone()).await;
    assert_eq!(refusal.status, 403, "{refusal:?}");
    let wide = token(&house, &key, "").await;
    assert_eq!(send(&house, &wide, Method::POST, "/api/v1/runs", run).await.status, 200);
    for scope in ["admin", "use+answer", "everything"] {
        let form = form(&key.id, &key.text, &format!("&scope={scope}"));
        let refusal = asked(&house, &[], &form).await;
        let told = (refusal.status, &refusal.body["error"]);
        assert_eq!(told, (400, &json!("invalid_scope")), "{scope}");
    }
}

#[tokio::test]
async fn a_token_dies_with_its_key_and_with_the_text_it_was_given_for() {
    let house = asking("").await;
    let key = Key::created(&house, ADMIN, json!({"name": "agent"})).await;
    let first = token(&house, &key, "").await;
    let renewed = key.rotated(&house, 0).await;
    assert_eq!(whoami(&house, &first).await.status, 401);
    let second = token(&house, &renewed, "").await;
    assert_eq!(whoami(&house, &second).await.status, 200);
    let exchanged = asked(&house, &[], &form(&renewed.id, &second, "")).await;
    assert_eq!(exchanged.body["error"], "invalid_client", "a token gets no other one");
    renewed.revoke(&house).await;
    let refusal = whoami(&house, &second).await;
    assert_eq!(refusal.refusal(), refused(401, "unauthorized", &[]));
    let refusal = asked(&house, &[], &form(&renewed.id, &renewed.text, "")).await;
    assert_eq!((refusal.status, &refusal.body["error"]), (401, &json!("invalid_client")));
}

#[tokio::test]
async fn a_request_that_is_wrong_is_refused_in_the_words_of_the_standard() {
    let house = asking("").await;
    let key = Key::created(&house, ADMIN, json!({"name": "agent"})).await;
    let good = form(&key.id, &key.text, "");
    let header = basic(&key.id, &key.text);
    let other = Key::created(&house, ADMIN, json!({"name": "other"})).await;
    let wrong = mistyped(&key);
    let none = Vec::new;
    let bearer = ("authorization", format!("Bearer {}", key.text));
    let grant = "grant_type=client_credentials".to_owned();
    for (headers, form, status, error) in [
        (none(), String::new(), 400, "invalid_request"),
        (none(), "{\"grant_type\": \"client_credentials\"}".to_owned(), 400, "invalid_request"),
        (none(), good.replace("client_credentials", "password"), 400, "unsupported_grant_type"),
        (none(), format!("{good}&scope=read&scope=use"), 400, "invalid_request"),
        (none(), format!("{good}&client_id={}", key.id), 400, "invalid_request"),
        (vec![header.clone()], good.clone(), 400, "invalid_request"),
        (vec![header.clone()], format!("{grant}&client_id={}", other.id), 400, "invalid_request"),
        (vec![header.clone(), header], grant.clone(), 400, "invalid_request"),
        (none(), grant.clone(), 401, "invalid_client"),
        (none(), form(&key.id, &wrong, ""), 401, "invalid_client"),
        (none(), form(&other.id, &key.text, ""), 401, "invalid_client"),
        (none(), form("", &key.text, ""), 401, "invalid_client"),
        (vec![basic(&key.id, &wrong)], grant.clone(), 401, "invalid_client"),
        (vec![bearer], grant, 401, "invalid_client"),
    ] {
        let refusal = asked(&house, &headers, &form).await;
        let told = (refusal.status, &refusal.body["error"]);
        assert_eq!(told, (status, &json!(error)), "{headers:?} {form}");
        assert_eq!(refusal.header("cache-control"), "no-store");
        let challenge = refusal.header("www-authenticate");
        assert_eq!(challenge.starts_with("Basic "), status == 401, "{challenge}");
        assert!(!refusal.text.contains(&key.text), "{refusal:?}");
    }
    let long = format!("{good}&x={}", "x".repeat(16 * 1024));
    let refusal = asked(&house, &[], &long).await;
    assert_eq!((refusal.status, &refusal.body["error"]), (413, &json!("invalid_request")));
}

#[tokio::test]
async fn one_address_cannot_try_secrets_for_ever_and_holds_nobody_up() {
    let house = asking("").await;
    let key = Key::created(&house, ADMIN, json!({"name": "agent"})).await;
    let wrong = mistyped(&key);
    let mut last = 401;
    for _ in 0..100 {
        last = asked(&house, &[], &form(&key.id, &wrong, "")).await.status;
        if last != 401 {
            break;
        }
    }
    assert_eq!(last, 429);
    let refusal = asked(&house, &[], &form(&key.id, &wrong, "")).await;
    assert_eq!(refusal.refusal(), refused(429, "too_many_failures", &[]));
    assert_ne!(refusal.header("retry-after"), "");
    token(&house, &key, "").await;
}

#[tokio::test]
async fn clients_read_where_they_get_a_token() {
    for (settings, base) in [
        ("", "http://127.0.0.1:8420"),
        ("public_url = \"https://wp.example.com/x/\"", "https://wp.example.com/x"),
    ] {
        let house = asking(settings).await;
        let resource = json!({
            "resource": format!("{base}/mcp"), "authorization_servers": [base],
            "scopes_supported": ["read", "use"], "bearer_methods_supported": ["header"],
        });
        for path in &WELL_KNOWN[..2] {
            assert_eq!(house.get(path).await.body, resource, "{path}");
        }
        let server = json!({
            "issuer": base, "token_endpoint": format!("{base}/oauth/token"),
            "grant_types_supported": ["client_credentials"],
            "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
            "scopes_supported": ["read", "use", "answer", "define", "operate", "admin"],
            "response_types_supported": [],
        });
        assert_eq!(house.get(WELL_KNOWN[2]).await.body, server);
    }
}

#[tokio::test]
async fn in_local_mode_no_client_is_led_to_a_login() {
    let house = House::demo().await;
    for path in WELL_KNOWN {
        let refusal = house.get(path).await;
        assert_eq!(refusal.refusal(), refused(404, "not_found", &[]), "{path}");
        assert_eq!(refusal.body.get("resource"), None::<&Value>);
    }
}

/// The answer to a message of MCP with this credential, in this session where one is named.
async fn spoken(house: &House, credential: &str, session: Option<&str>, said: &Value) -> Answer {
    let bearer = format!("Bearer {credential}");
    let mut headers = vec![("authorization", bearer.as_str())];
    headers.extend(session.map(|session| ("mcp-session-id", session)));
    house.send(posted(&headers, said)).await
}

#[tokio::test]
async fn a_session_of_mcp_goes_on_with_the_next_token_of_its_subject() {
    let house = asking("").await;
    let key = Key::created(&house, ADMIN, json!({"name": "agent"})).await;
    let other = Key::created(&house, ADMIN, json!({"name": "other"})).await;
    let first = token(&house, &key, "").await;
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let begun = spoken(&house, &first, None, &message(0, "initialize", params)).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    let session = begun.header("mcp-session-id");
    let ping = message(1, "ping", json!({}));
    let status =
        async |credential: &str| spoken(&house, credential, Some(session), &ping).await.status;
    assert_eq!((status(&first).await, status(&token(&house, &key, "").await).await), (200, 200));
    assert_eq!(status(&token(&house, &other, "").await).await, 404, "it is another's");
    let renewed = key.rotated(&house, 0).await;
    assert_eq!(status(&first).await, 401, "it ended with its secret");
    assert_eq!(status(&token(&house, &renewed, "").await).await, 200);
    // Each request has the scopes of its own credential.
    let reads = token(&house, &renewed, "&scope=read").await;
    let call = json!({"name": "math__add", "arguments": {"a": 1, "b": 2}});
    let call = message(2, "tools/call", call);
    assert_eq!(spoken(&house, &reads, Some(session), &call).await.status, 403);
}
