//! Schemas as documents have them, and what is written of them.

use super::*;

const NODES_MAX: usize = 200;
const PARTS_MAX: usize = 10_000;

fn document(version: &str, schemas: Value) -> OpenApi {
    let document = json!({"openapi": version, "components": {"schemas": schemas}});
    OpenApi::parse(document.to_string()).unwrap()
}

fn read(version: &str, schemas: Value, schema: Value) -> Result<(Value, Value), String> {
    let document = document(version, schemas);
    let mut known = ReferenceState::new(PARTS_MAX);
    let (written, defs) =
        translate(&document, &mut known, NODES_MAX, |draft| draft.schema(&schema))?;
    Ok((written, Value::Object(defs)))
}

fn to(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

#[test]
fn openapi_3_0_schemas_are_translated() {
    for (old, new) in [
        (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
        (
            json!({"type": "string", "enum": ["a"], "nullable": true}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
        ),
        (json!({"type": "string", "nullable": false}), json!({"type": "string"})),
        (
            json!({"allOf": [{"type": "string"}], "nullable": true}),
            json!({"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]}),
        ),
        (
            json!({"type": "object", "allOf": [{"required": ["a"]}], "nullable": true}),
            json!({"anyOf": [{"type": "object", "allOf": [{"required": ["a"]}]},
                {"type": "null"}]}),
        ),
        (
            json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 9,
                "exclusiveMaximum": false}),
            json!({"exclusiveMinimum": 1, "maximum": 9}),
        ),
        (json!({"type": "integer", "example": 7}), json!({"type": "integer", "examples": [7]})),
        (
            json!({"discriminator": {"propertyName": "a"}, "xml": {}, "externalDocs": {},
                "x-any": 1, "format": "int32"}),
            json!({"format": "int32"}),
        ),
        (json!({"type": "string", "required": true}), json!({"type": "string"})),
        (
            json!({"properties": {"id": {"type": "string", "readOnly": true},
                "name": {"type": "string"}}, "required": ["id", "name"]}),
            json!({"properties": {"name": {"type": "string"}}, "required": ["name"]}),
        ),
    ] {
        let (written, defs) = read("3.0.3", json!({}), old).unwrap();
        assert_eq!((written, defs), (new, json!({})));
    }
}

#[test]
fn one_of_is_relaxed_to_any_of() {
    let kinds = json!([{"type": "integer"}, {"type": "number"}]);
    for (said, meant) in [
        (json!({"oneOf": kinds}), json!({"anyOf": kinds})),
        (
            json!({"oneOf": kinds, "anyOf": [{"minimum": 0}]}),
            json!({"anyOf": [{"minimum": 0}], "allOf": [{"anyOf": kinds}]}),
        ),
        (
            json!({"oneOf": kinds, "anyOf": [{"minimum": 0}], "allOf": [{"maximum": 9}]}),
            json!({"anyOf": [{"minimum": 0}], "allOf": [{"maximum": 9}, {"anyOf": kinds}]}),
        ),
    ] {
        let (written, _) = read("3.1.0", json!({}), said).unwrap();
        assert_eq!(written, meant);
    }
}

#[test]
fn references_are_inlined() {
    let schemas = json!({"Pet": {"type": "object", "properties": {"tag": to("Tag")}},
        "Tag": {"type": "string", "description": "a tag"}});
    let pet = json!({"type": "object", "properties": {
        "tag": {"type": "string", "description": "a tag"}}});
    assert_eq!(read("3.1.0", schemas.clone(), to("Pet")).unwrap(), (pet, json!({})));
    let beside = json!({"$ref": "#/components/schemas/Tag", "description": "mine",
        "maxLength": 3});
    let (old, _) = read("3.0.0", schemas.clone(), beside.clone()).unwrap();
    assert_eq!(old, json!({"type": "string", "description": "mine"}));
    let (new, _) = read("3.1.0", schemas, beside).unwrap();
    let both = json!({"allOf": [{"type": "string", "description": "a tag"},
        {"description": "mine", "maxLength": 3}]});
    assert_eq!(new, both);
}

#[test]
fn recursive_schemas_are_kept_in_defs() {
    let schemas = json!({"Node": {"type": "object", "properties": {
        "children": {"type": "array", "items": to("Node")}}}});
    let (written, defs) = read("3.1.0", schemas, to("Node")).unwrap();
    assert_eq!(written, json!({"$ref": "#/$defs/Node"}));
    let children = json!({"type": "array", "items": {"$ref": "#/$defs/Node"}});
    let node = json!({"type": "object", "properties": {"children": children}});
    assert_eq!(defs, json!({"Node": node}));
}

#[test]
fn large_schemas_are_shared_in_defs() {
    let mut schemas = Map::from_iter([("L0".to_owned(), json!({"type": "string"}))]);
    for level in 1..12 {
        let below = to(&format!("L{}", level - 1));
        let both = json!({"properties": {"a": below, "b": below}});
        schemas.insert(format!("L{level}"), both);
    }
    let (written, defs) = read("3.1.0", Value::Object(schemas), to("L11")).unwrap();
    assert_eq!(written, json!({"$ref": "#/$defs/L11"}));
    assert_eq!(defs.as_object().unwrap().len(), 12);
    let below = json!({"$ref": "#/$defs/L0"});
    assert_eq!(defs["L1"], json!({"properties": {"a": below, "b": below}}));
    let many: Vec<usize> = (0..=NODES_MAX).collect();
    let told = read("3.1.0", json!({}), json!({"enum": many})).unwrap_err();
    assert_eq!(told, "its schemas have more than 200 parts");
}

#[test]
fn repeated_schemas_count_at_each_use() {
    let long = "x".repeat(100 * PART_BYTES);
    for large in [
        json!({"description": long}),
        json!({"example": {"a": [long]}}),
        json!({"const": {&long: 1}}),
        json!({"properties": {&long: {}}}),
        json!({"default": vec![0; 100]}),
    ] {
        let document = document("3.1.0", json!({"Large": large}));
        let mut known = ReferenceState::new(1_000);
        let written = (0..20)
            .map(|_| translate(&document, &mut known, NODES_MAX, |one| one.schema(&to("Large"))));
        let written: Vec<bool> = written.map(|written| written.is_ok()).collect();
        let count = written.iter().filter(|is_ok| **is_ok).count();
        assert!((1..=10).contains(&count), "{count} times {large}");
        assert_eq!(written.first(), Some(&true), "{large}");
        assert_eq!(written.last(), Some(&false), "{large}");
    }
}

#[test]
fn discarded_attempts_count_as_work() {
    let many: Map<String, Value> = (0..60)
        .map(|number| (format!("S{number}"), json!({"items": to(&format!("S{number}"))})))
        .collect();
    let all: Vec<Value> = many.keys().map(|name| to(name)).collect();
    let document = document("3.1.0", Value::Object(many));
    let mut known = ReferenceState::new(1_000);
    let told =
        translate(&document, &mut known, NODES_MAX, |draft| draft.schema(&json!({"anyOf": all})));
    assert!(told.unwrap_err().contains("the schemas of the document have too many parts"));
}

#[test]
fn required_names_are_unique() {
    for (schema, written) in [
        (json!({"required": ["a", 1, "a"]}), json!({"required": ["a"]})),
        (
            json!({"properties": {"a": true}, "required": ["a", "b", "a"]}),
            json!({"properties": {"a": true}, "required": ["a", "b"]}),
        ),
        (json!({"examples": {"a": 1}, "required": [7]}), json!({})),
    ] {
        assert_eq!(read("3.1.0", json!({}), schema).unwrap().0, written);
    }
}

#[test]
fn untranslatable_schemas_are_reported() {
    let schemas = json!({"Self": to("Self"), "All": {"allOf": [to("Other")]},
        "Other": {"anyOf": [{"not": to("All")}]}});
    for (schema, told) in [
        (to("Self"), "refers to itself"),
        (to("All"), "refers to itself"),
        (to("Nowhere"), "leads nowhere"),
        (json!({"items": {"$ref": "a.yaml"}}), "leads out of the document"),
        (json!({"$dynamicRef": "#a"}), "`$dynamicRef`"),
        (json!({"items": [{"type": "string"}]}), "a schema is an array"),
    ] {
        let error = read("3.1.0", schemas.clone(), schema).unwrap_err();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn definitions_of_the_same_name_are_made_unique() {
    let schemas = json!({"A": {"properties": {"a": {"$ref":
        "#/components/schemas/B/properties/A"}, "b": to("A")}},
        "B": {"properties": {"A": {"items": {"$ref": "#/components/schemas/B/properties/A"}}}}});
    let (written, defs) = read("3.1.0", schemas, to("A")).unwrap();
    assert_eq!(written, json!({"$ref": "#/$defs/A"}));
    assert_eq!(defs["A"]["properties"]["a"], json!({"$ref": "#/$defs/A_2"}));
    assert_eq!(defs["A_2"], json!({"items": {"$ref": "#/$defs/A_2"}}));
}
