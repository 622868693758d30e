//! Tools that are called for agents of others: a run of one call in a context, which ends with what
//! became of the call. Who asks for it learns that from the run's events, also where the call was
//! refused or no one knows whether it happened.

use crate::api::reading::run_events::StartedRun;
use crate::catalog::plan_cache::{PlanCacheKey, closure};
use crate::handles::Tools;
use crate::refusal::Result;
use crate::request::{ProxyCall, RunRequest, RunTarget};
use kernel::definition::plan::{Closure, PROXY};
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::ids::ToolName;
use serde_json::{Value, json};
use std::sync::Arc;

impl Tools<'_> {
    /// Begins such a run, and gives it once that is durable, or once it ended where that is wanted.
    pub async fn begin_proxied(self, caller: &Caller, call: ProxyCall) -> Result<StartedRun> {
        self.shared.gate.permit_act(caller, Act::Call)?;
        let ProxyCall { tool, input, session, once, about, wait_ms } = call;
        let request = RunRequest {
            target: RunTarget::Pinned(self.proxy_plan(tool.as_ref())?),
            input,
            session,
            once,
            about,
        };
        self.shared.runs().start_followed(caller, request, wait_ms).await
    }

    fn proxy_plan(self, tool: Option<&ToolName>) -> Result<Arc<Closure>> {
        let made = &self.shared.made;
        let limits = &self.shared.limits;
        match tool {
            Some(tool) => made.get(PlanCacheKey::Proxied(tool.clone()), limits),
            None => closure(&nothing(), limits),
        }
    }
}

/// Calls nothing: its only step needs what is never there, so that the run fails at once.
fn nothing() -> Value {
    json!({
        "planId": PROXY,
        "description": "a call for an agent of others that is not made",
        "startStepId": "refuse",
        "on_error": "fail",
        "steps": [
            {"id": "refuse", "type": "publish_event",
             "event": {"jsonPath": "$.promptInput.nothing"}},
        ],
    })
}
