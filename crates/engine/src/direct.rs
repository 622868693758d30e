//! Direct calls: a read needs no session; anything that must be remembered, or asked about, is a
//! one-step run in a session of its own.

use crate::command::{Command, Presence, StartRun};
use crate::gate::Sending;
use crate::once::{Claim, Turn};
use crate::refusal::{Refusal, RefusalKind};
use crate::request::{CallReport, Once, RunReport};
use crate::shared::Engine;
use kernel::call::{Caller, Judgement, Reach, Verdict};
use kernel::ids::{CallId, PlanId, RunId, SessionId, SessionKey, Space, ToolName};
use kernel::plan::Closure;
use kernel::plan::flow::reload;
use kernel::session::RunStatus;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Engine {
    /// Calls a tool. A call that must be approved, or that takes longer than the caller waits, goes
    /// on as a run.
    pub async fn call(
        &self,
        caller: &Caller,
        tool: &ToolName,
        arguments: Value,
        wait_ms: u64,
    ) -> Result<CallReport, Refusal> {
        self.call_once(caller, tool, arguments, None, wait_ms).await
    }

    /// The same under a key: a repeat gets what came of the first, and calls nothing. A read has
    /// no run that a key could stand for: it is simply read again.
    pub async fn call_once(
        &self,
        caller: &Caller,
        tool: &ToolName,
        arguments: Value,
        once: Option<Once>,
        wait_ms: u64,
    ) -> Result<CallReport, Refusal> {
        let gate = &self.shared.gate;
        if let Err(wrong) = gate.well_formed(caller, tool, &arguments) {
            let (kind, code) = match wrong.fault.name.as_str() {
                "ToolNotFoundError" => (RefusalKind::NotFound, "not_found"),
                _ => (RefusalKind::WrongShape, "input_misfit"),
            };
            let refusal = Refusal::new(kind, code, wrong.fault.message).errors(wrong.misfits);
            return Err(match wrong.fault.hint {
                Some(hint) => refusal.hint(hint),
                None => refusal,
            });
        }
        match gate.admit(caller, tool, &arguments) {
            Judgement::Refused(fault) => {
                Err(Refusal::new(RefusalKind::WrongShape, "refused", fault.message))
            }
            Judgement::Admitted { verdict: Verdict::Deny(why), .. } => {
                let message = format!("policy refuses `{tool}`: {why}");
                Err(Refusal::new(RefusalKind::Forbidden, "policy_denied", message))
            }
            Judgement::Admitted { verdict: Verdict::Allow, pins } if pins.reach == Reach::Reads => {
                self.call_unrecorded(caller, tool, arguments).await
            }
            Judgement::Admitted { .. } => {
                let claim = match self.turn(caller, once.as_ref()).await? {
                    Some(Turn::Repeat(row)) => {
                        return self.repeated_run(caller, &row, wait_ms).await.map(called);
                    }
                    Some(Turn::First(claim)) => Some(claim),
                    None => None,
                };
                self.call_as_run(caller, tool, arguments, claim, wait_ms).await
            }
        }
    }

    async fn call_unrecorded(
        &self,
        caller: &Caller,
        tool: &ToolName,
        arguments: Value,
    ) -> Result<CallReport, Refusal> {
        let sending = Sending {
            caller: caller.clone(),
            call: CallId(self.shared.id_bits()),
            tool: tool.clone(),
            arguments: Arc::new(arguments),
            reach: Reach::Reads,
        };
        match self.shared.gate.clone().start(sending).await.result {
            Ok(output) => Ok(CallReport::Done(output.value)),
            Err(error) => {
                let message = error.fault.to_string();
                let refusal = Refusal::new(RefusalKind::Upstream, "tool_failed", message);
                Err(match error.fault.hint {
                    Some(hint) => refusal.hint(hint),
                    None => refusal,
                })
            }
        }
    }

    async fn call_as_run(
        &self,
        caller: &Caller,
        tool: &ToolName,
        arguments: Value,
        claim: Option<Claim>,
        wait_ms: u64,
    ) -> Result<CallReport, Refusal> {
        let closure = self.one_step(tool)?;
        let session = SessionId(self.shared.id_bits());
        let run = RunId(self.shared.id_bits());
        let key = SessionKey {
            realm: caller.realm.clone(),
            space: Space::call(),
            id: session.to_string().into(),
        };
        let start = StartRun {
            session,
            presence: Presence::Fresh,
            run,
            closure,
            input: arguments,
            by: caller.subject.clone(),
            claim,
        };
        let command = |answer| Command::Run { start, answer };
        self.wait_for(&key, run, wait_ms, command).await.map(called)
    }

    /// The plan of a direct call: the tool, then its output as the answer.
    fn one_step(&self, tool: &ToolName) -> Result<Arc<Closure>, Refusal> {
        let source = json!({
            "planId": format!("call/{tool}"),
            "description": format!("a direct call of {tool}"),
            "startStepId": "call",
            "steps": [
                {"id": "call", "type": "tool_call", "toolId": tool,
                 "arguments": {"jsonPath": "$.promptInput"}, "saveAs": "output",
                 "nextStepId": "answer"},
                {"id": "answer", "type": "final_response",
                 "message": {"jsonPath": "$.context.output"}},
            ],
        });
        let plan = reload(&source, &self.shared.limits).map_err(|_| {
            let message = format!("no plan can be made to call `{tool}`");
            Refusal::new(RefusalKind::Failed, "direct_call", message)
        })?;
        let plan = Arc::new(plan);
        let plans: BTreeMap<PlanId, _> = BTreeMap::from([(plan.id.clone(), plan.clone())]);
        Ok(Arc::new(Closure::new(plan, plans)))
    }
}

fn called(report: RunReport) -> CallReport {
    match report.run.status {
        RunStatus::Completed => CallReport::Done(report.run.answer.unwrap_or(Value::Null)),
        _ => CallReport::Pending(Box::new(report)),
    }
}
