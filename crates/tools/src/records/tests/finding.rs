//! Tools that only read.

use super::{ADA, FIRST, House, REALM, SECOND, THIRD, detail};
use serde_json::{Value, json};

fn ref_names(answer: &Value) -> Vec<&str> {
    let rows = answer["rows"].as_array().unwrap();
    rows.iter().map(|row| row["refName"].as_str().unwrap()).collect()
}

#[test]
fn the_types_that_may_be_read_are_listed_by_name() {
    let answer = House::new().call("query_rootTypes", json!({"realm": REALM})).unwrap();
    let listed = |class_name: &str, simple_name: &str, collection_name: &str| {
        json!({"className": class_name, "simpleName": simple_name,
            "collectionName": collection_name})
    };
    let types = [
        listed("shop.Customer", "Customer", "customers"),
        listed("farm.Depot", "Depot", "farm_depots"),
        listed("shop.Depot", "Depot", "depots"),
        listed("shop.Order", "Order", "orders"),
    ];
    assert_eq!(answer, json!({"rootTypes": types, "count": 4}));
}

#[test]
fn a_plan_says_what_is_embedded() {
    let house = House::new();
    let query = "status:open && expand(customer)";
    let answer = house.call("query_plan", json!({"rootType": "Order", "query": query})).unwrap();
    assert_eq!(answer, json!({"mode": "AGGREGATION", "expandPaths": ["customer"]}));
    let answer = house.call("query_plan", json!({"rootType": "Order"})).unwrap();
    assert_eq!(answer, json!({"mode": "FILTER", "expandPaths": []}));
    let fault = house.refused("query_plan", json!({"rootType": "Order", "query": "gone:1"}));
    assert_eq!((fault.name.as_str(), &detail(&fault)["position"]), ("InvalidQuery", &json!(0)));
}

#[test]
fn only_administrators_explain() {
    let house = House::new();
    let explain = json!({"rootType": "Order", "query": "status:open", "explain": true});
    assert_eq!(house.refused("query_plan", explain.clone()).name, "forbidden");
    let admin = house.with(|access| access.explains = true);
    let answer = admin.call("query_plan", explain).unwrap();
    let explained = json!({"statements": [], "indexes": []});
    assert_eq!(answer, json!({"mode": "FILTER", "expandPaths": [], "explain": explained}));
}

#[test]
fn a_page_is_answered_in_its_envelope() {
    let query = "status:open && fields:[refName]";
    let arguments = json!({"rootType": "Order", "query": query, "sort": "-total", "limit": 1});
    let mut answer = House::new().call("query_find", arguments).unwrap();
    assert!(answer["nextCursor"].take().is_string());
    let expected = json!({
        "offset": 0, "limit": 1, "asOf": "2023-11-14T22:13:20.000Z",
        "sortDirection": "DESC", "sortFields": [{"field": "total", "dir": "DESC"}],
        "rows": [{"id": SECOND, "refName": "ord-2"}], "rowCount": 1, "totalCount": 2,
        "filter": query, "realm": REALM, "actionList": [], "nextCursor": null,
    });
    assert_eq!(answer, expected);
}

#[test]
fn defaults_are_50_rows_by_id_all_counted() {
    let house = House::new();
    let answer = house.call("query_find", json!({"rootType": "shop.Order"})).unwrap();
    assert_eq!(ref_names(&answer), ["ord-1", "ord-2", "ord-3"]);
    assert_eq!((&answer["limit"], &answer["totalCount"]), (&json!(50), &json!(3)));
    for name in ["sortDirection", "filter"] {
        assert_eq!(answer[name], Value::Null, "{name}");
    }
    for name in ["nextCursor", "limited"] {
        assert_eq!(answer.get(name), None, "{name}");
    }
    let arguments = json!({"rootType": "Order", "total": false, "page": {"skip": 2}});
    let answer = house.call("query_find", arguments).unwrap();
    assert_eq!(ref_names(&answer), ["ord-3"]);
    assert_eq!((&answer["offset"], &answer["totalCount"]), (&json!(2), &Value::Null));
}

#[test]
fn an_expand_embeds_the_record() {
    let query = "refName:ord-1 && expand(customer, fields:[refName])";
    let arguments = json!({"rootType": "Order", "query": query});
    let answer = House::new().call("query_find", arguments).unwrap();
    assert_eq!(answer["rows"][0]["customer"], json!({"id": ADA, "refName": "ada"}));
}

#[test]
fn a_cursor_continues_behind_its_page() {
    let house = House::new();
    let mut arguments = json!({"rootType": "Order", "sort": "-total", "limit": 2});
    let first = house.call("query_find", arguments.clone()).unwrap();
    assert_eq!(ref_names(&first), ["ord-3", "ord-2"]);
    arguments["cursor"] = first["nextCursor"].clone();
    let last = house.call("query_find", arguments.clone()).unwrap();
    assert_eq!(ref_names(&last), ["ord-1"]);
    assert_eq!(last.get("nextCursor"), None);
    // The same order in another spelling.
    arguments["sort"] = json!([{"field": "total", "dir": "DESC"}]);
    assert_eq!(ref_names(&house.call("query_find", arguments).unwrap()), ["ord-1"]);
}

#[test]
fn a_cursor_of_another_question_is_refused() {
    let house = House::new();
    let asked = json!({"rootType": "Order", "query": "total:>#0", "sort": "total", "limit": 1});
    let cursor = house.call("query_find", asked.clone()).unwrap()["nextCursor"].clone();
    for (name, other) in [
        ("query", json!("total:>#1")),
        ("sort", json!("-total")),
        ("sort", json!("total,city")),
        ("rootType", json!("Customer")),
        ("cursor", json!("")),
        ("cursor", json!("5b5d")),
    ] {
        let mut arguments = asked.clone();
        arguments["cursor"] = cursor.clone();
        if name == "rootType" {
            arguments = json!({"rootType": other, "limit": 1, "cursor": cursor});
        } else {
            arguments[name] = other.clone();
        }
        assert_eq!(house.refused("query_find", arguments).name, "InvalidCursor", "{name} {other}");
    }
}

#[test]
fn a_limit_that_cuts_is_reported() {
    let house = House::new().with(|access| access.find_rows_max = 2);
    let find = |house: &House, more: Value| {
        let mut arguments = json!({"rootType": "Order"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        house.call("query_find", arguments).unwrap()
    };
    let answer = find(&house, json!({"limit": 5}));
    assert_eq!((&answer["limit"], &answer["rowCount"]), (&json!(2), &json!(2)));
    assert_eq!(answer["limited"]["limit"], "find_rows_max");
    assert_eq!(answer["limited"]["reason"], "a page has at most 2 rows, not 5");
    assert!(answer["nextCursor"].is_string());
    assert_eq!(find(&house, json!({}))["limited"]["limit"], "find_rows_max");
    // Nobody asked for more, and there is no more.
    assert_eq!(find(&house, json!({"query": "status:closed"})).get("limited"), None);
    let short = House::new().limited(|limits| limits.find_bytes_max = 10);
    let answer = find(&short, json!({}));
    assert_eq!((&answer["rowCount"], &answer["totalCount"]), (&json!(1), &json!(3)));
    assert_eq!(answer["limited"]["limit"], "find_bytes_max");
    assert!(answer["nextCursor"].is_string());
    let narrow = House::new().limited(|limits| limits.expand_records_max = 1);
    let answer = find(&narrow, json!({"query": "expand(customer)"}));
    assert_eq!(answer["limited"]["limit"], "expand_records_max");
}

#[test]
fn a_find_is_refused_before_anything_is_read() {
    let house = House::new();
    for (name, value, fault) in [
        ("query", json!("status:open AND total:#1"), "InvalidQuery"),
        ("query", json!("status"), "InvalidQuery"),
        ("query", json!("gone:1"), "InvalidQuery"),
        ("query", json!("status:${who}"), "UnresolvedVariable"),
        ("query", json!("expand(status)"), "InvalidQuery"),
        ("query", json!(7), "InputValidationError"),
        ("skip", json!(101), "InvalidPage"),
        ("skip", json!(u64::MAX), "InvalidPage"),
        ("page", json!({"skip": 101}), "InvalidPage"),
        ("page", json!({"size": 1}), "InputValidationError"),
        ("limit", json!(-1), "InputValidationError"),
        ("cursor", json!("first"), "InvalidCursor"),
        ("sort", json!("gone"), "InvalidQuery"),
        ("sort", json!("total;drop"), "InvalidQuery"),
        ("sort", json!([{"field": "gone"}]), "InvalidQuery"),
        ("sort", json!([{"field": "total", "dir": "UP"}]), "InputValidationError"),
    ] {
        let mut arguments = json!({"rootType": "Order"});
        arguments[name] = value.clone();
        assert_eq!(house.refused("query_find", arguments).name, fault, "{name}: {value}");
    }
    let arguments = json!({"rootType": "Order", "query": "status:open &&\n  totl:#1"});
    let fault = house.refused("query_find", arguments);
    let told = detail(&fault);
    let place = (&told["position"], &told["line"], &told["column"]);
    assert_eq!(place, (&json!(17), &json!(2), &json!(3)));
    assert_eq!(fault.hint.as_deref(), Some("did you mean `total`?"));
    let arguments = json!({"rootType": "Order", "page": {"limit": 1}, "limit": 2});
    assert_eq!(house.refused("query_find", arguments).name, "InvalidPage");
}

#[test]
fn a_variable_of_the_caller_has_its_value() {
    let query = "auditInfo.creationIdentity:${principalId}";
    assert_eq!(House::new().count(query), 3);
}

#[test]
fn records_are_counted_and_grouped() {
    let house = House::new();
    let count = |more: Value| {
        let mut arguments = json!({"rootType": "Order"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        house.call("query_count", arguments).unwrap()
    };
    let answer = count(json!({"query": "status:open"}));
    let expected = json!({"count": 2, "rootType": "shop.Order", "query": "status:open"});
    assert_eq!(answer, expected);
    let answer = count(json!({"groupBy": "status", "aggregate": "count,sum(total)"}));
    let groups = json!([
        {"status": "closed", "count": 1, "sum(total)": 30},
        {"status": "open", "count": 2, "sum(total)": 30},
    ]);
    assert_eq!((&answer["count"], &answer["groups"]), (&json!(3), &groups));
    let most = json!([{"function": "max", "field": "total", "as": "most"}]);
    let answer = count(json!({"aggregate": most}));
    assert_eq!(answer["groups"], json!([{"most": 30}]));
    let answer = count(json!({"groupBy": ["city"]}));
    let groups = json!([{"city": "Bergen", "count": 1}, {"city": "Oslo", "count": 2}]);
    assert_eq!(answer["groups"], groups);
}

#[test]
fn a_count_is_refused_before_anything_is_read() {
    let house = House::new();
    let query = "status:open && expand(customer)";
    let fault = house.refused("query_count", json!({"rootType": "Order", "query": query}));
    assert_eq!(fault.name, "InvalidQuery");
    assert_eq!(detail(&fault)["position"], json!(15));
    for (name, value) in [
        ("groupBy", json!("gone")),
        ("groupBy", json!(["total:1"])),
        ("groupBy", json!("status,status")),
        ("aggregate", json!("sum(gone)")),
        ("aggregate", json!("sum")),
        ("aggregate", json!([{"function": "median", "field": "total"}])),
        ("aggregate", json!("count,count")),
    ] {
        let mut arguments = json!({"rootType": "Order"});
        arguments[name] = value.clone();
        let fault = house.refused("query_count", arguments);
        assert_eq!(fault.name, "InvalidQuery", "{name}: {value}");
        assert!(detail(&fault).contains_key("argument"), "{name}: {value}");
    }
    let many = house.limited(|limits| limits.groups_max = 1);
    let arguments = json!({"rootType": "Order", "groupBy": "status"});
    assert_eq!(many.failed("query_count", arguments).name, "TooManyGroups");
}

#[test]
fn a_hidden_field_does_not_exist() {
    let house = House::new().with(|access| access.hidden = vec!["margin"]);
    for (tool, name, value) in [
        ("query_plan", "query", json!("margin:>#1")),
        ("query_plan", "query", json!("fields:[margin]")),
        ("query_find", "query", json!("margin:~")),
        ("query_find", "sort", json!("-margin")),
        ("query_count", "query", json!("margin:>#1")),
        ("query_count", "groupBy", json!("margin")),
        ("query_count", "aggregate", json!("sum(margin)")),
        ("query_deleteMany", "query", json!("margin:>#1")),
    ] {
        let told = |field: &str| {
            let text = value.to_string().replace("margin", field);
            let value: Value = serde_json::from_str(&text).unwrap();
            let mut arguments = json!({"rootType": "Order"});
            arguments[name] = value;
            let fault = house.refused(tool, arguments);
            serde_json::to_string(&fault).unwrap().replace(field, "it")
        };
        // As one that nobody declared: not by its hints either.
        assert_eq!(told("margin"), told("absent"), "{tool} {name}");
    }
    let typo = json!({"rootType": "Order", "query": "margn:#1"});
    assert!(!house.refused("query_find", typo).hint.unwrap().contains("margin"));
    let answer = house.call("query_find", json!({"rootType": "Order"})).unwrap();
    assert!(!answer.to_string().contains("margin"), "{answer}");
}

#[test]
fn rows_outside_of_the_filter_are_not_found() {
    let house = House::new().with(|access| access.rows = Some("status:open"));
    let answer = house.call("query_find", json!({"rootType": "Order", "sort": "-total"})).unwrap();
    assert_eq!(ref_names(&answer), ["ord-2", "ord-1"]);
    assert_eq!(answer["totalCount"], json!(2));
    assert_eq!(house.count(""), 2);
    assert_eq!(house.count("status:closed"), 0);
    assert_eq!(house.count(&format!("id:^[{FIRST},{THIRD}]")), 1);
    let arguments = json!({"rootType": "Order", "groupBy": "status"});
    let answer = house.call("query_count", arguments).unwrap();
    assert_eq!(answer["groups"], json!([{"status": "open", "count": 2}]));
}
