//! `math::add`: the sum of two numbers, as a bare number.

use crate::arguments::number;
use futures::future::BoxFuture;
use kernel::call::{Call, Caller, Pace, Reach, ToolError, ToolOutput, ToolSpec, Yields};
use kernel::contracts::Tool;
use serde_json::{Number, Value, json};
use std::sync::Arc;

/// The tool.
pub(crate) struct Add {
    spec: Arc<ToolSpec>,
}

impl Add {
    /// The tool.
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "math::add".into(),
            title: "Add".to_owned(),
            description: "Adds two numbers. Integers stay integers.".to_owned(),
            input_schema: Arc::new(json!({
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
                "additionalProperties": false
            })),
            output_schema: Some(Arc::new(json!({"type": "number"}))),
            reach: Reach::Reads,
            idempotent: true,
            tags: vec!["math".to_owned()],
            pace: Pace::Quick,
            yields: Yields::Value,
            unrecorded: false,
            listed: None,
        };
        Self { spec: Arc::new(spec) }
    }
}

impl Tool for Add {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let output = add(&call.arguments).map(ToolOutput::Value);
        Box::pin(std::future::ready(output))
    }
}

fn add(arguments: &Value) -> Result<Value, ToolError> {
    let (a, b) = (number(arguments, "a")?, number(arguments, "b")?);
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64())
        && let Some(sum) = a.checked_add(b)
    {
        return Ok(Value::from(sum));
    }
    let sum = a.as_f64().zip(b.as_f64()).map(|(a, b)| a + b);
    match sum.and_then(Number::from_f64) {
        Some(sum) => Ok(Value::Number(sum)),
        None => Err(ToolError::failed(
            "NotFinite",
            format!("the sum of `{a}` and `{b}` is too large for a number"),
        )
        .hint("use smaller numbers")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::call::HowFar;

    #[test]
    fn integers_stay_integers_until_they_overflow() {
        assert_eq!(add(&json!({"a": 2, "b": 3})), Ok(json!(5)));
        assert_eq!(add(&json!({"a": -2, "b": 2})), Ok(json!(0)));
        assert_eq!(add(&json!({"a": 2, "b": 0.5})), Ok(json!(2.5)));
        let over = add(&json!({"a": i64::MAX, "b": 1})).unwrap();
        assert!(over.is_f64());
        assert_eq!(over, json!(9_223_372_036_854_775_808.0));
    }

    #[test]
    fn a_sum_that_is_no_number_is_an_error() {
        let error = add(&json!({"a": f64::MAX, "b": f64::MAX})).unwrap_err();
        assert_eq!((error.how, error.fault.name.as_str()), (HowFar::Failed, "NotFinite"));
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        let error = add(&json!({"a": "2", "b": 3})).unwrap_err();
        assert_eq!(error.how, HowFar::NotSent);
        assert_eq!(error.fault.message, "`a` must be a number, not a string");
        let error = add(&json!({"a": 2})).unwrap_err();
        assert_eq!(error.fault.message, "`b` is missing");
    }
}
