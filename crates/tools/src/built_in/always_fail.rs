//! `test::always_fail`: fails, so that one can see what a failed step looks like.

use crate::typed::TypedTool;
use kernel::tool::call::{Call, Caller, Reach, ToolError};
use serde_json::{Map, Value};

/// The tool.
pub(super) struct AlwaysFail;

impl TypedTool for AlwaysFail {
    type Args = Map<String, Value>;
    type Out = Value;
    const NAME: &'static str = "test::always_fail";
    const TITLE: &'static str = "Always fail";
    const DESCRIPTION: &'static str =
        "Fails, whatever it is given. For trying out what happens then.";
    const REACH: Reach = Reach::Reads;

    async fn call(
        &self,
        _caller: &Caller,
        _args: Map<String, Value>,
        _call: &Call,
    ) -> Result<Value, ToolError> {
        Err(ToolError::failed("AlwaysFails", "`test::always_fail` fails by design")
            .hint("skip the step, or abort the run"))
    }
}
