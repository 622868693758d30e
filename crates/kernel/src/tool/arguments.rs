//! Deserialises arguments. The gate has validated them against the schema already; what still does
//! not fit is reported the same way, because a tool must not depend on who calls it.

use crate::tool::call::ToolError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How much of a decoder's message an error repeats: it can quote a value of any length.
const MESSAGE_CHARS_MAX: usize = 300;

/// The arguments as the type that a tool takes.
pub fn read<A: DeserializeOwned>(arguments: &Value) -> Result<A, ToolError> {
    <A as Deserialize>::deserialize(arguments).map_err(|error| {
        let why: String = error.to_string().chars().take(MESSAGE_CHARS_MAX).collect();
        misfit(format!("the arguments do not fit: {why}"))
    })
}

/// An error about arguments: nothing was done.
pub fn misfit(message: impl Into<String>) -> ToolError {
    ToolError::not_sent("InputValidationError", message)
}

/// The JSON type of a value, for messages.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
