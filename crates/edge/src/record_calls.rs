//! Calls of the tools of records, for endpoints that are made of them. They go through the gate
//! like all calls, so that the tools of a realm, its run-as, limits, approvals and the audit hold.

use crate::problem::{Failure, Result};
use crate::record_source::RecordSource;
use crate::record_tools;
use crate::request::server_state::ServerState;
use crate::tool_answer::{self, ToolAnswer};
use axum::http::StatusCode;
use engine::refusal::{Refusal, RefusalCode};
use engine::{CallRequest, Callable, IdempotencyKey, UnseenCall};
use kernel::event::Occasion;
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::fault::Fault;
use kernel::values::trace::TraceParent;
use serde_json::Value;

/// What a tool of records is asked for.
pub struct RecordCall {
    pub tool: &'static str,
    pub arguments: Value,
    /// The request's key, from which the id of the call follows.
    pub once: Option<IdempotencyKey>,
    pub trace: Option<TraceParent>,
    /// The route that is called.
    pub route: &'static str,
}

impl RecordCall {
    /// A call without a key and a trace.
    pub fn new(tool: &'static str, arguments: Value, route: &'static str) -> Self {
        Self { tool, arguments, once: None, trace: None, route }
    }
}

pub async fn call(server: &ServerState, caller: &Caller, call: RecordCall) -> Result<ToolAnswer> {
    let RecordCall { tool, arguments, once, trace, route } = call;
    let occasion = Occasion::at("rest", route);
    server.engine.tools().within_scopes(caller)?;
    let Some(found) = server.engine.tools().find(caller, tool) else {
        let unseen = UnseenCall { names: vec![tool.to_owned()], arguments, trace, occasion };
        server.engine.audits().note_unseen_tool(caller, &unseen);
        return Err(missing(server, caller, tool));
    };
    let wait_ms = server.limits().run_wait_ms;
    let request =
        CallRequest { once, trace, occasion, ..CallRequest::new(found, arguments, wait_ms) };
    tool_answer::call(server, caller, request, refused).await
}

/// Refuses a caller that may not call this tool. For what an endpoint tells of records without a
/// call: it must not tell more than the tool would.
pub fn require(server: &ServerState, caller: &Caller, tool: &'static str) -> Result<Callable> {
    server.engine.tools().within_scopes(caller)?;
    let found = server.engine.tools().find(caller, tool);
    found.ok_or_else(|| missing(server, caller, tool))
}

/// Whether this tool is one of records.
pub fn is_of_records(tool: &str) -> bool {
    record_tools::is_record_tool(tool)
}

/// What is told of records beside calls; without types there is none.
pub fn source(server: &ServerState) -> Result<&RecordSource> {
    server.records.as_ref().ok_or_else(no_types)
}

/// Why something of records is not told.
pub fn told(fault: Fault) -> Failure {
    Failure::of_record_fault(&fault).unwrap_or_else(|| {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "RecordStoreFailed", fault.message)
    })
}

/// The realm's settings leave this tool out.
pub fn not_enabled(server: &ServerState, caller: &Caller, tool: &str) -> Option<Failure> {
    let directory = server.identity.directory();
    let settings = directory.realms.0.get(&caller.realm)?;
    (!settings.enables_tool(tool)).then(|| {
        let message = format!("tool `{tool}` is not enabled for realm `{}`", caller.realm);
        Failure::new(StatusCode::FORBIDDEN, "ToolNotEnabled", message)
            .hint("add it to `enabled_tools` of the realm")
    })
}

fn missing(server: &ServerState, caller: &Caller, tool: &str) -> Failure {
    if server.records.is_none() {
        return no_types();
    }
    if let Some(failure) = not_enabled(server, caller, tool) {
        return failure;
    }
    Refusal::new(RefusalCode::Forbidden(Act::Call), format!("policy refuses `{tool}`"))
        .hint("ask an administrator of the realm")
        .into()
}

fn no_types() -> Failure {
    Refusal::new(RefusalCode::NotFound, "this server has no types of records")
        .hint("declare one in `entities/`")
        .into()
}

/// Arguments that do not fit are a bad request here, like every other mistake in one.
pub fn refused(refusal: Refusal) -> Failure {
    match refusal.code {
        RefusalCode::InputMisfit(_) => Failure::bad_request("InvalidRequest", refusal.message)
            .errors(refusal.errors)
            .maybe_hint(refusal.hint),
        _ => refusal.into(),
    }
}
