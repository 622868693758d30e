//! Reading arguments. The gate has checked them against the schema already; what still does not
//! fit is told the same way, for a tool must not depend on who calls it.

use kernel::call::ToolError;
use serde_json::{Number, Value};

/// The argument of this name, which must be a number.
pub(crate) fn number<'a>(arguments: &'a Value, name: &str) -> Result<&'a Number, ToolError> {
    match arguments.get(name) {
        Some(Value::Number(number)) => Ok(number),
        Some(other) => Err(misfit(format!("`{name}` must be a number, not {}", kind(other)))),
        None => Err(misfit(format!("`{name}` is missing"))),
    }
}

/// An error about arguments: nothing was done.
pub(crate) fn misfit(message: impl Into<String>) -> ToolError {
    ToolError::not_sent("InputValidationError", message)
}

/// What a value is, in words.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
