//! Queries and records that are made to take long or to break a parser.

use crate::house::request;
use crate::records_contract::{Shop, id, named};
use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// Far longer than `query_timeout_ms`, on a busy machine, too.
const LIMIT: Duration = Duration::from_secs(60);

fn nested(depth: usize) -> String {
    format!("{}total:#10{}", "(".repeat(depth), ")".repeat(depth))
}

fn joined(conditions: usize) -> String {
    vec!["total:#1"; conditions].join("||")
}

fn listed(values: usize) -> String {
    let values: Vec<String> = (0..values).map(|value| format!("#{value}")).collect();
    format!("total:^[{}]", values.join(","))
}

#[tokio::test]
async fn a_query_beyond_a_limit_is_refused_and_one_within_it_is_run() {
    let shop = Shop::new().await;
    for (query, is_taken) in [
        (nested(31), true),
        (nested(33), false),
        (joined(500), true),
        (joined(501), false),
        (listed(1_000), true),
        (listed(1_001), false),
        ("(".repeat(16 * 1024), false),
        ("[".repeat(16 * 1024), false),
        ("{".repeat(16 * 1024), false),
        ("!!".repeat(8 * 1024), false),
        ("a:{".repeat(5_000), false),
        ("expand(".repeat(2_000), false),
        (")".repeat(16 * 1024), false),
        ("total:#1 ".repeat(2_000), false),
        (format!("refName:{}", "x".repeat(17 * 1024)), false),
        (format!("refName:{}", "x".repeat(15 * 1024)), true),
        (format!("{}:1", "a.".repeat(8_000)), false),
        (format!("refName:{}", "*a".repeat(4_000)), true),
    ] {
        for operation in ["plan", "find", "count", "deleteMany"] {
            let mut body = json!({"rootType": "Order", "query": query});
            if operation == "deleteMany" {
                body["dryRun"] = json!(true);
            }
            let asked = timeout(LIMIT, shop.ask(&shop.lea, operation, body)).await;
            let answer = asked.expect("the query takes too long");
            let start: String = query.chars().take(20).collect();
            match is_taken {
                true => assert_eq!(answer.status, 200, "{operation} {start}: {answer:?}"),
                false => {
                    let expected = (400, "InvalidQuery".to_owned());
                    assert_eq!(named(&answer), expected, "{operation} {start}");
                }
            }
        }
    }
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 4);
}

#[tokio::test]
async fn too_many_fields_are_refused() {
    let shop = Shop::new().await;
    let many = vec!["refName"; 17].join(",");
    for (operation, name) in [("find", "sort"), ("count", "groupBy")] {
        let body = json!({"rootType": "Order", name: many});
        let fault = shop.fault(&shop.lea, operation, body).await;
        assert_eq!(fault, (400, "InvalidQuery".to_owned()), "{name}");
    }
    let measures: Vec<Value> =
        (0..17).map(|place| json!({"function": "count", "as": format!("c{place}")})).collect();
    let body = json!({"rootType": "Order", "aggregate": measures});
    assert_eq!(shop.fault(&shop.lea, "count", body).await, (400, "InvalidQuery".to_owned()));
}

#[tokio::test]
async fn a_pattern_that_is_made_to_run_for_ever_ends() {
    let shop = Shop::new().await;
    for number in 50..54 {
        let note = json!({"id": id(number), "body": "a".repeat(500_000)});
        shop.saved(&shop.lea, "Note", note).await;
    }
    for query in [
        format!("body:{}b", "*a".repeat(2_000)),
        format!("body:{}b*", "*a?".repeat(1_000)),
        format!("body:*{}b*", "a?".repeat(30)),
        format!("body:{}", "*".repeat(10_000)),
        format!("text({})", "a".repeat(10_000) + "b"),
        format!("body:\"{}b\"", "a".repeat(10_000)),
        vec!["body:*a*a*a*b"; 100].join("||"),
    ] {
        let body = json!({"rootType": "Note", "query": query});
        let asked = timeout(LIMIT, shop.ask(&shop.lea, "count", body)).await;
        let answer = asked.expect("the pattern runs for ever");
        let start: String = query.chars().take(20).collect();
        assert!(matches!(answer.status, 200 | 422), "{start}: {answer:?}");
    }
    // The store goes on.
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 4);
    let saved = shop.saved(&shop.lea, "Location", json!({"city": "Rome"})).await;
    assert_eq!(saved["isNew"], json!(true));
}

/// The JSON text of a note whose data nests so deep.
fn deep(number: u8, depth: usize) -> String {
    let data = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    format!("{{\"id\": \"{}\", \"data\": {data}}}", id(number))
}

#[tokio::test]
async fn a_record_that_nests_deep_is_refused_or_can_be_read_again() {
    let shop = Shop::new().await;
    for (place, depth) in
        [40, 60, 100, 120, 124, 125, 126, 127, 500, 50_000].into_iter().enumerate()
    {
        let number = 50 + u8::try_from(place).unwrap();
        let body = json!({"rootType": "Note", "entity": deep(number, depth)});
        let key = format!("k-{number}");
        let headers = [("idempotency-key", key.as_str())];
        let mut said = Vec::new();
        for _ in 0..2 {
            let path = "/api/query/save";
            let saved = shop.send(&shop.lea, Method::POST, path, &headers, body.clone()).await;
            assert!(matches!(saved.status, 200 | 400), "{depth}: {}", saved.status);
            // What is answered is JSON that a client can read.
            assert!(saved.body.is_object(), "{depth}: {}", saved.status);
            said.push(saved.status);
        }
        assert_eq!(said[0], said[1], "{depth}");
        let found = json!({"rootType": "Note", "query": format!("id:{}", id(number))});
        let found = shop.ask(&shop.lea, "find", found).await;
        assert_eq!((found.status, found.body.is_object()), (200, true), "{depth}");
        let count = u64::from(said[0] == 200);
        assert_eq!(found.body["totalCount"], json!(count), "{depth}");
    }
}

#[tokio::test]
async fn a_body_that_nests_deep_is_refused() {
    let shop = Shop::new().await;
    for depth in [65, 200, 20_000] {
        let text = format!("{{\"rootType\": \"Note\", \"entity\": {}}}", deep(50, depth));
        for path in ["/api/query/save", "/api/v1/records/Note"] {
            let sent = request(Method::POST, path, Body::from(text.clone()));
            let answer = shop.house.send(shop.lea.signed(sent)).await;
            assert_eq!(answer.status, 400, "{path} {depth}: {answer:?}");
        }
    }
    assert_eq!(shop.count(&shop.lea, "Note", "").await, 0);
}
