//! `validate::is_positive`: whether a number is greater than zero.

use crate::typed::TypedTool;
use kernel::tool::call::{Call, Caller, Reach, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Number;

/// The tool.
pub(super) struct IsPositive;

/// What it looks at.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Subject {
    num: Number,
}

impl TypedTool for IsPositive {
    type Args = Subject;
    type Out = bool;
    const NAME: &'static str = "validate::is_positive";
    const TITLE: &'static str = "Is positive";
    const DESCRIPTION: &'static str = "Whether a number is greater than zero.";
    const REACH: Reach = Reach::Reads;

    async fn call(
        &self,
        _caller: &Caller,
        Subject { num }: Subject,
        _call: &Call,
    ) -> Result<bool, ToolError> {
        Ok(num.as_f64().is_some_and(|num| num > 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_calls::{answer, call_of};
    use kernel::tool::call::CallProgress;
    use serde_json::{Value, json};

    fn is_positive(arguments: Value) -> Result<Value, ToolError> {
        answer(IsPositive, &call_of("validate::is_positive", arguments))
    }

    #[test]
    fn zero_is_not_positive() {
        for (number, expected) in [
            (json!(1), true),
            (json!(0.001), true),
            (json!(u64::MAX), true),
            (json!(0), false),
            (json!(-0.0), false),
            (json!(-7), false),
        ] {
            assert_eq!(is_positive(json!({"num": number})), Ok(json!(expected)), "{number}");
        }
    }

    #[test]
    fn what_is_not_a_number_is_an_error() {
        for arguments in [json!({"num": "1"}), json!({"num": null}), json!({})] {
            let error = is_positive(arguments).unwrap_err();
            assert_eq!(error.how, CallProgress::NotSent);
            assert_eq!(error.fault.name, "InputValidationError");
        }
    }
}
