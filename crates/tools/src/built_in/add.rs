//! `math::add`: the sum of two numbers, as a bare number.

use crate::typed::TypedTool;
use kernel::tool::call::{Call, Caller, Reach, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Number;

/// The tool.
pub(super) struct Add;

/// What it adds.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Summands {
    a: Number,
    b: Number,
}

impl TypedTool for Add {
    type Args = Summands;
    type Out = Number;
    const NAME: &'static str = "math::add";
    const TITLE: &'static str = "Add";
    const DESCRIPTION: &'static str = "Adds two numbers. Integers stay integers.";
    const REACH: Reach = Reach::Reads;

    async fn call(
        &self,
        _caller: &Caller,
        Summands { a, b }: Summands,
        _call: &Call,
    ) -> Result<Number, ToolError> {
        if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64())
            && let Some(sum) = a.checked_add(b)
        {
            return Ok(sum.into());
        }
        let sum = a.as_f64().zip(b.as_f64()).map(|(a, b)| a + b);
        sum.and_then(Number::from_f64).ok_or_else(|| {
            let message = format!("the sum of `{a}` and `{b}` is too large for a number");
            ToolError::failed("NotFinite", message).hint("use smaller numbers")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_calls::{answer, call_of};
    use kernel::tool::call::CallProgress;
    use serde_json::{Value, json};

    fn add(arguments: Value) -> Result<Value, ToolError> {
        answer(Add, &call_of("math::add", arguments))
    }

    #[test]
    fn integers_stay_integers_until_they_overflow() {
        assert_eq!(add(json!({"a": 2, "b": 3})), Ok(json!(5)));
        assert_eq!(add(json!({"a": -2, "b": 2})), Ok(json!(0)));
        assert_eq!(add(json!({"a": 2, "b": 0.5})), Ok(json!(2.5)));
        let over = add(json!({"a": i64::MAX, "b": 1})).unwrap();
        assert!(over.is_f64());
        assert_eq!(over, json!(9_223_372_036_854_775_808.0));
    }

    #[test]
    fn a_sum_that_is_not_finite_is_an_error() {
        let error = add(json!({"a": f64::MAX, "b": f64::MAX})).unwrap_err();
        assert_eq!((error.how, error.fault.name.as_str()), (CallProgress::Failed, "NotFinite"));
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        for (arguments, why) in [
            (json!({"a": "2", "b": 3}), "invalid type: string \"2\", expected a JSON number"),
            (json!({"a": 2}), "missing field `b`"),
        ] {
            let error = add(arguments).unwrap_err();
            assert_eq!(error.how, CallProgress::NotSent);
            assert_eq!(error.fault.message, format!("the arguments do not fit: {why}"));
        }
    }
}
