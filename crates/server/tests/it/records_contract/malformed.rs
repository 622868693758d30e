//! Queries that are none: each is refused with its place by find, count, deleteMany and plan, and
//! deletes nothing.

use super::{Shop, named, told};
use serde_json::{Value, json};

/// Queries about orders that are not understood to their end, or name what is not there.
const MALFORMED: [&str; 40] = [
    "status:open refName:O-1",
    "status:open AND total:#10",
    "status:open OR status:paid",
    "NOT status:open",
    "refName:O-1,O-2",
    "refName:100%",
    "refName:a+b",
    "total:#5.5",
    "total:#99999999999999999999",
    "total>#5",
    "total",
    ":open",
    "status:",
    "status::open",
    "(status:open",
    "status:open)",
    "((status:open) && total:>#1",
    "customer:{entityRefName:ada",
    "status:^[open",
    "status:^[open,]",
    "status:^open",
    "refName:\"O-1",
    "orderedAt:2024-13-01",
    "orderedAt:2024-12-39",
    "orderedAt:>2024-02-30T00:00:00Z",
    "status:open && && total:#10",
    "|| status:open",
    "!!",
    "total:>null",
    "total:>O-*",
    "status:open~xx",
    "refName:pre${ownerId}",
    "expand(customer",
    "!!expand(customer)",
    "status:open || fields:[refName]",
    "text(\"\")",
    "text(a) && text(b)",
    "status:paid || text(a)",
    "customer{entityRefName:ada}",
    "stauts:open",
];

async fn refused(shop: &Shop, operation: &str, query: &str) {
    let body = json!({"rootType": "Order", "query": query});
    let answer = shop.ask(&shop.lea, operation, body).await;
    assert_eq!(named(&answer), told(400, "InvalidQuery"), "{operation} `{query}`: {answer:?}");
    let chars = query.chars().count() as u64;
    let number = |name: &str| answer.body[name].as_u64();
    assert!(number("position").is_some_and(|at| at <= chars), "`{query}`: {answer:?}");
    assert_eq!(number("line"), Some(1), "`{query}`: {answer:?}");
    let position = number("position").unwrap();
    assert_eq!(number("column"), Some(position + 1), "`{query}`: {answer:?}");
    assert!(answer.body["message"].is_string(), "`{query}`: {answer:?}");
}

#[tokio::test]
async fn no_malformed_query_finds_counts_or_deletes_anything() {
    let shop = Shop::new().await;
    let before = shop.rows(&shop.lea, "Order", "").await;
    for query in MALFORMED {
        for operation in ["plan", "find", "count", "deleteMany"] {
            refused(&shop, operation, query).await;
        }
    }
    assert_eq!(shop.rows(&shop.lea, "Order", "").await, before);
}

#[tokio::test]
async fn a_query_that_would_embed_is_no_count_and_no_deletion() {
    let shop = Shop::new().await;
    for query in ["expand(customer)", "status:open && expand(customer)"] {
        for operation in ["count", "deleteMany"] {
            refused(&shop, operation, query).await;
        }
    }
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 4);
}

#[tokio::test]
async fn words_of_other_languages_get_a_hint() {
    let shop = Shop::new().await;
    for (query, position, hint) in [
        ("status:open AND total:#10", 12, "&&"),
        ("status:open OR status:paid", 12, "||"),
        ("NOT status:open", 0, "!!"),
        ("status:open refName:O-1", 12, "&&"),
        ("total:#5.5", 6, "##5.5"),
        ("stauts:open", 0, "status"),
    ] {
        let body = json!({"rootType": "Order", "query": query});
        let told = shop.ask(&shop.lea, "count", body).await.body;
        assert_eq!(told["position"], json!(position), "{told}");
        assert!(told["hint"].as_str().unwrap_or_default().contains(hint), "{told}");
    }
}

#[tokio::test]
async fn places_count_characters_and_lines() {
    let shop = Shop::new().await;
    let query = "refName:\"\u{1f512}\u{e9}\" &&\n  stauts:open";
    let body = json!({"rootType": "Order", "query": query});
    let told = shop.ask(&shop.lea, "find", body).await.body;
    let at = query.chars().position(|char| char == '\n').unwrap() + 3;
    let place = [&told["position"], &told["line"], &told["column"]];
    assert_eq!(place, [&json!(at), &json!(2), &json!(3)], "{told}");
}

#[tokio::test]
async fn variables_without_a_value_are_no_values() {
    let shop = Shop::new().await;
    for query in ["salesRep:${nobody}", "salesRep:^${nobody}", "salesRep:^[ann, ${nobody}]"] {
        for operation in ["find", "count", "deleteMany"] {
            let body = json!({"rootType": "Order", "query": query});
            let fault = shop.fault(&shop.lea, operation, body).await;
            assert_eq!(fault, told(400, "UnresolvedVariable"), "{operation} {query}");
        }
    }
    assert_eq!(shop.count(&shop.ann, "Order", "salesRep:${principalId}").await, 2);
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 4);
}

#[tokio::test]
async fn a_deletion_without_a_condition_must_mean_all() {
    let shop = Shop::new().await;
    for more in [
        json!({}),
        json!({"query": ""}),
        json!({"query": "  \n"}),
        json!({"all": false}),
        json!({"query": "fields:[refName]"}),
        json!({"dryRun": true}),
    ] {
        let mut body = more;
        body["rootType"] = json!("Order");
        let fault = shop.fault(&shop.lea, "deleteMany", body.clone()).await;
        assert_eq!(fault, told(400, "QueryRequired"), "{body}");
    }
    let wrong = json!({"rootType": "Order", "all": true, "query": "status:open paid:x"});
    assert_eq!(shop.fault(&shop.lea, "deleteMany", wrong).await, told(400, "InvalidQuery"));
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 4);
}

#[tokio::test]
async fn sorts_groups_and_aggregates_name_fields_and_nothing_else() {
    let shop = Shop::new().await;
    let arguments: [(&str, &str, Value); 9] = [
        ("find", "sort", json!("stauts")),
        ("find", "sort", json!("status desc")),
        ("find", "sort", json!([{"field": "status:open"}])),
        ("find", "sort", json!([{"field": ""}])),
        ("count", "groupBy", json!(["stauts"])),
        ("count", "groupBy", json!("status:open")),
        ("count", "aggregate", json!("median(total)")),
        ("count", "aggregate", json!("sum(totals)")),
        ("count", "aggregate", json!("sum(total")),
    ];
    for (operation, name, value) in arguments {
        let body = json!({"rootType": "Order", name: value});
        let answer = shop.ask(&shop.lea, operation, body).await;
        assert_eq!(named(&answer), told(400, "InvalidQuery"), "{name} {value}");
        assert_eq!(answer.body["argument"], name, "{answer:?}");
    }
}
