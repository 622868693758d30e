//! Who tries to approve what they asked for themselves: with their own key, with another one that
//! they made, with one of somebody else that they made or gave another text, with the admin key, by
//! a copy of the session or by an edit. A policy that wants two people gets two.

use crate::credentials::{ADMIN_KEY, Guarded, OPEN, told};
use crate::house::{Answer, read, text};
use axum::http::Method;
use kernel::identity::roles::Role;
use serde_json::{Value, json};

const ASKS: &str = "/api/v1/asks";
const KEYS: &str = "/api/v1/keys";
const RUNS: &str = "/api/v1/runs";
/// Every call of `math::add` takes two people.
const TWO: &str = "@id(\"two\") @ask(\"it takes two\") @other\n\
    forbid(principal, action == Action::\"call\", resource == Tool::\"math::add\");";

/// A plan that nobody must approve by itself.
fn adds() -> Value {
    json!({"plan": {"planId": "it/adds", "steps": [
        {"id": "add", "type": "tool_call", "toolId": "math::add", "arguments": {"a": 1, "b": 2},
         "saveAs": "sum", "nextStepId": "end"},
        {"id": "end", "type": "final_response", "message": {"jsonPath": "$.context.sum"}},
    ]}})
}

/// An approval of the only call of an ask, with other arguments where some are given.
async fn approve(guarded: &Guarded, key: &str, ask: &Value, arguments: Option<Value>) -> Answer {
    let mut decision = json!({"callId": ask["calls"][0]["callId"], "approve": true});
    if let Some(arguments) = arguments {
        decision["arguments"] = arguments;
    }
    let path = format!("{ASKS}/{}", text(&ask["id"]));
    guarded.post_as(key, &path, json!({"decisions": [decision]})).await
}

/// A key that this one makes.
async fn made_by(guarded: &Guarded, key: &str, role: &str) -> String {
    let made = guarded.post_as(key, KEYS, json!({"name": role, "roles": [role]})).await;
    assert_eq!(made.status, 201, "{made:?}");
    text(&made.body["text"])
}

#[tokio::test]
async fn nobody_approves_what_they_asked_for_whatever_key_they_come_with() {
    let guarded = Guarded::with_policies(OPEN, Some(TWO)).await;
    let boss = guarded.key(Role::Admin).await;
    let started = guarded.post_as(&boss, RUNS, adds()).await;
    assert!(started.status < 300, "{started:?}");
    let ask = started.body["run"]["asks"][0].clone();
    assert_eq!((&ask["kind"], &ask["other"]), (&json!("approve"), &json!(true)), "{ask}");

    let own = made_by(&guarded, &boss, "approver").await;
    let second = made_by(&guarded, &boss, "admin").await;
    let third = made_by(&guarded, &second, "approver").await;
    for key in [boss.as_str(), &own, &second, &third, ADMIN_KEY] {
        let refused = approve(&guarded, key, &ask, None).await;
        assert_eq!(told(&refused), (403, "forbidden".to_owned()), "{refused:?}");
    }
    // Nor in a copy of the session, which asks the same again.
    let fork = format!("/api/v1/sessions/{}/fork", text(&started.body["session"]["id"]));
    let fork = guarded.post_as(&boss, &fork, json!({})).await;
    assert!(fork.status < 300, "{fork:?}");
    let open = guarded.get_as(&boss, &format!("{ASKS}?status=open")).await.body;
    let open = open["items"].as_array().unwrap().clone();
    assert_eq!(open.len(), 2, "the copy asks as well: {open:?}");
    for copied in open.iter().filter(|copied| copied["id"] != ask["id"]) {
        for key in [boss.as_str(), &own, ADMIN_KEY] {
            let refused = approve(&guarded, key, copied, None).await;
            assert_eq!(told(&refused), (403, "forbidden".to_owned()), "{refused:?}");
        }
    }
    // Another person decides about what was asked, and about nothing else.
    let other = guarded.key(Role::Approver).await;
    let path = format!("{ASKS}/{}", text(&ask["id"]));
    let approvers = guarded.get_as(&other, &path).await.body["calls"][0].clone();
    assert_eq!(approvers["why"], json!({"by": "policy", "says": "it takes two"}), "{approvers}");
    assert_eq!(approvers["reach"], "reads", "{approvers}");
    // An approver sees no tools, and so not what they say of themselves.
    assert_eq!((approvers.get("title"), approvers.get("inputSchema")), (None, None));
    let bosses = guarded.get_as(&boss, &path).await.body["calls"][0].clone();
    assert!(bosses["title"] == "Add" && bosses["inputSchema"].is_object(), "{bosses}");
    let edited = approve(&guarded, &other, &ask, Some(json!({"a": 100, "b": 2}))).await;
    assert!((400..500).contains(&edited.status), "{edited:?}");
    let shown = guarded.get_as(&other, &format!("{ASKS}/{}", text(&ask["id"]))).await.body;
    assert!(shown["status"] == "open" && shown["decision"].is_null(), "{shown}");
    let done = approve(&guarded, &other, &ask, None).await;
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(done.body["run"]["status"], "completed", "{done:?}");
    let id = other.split('_').nth(1).unwrap();
    assert_eq!(done.body["ask"]["decision"]["by"], json!(format!("key:{id}")), "{done:?}");
    assert_eq!(done.body["ask"]["decision"]["via"], "rest", "{done:?}");
}

/// Stores a principal with one role here.
pub async fn knows(guarded: &Guarded, id: &str, role: &str) {
    let path = format!("/api/v1/principals/{id}");
    let body = json!({"realms": {"default": [role]}});
    let headers = [("x-api-key", ADMIN_KEY)];
    let stored = read(guarded.open(Method::PUT, &path, &headers, &body).await).await;
    assert_eq!(stored.status, 201, "{stored:?}");
}

/// A key of this principal that is made with another key: its id and its text.
pub async fn lent_by(guarded: &Guarded, key: &str, of: &str) -> (String, String) {
    let made = guarded.post_as(key, KEYS, json!({"name": of, "of": of})).await;
    assert_eq!(made.status, 201, "{made:?}");
    (text(&made.body["key"]["id"]), text(&made.body["text"]))
}

/// The ask that a run of this key waits for.
async fn asked_by(guarded: &Guarded, key: &str) -> Value {
    let started = guarded.post_as(key, RUNS, adds()).await;
    assert!(started.status < 300, "{started:?}");
    started.body["run"]["asks"][0].clone()
}

#[tokio::test]
async fn nobody_approves_what_they_asked_for_with_a_key_of_somebody_else() {
    let guarded = Guarded::with_policies(OPEN, Some(TWO)).await;
    knows(&guarded, "ann", "approver").await;
    knows(&guarded, "eve", "admin").await;
    let boss = guarded.key(Role::Admin).await;
    let ask = asked_by(&guarded, &boss).await;

    let (id, hers) = lent_by(&guarded, ADMIN_KEY, "ann").await;
    let (_, lent) = lent_by(&guarded, &boss, "ann").await;
    let (_, eves) = lent_by(&guarded, &boss, "eve").await;
    let (_, through_eve) = lent_by(&guarded, &eves, "ann").await;
    let rotated = guarded.post_as(&boss, &format!("{KEYS}/{id}/rotate"), json!({})).await;
    assert_eq!(rotated.status, 200, "{rotated:?}");
    for key in [lent, eves, through_eve, text(&rotated.body["text"])] {
        let refused = approve(&guarded, &key, &ask, None).await;
        assert_eq!(told(&refused), (403, "forbidden".to_owned()), "{refused:?}");
    }
    // What only she was given is hers.
    let done = approve(&guarded, &hers, &ask, None).await;
    assert_eq!((done.status, &done.body["run"]["status"]), (200, &json!("completed")), "{done:?}");
    assert_eq!(done.body["ask"]["decision"]["by"], "ann", "{done:?}");
}

#[tokio::test]
async fn nobody_behind_a_borrowed_key_approves_its_request() {
    let guarded = Guarded::with_policies(OPEN, Some(TWO)).await;
    knows(&guarded, "ann", "approver").await;
    knows(&guarded, "eve", "admin").await;
    let boss = guarded.key(Role::Admin).await;
    let (_, eves) = lent_by(&guarded, &boss, "eve").await;
    let ask = asked_by(&guarded, &eves).await;
    let (_, own) = lent_by(&guarded, ADMIN_KEY, "eve").await;
    let (_, lent) = lent_by(&guarded, &boss, "ann").await;
    for key in [boss, own, lent] {
        let refused = approve(&guarded, &key, &ask, None).await;
        assert_eq!(told(&refused), (403, "forbidden".to_owned()), "{refused:?}");
    }
    let (_, hers) = lent_by(&guarded, ADMIN_KEY, "ann").await;
    let done = approve(&guarded, &hers, &ask, None).await;
    assert_eq!((done.status, &done.body["run"]["status"]), (200, &json!("completed")), "{done:?}");
}
