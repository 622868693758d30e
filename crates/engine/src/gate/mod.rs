//! The only way to call a tool. `admit`: known, visible, well-formed, policy; its verdict is
//! journaled. `start`: visible and not denied still, limits, then the call with its timeout, then
//! its output's schema and size. Listing and calling use the same filter. Rates, breakers and
//! places are checked in `start` alone: a call that a person approved must not be judged away by
//! them.

mod start_error;
mod outputs;
pub(crate) mod rates;
pub(crate) mod breakers;
pub(crate) mod arrivals;
mod realm_settings;
pub(crate) mod list_cache;
pub(crate) mod trail;
pub(crate) mod rights;
pub(crate) mod consent;
pub(crate) mod admission;
pub(crate) mod audit;
mod pages;
mod permits;
mod recheck;

use crate::catalog::registry::ListedTool;
use crate::catalog::{Author, Catalog};
use crate::gate::admission::AdmittedCall;
use crate::gate::arrivals::Arrivals;
use crate::gate::breakers::{Breakers, Guard};
use crate::gate::consent::Consent;
use crate::gate::list_cache::ListCaches;
use crate::gate::rates::Rates;
use crate::gate::trail::Trail;
use crate::refusal::TryLater;
use crate::shares::Shares;
use crate::system::clock::timeout;
use crate::system::panics::{caught, panic_error};
use futures::FutureExt;
use futures::future::BoxFuture;
use kernel::contracts::policy::Resource;
use kernel::contracts::{Clock, Policy};
use kernel::definition::plan::Plan;
use kernel::definition::plan::mistake::Mistake;
use kernel::limits::Limits;
use kernel::tool::call::{
    Abilities, Call, CallContext, CallReporter, Caller, InputResponses, Reach, ToolError,
    ToolOutput,
};
use kernel::tool::schema::Schemas;
use kernel::values::datum::Sources;
use kernel::values::ids::{CallId, RealmId, ToolName};
use outputs::{narrowed, not_as_promised, value_of};
use permits::CallPermits;
use serde_json::Value;
use start_error::{StartDelay, StartError, too_soon};
use std::num::{NonZeroU64, NonZeroUsize};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::Semaphore;

pub(crate) struct Gate {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) schemas: Arc<dyn Schemas>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Arc<Limits>,
    /// One permit for each call that runs.
    pub(crate) calls: Arc<Semaphore>,
    pub(crate) call_shares: Shares,
    /// How often callers may call.
    pub(crate) rates: Rates,
    pub(crate) breakers: Breakers,
    /// Whether tools that are not there may still come.
    pub(crate) arrivals: Arrivals,
    /// The lists that were judged already.
    pub(crate) judged: ListCaches,
    /// `None` if nothing is audited.
    pub(crate) trail: Option<Arc<Trail>>,
}

/// A call that was admitted, just now or as its journal says, and is to be sent.
#[derive(Debug, Clone)]
pub(crate) struct OutgoingCall {
    pub(crate) caller: Caller,
    pub(crate) id: CallId,
    pub(crate) tool: ToolName,
    pub(crate) arguments: Arc<Value>,
    /// Where the arguments came from; empty where no one knows.
    pub(crate) sources: Sources,
    pub(crate) reach: Reach,
    /// The answers to what it wanted before.
    pub(crate) given: Arc<InputResponses>,
    pub(crate) can: Abilities,
    /// Whom it tells how far it is.
    pub(crate) teller: CallReporter,
    pub(crate) context: CallContext,
    /// Whether someone was asked about it.
    pub(crate) consent: Consent,
    /// Whether only the value of its output is wanted, without what MCP puts around it.
    pub(crate) value_only: bool,
}

/// The outcome of a call that was sent.
pub(crate) struct CallOutcome {
    pub(crate) result: Result<ToolOutput, ToolError>,
    /// A call that took too long: it may still come back.
    pub(crate) late: Option<LateCall>,
    /// Set if nothing was sent because of too many calls: when to retry.
    pub(crate) later: Option<Box<TryLater>>,
}

/// A call that took too long.
pub(crate) struct LateCall {
    pub(crate) output: BoxFuture<'static, Result<ToolOutput, ToolError>>,
    /// How long it may have taken; it is waited for as long again.
    pub(crate) timeout_ms: u64,
}

impl CallOutcome {
    pub(crate) fn answered(output: ToolOutput) -> Self {
        Self { result: Ok(output), late: None, later: None }
    }

    /// It failed, and nothing will come of it.
    pub(crate) fn failed(error: ToolError) -> Self {
        Self { result: Err(error), late: None, later: None }
    }
}

/// Fault of a call that came too soon after the others.
pub(crate) const RATE_LIMITED: &str = "RateLimited";
/// Fault of a call that found no place among the others in time.
pub(crate) const TOO_MANY_CALLS: &str = "TooManyCalls";
/// Fault of a call of a tool that is not there, or not for its caller.
pub(crate) const TOOL_NOT_FOUND: &str = "ToolNotFoundError";
/// Fault of a call that policy refuses.
pub(crate) const POLICY_DENIED: &str = "PolicyDenied";

/// Limits of a call that starts, and the permits that it holds until it returns.
struct CallAllowance {
    listed: Arc<ListedTool>,
    timeout_ms: u64,
    output_bytes_max: usize,
    guard: Option<Guard>,
    _permits: CallPermits,
}

impl Gate {
    /// Reads a plan that a caller sent: for it there is only what its caller sees.
    pub(crate) fn read_plan(
        &self,
        caller: &Caller,
        source: &Value,
    ) -> Result<(Plan, Vec<Mistake>), Vec<Mistake>> {
        let sees = |resource: Resource<'_>| self.sees(caller, resource);
        self.catalog.read(&caller.realm, source, &[], Author::Caller(&sees))
    }

    /// The same for a plan that is to be kept, or might be: its id must be free.
    pub(crate) fn read_plan_to_keep(
        &self,
        caller: &Caller,
        source: &Value,
    ) -> Result<(Plan, Vec<Mistake>), Vec<Mistake>> {
        let (plan, warnings) = self.read_plan(caller, source)?;
        let sees = |resource: Resource<'_>| self.sees(caller, resource);
        match self.catalog.misnamed(&caller.realm, &plan.id, Author::Caller(&sees)) {
            Some(mistake) => Err(vec![mistake]),
            None => Ok((plan, warnings)),
        }
    }

    /// A tool that this caller sees. An invisible one is exactly like one that does not exist.
    pub(crate) fn find(&self, caller: &Caller, name: &str) -> Option<Arc<ListedTool>> {
        let listed = self.catalog.tool(&caller.realm, name)?;
        self.sees(caller, Resource::Tool(listed.tool.judged())).then_some(listed)
    }

    /// The second half: sends the call. One that takes too long fails, and is handed on.
    pub(crate) async fn start(self: Arc<Self>, call: OutgoingCall) -> CallOutcome {
        let pass = match self.may_start(&call).await {
            Ok(pass) => pass,
            Err(StartError { error, later }) => {
                return CallOutcome { later, ..CallOutcome::failed(*error) };
            }
        };
        let gate = self.clone();
        let guard = pass.guard.clone();
        let tool = call.tool.clone();
        let timeout_ms = pass.timeout_ms;
        let calling = async move {
            let sent = caught(pin!(self.send(&call, &pass))).await;
            sent.unwrap_or_else(|panicked| Err(panic_error(&call.tool, call.reach, &panicked)))
        };
        let mut output = calling.boxed();
        let came = timeout(gate.clock.as_ref(), timeout_ms, output.as_mut()).await;
        let started = match came {
            Some(result) => CallOutcome { result, late: None, later: None },
            None => {
                let late = Some(LateCall { output, timeout_ms });
                CallOutcome { late, ..CallOutcome::failed(timed_out(&tool, timeout_ms)) }
            }
        };
        if let Some(guard) = guard {
            gate.note_outcome(&guard, &started.result);
        }
        started
    }

    /// Still visible and not denied, not too soon, not refused after failures, and a free place
    /// among the calls.
    async fn may_start(&self, call: &OutgoingCall) -> Result<CallAllowance, StartError> {
        // It may be one of those that come after the start.
        self.await_tool(&call.caller.realm, &call.tool).await;
        let mut listed = self.recheck(call)?;
        // A call that began and continues elsewhere is not held up: its outcome would be unknown.
        let begins = call.given.state.is_null();
        let guard = self.guard(&call.caller, &listed).filter(|_| begins);
        guard.as_ref().map_or(Ok(()), |guard| self.check_breaker(guard))?;
        let caller = &call.caller;
        let rate = listed.limits.per_minute;
        let counted = rate.map(|rate| (listed.tool.judged().name.clone(), rate));
        if let Some((tool, per_minute)) = &counted {
            let taken = self.rates.take(caller, tool, *per_minute, self.clock.now());
            taken.map_err(|retry_ms| too_soon(tool, *per_minute, retry_ms))?;
        }
        let limits = &listed.limits;
        let timeout_ms = limits.timeout_ms.map_or(self.limits.call_timeout_ms, NonZeroU64::get);
        let most = self.limits.call_output_bytes_max;
        let output_bytes_max = limits.output_bytes.map_or(most, NonZeroUsize::get);
        let permits = match self.try_permits(&call.caller, &listed) {
            Some(permits) => permits,
            None => {
                let permits = Box::pin(self.await_permits(call, &listed, timeout_ms)).await?;
                // It may be gone by now, or denied: the call is sent at the end of that wait.
                listed = self.recheck(call)?;
                permits
            }
        };
        if let Some(Err(held)) = guard.as_ref().map(|guard| self.pass_breaker(guard)) {
            // It failed while this one waited, or another one tries: this one is not sent.
            if let Some((tool, rate)) = &counted {
                self.rates.give_back(caller, tool, *rate);
            }
            return Err(held);
        }
        Ok(CallAllowance { listed, timeout_ms, output_bytes_max, guard, _permits: permits })
    }

    /// Whether a call could begin now as far as its rate and its breaker go, without counting it;
    /// else when.
    pub(crate) fn in_time(&self, call: &AdmittedCall<'_>) -> Result<(), StartDelay> {
        let AdmittedCall { caller, listed, .. } = call;
        let guard = self.guard(caller, listed);
        if let Some(Err(held)) = guard.map(|guard| self.check_breaker(&guard)) {
            return Err(held.not_now());
        }
        let Some(per_minute) = listed.limits.per_minute else { return Ok(()) };
        let tool = &listed.tool.judged().name;
        let peeked = self.rates.peek(caller, tool, per_minute, self.clock.now());
        peeked.map_err(|retry_ms| too_soon(tool, per_minute, retry_ms).not_now())
    }

    /// Counts a call of a plan, whose steps alone pass `start`; else says when it may begin.
    pub(crate) fn count_plan(&self, caller: &Caller, plan: &ToolName) -> Result<(), StartDelay> {
        let limits = self.catalog.registry.rules().limits(plan.as_str());
        let Some(per_minute) = limits.per_minute else { return Ok(()) };
        let taken = self.rates.take(caller, plan, per_minute, self.clock.now());
        taken.map_err(|retry_ms| too_soon(plan, per_minute, retry_ms).not_now())
    }

    /// Waits for a tool that is not there for a realm, if it may be one of those that come after
    /// the start.
    pub(crate) async fn await_tool(&self, realm: &RealmId, name: &ToolName) {
        let is_awaited = || self.catalog.awaits(realm, name.as_str());
        let is_missing = || self.catalog.tool(realm, name.as_str()).is_none();
        if !self.arrivals.are_over() && is_missing() && is_awaited() {
            Box::pin(self.arrivals.wait(self.clock.as_ref())).await;
        }
    }

    /// The setting that switches a tool on.
    fn switch_of(&self, tool: &ToolName) -> Option<&'static str> {
        self.catalog.registry.switch_of(tool.as_str())
    }

    /// Sends it; it keeps its places until it comes back.
    async fn send(
        &self,
        outgoing: &OutgoingCall,
        pass: &CallAllowance,
    ) -> Result<ToolOutput, ToolError> {
        let listed = &pass.listed;
        let call = Call {
            id: outgoing.id,
            tool: outgoing.tool.clone(),
            arguments: self.within_find_limit(outgoing, listed),
            timeout_ms: pass.timeout_ms,
            output_bytes_max: pass.output_bytes_max,
            given: outgoing.given.clone(),
            can: outgoing.can,
            teller: outgoing.teller.clone(),
            context: CallContext {
                acts_as: self.policy.acts_as(&outgoing.caller.realm),
                ..narrowed(outgoing.context.clone(), listed)
            },
        };
        match listed.tool.call(&outgoing.caller, &call).await? {
            ToolOutput::Value(value) => {
                let spec = listed.tool.spec();
                let checked = self.check_output(spec, outgoing, pass, value);
                checked.map(|value| match outgoing.value_only {
                    true => ToolOutput::Value(value_of(spec, value)),
                    false => ToolOutput::Value(value),
                })
            }
            ToolOutput::Blob(blob) if call.context.blobs.has_put(&blob) => {
                Ok(ToolOutput::Blob(blob))
            }
            ToolOutput::Blob(_) => {
                let spec = listed.tool.spec();
                Err(not_as_promised(spec, outgoing.reach, "its blob is not one that the call put"))
            }
            ToolOutput::Wants(wants) => {
                self.check_wants(&outgoing.tool, &wants)?;
                Ok(ToolOutput::Wants(wants))
            }
        }
    }
}

fn timed_out(tool: &ToolName, timeout_ms: u64) -> ToolError {
    let message = format!("`{tool}` did not answer within {timeout_ms} ms");
    let error = ToolError::unknown("Timeout", message).hint(
        "raise `call_timeout_ms` in [limits] or `timeout_ms` in [tools.limits], or look at the \
         other side",
    );
    error.passing()
}
