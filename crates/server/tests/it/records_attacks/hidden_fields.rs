//! A field that is hidden from a caller: it is like one that nobody declared, whatever asks for it.

use super::told;
use crate::house::text;
use crate::records_contract::{Shop, id, named, order};
use serde_json::{Value, json};

/// Hidden from sellers in orders, and a name of the same length that nobody declared.
const HIDDEN: &str = "margin";
const ABSENT: &str = "zzzzzz";

/// Calls that name a field of orders.
fn calls(field: &str) -> Vec<(&'static str, Value)> {
    let queries = [
        format!("{field}:>#1"),
        format!("{field}:#7001"),
        format!("!!({field}:null)"),
        format!("{field}:~"),
        format!("{field}:^[#7001, #7002]"),
        format!("{field}.a:1"),
        format!("status:open || {field}:<#9000"),
        format!("total:>#1 && ({field}:7* || {field}:!null)"),
    ];
    let mut calls: Vec<(&'static str, Value)> = Vec::new();
    for query in &queries {
        for operation in ["plan", "find", "count", "deleteMany"] {
            calls.push((operation, json!({"rootType": "Order", "query": query})));
        }
    }
    for query in [
        format!("fields:[{field}]"),
        format!("fields:[+refName, +{field}]"),
        format!("fields:[-{field}]"),
        format!("expand({field})"),
        format!("expand(customer) && {field}:>#1"),
        format!("expand(customer, {field}:>#1)"),
    ] {
        calls.push(("find", json!({"rootType": "Order", "query": query})));
    }
    for (operation, name, value) in [
        ("find", "sort", json!(field)),
        ("find", "sort", json!(format!("-{field}"))),
        ("find", "sort", json!([{"field": field, "dir": "DESC"}])),
        ("count", "groupBy", json!([field])),
        ("count", "groupBy", json!(format!("status,{field}"))),
        ("count", "aggregate", json!(format!("sum({field})"))),
        ("count", "aggregate", json!(format!("count({field})"))),
        ("count", "aggregate", json!([{"function": "max", "field": field}])),
        ("save", "entity", json!({"id": id(31), (field): 1})),
        ("save", "entity", json!({"refName": "O-9", (field): 1})),
    ] {
        calls.push((operation, json!({"rootType": "Order", name: value})));
    }
    calls
}

#[tokio::test]
async fn a_hidden_field_is_refused_like_one_that_nobody_declared() {
    let shop = Shop::new().await;
    for ((operation, hidden), (_, absent)) in calls(HIDDEN).into_iter().zip(calls(ABSENT)) {
        let hidden_told = told(&shop.ask(&shop.ann, operation, hidden.clone()).await);
        let (status, absent_told) = told(&shop.ask(&shop.ann, operation, absent).await);
        assert_eq!(status, 400, "{operation} {hidden}");
        let expected = absent_told.replace(ABSENT, HIDDEN);
        assert_eq!(hidden_told, (status, expected), "{operation} {hidden}");
    }
    assert_eq!(shop.count(&shop.lea, "Order", "margin:>#7000").await, 4, "nothing is changed");
}

#[tokio::test]
async fn no_hint_leads_to_a_hidden_field() {
    let shop = Shop::new().await;
    for (operation, body) in [
        ("find", json!({"rootType": "Order", "query": "margn:#1"})),
        ("find", json!({"rootType": "Order", "query": "zzzzzz:#1"})),
        ("find", json!({"rootType": "Order", "sort": "margn"})),
        ("count", json!({"rootType": "Order", "groupBy": "marign"})),
        ("save", json!({"rootType": "Order", "entity": {"margn": 1}})),
    ] {
        let answer = shop.ask(&shop.ann, operation, body.clone()).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(!answer.text.contains(HIDDEN), "{body}: {answer:?}");
        let lead = shop.ask(&shop.lea, operation, body.clone()).await;
        assert!(lead.text.contains(HIDDEN), "the hint is there for who sees it: {body}: {lead:?}");
    }
    let price = json!({"rootType": "Product", "query": "unitCst:#1"});
    let price = shop.ask(&shop.ann, "find", price).await;
    assert!(!price.text.contains("unitCost"), "{price:?}");
}

#[tokio::test]
async fn nothing_that_is_told_about_types_names_a_hidden_field() {
    let shop = Shop::new().await;
    shop.saved(&shop.lea, "Note", json!({"body": "b", "secret": "the-secret"})).await;
    for path in [
        "/api/agent/schema/Order",
        "/api/agent/schema/Product",
        "/api/agent/schema/Note",
        "/api/agent/query-hints",
        "/api/agent/permission-hints",
        "/api/agent/tools?all=true",
        "/api/v1/records",
        "/api/v1/records/Order",
        "/api/v1/records/Product",
        "/api/v1/records/Note",
    ] {
        let answer = shop.get(&shop.ann, path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        for name in ["margin", "unitCost", "\"secret\"", "the-secret"] {
            assert!(!answer.text.contains(name), "{path} has {name}");
        }
    }
    for uri in ["quantum://schema", "waypost://query-hints", "quantum://permission-hints"] {
        let read = shop.mcp(&shop.ann, "resources/read", json!({"uri": uri})).await.to_string();
        assert!(read.contains("contents") && !read.contains("margin"), "{uri}: {read}");
        assert!(!read.contains("unitCost"), "{uri}: {read}");
    }
}

/// Two notes whose secrets are in the other order than their ids.
async fn notes() -> Shop {
    let shop = Shop::new().await;
    for (number, secret) in [(50, "zebra-key"), (51, "apple-key")] {
        let note = json!({"id": id(number), "body": "same", "secret": secret});
        shop.saved(&shop.lea, "Note", note).await;
    }
    shop
}

#[tokio::test]
async fn where_any_field_is_taken_a_hidden_one_has_no_value() {
    let shop = notes().await;
    for (query, count) in [
        ("secret:zebra-key", 0),
        ("secret:z*", 0),
        ("secret:>a", 0),
        ("secret:~", 0),
        ("secret:!null", 0),
        ("secret:^[zebra-key, apple-key]", 0),
        ("secret:null", 2),
        ("secret:!zebra-key", 2),
        ("!!(secret:zebra-key)", 2),
        ("text(zebra)", 0),
        ("text(same)", 2),
        ("body:same || secret:none", 2),
        ("body:none || secret:*key", 0),
    ] {
        assert_eq!(shop.count(&shop.ann, "Note", query).await, count, "{query}");
        let body = json!({"rootType": "Note", "query": query, "limit": 1});
        let page = shop.done(&shop.ann, "find", body).await;
        assert_eq!(page["totalCount"], json!(count), "{query}");
        assert!(!page["rows"].to_string().contains("-key"), "{query}: {page}");
    }
    assert_eq!(shop.count(&shop.lea, "Note", "text(zebra)").await, 1);
}

#[tokio::test]
async fn a_hidden_field_orders_groups_and_sums_nothing() {
    let shop = notes().await;
    for sort in ["secret", "-secret"] {
        let body = json!({"rootType": "Note", "sort": sort});
        let found = shop.done(&shop.ann, "find", body).await;
        let ids: Vec<String> =
            found["rows"].as_array().unwrap().iter().map(|row| text(&row["id"])).collect();
        assert_eq!(ids, [50, 51].map(id), "{sort}");
    }
    let body = json!({"rootType": "Note", "groupBy": "secret", "aggregate": "count,max(secret),\
        count(secret)"});
    let groups = shop.done(&shop.ann, "count", body).await["groups"].clone();
    let expected = json!([{"secret": null, "count": 2, "max(secret)": null, "count(secret)": 0}]);
    assert_eq!(groups, expected);
    for query in ["fields:[+secret]", "fields:[+secret,+body]", "fields:[-body]", "id:~"] {
        let rows = json!(shop.rows(&shop.ann, "Note", query).await).to_string();
        assert!(!rows.contains("secret") && !rows.contains("-key"), "{query}: {rows}");
    }
}

#[tokio::test]
async fn a_save_neither_sets_nor_removes_what_is_hidden() {
    let shop = notes().await;
    let entities = [
        json!({"id": id(50), "body": "new"}),
        json!({"id": id(50), "body": "new", "secret": null}),
    ];
    for entity in entities {
        for merge in [false, true] {
            let body = json!({"rootType": "Note", "entity": entity, "merge": merge});
            let saved = shop.done(&shop.ann, "save", body).await;
            assert_eq!(saved["entity"].get("secret"), None, "{saved}");
            let whole = shop.rows(&shop.lea, "Note", "secret:zebra-key").await;
            assert_eq!(whole[0]["body"], "new", "it is still there: {whole:?}");
        }
    }
    let set = json!({"rootType": "Note", "entity": {"id": id(50), "secret": "mine"}});
    let answer = shop.ask(&shop.ann, "save", set).await;
    assert!(answer.status == 200 || answer.status == 400, "{answer:?}");
    assert!(!answer.text.contains("zebra"), "{answer:?}");
    assert_eq!(shop.count(&shop.lea, "Note", "secret:zebra-key").await, 1);
    assert_eq!(shop.count(&shop.lea, "Note", "secret:mine").await, 0);
}

#[tokio::test]
async fn what_is_embedded_has_no_hidden_field_either() {
    let shop = Shop::new().await;
    let mut own = order(5, "ann", "ada", "open");
    own["lines"] = json!([{"product": "CHA-001", "quantity": 2, "price": 10}]);
    shop.saved(&shop.lea, "Order", own).await;
    let query = "refName:O-5 && expand(lines[*].product)";
    let rows = json!(shop.rows(&shop.ann, "Order", query).await).to_string();
    assert!(rows.contains("chair") && !rows.contains("unitCost"), "{rows}");
    let lead = json!(shop.rows(&shop.lea, "Order", query).await).to_string();
    assert!(lead.contains("unitCost"), "{lead}");
    for query in [
        "expand(lines.product, unitCost:>#1)",
        "expand(lines.product, !!(unitCost:null))",
        "expand(lines.product, fields:[unitCost])",
        "expand(lines.product) && fields:[lines.product.unitCost]",
    ] {
        let body = json!({"rootType": "Order", "query": query});
        let answer = shop.ask(&shop.ann, "find", body).await;
        assert_eq!(named(&answer), (400, "InvalidQuery".to_owned()), "{query}: {answer:?}");
        let absent = json!({"rootType": "Order", "query": query.replace("unitCost", "unitCxxx")});
        let absent = shop.ask(&shop.ann, "find", absent).await;
        let (status, words) = told(&absent);
        assert_eq!(told(&answer), (status, words.replace("unitCxxx", "unitCost")), "{query}");
    }
}

#[tokio::test]
async fn a_cursor_of_a_hidden_order_is_of_no_use() {
    let shop = Shop::new().await;
    let by_margin = json!({"rootType": "Order", "sort": "-margin", "limit": 1});
    let cursor = text(&shop.done(&shop.lea, "find", by_margin.clone()).await["nextCursor"]);
    let mut copied = by_margin;
    copied["cursor"] = json!(cursor);
    let sorted = shop.ask(&shop.ann, "find", copied).await;
    assert_eq!(named(&sorted), (400, "InvalidQuery".to_owned()), "{sorted:?}");
    let bare = json!({"rootType": "Order", "limit": 1, "cursor": cursor});
    let bare = shop.ask(&shop.ann, "find", bare).await;
    assert_eq!(named(&bare), (400, "InvalidCursor".to_owned()), "{bare:?}");
}
