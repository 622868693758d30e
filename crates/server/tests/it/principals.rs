//! `/api/v1/principals`: who is known by name, from the file and from the store, and what their
//! keys are worth.

use crate::api_keys::{ADMIN, Key, get, send};
use crate::house::{House, refused, text};
use axum::http::Method;
use kernel::identity::principal_reader::read_text;
use kernel::limits::Limits;
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};

const PRINCIPALS: &str = "/api/v1/principals";

/// A server that asks for credentials, whose file names `ann`, an operator here.
async fn knowing_ann() -> House {
    let settings = "[server]\nhosts = [\"wp.example.com\"]\n";
    let config = Config::parse("waypost.toml", settings).unwrap();
    let file = "principals:\n  ann:\n    realms: {default: [operator]}\n    name: Ann Lee\n";
    let read = read_text(file, "principals.yaml", Some(&[]), &Limits::default());
    let principals = Some(read.unwrap().0);
    House::build(Project { config, principals, ..Project::demo() }, Some(ADMIN)).await
}

async fn put(house: &House, credential: &str, id: &str, body: Value) -> (u16, Value) {
    let path = format!("{PRINCIPALS}/{id}");
    let answer = send(house, credential, Method::PUT, &path, body).await;
    (answer.status, answer.body)
}

fn member() -> Value {
    json!({"realms": {"default": ["member"]}})
}

#[tokio::test]
async fn principals_are_stored_shown_and_listed() {
    let house = knowing_ann().await;
    let (status, stored) = put(&house, ADMIN, "bob", member()).await;
    assert_eq!((status, &stored["origin"]), (201, &json!("stored")), "{stored}");
    assert_eq!((&stored["by"], &stored["definition"]["kind"]), (&json!("admin"), &json!("user")));
    let whole = json!({"kind": "service", "realms": {"default": ["viewer"]},
        "properties": {"floor": 7}, "dataDomain": {"tenantId": "acme.com"}});
    let (status, stored) = put(&house, ADMIN, "bob", whole.clone()).await;
    assert_eq!((status, &stored["definition"]), (200, &whole));
    let one = get(&house, ADMIN, &format!("{PRINCIPALS}/bob")).await;
    assert_eq!((one.header("etag"), &one.body), ("\"2\"", &stored));
    let all = get(&house, ADMIN, PRINCIPALS).await.body;
    let all = all["items"].as_array().unwrap().clone();
    let told: Vec<_> = all.iter().map(|one| (text(&one["id"]), text(&one["origin"]))).collect();
    let expected = [("ann", "file"), ("bob", "stored")];
    assert_eq!(told, expected.map(|(id, origin)| (id.to_owned(), origin.to_owned())));
    let missing = get(&house, ADMIN, &format!("{PRINCIPALS}/zoe")).await;
    assert_eq!(missing.refusal(), refused(404, "not_found", &[]));
}

#[tokio::test]
async fn what_the_file_says_is_changed_there_alone() {
    let house = knowing_ann().await;
    let (status, told) = put(&house, ADMIN, "ann", member()).await;
    assert_eq!((status, &told["code"]), (409, &json!("principal_in_file")), "{told}");
    assert!(text(&told["detail"]).contains("principals.yaml"), "{told}");
    let (status, told) = put(&house, ADMIN, "ANN", member()).await;
    assert_eq!((status, &told["code"]), (409, &json!("principal_clash")), "{told}");
}

#[tokio::test]
async fn a_key_of_a_principal_is_that_principal() {
    let house = knowing_ann().await;
    let key = Key::created(&house, ADMIN, json!({"name": "laptop", "of": "ann"})).await;
    let who = get(&house, &key.text, "/api/v1/whoami").await.body;
    assert_eq!((&who["subject"], &who["roles"]), (&json!("ann"), &json!(["operator"])), "{who}");
    let shown = get(&house, ADMIN, &key.path()).await.body;
    assert_eq!((&shown["of"], &shown["subject"]), (&json!("ann"), &json!("ann")));
    assert_eq!(shown["realms"], json!({"default": ["operator"]}), "those of the principal");
    for (body, place) in [
        (json!({"name": "x", "of": "ann", "roles": ["admin"]}), "/roles"),
        (json!({"name": "x", "of": "ann", "realms": {"default": ["admin"]}}), "/realms/default"),
        (json!({"name": "x", "of": "zoe"}), "/of"),
        (json!({"name": "x", "of": "ann", "realms": {"acme": []}}), "/of"),
    ] {
        let refusal = send(&house, ADMIN, Method::POST, "/api/v1/keys", body.clone()).await;
        assert_eq!(refusal.refusal(), refused(422, "wrong_shape", &[place]), "{body}");
    }
}

#[tokio::test]
async fn disabling_ends_every_credential_until_it_is_enabled() {
    let house = knowing_ann().await;
    let key = Key::created(&house, ADMIN, json!({"name": "laptop", "of": "ann"})).await;
    assert_eq!(key.status(&house).await, 200);
    let switch = async |word: &str| {
        let path = format!("{PRINCIPALS}/ann/{word}");
        send(&house, ADMIN, Method::POST, &path, Value::Null).await
    };
    let disabled = switch("disable").await;
    assert_eq!(disabled.status, 200, "{disabled:?}");
    assert!(disabled.body["disabledAt"].is_string(), "{disabled:?}");
    assert_eq!(key.status(&house).await, 401);
    assert_eq!(switch("enable").await.body.get("disabledAt"), None);
    assert_eq!(key.status(&house).await, 200);
}

#[tokio::test]
async fn no_one_gives_or_sees_more_than_they_administer() {
    let house = knowing_ann().await;
    let here = Key::created(&house, ADMIN, json!({"name": "here", "roles": ["admin"]})).await;
    let (status, told) = put(&house, &here.text, "bob", member()).await;
    assert_eq!(status, 201, "{told}");
    for wider in [
        json!({"realms": {"*": ["viewer"]}}),
        json!({"realms": {"default": ["admin"], "acme": []}}),
        json!({"realms": {"default": ["member"]}, "identities": ["local"]}),
    ] {
        let (status, told) = put(&house, &here.text, "bob", wider).await;
        assert_eq!((status, &told["code"]), (403, &json!("grant_exceeds")), "{told}");
    }
    let (status, _) = put(&house, ADMIN, "root", json!({"realms": {"*": ["admin"]}})).await;
    assert_eq!(status, 201);
    let unseen = get(&house, &here.text, &format!("{PRINCIPALS}/root")).await;
    assert_eq!(unseen.refusal(), refused(404, "not_found", &[]));
    let (status, told) = put(&house, &here.text, "root", member()).await;
    assert_eq!((status, &told["code"]), (409, &json!("principal_taken")), "{told}");
    for role in ["viewer", "member", "approver", "operator"] {
        let key = Key::created(&house, ADMIN, json!({"name": role, "roles": [role]})).await;
        let refusal = get(&house, &key.text, PRINCIPALS).await;
        assert_eq!(refusal.refusal(), refused(403, "forbidden", &[]), "{role}");
    }
}

#[tokio::test]
async fn what_no_principal_can_be_is_refused_at_its_place() {
    let house = knowing_ann().await;
    for (id, body, place) in [
        ("bob", json!({"realms": {"A": []}}), "/realms/A"),
        ("bob", json!({"realms": {"default": ["memeber"]}}), "/realms/default/0"),
        ("bob", json!({"realms": {"default": []}, "identities": ["corp:1"]}), "/identities/0"),
        ("bob", json!({"realms": {"default": []}, "properties": {"a": {}}}), "/properties/a"),
        ("bob", json!({"realms": {"default": []}, "role": "admin"}), "/role"),
        ("admin", member(), ""),
        ("corp:1", member(), ""),
    ] {
        let path = format!("{PRINCIPALS}/{id}");
        let refusal = send(&house, ADMIN, Method::PUT, &path, body.clone()).await;
        assert_eq!(refusal.refusal(), refused(422, "wrong_shape", &[place]), "{id} {body}");
    }
}
