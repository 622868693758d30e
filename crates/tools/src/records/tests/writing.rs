//! Tools that write: what they leave behind, and what they leave alone.

use super::{ADA, FIRST, House, SECOND, THIRD, detail};
use kernel::tool::call::Reach;
use serde_json::{Value, json};

/// An order that is stored, as someone sees it who sees everything.
fn order(house: &House, id: &str) -> Value {
    let all = house.with(|access| {
        access.rows = None;
        access.hidden.clear();
    });
    let arguments = json!({"rootType": "Order", "query": format!("id:{id}")});
    let mut answer = all.call("query_find", arguments).unwrap();
    answer["rows"][0].take()
}

fn save(entity: Value) -> Value {
    json!({"rootType": "Order", "entity": entity})
}

#[test]
fn a_save_without_an_id_makes_a_record() {
    let house = House::new();
    let entity = json!({"status": "open", "total": 40, "customer": "ada"});
    let answer = house.call("query_save", save(entity)).unwrap();
    assert_eq!(answer["rootType"], "shop.Order");
    assert_eq!((&answer["version"], &answer["isNew"]), (&json!(1), &json!(true)));
    assert_eq!(answer["entity"]["customer"]["entityId"], ADA);
    let stored = order(&house, answer["id"].as_str().unwrap());
    assert_eq!(stored, answer["entity"]);
    assert_eq!(stored["auditInfo"]["creationIdentity"], "ann");
    let text = json!({"refName": "ord-5"}).to_string();
    house.call("query_save", save(json!(text))).unwrap();
    assert_eq!(house.count("refName:ord-5"), 1);
}

#[test]
fn a_save_replaces_merges_or_inserts() {
    let house = House::new();
    let put = save(json!({"_id": FIRST, "refName": "ord-1", "total": 11}));
    let answer = house.call("query_save", put).unwrap();
    assert_eq!((&answer["version"], &answer["isNew"]), (&json!(2), &json!(false)));
    assert_eq!(answer["entity"].get("status"), None);
    let mut part = save(json!({"refName": "ORD-2", "total": 21, "city": null}));
    part["merge"] = json!(true);
    let entity = house.call("query_save", part).unwrap()["entity"].take();
    assert_eq!((&entity["id"], &entity["total"]), (&json!(SECOND), &json!(21)));
    assert_eq!((&entity["status"], entity.get("city")), (&json!("open"), None));
    let mut insert = save(json!({"id": THIRD, "total": 1}));
    insert["insert"] = json!(true);
    assert_eq!(house.failed("query_save", insert.clone()).name, "DuplicateKey");
    insert["entity"]["id"] = json!("65a000000000000000000004");
    assert_eq!(house.call("query_save", insert.clone()).unwrap()["isNew"], json!(true));
    insert["merge"] = json!(true);
    assert_eq!(house.refused("query_save", insert).name, "InputValidationError");
    let mut absent = save(json!({"id": "65a000000000000000000009", "total": 1}));
    absent["merge"] = json!(true);
    assert_eq!(house.failed("query_save", absent).name, "NotFound");
}

#[test]
fn a_save_that_names_another_version_changes_nothing() {
    let house = House::new();
    let before = order(&house, FIRST);
    let fault = house.failed("query_save", save(json!({"id": FIRST, "version": 9, "total": 1})));
    assert_eq!(fault.name, "VersionConflict");
    assert_eq!(json!(fault.detail), json!({"expected": 9, "found": 1}));
    assert_eq!(order(&house, FIRST), before);
}

#[test]
fn a_save_is_refused_and_writes_nothing() {
    let house = House::new();
    for (entity, fault) in [
        (json!("{"), "InvalidEntity"),
        (json!("[]"), "InvalidEntity"),
        (json!([]), "InvalidEntity"),
        (json!({"id": "first"}), "InvalidId"),
        (json!({"_id": 7}), "InvalidId"),
    ] {
        assert_eq!(house.refused("query_save", save(entity)).name, fault);
    }
    let without = house.refused("query_save", json!({"rootType": "Order"}));
    assert_eq!(without.message, "the arguments do not fit: missing field `entity`");
    for (entity, fault) in [
        (json!({"total": "many"}), "InvalidEntity"),
        (json!({"gone": 1}), "InvalidEntity"),
        (json!({"customer": "nobody"}), "InvalidEntity"),
        (json!({"refName": "ORD-1"}), "DuplicateKey"),
        (json!({"status": "x".repeat(2_000_000)}), "RecordTooLarge"),
    ] {
        assert_eq!(house.failed("query_save", save(entity)).name, fault);
    }
    assert_eq!(house.count(""), 3);
}

#[test]
fn the_same_call_writes_once() {
    let house = House::new();
    let once = house.call_under(7, "query_save", save(json!({"total": 40}))).unwrap();
    assert_eq!(house.call_under(7, "query_save", save(json!({"total": 40}))), Ok(once));
    assert_eq!(house.count(""), 4);
    let delete = json!({"rootType": "Order", "id": FIRST});
    let deleted = house.call_under(8, "query_delete", delete.clone()).unwrap();
    assert_eq!(house.call_under(8, "query_delete", delete.clone()), Ok(deleted));
    assert_eq!(house.failed("query_delete", delete).name, "NotFound");
    let many = json!({"rootType": "Order", "query": "total:40"});
    let deleted = house.call_under(9, "query_deleteMany", many.clone()).unwrap();
    assert_eq!(deleted["deletedCount"], json!(1));
    house.call("query_save", save(json!({"total": 40}))).unwrap();
    assert_eq!(house.call_under(9, "query_deleteMany", many), Ok(deleted));
    assert_eq!(house.count("total:40"), 1);
    let error = house.call_under(9, "query_save", save(json!({"total": 40}))).unwrap_err();
    assert_eq!(error.fault.name, "CallReused");
    let error = house.call_under(7, "query_save", save(json!({"total": 41}))).unwrap_err();
    assert_eq!(error.fault.name, "CallReused");
}

#[test]
fn hidden_fields_survive_a_save_and_cannot_be_set() {
    let house = House::new().with(|access| access.hidden = vec!["margin"]);
    let answer = house.call("query_save", save(json!({"id": SECOND, "total": 21}))).unwrap();
    assert_eq!(answer["entity"].get("margin"), None);
    assert_eq!(order(&house, SECOND)["margin"], json!(2));
    let told = |field: &str| {
        let mut entity = json!({"id": SECOND});
        entity[field] = json!(9);
        let fault = house.failed("query_save", save(entity));
        serde_json::to_string(&fault).unwrap().replace(field, "it")
    };
    assert_eq!(told("margin"), told("absent"));
    assert_eq!(order(&house, SECOND)["margin"], json!(2));
}

#[test]
fn a_record_outside_of_the_filter_is_not_there_for_writes() {
    let house = House::new().with(|access| access.rows = Some("status:open"));
    let before = order(&house, THIRD);
    let put = save(json!({"id": THIRD, "status": "open"}));
    assert_eq!(house.failed("query_save", put).name, "NotFound");
    let away = save(json!({"id": FIRST, "status": "closed"}));
    assert_eq!(house.failed("query_save", away).name, "forbidden");
    let foreign = json!({"rootType": "Order", "id": THIRD});
    assert_eq!(house.failed("query_delete", foreign).name, "NotFound");
    let all = json!({"rootType": "Order", "all": true});
    let answer = house.call("query_deleteMany", all).unwrap();
    assert_eq!(answer["deletedCount"], json!(2));
    assert_eq!(order(&house, THIRD), before);
}

#[test]
fn a_record_is_deleted_by_its_id() {
    let house = House::new();
    let answer = house.call("query_delete", json!({"rootType": "Order", "_id": FIRST})).unwrap();
    let expected =
        json!({"success": true, "id": FIRST, "rootType": "shop.Order", "deletedCount": 1});
    assert_eq!(answer, expected);
    assert_eq!(house.count(""), 2);
    let fault = house.failed("query_delete", json!({"rootType": "Order", "id": FIRST}));
    assert_eq!(fault.name, "NotFound");
    let expected =
        json!({"success": false, "id": FIRST, "rootType": "shop.Order", "deletedCount": 0});
    assert_eq!(json!(fault.detail), expected);
    let other = json!({"rootType": "Order", "id": SECOND, "version": 4});
    assert_eq!(house.failed("query_delete", other).name, "VersionConflict");
    for id in [json!({}), json!({"id": "second"}), json!({"id": SECOND, "_id": THIRD})] {
        let mut arguments = id;
        arguments["rootType"] = json!("Order");
        assert_eq!(house.refused("query_delete", arguments).name, "InvalidId");
    }
    assert_eq!(house.count(""), 2);
}

#[test]
fn a_record_that_others_refer_to_stays() {
    let house = House::new();
    let fault = house.failed("query_delete", json!({"rootType": "Customer", "id": ADA}));
    assert_eq!(fault.name, "ReferentialIntegrity");
    assert_eq!(detail(&fault)["referrers"][0]["rootType"], "shop.Order");
    let all = json!({"rootType": "Customer", "all": true});
    assert_eq!(house.failed("query_deleteMany", all).name, "ReferentialIntegrity");
    assert_eq!(house.count("customer:~"), 3);
}

#[test]
fn all_that_match_are_deleted_and_no_others() {
    let house = House::new();
    let many = json!({"rootType": "Order", "query": "status:open"});
    let answer = house.call("query_deleteMany", many.clone()).unwrap();
    let expected = json!({"success": true, "query": "status:open", "rootType": "shop.Order",
        "deletedCount": 2});
    assert_eq!(answer, expected);
    assert_eq!(house.count(""), 1);
    let answer = house.call("query_deleteMany", many).unwrap();
    assert_eq!((&answer["success"], &answer["deletedCount"]), (&json!(true), &json!(0)));
}

#[test]
fn a_dry_run_counts_and_reads_only() {
    let house = House::new();
    let many = json!({"rootType": "Order", "query": "status:open", "dryRun": true});
    let answer = house.call_under(7, "query_deleteMany", many.clone()).unwrap();
    assert_eq!((&answer["deletedCount"], &answer["dryRun"]), (&json!(2), &json!(true)));
    assert_eq!(house.count(""), 3);
    let tool = house.tool("query_deleteMany");
    assert_eq!(tool.reach(&many), (Reach::Reads, true));
    let wet = json!({"rootType": "Order", "query": "status:open"});
    assert_eq!(tool.reach(&wet), (Reach::Writes, true));
    // A dry run is not remembered under its call id.
    assert_eq!(house.call_under(7, "query_deleteMany", wet).unwrap()["deletedCount"], json!(2));
    assert_eq!(house.count(""), 1);
}

#[test]
fn another_number_than_expected_deletes_nothing() {
    let house = House::new();
    let many = json!({"rootType": "Order", "query": "status:open", "expect": 1});
    let fault = house.failed("query_deleteMany", many);
    assert_eq!(fault.name, "ExpectationNotMet");
    assert_eq!(json!(fault.detail), json!({"expected": 1, "found": 2}));
    let few = house.limited(|limits| limits.delete_many_max = 2);
    let all = json!({"rootType": "Order", "all": true});
    assert_eq!(few.failed("query_deleteMany", all).name, "TooManyMatches");
    assert_eq!(house.count(""), 3);
}

#[test]
fn a_query_that_is_none_deletes_nothing() {
    let house = House::new();
    for (query, fault) in [
        ("status:", "InvalidQuery"),
        ("status", "InvalidQuery"),
        ("(status:open", "InvalidQuery"),
        ("status:open)", "InvalidQuery"),
        ("status:open AND total:#1", "InvalidQuery"),
        ("status:open total:#1", "InvalidQuery"),
        ("total:#x", "InvalidQuery"),
        ("gone:1", "InvalidQuery"),
        ("status:open || gone:1", "InvalidQuery"),
        ("status:\"open", "InvalidQuery"),
        ("status:${who}", "UnresolvedVariable"),
        ("status:open && expand(customer)", "InvalidQuery"),
        ("expand(customer)", "InvalidQuery"),
        ("fields:[id]", "QueryRequired"),
        ("", "QueryRequired"),
        (" \n", "QueryRequired"),
    ] {
        let arguments = json!({"rootType": "Order", "query": query});
        assert_eq!(house.refused("query_deleteMany", arguments).name, fault, "{query}");
        assert_eq!(house.count(""), 3, "{query}");
    }
    let arguments = json!({"rootType": "Order"});
    assert_eq!(house.refused("query_deleteMany", arguments).name, "QueryRequired");
    // `all` is no way around a query that cannot be used.
    let broken = json!({"rootType": "Order", "query": "status", "all": true});
    assert_eq!(house.refused("query_deleteMany", broken).name, "InvalidQuery");
    assert_eq!(house.count(""), 3);
    let all = json!({"rootType": "Order", "all": true});
    let answer = house.call("query_deleteMany", all).unwrap();
    assert_eq!((&answer["query"], &answer["deletedCount"]), (&Value::Null, &json!(3)));
}
