//! `/api/v1/backup`: who may write one and where, and a server over what is restored of it.

use crate::api_keys::{ADMIN, Key, asking, send};
use crate::house::{House, refused, text};
use axum::http::Method;
use project::folder::Project;
use serde_json::{Value, json};

const BACKUP: &str = "/api/v1/backup";

#[tokio::test]
async fn a_restored_server_has_what_was_acknowledged_and_goes_on_with_it() {
    let house = House::demo().await;
    let added = json!({"planId": "math::conditional_add", "input": {"a": 2, "b": 3}});
    let key = [("idempotency-key", "once")];
    let done = house.post_with("/api/v1/runs", &key, added.clone()).await.body;
    let waits = house.greeting().await;
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("backup");
    let answer = house.post(BACKUP, json!({"dir": into})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["dir"], json!(into));
    assert_eq!(
        (&answer.body["beside"], &answer.body["leftOut"]),
        (&json!(["secret.key", "card-keys.pem"]), &json!([]))
    );
    let later = house.greeting().await;

    server::restore(&into, &folder.path().join("data")).unwrap();
    let (restored, stopper) = House::over(Project::demo, &folder, None).await;
    let run = |told: &Value| format!("/api/v1/runs/{}", text(&told["run"]["id"]));
    let kept = restored.get(&run(&done)).await.body;
    assert_eq!(kept["run"]["answer"], done["run"]["answer"]);
    let again = restored.post_with("/api/v1/runs", &key, added).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    let ask = format!("/api/v1/asks/{}", text(&waits["run"]["asks"][0]["id"]));
    let replied =
        restored.post(&ask, json!({"action": "accept", "content": {"name": "Ann"}})).await;
    assert_eq!((replied.status, &replied.body["run"]["status"]), (200, &json!("completed")));
    assert_eq!(restored.get(&run(&later)).await.status, 404, "it began after the backup");
    stopper.stop().await;
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_refused_with_its_place() {
    let house = House::demo().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "x").unwrap();
    for dir in [json!("relative"), json!(folder.path()), json!(folder.path().join("a/b"))] {
        let answer = house.post(BACKUP, json!({"dir": dir})).await;
        assert_eq!(answer.refusal(), refused(422, "backup_folder", &["/dir"]), "{dir}");
    }
    let answer = house.post(BACKUP, json!({})).await;
    assert_eq!(answer.refusal(), refused(422, "wrong_shape", &[""]));
}

#[tokio::test]
async fn only_administrators_write_backups() {
    let house = House::build(Project::demo(), Some("secret")).await;
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("backup");
    let body = json!({"dir": into});
    let stranger = house.post(BACKUP, body.clone()).await;
    assert_eq!(stranger.refusal(), refused(401, "unauthorized", &[]));
    assert!(!into.exists());
    let key = [("authorization", "Bearer secret")];
    assert_eq!(house.post_with(BACKUP, &key, body).await.status, 200);
}

#[tokio::test]
async fn an_administrator_of_one_realm_writes_no_backup() {
    let house = asking("[realms.acme]\nmax_find_limit = 100").await;
    let folder = tempfile::tempdir().unwrap();
    for realm in ["acme", "default"] {
        let roles = json!({"name": realm, "realms": {realm: ["admin"]}});
        let key = Key::created(&house, ADMIN, roles).await;
        let into = folder.path().join(realm);
        let answer = send(&house, &key.text, Method::POST, BACKUP, json!({"dir": into})).await;
        assert_eq!(answer.refusal(), refused(403, "forbidden", &[]), "{realm}");
        assert!(!into.exists(), "a backup of all realms for {realm}");
    }
    let everywhere = json!({"name": "root", "realms": {"*": ["admin"]}});
    let key = Key::created(&house, ADMIN, everywhere).await;
    let body = json!({"dir": folder.path().join("all")});
    assert_eq!(send(&house, &key.text, Method::POST, BACKUP, body).await.status, 200);
}
