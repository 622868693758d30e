//! `/api/v1/keys` and `/api/v1/whoami`: keys are created, used, rotated and revoked, by those who
//! administer what they reach.

use crate::house::{Answer, House, refused, request, text, wait_for};
use axum::body::Body;
use axum::http::Method;
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// Long enough for a server that asks for credentials.
pub const ADMIN: &str = "an-admin-key-of-more-than-32-characters";
const KEYS: &str = "/api/v1/keys";

/// A server that asks everybody for credentials, because others reach it, with more lines in
/// `[server]`.
pub async fn asking(more: &str) -> House {
    let settings = format!("[server]\nhosts = [\"wp.example.com\"]\n{more}\n");
    let config = Config::parse("waypost.toml", &settings).unwrap();
    House::build(Project { config, ..Project::demo() }, Some(ADMIN)).await
}

/// An answer to a request with this credential; no body is sent where it is null.
pub async fn send(
    house: &House,
    credential: &str,
    method: Method,
    path: &str,
    body: Value,
) -> Answer {
    let body = match body {
        Value::Null => Body::empty(),
        body => Body::from(body.to_string()),
    };
    let mut request = request(method, path, body);
    let value = format!("Bearer {credential}").parse().unwrap();
    request.headers_mut().insert("authorization", value);
    house.send(request).await
}

pub async fn get(house: &House, credential: &str, path: &str) -> Answer {
    send(house, credential, Method::GET, path, Value::Null).await
}

/// A key that is good for something.
pub struct Key {
    pub id: String,
    pub text: String,
}

impl Key {
    pub fn of(answer: &Answer) -> Self {
        Self { id: text(&answer.body["key"]["id"]), text: text(&answer.body["text"]) }
    }

    /// A new one.
    pub async fn created(house: &House, by: &str, body: Value) -> Self {
        let answer = send(house, by, Method::POST, KEYS, body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        Self::of(&answer)
    }

    pub fn path(&self) -> String {
        format!("{KEYS}/{}", self.id)
    }

    /// The status of a request with it.
    pub async fn status(&self, house: &House) -> u16 {
        get(house, &self.text, "/api/v1/whoami").await.status
    }

    pub async fn rotated(&self, house: &House, overlap_ms: u64) -> Self {
        let path = format!("{}/rotate", self.path());
        let body = json!({"overlapMs": overlap_ms});
        let answer = send(house, ADMIN, Method::POST, &path, body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("cache-control"), "no-store");
        Self::of(&answer)
    }

    pub async fn revoke(&self, house: &House) {
        let answer = send(house, ADMIN, Method::DELETE, &self.path(), Value::Null).await;
        assert_eq!(answer.status, 204, "{answer:?}");
    }
}

#[tokio::test]
async fn a_key_is_created_and_its_text_is_shown_once() {
    let house = asking("").await;
    let created = send(&house, ADMIN, Method::POST, KEYS, json!({"name": " ci "})).await;
    assert_eq!(created.status, 201, "{created:?}");
    let key = Key::of(&created);
    assert!(key.text.starts_with(&format!("wp_{}_", key.id)), "{created:?}");
    assert_eq!(created.header("cache-control"), "no-store");
    assert_eq!(created.header("location"), key.path());
    let shown = &created.body["key"];
    assert_eq!(shown["name"], "ci");
    assert_eq!(shown["realms"], json!({"default": ["member"]}));
    assert_eq!((&shown["status"], &shown["by"]), (&json!("active"), &json!("admin")));
    assert!(shown["expiresAt"].is_string(), "{shown}");
    assert_eq!(shown.get("scopes"), None);
    let one = get(&house, ADMIN, &key.path()).await;
    let all = get(&house, ADMIN, KEYS).await;
    assert_eq!(all.body["items"], json!([one.body]));
    assert_eq!(one.body["id"], key.id.as_str());
    for answer in [one, all] {
        assert!(!answer.text.contains(&key.text), "{answer:?}");
    }
    let body = json!({"name": "for ever", "scopes": ["use"], "expiresInDays": null});
    let key = Key::created(&house, ADMIN, body).await;
    let shown = get(&house, ADMIN, &key.path()).await.body;
    assert_eq!((shown.get("expiresAt"), &shown["scopes"]), (None, &json!(["use"])));
}

#[tokio::test]
async fn keys_are_listed_in_pages() {
    let house = asking("").await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(Key::created(&house, ADMIN, json!({"name": name})).await.id);
    }
    ids.sort_unstable();
    let mut listed = Vec::new();
    let mut path = format!("{KEYS}?limit=1");
    while listed.len() < ids.len() {
        let page = get(&house, ADMIN, &path).await.body;
        listed.push(text(&page["items"][0]["id"]));
        path = format!("{KEYS}?limit=1&cursor={}", text(&page["nextCursor"]));
    }
    assert_eq!(listed, ids);
}

#[tokio::test]
async fn everyone_learns_who_they_are() {
    let house = asking("").await;
    let admin = get(&house, ADMIN, "/api/v1/whoami").await.body;
    let expected = json!({
        "realm": "default", "subject": "admin", "roles": ["admin"], "realms": {"*": ["admin"]},
        "mode": "credentials",
    });
    assert_eq!(admin, expected);
    let body = json!({"name": "ci", "roles": ["viewer", "approver"], "scopes": ["answer", "read"],
        "expiresInDays": null});
    let key = Key::created(&house, ADMIN, body).await;
    let expected = json!({
        "realm": "default", "subject": format!("key:{}", key.id), "roles": ["approver", "viewer"],
        "realms": {"default": ["approver", "viewer"]}, "scopes": ["read", "answer"],
        "key": {"id": key.id, "name": "ci"}, "mode": "credentials",
    });
    assert_eq!(get(&house, &key.text, "/api/v1/whoami").await.body, expected);
    let mut other = request(Method::GET, "/api/v1/whoami", Body::empty());
    other.headers_mut().insert("x-api-key", key.text.parse().unwrap());
    assert_eq!(house.send(other).await.body, expected);
    let stranger = house.get("/api/v1/whoami").await;
    assert_eq!(stranger.refusal(), refused(401, "unauthorized", &[]));
}

/// This machine, as the server sees it.
fn local(role: &str) -> Value {
    json!({"realm": "default", "subject": "local", "roles": [role], "mode": "local"})
}

#[tokio::test]
async fn in_local_mode_everybody_is_this_machine() {
    let house = House::demo().await;
    assert_eq!(house.get("/api/v1/whoami").await.body, local("admin"));
    let keyed = House::build(Project::demo(), Some(ADMIN)).await;
    assert_eq!(keyed.get("/api/v1/whoami").await.body, local("member"));
    assert_eq!(get(&keyed, ADMIN, "/api/v1/whoami").await.body, local("admin"));
}

#[tokio::test]
async fn in_local_mode_administrators_prepare_keys() {
    let house = House::demo().await;
    let created = house.post(KEYS, json!({"name": "ci", "realms": {"*": ["admin"]}})).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.body["key"]["by"], "local");
    let keyed = House::build(Project::demo(), Some(ADMIN)).await;
    let refusal = keyed.post(KEYS, json!({"name": "ci"})).await;
    assert_eq!(refusal.refusal(), refused(401, "unauthorized", &[]));
    Key::created(&keyed, ADMIN, json!({"name": "ci"})).await;
}

#[tokio::test]
async fn a_revoked_key_is_dead_at_once_and_for_good() {
    let house = asking("").await;
    let key = Key::created(&house, ADMIN, json!({"name": "ci"})).await;
    assert_eq!(key.status(&house).await, 200);
    key.revoke(&house).await;
    assert_eq!(key.status(&house).await, 401);
    key.revoke(&house).await;
    let shown = get(&house, ADMIN, &key.path()).await.body;
    assert_eq!(shown["status"], "revoked");
    assert!(shown["revokedAt"].is_string() && shown["usedAt"].is_string(), "{shown}");
    let rotate = format!("{}/rotate", key.path());
    let refusal = send(&house, ADMIN, Method::POST, &rotate, Value::Null).await;
    assert_eq!(refusal.refusal(), refused(409, "key_revoked", &[]));
}

#[tokio::test]
async fn a_rotated_key_keeps_its_id_and_for_a_while_its_text() {
    let house = asking("").await;
    let first = Key::created(&house, ADMIN, json!({"name": "ci"})).await;
    let second = first.rotated(&house, 3_600_000).await;
    assert_eq!(first.id, second.id);
    assert_ne!(first.text, second.text);
    assert_eq!((first.status(&house).await, second.status(&house).await), (200, 200));
    assert!(get(&house, ADMIN, &first.path()).await.body["overlapUntil"].is_string());
    let third = second.rotated(&house, 0).await;
    let statuses = [&first, &second, &third];
    let mut told = Vec::new();
    for key in statuses {
        told.push(key.status(&house).await);
    }
    assert_eq!(told, [401, 401, 200]);
    assert_eq!(get(&house, ADMIN, &first.path()).await.body.get("overlapUntil"), None);
    let rotate = format!("{}/rotate", first.path());
    let long = json!({"overlapMs": 2_592_000_001_u64});
    let refusal = send(&house, ADMIN, Method::POST, &rotate, long).await;
    assert_eq!(refusal.refusal(), refused(422, "wrong_shape", &["/overlapMs"]));
}

#[tokio::test]
async fn no_one_gives_sees_or_changes_more_than_they_administer() {
    let house = asking("").await;
    let everywhere =
        Key::created(&house, ADMIN, json!({"name": "all", "realms": {"*": ["viewer"]}}));
    let everywhere = everywhere.await;
    let admin = Key::created(&house, ADMIN, json!({"name": "here", "roles": ["admin"]})).await;
    for realms in [json!({"*": ["viewer"]}), json!({"default": ["viewer"], "acme": ["viewer"]})] {
        let body = json!({"name": "more", "realms": realms});
        let refusal = send(&house, &admin.text, Method::POST, KEYS, body).await;
        assert_eq!(refusal.refusal(), refused(403, "grant_exceeds", &[]));
    }
    let made = Key::created(&house, &admin.text, json!({"name": "own", "roles": ["admin"]})).await;
    let seen = get(&house, &admin.text, KEYS).await.body;
    let seen: Vec<String> =
        seen["items"].as_array().unwrap().iter().map(|key| text(&key["id"])).collect();
    let mut expected = vec![admin.id.clone(), made.id.clone()];
    expected.sort_unstable();
    assert_eq!(seen, expected);
    let rotate = format!("{}/rotate", everywhere.path());
    for (method, path) in [
        (Method::GET, everywhere.path()),
        (Method::DELETE, everywhere.path()),
        (Method::POST, rotate),
        (Method::GET, format!("{KEYS}/aaaaaaaaaa")),
        (Method::GET, format!("{KEYS}/none")),
    ] {
        let refusal = send(&house, &admin.text, method, &path, Value::Null).await;
        assert_eq!(refusal.refusal(), refused(404, "not_found", &[]), "{path}");
    }
    assert_eq!(everywhere.status(&house).await, 200);
    for role in ["viewer", "member", "approver", "operator"] {
        let key = Key::created(&house, ADMIN, json!({"name": role, "roles": [role]})).await;
        let refusal = get(&house, &key.text, KEYS).await;
        assert_eq!(refusal.refusal(), refused(403, "forbidden", &[]), "{role}");
    }
    let body = json!({"name": "narrow", "roles": ["admin"], "scopes": ["operate"]});
    let narrow = Key::created(&house, ADMIN, body).await;
    assert_eq!(get(&house, &narrow.text, KEYS).await.status, 403);
}

#[tokio::test]
async fn each_mistake_of_a_key_has_its_pointer() {
    let house = asking("").await;
    for (body, place) in [
        (json!({"name": " "}), "/name"),
        (json!({"name": "x".repeat(201)}), "/name"),
        (json!({"name": "a", "roles": ["member", "memeber"]}), "/roles/1"),
        (json!({"name": "a", "roles": []}), "/realms"),
        (json!({"name": "a", "realms": {}}), "/realms"),
        (json!({"name": "a", "realms": {"A/b": ["member"]}}), "/realms/A~1b"),
        (json!({"name": "a", "realms": {"default": ["none"]}}), "/realms/default/0"),
        (json!({"name": "a", "realms": {"default": ["member"]}, "roles": ["member"]}), "/roles"),
        (json!({"name": "a", "scopes": []}), "/scopes"),
        (json!({"name": "a", "scopes": ["all"]}), "/scopes/0"),
        (json!({"name": "a", "expiresInDays": 0}), "/expiresInDays"),
        (json!({"name": "a", "expiresInDays": 36_501}), "/expiresInDays"),
    ] {
        let refusal = send(&house, ADMIN, Method::POST, KEYS, body.clone()).await;
        assert_eq!(refusal.refusal(), refused(422, "wrong_shape", &[place]), "{body}");
    }
    let body = json!({"name": "a", "roles": ["memeber"]});
    let refusal = send(&house, ADMIN, Method::POST, KEYS, body).await;
    assert_eq!(refusal.body["hint"], "did you mean `member`?");
    assert_eq!(get(&house, ADMIN, KEYS).await.body["items"], json!([]));
}

/// How soon an answer ends with its key. The promise is one second; a busy machine may take longer.
/// Without it the answer would wait for as long as a connection may take.
const SOON: Duration = Duration::from_secs(30);
/// How long a server may take until it connects to another one, on a busy machine.
const CONNECT_LIMIT: Duration = Duration::from_secs(60);

/// Waits until a request came with this key, and was let in.
async fn until_used(house: &House, key: &Key) {
    let look = async || get(house, ADMIN, &key.path()).await;
    let is_used = |shown: &Answer| shown.body["usedAt"].is_string();
    wait_for(&format!("a request with the key `{}`", key.id), look, is_used).await;
}

#[tokio::test]
async fn an_answer_that_is_waited_for_ends_with_its_key() {
    // It takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = format!(
        "[limits]\nupstream_connect_timeout_ms = 90000\n[mcp.servers.far]\nurl = \"http://{}/mcp\"",
        silent.local_addr().unwrap()
    );
    let house = asking(&settings).await;
    let key = Key::created(&house, ADMIN, json!({"name": "boss", "roles": ["admin"]})).await;
    let check = async {
        let path = "/api/v1/upstreams/far/check";
        let answer = send(&house, &key.text, Method::POST, path, json!({})).await;
        (answer, Instant::now())
    };
    let revoke = async {
        // The server waits for the silent one, and with it the request that was let in.
        let connected = timeout(CONNECT_LIMIT, silent.accept()).await;
        let held = connected.expect("the server should connect to the silent one").unwrap();
        until_used(&house, &key).await;
        key.revoke(&house).await;
        (Instant::now(), held)
    };
    let ((answer, ended), (revoked, _held)) = tokio::join!(check, revoke);
    assert_eq!(answer.refusal(), refused(401, "unauthorized", &[]));
    let told = "the credential ended before the answer was there";
    assert_eq!(answer.body["detail"], told, "{answer:?}");
    let took = ended.saturating_duration_since(revoked);
    assert!(took < SOON, "it took {took:?}");
}
