//! Admission, the first half of the gate: the tool is there and its caller sees it, the arguments
//! fit its schema and its own check, and policy decides. What comes of it is an `AdmittedCall`.

use super::consent::Consent;
use super::{Gate, OutgoingCall, TOOL_NOT_FOUND};
use crate::catalog::registry::ListedTool;
use crate::system::panics::{caught_now, panic_fault};
use kernel::contracts::policy::{Context, Decision};
use kernel::tool::call::{Abilities, CallContext, CallReporter, Caller, Judgement, Pins, Reach};
use kernel::tool::schema::{Misfit, sentence};
use kernel::values::datum::Sources;
use kernel::values::fault::Fault;
use kernel::values::ids::{CallId, ToolName};
use serde_json::Value;
use std::sync::Arc;

/// A call that could run, with what policy decided about it: it may be denied, or need an approval.
/// Only the gate makes one. It holds what was true when the call was requested and is no leave to
/// send it: the tool may go and policy may change before that, so that `Gate::start` checks both
/// again.
pub(crate) struct AdmittedCall<'c> {
    pub(crate) caller: &'c Caller,
    pub(crate) listed: Arc<ListedTool>,
    pub(crate) arguments: Arc<Value>,
    /// Its effect with these arguments.
    pub(crate) reach: Reach,
    pub(crate) decision: Decision,
    idempotent: bool,
}

/// Why a call cannot run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IllFormed {
    pub(crate) fault: Box<Fault>,
    /// The faulty arguments.
    pub(crate) misfits: Vec<Misfit>,
}

impl From<Fault> for IllFormed {
    fn from(fault: Fault) -> Self {
        Self { fault: Box::new(fault), misfits: Vec::new() }
    }
}

impl AdmittedCall<'_> {
    pub(crate) fn into_judgement(self) -> Judgement {
        let Self { listed, reach, idempotent, decision, .. } = self;
        let pins = Pins { spec: listed.spec_hash.clone(), reach, idempotent };
        let answerers = decision.answerers();
        let Decision { verdict, version: policy, policies, .. } = decision;
        Judgement::Admitted { verdict, pins, policy, policies, answerers }
    }

    /// The call to be sent under this id, without a run and for a caller who does nothing for it.
    pub(crate) fn outgoing(&self, id: CallId) -> OutgoingCall {
        OutgoingCall {
            caller: self.caller.clone(),
            id,
            tool: self.listed.tool.spec().name.clone(),
            arguments: self.arguments.clone(),
            sources: Sources::new(),
            reach: self.reach,
            given: Arc::default(),
            can: Abilities::default(),
            teller: CallReporter::default(),
            context: CallContext::default(),
            consent: Consent::Unasked,
            value_only: false,
        }
    }
}

impl Gate {
    /// Admits a call of a tool that its caller sees.
    pub(crate) fn admit<'c>(
        &self,
        caller: &'c Caller,
        listed: Arc<ListedTool>,
        arguments: &Arc<Value>,
        context: Context<'_>,
    ) -> Result<AdmittedCall<'c>, IllFormed> {
        self.check_arguments(caller, &listed, arguments)?;
        let (reach, idempotent) = listed.tool.reach(arguments);
        let context = Context { arguments: Some(arguments), ..context };
        let decision = self.decide_call(caller, listed.tool.judged(), context);
        let arguments = arguments.clone();
        Ok(AdmittedCall { caller, listed, arguments, reach, decision, idempotent })
    }

    pub(crate) fn admit_by_name<'c>(
        &self,
        caller: &'c Caller,
        tool: &ToolName,
        arguments: &Arc<Value>,
        context: Context<'_>,
    ) -> Result<AdmittedCall<'c>, IllFormed> {
        let listed = self.known(caller, tool)?;
        self.admit(caller, listed, arguments, context)
    }

    /// Known, visible, and the arguments fit the tool's schema and its own check.
    pub(crate) fn well_formed(
        &self,
        caller: &Caller,
        tool: &ToolName,
        arguments: &Value,
    ) -> Result<Arc<ListedTool>, IllFormed> {
        let listed = self.known(caller, tool)?;
        self.check_arguments(caller, &listed, arguments)?;
        Ok(listed)
    }

    fn known(&self, caller: &Caller, tool: &ToolName) -> Result<Arc<ListedTool>, IllFormed> {
        self.find(caller, tool.as_str()).ok_or_else(|| self.unknown_tool(tool))
    }

    /// The refusal of a tool that does not exist, or not for its caller.
    pub(crate) fn unknown_tool(&self, tool: &ToolName) -> IllFormed {
        let hint = self.switch_of(tool).unwrap_or("`waypost tool ls` lists the tools");
        Fault::new(TOOL_NOT_FOUND, format!("there is no tool `{tool}`")).hint(hint).into()
    }

    /// The arguments fit the tool's schema and its own check.
    fn check_arguments(
        &self,
        caller: &Caller,
        listed: &ListedTool,
        arguments: &Value,
    ) -> Result<(), IllFormed> {
        let tool = &listed.tool.spec().name;
        caught_now(|| self.fitting(caller, listed, arguments)).unwrap_or_else(|panicked| {
            Err(panic_fault(tool, "its arguments were checked", &panicked).into())
        })
    }

    fn fitting(
        &self,
        caller: &Caller,
        listed: &ListedTool,
        arguments: &Value,
    ) -> Result<(), IllFormed> {
        let spec = listed.tool.spec();
        let tool = &spec.name;
        self.schemas.check(&spec.input_schema, arguments).map_err(|misfits| {
            let why = sentence(&misfits);
            let message = format!("arguments of `{tool}` do not fit its schema: {why}");
            let fault = Fault::new("InputValidationError", message)
                .hint(format!("`waypost tool show {tool}` shows the schema"));
            IllFormed { fault: Box::new(fault), misfits }
        })?;
        listed.tool.check(caller, arguments).map_err(|error| error.fault.into())
    }
}
