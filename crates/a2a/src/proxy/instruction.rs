//! Instructions: which tool of which server is called with what.

use serde_json::{Map, Value, json};
use wire::a2a::message::{Message, Part};

/// The id of the skill.
pub(crate) const SKILL: &str = "mcp.execute_tool";

const TARGET: &str = "target_mcp_server_id";
const TOOL: &str = "tool_name";
pub(super) const ARGUMENTS: &str = "arguments";

/// What the skill takes.
pub(crate) fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            TARGET: {"type": "string", "description":
                "The name of the server; without it the tool's name leads to its server"},
            TOOL: {"type": "string", "description": "The tool, as the server names it"},
            ARGUMENTS: {"type": "object", "description": "The arguments of the tool"},
        },
        "required": [TOOL, ARGUMENTS],
    })
}

/// What it gives.
pub(crate) fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "success": {"type": "boolean"},
            "mcp_result": {"type": "object", "description": "The result of the tool"},
            "error": {
                "type": "object",
                "properties": {
                    "source": {"enum": ["A2A_PROXY", "MCP_PROTOCOL", "MCP_TOOL"]},
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                    "details": {"type": "object"},
                },
                "required": ["source", "code", "message"],
            },
        },
        "required": ["success"],
    })
}

/// The instruction in a message: an object that names a server or a tool, as a value or as JSON in
/// a text. Other parts are there for people.
pub(crate) fn instruction(message: &Message) -> Option<Value> {
    let values = message.parts.iter().filter_map(Part::as_data).cloned();
    let texts = message.parts.iter().filter_map(Part::as_text);
    let read = texts.filter(|text| text.trim_start().starts_with('{'));
    let read = read.filter_map(|text| serde_json::from_str(text.trim()).ok());
    let is_meant = |value: &Value| value.get(TARGET).is_some() || value.get(TOOL).is_some();
    values.chain(read).find(is_meant)
}

/// An instruction that can be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProxyInstruction {
    /// Empty where the instruction names none.
    pub(super) server: String,
    pub(super) tool: String,
}

/// Reads an instruction; all that is wrong with it, with pointers.
pub(super) fn read(instruction: &Value) -> Result<ProxyInstruction, Vec<Value>> {
    let mut errors = Vec::new();
    let mut text = |key: &str| match instruction.get(key).and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => text.to_owned(),
        Some(_) | None => {
            errors.push(wrong(key, "a text that is not empty is required"));
            String::new()
        }
    };
    let is_named = instruction.get(TARGET).is_some_and(|target| !target.is_null());
    let server = if is_named { text(TARGET) } else { String::new() };
    let tool = text(TOOL);
    if !instruction.get(ARGUMENTS).is_some_and(Value::is_object) {
        errors.push(wrong(ARGUMENTS, "an object is required"));
    }
    if errors.is_empty() { Ok(ProxyInstruction { server, tool }) } else { Err(errors) }
}

fn wrong(key: &str, detail: &str) -> Value {
    json!({"pointer": format!("/{key}"), "detail": detail})
}

/// What is recorded of an instruction that a message does not have: an empty one.
pub(super) fn nothing() -> Value {
    Value::Object(Map::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Value {
        json!({TARGET: "files", TOOL: "files.read", ARGUMENTS: {"path": "a"}})
    }

    fn said(parts: Vec<Part>) -> Message {
        Message { parts, ..Message::default() }
    }

    #[test]
    fn an_instruction_is_a_value_or_json_in_a_text_and_nothing_else() {
        let context = Part::text("please read it");
        let value = said(vec![context.clone(), Part::data(whole())]);
        assert_eq!(instruction(&value), Some(whole()));
        let text = said(vec![context.clone(), Part::text(format!(" {} ", whole()))]);
        assert_eq!(instruction(&text), Some(whole()));
        assert_eq!(instruction(&said(vec![Part::data(json!({TOOL: 7}))])), Some(json!({TOOL: 7})));
        for other in [context, Part::text("{nope"), Part::data(json!({"path": "a"}))] {
            assert_eq!(instruction(&said(vec![other.clone()])), None, "{other:?}");
        }
    }

    #[test]
    fn all_that_is_wrong_is_told_with_its_place() {
        assert_eq!(read(&whole()).unwrap().tool, "files.read");
        let unnamed = read(&json!({TOOL: "read", ARGUMENTS: {}})).unwrap();
        assert_eq!((unnamed.server.as_str(), unnamed.tool.as_str()), ("", "read"));
        for (instruction, places) in [
            (json!({}), vec!["/tool_name", "/arguments"]),
            (json!({TARGET: " ", TOOL: "b", ARGUMENTS: {}}), vec!["/target_mcp_server_id"]),
            (json!({TARGET: "a", TOOL: " ", ARGUMENTS: {}}), vec!["/tool_name"]),
            (json!({TARGET: "a", TOOL: "b", ARGUMENTS: [1]}), vec!["/arguments"]),
            (json!({TARGET: 1, TOOL: "b", ARGUMENTS: {}}), vec!["/target_mcp_server_id"]),
        ] {
            let errors = read(&instruction).unwrap_err();
            let told: Vec<&str> =
                errors.iter().map(|error| error["pointer"].as_str().unwrap()).collect();
            assert_eq!(told, places, "{instruction}");
        }
    }
}
