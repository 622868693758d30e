//! `/api/v1/realms`: realms are made and removed while the server runs. A removed realm takes
//! nothing with it that is not its own, and leaves nothing behind but its audit.

use crate::api_keys::{ADMIN, Key, asking, get, send};
use crate::house::{Answer, House, refused, request, wait_for};
use axum::body::{Body, to_bytes};
use axum::http::Method;
use engine::system::clock::{SystemClock, TokioSpawn};
use kernel::contracts::identity::realms::{LostEntries, Removal};
use kernel::values::ids::Millis;
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const REALMS: &str = "/api/v1/realms";
/// How long something may take that comes at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// A project that others reach, and whose settings name the realm `fixed`.
fn project() -> Project {
    let settings = "[server]\nhosts = [\"wp.example.com\"]\n[realms.fixed]\nmax_find_limit = 9\n";
    Project { config: Config::parse("waypost.toml", settings).unwrap(), ..Project::demo() }
}

async fn house() -> House {
    House::build(project(), Some(ADMIN)).await
}

async fn make(house: &House, by: &str, name: &str) -> Answer {
    send(house, by, Method::POST, REALMS, json!({"name": name})).await
}

async fn remove(house: &House, by: &str, name: &str) -> Answer {
    send(house, by, Method::DELETE, &format!("{REALMS}/{name}"), Value::Null).await
}

async fn show(house: &House, name: &str) -> Answer {
    get(house, ADMIN, &format!("{REALMS}/{name}")).await
}

async fn names(house: &House) -> Vec<String> {
    let listed = get(house, ADMIN, REALMS).await.body;
    let items = listed["items"].as_array().unwrap().iter();
    items.map(|realm| realm["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until nothing of a removed realm is left.
async fn purged(house: &House, name: &str) {
    let is_purged = |shown: &Answer| shown.body["purged"] == true;
    wait_for(&format!("`{name}` to be purged"), async || show(house, name).await, is_purged).await;
}

/// Runs a plan that asks and waits, in a realm.
async fn waiting_run(house: &House, realm: &str) -> Answer {
    let plan = json!({"planId": "it/waits", "steps": [
        {"id": "ask", "type": "human_in_the_loop", "message": "go on?", "nextStepIdOnInput": "end"},
        {"id": "end", "type": "final_response", "message": "ok"},
    ]});
    let path = format!("/api/v1/runs?realm={realm}");
    send(house, ADMIN, Method::POST, &path, json!({"plan": plan, "session": "s"})).await
}

async fn sessions(house: &House, realm: &str) -> usize {
    let listed = get(house, ADMIN, &format!("/api/v1/sessions?realm={realm}")).await;
    listed.body["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_realm_is_made_entered_and_removed() {
    let house = house().await;
    let made = make(&house, ADMIN, "acme").await;
    assert_eq!((made.status, made.header("location")), (201, "/api/v1/realms/acme"), "{made:?}");
    assert_eq!((&made.body["origin"], &made.body["usable"]), (&json!("stored"), &json!(true)));
    assert_eq!(names(&house).await, ["acme", "default", "fixed"]);
    assert_eq!(show(&house, "acme").await.body, made.body);
    let again = make(&house, ADMIN, "acme").await;
    assert_eq!(again.refusal(), refused(409, "realm_exists", &[]));

    let plans = async |realm: &str| {
        let listed = get(&house, ADMIN, &format!("/api/v1/plans?realm={realm}")).await.body;
        listed["items"].clone()
    };
    assert_eq!(plans("acme").await, plans("default").await, "the files are every realm's");
    let key = json!({"name": "acme", "realms": {"acme": ["member"]}});
    let key = Key::created(&house, ADMIN, key).await;
    assert_eq!(key.status(&house).await, 200);

    let removed = remove(&house, ADMIN, "acme").await;
    assert_eq!(removed.status, 200, "{removed:?}");
    assert!(removed.body["removedAt"].is_string(), "{removed:?}");
    let outside = get(&house, ADMIN, "/api/v1/whoami?realm=acme").await;
    assert_eq!(outside.refusal(), refused(403, "realm_not_allowed", &[]));
    assert_eq!(key.status(&house).await, 401, "the key was for this realm alone");
    assert_eq!(names(&house).await, ["default", "fixed"]);
    purged(&house, "acme").await;
    let repeated = remove(&house, ADMIN, "acme").await;
    assert_eq!((repeated.status, &repeated.body["purged"]), (200, &json!(true)));
    let again = make(&house, ADMIN, "acme").await;
    assert_eq!(again.refusal(), refused(409, "realm_removed", &[]));

    let audit = get(&house, ADMIN, "/api/v1/audit?chain=server&limit=100").await.body;
    let acts = audit["items"].as_array().unwrap().iter();
    let acts: Vec<&str> = acts.filter_map(|entry| entry["act"].as_str()).collect();
    for act in ["realm.create", "realm.remove"] {
        assert_eq!(acts.iter().filter(|other| **other == act).count(), 1, "{acts:?}");
    }
}

#[tokio::test]
async fn own_default_and_configured_realms_cannot_be_removed() {
    let house = house().await;
    make(&house, ADMIN, "acme").await;
    let own = send(&house, ADMIN, Method::DELETE, "/api/v1/realms/acme?realm=acme", Value::Null);
    assert_eq!(own.await.refusal(), refused(409, "own_realm", &[]));
    for (name, refusal) in [
        ("default", refused(409, "default_realm", &[])),
        ("fixed", refused(409, "realm_configured", &[])),
        ("none", refused(404, "not_found", &[])),
    ] {
        assert_eq!(remove(&house, ADMIN, name).await.refusal(), refusal, "{name}");
    }
    for name in ["Acme", "v1", "", "a b"] {
        let made = make(&house, ADMIN, name).await;
        assert_eq!(made.refusal(), refused(422, "wrong_shape", &["/name"]), "{name}");
    }
    let key = json!({"name": "boss", "realms": {"acme": ["admin"], "default": ["admin"]}});
    let boss = Key::created(&house, ADMIN, key).await;
    for refusal in
        [make(&house, &boss.text, "shop").await, remove(&house, &boss.text, "fixed").await]
    {
        assert_eq!(refusal.refusal(), refused(403, "forbidden", &[]));
    }
    assert_eq!(names(&house).await, ["acme", "default", "fixed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_and_data_goes_with_a_realm_and_with_no_other() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(project, &data, Some(ADMIN)).await;
    make(&house, ADMIN, "acme").await;
    for realm in ["acme", "fixed"] {
        let run = waiting_run(&house, realm).await;
        assert!(run.status < 300, "{run:?}");
    }
    let mut request = request(Method::GET, "/api/v1/events?realm=acme", Body::empty());
    let bearer = format!("Bearer {ADMIN}").parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    let stream = house.open(request).await;
    assert_eq!(stream.status().as_u16(), 200);
    assert_eq!(remove(&house, ADMIN, "acme").await.status, 200);
    let ended = timeout(PATIENCE, to_bytes(stream.into_body(), usize::MAX)).await;
    ended.expect("waited for the stream to end").unwrap();
    purged(&house, "acme").await;
    assert_eq!(sessions(&house, "fixed").await, 1);
    for realm in ["acme", "fixed"] {
        let kept = get(&house, ADMIN, &format!("/api/v1/audit?chain=realm:{realm}")).await.body;
        assert!(!kept["items"].as_array().unwrap().is_empty(), "{realm}");
    }
    let key = json!({"name": "boss", "realms": {"default": ["admin"]}});
    let boss = Key::created(&house, ADMIN, key).await;
    let other = get(&house, &boss.text, "/api/v1/audit?chain=realm:acme").await;
    assert_eq!(other.refusal(), refused(403, "forbidden", &[]));
    stopper.stop().await;
    drop(house);

    let (house, stopper) = House::over(project, &data, Some(ADMIN)).await;
    assert_eq!(names(&house).await, ["default", "fixed"]);
    assert_eq!(sessions(&house, "fixed").await, 1);
    assert_eq!(make(&house, ADMIN, "acme").await.refusal(), refused(409, "realm_removed", &[]));
    stopper.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_a_crash_cut_short_goes_on_at_the_next_start() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(project, &data, Some(ADMIN)).await;
    make(&house, ADMIN, "acme").await;
    assert!(waiting_run(&house, "acme").await.status < 300);
    stopper.stop().await;
    drop(house);

    // What is durable once a removal is answered, and nothing of what follows.
    let parts = stores::Parts {
        spawn: Arc::new(TokioSpawn::new(tokio::runtime::Handle::current())),
        clock: Arc::new(SystemClock),
        limits: Arc::default(),
        fatal: Arc::new(|why| panic!("{why}")),
        vfs: None,
    };
    let folder = stores::StoreLocation::Folder(data.path().join("data"));
    let opened = stores::open(&folder, parts).unwrap();
    let removal = Removal { by: "admin".into(), at: Millis(1), purged: false };
    let acme = "acme".into();
    let removed = opened.realms.remove_realm(&acme, &removal, LostEntries::default(), Vec::new());
    removed.await.unwrap();
    opened.store.close().await.unwrap();
    drop(opened);

    let (house, stopper) = House::over(project, &data, Some(ADMIN)).await;
    assert_eq!(names(&house).await, ["default", "fixed"]);
    purged(&house, "acme").await;
    stopper.stop().await;
}

#[tokio::test]
async fn a_local_server_makes_realms_too() {
    let house = House::demo().await;
    let made = house.post(REALMS, json!({"name": "acme"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(house.delete(&format!("{REALMS}/acme")).await.status, 200);
    let asking = asking("").await;
    assert_eq!(make(&asking, "wrong", "acme").await.status, 401);
}
