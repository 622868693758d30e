//! Makes calls for the tests of tools.

use crate::typed::{TypedTool, typed};
use futures::executor::block_on;
use kernel::tool::call::{
    Abilities, Call, CallBlobs, CallContext, CallReporter, Caller, InputResponses, Publisher,
    ToolError, ToolOutput,
};
use kernel::values::ids::{CallId, RunId, SessionKey, Space};
use serde_json::Value;
use std::sync::Arc;

/// The run of every such call, as a UUID.
pub(crate) const RUN: &str = "01932f4e-5d6c-7aaa-8bbb-0123456789ab";
/// The case that it is about.
pub(crate) const CASE: &str = "T-200";

/// A recorded call in a case.
pub(crate) fn call_of(tool: &str, arguments: Value) -> Call {
    let session = SessionKey::new("default", Space::case(&"trade-failures".into()), CASE);
    Call {
        id: CallId(7),
        tool: tool.into(),
        arguments: Arc::new(arguments),
        timeout_ms: 1_000,
        output_bytes_max: 1_000_000,
        given: Arc::new(InputResponses::default()),
        can: Abilities::RUN,
        teller: CallReporter::default(),
        context: CallContext {
            session: Some(session),
            run: Some(RunId(0x0193_2f4e_5d6c_7aaa_8bbb_0123_4567_89ab)),
            trace: None,
            hops: 0,
            publisher: Publisher::recorded(),
            blobs: CallBlobs::default(),
            acts_as: None,
        },
    }
}

/// The same call where nothing is kept of it.
pub(crate) fn unrecorded(call: Call) -> Call {
    Call { context: CallContext::default(), ..call }
}

pub(crate) fn answer(tool: impl TypedTool, call: &Call) -> Result<Value, ToolError> {
    let caller = Caller::new("default", "local");
    match block_on(typed(tool).call(&caller, call))? {
        ToolOutput::Value(value) => Ok(value),
        other => panic!("{other:?}"),
    }
}
