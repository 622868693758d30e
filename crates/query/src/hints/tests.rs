//! Hints are of what their caller sees, and every example finds something.

use super::*;
use crate::records::reach::TypeRights;
use crate::records::requests::Access;
use crate::records::scope::CallerScope;
use crate::types::{Field, Kind, TypeSet};
use std::collections::BTreeSet;
use std::iter;
use std::sync::Arc;

fn types() -> TypeSet {
    let mut city = Field::new("city", Kind::String);
    city.required = true;
    let location = RecordType::new(
        "shop",
        "locations",
        "Location",
        vec![
            city,
            Field::new("opened", Kind::Date),
            Field::new("margin", Kind::Number),
            Field::new("owner", Kind::Reference("Person".to_owned())),
        ],
    );
    let person =
        RecordType::new("shop", "people", "Person", vec![Field::new("phone", Kind::String)]);
    TypeSet::new(vec![location, person])
}

/// A caller that reads locations, without their margin, and these types as well.
fn visible(others: &[&str]) -> Visible {
    let types = types();
    let location = types.find("Location").unwrap();
    let mut scope = CallerScope::default();
    scope.admit(location);
    scope.hide(&types, location, "margin");
    let names = iter::once("shop.Location").chain(others.iter().copied());
    let rights = names.map(|name| (name.to_owned(), TypeRights::default())).collect();
    let access = Access { realm: "acme".into(), types: Arc::new(types), scope: Arc::new(scope) };
    Visible { access, rights, variables: BTreeMap::new() }
}

fn samples() -> BTreeMap<String, Value> {
    let owner = json!({"entityId": "65a000000000000000000001", "entityType": "shop.Person"});
    let record = json!({"id": "65a000000000000000000002", "refName": "depot",
        "displayName": "Harbour", "city": "Atlanta", "opened": "2024-01-31", "owner": owner});
    BTreeMap::from([("shop.Location".to_owned(), record)])
}

fn queries(hints: &Value) -> BTreeSet<String> {
    let examples = hints["exampleQueries"].as_array().unwrap();
    examples.iter().map(|example| example["query"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_example_is_made_of_a_record_that_there_is() {
    let hints = query_hints(&visible(&["shop.Person"]), &samples());
    let first = &hints["exampleQueries"][0];
    assert_eq!(first["intent"], "Locations in Atlanta");
    assert_eq!(first["query"], "city:Atlanta");
    assert_eq!(first["rootType"], "Location");
    let expected = ["city:Atlanta", "opened:>=2024-01-31", "expand(owner)", "displayName:Har*"];
    assert_eq!(queries(&hints), BTreeSet::from(expected.map(str::to_owned)));
    let facts = hints["didYouKnow"].as_array().unwrap();
    assert_eq!(facts.len(), 5, "{facts:?}");
    assert_eq!(facts[4]["exampleQuery"], "city:^[\"Atlanta\"]");
}

#[test]
fn nothing_is_told_of_what_the_caller_does_not_see() {
    let mut samples = samples();
    let person = json!({"id": "65a000000000000000000001", "phone": "555"});
    samples.insert("shop.Person".to_owned(), person);
    // A store does not give it; if it did, it would not be shown.
    samples.get_mut("shop.Location").unwrap()["margin"] = json!(0.5);
    let visible = visible(&[]);
    let hints = query_hints(&visible, &samples);
    let schema =
        schema_of(&visible, &visible.access.types, visible.access.types.find("Location").unwrap());
    for told in [&hints, &schema, &permission_hints(&visible)] {
        let text = told.to_string();
        for hidden in ["margin", "Person", "phone", "expand(owner"] {
            assert!(!text.contains(hidden), "{hidden} is in {text}");
        }
    }
    assert_eq!(schema["properties"]["owner"]["type"], "object");
}

#[test]
fn without_a_record_there_is_no_example() {
    let hints = query_hints(&visible(&[]), &BTreeMap::new());
    assert_eq!((&hints["exampleQueries"], &hints["didYouKnow"]), (&json!([]), &json!([])));
    assert!(hints["queryGrammarSummary"]["operators"]["wildcards"].is_string());
}

#[test]
fn a_text_that_means_something_else_is_quoted() {
    let mut samples = samples();
    for (city, query) in [
        ("St. John's", "city:\"St. John's\""),
        ("null", "city:\"null\""),
        ("7", "city:\"7\""),
        ("a \"b\"", "city:\"a \"\"b\"\"\""),
        ("New York", "city:New York"),
    ] {
        samples.get_mut("shop.Location").unwrap()["city"] = json!(city);
        let hints = query_hints(&visible(&[]), &samples);
        assert_eq!(hints["exampleQueries"][0]["query"], query);
    }
}

#[test]
fn a_schema_has_the_fields_of_every_record_but_no_id() {
    let visible = visible(&["shop.Person"]);
    let types = &visible.access.types;
    let schema = schema_of(&visible, types, types.find("Location").unwrap());
    assert_eq!(schema["title"], "Location");
    assert_eq!(schema["required"], json!(["city"]));
    let properties = &schema["properties"];
    assert_eq!(properties["opened"], json!({"type": "string", "format": "date"}));
    assert_eq!(properties["tags"], json!({"type": "array", "items": {"type": "string"}}));
    assert_eq!(properties["version"], json!({"type": "integer"}));
    assert_eq!(properties.get("id"), None);
    let about = properties["owner"]["description"].as_str().unwrap();
    assert!(about.contains("`shop.Person`"), "{about}");
}

#[test]
fn the_check_of_a_permission_names_the_callers_own_types() {
    let mut visible = visible(&[]);
    visible.variables.insert("principalId".to_owned(), json!("ann"));
    let hints = permission_hints(&visible);
    let body = &hints["exampleCheckRequests"][1]["body"];
    let expected = json!({"area": "waypost", "functionalDomain": "RecordType", "action": "save",
        "realm": "acme", "identity": "ann", "resourceId": "shop.Location"});
    assert_eq!(*body, expected);
}
