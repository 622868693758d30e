//! Who may make and remove webhooks of A2A, and what ends those that were made.

use crate::a2a::{self, SETTINGS, message};
use crate::a2a_push::{OK, PUSH, Receiver};
use crate::api_keys::{ADMIN, get, send};
use crate::credentials::{Guarded, OPEN};
use crate::house::{ADDRESS, Answer, House, read, request, setup, wait_for};
use axum::body::Body;
use axum::http::Method;
use identity::keys::{Expiry, KeyWithText};
use kernel::contracts::Policy;
use kernel::contracts::policy::{Decision, Request};
use kernel::identity::principal_reader::{KnownNames, read_text};
use kernel::identity::roles::Role;
use kernel::limits::Limits;
use kernel::tool::call::Verdict;
use kernel::values::caller::Act;
use project::folder::Project;
use serde_json::{Value, json};
use server::{Extra, Setup};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A token of a key with this scope alone: the same subject, which may do less.
pub fn token(guarded: &Guarded, key: &KeyWithText, scope: &str) -> String {
    let token = guarded.identity.token(&key.stored.key.id.0, key.text.expose(), Some(scope));
    token.unwrap().text.expose().to_owned()
}

/// A message that begins a task which waits for an answer.
fn greeting(id: &str) -> Value {
    message(id, "interaction::greeting", json!({"data": {}}))
}

/// A message with a webhook.
fn with(message: Value, config: Value) -> Value {
    let configuration = json!({"taskPushNotificationConfig": config});
    json!({"message": message, "configuration": configuration})
}

/// A request of a version of A2A; none is 0.3.
struct Asked<'a> {
    version: Option<&'static str>,
    verb: Method,
    path: &'a str,
    body: Value,
}

impl Asked<'_> {
    async fn by(&self, guarded: &Guarded, credential: &str) -> Answer {
        let mut headers = vec![("x-api-key", credential)];
        headers.extend(self.version.map(|version| ("a2a-version", version)));
        read(guarded.open(self.verb.clone(), self.path, &headers, &self.body).await).await
    }
}

/// A call of JSON-RPC.
fn rpc(
    path: &'static str,
    version: Option<&'static str>,
    method: &str,
    params: &Value,
) -> Asked<'static> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    Asked { version, verb: Method::POST, path, body }
}

fn v1(method: &str, params: &Value) -> Asked<'static> {
    rpc("/a2a/v1", Some("1.0"), method, params)
}

fn v03(method: &str, params: &Value) -> Asked<'static> {
    rpc("/a2a/v1", None, method, params)
}

#[tokio::test]
async fn a_caller_that_may_not_send_messages_makes_and_removes_no_webhook() {
    let settings = format!("{OPEN}[a2a]\nexpose = [\"interaction::*\"]\n{PUSH}");
    let guarded = Guarded::start(&settings).await;
    let receiver = Receiver::new(&[OK]);
    let made = guarded.made(Role::Member, &[], Expiry::Usual).await;
    let own = made.text.expose().to_owned();
    let config = |id: &str| json!({"id": id, "url": receiver.url});
    let sent = v1("SendMessage", &with(greeting("m1"), config("kept"))).by(&guarded, &own).await;
    let task = sent.body["result"]["task"]["id"].clone();
    assert!(task.is_string(), "{sent:?}");
    let id = task.as_str().unwrap();
    let new = format!("/a2a/v1/tasks/{id}/pushNotificationConfigs");
    let old = format!("/a2a/v1/v1/tasks/{id}/pushNotificationConfigs");
    let new_kept = format!("{new}/kept");
    let old_kept = format!("{old}/kept");
    let at = |version, verb: Method, path, body: Value| Asked { version, verb, path, body };
    let named = json!({"taskId": task, "id": "kept"});
    let named_old = json!({"id": task, "pushNotificationConfigId": "kept"});
    let made_old = json!({"parent": format!("tasks/{id}"), "configId": "new",
        "config": {"pushNotificationConfig": config("new")}});
    let answer = json!({"messageId": "m2", "role": "ROLE_USER", "taskId": task,
        "parts": [{"text": "Ann"}]});
    let create = json!({"taskId": task, "id": "new", "url": receiver.url});
    let set = json!({"taskId": task, "pushNotificationConfig": config("new")});
    let changes = [
        v1("CreateTaskPushNotificationConfig", &create),
        v1("DeleteTaskPushNotificationConfig", &named),
        at(Some("1.0"), Method::POST, &new, config("new")),
        at(Some("1.0"), Method::DELETE, &new_kept, Value::Null),
        v03("tasks/pushNotificationConfig/set", &set),
        v03("tasks/pushNotificationConfig/delete", &named_old),
        at(None, Method::POST, &old, made_old),
        at(None, Method::DELETE, &old_kept, Value::Null),
        // A message that was sent before, and one that answers.
        v1("SendMessage", &with(greeting("m1"), config("new"))),
        v1("SendMessage", &with(answer, config("new"))),
    ];
    let reads = token(&guarded, &made, "read");
    let answers = token(&guarded, &made, "answer");
    for credential in [&reads, &answers] {
        for change in &changes {
            let refused = change.by(&guarded, credential).await;
            assert_eq!(refused.status, 403, "{} {}: {refused:?}", change.verb, change.body);
        }
        let listed = v1("ListTaskPushNotificationConfigs", &json!({"taskId": task}));
        let configs = listed.by(&guarded, credential).await.body["result"]["configs"].clone();
        assert_eq!(configs, json!([{"taskId": task, "id": "kept", "url": receiver.url}]));
        let shown = v1("GetTaskPushNotificationConfig", &named).by(&guarded, credential).await;
        assert_eq!(shown.body["result"], configs[0], "{shown:?}");
    }
    let words = json!({"role": "user", "parts": [{"type": "text", "content": "Ann"}]});
    let vault = json!({"id": task, "message": words, "webhookUrl": receiver.url});
    let refused = rpc("/a2a", None, "tasks/send", &vault).by(&guarded, &answers).await;
    assert_eq!((refused.status, &refused.body["error"]["code"]), (403, &json!(-32000)));
    let task = v1("GetTask", &json!({"id": task})).by(&guarded, &own).await.body["result"].clone();
    assert_eq!(
        task["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
        "nothing was answered: {task}"
    );
    let removed = v1("DeleteTaskPushNotificationConfig", &named).by(&guarded, &own).await;
    assert_eq!((removed.status, &removed.body["result"]), (200, &json!({})), "{removed:?}");
}

#[tokio::test]
async fn acts_on_a_webhook_are_audited_with_its_address() {
    let more = "[audit]\nstrict = true\n";
    let settings = format!("{OPEN}[a2a]\nexpose = [\"interaction::*\"]\n{PUSH}{more}");
    let guarded = Guarded::start(&settings).await;
    let receiver = Receiver::new(&[OK]);
    let member = guarded.made(Role::Member, &[], Expiry::Usual).await;
    let admin = guarded.made(Role::Admin, &[], Expiry::Usual).await;
    let own = member.text.expose();
    let admin = admin.text.expose();
    let config = json!({"id": "kept", "url": format!("{}?token=hidden", receiver.url)});
    let sent = v1("SendMessage", &with(greeting("m1"), config)).by(&guarded, own).await;
    let task = sent.body["result"]["task"]["id"].clone();
    assert!(task.is_string(), "{sent:?}");
    let named = json!({"taskId": task, "id": "kept"});
    let removed = v1("DeleteTaskPushNotificationConfig", &named).by(&guarded, own).await;
    assert_eq!(removed.status, 200, "{removed:?}");
    for act in ["webhook.create", "webhook.remove"] {
        let path = format!("/api/v1/audit?act={act}");
        let asked = Asked { version: None, verb: Method::GET, path: &path, body: Value::Null };
        let page = asked.by(&guarded, admin).await.body;
        assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "{act}: {page}");
        let entry = &page["items"][0];
        assert_eq!(entry["object"], json!({"kind": "webhook", "id": "kept"}), "{act}");
        assert_eq!(entry["detail"]["task"], task, "{act}");
        let target = entry["detail"]["target"].as_str().unwrap();
        assert!(receiver.url.starts_with(target), "{act}: {target}");
        assert!(!page.to_string().contains("hidden"), "{act}: {page}");
    }
}

/// Allows everything, but not to act as another once that is withdrawn.
#[derive(Debug, Default)]
struct Withdrawable {
    is_withdrawn: AtomicBool,
}

impl Policy for Withdrawable {
    fn decide(&self, asked: &Request<'_>) -> Decision {
        match asked.act {
            Act::Impersonate if self.is_withdrawn.load(Ordering::Relaxed) => {
                Verdict::Deny("it was withdrawn".to_owned()).into()
            }
            _ => Decision::allow(),
        }
    }
}

/// A project that others reach, which knows `ann`.
fn knowing_ann() -> Project {
    let file = "principals:\n  ann:\n    realms: {default: [member]}\n";
    let names = KnownNames { issuers: Some(&[]), has_policies: false };
    let principals = read_text(file, "principals.yaml", names, &Limits::default()).unwrap().0;
    let project = a2a::project(&format!("{OPEN}{SETTINGS}{PUSH}"));
    Project { principals: Some(principals), ..project }
}

/// Waits until a line of the metrics is so.
async fn until_told(house: &House, line: &str) {
    let metrics = async || get(house, ADMIN, "/metrics").await.text;
    let is_shown = |text: &String| text.lines().any(|shown| shown == line);
    wait_for(&format!("`{line}`"), metrics, is_shown).await;
}

#[tokio::test]
async fn a_webhook_ends_with_the_right_to_act_as_its_subject() {
    let data = tempfile::tempdir().unwrap();
    let receiver = Receiver::new(&[OK]);
    let policy = Arc::new(Withdrawable::default());
    let (house, stopper) = House::of(|| {
        let extra = Extra { policy: Some(policy.clone()), ..Extra::default() };
        let admin_key = Some(ADMIN.to_owned());
        Setup { extra, admin_key, ..setup(knowing_ann(), &data, ADDRESS.parse().unwrap()) }
    })
    .await;
    let asks = message("m1", "it/question", json!({"data": {}}));
    let body = v1("SendMessage", &with(asks, receiver.config())).body;
    let mut sent = request(Method::POST, "/a2a/v1", Body::from(body.to_string()));
    let bearer = format!("Bearer {ADMIN}");
    let headers = [
        ("a2a-version", "1.0"),
        ("x-impersonate-subject", "ann"),
        ("authorization", bearer.as_str()),
    ];
    for (name, value) in headers {
        sent.headers_mut().insert(name, value.parse().unwrap());
    }
    let answer = read(house.open(sent).await).await;
    let run = answer.body["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{answer:?}"));
    let before = receiver.until("AUTH_REQUIRED").await.len();
    policy.is_withdrawn.store(true, Ordering::Relaxed);
    let cancelled = format!("/api/v1/runs/{run}/cancel");
    let cancelled = send(&house, ADMIN, Method::POST, &cancelled, Value::Null).await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    until_told(&house, "waypost_pushes_total{outcome=\"ended\"} 1").await;
    assert_eq!(receiver.got().len(), before, "{:?}", receiver.got());
    stopper.stop().await;
}

#[tokio::test]
async fn a_purged_realm_leaves_no_webhook_that_waits() {
    let receiver = Receiver::new(&[OK]);
    let project = a2a::project(&format!("{OPEN}{SETTINGS}{PUSH}"));
    let house = House::build(project, Some(ADMIN)).await;
    let made = send(&house, ADMIN, Method::POST, "/api/v1/realms", json!({"name": "acme"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let asks = message("m1", "it/question", json!({"data": {}}));
    let mut params = with(asks, receiver.config());
    params["tenant"] = json!("acme");
    let body = v1("SendMessage", &params).body;
    let mut sent = request(Method::POST, "/a2a/v1", Body::from(body.to_string()));
    for (name, value) in [("a2a-version", "1.0"), ("x-api-key", ADMIN)] {
        sent.headers_mut().insert(name, value.parse().unwrap());
    }
    let answer = read(house.open(sent).await).await;
    assert!(answer.body["result"]["task"].is_object(), "{answer:?}");
    receiver.until("INPUT_REQUIRED").await;
    until_told(&house, "waypost_webhooks_live 1").await;
    let removed = send(&house, ADMIN, Method::DELETE, "/api/v1/realms/acme", Value::Null).await;
    assert_eq!(removed.status, 200, "{removed:?}");
    until_told(&house, "waypost_webhooks_live 0").await;
}
