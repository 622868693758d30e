//! What is listed of the tools: clients and the hash that a started call pins know them by it.

use super::House;
use kernel::tool::call::{Reach, ToolSpec};
use serde_json::{Value, json};

const REALM_TEXT: &str =
    "The realm of the call itself, which is the default. Any other one is refused";
const TYPE_OF_MANY: &str =
    "The type of the records, such as `Order`, or with its namespace, `shop.Order`";
const TYPE_OF_ONE: &str =
    "The type of the record, such as `Order`, or with its namespace, `shop.Order`";

#[test]
fn the_tools_are_listed_with_what_they_do() {
    let tools = House::new().tools();
    let listed: Vec<(&str, Reach, bool)> = tools
        .iter()
        .map(|tool| {
            let ToolSpec { name, reach, idempotent, tags, unrecorded, .. } = &**tool.spec();
            assert_eq!(*tags, ["query"], "{name}");
            assert!(*unrecorded, "{name}");
            (name.as_str(), *reach, *idempotent)
        })
        .collect();
    assert_eq!(
        listed,
        [
            ("query_rootTypes", Reach::Reads, true),
            ("query_plan", Reach::Reads, true),
            ("query_find", Reach::Reads, true),
            ("query_count", Reach::Reads, true),
            ("query_save", Reach::Writes, true),
            ("query_delete", Reach::Writes, true),
            ("query_deleteMany", Reach::Writes, true),
        ]
    );
}

#[test]
fn every_argument_is_described() {
    for tool in House::new().tools() {
        let spec = tool.spec();
        let properties = spec.input_schema["properties"].as_object().unwrap();
        for (name, property) in properties {
            let description = property["description"].as_str().unwrap_or_default();
            assert!(!description.is_empty(), "`{name}` of `{}`", spec.name);
            assert!(!description.contains('\n'), "`{name}` of `{}`", spec.name);
        }
        assert_eq!(spec.input_schema["additionalProperties"], json!(false), "{}", spec.name);
    }
}

#[test]
fn every_schema_is_listed_as_written_here() {
    for tool in House::new().tools() {
        let spec = tool.spec();
        let (input, output) = schemas(spec.name.as_str());
        assert_eq!(*spec.input_schema, input, "{}", spec.name);
        assert_eq!(spec.output_schema.as_deref(), Some(&output), "{}", spec.name);
    }
}

/// The schemas of a tool's arguments and of its answer.
fn schemas(name: &str) -> (Value, Value) {
    match name {
        "query_rootTypes" => root_types(),
        "query_plan" => plan(),
        "query_find" => (find_arguments(), found()),
        "query_count" => count(),
        "query_save" => save(),
        "query_delete" => delete(),
        "query_deleteMany" => delete_many(),
        other => panic!("no schema of `{other}` is written here"),
    }
}

fn text() -> Value {
    json!({"type": "string"})
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn number() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = json!(description);
    schema
}

fn described_text(description: &str) -> Value {
    described(text(), description)
}

fn described_number(description: &str) -> Value {
    described(number(), description)
}

fn switch(default: bool, description: &str) -> Value {
    json!({"type": "boolean", "default": default, "description": description})
}

fn arguments(properties: Value, required: Value) -> Value {
    let mut schema =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    schema["properties"]["realm"] = described_text(REALM_TEXT);
    if required != json!([]) {
        schema["required"] = required;
    }
    schema
}

fn answer(properties: Value, required: Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn root_types() -> (Value, Value) {
    let root_type = answer(
        json!({"className": text(), "simpleName": text(), "collectionName": text()}),
        json!(["className", "simpleName", "collectionName"]),
    );
    let output = answer(
        json!({"rootTypes": {"type": "array", "items": root_type}, "count": number()}),
        json!(["rootTypes", "count"]),
    );
    (arguments(json!({}), json!([])), output)
}

fn plan() -> (Value, Value) {
    let input = arguments(
        json!({
            "rootType": described_text(TYPE_OF_MANY),
            "query": described_text("The query, such as `status:open && expand(customer)`. \
                Default: every record. At most 16 KiB"),
            "explain": switch(false, "Whether to tell what is asked of the database, and which \
                indexes it uses: for administrators"),
        }),
        json!(["rootType"]),
    );
    let explained = answer(
        json!({"statements": texts(), "indexes": texts()}),
        json!(["statements", "indexes"]),
    );
    let output = answer(
        json!({"mode": {"enum": ["FILTER", "AGGREGATION"]}, "expandPaths": texts(),
            "explain": explained}),
        json!(["mode", "expandPaths"]),
    );
    (input, output)
}

fn find_arguments() -> Value {
    let page = json!({
        "type": "object",
        "properties": {
            "limit": described_number("As `limit` beside it"),
            "skip": described_number("As `skip` beside it"),
        },
        "additionalProperties": false,
        "description": "`limit` and `skip`, instead of these arguments beside it",
    });
    let sort = json!({
        "type": ["array", "string"],
        "items": {
            "type": "object",
            "properties": {
                "field": text(),
                "dir": {"enum": ["ASC", "DESC"], "default": "ASC"},
            },
            "required": ["field"],
            "additionalProperties": false,
        },
        "description": "The order: a list of fields, or a text such as `-total,refName`. Default: \
            by id, ascending. At most 16 fields",
    });
    arguments(
        json!({
            "rootType": described_text(TYPE_OF_MANY),
            "query": described_text("Which records, such as `status:open && total:>#100`. \
                Default: every record. At most 16 KiB"),
            "page": page,
            "limit": described_number("How many rows at most. Default: 50. Maximum: \
                `find_rows_max` of the server, which is 1,000 unless it is set, or \
                `max_find_limit` of the realm; `limited` says where it was cut"),
            "skip": described_number("How many rows are skipped first. Default: 0. Maximum: \
                `find_skip_max` of the server, which is 100,000 unless it is set. `cursor` has no \
                maximum"),
            "cursor": described_text("`nextCursor` of the page before, with the same query and \
                sort. Default: the first page"),
            "sort": sort,
            "total": switch(true, "Whether to count all rows. Without that, `totalCount` is null"),
        }),
        json!(["rootType"]),
    )
}

fn found() -> Value {
    let direction = json!({"enum": ["ASC", "DESC"]});
    let sorted_by = answer(json!({"field": text(), "dir": direction}), json!(["field", "dir"]));
    let limited = answer(json!({"limit": text(), "reason": text()}), json!(["limit", "reason"]));
    answer(
        json!({
            "offset": described_number("How many rows were skipped"),
            "limit": described_number("How many rows the page could have"),
            "asOf": text(),
            "sortDirection": {"enum": ["ASC", "DESC", null],
                "description": "Of the first field that is sorted by"},
            "sortFields": {"type": "array", "items": sorted_by},
            "rows": {"type": "array", "items": {"type": "object"}},
            "rowCount": number(),
            "totalCount": {"type": ["integer", "null"], "minimum": 0,
                "description": "Of all pages"},
            "filter": {"type": ["string", "null"], "description": "The query"},
            "realm": text(),
            "actionList": described(texts(), "Always empty"),
            "nextCursor": described_text("Leads to the next page, if there is one"),
            "limited": described(limited,
                "The limit that made the page shorter than what was asked for"),
        }),
        json!([
            "offset", "limit", "asOf", "sortDirection", "sortFields", "rows", "rowCount",
            "totalCount", "filter", "realm", "actionList"
        ]),
    )
}

fn count() -> (Value, Value) {
    let measure = json!({
        "type": "object",
        "properties": {
            "function": {"enum": ["count", "sum", "avg", "min", "max"]},
            "field": text(),
            "as": text(),
        },
        "required": ["function"],
        "additionalProperties": false,
    });
    let input = arguments(
        json!({
            "rootType": described_text(TYPE_OF_MANY),
            "query": described_text("Which records, such as `status:open && total:>#100`, without \
                `expand(..)`. Default: every record. At most 16 KiB"),
            "groupBy": {"type": ["array", "string"], "items": text(),
                "description": "The fields whose values make groups: a list, or a text such as \
                    `status,city`. Default: all records are one group. At most 16 fields, and \
                    `groups_max` groups, 1,000 unless it is set"},
            "aggregate": {"type": ["array", "string"], "items": measure,
                "description": "What to compute for each group: a list, or a text such as \
                    `count,sum(total)`. Without a field, `count` counts records. `as` is the name \
                    in the answer. Default: `count`. At most 16"},
        }),
        json!(["rootType"]),
    );
    let output = answer(
        json!({
            "count": number(), "rootType": text(), "query": {"type": ["string", "null"]},
            "groups": {"type": "array", "items": {"type": "object"},
                "description": "One object for each group: the values that it is grouped by, and \
                    what was computed"},
        }),
        json!(["count", "rootType", "query"]),
    );
    (input, output)
}

fn save() -> (Value, Value) {
    let entity = json!({
        "type": ["object", "string"],
        "description": "The record: an object, or the JSON text of one. With an `id` it replaces \
            the record of that id; with a `version`, only if the record has that version. At most \
            `record_bytes_max` of the server, which is 1 MiB unless it is set",
    });
    let input = arguments(
        json!({
            "rootType": described_text(TYPE_OF_ONE),
            "entity": entity,
            "merge": switch(false, "Whether `entity` is a part of a record that is there, named \
                by `id` or `refName`: what it does not name stays, and null removes a field"),
            "insert": switch(false, "Whether to refuse if there is a record of this id"),
        }),
        json!(["rootType", "entity"]),
    );
    let entity = json!({"type": "object",
        "description": "As it is stored, without fields that the caller may not see"});
    let output = answer(
        json!({"id": text(), "rootType": text(), "entity": entity, "version": number(),
            "isNew": {"type": "boolean"}}),
        json!(["id", "rootType", "entity", "version", "isNew"]),
    );
    (input, output)
}

fn delete() -> (Value, Value) {
    let input = arguments(
        json!({
            "rootType": described_text(TYPE_OF_ONE),
            "id": described_text("The record's id: 24 hexadecimal digits or a UUID"),
            "_id": described_text("The same, instead of `id`"),
            "version": described_number("The version that the record must have. Default: any"),
        }),
        json!(["rootType"]),
    );
    let output = answer(
        json!({"success": {"type": "boolean"}, "id": text(), "rootType": text(),
            "deletedCount": number()}),
        json!(["success", "id", "rootType", "deletedCount"]),
    );
    (input, output)
}

fn delete_many() -> (Value, Value) {
    let input = arguments(
        json!({
            "rootType": described_text(TYPE_OF_MANY),
            "query": described_text("Which records, such as `status:closed`, without \
                `expand(..)`. There is no default: without a condition the call is refused, unless \
                `all` is true. At most 16 KiB"),
            "all": switch(false, "Whether a call without a query deletes every record of the type"),
            "dryRun": switch(false, "Whether to check and count only: nothing is deleted"),
            "expect": described_number("How many records must match; else none is deleted. \
                Default: any number up to `delete_many_max` of the server, which is 2,000 unless \
                it is set"),
        }),
        json!(["rootType"]),
    );
    let output = answer(
        json!({
            "success": {"type": "boolean"}, "query": {"type": ["string", "null"]},
            "rootType": text(),
            "deletedCount": described_number("In a dry run, how many would be"),
            "dryRun": {"type": "boolean"},
        }),
        json!(["success", "query", "rootType", "deletedCount"]),
    );
    (input, output)
}
