//! Direct calls: a read needs no session, nor does a tool whose operator wants no journal of it;
//! anything else that must be remembered, or asked about, is a one-step run in a session of its
//! own.

use crate::command::{Command, Presence, StartRun};
use crate::gate::admission::{AdmittedCall, IllFormed};
use crate::gate::breakers::CIRCUIT_OPEN;
use crate::gate::{CallOutcome, OutgoingCall, RATE_LIMITED, TOO_MANY_CALLS, TOOL_NOT_FOUND};
use crate::handles::Tools;
use crate::refusal::{Refusal, RefusalCode, Result, TryLater};
use crate::request::{
    CallReport, CallRequest, IdempotencyKey, RunMetadata, RunReport, RunRequest, RunSession,
    RunTarget, UnseenCall,
};
use crate::waiting::idempotency::{Claim, ClaimOutcome};
use kernel::contracts::policy::Context;
use kernel::definition::plan::Closure;
use kernel::session::RunStatus;
use kernel::tool::call::{
    Abilities, CallContext, Caller, Pace, RawFailure, Reach, ToolError, ToolOutput, Verdict,
};
use kernel::values::caller::Act;
use kernel::values::fault::Fault;
use kernel::values::ids::{CallId, PlanId, SessionId, Space, ToolName};
use serde_json::Value;
use std::sync::Arc;

/// When to call again after a run that found no place.
const CROWD_RETRY_MS: u64 = 1_000;

/// How the run of one tool begins.
#[derive(Default)]
struct DirectStart {
    /// The key that the request holds, if it has one.
    claim: Option<Claim>,
    /// Whether the caller need not wait for what continues elsewhere.
    as_task: bool,
    /// The tool was called already, and continues elsewhere under this state.
    sent: Option<Value>,
}

impl Tools<'_> {
    /// Calls a tool, or a plan as a tool, by its name. A call that must be approved, or that takes
    /// longer than the caller waits, continues as a run.
    pub async fn call(
        self,
        caller: &Caller,
        tool: &ToolName,
        arguments: Value,
        wait_ms: u64,
    ) -> Result<CallReport> {
        self.within_scopes(caller)?;
        match self.find(caller, tool.as_str()) {
            Some(found) => {
                self.call_with(caller, CallRequest::new(found, arguments, wait_ms)).await
            }
            None => {
                let gate = &self.shared.gate;
                let names = vec![tool.to_string()];
                gate.note_unseen(
                    caller,
                    &UnseenCall { names, arguments, ..UnseenCall::default() },
                )?;
                Err(ill_formed(gate.unknown_tool(tool)))
            }
        }
    }

    /// Calls a tool, or a plan as a tool. Under a key a repeat gets the outcome of the first, and
    /// calls nothing. A read has no run that a key could stand for: it is simply read again. A tool
    /// without a journal is called again under the same id.
    pub async fn call_with(self, caller: &Caller, request: CallRequest) -> Result<CallReport> {
        let gate = &self.shared.gate;
        gate.permit_act(caller, Act::Call)?;
        let Some(listed) = request.tool.as_tool().cloned() else {
            return Box::pin(self.call_plan(caller, request)).await;
        };
        let admitted = gate.admit(caller, listed, &request.arguments, Context::default());
        let call = admitted.map_err(ill_formed)?;
        let spec = call.listed.tool.spec();
        let is_slow = request.as_task && spec.pace != Pace::Quick;
        let is_unrecorded = spec.unrecorded || (call.reach == Reach::Reads && !is_slow);
        match &call.decision.verdict {
            Verdict::Deny(why) => {
                gate.note_call(&call, &request)?;
                Err(denied(caller, &spec.name, why))
            }
            Verdict::Allow if is_unrecorded => {
                gate.note_call(&call, &request)?;
                // Most servers do not wait, and then the call has no room for it.
                if gate.is_strict() {
                    Box::pin(gate.settled()).await;
                }
                self.call_unrecorded(call, request).await
            }
            // A run has a journal to wait for: it can afford a box. A call without one need not
            // move room for a run around, nor for what continues elsewhere.
            Verdict::Allow | Verdict::Ask(_) => {
                let wait_ms = if is_slow { 0 } else { request.wait_ms };
                let request = CallRequest { wait_ms, ..request };
                Box::pin(self.call_recorded(call, request)).await
            }
        }
    }

    /// Anything that must be remembered, or asked about, is a run; a repeat of one calls nothing.
    async fn call_recorded(
        self,
        call: AdmittedCall<'_>,
        request: CallRequest,
    ) -> Result<CallReport> {
        let caller = call.caller;
        let claim = match self.shared.turn(caller, request.once.as_ref()).await? {
            ClaimOutcome::Repeat(row) => {
                let again = self.shared.runs().repeated(caller, &row, request.wait_ms).await;
                return again.and_then(called_alone);
            }
            ClaimOutcome::First(claim) => claim,
        };
        // A caller that comes too soon leaves no run behind, nor a key that was used up.
        let in_time = self.shared.gate.in_time(&call);
        in_time.map_err(|held| crowded(held.fault, held.later))?;
        let direct = DirectStart { claim, as_task: request.as_task, sent: None };
        self.call_as_run(caller, request, direct).await
    }

    /// A plan is called by running it in a session of its own.
    async fn call_plan(self, caller: &Caller, request: CallRequest) -> Result<CallReport> {
        let spec = request.tool.spec();
        let is_slow = request.as_task && spec.pace != Pace::Quick;
        let plan = PlanId::from(spec.name.as_str());
        self.shared.gate.permit_start(caller, &plan, &request.arguments)?;
        let counted = self.shared.gate.count_plan(caller, &spec.name);
        counted.map_err(|held| crowded(held.fault, held.later))?;
        let run = RunRequest {
            target: RunTarget::Plan(plan),
            input: Arc::unwrap_or_clone(request.arguments),
            session: RunSession::New,
            once: request.once,
            about: RunMetadata {
                trace: request.trace,
                occasion: request.occasion,
                ..RunMetadata::default()
            },
        };
        let id = request.run.unwrap_or_else(|| self.shared.runs().new_id());
        let wait_ms = if is_slow { 0 } else { request.wait_ms };
        self.shared.runs().start_as(caller, id, run, wait_ms).await.map(called)
    }

    /// A call that needs no run is sent at once.
    async fn call_unrecorded(
        self,
        call: AdmittedCall<'_>,
        request: CallRequest,
    ) -> Result<CallReport> {
        let CallRequest { tool, given, can, teller, once, run, as_task, wait_ms, .. } = request;
        let trace = request.trace;
        let occasion = request.occasion;
        // What its operator wants no journal of becomes no run later either.
        let later = as_task && !call.listed.tool.spec().unrecorded;
        let tells_apart = call.listed.tool.spec().writes_records();
        let id = self.unrecorded_id(call.caller, once.as_ref(), tells_apart);
        let watched = self.shared.watch_call(id, trace);
        let outgoing = OutgoingCall {
            given: Arc::new(given),
            can: Abilities { later, ..can },
            teller,
            context: CallContext { trace: watched.span, ..CallContext::default() },
            ..call.outgoing(id)
        };
        let gate = self.shared.gate.clone();
        let CallOutcome { result, later: not_now, .. } = gate.start(outgoing).await;
        self.shared.call_ended(watched, &call, &result);
        match (result, not_now) {
            (Ok(ToolOutput::Value(value)), _) => Ok(CallReport::Done(value)),
            // It has no blobs, so the gate lets none through.
            (Ok(ToolOutput::Blob(blob)), _) => Ok(CallReport::Done(Value::String(blob.uri()))),
            (Ok(ToolOutput::Wants(wants)), _) if later && wants.inputs.is_empty() => {
                // It continues elsewhere: from here on someone must remember it.
                let request = CallRequest::new(tool, request.arguments, wait_ms);
                let request = CallRequest { run, trace, occasion, ..request };
                let direct = DirectStart {
                    as_task: true,
                    sent: Some(wants.state),
                    ..DirectStart::default()
                };
                Box::pin(self.call_as_run(call.caller, request, direct)).await
            }
            (Ok(ToolOutput::Wants(wants)), _) => Ok(CallReport::Wants(wants)),
            (Err(error), Some(not_now)) => Err(crowded(error.fault, not_now)),
            (Err(error), None) => Err(tool_failed(error)),
        }
    }

    /// The id of a call that is not kept: that of its key, so that a tool that does each id once
    /// does each key once. One that tells another request under the same key apart refuses it.
    fn unrecorded_id(
        self,
        caller: &Caller,
        once: Option<&IdempotencyKey>,
        tells_apart: bool,
    ) -> CallId {
        match once {
            Some(IdempotencyKey { route, key, digest, .. }) => {
                let mut parts = vec![
                    caller.realm.as_str().as_bytes(),
                    caller.subject.as_bytes(),
                    route.as_bytes(),
                    key.as_bytes(),
                ];
                if !tells_apart {
                    parts.push(digest.as_str().as_bytes());
                }
                parts.extend(caller.actor.as_deref().map(str::as_bytes));
                CallId::of(&parts)
            }
            None => CallId(self.shared.id_bits()),
        }
    }

    async fn call_as_run(
        self,
        caller: &Caller,
        request: CallRequest,
        direct: DirectStart,
    ) -> Result<CallReport> {
        let closure = self.one_step(request.tool.name())?;
        let session = SessionId(self.shared.id_bits());
        let run = request.run.unwrap_or_else(|| self.shared.runs().new_id());
        let key = caller.key(Space::call(), session.to_string());
        let start = StartRun {
            session,
            presence: Presence::Fresh,
            run,
            closure,
            input: request.arguments,
            caller: caller.clone(),
            claim: direct.claim,
            as_task: direct.as_task,
            sent: direct.sent,
            about: RunMetadata {
                trace: request.trace,
                occasion: request.occasion,
                ..RunMetadata::default()
            },
        };
        let command = |answer| Command::Run { start: Box::new(start), answer };
        self.shared
            .runs()
            .wait_for(&key, run, request.wait_ms, command)
            .await
            .and_then(called_alone)
    }

    /// The plan of a direct call.
    fn one_step(self, tool: &ToolName) -> Result<Arc<Closure>> {
        self.shared.call_plans.direct(tool, &self.shared.limits)
    }
}

fn ill_formed(wrong: IllFormed) -> Refusal {
    let code = match wrong.fault.name.as_str() {
        TOOL_NOT_FOUND => RefusalCode::NotFound,
        _ => RefusalCode::InputMisfit(None),
    };
    let message = wrong.fault.message.clone();
    Refusal::new(code, message).errors(wrong.misfits).fault(*wrong.fault)
}

/// Only administrators learn why policy says so.
fn denied(caller: &Caller, tool: &ToolName, why: &str) -> Refusal {
    let message = format!("policy refuses `{tool}`");
    let message = if caller.admin { format!("{message}: {why}") } else { message };
    Refusal::new(RefusalCode::PolicyDenied, message).hint("ask an administrator of the realm")
}

/// The tool failed; what it said itself goes along, so that an endpoint can pass it on as it is.
fn tool_failed(error: ToolError) -> Refusal {
    let ToolError { fault, said, lacks, .. } = error;
    // Only a proxy passes on how a server of plain JSON-RPC answered.
    let said = said.filter(|said| !matches!(**said, RawFailure::Reply(_)));
    let code = match (said, lacks) {
        (None, Some(lacks)) => RefusalCode::CallerLacks(lacks),
        (said, _) => RefusalCode::ToolFailed(said),
    };
    Refusal::new(code, fault.to_string()).fault(fault)
}

/// It may be sent later: there are too many calls, or those before it failed.
fn crowded(fault: Fault, later: Box<TryLater>) -> Refusal {
    let code = match fault.name.as_str() {
        RATE_LIMITED => RefusalCode::RateLimited(later),
        CIRCUIT_OPEN => RefusalCode::CircuitOpen(later),
        _ => RefusalCode::TooManyCalls(later),
    };
    Refusal::new(code, fault.message.clone()).fault(fault)
}

fn called(report: RunReport) -> CallReport {
    match report.run.status {
        RunStatus::Completed => {
            let output = report.run.answer.unwrap_or(Value::Null);
            if report.replayed { CallReport::Repeated(output) } else { CallReport::Done(output) }
        }
        RunStatus::Failed | RunStatus::Cancelled => CallReport::Failed(Box::new(report)),
        RunStatus::Running | RunStatus::Waiting | RunStatus::Stuck | RunStatus::Paused => {
            CallReport::Pending(Box::new(report))
        }
    }
}

/// The outcome of the run of one tool: one that found no place is refused like one that never
/// became a run. The run of a plan is not, for its other steps may have done something.
fn called_alone(report: RunReport) -> Result<CallReport> {
    let refused = [RATE_LIMITED, TOO_MANY_CALLS, CIRCUIT_OPEN];
    let crowd = |fault: &&Fault| refused.contains(&fault.name.as_str());
    let failed = report.run.status == RunStatus::Failed;
    match report.run.last_error.as_ref().filter(|_| failed).filter(crowd) {
        None => Ok(called(report)),
        Some(fault) => {
            let later = TryLater::after(CROWD_RETRY_MS);
            let later = Box::new(TryLater { run: Some(report.run.id), ..later });
            Err(crowded(fault.clone(), later))
        }
    }
}
