//! What a body says of the run that it starts, and where that is.

use crate::problem::{Failure, Result};
use axum::http::HeaderValue;
use engine::RunTarget;
use kernel::values::ids::{PlanId, RunId};
use serde_json::{Map, Value};

/// What a run executes: exactly one of the two.
pub fn target(plan: Option<Value>, id: Option<String>) -> Result<RunTarget> {
    match (plan, id) {
        (Some(plan), None) => Ok(RunTarget::Inline(plan)),
        (None, Some(id)) => Ok(RunTarget::Plan(PlanId::from(id))),
        (Some(_), Some(_)) => {
            Err(Failure::bad_request("plan_and_plan_id", "the body has both `plan` and `planId`")
                .hint("leave one out"))
        }
        (None, None) => Err(Failure::bad_request("no_plan", "the body names no plan")
            .hint("send `planId`, or the whole plan as `plan`")),
    }
}

/// A run's input; none is an empty object.
pub fn input(input: Option<Value>) -> Value {
    input.unwrap_or_else(|| Value::Object(Map::new()))
}

/// Where a run can be looked at.
pub fn location(run: RunId) -> HeaderValue {
    // An id is plain ASCII; nothing in it can be refused.
    HeaderValue::try_from(format!("/api/v1/runs/{run}")).unwrap_or(HeaderValue::from_static("/"))
}
