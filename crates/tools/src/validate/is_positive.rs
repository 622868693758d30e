//! `validate::is_positive`: whether a number is greater than zero.

use crate::arguments::number;
use futures::future::BoxFuture;
use kernel::call::{Call, Caller, Pace, Reach, ToolError, ToolOutput, ToolSpec, Yields};
use kernel::contracts::Tool;
use serde_json::{Value, json};
use std::sync::Arc;

/// The tool.
pub(crate) struct IsPositive {
    spec: Arc<ToolSpec>,
}

impl IsPositive {
    /// The tool.
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "validate::is_positive".into(),
            title: "Is positive".to_owned(),
            description: "Whether a number is greater than zero.".to_owned(),
            input_schema: Arc::new(json!({
                "type": "object",
                "properties": {"num": {"type": "number"}},
                "required": ["num"],
                "additionalProperties": false
            })),
            output_schema: Some(Arc::new(json!({"type": "boolean"}))),
            reach: Reach::Reads,
            idempotent: true,
            tags: vec!["validate".to_owned()],
            pace: Pace::Quick,
            yields: Yields::Value,
            unrecorded: false,
            listed: None,
        };
        Self { spec: Arc::new(spec) }
    }
}

impl Tool for IsPositive {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let output = is_positive(&call.arguments);
        let output = output.map(|answer| ToolOutput::Value(Value::Bool(answer)));
        Box::pin(std::future::ready(output))
    }
}

fn is_positive(arguments: &Value) -> Result<bool, ToolError> {
    let number = number(arguments, "num")?;
    Ok(number.as_f64().is_some_and(|number| number > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::call::HowFar;

    #[test]
    fn zero_is_not_positive() {
        for (number, answer) in [
            (json!(1), true),
            (json!(0.001), true),
            (json!(u64::MAX), true),
            (json!(0), false),
            (json!(-0.0), false),
            (json!(-7), false),
        ] {
            assert_eq!(is_positive(&json!({"num": number})), Ok(answer), "{number}");
        }
    }

    #[test]
    fn what_is_not_a_number_is_an_error() {
        for arguments in [json!({"num": "1"}), json!({"num": null}), json!({})] {
            let error = is_positive(&arguments).unwrap_err();
            assert_eq!(error.how, HowFar::NotSent);
            assert_eq!(error.fault.name, "InputValidationError");
        }
    }
}
