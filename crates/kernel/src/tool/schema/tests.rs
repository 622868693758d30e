//! Schemas that would never end are refused at once, and those that people write are not.

use super::*;
use serde_json::json;

const STEPS_MAX: u64 = 5_000_000;

fn weighed(schema: &Value) -> Result<Weight, String> {
    weigh(schema).map_err(|misfit| misfit.message)
}

fn told(schema: &Value) -> String {
    weighed(schema).err().unwrap_or_else(|| panic!("it is taken"))
}

/// Levels that each refer twice to the next one.
fn levels(count: usize, level: impl Fn(Value) -> Value) -> Value {
    let mut all = json!({});
    for at in 0..count {
        all[format!("l{at}")] = level(json!({"$ref": format!("#/$defs/l{}", at + 1)}));
    }
    all[format!("l{count}")] = json!({"type": "string"});
    json!({"$ref": "#/$defs/l0", "$defs": all})
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!("x"), |inner, _| json!({"a": inner}))
}

#[test]
fn a_schema_with_too_many_paths_for_one_value_is_refused() {
    type Level = fn(Value) -> Value;
    let towers: [Level; 6] = [
        |next| json!({"anyOf": [next, next]}),
        |next| json!({"oneOf": [next, next]}),
        |next| json!({"allOf": [next, {"not": next}]}),
        |next| json!({"if": next, "then": next, "else": next}),
        |next| json!({"dependentSchemas": {"a": next, "b": next}}),
        |next| json!({"allOf": [next], "unevaluatedProperties": false}),
    ];
    for level in towers {
        let schema = levels(16, level);
        assert!(told(&schema).contains("against it than 10000"), "{schema}");
        assert!(weighed(&levels(3, level)).is_ok(), "{schema}");
    }
    // By their anchors.
    let mut anchored = json!({});
    for at in 0..20 {
        let next = json!({"$ref": format!("#n{}", at + 1)});
        anchored[format!("x{at}")] = json!({"$anchor": format!("n{at}"), "anyOf": [next, next]});
    }
    anchored["x20"] = json!({"$anchor": "n20"});
    let schema = json!({"$ref": "#n0", "$defs": anchored});
    assert!(told(&schema).contains("against it than 10000"));
}

#[test]
fn reference_cycles_on_one_value_are_refused() {
    let circles = [
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$ref": "#/$defs/a", "$defs": {
            "a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        json!({"$dynamicAnchor": "n", "oneOf": [{"$dynamicRef": "#n"}]}),
        json!({"$id": "http://a.test/s", "anyOf": [{"$ref": "s"}]}),
        json!({"$ref": "#/%24defs/a", "$defs": {"a": {"if": {"$ref": "#/$defs/a"}}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"a": {"$id": "#a", "not": {"$ref": "#a"}}}, "not": {"$ref": "#a"}}),
    ];
    for schema in circles {
        assert!(told(&schema).contains("leads back to where it stands"), "{schema}");
    }
}

#[test]
fn an_oversized_schema_is_refused() {
    let around = |inner| Value::Object([("not".to_owned(), inner)].into_iter().collect());
    let deep = (0..100_000).fold(json!({}), |inner, _| around(inner));
    assert!(told(&deep).contains("it nests deeper than 48"));
    // To drop it would need as much of the stack as to walk through it.
    std::mem::forget(deep);
    let nested = (0..50).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}));
    assert!(told(&nested).contains("it nests deeper than 48"));
    let chain = levels(60, |next| next);
    assert!(told(&chain).contains("deeper than 48"));
    let words: Vec<String> = (0..200_000).map(|number| format!("word {number}")).collect();
    assert!(told(&json!({"enum": words})).contains("it has more bytes than 2097152"));
    let many: Vec<Value> = (0..20_001).map(|_| json!({})).collect();
    assert!(told(&json!({"prefixItems": many})).contains("followed, than 20000"));
    let pattern = json!({"pattern": "((((a{99}){99}){99}){99}){99}"});
    assert!(told(&pattern).contains("followed, than 20000"));
    let long = json!({"pattern": "a".repeat(9_000)});
    assert_eq!(told(&long), "a pattern is longer than 8192 bytes");
    assert_eq!(told(&json!({"$ref": "#/none"})), "the reference `#/none` leads nowhere");
}

#[test]
fn resources_are_counted_once_per_path_that_builds_them() {
    // Each refers to all that come after it.
    let resource = |at: usize| {
        let later: Vec<Value> = (at + 1..16).map(|it| json!({"$ref": format!("r{it}")})).collect();
        json!({"$id": format!("r{at}"), "properties": {"a": {"prefixItems": later}}})
    };
    let all: Vec<Value> = (0..16).map(resource).collect();
    let schema = json!({"$ref": "r0", "$defs": {"all": {"prefixItems": all}}});
    assert!(told(&schema).contains("followed, than 20000"));
    let one = json!({"properties": {"tree": {"$id": "T0", "items": {"$ref": "T0"}}}});
    assert!(weighed(&one).is_ok());
}

#[test]
fn paths_that_grow_with_a_value_are_measured_on_the_value() {
    let doubling = levels(40, |next| json!({"properties": {"a": {"anyOf": [next, next]}}}));
    let again = json!({"allOf": [{"properties": {"a": {"$ref": "#"}}}],
        "unevaluatedProperties": false});
    let resources: Vec<Value> = (0..150)
        .map(|it| json!({"properties": {"type": {"const": it}, "a": {"$ref": "#"}}}))
        .collect();
    for schema in [doubling, again, json!({"oneOf": resources})] {
        let weight = weighed(&schema).unwrap();
        assert!(weight.is_within(&nested(1), STEPS_MAX), "{schema}");
        assert!(!weight.is_within(&nested(38), STEPS_MAX), "{schema}");
    }
}

#[test]
fn ordinary_schemas_are_accepted() {
    let tree = json!({"anyOf": [{"type": "string"}, {"items": {"$ref": "#"}}]});
    let wide: serde_json::Map<String, Value> =
        (0..2_000).map(|it| (format!("p{it}"), json!({"type": "string"}))).collect();
    // What tells the alternatives apart is the name of a member.
    let blocks: Vec<Value> = (0..60)
        .map(|it| {
            json!({"required": [format!("b{it}")], "properties": {
            format!("b{it}"): {"items": {"$ref": "#/$defs/block"}}}})
        })
        .collect();
    let schemas = [
        json!(true),
        json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        json!({"items": {"$ref": "http://json-schema.org/draft-07/schema#"}}),
        json!({"$dynamicAnchor": "node", "properties": {"next": {"$dynamicRef": "#node"}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {
            "a": {"dependencies": {"b": ["c"], "d": {"required": ["e"]}}}},
            "items": [{"$ref": "#/definitions/a"}], "additionalItems": false}),
        json!({"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}}),
        json!({"properties": wide, "additionalProperties": false}),
        tree.clone(),
        json!({"$ref": "#/$defs/block", "$defs": {"block": {"anyOf": blocks}}}),
    ];
    for schema in &schemas {
        assert!(weighed(schema).is_ok(), "{schema}: {:?}", weighed(schema).err());
    }
    let [.., blocks] = &schemas;
    let mut document = json!([]);
    for level in 0..6 {
        document = json!([{format!("b{level}"): document.clone()}, {"b7": document}]);
    }
    let document = json!({"b1": document});
    assert!(weighed(blocks).unwrap().is_within(&document, STEPS_MAX));
    let items: Vec<Value> = (0..100_000).map(|it| json!([it, "x"])).collect();
    assert!(weighed(&tree).unwrap().is_within(&json!(items), STEPS_MAX));
}

#[test]
fn the_cost_of_a_text_depends_on_its_pattern() {
    let long = json!("ab".repeat(500_000));
    let within = |schema: Value| weighed(&schema).unwrap().is_within(&long, STEPS_MAX);
    assert!(within(json!({"pattern": "^[ab]+$"})));
    assert!(!within(json!({"pattern": "[ab]*a[ab]{900}"})));
    assert!(!within(json!({"pattern": "^(?!x).*$"})));
    assert!(weighed(&json!({"pattern": "^(?!x).*$"})).unwrap().backtracks());
    assert!(!weighed(&json!({"pattern": "(a+)+$"})).unwrap().backtracks());
}
