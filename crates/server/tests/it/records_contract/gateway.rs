//! `/api/query`: what each operation takes and answers.

use super::{Shop, id, named, told};
use crate::house::text;
use serde_json::{Value, json};

#[tokio::test]
async fn root_types_are_listed_by_their_simple_names() {
    let shop = Shop::new().await;
    let listed = shop.get(&shop.lea, "/api/query/rootTypes").await.body;
    let types = listed["rootTypes"].as_array().unwrap();
    let names: Vec<String> = types.iter().map(|of| text(&of["simpleName"])).collect();
    let expected =
        ["Agent", "Customer", "Location", "Note", "Order", "Product", "ToolProviderConfig"];
    assert_eq!(names, expected);
    assert_eq!(listed["count"], json!(types.len()));
    let order = json!({"className": "shop.Order", "simpleName": "Order",
        "collectionName": "orders"});
    assert!(types.contains(&order), "{listed}");
}

#[tokio::test]
async fn a_plan_says_its_mode_and_what_is_embedded() {
    let shop = Shop::new().await;
    for (query, mode, paths) in [
        (json!("status:open"), "FILTER", json!([])),
        (json!(""), "FILTER", json!([])),
        (json!("expand(customer)"), "AGGREGATION", json!(["customer"])),
        (
            json!("total:>#1 && expand(lines[*].product)"),
            "AGGREGATION",
            json!(["lines[*].product"]),
        ),
    ] {
        let body = json!({"rootType": "Order", "query": query});
        let plan = shop.done(&shop.lea, "plan", body).await;
        assert_eq!(plan, json!({"mode": mode, "expandPaths": paths}), "{query}");
    }
    let blank = shop.done(&shop.lea, "plan", json!({"rootType": "Order"})).await;
    assert_eq!(blank, json!({"mode": "FILTER", "expandPaths": []}));
}

#[tokio::test]
async fn only_administrators_learn_what_is_asked_of_the_database() {
    let shop = Shop::new().await;
    let body = json!({"rootType": "Location", "query": "city:Atlanta", "explain": true});
    let admin = super::Person::admin();
    let plan = shop.done(&admin, "plan", body.clone()).await;
    let explain = &plan["explain"];
    assert!(!explain["statements"].as_array().unwrap().is_empty(), "{plan}");
    assert!(explain["indexes"].is_array(), "{plan}");
    assert!(!explain.to_string().to_lowercase().contains("atlanta"), "no values: {plan}");
    assert_eq!(shop.fault(&shop.lea, "plan", body).await, told(403, "forbidden"));
}

#[tokio::test]
async fn a_page_of_records_says_all_about_itself() {
    let shop = Shop::new().await;
    let mut body = json!({"rootType": "Order", "query": "status:open",
        "sort": [{"field": "total", "dir": "DESC"}], "page": {"limit": 1, "skip": 0}});
    let mut first = shop.done(&shop.lea, "find", body.clone()).await;
    let members = first.as_object_mut().unwrap();
    let rows = members.remove("rows").unwrap();
    let cursor = members.remove("nextCursor").unwrap();
    assert!(members.remove("asOf").unwrap().is_string());
    assert_eq!(rows[0]["refName"], "O-3");
    let expected = json!({"offset": 0, "limit": 1, "sortDirection": "DESC",
        "sortFields": [{"field": "total", "dir": "DESC"}], "rowCount": 1, "totalCount": 2,
        "filter": "status:open", "realm": "shop", "actionList": []});
    assert_eq!(first, expected);
    body["cursor"] = cursor;
    let second = shop.done(&shop.lea, "find", body.clone()).await;
    assert_eq!(second["rows"][0]["refName"], "O-1");
    assert_eq!((second.get("nextCursor"), &second["totalCount"]), (None, &json!(2)));
    body["total"] = json!(false);
    let uncounted = shop.done(&shop.lea, "find", body).await;
    assert_eq!((&uncounted["totalCount"], &uncounted["rowCount"]), (&json!(null), &json!(1)));
}

#[tokio::test]
async fn a_find_without_more_has_fifty_rows_at_most() {
    let shop = Shop::new().await;
    let found = shop.done(&shop.lea, "find", json!({"rootType": "shop.Location"})).await;
    assert_eq!((&found["limit"], &found["offset"]), (&json!(50), &json!(0)));
    assert_eq!((&found["sortDirection"], &found["sortFields"]), (&json!(null), &json!([])));
    assert_eq!(found["filter"], json!(null));
    assert_eq!(found.get("limited"), None);
}

#[tokio::test]
async fn references_are_shown_with_names_and_embedded_on_request() {
    let shop = Shop::new().await;
    let plain = shop.rows(&shop.lea, "Order", "refName:O-1").await;
    let reference = json!({"entityId": id(11), "entityType": "shop.Customer",
        "entityRefName": "ada", "entityDisplayName": "ada"});
    assert_eq!(plain[0]["customer"], reference);
    let whole = shop.rows(&shop.lea, "Order", "refName:O-1 && expand(customer)").await;
    assert_eq!(whole[0]["customer"]["email"], "ada@example.com");
    let none = "refName:O-1 && expand(customer, tier:gold)";
    assert_eq!(shop.rows(&shop.lea, "Order", none).await[0]["customer"], json!(null));
    let part = shop.rows(&shop.lea, "Order", "refName:O-1 && fields:[+refName]").await;
    assert_eq!(part, [json!({"id": id(31), "refName": "O-1"})]);
}

#[tokio::test]
async fn pages_and_sorts_are_written_in_two_ways() {
    let shop = Shop::new().await;
    let names = async |more: Value| {
        let mut body = json!({"rootType": "Order"});
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        let found = shop.done(&shop.lea, "find", body).await;
        let rows = found["rows"].as_array().unwrap();
        rows.iter().map(|row| text(&row["refName"])).collect::<Vec<_>>()
    };
    let listed = json!([{"field": "status", "dir": "ASC"}, {"field": "total", "dir": "DESC"}]);
    let nested = names(json!({"sort": listed, "page": {"limit": 2, "skip": 1}})).await;
    let flat = names(json!({"sort": "status,-total", "limit": 2, "skip": 1})).await;
    assert_eq!(nested, ["O-3", "O-1"]);
    assert_eq!(flat, nested);
    let twice = json!({"rootType": "Order", "limit": 1, "page": {"limit": 2}});
    assert_eq!(shop.fault(&shop.lea, "find", twice).await, told(400, "InvalidPage"));
}

#[tokio::test]
async fn records_are_counted_also_in_groups() {
    let shop = Shop::new().await;
    let body = json!({"rootType": "Order", "query": "status:open"});
    let counted = shop.done(&shop.lea, "count", body).await;
    assert_eq!(counted, json!({"count": 2, "rootType": "shop.Order", "query": "status:open"}));
    let listed = json!([{"function": "count"}, {"function": "sum", "field": "total"}]);
    for (by, aggregate) in
        [(json!(["status"]), listed), (json!("status"), json!("count,sum(total)"))]
    {
        let body = json!({"rootType": "Order", "groupBy": by, "aggregate": aggregate});
        let groups = shop.done(&shop.lea, "count", body).await["groups"].clone();
        let shown = |group: &Value| {
            (text(&group["status"]), group["count"].as_u64(), group["sum(total)"].as_f64())
        };
        let shown: Vec<_> = groups.as_array().unwrap().iter().map(shown).collect();
        let expected = [("cancelled", 1, 40.0), ("open", 2, 40.0), ("paid", 1, 20.0)].map(
            |(status, count, sum): (&str, u64, f64)| (status.to_owned(), Some(count), Some(sum)),
        );
        assert_eq!(shown, expected, "{by}");
    }
    let measures = json!([{"function": "avg", "field": "total", "as": "mean"},
        {"function": "min", "field": "total"}, {"function": "max", "field": "total"}]);
    let body = json!({"rootType": "Order", "aggregate": measures});
    let group = shop.done(&shop.lea, "count", body).await["groups"][0].clone();
    let numbers = ["mean", "min(total)", "max(total)"].map(|name| group[name].as_f64());
    assert_eq!(numbers, [Some(25.0), Some(10.0), Some(40.0)], "{group}");
}

#[tokio::test]
async fn a_new_record_gets_an_id_a_name_and_its_data_domain() {
    let shop = Shop::new().await;
    let saved = shop.saved(&shop.lea, "Location", json!({"city": "Rome"})).await;
    let id = text(&saved["id"]);
    assert!(id.len() == 24 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{saved}");
    let entity = &saved["entity"];
    assert_eq!((&saved["rootType"], &saved["isNew"]), (&json!("shop.Location"), &json!(true)));
    assert_eq!((&saved["version"], &entity["version"]), (&json!(1), &json!(1)));
    assert_eq!((text(&entity["refName"]), text(&entity["displayName"])), (id.clone(), id.clone()));
    let domain = &entity["dataDomain"];
    let of = ["orgRefName", "tenantId", "ownerId"].map(|name| text(&domain[name]));
    assert_eq!(of, ["shop", "shop", "lea"]);
    assert_eq!(entity["auditInfo"]["creationIdentity"], "lea");
    assert_eq!((&entity["country"], &entity["kind"]), (&json!("US"), &json!("store")));
    let by_name = shop.saved(&shop.lea, "Location", json!({"refName": "rome-2"})).await;
    assert_eq!(by_name["entity"]["displayName"], "rome-2", "a refName is enough");
}

#[tokio::test]
async fn a_save_replaces_merges_and_takes_json_as_text() {
    let shop = Shop::new().await;
    let entity = json!({"_id": id(1), "refName": "atlanta-store", "state": "GA"});
    let replaced = shop.saved(&shop.lea, "Location", entity).await;
    assert_eq!((&replaced["isNew"], &replaced["version"]), (&json!(false), &json!(2)));
    assert_eq!(replaced["entity"].get("city"), None, "it is the whole record");
    let text = json!({"refName": "ATLANTA-STORE", "city": "Atlanta"}).to_string();
    let body = json!({"rootType": "Location", "entity": text, "merge": true});
    let merged = shop.done(&shop.lea, "save", body).await;
    assert_eq!((&merged["id"], &merged["version"]), (&json!(id(1)), &json!(3)));
    assert_eq!(
        (&merged["entity"]["city"], &merged["entity"]["state"]),
        (&json!("Atlanta"), &json!("GA"))
    );
    let removed = json!({"rootType": "Location", "merge": true,
        "entity": {"id": id(1), "state": null}});
    let removed = shop.done(&shop.lea, "save", removed).await;
    assert_eq!(removed["entity"].get("state"), None);
    let uuid = "6f1e2d3c-0000-4000-8000-00000000000a";
    let made = shop.saved(&shop.lea, "Location", json!({"id": uuid})).await;
    assert_eq!((&made["id"], &made["isNew"]), (&json!(uuid), &json!(true)));
}

#[tokio::test]
async fn a_deletion_answers_the_same_whether_it_found_something_or_not() {
    let shop = Shop::new().await;
    let body = json!({"rootType": "Location", "id": id(3)});
    let shape = |success: bool, count: u64| {
        json!({"success": success, "id": id(3), "rootType": "shop.Location",
            "deletedCount": count})
    };
    assert_eq!(shop.done(&shop.lea, "delete", body.clone()).await, shape(true, 1));
    let missing = shop.ask(&shop.lea, "delete", body).await;
    assert_eq!(named(&missing), told(404, "NotFound"));
    for (name, value) in shape(false, 0).as_object().unwrap() {
        assert_eq!(missing.body[name], *value, "{missing:?}");
    }
    for wrong in [json!({}), json!({"id": "x"}), json!({"id": "65a0"}), json!({"_id": "zz"})] {
        let mut body = wrong;
        body["rootType"] = json!("Location");
        let fault = shop.fault(&shop.lea, "delete", body.clone()).await;
        assert_eq!(fault, told(400, "InvalidId"), "{body}");
    }
}

#[tokio::test]
async fn many_are_deleted_or_counted_by_a_query() {
    let shop = Shop::new().await;
    let body = |query: &str| json!({"rootType": "Order", "query": query});
    let mut dry = body("status:open");
    dry["dryRun"] = json!(true);
    let counted = shop.done(&shop.lea, "deleteMany", dry).await;
    let shape = |query: &str, count: u64| {
        json!({"success": true, "query": query, "rootType": "shop.Order",
            "deletedCount": count})
    };
    let mut expected = shape("status:open", 2);
    expected["dryRun"] = json!(true);
    assert_eq!(counted, expected);
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 4, "nothing is gone");
    let done = shop.done(&shop.lea, "deleteMany", body("status:open")).await;
    assert_eq!(done, shape("status:open", 2));
    assert_eq!(shop.names(&shop.lea, "Order", "").await, ["O-2", "O-4"]);
    let none = shop.done(&shop.lea, "deleteMany", body("status:open")).await;
    assert_eq!(none, shape("status:open", 0));
    let all = json!({"rootType": "Order", "all": true});
    assert_eq!(shop.done(&shop.lea, "deleteMany", all).await["deletedCount"], 2);
    assert_eq!(shop.count(&shop.lea, "Order", "").await, 0);
}

#[tokio::test]
async fn edges_are_read_and_match_nothing() {
    let shop = Shop::new().await;
    for name in ["hasEdge", "hasOutgoingEdge", "hasIncomingEdge"] {
        let query = format!("{name}(soldBy, ann)");
        assert_eq!(shop.count(&shop.lea, "Order", &query).await, 0, "{query}");
    }
}

#[tokio::test]
async fn agents_and_providers_are_read_here_and_changed_elsewhere() {
    let shop = Shop::new().await;
    let names = shop.names(&shop.lea, "Agent", "").await;
    assert!(names.contains(&"analyst".to_owned()), "{names:?}");
    assert_eq!(shop.count(&shop.lea, "ToolProviderConfig", "").await, 0);
    let admin = super::Person::admin();
    for (operation, body) in [
        ("save", json!({"rootType": "Agent", "entity": {"refName": "other"}})),
        ("delete", json!({"rootType": "Agent", "id": id(1)})),
        ("deleteMany", json!({"rootType": "Agent", "query": "refName:analyst"})),
    ] {
        let refused = shop.ask(&admin, operation, body).await;
        assert_eq!(named(&refused), told(403, "forbidden"), "{operation}");
        assert!(text(&refused.body["hint"]).contains("/api/v1/agents"), "{refused:?}");
    }
}
