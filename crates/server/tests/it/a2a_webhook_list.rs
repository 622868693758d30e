//! `/api/v1/webhooks`: who sees which webhooks of tasks, and what is never shown of them.

use crate::a2a::{self, SETTINGS, message};
use crate::a2a_push::{OK, PUSH, Receiver};
use crate::api_keys::{ADMIN, get, send};
use crate::credentials::{Guarded, OPEN};
use crate::house::{Answer, House, encoded, read, refused, request, text, wait_for};
use axum::body::Body;
use axum::http::Method;
use kernel::identity::roles::Role;
use serde_json::{Value, json};

const WEBHOOKS: &str = "/api/v1/webhooks";

/// A call of `SendMessage` that begins a task of this skill which waits, with this webhook.
fn beginning(skill: &str, config: Value) -> Value {
    let message = message("m1", skill, json!({"data": {}}));
    let configuration = json!({"taskPushNotificationConfig": config});
    let params = json!({"message": message, "configuration": configuration});
    json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params})
}

/// A webhook with a secret in each part that can hold one.
fn secretive(id: &str, receiver: &Receiver) -> Value {
    json!({"id": id, "url": format!("{}/canary-path?canary=query", receiver.url),
        "token": "canary-token",
        "authentication": {"scheme": "Bearer", "credentials": "canary-credentials"}})
}

/// Who calls, and as whom.
struct Caller {
    key: String,
    subject: String,
}

impl Caller {
    async fn new(guarded: &Guarded, role: Role) -> Self {
        let key = guarded.key(role).await;
        let subject = text(&guarded.get_as(&key, "/api/v1/whoami").await.body["subject"]);
        assert!(!subject.is_empty());
        Self { key, subject }
    }

    /// A task that waits, with a webhook; its id.
    async fn begins(&self, guarded: &Guarded, config: Value) -> String {
        let body = beginning("interaction::greeting", config);
        let headers = [("x-api-key", self.key.as_str()), ("a2a-version", "1.0")];
        let answer = read(guarded.open(Method::POST, "/a2a/v1", &headers, &body).await).await;
        let task = text(&answer.body["result"]["task"]["id"]);
        assert!(!task.is_empty(), "{answer:?}");
        task
    }

    /// What it is shown under this query.
    async fn sees(&self, guarded: &Guarded, query: &str) -> Answer {
        let answer = guarded.get_as(&self.key, &format!("{WEBHOOKS}{query}")).await;
        assert!(!answer.text.contains("canary"), "a secret is shown: {answer:?}");
        answer
    }

    /// The ids of all that it is shown, in order.
    async fn ids(&self, guarded: &Guarded, query: &str) -> Vec<String> {
        ids(&self.sees(guarded, query).await)
    }
}

/// The ids of a page, in order.
fn ids(page: &Answer) -> Vec<String> {
    assert_eq!(page.status, 200, "{page:?}");
    let items = page.body["items"].as_array().unwrap_or_else(|| panic!("no items: {page:?}"));
    let mut ids: Vec<String> = items.iter().map(|item| text(&item["id"])).collect();
    ids.sort();
    ids
}

/// Scheme, host and port of a receiver.
fn place(receiver: &Receiver) -> &str {
    receiver.url.strip_suffix("/hook").unwrap()
}

fn guarded_settings() -> String {
    format!("{OPEN}[a2a]\nexpose = [\"interaction::*\"]\n{PUSH}push_attempts_max = 2\n")
}

#[tokio::test]
async fn an_operator_sees_all_webhooks_and_their_errors_and_a_maker_its_own() {
    let guarded = Guarded::start(&guarded_settings()).await;
    let well = Receiver::new(&[OK]);
    let deaf = Receiver::new(&["500 No"]);
    let ann = Caller::new(&guarded, Role::Member).await;
    let bob = Caller::new(&guarded, Role::Member).await;
    let operator = Caller::new(&guarded, Role::Operator).await;
    let approver = Caller::new(&guarded, Role::Approver).await;
    let anns = ann.begins(&guarded, secretive("anns", &well)).await;
    let bobs = bob.begins(&guarded, secretive("bobs", &deaf)).await;
    well.until("INPUT_REQUIRED").await;
    let ended = async || operator.sees(&guarded, "?live=false").await;
    let ended = wait_for("the end of a webhook", ended, |page| ids(page) == ["bobs"]).await;
    let failed = &ended.body["items"][0];
    assert_eq!((&failed["task"], &failed["maker"]), (&json!(bobs), &json!(bob.subject)));
    assert_eq!((&failed["dialect"], &failed["target"]), (&json!("1.0"), &json!(place(&deaf))));
    assert_eq!((&failed["live"], &failed["attempts"]), (&json!(false), &json!(2)));
    let error = text(&failed["lastError"]);
    assert!(error.contains(place(&deaf)) && error.contains("500"), "{error}");
    assert!(failed.get("nextAt").is_none() && failed["madeAt"].is_string(), "{failed}");
    let live = operator.sees(&guarded, "?live=true").await;
    let shown = &live.body["items"][0];
    assert_eq!((ids(&live), &shown["task"]), (vec!["anns".to_owned()], &json!(anns)));
    assert_eq!((&shown["maker"], &shown["attempts"]), (&json!(ann.subject), &json!(0)));
    assert!(shown.get("lastError").is_none() && shown.get("actor").is_none(), "{shown}");
    assert_eq!(operator.ids(&guarded, "").await, ["anns", "bobs"]);
    assert_eq!(operator.ids(&guarded, &format!("?task={anns}")).await, ["anns"]);
    assert_eq!(ann.ids(&guarded, "").await, ["anns"]);
    assert_eq!(ann.ids(&guarded, &format!("?task={bobs}")).await, Vec::<String>::new());
    assert_eq!(bob.ids(&guarded, "").await, ["bobs"]);
    assert_eq!(bob.ids(&guarded, "?live=true").await, Vec::<String>::new());
    assert_eq!(approver.ids(&guarded, "").await, Vec::<String>::new());
}

#[tokio::test]
async fn webhooks_come_in_pages_and_a_wrong_query_is_refused() {
    let guarded = Guarded::start(&guarded_settings()).await;
    let well = Receiver::new(&[OK]);
    let ann = Caller::new(&guarded, Role::Member).await;
    let bob = Caller::new(&guarded, Role::Member).await;
    let operator = Caller::new(&guarded, Role::Operator).await;
    ann.begins(&guarded, secretive("anns", &well)).await;
    bob.begins(&guarded, secretive("bobs", &well)).await;
    let first = operator.sees(&guarded, "?limit=1").await;
    let next = format!("?limit=1&cursor={}", encoded(&first.body["nextCursor"]));
    let second = operator.sees(&guarded, &next).await;
    let mut both = [ids(&first), ids(&second)].concat();
    both.sort();
    assert_eq!(both, ["anns", "bobs"]);
    assert_eq!(second.body["nextCursor"], Value::Null, "{second:?}");
    let foreign = ann.sees(&guarded, &next).await;
    assert_eq!(foreign.refusal(), refused(400, "bad_cursor", &[]), "it is of another list");
    for query in ["?task=nope", "?live=maybe", "?state=live"] {
        let answer = operator.sees(&guarded, query).await;
        assert_eq!(answer.refusal(), refused(400, "bad_query", &[]), "{query}");
    }
}

#[tokio::test]
async fn another_realm_sees_nothing_of_webhooks() {
    let receiver = Receiver::new(&[OK]);
    let project = a2a::project(&format!("{OPEN}{SETTINGS}{PUSH}"));
    let house = House::build(project, Some(ADMIN)).await;
    let made = send(&house, ADMIN, Method::POST, "/api/v1/realms", json!({"name": "acme"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let mut body = beginning("it/question", secretive("acmes", &receiver));
    body["params"]["tenant"] = json!("acme");
    let mut sent = request(Method::POST, "/a2a/v1", Body::from(body.to_string()));
    for (name, value) in [("a2a-version", "1.0"), ("x-api-key", ADMIN)] {
        sent.headers_mut().insert(name, value.parse().unwrap());
    }
    let answer = read(house.open(sent).await).await;
    assert!(answer.body["result"]["task"].is_object(), "{answer:?}");
    let own = get(&house, ADMIN, &format!("{WEBHOOKS}?realm=acme")).await;
    assert_eq!(ids(&own), ["acmes"]);
    let other = get(&house, ADMIN, WEBHOOKS).await;
    assert_eq!(ids(&other), Vec::<String>::new(), "the realm that every server has");
    let task = text(&own.body["items"][0]["task"]);
    let named = get(&house, ADMIN, &format!("{WEBHOOKS}?task={task}")).await;
    assert_eq!(ids(&named), Vec::<String>::new(), "by its task");
}

#[tokio::test]
async fn a_server_without_webhooks_lists_none() {
    let house = a2a::house("[a2a.push]\nenabled = false\n").await;
    assert_eq!(ids(&house.get(WEBHOOKS).await), Vec::<String>::new());
}
