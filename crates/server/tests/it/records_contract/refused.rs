//! What else is refused at `/api/query`: bodies, records and versions that do not fit, and what a
//! caller has no right to. Nothing is written then.

use super::{Person, Shop, id, named, told};
use crate::house::{read, request, text};
use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn a_body_must_be_arguments_of_the_operation() {
    let shop = Shop::new().await;
    for operation in ["plan", "find", "count", "save", "delete", "deleteMany"] {
        for body in [
            json!({}),
            json!([]),
            json!({"rootType": 7}),
            json!({"rootType": "Order", "no": 1}),
            json!({"rootType": null}),
        ] {
            let answer = shop.ask(&shop.lea, operation, body.clone()).await;
            assert_eq!(answer.status, 400, "{operation} {body}: {answer:?}");
            assert!(answer.body["error"].is_string(), "{operation} {body}: {answer:?}");
        }
        for text in ["", "{", "rootType=Order"] {
            let path = format!("/api/query/{operation}");
            let sent = request(Method::POST, &path, Body::from(text));
            let answer = shop.house.send(shop.lea.signed(sent)).await;
            assert_eq!(answer.status, 400, "{operation} `{text}`: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_root_type_must_be_one_that_is_known() {
    let shop = Shop::new().await;
    for (name, message) in [
        ("", "rootType is required"),
        ("  ", "rootType is required"),
        ("Ordre", "Ordre"),
        ("store.Order", "store.Order"),
        ("order s", "order s"),
    ] {
        for operation in ["plan", "find", "count", "delete", "deleteMany", "save"] {
            let mut body = json!({"rootType": name});
            match operation {
                "delete" => body["id"] = json!(id(1)),
                "deleteMany" => body["query"] = json!("status:open"),
                "save" => body["entity"] = json!({}),
                _ => {}
            }
            let answer = shop.ask(&shop.lea, operation, body).await;
            assert_eq!(named(&answer), told(400, "UnknownRootType"), "{operation} `{name}`");
            assert!(text(&answer.body["message"]).contains(message), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn strangers_and_callers_without_rights_are_refused() {
    let shop = Shop::new().await;
    let stranger = Person { credential: "none".to_owned(), realm: None };
    let paths = [("GET", "rootTypes"), ("POST", "find"), ("POST", "deleteMany")];
    for (method, path) in paths {
        let method: Method = method.parse().unwrap();
        let path = format!("/api/query/{path}");
        let body = json!({"rootType": "Order"});
        let answer = shop.send(&stranger, method, &path, &[], body).await;
        assert_eq!(answer.status, 401, "{path}: {answer:?}");
    }
    let reader = shop.newcomer("rita", &["member", "reader"], None).await;
    assert_eq!(shop.count(&reader, "Order", "").await, 4);
    for (operation, body) in [
        ("save", json!({"rootType": "Location", "entity": {"city": "Rome"}})),
        ("delete", json!({"rootType": "Location", "id": id(3)})),
        ("deleteMany", json!({"rootType": "Location", "query": "city:Oslo"})),
    ] {
        let fault = shop.fault(&reader, operation, body).await;
        assert_eq!(fault, told(403, "forbidden"), "{operation}");
    }
    assert_eq!(shop.count(&shop.lea, "Location", "").await, 3);
}

#[tokio::test]
async fn an_entity_that_does_not_fit_is_told_field_by_field() {
    let shop = Shop::new().await;
    let fields = async |of: &str, entity: Value| {
        let answer = shop.ask(&shop.lea, "save", json!({"rootType": of, "entity": entity})).await;
        assert_eq!(named(&answer), told(400, "InvalidEntity"), "{answer:?}");
        let errors = answer.body["errors"].as_array().unwrap();
        assert!(errors.iter().all(|error| error["message"].is_string()), "{answer:?}");
        let mut fields: Vec<String> = errors.iter().map(|error| text(&error["field"])).collect();
        fields.sort_unstable();
        fields.join(" ")
    };
    for (of, entity, wrong) in [
        ("Product", json!({}), "category price"),
        ("Product", json!({"category": "sofa", "price": -1}), "category price"),
        ("Product", json!({"category": "chair", "price": "cheap"}), "price"),
        ("Location", json!({"refName": "ab"}), "refName"),
        ("Location", json!({"cty": "Rome"}), "cty"),
        ("Location", json!({"opened": "2024-13-01"}), "opened"),
        ("Location", json!({"realm": "outlet"}), "realm"),
        ("Location", json!({"version": "x"}), "version"),
        ("Location", json!({"refName": id(1)}), "refName"),
        ("Customer", json!({"email": "no address"}), "email"),
        ("Customer", json!({"homeStore": "nowhere"}), "homeStore"),
        (
            "Customer",
            json!({"homeStore": {"entityType": "shop.Order", "entityId": id(31)}}),
            "homeStore",
        ),
        ("Location", json!({"dataDomain": {"tenantId": "other"}}), "dataDomain.tenantId"),
        ("Location", json!("{"), ""),
        ("Location", json!("[]"), ""),
    ] {
        assert_eq!(fields(of, entity.clone()).await, wrong, "{of} {entity}");
    }
    let counts = [("Location", 3), ("Customer", 3), ("Product", 1)];
    for (of, count) in counts {
        assert_eq!(shop.count(&shop.lea, of, "").await, count, "{of}");
    }
}

#[tokio::test]
async fn a_save_needs_an_entity_with_an_id_that_is_one() {
    let shop = Shop::new().await;
    for body in [json!({"rootType": "Location"}), json!({"rootType": "Location", "entity": 7})] {
        let answer = shop.ask(&shop.lea, "save", body).await;
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    for wrong in ["depot", "65a", "65a00000000000000000000g", "", "../x"] {
        let body = json!({"rootType": "Location", "entity": {"id": wrong}});
        assert_eq!(shop.fault(&shop.lea, "save", body).await, told(400, "InvalidId"), "`{wrong}`");
    }
    let both = json!({"rootType": "Location", "merge": true, "insert": true,
        "entity": {"id": id(1)}});
    assert_eq!(shop.ask(&shop.lea, "save", both).await.status, 400);
    let part = json!({"rootType": "Location", "merge": true, "entity": {"refName": "nowhere"}});
    assert_eq!(shop.fault(&shop.lea, "save", part).await, told(404, "NotFound"));
}

#[tokio::test]
async fn conflicts_say_what_they_are_about() {
    let shop = Shop::new().await;
    let conflict = async |operation: &str, body: Value| {
        let mut answer = shop.ask(&shop.lea, operation, body).await;
        let fault = named(&answer);
        let members = answer.body.as_object_mut().unwrap();
        for name in ["error", "message", "hint", "traceId"] {
            members.remove(name);
        }
        (fault, answer.body)
    };
    let save = |entity: Value| json!({"rootType": "Customer", "entity": entity});
    let version = conflict("save", save(json!({"id": id(11), "version": 7}))).await;
    let versions = json!({"expected": 7, "found": 1});
    assert_eq!(version, (told(409, "VersionConflict"), versions.clone()));
    let delete = json!({"rootType": "Customer", "id": id(13), "version": 7});
    assert_eq!(conflict("delete", delete).await, (told(409, "VersionConflict"), versions));
    let email = conflict("save", save(json!({"email": "ada@example.com"}))).await;
    assert_eq!(email, (told(409, "DuplicateKey"), json!({"fields": ["email"]})));
    let name = conflict("save", save(json!({"refName": "ADA"}))).await;
    assert_eq!(name, (told(409, "DuplicateKey"), json!({"fields": ["refName"]})));
    let insert = json!({"rootType": "Customer", "insert": true, "entity": {"id": id(11)}});
    assert_eq!(
        conflict("save", insert).await,
        (told(409, "DuplicateKey"), json!({"fields": ["id"]}))
    );
    let referrer =
        |number: u8| json!({"rootType": "shop.Order", "id": id(number), "field": "customer"});
    let referrers = json!({"referrers": [referrer(31), referrer(32)]});
    let delete = json!({"rootType": "Customer", "id": id(11)});
    let referred = (told(409, "ReferentialIntegrity"), referrers);
    assert_eq!(conflict("delete", delete).await, referred);
    let many = json!({"rootType": "Customer", "query": "refName:^[ada, cleo]"});
    assert_eq!(conflict("deleteMany", many).await, referred, "all or nothing");
    let expected = json!({"rootType": "Order", "query": "status:open", "expect": 1});
    let unmet = (told(409, "ExpectationNotMet"), json!({"expected": 1, "found": 2}));
    assert_eq!(conflict("deleteMany", expected).await, unmet);
    assert_eq!(shop.count(&shop.lea, "Customer", "").await, 3);
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 4);
}

#[tokio::test]
async fn other_methods_are_not_allowed() {
    let shop = Shop::new().await;
    for (method, path) in [(Method::GET, "find"), (Method::DELETE, "delete"), (Method::PUT, "save")]
    {
        let path = format!("/api/query/{path}");
        let sent = shop.lea.signed(request(method.clone(), &path, Body::empty()));
        let answer = read(shop.house.open(sent).await).await;
        assert_eq!(answer.status, 405, "{method} {path}");
    }
}
