//! `/api/v1/records`: records as resources, with problems as errors.

use super::{Person, Shop, coded, id, order, told};
use crate::house::{Answer, text};
use axum::http::Method;
use serde_json::{Value, json};

const LOCATIONS: &str = "/api/v1/records/Location";

fn at(number: u8) -> String {
    format!("{LOCATIONS}/{}", id(number))
}

/// A change with headers.
async fn change(
    shop: &Shop,
    method: Method,
    path: &str,
    headers: &[(&'static str, &str)],
    body: Value,
) -> Answer {
    shop.send(&shop.lea, method, path, headers, body).await
}

#[tokio::test]
async fn types_are_listed_with_what_may_be_done_to_them() {
    let shop = Shop::new().await;
    let listed = shop.get(&shop.lea, "/api/v1/records").await;
    assert_eq!(listed.status, 200, "{listed:?}");
    let items = listed.body["items"].as_array().unwrap();
    let of = |name: &str| items.iter().find(|of| of["name"] == name).unwrap();
    let order = json!({"name": "shop.Order", "simpleName": "Order", "collection": "orders",
        "save": true, "remove": true, "builtIn": false});
    assert_eq!(*of("shop.Order"), order);
    let agent = of("waypost.Agent");
    assert_eq!((&agent["save"], &agent["builtIn"]), (&json!(false), &json!(true)));
    let reader = shop.newcomer("rita", &["member", "reader"], None).await;
    let seen = shop.get(&reader, "/api/v1/records?limit=100").await.body;
    let items = seen["items"].as_array().unwrap();
    assert!(!items.is_empty(), "{seen}");
    assert!(items.iter().all(|of| of["save"] == false && of["remove"] == false), "{seen}");
}

#[tokio::test]
async fn records_are_listed_page_by_page() {
    let shop = Shop::new().await;
    let path = "/api/v1/records/Order?query=status%3Aopen&sort=-total&limit=1";
    let first = shop.get(&shop.lea, path).await.body;
    assert_eq!((&first["items"][0]["refName"], &first["totalCount"]), (&json!("O-3"), &json!(2)));
    let rest = format!("{path}&cursor={}&total=false", text(&first["nextCursor"]));
    let second = shop.get(&shop.lea, &rest).await.body;
    assert_eq!(second["items"][0]["refName"], "O-1");
    assert_eq!((&second["nextCursor"], second.get("totalCount")), (&json!(null), None));
    for wrong in ["limit=x", "offset=1", "total=perhaps"] {
        let refused = shop.get(&shop.lea, &format!("/api/v1/records/Order?{wrong}")).await;
        assert_eq!(coded(&refused), told(400, "bad_query"), "{wrong}");
    }
    let misspelt = shop.get(&shop.lea, "/api/v1/records/Order?query=stauts%3Aopen").await;
    assert_eq!(coded(&misspelt), told(400, "InvalidQuery"));
    assert_eq!((&misspelt.body["position"], &misspelt.body["line"]), (&json!(0), &json!(1)));
}

#[tokio::test]
async fn a_record_is_made_read_changed_and_removed() {
    let shop = Shop::new().await;
    let made = shop.post(&shop.lea, LOCATIONS, json!({"refName": "rome-store"})).await;
    assert_eq!((made.status, made.header("etag")), (201, "\"1\""), "{made:?}");
    let place = made.header("location").to_owned();
    let shown = shop.get(&shop.lea, &place).await;
    assert_eq!((shown.status, shown.header("etag")), (200, "\"1\""), "{shown:?}");
    assert_eq!(shown.body, made.body);
    let part = json!({"city": "Rome"});
    let patched = change(&shop, Method::PATCH, &place, &[], part).await;
    assert_eq!((patched.status, patched.header("etag")), (200, "\"2\""), "{patched:?}");
    assert_eq!(patched.body["refName"], "rome-store");
    let whole = json!({"refName": "rome-store", "state": "RM"});
    let put = change(&shop, Method::PUT, &place, &[], whole).await;
    assert_eq!((put.status, put.body.get("city")), (200, None), "{put:?}");
    let gone = change(&shop, Method::DELETE, &place, &[], Value::Null).await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    assert_eq!(coded(&shop.get(&shop.lea, &place).await), told(404, "NotFound"));
    let again = change(&shop, Method::DELETE, &place, &[], Value::Null).await;
    assert_eq!(coded(&again), told(404, "NotFound"));
    let patched = change(&shop, Method::PATCH, &place, &[], json!({"city": "Rome"})).await;
    assert_eq!(coded(&patched), told(404, "NotFound"), "a part of nothing");
    let new = change(&shop, Method::PUT, &place, &[], json!({"city": "Rome"})).await;
    assert_eq!((new.status, new.header("location")), (201, place.as_str()), "{new:?}");
}

#[tokio::test]
async fn a_change_can_depend_on_the_version() {
    let shop = Shop::new().await;
    let place = at(1);
    let part = json!({"state": "GA"});
    for method in [Method::PUT, Method::PATCH, Method::DELETE] {
        for tag in ["\"7\"", "\"0\""] {
            let body = if method == Method::DELETE { Value::Null } else { part.clone() };
            let stale = change(&shop, method.clone(), &place, &[("if-match", tag)], body).await;
            assert_eq!(stale.status, 412, "{method} {tag}: {stale:?}");
        }
    }
    let bad = change(&shop, Method::PATCH, &place, &[("if-match", "7")], part.clone()).await;
    assert_eq!(coded(&bad), told(400, "bad_if_match"));
    let there = [("if-none-match", "*")];
    let there = change(&shop, Method::PUT, &place, &there, part.clone()).await;
    assert_eq!(there.status, 412, "{there:?}");
    for tag in ["\"1\"", "*"] {
        let done = change(&shop, Method::PATCH, &place, &[("if-match", tag)], part.clone()).await;
        assert_eq!(done.status, 200, "{tag}: {done:?}");
    }
    let in_body = json!({"state": "GA", "version": 1});
    let conflict = change(&shop, Method::PATCH, &place, &[], in_body.clone()).await;
    assert_eq!(coded(&conflict), told(409, "VersionConflict"));
    let two = change(&shop, Method::PATCH, &place, &[("if-match", "\"3\"")], in_body).await;
    assert_eq!(coded(&two), told(400, "two_versions"));
    assert_eq!(shop.get(&shop.lea, &place).await.header("etag"), "\"3\"");
}

#[tokio::test]
async fn what_is_wrong_with_a_resource_is_a_problem() {
    let shop = Shop::new().await;
    let lea = &shop.lea;
    let new = |entity: Value| shop.post(lea, LOCATIONS, entity);
    let twice = new(json!({"id": id(1)})).await;
    assert_eq!(coded(&twice), told(409, "DuplicateKey"));
    let same_name = new(json!({"refName": "Atlanta-Store"})).await;
    assert_eq!(coded(&same_name), told(409, "DuplicateKey"));
    assert_eq!(same_name.body["fields"], json!(["refName"]));
    let short = new(json!({"refName": "ab", "kind": "castle"})).await;
    assert_eq!(coded(&short), told(400, "InvalidEntity"));
    let errors = short.body["errors"].as_array().unwrap();
    let mut pointers: Vec<String> = errors.iter().map(|error| text(&error["pointer"])).collect();
    pointers.sort_unstable();
    assert_eq!(pointers, ["/kind", "/refName"], "{short:?}");
    let other = json!({"id": id(2)});
    let other = change(&shop, Method::PUT, &at(1), &[], other).await;
    assert_eq!(coded(&other), told(422, "wrong_shape"));
    for (path, expected) in [
        (format!("{LOCATIONS}/depot"), told(400, "InvalidId")),
        (at(99), told(404, "NotFound")),
        ("/api/v1/records/Loction".to_owned(), told(400, "UnknownRootType")),
        (format!("/api/v1/records/None/{}", id(1)), told(400, "UnknownRootType")),
    ] {
        assert_eq!(coded(&shop.get(lea, &path).await), expected, "{path}");
    }
    let referred = change(&shop, Method::DELETE, &at(1), &[], Value::Null).await;
    assert_eq!(coded(&referred), told(409, "ReferentialIntegrity"));
    let referrer = json!({"rootType": "shop.Customer", "id": id(11), "field": "homeStore"});
    assert_eq!(referred.body["referrers"], json!([referrer]));
}

#[tokio::test]
async fn an_insert_under_one_key_is_made_once() {
    let shop = Shop::new().await;
    let key = [("idempotency-key", "k-1")];
    let body = json!({"city": "Rome"});
    let made = change(&shop, Method::POST, LOCATIONS, &key, body.clone()).await;
    let again = change(&shop, Method::POST, LOCATIONS, &key, body).await;
    assert_eq!((made.status, again.status), (201, 201), "{again:?}");
    assert_eq!(made.body, again.body);
    assert_eq!(shop.count(&shop.lea, "Location", "city:Rome").await, 1);
    let place = at(3);
    for _ in 0..2 {
        let key = [("idempotency-key", "k-2")];
        let gone = change(&shop, Method::DELETE, &place, &key, Value::Null).await;
        assert_eq!(gone.status, 204, "{gone:?}");
    }
}

#[tokio::test]
async fn a_deletion_under_one_key_and_any_version_is_told_again() {
    let shop = Shop::new().await;
    let headers = [("idempotency-key", "k-3"), ("if-match", "*")];
    for _ in 0..2 {
        let gone = change(&shop, Method::DELETE, &at(3), &headers, Value::Null).await;
        assert_eq!(gone.status, 204, "{gone:?}");
    }
}

#[tokio::test]
async fn rights_to_read_and_to_change_are_decided_apart() {
    let shop = Shop::new().await;
    let reader = shop.newcomer("rita", &["member", "reader"], None).await;
    assert_eq!(shop.get(&reader, &at(1)).await.status, 200);
    let made = shop.post(&reader, LOCATIONS, json!({"city": "Rome"})).await;
    assert_eq!(made.status, 403, "{made:?}");
    let gone = shop.send(&reader, Method::DELETE, &at(3), &[], Value::Null).await;
    assert_eq!(gone.status, 403, "{gone:?}");
    let stranger = Person { credential: "none".to_owned(), realm: None };
    assert_eq!(shop.get(&stranger, "/api/v1/records").await.status, 401);
}

#[tokio::test]
async fn who_only_looks_reads_records_and_changes_none() {
    let shop = Shop::new().await;
    let viewer = shop.newcomer("vera", &["viewer"], None).await;
    assert_eq!(shop.get(&viewer, &at(1)).await.status, 200);
    assert_eq!(shop.count(&viewer, "Location", "").await, 3);
    let made = shop.post(&viewer, LOCATIONS, json!({"city": "Rome"})).await;
    assert_eq!(made.status, 403, "{made:?}");
}

#[tokio::test]
async fn a_seller_saves_within_what_she_sees() {
    let shop = Shop::new().await;
    let mut own = order(5, "ann", "ada", "open");
    own.as_object_mut().unwrap().remove("margin");
    let made = shop.post(&shop.ann, "/api/v1/records/Order", own.clone()).await;
    assert_eq!(made.status, 201, "{made:?}");
    own["id"] = json!(id(36));
    own["refName"] = json!("O-6");
    own["salesRep"] = json!("bob");
    let others = shop.post(&shop.ann, "/api/v1/records/Order", own).await;
    assert_eq!(coded(&others), told(403, "forbidden"));
    let given = json!({"salesRep": "bob"});
    let path = format!("/api/v1/records/Order/{}", id(31));
    let given = shop.send(&shop.ann, Method::PATCH, &path, &[], given).await;
    assert_eq!(coded(&given), told(403, "forbidden"), "nor may she give one away");
}
