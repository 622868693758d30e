//! The only way to call a tool. `admit`: known, visible, well-formed, policy; its verdict is
//! journaled. `start`: visible and not denied still, limits, then the call with its timeout, then
//! its output's schema and size. Listing and calling use the same filter.

use crate::catalog::{Catalog, Listed};
use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};
use kernel::call::{
    Call, Caller, Given, HowFar, Judgement, Pins, Reach, Teller, ToolError, ToolOutput, ToolSpec,
    Verdict, Yields,
};
use kernel::contracts::{Clock, Policy};
use kernel::datum::larger_than;
use kernel::fault::Fault;
use kernel::ids::{CallId, ToolName};
use kernel::limits::Limits;
use kernel::planted::{Switch, is_on};
use kernel::schema::{Misfit, Schemas, sentence};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Everyone may do everything: local mode, until policies arrive.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl Policy for AllowAll {
    fn visible(&self, _caller: &Caller, _spec: &ToolSpec) -> bool {
        true
    }
    fn decide(&self, _caller: &Caller, _spec: &ToolSpec, _arguments: &Value) -> Verdict {
        Verdict::Allow
    }
}

/// The gate.
pub(crate) struct Gate {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) schemas: Arc<dyn Schemas>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Arc<Limits>,
    /// One permit for each call that runs.
    pub(crate) calls: Arc<Semaphore>,
}

/// A call that was admitted and may be sent.
#[derive(Debug, Clone)]
pub(crate) struct Sending {
    pub(crate) caller: Caller,
    pub(crate) call: CallId,
    pub(crate) tool: ToolName,
    pub(crate) arguments: Arc<Value>,
    pub(crate) reach: Reach,
    /// What came of what it wanted before.
    pub(crate) given: Arc<Given>,
    /// Whom it tells how far it is.
    pub(crate) teller: Teller,
}

/// What came of a call that was sent.
pub(crate) struct Started {
    pub(crate) result: Result<ToolOutput, ToolError>,
    /// A call that took too long: it may still come back.
    pub(crate) late: Option<Late>,
}

/// The output of a call that nobody can give anything: a tool that wants something has failed.
pub(crate) fn settled(output: ToolOutput) -> Result<Value, ToolError> {
    match output {
        ToolOutput::Value(value) => Ok(value),
        ToolOutput::Wants(wants) => {
            let keys: Vec<&str> = wants.inputs.keys().map(String::as_str).collect();
            let message = format!("the tool wants `{}` of its caller first", keys.join("`, `"));
            Err(ToolError::not_sent("InputWanted", message)
                .hint("call it directly, or ask a person in a step before it"))
        }
    }
}

/// A call that took too long.
pub(crate) type Late = BoxFuture<'static, Result<ToolOutput, ToolError>>;

impl Started {
    /// It failed, and nothing will come of it.
    pub(crate) fn failed(error: ToolError) -> Self {
        Self { result: Err(error), late: None }
    }
}

impl Gate {
    /// The tools that this caller sees.
    pub(crate) fn visible(&self, caller: &Caller) -> Vec<Arc<ToolSpec>> {
        let specs = self.catalog.specs();
        specs.filter(|spec| self.policy.visible(caller, spec)).cloned().collect()
    }

    /// The plans of the caller's realm that it sees, as tools.
    pub(crate) fn visible_plans(&self, caller: &Caller) -> Vec<Arc<ToolSpec>> {
        let mut specs = self.catalog.plan_specs(&caller.realm);
        specs.retain(|spec| self.policy.visible(caller, spec));
        specs
    }

    /// One of them.
    pub(crate) fn find_plan(&self, caller: &Caller, name: &str) -> Option<Arc<ToolSpec>> {
        let spec = self.catalog.plan_spec(&caller.realm, name);
        spec.filter(|spec| self.policy.visible(caller, spec))
    }

    /// What policy says of running a plan.
    pub(crate) fn admit_plan(
        &self,
        caller: &Caller,
        spec: &ToolSpec,
        arguments: &Value,
    ) -> Verdict {
        self.policy.decide(caller, spec, arguments)
    }

    /// A tool that this caller sees. An invisible one is exactly like one that does not exist.
    pub(crate) fn find(&self, caller: &Caller, name: &str) -> Option<&Listed> {
        self.catalog.tool(name).filter(|listed| self.policy.visible(caller, listed.tool.spec()))
    }

    /// The first half: what policy says of a call that could run.
    pub(crate) fn admit(&self, caller: &Caller, tool: &ToolName, arguments: &Value) -> Judgement {
        let listed = match self.well_formed(caller, tool, arguments) {
            Ok(listed) => listed,
            Err(misfit) => return Judgement::Refused(misfit.fault),
        };
        let (reach, idempotent) = listed.tool.reach(arguments);
        let pins = Pins { spec: listed.spec_hash.clone(), reach, idempotent };
        let verdict = self.policy.decide(caller, listed.tool.spec(), arguments);
        Judgement::Admitted { verdict, pins }
    }

    /// Known, visible, and the arguments fit the tool's schema and its own check.
    pub(crate) fn well_formed(
        &self,
        caller: &Caller,
        tool: &ToolName,
        arguments: &Value,
    ) -> Result<&Listed, IllFormed> {
        let listed = self.find(caller, tool.as_str()).ok_or_else(|| IllFormed {
            fault: Fault::new("ToolNotFoundError", format!("there is no tool `{tool}`"))
                .hint("`waypost tool ls` lists the tools"),
            misfits: Vec::new(),
        })?;
        let spec = listed.tool.spec();
        self.schemas.check(&spec.input_schema, arguments).map_err(|misfits| IllFormed {
            fault: Fault::new(
                "InputValidationError",
                format!("arguments of `{tool}` do not fit its schema: {}", sentence(&misfits)),
            )
            .hint(format!("`waypost tool show {tool}` shows the schema")),
            misfits,
        })?;
        listed
            .tool
            .check(arguments)
            .map_err(|error| IllFormed { fault: error.fault, misfits: Vec::new() })?;
        Ok(listed)
    }

    /// The second half: sends the call. One that takes too long fails, and is handed on.
    pub(crate) async fn start(self: Arc<Self>, sending: Sending) -> Started {
        let permit = match self.may_start(&sending).await {
            Ok(permit) => permit,
            Err(error) => return Started::failed(error),
        };
        let (clock, ms) = (self.clock.clone(), self.limits.call_timeout_ms);
        let message = format!("`{}` did not answer within {ms} ms", sending.tool);
        let calling = self.send(sending, permit).boxed();
        match select(calling, clock.sleep_until(clock.now().plus_ms(ms))).await {
            Either::Left((result, _)) => Started { result, late: None },
            Either::Right(((), calling)) => {
                let error = ToolError::unknown("Timeout", message)
                    .hint("raise `call_timeout_ms` in [limits], or look at the other side");
                Started { result: Err(error), late: Some(calling) }
            }
        }
    }

    /// Still visible and not denied, and a free place among the calls.
    async fn may_start(&self, sending: &Sending) -> Result<OwnedSemaphorePermit, ToolError> {
        let listed = self.still_there(sending)?;
        let spec = listed.tool.spec();
        let verdict = self.policy.decide(&sending.caller, spec, &sending.arguments);
        if let Verdict::Deny(why) = verdict
            && !is_on(Switch::DenyIgnoredAtStart)
        {
            let message = format!("policy refuses `{}`: {why}", sending.tool);
            return Err(ToolError::not_sent("PolicyDenied", message));
        }
        let permit = self.calls.clone().acquire_owned().await;
        permit.map_err(|_| ToolError::not_sent("Stopping", "the server is stopping"))
    }

    fn still_there(&self, sending: &Sending) -> Result<&Listed, ToolError> {
        self.find(&sending.caller, sending.tool.as_str()).ok_or_else(|| {
            let message = format!("tool `{}` is gone", sending.tool);
            ToolError::not_sent("ToolNotFoundError", message)
        })
    }

    /// Sends it, with a place of its own until it comes back.
    async fn send(
        self: Arc<Self>,
        sending: Sending,
        _permit: OwnedSemaphorePermit,
    ) -> Result<ToolOutput, ToolError> {
        let listed = self.still_there(&sending)?;
        let call = Call {
            id: sending.call,
            tool: sending.tool.clone(),
            arguments: sending.arguments.clone(),
            timeout_ms: self.limits.call_timeout_ms,
            output_bytes_max: self.limits.call_output_bytes_max,
            given: sending.given.clone(),
            teller: sending.teller.clone(),
        };
        match listed.tool.call(&sending.caller, &call).await? {
            ToolOutput::Value(value) => {
                self.check_output(listed.tool.spec(), &sending, value).map(ToolOutput::Value)
            }
            wants @ ToolOutput::Wants(_) => Ok(wants),
        }
    }

    fn check_output(
        &self,
        spec: &ToolSpec,
        sending: &Sending,
        output: Value,
    ) -> Result<Value, ToolError> {
        let max = self.limits.call_output_bytes_max;
        let misfit = if larger_than(&output, max) && output.to_string().len() > max {
            Some(format!("it is larger than {max} bytes"))
        } else {
            let promised = match spec.yields {
                Yields::Value => Some(&output),
                // An error keeps no promise about its structure.
                Yields::Content if output["isError"] == Value::Bool(true) => None,
                Yields::Content => Some(&output["structuredContent"]),
            };
            let promise = spec.output_schema.as_ref().zip(promised);
            let checked = promise.map(|(schema, value)| self.schemas.check(schema, value));
            checked.and_then(Result::err).map(|misfits| sentence(&misfits))
        };
        let Some(misfit) = misfit else {
            return Ok(output);
        };
        // A write whose output is wrong has happened all the same: nobody may take it for undone.
        let (how, done) = match sending.reach {
            Reach::Reads => (HowFar::Failed, ""),
            Reach::Writes | Reach::Runs => (HowFar::Unknown, "the call happened, but "),
        };
        let message = format!("{done}the output of `{}` is not as promised: {misfit}", spec.name);
        Err(ToolError { how, fault: Fault::new("OutputValidationError", message) })
    }
}

/// Why a call cannot run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IllFormed {
    /// What is wrong.
    pub(crate) fault: Fault,
    /// The faulty arguments.
    pub(crate) misfits: Vec<Misfit>,
}
