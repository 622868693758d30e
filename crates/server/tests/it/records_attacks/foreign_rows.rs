//! Records that a caller may not see: those of others, of other tenants, of other realms and of
//! types that are not for it. They are like records that are not there.

use super::told;
use crate::house::{Answer, text};
use crate::records_contract::{Person, Shop, coded, id, named, order};
use axum::http::Method;
use serde_json::{Value, json};

/// An order of somebody else, and one that nobody has.
const OTHERS: u8 = 33;
const ABSENT: u8 = 98;

fn at(number: u8) -> String {
    format!("/api/v1/records/Order/{}", id(number))
}

#[tokio::test]
async fn no_condition_leads_to_rows_of_others() {
    let shop = Shop::new().await;
    for query in [
        "refName:O-3",
        "id:65a000000000000000000033",
        "_id:^[65a000000000000000000033]",
        "salesRep:bob",
        "salesRep:^[bob, carl]",
        "!!(salesRep:ann)",
        "salesRep:!${ownerId}",
        "status:cancelled",
        "total:>#25",
        "total:>#20",
        "text(\"O-3\")",
        "text(bob)",
        "realm:outlet",
        "realm:!shop",
        "dataDomain.tenantId:outlet",
        "customer.entityRefName:ben",
        "customer:@@65a000000000000000000012",
        "(total:>#20 || refName:O-4) && status:~",
        "lines:{quantity:#1}",
    ] {
        assert_eq!(shop.count(&shop.ann, "Order", query).await, 0, "{query}");
        let body = json!({"rootType": "Order", "query": query});
        let page = shop.done(&shop.ann, "find", body).await;
        assert_eq!((&page["totalCount"], &page["rows"]), (&json!(0), &json!([])), "{query}");
    }
    for query in ["", "salesRep:ann || salesRep:bob", "!!(refName:none)", "realm:shop", "id:~"] {
        assert_eq!(shop.names(&shop.ann, "Order", query).await, ["O-1", "O-2"], "{query}");
    }
}

#[tokio::test]
async fn groups_and_sums_are_of_own_rows() {
    let shop = Shop::new().await;
    let body = json!({"rootType": "Order", "groupBy": "salesRep",
        "aggregate": "count,sum(total),max(total),min(refName),max(refName)"});
    let counted = shop.done(&shop.ann, "count", body).await;
    assert_eq!(counted["count"], 2, "{counted}");
    let groups = counted["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{counted}");
    assert_eq!((&groups[0]["salesRep"], &groups[0]["count"]), (&json!("ann"), &json!(2)));
    assert_eq!(
        (groups[0]["sum(total)"].as_f64(), groups[0]["max(total)"].as_f64()),
        (Some(30.0), Some(20.0))
    );
    assert_eq!(groups[0]["max(refName)"], "O-2");
}

#[tokio::test]
async fn a_foreign_row_is_deleted_and_changed_like_one_that_is_not_there() {
    let shop = Shop::new().await;
    let both = async |make: &dyn Fn(u8) -> (&'static str, Value)| {
        let mut said = Vec::new();
        for number in [OTHERS, ABSENT] {
            let (operation, body) = make(number);
            let (status, words) = told(&shop.ask(&shop.ann, operation, body).await);
            said.push((status, words.replace(&id(number), "it")));
        }
        assert_eq!(said[0], said[1]);
        said[0].0
    };
    let delete = |number: u8| ("delete", json!({"rootType": "Order", "id": id(number)}));
    assert_eq!(both(&delete).await, 404);
    let delete =
        |number: u8| ("delete", json!({"rootType": "Order", "id": id(number), "version": 9}));
    assert_eq!(both(&delete).await, 404);
    let merge = |number: u8| {
        (
            "save",
            json!({"rootType": "Order", "merge": true,
            "entity": {"id": id(number), "status": "paid"}}),
        )
    };
    assert_eq!(both(&merge).await, 404);
    let many = |number: u8| {
        ("deleteMany", json!({"rootType": "Order", "query": format!("id:{}", id(number))}))
    };
    assert_eq!(both(&many).await, 200);
    let expected = |number: u8| {
        (
            "deleteMany",
            json!({"rootType": "Order", "query": format!("id:{}", id(number)),
            "expect": 1}),
        )
    };
    assert_eq!(both(&expected).await, 409);
    assert_eq!(shop.count(&shop.lea, "Order", "status:open").await, 2);
    let all = json!({"rootType": "Order", "all": true});
    assert_eq!(shop.done(&shop.ann, "deleteMany", all).await["deletedCount"], 2);
    assert_eq!(shop.names(&shop.lea, "Order", "").await, ["O-3", "O-4"]);
}

#[tokio::test]
async fn versions_tell_nothing_of_a_foreign_row() {
    let shop = Shop::new().await;
    for method in [Method::GET, Method::PATCH, Method::DELETE, Method::PUT] {
        for header in [None, Some("*"), Some("\"1\""), Some("\"7\"")] {
            if method == Method::PUT && header.is_none() {
                // It would make the record that is not there.
                continue;
            }
            let mut said = Vec::new();
            for number in [OTHERS, ABSENT] {
                let answer = sent(&shop, &method, number, header).await;
                let (status, words) = told(&answer);
                assert!((400..500).contains(&status), "{method} {header:?}: {answer:?}");
                said.push((status, words.replace(&id(number), "it")));
            }
            assert_eq!(said[0], said[1], "{method} {header:?}");
        }
    }
    assert_eq!(shop.rows(&shop.lea, "Order", "refName:O-3").await[0]["version"], 1);
}

async fn sent(shop: &Shop, method: &Method, number: u8, tag: Option<&str>) -> Answer {
    let headers: Vec<(&'static str, &str)> = tag.map(|tag| ("if-match", tag)).into_iter().collect();
    let body = match *method {
        Method::PATCH => json!({"status": "paid"}),
        Method::PUT => order(number - 30, "ann", "ada", "paid"),
        _ => Value::Null,
    };
    let mut body = body;
    if let Some(members) = body.as_object_mut() {
        for name in ["margin", "refName"] {
            members.remove(name);
        }
    }
    shop.send(&shop.ann, method.clone(), &at(number), &headers, body).await
}

#[tokio::test]
async fn a_reference_to_a_foreign_row_is_one_to_nothing() {
    let shop = Shop::new().await;
    for (others, absent) in [
        (json!(id(OTHERS)), json!(id(ABSENT))),
        (json!("O-3"), json!("O-8")),
        (json!({"entityId": id(OTHERS)}), json!({"entityId": id(ABSENT)})),
        (json!({"entityRefName": "O-3"}), json!({"entityRefName": "O-8"})),
        (
            json!({"entityId": id(OTHERS), "entityType": "shop.Order", "entityRefName": "O-1"}),
            json!({"entityId": id(ABSENT), "entityType": "shop.Order", "entityRefName": "O-1"}),
        ),
    ] {
        let save = |about: &Value| json!({"rootType": "Note", "entity": {"about": about}});
        let first = shop.ask(&shop.ann, "save", save(&others)).await;
        assert_eq!(named(&first), (400, "InvalidEntity".to_owned()), "{others}");
        let second = shop.ask(&shop.ann, "save", save(&absent)).await;
        assert_eq!(told(&first), told(&second), "{others}");
    }
    let own = json!({"rootType": "Note", "entity": {"about": "O-1"}});
    assert_eq!(shop.done(&shop.ann, "save", own).await["entity"]["about"]["entityId"], id(31));
}

#[tokio::test]
async fn a_foreign_row_is_not_embedded() {
    let shop = Shop::new().await;
    let note = json!({"id": id(50), "body": "b", "about": "O-3"});
    shop.saved(&shop.lea, "Note", note).await;
    for query in [
        "expand(about)",
        "expand(about, total:>#1)",
        "expand(about, fields:[salesRep,total])",
        "expand(about) && fields:[about.total,about.salesRep]",
        "expand(about, !!(total:#1))",
    ] {
        let rows = shop.rows(&shop.ann, "Note", query).await;
        assert_eq!(rows.len(), 1, "{query}");
        let about = rows[0].get("about").cloned().unwrap_or_default();
        assert!(about.is_null(), "{query}: {about}");
        let whole = shop.rows(&shop.lea, "Note", query).await;
        assert!(whole[0]["about"].is_object(), "{query}: {whole:?}");
    }
}

#[tokio::test]
async fn who_refers_to_a_record_is_told_as_far_as_the_caller_sees_it() {
    let shop = Shop::new().await;
    let body = json!({"rootType": "Customer", "id": id(12)});
    let refused = shop.ask(&shop.ann, "delete", body).await;
    assert_eq!(named(&refused), (409, "ReferentialIntegrity".to_owned()), "{refused:?}");
    assert_eq!(refused.body["referrers"], json!([]));
    for word in [id(33), id(34), "O-3".to_owned(), "bob".to_owned()] {
        assert!(!refused.text.contains(&word), "{word}: {refused:?}");
    }
    let many = json!({"rootType": "Customer", "query": "refName:^[ada, ben]"});
    let refused = shop.ask(&shop.ann, "deleteMany", many).await;
    let referrers = refused.body["referrers"].as_array().unwrap();
    let ids: Vec<String> = referrers.iter().map(|one| text(&one["id"])).collect();
    assert_eq!(ids, [31, 32].map(id), "{refused:?}");
    assert_eq!(shop.count(&shop.lea, "Customer", "").await, 3);
}

#[tokio::test]
async fn a_cursor_of_another_caller_shows_own_rows_alone() {
    let shop = Shop::new().await;
    let body = json!({"rootType": "Order", "sort": "-total", "limit": 1});
    let cursor = shop.done(&shop.lea, "find", body.clone()).await["nextCursor"].clone();
    let mut copied = body;
    copied["cursor"] = cursor;
    copied["limit"] = json!(10);
    let page = shop.done(&shop.ann, "find", copied).await;
    let rows = page["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["salesRep"] == "ann"), "{page}");
    assert_eq!(page["totalCount"], 2);
}

/// Olga of the outlet, with a place of her own.
async fn with_outlet(shop: &Shop) -> Person {
    let olga = shop.person("olga").await;
    let place = json!({"id": id(60), "refName": "outlet-store", "city": "Bergen"});
    let saved = shop.ask(&olga, "save", json!({"rootType": "Location", "entity": place})).await;
    assert_eq!(saved.status, 200, "{saved:?}");
    olga
}

#[tokio::test]
async fn nothing_of_another_realm_is_there() {
    let shop = Shop::new().await;
    let olga = with_outlet(&shop).await;
    for query in ["city:Bergen", "realm:outlet", "text(Bergen)", "refName:outlet-store"] {
        assert_eq!(shop.count(&shop.lea, "Location", query).await, 0, "{query}");
        assert_eq!(shop.count(&Person::admin(), "Location", query).await, 0, "{query}");
    }
    assert_eq!(shop.count(&olga, "Location", "").await, 1);
    assert_eq!(shop.count(&olga, "Order", "").await, 0);
    let path = format!("/api/v1/records/Location/{}", id(60));
    assert_eq!(coded(&shop.get(&shop.lea, &path).await), (404, "NotFound".to_owned()));
    let gone = shop.send(&shop.lea, Method::DELETE, &path, &[], Value::Null).await;
    assert_eq!(coded(&gone), (404, "NotFound".to_owned()));
    for reference in [json!(id(60)), json!("outlet-store")] {
        let entity = json!({"refName": "dora", "homeStore": reference});
        let body = json!({"rootType": "Customer", "entity": entity});
        let fault = shop.fault(&shop.lea, "save", body).await;
        assert_eq!(fault, (400, "InvalidEntity".to_owned()), "{reference}");
    }
    let same = shop.saved(&shop.lea, "Location", json!({"id": id(60), "city": "Rome"})).await;
    assert_eq!(same["isNew"], json!(true), "an id is one of its realm");
    assert_eq!(shop.count(&olga, "Location", "city:Bergen").await, 1);
}

#[tokio::test]
async fn types_and_cursors_of_another_realm_are_of_no_use() {
    let shop = Shop::new().await;
    let olga = with_outlet(&shop).await;
    shop.ask(&olga, "save", json!({"rootType": "Location", "entity": {"city": "Bergen"}})).await;
    let body = json!({"rootType": "Location", "limit": 1});
    let cursor = shop.done(&olga, "find", body.clone()).await["nextCursor"].clone();
    assert!(cursor.is_string(), "{cursor}");
    let mut copied = body;
    copied["cursor"] = cursor;
    let refused = shop.fault(&shop.lea, "find", copied).await;
    assert_eq!(refused, (400, "InvalidCursor".to_owned()));
    let of_outlet = shop.get(&olga, "/api/query/rootTypes").await.text;
    assert!(of_outlet.contains("shop.Return"), "{of_outlet}");
    for path in [
        "/api/query/rootTypes",
        "/api/agent/query-hints",
        "/api/agent/permission-hints",
        "/api/v1/records?limit=100",
        "/api/agent/schema/Product",
    ] {
        let answer = shop.get(&shop.lea, path).await;
        assert!(!answer.text.contains("Return"), "{path}: {answer:?}");
    }
    for name in ["Return", "shop.Return"] {
        let fault = shop.fault(&shop.lea, "find", json!({"rootType": name})).await;
        assert_eq!(fault, (400, "UnknownRootType".to_owned()), "{name}");
    }
}

#[tokio::test]
async fn a_tenant_sees_its_own_records_alone() {
    let shop = Shop::new().await;
    let tina = shop.newcomer("tina", &["member"], Some("north")).await;
    for of in ["Location", "Customer", "Product", "Order", "Note"] {
        assert_eq!(shop.count(&tina, of, "").await, 0, "{of}");
    }
    assert_eq!(shop.count(&tina, "Location", "dataDomain.tenantId:shop").await, 0);
    assert_eq!(shop.count(&tina, "Location", "id:~ || dataDomain.tenantId:shop").await, 0);
    let same_name = shop.saved(&tina, "Location", json!({"refName": "atlanta-store"})).await;
    assert_eq!(same_name["entity"]["dataDomain"]["tenantId"], "north");
    assert_eq!(shop.count(&shop.lea, "Location", "refName:atlanta-store").await, 1);
    for domain in [json!({"tenantId": "shop"}), json!({"tenantId": "shop", "ownerId": "lea"})] {
        let entity = json!({"city": "Rome", "dataDomain": domain});
        let body = json!({"rootType": "Location", "entity": entity});
        let fault = shop.fault(&tina, "save", body).await;
        assert_eq!(fault, (400, "InvalidEntity".to_owned()), "{domain}");
    }
    let customer = json!({"rootType": "Customer", "entity": {"homeStore": id(2)}});
    assert_eq!(shop.fault(&tina, "save", customer).await, (400, "InvalidEntity".to_owned()));
    let gone = json!({"rootType": "Location", "id": id(3)});
    assert_eq!(shop.fault(&tina, "delete", gone).await, (404, "NotFound".to_owned()));
    let taken = json!({"rootType": "Location", "entity": {"id": id(3), "city": "Rome"}});
    assert_eq!(shop.fault(&tina, "save", taken).await, (404, "NotFound".to_owned()));
    assert_eq!(shop.count(&shop.lea, "Location", "").await, 3);
}

#[tokio::test]
async fn a_type_that_is_not_for_a_caller_is_not_told_by_what_leads_to_it() {
    let shop = Shop::new().await;
    let clerk = shop.newcomer("carl", &["member", "clerk"], None).await;
    let of_customer = json!({"rootType": "Customer"});
    assert_eq!(shop.fault(&clerk, "find", of_customer.clone()).await.0, 403);
    assert_eq!(shop.fault(&clerk, "count", of_customer).await.0, 403);
    let types = shop.get(&clerk, "/api/query/rootTypes").await.text;
    assert!(!types.contains("Customer"), "{types}");
    assert_eq!(shop.get(&clerk, "/api/agent/schema/Customer").await.status, 400);
    for query in ["expand(customer)", "expand(customer, tier:basic)"] {
        let body = json!({"rootType": "Order", "query": query});
        let answer = shop.ask(&clerk, "find", body).await;
        assert!(!answer.text.contains("@example.com"), "{query}: {answer:?}");
        let rows = answer.body["rows"].as_array().cloned().unwrap_or_default();
        assert!(rows.iter().all(|row| row["customer"].is_null()), "{query}: {answer:?}");
    }
    for query in [
        "expand(customer, emial:x)",
        "expand(customer, zzzz:x)",
        "expand(customer, fields:[tiers])",
        "expand(customer) && fields:[customer.homeStor]",
    ] {
        let body = json!({"rootType": "Order", "query": query});
        let answer = shop.ask(&clerk, "find", body).await;
        for name in ["email", "tier`", "tier,", "homeStore"] {
            assert!(!answer.text.contains(name), "{query} tells `{name}`: {answer:?}");
        }
    }
    let entity = json!({"customer": "ada", "salesRep": "carl", "orderedAt": "2025-01-07"});
    let body = json!({"rootType": "Order", "entity": entity});
    assert_eq!(shop.fault(&clerk, "save", body).await, (400, "InvalidEntity".to_owned()));
}
