//! What is not said by one example: limits, what is hidden, order, projection, embedded records
//! and what is computed over many.

use super::fixture::{Fixture, REALM, lookup, order};
use query::check::{HiddenFields, Scope, check, check_path, check_row_filter};
use query::checked::CheckedQuery;
use query::evaluate::group::{Function, Grouping, Measure, group};
use query::evaluate::order::{SortField, read_sort, sort};
use query::evaluate::shape::shape;
use query::evaluate::{Row, takes};
use query::fault::{FaultKind, QueryFault};
use query::parser::{CONDITIONS_MAX, LIST_VALUES_MAX, QUERY_BYTES_MAX, parse, parse_path};
use query::plan::{Mode, QueryPlan, plan};
use query::tree::Query;
use query::types::{Field, Kind, RecordType, TypeSet};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn checked(fixture: &Fixture, text: &str) -> CheckedQuery {
    check(&parse(text).unwrap(), fixture.scope()).unwrap()
}

fn row(record: &Value) -> Row<'_> {
    Row { realm: REALM, record }
}

fn names(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["refName"].as_str().unwrap()).collect()
}

fn message(text: &str) -> String {
    parse(text).unwrap_err().message
}

#[test]
fn a_blank_query_takes_every_record() {
    let fixture = Fixture::new();
    for text in ["", " ", "\n\t "] {
        assert_eq!(parse(text), Ok(Query::default()));
        let all = checked(&fixture, text);
        assert!(fixture.records.iter().all(|record| takes(&all, row(record))));
    }
}

#[test]
fn every_limit_holds_at_its_value_and_not_beyond() {
    let text = format!("a:{}", "x".repeat(QUERY_BYTES_MAX - 2));
    assert!(parse(&text).is_ok());
    assert_eq!(message(&format!("{text}x")), "the query is longer than 16384 bytes");
    let conditions = vec!["a:1"; CONDITIONS_MAX].join("||");
    assert!(parse(&conditions).is_ok());
    assert_eq!(message(&format!("{conditions}||a:1")), "there are more than 500 conditions");
    let values = vec!["1"; LIST_VALUES_MAX].join(",");
    assert!(parse(&format!("a:^[{values}]")).is_ok());
    assert_eq!(message(&format!("a:^[{values},1]")), "the list has more than 1000 values");
    let long = "x".repeat(63);
    assert!(parse(&format!("a:{long}?")).is_ok());
    assert!(parse(&format!("a:{long}xxx*{long}?*{long}xxx")).is_ok());
    let too_long = "a part of the pattern with `?` is longer than 64";
    assert_eq!(message(&format!("a:*{long}x?")), too_long);
}

#[test]
fn a_row_filter_without_a_value_for_its_variable_takes_nothing() {
    let fixture = Fixture::new();
    for text in
        ["dataDomain.ownerId:${nobody}", "!!dataDomain.ownerId:${nobody}", "status:!${nobody}"]
    {
        let query = parse(text).unwrap();
        let fault = check(&query, fixture.scope()).unwrap_err();
        assert_eq!(fault.kind, FaultKind::UnresolvedVariable);
        let filter = check_row_filter(&query, fixture.scope()).unwrap();
        assert!(!fixture.records.iter().any(|record| takes(&filter, row(record))), "{text}");
    }
    let misspelt = parse("satus:${nobody}").unwrap();
    assert!(check_row_filter(&misspelt, fixture.scope()).is_err());
}

#[test]
fn a_hidden_field_of_an_open_type_is_like_one_that_is_missing() {
    let mut open = order();
    open.additional_fields = true;
    let mut hidden = HiddenFields::default();
    for path in ["secret", "margin", "extra.flag"] {
        hidden.hide(&open, path);
    }
    let types = TypeSet::new(vec![open]);
    let variables = BTreeMap::new();
    let root = types.find("Order").unwrap();
    let scope = Scope { types: &types, root, variables: &variables, hidden: &hidden };
    let record = json!({
        "id": "1", "secret": {"a": "word"}, "margin": 1, "other": {"a": "Else"},
        "extra": {"flag": "f", "kept": 1},
    });
    let query = |text: &str| check(&parse(text).unwrap(), scope).unwrap();
    let taken = |text: &str| takes(&query(text), row(&record));
    for text in ["secret:null", "secret.a:null", "margin:null", "extra.flag:null", "other.a:else"] {
        assert!(taken(text), "{text}");
    }
    for text in ["secret:~", "secret.a:word", "margin:#1", "extra.flag:~", "text(word)"] {
        assert!(!taken(text), "{text}");
    }
    assert!(taken("text(else)"));
    let shown = shape(&query("fields:[-other]"), row(&record), &|_, _| None);
    assert_eq!(shown, json!({"id": "1", "extra": {"kept": 1}}));
    let shown = shape(&query("fields:[+secret.a]"), row(&record), &|_, _| None);
    assert_eq!(shown, json!({"id": "1"}));
}

fn sorted(text: &str) -> Vec<String> {
    let mut fixture = Fixture::new();
    let mut records = std::mem::take(&mut fixture.records);
    records.reverse();
    let fields: Vec<SortField> = read_sort(text)
        .unwrap()
        .iter()
        .map(|written| SortField {
            path: check_path(&written.path, fixture.scope()).unwrap(),
            descends: written.descends,
        })
        .collect();
    sort(&fields, REALM, &mut records);
    names(&records).into_iter().map(str::to_owned).collect()
}

#[test]
fn records_are_sorted_by_what_their_values_mean_and_then_by_id() {
    for (text, order) in [
        ("", ["anna", "ben", "cem", "dora"]),
        ("total", ["cem", "anna", "ben", "dora"]),
        ("-total", ["dora", "ben", "anna", "cem"]),
        ("status", ["dora", "cem", "anna", "ben"]),
        ("due", ["dora", "cem", "anna", "ben"]),
        // Ben's and Cem's are the same moment in two time zones.
        ("-placed, refName", ["ben", "cem", "anna", "dora"]),
        ("tags", ["ben", "dora", "anna", "cem"]),
        ("activeStatus,-version", ["dora", "ben", "anna", "cem"]),
        ("+realm,-_id", ["dora", "cem", "ben", "anna"]),
    ] {
        assert_eq!(sorted(text), order, "{text}");
    }
    let fault = |text: &str| read_sort(text).unwrap_err().message;
    assert_eq!(fault("a,-"), "sort field `-`: expected a field, found the end of the query");
    assert!(fault("a:1").starts_with("sort field `a:1`: expected the end of the path"));
    let hidden = check_path(&parse_path("margin").unwrap(), Fixture::new().scope());
    assert!(hidden.is_err(), "nobody learns its order");
}

#[test]
fn embedded_records_are_chosen_by_their_own_condition_and_root_records_are_not() {
    let fixture = Fixture::new();
    let shown = |text: &str, place: usize| {
        shape(&checked(&fixture, text), row(&fixture.records[place]), &lookup)
    };
    let text = "expand(customer, city:oslo, fields:[+name]) && fields:[+status,+customer.name]";
    let anna = json!({
        "id": "65a000000000000000000001", "status": "open", "customer": {"name": "North"},
    });
    assert_eq!(shown(text, 0), anna);
    let ben = json!({"id": "65a000000000000000000002", "status": "Shipped", "customer": null});
    assert_eq!(shown(text, 1), ben);
    assert_eq!(shown(text, 3), json!({"id": "65a000000000000000000004", "status": "null"}));
    let text = "expand(customer) && expand(customer.partner) && fields:[+customer.partner]";
    let south =
        json!({"id": "65b000000000000000000002", "name": "South", "city": "Rome", "vip": true});
    assert_eq!(shown(text, 2)["customer"], json!({"partner": south}));
    let text = "expand(lines[*].product) && fields:[+lines]";
    let anvil = json!({"id": "65c000000000000000000001", "title": "Anvil"});
    let lines = json!([{"sku": "A-1", "count": 1, "product": anvil}, {"sku": "B-2", "count": 5}]);
    assert_eq!(shown(text, 0)["lines"], lines);
    let lines = json!([{"sku": "a-1", "count": 7, "product": null}]);
    assert_eq!(shown(text, 1)["lines"], lines);
}

#[test]
fn of_a_list_of_references_only_the_wanted_ones_are_embedded() {
    let products = Kind::array(Kind::Reference("Product".to_owned()));
    let types = TypeSet::new(vec![
        RecordType::new("", "baskets", "Basket", vec![Field::new("products", products)]),
        RecordType::new("", "products", "Product", vec![Field::new("title", Kind::String)]),
    ]);
    let variables = BTreeMap::new();
    let hidden = HiddenFields::default();
    let root = types.find("Basket").unwrap();
    let scope = Scope { types: &types, root, variables: &variables, hidden: &hidden };
    let query = check(&parse("expand(products, title:!nail)").unwrap(), scope).unwrap();
    let titles = |_: &str, id: &str| match id {
        "gone" => None,
        _ => Some(json!({"id": id, "title": id})),
    };
    let basket = json!({"id": "1", "products": ["Anvil", {"entityId": "Nail"}, "gone", 7]});
    let shown = shape(&query, row(&basket), &titles);
    assert_eq!(shown, json!({"id": "1", "products": [{"id": "Anvil", "title": "Anvil"}]}));
}

#[test]
fn what_is_hidden_is_never_shown() {
    let fixture = Fixture::new();
    let anna = &fixture.records[0];
    for text in ["", "fields:[-lines]", "fields:[+dataDomain]"] {
        let shown = shape(&checked(&fixture, text), row(anna), &lookup);
        assert_eq!(shown["dataDomain"]["tenantId"], "acme");
        assert_eq!(shown["dataDomain"].get("accountNum"), None, "{text}");
        assert_eq!(shown.get("margin"), None, "{text}");
    }
    let shown = shape(&checked(&fixture, "fields:[+code,-id]"), row(anna), &lookup);
    assert_eq!(shown, json!({"code": "42"}));
}

fn measure(fixture: &Fixture, name: &str, function: Function, path: &str) -> Measure {
    let path = (!path.is_empty())
        .then(|| check_path(&parse_path(path).unwrap(), fixture.scope()).unwrap());
    Measure { name: name.to_owned(), function, path }
}

#[test]
fn measures_are_computed_for_each_group() {
    let fixture = Fixture::new();
    let by = check_path(&parse_path("activeStatus").unwrap(), fixture.scope()).unwrap();
    let measures = vec![
        measure(&fixture, "records", Function::Count, ""),
        measure(&fixture, "paid", Function::Count, "paid"),
        measure(&fixture, "versions", Function::Sum, "version"),
        measure(&fixture, "average", Function::Avg, "version"),
        measure(&fixture, "least", Function::Min, "total"),
        measure(&fixture, "last", Function::Max, "placed"),
        measure(&fixture, "items", Function::Sum, "lines.count"),
    ];
    let grouping = Grouping { by: vec![("status".to_owned(), by)], measures: measures.clone() };
    let groups = group(&grouping, fixture.records.iter().map(row));
    let expected = [
        json!({
            "status": "ACTIVE", "records": 3, "paid": 2, "versions": 7, "average": 7.0 / 3.0,
            "least": 19.9, "last": "2024-01-31T23:30:00Z", "items": 13,
        }),
        json!({
            "status": "RETIRED", "records": 1, "paid": 0, "versions": 3, "average": 3.0,
            "least": -5.5, "last": "2024-01-31T23:30:00Z", "items": 0,
        }),
    ];
    assert_eq!(groups, expected);
    let all = Grouping { by: Vec::new(), measures };
    let nothing = json!({
        "records": 0, "paid": 0, "versions": 0, "average": null, "least": null, "last": null,
        "items": 0,
    });
    assert_eq!(group(&all, []), [nothing]);
}

#[test]
fn a_plan_names_what_is_expanded() {
    let planned = |text: &str| plan(&parse(text).unwrap());
    let filter = QueryPlan { mode: Mode::Filter, expand_paths: Vec::new() };
    assert_eq!(planned(""), filter);
    assert_eq!(planned("status:open && fields:[+code]"), filter);
    let both = planned("a:1 && expand(customer, city:Oslo) && expand(items[*].product)");
    let paths = ["customer", "items[*].product"].map(str::to_owned).to_vec();
    assert_eq!(both, QueryPlan { mode: Mode::Aggregation, expand_paths: paths });
    assert_eq!((Mode::Filter.name(), Mode::Aggregation.name()), ("FILTER", "AGGREGATION"));
}

#[test]
fn a_fault_says_where_it_is() {
    let QueryFault { position, line, column, .. } = parse("a:1 &&\n é:2 % 3").unwrap_err();
    assert_eq!((position, line, column), (12, 2, 6));
    let shown = parse("a:1 b:2").unwrap_err().to_string();
    let expected = "expected `&&`, `||` or the end of the query before `b`, in line 1, column 5";
    assert_eq!(shown, expected);
}
