//! The bodies of `wire` as JSON Schemas, which follow from the types. Written here are examples, in
//! `examples.json`, and the two bodies that have no type. Tests hold every example against its
//! schema and its type.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use wire::conversations::{ThreadDelta, ThreadRestart, ToolResult};
use wire::rest::{Ask, FeedEvent, FeedSnapshot, StreamEnd};

/// Where the document keeps them.
const PLACE: &str = "/components/schemas";

/// By the name of the schema.
pub const EXAMPLES: &str = include_str!("examples.json");

/// Adds the schema of a body to the generator's, and gives the reference to it.
pub type Shape = fn(&mut SchemaGenerator) -> Schema;

/// The data inside of streams: no operation names them.
const STREAMED: &[Shape] = &[
    of::<StreamEnd>, of::<FeedSnapshot>, of::<FeedEvent>, of::<ThreadDelta>, of::<ThreadRestart>,
    of::<ToolResult>,
];

/// The shape of a type.
pub fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A case that is done. Its id stands beside these, under the name that the pipeline gives it.
pub fn case_answer(generator: &mut SchemaGenerator) -> Schema {
    let schema = json!({
        "type": "object",
        "description": "The outcome of a case; the agent's answers have the case's id too, under \
                        the name of `caseIdField`.",
        "properties": {
            "status": {"type": "string", "enum": ["ok", "error"]},
            "path": {"type": "string", "enum": ["deterministic", "agent"]},
            "resultEvent": {"description": "The event that a handler published."},
            "result": {"description": "The result of the last tool, or a plan's answer."},
            "reason": {"type": "string", "description": "The limit that stopped the agent."}
        }
    });
    named(generator, "CaseAnswer", schema)
}

/// A case that waits for a person.
pub fn pending_case(generator: &mut SchemaGenerator) -> Schema {
    let schema = json!({
        "type": "object",
        "description": "A case that waits for a user's answer, with its id under the name of \
                        `caseIdField`.",
        "required": ["status", "path"],
        "properties": {
            "status": {"const": "pending"},
            "path": {"type": "string", "enum": ["deterministic", "agent"]},
            "ask": of::<Ask>(generator)
        }
    });
    named(generator, "PendingCase", schema)
}

fn named(generator: &mut SchemaGenerator, name: &str, schema: Value) -> Schema {
    generator.definitions_mut().insert(name.to_owned(), schema);
    Schema::new_ref(format!("#{PLACE}/{name}"))
}

/// Gathers the schemas of the bodies that operations take and answer.
pub(super) struct Shapes {
    taken: SchemaGenerator,
    answered: SchemaGenerator,
}

impl Default for Shapes {
    fn default() -> Self {
        let mut settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(plain));
        settings.meta_schema = None;
        settings.definitions_path = PLACE.into();
        let answered = settings.clone().for_serialize().into_generator();
        Self { taken: settings.into_generator(), answered }
    }
}

impl Shapes {
    /// A body that is taken: what has a default may be left out.
    pub(super) fn taken(&mut self, shape: Shape) -> Value {
        shape(&mut self.taken).to_value()
    }

    /// A body that is answered: what is always written is always there.
    pub(super) fn answered(&mut self, shape: Shape) -> Value {
        shape(&mut self.answered).to_value()
    }

    /// All of them, by name and with examples. A type that is both is shown as it is taken.
    pub(super) fn into_schemas(mut self) -> Map<String, Value> {
        for shape in STREAMED {
            self.answered(*shape);
        }
        let mut schemas = self.answered.take_definitions(true);
        schemas.extend(self.taken.take_definitions(true));
        let examples: Map<String, Value> = serde_json::from_str(EXAMPLES).unwrap_or_default();
        for (name, examples) in examples {
            if let Some(schema) = schemas.get_mut(&name) {
                schema["examples"] = examples;
            }
        }
        schemas
    }
}

/// Takes out of one schema what is true of Rust alone.
fn plain(schema: &mut Schema) {
    let Some(keywords) = schema.as_object_mut() else { return };
    if keywords.get("additionalProperties") == Some(&Value::Bool(true)) {
        keywords.remove("additionalProperties");
    }
    // The format of a number is the width of its Rust type.
    let is_text = |kind: &Value| kind == "string" || kind[0] == "string";
    if !keywords.get("type").is_some_and(is_text) {
        keywords.remove("format");
    }
    if let Some(Value::String(text)) = keywords.get_mut("description") {
        // The lines of a comment.
        *text = text.replace('\n', " ");
    }
    list_names(keywords);
    let required = keywords.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = keywords.get_mut("properties") {
        for (name, property) in properties {
            let Some(property) = property.as_object_mut() else { continue };
            if required.iter().any(|needed| needed == name.as_str()) {
                property.remove("default");
            } else {
                refuse_null(property);
            }
        }
    }
}

/// Makes one list of the names of an enum, whose variants come with a description each.
fn list_names(keywords: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = keywords.get("oneOf") else { return };
    let names = variants.iter().map(|variant| variant.get("const").cloned());
    let Some(names) = names.collect::<Option<Vec<Value>>>() else { return };
    keywords.remove("oneOf");
    keywords.insert("type".to_owned(), json!("string"));
    keywords.insert("enum".to_owned(), Value::Array(names));
}

/// Makes the schema of a property that may be left out refuse null: one way to say nothing is
/// enough.
fn refuse_null(property: &mut Map<String, Value>) {
    if let Some(kinds) = property.get_mut("type")
        && let Some([kind, null]) = kinds.as_array().map(Vec::as_slice)
        && null == "null"
    {
        *kinds = kind.clone();
    }
    if let Some(Value::Array(variants)) = property.get("anyOf")
        && let [Value::Object(only), null] = variants.as_slice()
        && null["type"] == "null"
    {
        let only = only.clone();
        property.remove("anyOf");
        for (key, value) in only {
            property.entry(key).or_insert(value);
        }
    }
}
