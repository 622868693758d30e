//! Limits of calls on records: what is cut says so, and what cannot be cut is refused.

use super::{Shop, bare, id, named, told};
use crate::api_keys::ADMIN;
use crate::house::{House, request, text};
use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn a_page_that_is_cut_says_which_limit_did_it() {
    let shop = Shop::limited("find_rows_max = 3").await;
    let body = |limit: u64| json!({"rootType": "Order", "limit": limit});
    let cut = shop.done(&shop.lea, "find", body(10)).await;
    assert_eq!((&cut["rowCount"], &cut["totalCount"]), (&json!(3), &json!(4)));
    assert_eq!(cut["limited"]["limit"], "find_rows_max", "{cut}");
    assert!(cut["nextCursor"].is_string(), "{cut}");
    let fits = shop.done(&shop.lea, "find", body(2)).await;
    assert_eq!((&fits["rowCount"], fits.get("limited")), (&json!(2), None));
    let usual = shop.done(&shop.lea, "find", json!({"rootType": "Order"})).await;
    assert_eq!((&usual["rowCount"], &usual["limit"]), (&json!(3), &json!(3)));
    assert!(usual["limited"].is_object(), "{usual}");
    let listed = shop.get(&shop.lea, "/api/v1/records/Order?limit=10").await.body;
    assert_eq!(listed["limited"]["limit"], "find_rows_max", "{listed}");
}

#[tokio::test]
async fn the_find_limit_of_a_realm_is_kept_and_reported() {
    let shop = Shop::set("max_find_limit = 2").await;
    for more in [json!({"limit": 10}), json!({"page": {"limit": 10}}), json!({})] {
        let mut body = more;
        body["rootType"] = json!("Order");
        let cut = shop.done(&shop.lea, "find", body.clone()).await;
        assert_eq!((&cut["rowCount"], &cut["limit"]), (&json!(2), &json!(2)), "{body}");
        assert!(cut["limited"].is_object(), "it is not said that the page was cut: {body} {cut}");
        let result = shop.tool(&shop.lea, "query_find", body).await;
        assert!(result["structuredContent"]["limited"].is_object(), "{result}");
    }
    let fits = shop.done(&shop.lea, "find", json!({"rootType": "Order", "limit": 1})).await;
    assert_eq!((&fits["rowCount"], fits.get("limited")), (&json!(1), None));
}

#[tokio::test]
async fn a_page_of_many_bytes_ends_early_with_its_cursor() {
    let shop = Shop::limited("find_bytes_max = 1024").await;
    for number in 0..4 {
        let body = "x".repeat(400);
        let note = json!({"id": id(50 + number), "body": body});
        shop.saved(&shop.lea, "Note", note).await;
    }
    let mut seen = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut body = json!({"rootType": "Note"});
        if cursor.is_string() {
            body["cursor"] = cursor;
        }
        let page = shop.done(&shop.lea, "find", body).await;
        let rows = page["rows"].as_array().unwrap();
        assert!((1..4).contains(&rows.len()), "{page}");
        seen.extend(rows.iter().map(|row| text(&row["id"])));
        cursor = page["nextCursor"].clone();
        if !cursor.is_string() {
            break;
        }
        assert_eq!(page["limited"]["limit"], "find_bytes_max", "{page}");
    }
    assert_eq!(seen, [50, 51, 52, 53].map(id), "each once");
}

#[tokio::test]
async fn what_is_skipped_has_a_limit_and_a_cursor_has_none() {
    let shop = Shop::limited("find_skip_max = 2").await;
    let body = |skip: u64| json!({"rootType": "Order", "skip": skip, "limit": 1});
    let last = shop.done(&shop.lea, "find", body(2)).await;
    assert_eq!(last["rows"][0]["refName"], "O-3");
    for skip in [3, u64::MAX] {
        let refused = shop.ask(&shop.lea, "find", body(skip)).await;
        assert_eq!(named(&refused), told(400, "InvalidPage"), "{refused:?}");
        assert_eq!(refused.body["max"], 2, "{refused:?}");
    }
    let mut further = json!({"rootType": "Order", "limit": 1});
    further["cursor"] = last["nextCursor"].clone();
    assert_eq!(shop.done(&shop.lea, "find", further).await["rows"][0]["refName"], "O-4");
}

#[tokio::test]
async fn a_large_skip_that_is_allowed_finds_nothing() {
    let shop = Shop::limited("find_skip_max = 500000").await;
    let body = json!({"rootType": "Order", "skip": 500_000});
    let found = shop.ask(&shop.lea, "find", body).await;
    assert_eq!((found.status, &found.body["rowCount"]), (200, &json!(0)), "{found:?}");
}

#[tokio::test]
async fn a_cursor_belongs_to_its_question() {
    let shop = Shop::new().await;
    let asked = json!({"rootType": "Order", "query": "status:open", "sort": "total", "limit": 1});
    let cursor = text(&shop.done(&shop.lea, "find", asked.clone()).await["nextCursor"]);
    for (name, value) in [
        ("query", json!("status:paid")),
        ("query", json!(null)),
        ("sort", json!("-total")),
        ("sort", json!("refName")),
        ("rootType", json!("Location")),
        ("cursor", json!(format!("{cursor}00"))),
        ("cursor", json!(&cursor[2..])),
        ("cursor", json!("")),
        ("cursor", json!("%00' or 1=1")),
        ("cursor", json!("\u{e9}")),
    ] {
        let mut body = asked.clone();
        body["cursor"] = json!(cursor);
        body[name] = value.clone();
        if value.is_null() {
            body.as_object_mut().unwrap().remove(name);
        }
        if name == "rootType" {
            body = json!({"rootType": value, "cursor": cursor});
        }
        let fault = shop.fault(&shop.lea, "find", body.clone()).await;
        assert_eq!(fault, told(400, "InvalidCursor"), "{body}");
    }
}

#[tokio::test]
async fn more_than_may_be_deleted_at_once_stays() {
    let shop = Shop::limited("delete_many_max = 3").await;
    let all = json!({"rootType": "Order", "all": true});
    let refused = shop.ask(&shop.lea, "deleteMany", all.clone()).await;
    assert_eq!(named(&refused), told(400, "TooManyMatches"));
    assert_eq!(refused.body["max"], 3, "{refused:?}");
    let mut dry = all.clone();
    dry["dryRun"] = json!(true);
    assert_eq!(shop.fault(&shop.lea, "deleteMany", dry).await, told(400, "TooManyMatches"));
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 4);
    let fewer = json!({"rootType": "Order", "query": "total:<#40", "expect": 3});
    assert_eq!(shop.done(&shop.lea, "deleteMany", fewer).await["deletedCount"], 3);
}

#[tokio::test]
async fn groups_have_a_limit() {
    let shop = Shop::limited("groups_max = 3").await;
    let body = |by: &str| json!({"rootType": "Order", "groupBy": by});
    let three = shop.done(&shop.lea, "count", body("status")).await;
    assert_eq!(three["groups"].as_array().unwrap().len(), 3);
    let refused = shop.ask(&shop.lea, "count", body("refName")).await;
    assert_eq!(named(&refused), told(400, "TooManyGroups"));
    assert_eq!(refused.body["max"], 3, "{refused:?}");
}

#[tokio::test]
async fn a_record_has_a_limit_however_it_grows() {
    let shop = Shop::limited("record_bytes_max = 2048").await;
    let large = "x".repeat(2048);
    for (method, path) in [
        (Method::POST, "/api/v1/records/Note".to_owned()),
        (Method::PUT, format!("/api/v1/records/Note/{}", id(50))),
    ] {
        let body = json!({"body": large});
        let refused = shop.send(&shop.lea, method, &path, &[], body).await;
        assert_eq!((refused.status, &refused.body["code"]), (413, &json!("RecordTooLarge")));
        assert_eq!(refused.body["max"], 2048, "{refused:?}");
    }
    shop.saved(&shop.lea, "Note", json!({"id": id(50), "body": "x".repeat(1000)})).await;
    let more = json!({"rootType": "Note", "merge": true,
        "entity": {"id": id(50), "data": "y".repeat(1000)}});
    assert_eq!(shop.fault(&shop.lea, "save", more).await, told(413, "RecordTooLarge"));
    assert_eq!(shop.rows(&shop.lea, "Note", "").await[0]["version"], 1);
}

#[tokio::test]
async fn what_is_embedded_has_a_limit() {
    let shop = Shop::limited("expand_records_max = 1").await;
    let body = json!({"rootType": "Order", "query": "expand(customer)"});
    let page = shop.done(&shop.lea, "find", body).await;
    assert_eq!((&page["rowCount"], &page["totalCount"]), (&json!(1), &json!(4)), "{page}");
    assert_eq!(page["limited"]["limit"], "expand_records_max", "{page}");
    let both = json!({"rootType": "Order", "query": "expand(customer) && expand(shipFrom)"});
    shop.saved(&shop.lea, "Order", {
        let mut order = super::order(5, "lea", "cleo", "open");
        order["shipFrom"] = json!("oslo-store");
        order["id"] = json!(id(1));
        order
    })
    .await;
    assert_eq!(shop.fault(&shop.lea, "find", both).await, told(422, "TooManyEmbedded"));
}

#[tokio::test]
async fn a_reference_to_nothing_that_is_declared_cannot_be_embedded() {
    let shop = Shop::new().await;
    let body = json!({"rootType": "Note", "query": "expand(data)"});
    assert_eq!(shop.fault(&shop.lea, "find", body).await, told(422, "UnresolvedCollection"));
    let plain = json!({"rootType": "Order", "query": "expand(status)"});
    assert_eq!(shop.fault(&shop.lea, "find", plain).await, told(400, "InvalidQuery"));
}

#[tokio::test]
async fn a_query_that_takes_too_long_names_the_field_without_an_index() {
    let data = tempfile::tempdir().unwrap();
    let project = |limits: &str| bare("", &format!("[limits]\n{limits}"));
    let usual = || project("");
    let (house, stopper) = House::over(usual, &data, Some(ADMIN)).await;
    let admin = super::Person::admin();
    let post = async |house: &House, operation: &str, body: Value| {
        let body = Body::from(body.to_string());
        let path = format!("/api/query/{operation}");
        house.send(admin.signed(request(Method::POST, &path, body))).await
    };
    for number in 50..70 {
        let note = json!({"id": id(number), "body": "lorem ipsum ".repeat(40_000)});
        let body = json!({"rootType": "Note", "entity": note});
        assert_eq!(post(&house, "save", body).await.status, 200);
    }
    stopper.stop().await;
    drop(house);
    let hurried = || project("query_timeout_ms = 1");
    let (house, stopper) = House::over(hurried, &data, Some(ADMIN)).await;
    for operation in ["find", "count", "deleteMany"] {
        let body = json!({"rootType": "Note", "query": "body:*dolor*sit*"});
        let slow = post(&house, operation, body).await;
        assert_eq!(named(&slow), told(422, "QueryTooSlow"), "{operation}: {slow:?}");
        assert_eq!(slow.body["field"], "body", "{slow:?}");
        assert!(!slow.text.contains("dolor"), "{slow:?}");
    }
    stopper.stop().await;
}
