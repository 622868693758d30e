//! Calls whose runs report what became of them: a run of one call. Who asks for it learns from the
//! run's events what became of the call, also where that was refused or no one knows whether it
//! happened.

use crate::api::reading::run_events::StartedRun;
use crate::handles::Tools;
use crate::refusal::Result;
use crate::request::{ReportedCall, RunRequest, RunTarget};
use kernel::tool::call::Caller;
use kernel::values::caller::Act;

impl Tools<'_> {
    /// Begins such a run, and gives it once that is durable, or once it ended where that is wanted.
    pub async fn begin_reported(self, caller: &Caller, call: ReportedCall) -> Result<StartedRun> {
        self.shared.gate.permit_act(caller, Act::Call)?;
        let ReportedCall { plan, tool, input, session, once, about, wait_ms } = call;
        let closure = self.shared.call_plans.reported(plan, tool.as_ref(), &self.shared.limits)?;
        let target = RunTarget::Pinned(closure);
        let request = RunRequest { target, input, session, once, about };
        self.shared.runs().start_followed(caller, request, wait_ms).await
    }
}
