//! Signed cards: a client that knows the keys of a server can check what its card says, and a
//! restart or a new key does not take that away.

use crate::a2a::{SETTINGS, house, open, rpc};
use crate::credentials::{Guarded, OPEN};
use crate::house::{Answer, House, question, read as answer, request, setup};
use axum::body::Body;
use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::values::canonical;
use project::config::Config;
use project::folder::Project;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};
use server::assemble;
use wire::a2a::card::AgentCard;

const CARD: &str = "/.well-known/agent-card.json";
const KEYS: &str = "/.well-known/jwks.json";

async fn read(house: &House, path: &str) -> Answer {
    let answer = open(house, Method::GET, path, &Value::Null).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

/// The header of a signature, which must be one of this key over what 1.0 knows of this card: those
/// who check it drop the members of other versions.
fn checked(card: &Value, index: usize, key: &Value) -> Value {
    let bytes = |text: &Value| URL_SAFE_NO_PAD.decode(text.as_str().unwrap()).unwrap();
    let point = [vec![4], bytes(&key["x"]), bytes(&key["y"])].concat();
    let known: AgentCard = serde_json::from_value(card.clone()).unwrap();
    let content = known.signed_content();
    let signature = &card["signatures"][index];
    let payload = URL_SAFE_NO_PAD.encode(canonical::text(&content));
    let input = format!("{}.{payload}", signature["protected"].as_str().unwrap());
    let signed = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(input.as_bytes(), &bytes(&signature["signature"]));
    assert!(signed.is_ok(), "the signature does not fit: {card}");
    serde_json::from_slice(&bytes(&signature["protected"])).unwrap()
}

/// Whether something in it is empty: a client that drops such members would not find it signed.
fn has_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty),
        Value::Object(members) => members.is_empty() || members.values().any(has_empty),
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[tokio::test]
async fn a_card_is_signed_by_the_key_of_the_key_set() {
    let house = house(SETTINGS).await;
    let card = read(&house, CARD).await;
    let keys = read(&house, KEYS).await;
    let key = &keys.body["keys"][0];
    assert_eq!(
        (&key["kty"], &key["crv"], &key["alg"]),
        (&json!("EC"), &json!("P-256"), &json!("ES256"))
    );
    assert!(key.get("d").is_none(), "the private part stays here: {key}");
    assert!(keys.header("cache-control").starts_with("public, max-age="), "{keys:?}");
    assert!(card.body.get("securitySchemes").is_none(), "no credential is wanted: {card:?}");
    let header = checked(&card.body, 0, key);
    let expected = json!({"alg": "ES256", "typ": "JOSE", "kid": key["kid"],
        "jku": "http://localhost:8420/.well-known/jwks.json"});
    assert_eq!(header, expected);
    let extended = rpc(&house, "GetExtendedAgentCard", json!({})).await;
    checked(&extended["result"], 0, key);
    let answer = house.open(request(Method::POST, KEYS, Body::empty())).await;
    assert_eq!(answer.status().as_u16(), 405);
}

#[tokio::test]
async fn a_card_is_made_once_until_what_it_follows_from_changes() {
    let house = house(SETTINGS).await;
    let first = read(&house, CARD).await;
    let again = read(&house, CARD).await;
    // Each signature is another one, so the same text was not made again.
    assert_eq!((again.header("etag"), &again.text), (first.header("etag"), &first.text));
    let extended = async || rpc(&house, "GetExtendedAgentCard", json!({})).await["result"].clone();
    let first_extended = extended().await;
    assert_eq!(extended().await["signatures"], first_extended["signatures"]);
    let stored = house.put("/api/v1/plans/it%2Fnewer", &[], newer()).await;
    assert_eq!(stored.status, 201, "{stored:?}");
    assert_ne!(extended().await["skills"], first_extended["skills"]);
    let changed = read(&house, CARD).await;
    assert_ne!(changed.header("etag"), first.header("etag"));
    let skills = changed.body["skills"].as_array().unwrap();
    assert!(skills.iter().any(|skill| skill["id"] == "it/newer"), "{changed:?}");
    // Another address is another card.
    let mut other = request(Method::GET, CARD, Body::empty());
    other.headers_mut().insert("host", "127.0.0.1:8420".parse().unwrap());
    let other = answer(house.open(other).await).await;
    assert_eq!(other.status, 200, "{other:?}");
    assert_ne!(other.header("etag"), changed.header("etag"));
}

/// A plan that the card shows.
fn newer() -> Value {
    let mut plan = question();
    plan["planId"] = json!("it/newer");
    plan
}

#[tokio::test]
async fn strangers_read_the_keys_and_find_nothing_empty_in_what_is_signed() {
    let guarded = Guarded::start(OPEN).await;
    let card = guarded.get(CARD, &[]).await;
    let keys = guarded.get(KEYS, &[]).await;
    assert_eq!((card.status, keys.status), (200, 200), "{keys:?}");
    checked(&card.body, 0, &keys.body["keys"][0]);
    let read: AgentCard = serde_json::from_value(card.body).unwrap();
    assert!(!has_empty(&read.signed_content()), "{read:?}");
}

/// The card as the official Python SDK reads it: it makes the schemes of 1.0 out of the members of
/// 0.3, where a card has both.
fn with_old_schemes(card: &Value) -> Value {
    let mut read = card.clone();
    for scheme in read["securitySchemes"].as_object_mut().unwrap().values_mut() {
        let name = match scheme["type"].as_str().unwrap() {
            "apiKey" => "apiKeySecurityScheme",
            "http" => "httpAuthSecurityScheme",
            "oauth2" => "oauth2SecurityScheme",
            "openIdConnect" => "openIdConnectSecurityScheme",
            other => panic!("no scheme of 0.3: {other}"),
        };
        let mut old = scheme.clone();
        let place = old.as_object_mut().unwrap().remove("in");
        if let Some(place) = place {
            old["location"] = place;
        }
        *scheme = json!({name: old});
    }
    read
}

#[tokio::test]
async fn the_signature_holds_for_readers_who_prefer_the_members_of_0_3() {
    let issuer = "[auth.issuers.corp]\nurl = \"http://127.0.0.1:9\"\naudience = \"waypost\"\n\
                  realms = [\"default\"]\n";
    let guarded = Guarded::start(&format!("{OPEN}{issuer}")).await;
    let card = guarded.get(CARD, &[]).await;
    let keys = guarded.get(KEYS, &[]).await;
    let schemes = card.body["securitySchemes"].as_object().unwrap();
    let names: Vec<&String> = schemes.keys().collect();
    assert_eq!(names, ["apiKey", "bearer", "oauth2", "openId-corp"], "{card:?}");
    checked(&card.body, 0, &keys.body["keys"][0]);
    checked(&with_old_schemes(&card.body), 0, &keys.body["keys"][0]);
}

#[tokio::test]
async fn a_restart_keeps_the_key_and_an_older_one_signs_beside_a_new_one() {
    let data = tempfile::tempdir().unwrap();
    let (first, stopper) = House::over(Project::demo, &data, None).await;
    let before = read(&first, KEYS).await.body["keys"][0].clone();
    let tag = read(&first, CARD).await.header("etag").to_owned();
    stopper.stop().await;
    drop(first);
    let (again, stopper) = House::over(Project::demo, &data, None).await;
    assert_eq!(read(&again, KEYS).await.body["keys"], json!([before]));
    assert_eq!(read(&again, CARD).await.header("etag"), tag, "it says the same");
    stopper.stop().await;
    drop(again);
    // The older key stays in its file; the settings name both.
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(Project::demo, &other, None).await;
    let newer = read(&house, KEYS).await.body["keys"][0].clone();
    stopper.stop().await;
    for (from, name) in [(&other, "new.pem"), (&data, "old.pem")] {
        let key = from.path().join("data").join("card-keys.pem");
        std::fs::copy(key, folder.path().join(name)).unwrap();
    }
    let text = "[a2a]\nsigning_keys = [\"new.pem\", \"old.pem\"]\n";
    let project = || {
        let config = Config::parse("waypost.toml", text).unwrap();
        Project { config, folder: folder.path().to_owned(), ..Project::demo() }
    };
    let (rotated, stopper) = House::over(project, &data, None).await;
    let card = read(&rotated, CARD).await;
    assert_eq!(read(&rotated, KEYS).await.body["keys"], json!([newer, before]));
    checked(&card.body, 0, &newer);
    checked(&card.body, 1, &before);
    assert_ne!(card.header("etag"), tag, "clients read it again");
    stopper.stop().await;
}

#[tokio::test]
async fn a_key_that_cannot_be_used_keeps_the_server_from_starting() {
    let data = tempfile::tempdir().unwrap();
    let text = "[a2a]\nsigning_keys = [\"nowhere.pem\"]\n";
    let config = Config::parse("waypost.toml", text).unwrap();
    let project = Project { config, folder: data.path().to_owned(), ..Project::demo() };
    let address = crate::house::ADDRESS.parse().unwrap();
    let error = assemble(setup(project, &data, address)).await.err().unwrap();
    assert!(error.to_string().contains("nowhere.pem"), "{error}");
}
