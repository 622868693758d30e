//! JSON Schemas: few bytes with many ways through them, recursion at one place, patterns, and
//! references that lead elsewhere.

use super::{Case, Kind, nested, numbered};
use serde_json::{Value, json};

const fn schema(name: &'static str, build: fn() -> Vec<u8>) -> Case {
    Case { name, kind: Kind::Schema, build }
}

pub(super) const CASES: &[Case] = &[
    schema("any-of-tower", || tower(40, |next| json!({"anyOf": [next, next]}))),
    schema("all-of-tower", || tower(40, |next| json!({"allOf": [next, next]}))),
    schema("one-of-tower", || tower(40, |next| json!({"oneOf": [next, next]}))),
    schema("not-tower", || tower(40, |next| json!({"not": {"anyOf": [next, next]}}))),
    schema("if-tower", || tower(40, |next| json!({"if": next, "then": next, "else": next}))),
    schema("properties-tower", || {
        tower(40, |next| json!({"properties": {"a": next, "b": next}, "required": ["a", "b"]}))
    }),
    schema("items-tower", || tower(40, |next| json!({"prefixItems": [next, next]}))),
    schema("contains-tower", || {
        tower(40, |next| json!({"contains": next, "items": next, "unevaluatedItems": next}))
    }),
    schema("unevaluated-tower", || {
        tower(40, |next| json!({"anyOf": [next, next], "unevaluatedProperties": next}))
    }),
    schema("dependent-tower", || {
        tower(40, |next| json!({"allOf": [next], "dependentSchemas": {"a": next, "b": next}}))
    }),
    schema("any-of-inline", || inline(10, "anyOf")),
    schema("one-of-inline", || inline(10, "oneOf")),
    schema("wide-any-of", || {
        let ways = numbered(20_000, |at| format!("{{\"const\":{at}}},"));
        format!("{{\"anyOf\":[{ways}{{}}]}}").into()
    }),
    schema("itself", || br##"{"$ref":"#"}"##.to_vec()),
    schema("itself-twice", || br##"{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}"##.to_vec()),
    schema("each-other", || {
        br##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##
            .to_vec()
    }),
    schema("itself-by-anchor", || {
        br##"{"$dynamicAnchor":"a","allOf":[{"$dynamicRef":"#a"},{"$dynamicRef":"#a"}]}"##.to_vec()
    }),
    schema("trees-twice", || {
        br##"{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}"##
            .to_vec()
    }),
    schema("nots-60", || nested(60, "{\"not\":", "{}", "}").into()),
    schema("nots-100000", || nested(100_000, "{\"not\":", "{}", "}").into()),
    schema("all-ofs-20000", || nested(20_000, "{\"allOf\":[", "{}", "]}").into()),
    schema("huge-enum", || {
        let values = numbered(50_000, |at| format!("\"v{at}\","));
        format!("{{\"enum\":[{values}null]}}").into()
    }),
    schema("huge-properties", || {
        let members = numbered(20_000, |at| format!("\"p{at}\":{{\"type\":\"string\"}},"));
        format!("{{\"properties\":{{{members}\"p\":true}}}}").into()
    }),
    schema("huge-required", || {
        let names = numbered(50_000, |at| format!("\"r{at}\","));
        format!("{{\"required\":[{names}\"r\"]}}").into()
    }),
    schema("pattern-that-backtracks", || br#"{"pattern":"(a+)+$"}"#.to_vec()),
    schema("pattern-that-looks-around", || br#"{"pattern":"^(?=a)((a+)+)\\2$"}"#.to_vec()),
    schema("pattern-that-multiplies", || {
        br#"{"pattern":"((((a{999}){999}){999}){999}){999}"}"#.to_vec()
    }),
    schema("pattern-of-classes", || {
        format!("{{\"pattern\":\"{}\"}}", "[\\\\p{L}\\\\p{N}]{1,999}".repeat(40)).into()
    }),
    schema("pattern-of-groups", || {
        format!("{{\"pattern\":\"{}\"}}", nested(4_000, "(", "a", ")*")).into()
    }),
    schema("many-patterns", || {
        let patterns = numbered(3_000, |at| format!("\"^(a|b{at})+\\\\w{{1,60}}$\":{{}},"));
        format!("{{\"patternProperties\":{{{patterns}\"x\":{{}}}}}}").into()
    }),
    schema("remote", || br#"{"$ref":"http://127.0.0.1:9/schema.json"}"#.to_vec()),
    schema("remote-file", || br#"{"items":{"$ref":"file:///schema.json"}}"#.to_vec()),
    schema("remote-neighbour", || br#"{"$ref":"other.json#/$defs/a"}"#.to_vec()),
    schema("metaschema", || br#"{"$ref":"https://json-schema.org/draft/2020-12/schema"}"#.to_vec()),
    schema("unknown-draft", || br#"{"$schema":"http://127.0.0.1:9/draft"}"#.to_vec()),
    schema("many-ids", || {
        let parts = numbered(5_000, |at| format!("\"d{at}\":{{\"$id\":\"http://a.test/{at}\"}},"));
        format!("{{\"$defs\":{{{parts}\"d\":{{}}}}}}").into()
    }),
    schema("many-anchors", || {
        let parts = numbered(5_000, |at| format!("\"d{at}\":{{\"$anchor\":\"same\"}},"));
        format!("{{\"$defs\":{{{parts}\"d\":{{}}}},\"$ref\":\"#same\"}}").into()
    }),
    schema("pointer-of-escapes", || {
        format!("{{\"$ref\":\"#/{}\"}}", "~0~1%25/".repeat(5_000)).into()
    }),
    schema("numbers-at-their-edges", || {
        br#"{"minLength":1e400,"multipleOf":1e-308,"maximum":123456789012345678901234567890}"#
            .to_vec()
    }),
    schema("negative-counts", || br#"{"minItems":-1,"maxContains":-1,"contains":{}}"#.to_vec()),
    schema("unique-items", || br#"{"uniqueItems":true,"items":{"uniqueItems":true}}"#.to_vec()),
    schema("no-type", || br#"{"type":"nonsense"}"#.to_vec()),
    schema("a-number", || b"7".to_vec()),
    schema("a-list", || b"[]".to_vec()),
    schema("a-text", || br#""{}""#.to_vec()),
    schema("members-of-wrong-types", || {
        br#"{"properties":7,"items":"x","anyOf":{},"required":"a","enum":{},"pattern":[]}"#.to_vec()
    }),
];

/// Levels that refer to the next one.
fn tower(levels: usize, level: fn(Value) -> Value) -> Vec<u8> {
    let mut all = json!({format!("l{levels}"): {"type": "string"}});
    for at in 0..levels {
        all[format!("l{at}")] = level(json!({"$ref": format!("#/$defs/l{}", at + 1)}));
    }
    json!({"$ref": "#/$defs/l0", "$defs": all}).to_string().into()
}

/// Levels of which each holds the next one twice.
fn inline(levels: usize, word: &str) -> Vec<u8> {
    let twice = |inner: String, _| format!("{{\"{word}\":[{inner},{inner}]}}");
    (0..levels).fold("{\"type\":\"string\"}".to_owned(), twice).into()
}
