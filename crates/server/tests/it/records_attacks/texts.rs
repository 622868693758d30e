//! SQL, quotes, wildcards and control characters in every argument: a value comes back as it was
//! sent, anything else is refused, and nothing else is touched.

use crate::house::text;
use crate::records_contract::{Shop, id, named};
use axum::http::Method;
use serde_json::{Value, json};

fn hostile() -> Vec<String> {
    let texts = [
        "'",
        "\"",
        "`",
        "\\",
        "\\\\'",
        "%",
        "_",
        "?",
        "*",
        "{",
        "[0]",
        "$.x",
        "\u{0}",
        "a\u{0}b",
        "\n",
        "\u{202e}",
        "\u{1f512}",
        "'; drop table notes;--",
        "\"; delete from outcomes;--",
        "1) or 1=1 --",
        "x' union select sql from sqlite_master --",
        "\" || status:open || \"",
        "${ownerId}",
        "@@65a000000000000000000099",
        "<script>alert(1)</script>",
        "null",
        "true",
        "../../records.db",
        "%00",
        "%27",
        "a&&b",
        "a||b",
        "expand(customer)",
        "~cs",
    ];
    let mut texts: Vec<String> = texts.map(str::to_owned).into();
    texts.push("'\"%_\\".repeat(410));
    texts
}

/// What is there, as the lead sees it.
async fn all(shop: &Shop) -> [u64; 4] {
    let mut counts = [0; 4];
    for (count, of) in counts.iter_mut().zip(["Order", "Customer", "Location", "Product"]) {
        *count = shop.count(&shop.lea, of, "").await;
    }
    counts
}

#[tokio::test]
async fn a_text_is_stored_found_and_shown_as_it_is() {
    let shop = Shop::new().await;
    let before = all(&shop).await;
    for (number, sent) in hostile().into_iter().enumerate() {
        let number = u8::try_from(number).unwrap() + 50;
        let name = format!("<{number} {sent}>");
        let entity = json!({"id": id(number), "refName": name, "displayName": name,
            "body": sent, "code": sent, "tags": [name], "data": {"k": sent, (sent.as_str()): 1},
            (format!("more{sent}")): sent});
        let saved = shop.saved(&shop.lea, "Note", entity.clone()).await;
        let found = shop.rows(&shop.lea, "Note", &format!("id:{}", id(number))).await;
        assert_eq!(found, [saved["entity"].clone()]);
        for (member, value) in entity.as_object().unwrap() {
            assert_eq!(found[0][member], *value, "{member}");
        }
        let twice =
            shop.fault(&shop.lea, "save", json!({"rootType": "Note", "entity": {"code": sent}}));
        assert_eq!(twice.await, (409, "DuplicateKey".to_owned()), "{sent:?}");
    }
    assert_eq!(shop.count(&shop.lea, "Note", "").await, hostile().len() as u64);
    assert_eq!(all(&shop).await, before);
}

#[tokio::test]
async fn a_quoted_text_takes_only_what_is_the_same() {
    let shop = Shop::new().await;
    let texts: Vec<String> =
        hostile().into_iter().filter(|text| !text.contains(char::is_control)).collect();
    for sent in &texts {
        shop.saved(&shop.lea, "Note", json!({"body": sent, "data": {"in": sent}})).await;
    }
    for sent in &texts {
        let quoted = format!("\"{}\"", sent.replace('"', "\"\""));
        for query in [
            format!("body:{quoted}~cs"),
            format!("body:^[{quoted}]"),
            format!("data.in:{quoted}"),
            format!("body:\"no\" || body:{quoted}"),
        ] {
            let found = shop.rows(&shop.lea, "Note", &query).await;
            let found: Vec<String> = found.iter().map(|row| text(&row["body"])).collect();
            assert_eq!(found, std::slice::from_ref(sent), "{query}");
        }
        let others = shop.count(&shop.lea, "Note", &format!("body:!{quoted}~cs")).await;
        assert_eq!(others, texts.len() as u64 - 1, "{sent}");
    }
}

/// Each argument with this text in it.
fn calls(sent: &str) -> Vec<(&'static str, Value)> {
    let of = |more: Value| {
        let mut body = json!({"rootType": "Note"});
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        body
    };
    vec![
        ("find", json!({"rootType": sent})),
        ("find", of(json!({"query": sent}))),
        ("find", of(json!({"query": format!("{sent}:1")}))),
        ("find", of(json!({"query": format!("body:{sent}")}))),
        ("find", of(json!({"query": format!("text({sent})")}))),
        ("find", of(json!({"query": format!("fields:[{sent}]")}))),
        ("find", of(json!({"query": format!("expand({sent})")}))),
        ("find", of(json!({"sort": sent}))),
        ("find", of(json!({"sort": [{"field": sent, "dir": "DESC"}]}))),
        ("find", of(json!({"sort": [{"field": "body", "dir": sent}]}))),
        ("find", of(json!({"cursor": sent}))),
        ("find", of(json!({"limit": sent}))),
        ("plan", of(json!({"query": format!("{sent}:1 && expand(about)")}))),
        ("count", of(json!({"query": format!("data.{sent}:>#1")}))),
        ("count", of(json!({"groupBy": [sent]}))),
        ("count", of(json!({"groupBy": sent}))),
        ("count", of(json!({"aggregate": sent}))),
        ("count", of(json!({"aggregate": format!("sum({sent})")}))),
        ("count", of(json!({"aggregate": [{"function": sent, "field": "body"}]}))),
        ("count", of(json!({"aggregate": [{"function": "count", "as": sent}]}))),
        ("delete", of(json!({"id": sent}))),
        ("deleteMany", of(json!({"query": format!("body:x{sent}")}))),
        ("deleteMany", of(json!({"query": sent}))),
        ("save", of(json!({"entity": sent}))),
        ("save", of(json!({"entity": {"id": sent}}))),
        ("save", of(json!({"entity": {"about": sent}}))),
        ("save", of(json!({"entity": {"about": {"entityId": sent}}}))),
        ("save", of(json!({"entity": {"about": {"entityRefName": sent}}}))),
        ("save", of(json!({"merge": true, "entity": {"refName": sent, "body": "x"}}))),
    ]
}

#[tokio::test]
async fn no_argument_gets_into_a_statement() {
    let shop = Shop::new().await;
    shop.saved(&shop.lea, "Note", json!({"id": id(50), "body": "kept", "secret": "kept"})).await;
    let before = all(&shop).await;
    let kept = shop.rows(&shop.lea, "Note", "").await;
    for sent in hostile() {
        for (operation, body) in calls(&sent) {
            let answer = shop.ask(&shop.lea, operation, body.clone()).await;
            let is_calm = matches!(answer.status, 200 | 400 | 404 | 422);
            assert!(is_calm, "{operation} {body}: {answer:?}");
            assert!(!answer.text.contains("syntax error"), "{operation} {body}: {answer:?}");
        }
    }
    assert_eq!(shop.rows(&shop.lea, "Note", "").await, kept);
    assert_eq!(all(&shop).await, before);
}

#[tokio::test]
async fn no_name_in_a_path_gets_into_a_statement() {
    let shop = Shop::new().await;
    let before = all(&shop).await;
    let byte = |byte: u8| format!("%{byte:02X}");
    for sent in hostile() {
        let name: String = sent.bytes().map(byte).collect();
        for path in [
            format!("/api/v1/records/{name}"),
            format!("/api/v1/records/{name}/{}", id(1)),
            format!("/api/v1/records/Order/{name}"),
            format!("/api/v1/records/Order?query={name}"),
            format!("/api/v1/records/Order?sort={name}"),
            format!("/api/v1/records/Order?cursor={name}"),
            format!("/api/agent/schema/{name}"),
        ] {
            let answer = shop.get(&shop.lea, &path).await;
            assert!((200..500).contains(&answer.status), "{path}: {answer:?}");
        }
        let path = format!("/api/v1/records/Order/{name}");
        let gone = shop.send(&shop.lea, Method::DELETE, &path, &[], Value::Null).await;
        assert!((400..500).contains(&gone.status), "{path}: {gone:?}");
    }
    assert_eq!(all(&shop).await, before);
}

#[tokio::test]
async fn names_in_the_answer_of_a_count_are_as_they_were_given() {
    let shop = Shop::new().await;
    for sent in hostile() {
        let body = json!({"rootType": "Order",
            "aggregate": [{"function": "count", "as": sent}]});
        let answer = shop.ask(&shop.lea, "count", body).await;
        match answer.status {
            200 => assert_eq!(answer.body["groups"], json!([{(sent.as_str()): 4}])),
            _ => assert_eq!(named(&answer), (400, "InvalidQuery".to_owned()), "{answer:?}"),
        }
    }
}
