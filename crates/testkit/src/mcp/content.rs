//! Tools that answer at once: each kind of content, values with a schema, an error, and two input
//! schemas that must reach the client as they are.

use super::fixture::{Fixture, blocks, content, taking, text, value};
use super::samples::{PNG, WAV};
use kernel::contracts::Tool;
use kernel::tool::call::{Call, ToolError, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::sync::Arc;

/// All of them.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        answering(
            content("test_simple_text", "Answers a text."),
            json!([{"type": "text", "text": "This is a simple text response for testing."}]),
        ),
        answering(content("test_image_content", "Answers a picture."), json!([image()])),
        answering(
            content("test_audio_content", "Answers a sound."),
            json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        ),
        answering(
            content("test_embedded_resource", "Answers a resource inside its content."),
            json!([{"type": "resource", "resource": {
                "uri": "test://embedded-resource",
                "mimeType": "text/plain",
                "text": "This is an embedded resource content.",
            }}]),
        ),
        answering(
            content("test_multiple_content_types", "Answers a text, a picture and a resource."),
            json!([
                {"type": "text", "text": "Multiple content types test:"},
                image(),
                {"type": "resource", "resource": {
                    "uri": "test://mixed-content-resource",
                    "mimeType": "application/json",
                    "text": r#"{"test":"data","value":123}"#,
                }},
            ]),
        ),
        Fixture::at_once(content("test_error_handling", "Fails, always."), |_| {
            Err(ToolError::failed(
                "TestError",
                "This tool intentionally returns an error for testing",
            ))
        }),
        structured(),
        bare(),
        json_schema(),
        header_parameter(),
    ]
}

fn answering(spec: ToolSpec, content: Value) -> Arc<dyn Tool> {
    Fixture::at_once(spec, move |_| blocks(content.clone()))
}

fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

/// An object that clients check against its schema.
fn structured() -> Arc<dyn Tool> {
    let spec = value(
        "test_structured_content",
        "Adds two numbers and answers an object.",
        json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}),
    );
    Fixture::at_once(taking(spec, two_numbers()), |call| {
        Ok(ToolOutput::Value(json!({"sum": sum(call)})))
    })
}

/// A value that is no object: the versions before 2026-07-28 have it wrapped.
fn bare() -> Arc<dyn Tool> {
    let spec = value(
        "test_bare_value",
        "Adds two numbers and answers the bare sum.",
        json!({"type": "number"}),
    );
    Fixture::at_once(taking(spec, two_numbers()), |call| Ok(ToolOutput::Value(json!(sum(call)))))
}

fn two_numbers() -> Value {
    let number = json!({"type": "number"});
    json!({"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]})
}

fn sum(call: &Call) -> f64 {
    let number = |name: &str| call.arguments[name].as_f64().unwrap_or_default();
    number("a") + number("b")
}

/// Every keyword of 2020-12 that a server is tempted to drop.
fn json_schema() -> Arc<dyn Tool> {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    });
    let spec = content("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features");
    Fixture::at_once(taking(spec, schema), |call| text(format!("taken: {}", call.arguments)))
}

/// An argument that a modern client repeats in the header `Mcp-Param-Region`.
fn header_parameter() -> Arc<dyn Tool> {
    let schema = json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "note": {"type": "string"},
        },
        "required": ["region"],
    });
    let spec = content("test_header_parameter", "Takes an argument that stands in a header too.");
    Fixture::at_once(taking(spec, schema), |call| {
        text(format!("region: {}", call.arguments["region"].as_str().unwrap_or_default()))
    })
}
