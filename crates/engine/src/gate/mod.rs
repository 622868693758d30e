//! The only way to call a tool. `admit`: known, visible, well-formed, policy; its verdict is
//! journaled. `start`: visible and not denied still, unless that was found just now, limits, then
//! the call with its timeout, then its output's schema and size. Listing and calling use the same
//! filter. Rates, breakers and places are checked in `start` alone: a call that a person approved
//! must not be judged away by them.

mod held;
mod outputs;
mod settings;
pub(crate) mod rates;
pub(crate) mod breakers;
pub(crate) mod arrivals;
pub(crate) mod judged;
pub(crate) mod trail;
pub(crate) mod noted;
pub(crate) mod rights;
pub(crate) mod consent;
mod pages;
mod places;
mod sendable;

use crate::catalog::registry::Listed;
use crate::catalog::{Author, Catalog};
use crate::gate::arrivals::Arrivals;
use crate::gate::breakers::{Breakers, Guard};
use crate::gate::consent::Consent;
use crate::gate::judged::JudgedLists;
use crate::gate::rates::Rates;
use crate::gate::trail::Trail;
use crate::refusal::TryLater;
use crate::shares::Shares;
use crate::system::clock::timeout;
use crate::system::panics::{caught, caught_now, panic_error, panic_fault};
use futures::FutureExt;
use futures::future::BoxFuture;
use held::{Held, NotNow, too_soon};
use kernel::contracts::policy::{Context, Decision, Resource, Trigger};
use kernel::contracts::{Clock, Policy};
use kernel::definition::plan::Plan;
use kernel::definition::plan::mistake::Mistake;
use kernel::limits::Limits;
use kernel::planted::{Switch, is_on};
use kernel::tool::call::{
    Abilities, Call, CallPlace, Caller, Given, Judgement, Pins, Reach, Teller, ToolError,
    ToolOutput,
};
use kernel::tool::schema::{Misfit, Schemas, sentence};
use kernel::values::datum::Sources;
use kernel::values::fault::Fault;
use kernel::values::ids::{CallId, RealmId, ToolName};
use outputs::{narrowed, not_as_promised};
use places::Places;
use serde_json::Value;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The gate.
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
    /// What failed in a row, and is refused for a while.
    pub(crate) breakers: Breakers,
    /// Whether tools that are not there may still come.
    pub(crate) arrivals: Arrivals,
    /// The lists that were judged already.
    pub(crate) judged: JudgedLists,
    /// What the audit keeps; none where nothing is.
    pub(crate) trail: Option<Arc<Trail>>,
}

/// A call that was admitted and may be sent.
#[derive(Debug, Clone)]
pub(crate) struct Sending {
    pub(crate) caller: Caller,
    pub(crate) call: CallId,
    pub(crate) tool: ToolName,
    pub(crate) arguments: Arc<Value>,
    /// Where the arguments came from; empty where no one knows.
    pub(crate) sources: Sources,
    pub(crate) reach: Reach,
    /// The answers to what it wanted before.
    pub(crate) given: Arc<Given>,
    /// What its caller can do for it.
    pub(crate) can: Abilities,
    /// Whom it tells how far it is.
    pub(crate) teller: Teller,
    /// Where it happens.
    pub(crate) place: CallPlace,
    /// Whether someone was asked about it.
    pub(crate) consent: Consent,
}

/// A tool that policy allowed a call of at this moment, with its arguments. It is good as long as
/// nothing is awaited: then the tool may be gone, and policy may say something else. Only the gate
/// makes one.
pub(crate) struct JustAllowed(Arc<Listed>);

/// The outcome of a call that was sent.
pub(crate) struct Started {
    pub(crate) result: Result<ToolOutput, ToolError>,
    /// A call that took too long: it may still come back.
    pub(crate) late: Option<Late>,
    /// Nothing was sent because there were too many calls: when to come back.
    pub(crate) later: Option<Box<TryLater>>,
}

/// A call that took too long.
pub(crate) struct Late {
    /// Its outcome.
    pub(crate) coming: BoxFuture<'static, Result<ToolOutput, ToolError>>,
    /// How long it may have taken; it is waited for as long again.
    pub(crate) timeout_ms: u64,
}

impl Started {
    /// It answered this.
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
/// What a call that starts may cost, and what it holds until it comes back.
struct Pass {
    /// Its tool.
    listed: Arc<Listed>,
    timeout_ms: u64,
    output_bytes_max: usize,
    /// What counts its failures.
    guard: Option<Guard>,
    _places: Places,
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
    pub(crate) fn find(&self, caller: &Caller, name: &str) -> Option<Arc<Listed>> {
        let listed = self.catalog.tool(&caller.realm, name)?;
        self.sees(caller, Resource::Tool(listed.tool.spec())).then_some(listed)
    }

    /// The first half: what policy says of a call of a run that could run, and its tool.
    pub(crate) fn admit(
        &self,
        caller: &Caller,
        tool: &ToolName,
        arguments: &Value,
        sources: Option<&Sources>,
    ) -> (Judgement, Option<Arc<Listed>>) {
        let context = Context { arguments: Some(arguments), sources, trigger: Trigger::Run };
        match self.well_formed(caller, tool, arguments) {
            Ok(listed) => (self.judge(caller, &listed, arguments, context), Some(listed)),
            Err(misfit) => (Judgement::Refused(misfit.fault), None),
        }
    }

    /// What policy says of a call that is well-formed, with what else is known of it.
    pub(crate) fn judge(
        &self,
        caller: &Caller,
        listed: &Listed,
        arguments: &Value,
        context: Context<'_>,
    ) -> Judgement {
        let (reach, idempotent) = listed.tool.reach(arguments);
        let pins = Pins { spec: listed.spec_hash.clone(), reach, idempotent };
        let context = Context { arguments: Some(arguments), ..context };
        let decision = match is_on(Switch::JudgementSkipped) {
            true => Decision::allow(),
            false => self.decide_call(caller, listed.tool.spec(), context),
        };
        let answerers = decision.answerers();
        let Decision { verdict, version: policy, policies, .. } = decision;
        Judgement::Admitted { verdict, pins, policy, policies, answerers }
    }

    /// Known, visible, and the arguments fit the tool's schema and its own check.
    pub(crate) fn well_formed(
        &self,
        caller: &Caller,
        tool: &ToolName,
        arguments: &Value,
    ) -> Result<Arc<Listed>, IllFormed> {
        self.formed(self.find(caller, tool.as_str()), tool, arguments)
    }

    /// The same of a tool that was looked for.
    pub(crate) fn formed(
        &self,
        found: Option<Arc<Listed>>,
        tool: &ToolName,
        arguments: &Value,
    ) -> Result<Arc<Listed>, IllFormed> {
        let listed = found.ok_or_else(|| IllFormed {
            fault: Fault::new(TOOL_NOT_FOUND, format!("there is no tool `{tool}`"))
                .hint(self.switch_of(tool).unwrap_or("`waypost tool ls` lists the tools")),
            misfits: Vec::new(),
        })?;
        let checked = caught_now(|| self.fitting(&listed, arguments));
        checked.unwrap_or_else(|panicked| {
            let fault = panic_fault(tool, "its arguments were checked", &panicked);
            Err(IllFormed { fault, misfits: Vec::new() })
        })?;
        Ok(listed)
    }

    /// The arguments fit the tool's schema and its own check.
    fn fitting(&self, listed: &Listed, arguments: &Value) -> Result<(), IllFormed> {
        let spec = listed.tool.spec();
        let tool = &spec.name;
        self.schemas.check(&spec.input_schema, arguments).map_err(|misfits| IllFormed {
            fault: Fault::new(
                "InputValidationError",
                format!("arguments of `{tool}` do not fit its schema: {}", sentence(&misfits)),
            )
            .hint(format!("`waypost tool show {tool}` shows the schema")),
            misfits,
        })?;
        let checked = listed.tool.check(arguments);
        checked.map_err(|error| IllFormed { fault: error.fault, misfits: Vec::new() })
    }

    /// The second half: sends the call. One that takes too long fails, and is handed on. What
    /// policy allowed just now is not looked for again, and policy is not asked again about it.
    pub(crate) async fn start(
        self: Arc<Self>,
        sending: Sending,
        allowed: Option<JustAllowed>,
    ) -> Started {
        let pass = match self.may_start(&sending, allowed).await {
            Ok(pass) => pass,
            Err(Held { error, later }) => {
                return Started { later, ..Started::failed(*error) };
            }
        };
        let (gate, guard) = (self.clone(), pass.guard.clone());
        let (tool, timeout_ms) = (sending.tool.clone(), pass.timeout_ms);
        let calling = async move {
            let sent = caught(pin!(self.send(&sending, &pass))).await;
            sent.unwrap_or_else(|panicked| {
                Err(panic_error(&sending.tool, sending.reach, &panicked))
            })
        };
        let mut coming = calling.boxed();
        let came = timeout(gate.clock.as_ref(), timeout_ms, coming.as_mut()).await;
        let started = match came {
            Some(result) => Started { result, late: None, later: None },
            None => {
                let late = Some(Late { coming, timeout_ms });
                Started { late, ..Started::failed(timed_out(&tool, timeout_ms)) }
            }
        };
        if let Some(guard) = guard {
            gate.note_outcome(&guard, &started.result);
        }
        started
    }

    /// Still visible and not denied, unless that was found just now, not too soon, not refused
    /// after failures, and a free place among the calls.
    async fn may_start(
        &self,
        sending: &Sending,
        allowed: Option<JustAllowed>,
    ) -> Result<Pass, Held> {
        let mut listed = match allowed.or_else(|| self.plainly_allowed(sending)) {
            Some(JustAllowed(listed)) => listed,
            None => self.heeded(sending).await?,
        };
        // A call that began and continues elsewhere is not held up: its outcome would be unknown.
        let begins = sending.given.state.is_null();
        let guard = self.guard(&sending.caller, &listed).filter(|_| begins);
        guard.as_ref().map_or(Ok(()), |guard| self.check_breaker(guard))?;
        let Sending { caller, tool, .. } = sending;
        let counted = listed.limits.per_minute;
        if let Some(per_minute) = counted {
            let taken = self.rates.take(caller, tool, per_minute, self.clock.now());
            taken.map_err(|retry_ms| too_soon(tool, per_minute, retry_ms))?;
        }
        let limits = &listed.limits;
        let timeout_ms = limits.timeout_ms.map_or(self.limits.call_timeout_ms, NonZeroU64::get);
        let most = self.limits.call_output_bytes_max;
        let output_bytes_max = limits.output_bytes.map_or(most, NonZeroUsize::get);
        let places = match self.free_places(&sending.caller, &listed) {
            Some(places) => places,
            None => {
                let places = Box::pin(self.await_places(sending, &listed, timeout_ms)).await?;
                // It may be gone by now, or denied: the call is sent at the end of that wait.
                listed = self.still_there(sending)?;
                self.heed_policy(sending, &listed)?;
                places
            }
        };
        if let Some(Err(held)) = guard.as_ref().map(|guard| self.pass_breaker(guard)) {
            // It failed while this one waited, or another one tries: this one is not sent.
            counted.into_iter().for_each(|rate| self.rates.give_back(caller, tool, rate));
            return Err(held);
        }
        Ok(Pass { listed, timeout_ms, output_bytes_max, guard, _places: places })
    }

    /// Whether a call could begin now as far as its rate and its breaker go, without counting it;
    /// else when.
    pub(crate) fn in_time(&self, caller: &Caller, tool: &ToolName) -> Result<(), NotNow> {
        let listed = self.catalog.tool(&caller.realm, tool.as_str());
        let guard = listed.and_then(|listed| self.guard(caller, &listed));
        if let Some(Err(held)) = guard.map(|guard| self.check_breaker(&guard)) {
            return Err(held.not_now());
        }
        let Some(per_minute) = self.per_minute(&caller.realm, tool) else { return Ok(()) };
        let looked = self.rates.look(caller, tool, per_minute, self.clock.now());
        looked.map_err(|retry_ms| too_soon(tool, per_minute, retry_ms).not_now())
    }

    /// Counts a call of a plan, whose steps alone pass `start`; else says when it may begin.
    pub(crate) fn count_plan(&self, caller: &Caller, plan: &ToolName) -> Result<(), NotNow> {
        let Some(per_minute) = self.per_minute(&caller.realm, plan) else { return Ok(()) };
        let taken = self.rates.take(caller, plan, per_minute, self.clock.now());
        taken.map_err(|retry_ms| too_soon(plan, per_minute, retry_ms).not_now())
    }

    fn per_minute(&self, realm: &RealmId, name: &ToolName) -> Option<NonZeroU32> {
        match self.catalog.tool(realm, name.as_str()) {
            Some(listed) => listed.limits.per_minute,
            None => self.catalog.registry.rules().limits(name.as_str()).per_minute,
        }
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

    /// What to set for a tool that the settings leave out.
    fn switch_of(&self, tool: &ToolName) -> Option<&'static str> {
        self.catalog.registry.switch_of(tool.as_str())
    }

    /// Sends it; it keeps its places until it comes back.
    async fn send(&self, sending: &Sending, pass: &Pass) -> Result<ToolOutput, ToolError> {
        let listed = &pass.listed;
        let call = Call {
            id: sending.call,
            tool: sending.tool.clone(),
            arguments: self.within_find_limit(sending, listed),
            timeout_ms: pass.timeout_ms,
            output_bytes_max: pass.output_bytes_max,
            given: sending.given.clone(),
            can: sending.can,
            teller: sending.teller.clone(),
            place: CallPlace {
                acts_as: self.policy.acts_as(&sending.caller.realm),
                ..narrowed(sending.place.clone(), listed)
            },
        };
        match listed.tool.call(&sending.caller, &call).await? {
            ToolOutput::Value(value) => {
                let checked = self.check_output(listed.tool.spec(), sending, pass, value);
                checked.map(ToolOutput::Value)
            }
            ToolOutput::Blob(blob) if call.place.blobs.has_put(&blob) => Ok(ToolOutput::Blob(blob)),
            ToolOutput::Blob(_) => {
                let spec = listed.tool.spec();
                Err(not_as_promised(spec, sending.reach, "its blob is not one that the call put"))
            }
            ToolOutput::Wants(wants) => {
                self.check_wants(&sending.tool, &wants)?;
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

/// Why a call cannot run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IllFormed {
    /// What is wrong.
    pub(crate) fault: Fault,
    /// The faulty arguments.
    pub(crate) misfits: Vec<Misfit>,
}
