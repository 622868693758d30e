//! `/api/v1/audit`: who did what, for those who administer, and whether it is as it was written.

use crate::a2a::{ADD, SETTINGS, message};
use crate::api_keys::{ADMIN, Key, asking, get, send};
use crate::house::{Answer, House, encoded, read, request, text, wait_for};
use crate::mcp_client::{asked, modern};
use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};

const AUDIT: &str = "/api/v1/audit";
/// Answers come once what was decided is written.
const STRICT: &str = "[audit]\nstrict = true";

/// The acts of a page of entries, oldest first.
async fn acts(house: &House, query: &str) -> Vec<String> {
    let page = get(house, ADMIN, &format!("{AUDIT}?{query}")).await;
    assert_eq!(page.status, 200, "{page:?}");
    let items = page.body["items"].as_array().unwrap();
    items.iter().rev().map(|item| text(&item["act"])).collect()
}

#[tokio::test]
async fn changes_of_keys_and_denials_are_listed_for_administrators() {
    let house = asking(STRICT).await;
    let key = Key::created(&house, ADMIN, json!({"name": "ci"})).await;
    let denied = get(&house, &key.text, "/api/v1/keys").await;
    assert_eq!(denied.status, 403, "{denied:?}");
    key.revoke(&house).await;
    let by_admin = acts(&house, "subject=admin").await;
    let changes: Vec<&str> =
        by_admin.iter().map(String::as_str).filter(|act| act.starts_with("key.")).collect();
    assert_eq!(changes, ["key.create", "key.revoke"]);
    let page = get(&house, ADMIN, &format!("{AUDIT}?subject=key:{}", key.id)).await.body;
    let entry = &page["items"][0];
    assert_eq!((&entry["act"], &entry["verdict"]), (&json!("administer"), &json!("deny")));
    assert!(entry["why"].is_string(), "{entry}");
    assert_eq!(entry["door"], "rest /api/v1/keys");
    assert!(!page.to_string().contains(&key.text));
    assert_eq!(acts(&house, "act=key.create&limit=1").await, ["key.create"]);
    assert_eq!(acts(&house, "act=key.create&since=2999-01-01T00:00:00Z").await, [""; 0]);
    for wrong in ["since=yesterday", "chain=mine", "acts=call"] {
        let refused = get(&house, ADMIN, &format!("{AUDIT}?{wrong}")).await;
        assert_eq!(refused.status, 400, "{refused:?}");
    }
}

#[tokio::test]
async fn only_administrators_read_the_audit_and_only_those_of_all_realms_the_servers() {
    let house = asking(STRICT).await;
    let member = Key::created(&house, ADMIN, json!({"name": "member"})).await;
    let own = json!({"name": "admin of one realm", "roles": ["admin"]});
    let own = Key::created(&house, ADMIN, own).await;
    for path in [AUDIT.to_owned(), format!("{AUDIT}/head"), format!("{AUDIT}/verify")] {
        assert_eq!(get(&house, &member.text, &path).await.status, 403, "{path}");
        assert_eq!(get(&house, &own.text, &path).await.status, 200, "{path}");
        let of_server = format!("{path}?chain=server");
        assert_eq!(get(&house, &own.text, &of_server).await.status, 403, "{path}");
        assert_eq!(get(&house, ADMIN, &of_server).await.status, 200, "{path}");
    }
    assert_eq!(acts(&house, "chain=server&act=server.start").await, ["server.start"]);
}

#[tokio::test]
async fn a_chain_is_verified_against_a_head_that_was_kept() {
    let house = asking(STRICT).await;
    Key::created(&house, ADMIN, json!({"name": "ci"})).await;
    let kept = get(&house, ADMIN, &format!("{AUDIT}/head")).await.body;
    assert_eq!(kept["chain"], "default");
    let head = text(&kept["head"]);
    Key::created(&house, ADMIN, json!({"name": "another"})).await;
    let verify = async |head: &str| {
        let answer = get(&house, ADMIN, &format!("{AUDIT}/verify?head={head}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    };
    let seen = verify(&head).await;
    assert_eq!((&seen["valid"], &seen["found"]), (&json!(true), &json!([])));
    let (number, mac) = head.split_once(':').unwrap();
    let other = format!("{number}:{}", "0".repeat(mac.len()));
    assert_eq!(verify(&other).await["valid"], false);
    let later = format!("999999:{mac}");
    let seen = verify(&later).await;
    assert!(text(&seen["found"][0]).contains("older copy"), "{seen}");
    let wrong = get(&house, ADMIN, &format!("{AUDIT}/verify?head=1")).await;
    assert_eq!(wrong.status, 400, "{wrong:?}");
}

#[tokio::test]
async fn reads_of_data_of_others_are_audited() {
    for (setting, keeps) in [("", true), ("\nreads = false", false)] {
        let house = asking(&format!("{STRICT}{setting}")).await;
        let ann = Key::created(&house, ADMIN, json!({"name": "ann"})).await;
        let role = json!({"name": "viewer", "roles": ["viewer"]});
        let viewer = Key::created(&house, ADMIN, role).await;
        let body = json!({"planId": "test::plan_that_fails"});
        let started = send(&house, &ann.text, Method::POST, "/api/v1/runs", body).await;
        assert!(started.status < 300, "{started:?}");
        for (who, expected) in [(&ann, vec!["events"]), (&viewer, vec!["asks", "events"])] {
            let asks = get(&house, &who.text, "/api/v1/asks").await;
            assert_eq!(asks.body["items"].as_array().map(Vec::len), Some(1), "{asks:?}");
            let mut request = request(Method::GET, "/api/v1/events", Body::empty());
            let credential = format!("Bearer {}", who.text).parse().unwrap();
            request.headers_mut().insert("authorization", credential);
            let feed = house.open(request).await;
            assert_eq!(feed.status(), 200);
            let query = format!("{AUDIT}?act=read&subject=key:{}", who.id);
            let page = get(&house, ADMIN, &query).await.body;
            let items = page["items"].as_array().unwrap().iter().rev();
            let kinds = items.map(|item| text(&item["object"]["kind"]));
            let shown = |kind: &String| kind == "asks" || kind == "events";
            let kinds: Vec<String> = kinds.filter(shown).collect();
            let expected = if keeps { expected } else { Vec::new() };
            assert_eq!(kinds, expected, "{setting}: {page}");
        }
    }
}

#[tokio::test]
async fn an_issued_token_is_audited_without_its_text() {
    let house = asking(STRICT).await;
    let key = Key::created(&house, ADMIN, json!({"name": "ci"})).await;
    let secret = encoded(&json!(key.text));
    let client = format!("client_id={}&client_secret={secret}", key.id);
    let form = format!("grant_type=client_credentials&{client}&scope=read");
    let given = house.send(request(Method::POST, "/oauth/token", Body::from(form))).await;
    assert_eq!(given.status, 200, "{given:?}");
    let page = get(&house, ADMIN, &format!("{AUDIT}?act=token.issue")).await.body;
    assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "{page}");
    let entry = &page["items"][0];
    assert_eq!(entry["subject"], format!("key:{}", key.id));
    assert_eq!(entry["object"], json!({"kind": "key", "id": key.id}));
    assert_eq!(entry["detail"], json!({"scopes": ["read"], "expiresInS": 900}));
    let token = text(&given.body["access_token"]);
    assert!(!page.to_string().contains(&token) && !page.to_string().contains(&key.text), "{page}");
}

#[tokio::test]
async fn trying_the_id_of_a_hidden_principal_is_audited_as_denied() {
    let house = asking(STRICT).await;
    let own = json!({"name": "admin of one realm", "roles": ["admin"]});
    let own = Key::created(&house, ADMIN, own).await;
    let everywhere = json!({"realms": {"*": ["admin"]}});
    let stored = send(&house, ADMIN, Method::PUT, "/api/v1/principals/root", everywhere).await;
    assert_eq!(stored.status, 201, "{stored:?}");
    let version = Some("\"99\"");
    for (id, condition, status) in
        [("root", None, 409), ("root", version, 409), ("new", version, 412)]
    {
        let path = format!("/api/v1/principals/{id}");
        let body = json!({"realms": {"default": ["member"]}}).to_string();
        let mut request = request(Method::PUT, &path, Body::from(body));
        let credential = format!("Bearer {}", own.text).parse().unwrap();
        request.headers_mut().insert("authorization", credential);
        if let Some(version) = condition {
            request.headers_mut().insert("if-match", version.parse().unwrap());
        }
        let refused = house.send(request).await;
        let page = get(&house, ADMIN, &format!("{AUDIT}?subject=key:{}&limit=1", own.id)).await;
        let entry = &page.body["items"][0];
        assert_eq!(refused.status, status, "{id} {condition:?}: {refused:?}");
        assert_eq!(entry["verdict"], "deny", "{id} {condition:?}: {entry}");
        let object = json!({"kind": "principal", "id": id});
        assert_eq!(entry["object"], object, "{id} {condition:?}: {entry}");
    }
}

#[tokio::test]
async fn headers_of_a_request_are_audited_with_its_act() {
    let house = asking(STRICT).await;
    let key = Key::created(&house, ADMIN, json!({"name": "ci"})).await;
    let body = json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 2}});
    let mut request = request(Method::POST, "/api/v1/runs", Body::from(body.to_string()));
    let sent = [
        ("authorization", format!("Bearer {}", key.text)),
        ("x-agent-session-id", "s-17".to_owned()),
        ("x-acting-on-behalf-of-userid", "eve".to_owned()),
    ];
    for (name, value) in sent {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let started = house.send(request).await;
    assert_eq!(started.status, 200, "{started:?}");
    let page = get(&house, ADMIN, &format!("{AUDIT}?act=run")).await.body;
    let entry = &page["items"][0];
    let said = json!({"x-acting-on-behalf-of-userid": "eve", "x-agent-session-id": "s-17"});
    assert_eq!(entry["headers"], said);
    assert_eq!(entry["subject"], format!("key:{}", key.id), "nothing follows from them");
    assert_eq!(entry.get("actor"), None);
}

#[tokio::test]
async fn a_call_is_audited_with_a_digest_of_its_arguments() {
    let house = asking(STRICT).await;
    let key = Key::created(&house, ADMIN, json!({"name": "ci"})).await;
    let body = json!({"arguments": {"a": 1, "b": 2}});
    let path = "/api/v1/tools/math::add/call";
    let called = send(&house, &key.text, Method::POST, path, body).await;
    assert_eq!(called.status, 200, "{called:?}");
    let page = get(&house, ADMIN, &format!("{AUDIT}?act=call")).await.body;
    let entry: &Value = &page["items"][0];
    assert_eq!(entry["object"], json!({"kind": "tool", "id": "math::add"}));
    assert_eq!(entry["subject"], format!("key:{}", key.id));
    assert_eq!(text(&entry["arguments"]).len(), 64);
    assert_eq!(entry["door"], "rest /api/v1/tools/{name}/call");
}

#[tokio::test]
async fn acting_as_the_realms_principal_needs_the_rights_of_both_and_is_audited_with_both() {
    let settings = format!("{STRICT}\n[realms.default]\nrun_as_user_id = \"service\"");
    let house = asking(&settings).await;
    let key = Key::created(&house, ADMIN, json!({"name": "ci", "roles": ["operator"]})).await;
    let subject = format!("key:{}", key.id);
    let tries = async |verdict: &str, state: &str| {
        let run = json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 2}});
        let started = send(&house, &key.text, Method::POST, "/api/v1/runs", run).await;
        let expected = if verdict == "allow" { 200 } else { 403 };
        assert_eq!(started.status, expected, "{state}: {started:?}");
        let path = "/api/v1/tools/math::add/call";
        let call = json!({"arguments": {"a": 1, "b": 2}});
        let called = send(&house, &key.text, Method::POST, path, call).await;
        assert_eq!(called.status == 200, verdict == "allow", "{state}: {called:?}");
        let subject = subject.as_str();
        let service = "service";
        let kept: &[_] = match verdict {
            "allow" => &[("run", subject), ("call", subject), ("call", service)],
            _ => &[("run", subject), ("run", service), ("call", subject), ("call", service)],
        };
        for (act, who) in kept {
            let path = format!("{AUDIT}?act={act}&subject={who}&limit=1");
            // A refusal is answered before it is written.
            let look = async || get(&house, ADMIN, &path).await.body["items"][0].clone();
            let entry = wait_for(&format!("{state}: {path}"), look, |entry: &Value| {
                entry["verdict"] == verdict
            })
            .await;
            let both = (&entry["subject"], &entry["runAs"]);
            assert_eq!(both, (&json!(subject), &json!("service")), "{state}: {entry}");
        }
    };
    let service = async |role: &str| {
        let path = "/api/v1/principals/service";
        let body = json!({"realms": {"default": [role]}});
        let stored = send(&house, ADMIN, Method::PUT, path, body).await;
        assert!(stored.status < 300, "{stored:?}");
    };
    tries("deny", "missing").await;
    service("viewer").await;
    tries("deny", "without the right").await;
    service("member").await;
    tries("allow", "with the right").await;
    let path = "/api/v1/principals/service/disable";
    let disabled = send(&house, ADMIN, Method::POST, path, Value::Null).await;
    assert_eq!(disabled.status, 200, "{disabled:?}");
    tries("deny", "disabled").await;
    let own = get(&house, &key.text, "/api/v1/upstreams").await;
    assert_eq!(own.status, 200, "what is not begun is the caller's own: {own:?}");
}

/// A request with this credential that is not one of our REST.
async fn answered(house: &House, key: &Key, mut request: Request<Body>) -> Answer {
    let credential = format!("Bearer {}", key.text).parse().unwrap();
    request.headers_mut().insert("authorization", credential);
    request.headers_mut().insert("a2a-version", "1.0".parse().unwrap());
    read(house.open(request).await).await
}

#[tokio::test]
async fn calling_a_hidden_tool_is_audited_as_denied_at_every_endpoint() {
    let house = asking(&format!("{STRICT}\n{SETTINGS}")).await;
    let posted =
        |path: &str, body: Value| request(Method::POST, path, Body::from(body.to_string()));
    let tool = "math::add";
    let numbers = json!({"a": 1, "b": 2});
    let by_rest = |name: &str| {
        let path = format!("/api/v1/tools/{name}/call");
        posted(&path, json!({"arguments": numbers}))
    };
    let named = |name: &str| json!({"name": name, "arguments": numbers});
    let skill = json!({"message": message("m1", ADD, json!({"data": numbers}))});
    for (request, act, object, endpoint) in [
        (by_rest(tool), "call", ("tool", tool), "rest /api/v1/tools/{name}/call"),
        (posted("/rpc", asked(1, "math.add", numbers.clone())), "call", ("tool", tool), "rpc /rpc"),
        (
            posted("/rpc", asked(1, "tools/call", named("math__add"))),
            "call",
            ("tool", tool),
            "rpc /rpc",
        ),
        (modern("tools/call", named("math__add")), "call", ("tool", tool), "mcp tools/call"),
        (posted("/a2a", asked(1, tool, numbers.clone())), "call", ("tool", tool), "a2a /a2a"),
        (by_rest(ADD), "run", ("plan", ADD), ""),
        (posted("/a2a/v1", asked(1, "SendMessage", skill)), "run", ("plan", ADD), ""),
    ] {
        let viewer = Key::created(&house, ADMIN, json!({"name": "v", "roles": ["viewer"]})).await;
        let what = format!("{act} of {object:?} at {}", request.uri());
        let refused = answered(&house, &viewer, request).await;
        let is_refused = refused.status == 404 || refused.body["error"].is_object();
        assert!(is_refused, "{what}: {refused:?}");
        let path = format!("{AUDIT}?act={act}&subject=key:{}", viewer.id);
        // A refusal is answered before it is written.
        let look = async || get(&house, ADMIN, &path).await.body["items"].clone();
        let is_kept = |items: &Value| items.as_array().is_some_and(|items| !items.is_empty());
        let items = wait_for(&what, look, is_kept).await;
        assert_eq!(items.as_array().unwrap().len(), 1, "{what}: {items}");
        let entry = &items[0];
        assert_eq!(entry["verdict"], "deny", "{what}: {entry}");
        assert_eq!(entry["object"], json!({"kind": object.0, "id": object.1}), "{what}: {entry}");
        assert!(endpoint.is_empty() || entry["door"] == endpoint, "{what}: {entry}");
    }
    let member = Key::created(&house, ADMIN, json!({"name": "m"})).await;
    let unknown = answered(&house, &member, by_rest("math::nothing")).await;
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let called = answered(&house, &member, by_rest(tool)).await;
    assert_eq!(called.status, 200, "{called:?}");
    let page = get(&house, ADMIN, &format!("{AUDIT}?act=call&subject=key:{}", member.id)).await;
    let names: Vec<&Value> =
        page.body["items"].as_array().unwrap().iter().map(|item| &item["object"]["id"]).collect();
    assert_eq!(names, [tool], "what is not there leaves no entry: {page:?}");
}

#[tokio::test]
async fn asking_for_more_than_ones_realm_is_audited_as_denied() {
    let house = asking(STRICT).await;
    let own = json!({"name": "admin of one realm", "roles": ["admin"]});
    let own = Key::created(&house, ADMIN, own).await;
    let everywhere = json!({"*": ["admin"]});
    for (method, path, body) in [
        (Method::POST, "/api/v1/keys", json!({"name": "x", "realms": everywhere})),
        (Method::PUT, "/api/v1/principals/eve", json!({"realms": everywhere})),
        (Method::POST, "/api/v1/realms", json!({"name": "mine"})),
        (Method::DELETE, "/api/v1/realms/other", Value::Null),
        (Method::POST, "/api/v1/backup", json!({"dir": "/nowhere/at/all"})),
        (Method::GET, "/api/v1/policies", Value::Null),
        (Method::GET, "/api/v1/audit?chain=server", Value::Null),
    ] {
        let refused = send(&house, &own.text, method.clone(), path, body).await;
        assert_eq!(refused.status, 403, "{method} {path}: {refused:?}");
        let page = get(&house, ADMIN, &format!("{AUDIT}?subject=key:{}&limit=1", own.id)).await;
        let entry = &page.body["items"][0];
        assert_eq!(entry["verdict"], "deny", "{method} {path}: {entry}");
        assert!(text(&entry["why"]).contains("`admin` in `*`"), "{method} {path}: {entry}");
    }
}

#[tokio::test]
async fn allowed_reads_are_left_out_where_the_settings_say_so_and_denied_ones_never() {
    for (setting, keeps) in [("", true), ("\nreads = false", false)] {
        let house = asking(&format!("{STRICT}{setting}")).await;
        let ann = Key::created(&house, ADMIN, json!({"name": "ann"})).await;
        let bob = Key::created(&house, ADMIN, json!({"name": "bob"})).await;
        let body = json!({"planId": "math::conditional_add", "input": {"a": 1, "b": 2}});
        let started = send(&house, &ann.text, Method::POST, "/api/v1/runs", body).await;
        assert_eq!(started.status, 200, "{started:?}");
        let session = format!("/api/v1/sessions/{}", text(&started.body["session"]["id"]));
        assert_eq!(get(&house, &ann.text, &session).await.status, 200);
        assert_eq!(get(&house, &bob.text, &session).await.status, 404);
        let read = async |key: &Key| {
            let query = format!("{AUDIT}?act=read&subject=key:{}", key.id);
            let page = get(&house, ADMIN, &query).await.body;
            let items = page["items"].as_array().unwrap().clone();
            items.iter().map(|item| text(&item["verdict"])).collect::<Vec<_>>()
        };
        let allowed = read(&ann).await;
        let denied = read(&bob).await;
        assert_eq!(!allowed.is_empty(), keeps, "{setting}: {allowed:?}");
        assert!(allowed.iter().all(|verdict| verdict == "allow"), "{allowed:?}");
        assert!(!denied.is_empty(), "{setting}");
        assert!(denied.iter().all(|verdict| verdict == "deny"), "{denied:?}");
        // What is no read is kept either way.
        let runs = acts(&house, &format!("act=run&subject=key:{}", ann.id)).await;
        assert_eq!(runs, ["run"]);
    }
}
