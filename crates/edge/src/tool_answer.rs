//! A tool that is called directly over HTTP: its output, or a run that goes on or waits for a
//! person, or why there is neither.

use crate::problem::{Failure, Result};
use crate::record_tools;
use crate::request::key::{replayed, replayed_failure};
use crate::request::run_body::location;
use crate::request::server_state::ServerState;
use crate::views::rows;
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use engine::refusal::Refusal;
use engine::{CallReport, CallRequest, RunReport};
use kernel::tool::call::{Caller, InputRequired};
use kernel::values::ids::{RunId, ToolName};
use serde_json::{Value, json};
use wire::rest::{PendingCall, RunAnswer};

/// What came of a call.
pub enum ToolAnswer {
    Done {
        output: Value,
        /// An earlier request with the same key did it.
        replayed: bool,
    },
    /// A person is asked, or it takes longer than the caller waits.
    Pending(Box<PendingAnswer>),
}

/// A call that became a run.
pub struct PendingAnswer {
    run: RunId,
    body: PendingCall,
    replayed: bool,
}

impl IntoResponse for PendingAnswer {
    fn into_response(self) -> Response {
        let headers = [(LOCATION, location(self.run))];
        let response = (StatusCode::ACCEPTED, headers, Json(self.body)).into_response();
        replayed(response, self.replayed)
    }
}

impl ToolAnswer {
    /// As a response: `show` says how an output is answered.
    pub fn respond(self, show: impl FnOnce(Value) -> Response) -> Response {
        match self {
            ToolAnswer::Done { output, replayed: again } => replayed(show(output), again),
            ToolAnswer::Pending(pending) => pending.into_response(),
        }
    }
}

/// Calls a tool through the gate. How a refusal is told that is about no fault of records, the
/// endpoint says.
pub async fn call(
    server: &ServerState,
    caller: &Caller,
    request: CallRequest,
    refused: fn(Refusal) -> Failure,
) -> Result<ToolAnswer> {
    let tool = request.tool.name().clone();
    let report = server.engine.tools().call_with(caller, request).await;
    let report = report.map_err(|refusal| {
        let of_records = record_tools::failure_of(&tool, refusal.fault.as_deref());
        of_records.unwrap_or_else(|| refused(refusal))
    })?;
    match report {
        CallReport::Done(output) => Ok(ToolAnswer::Done { output, replayed: false }),
        CallReport::Repeated(output) => Ok(ToolAnswer::Done { output, replayed: true }),
        CallReport::Wants(wants) => {
            server.engine.tools().forget_wants(caller, tool.as_str(), &wants);
            Err(wanted(&tool, &wants))
        }
        CallReport::Failed(report) => Err(failed(&tool, &report)),
        CallReport::Pending(report) => {
            let id = report.run.id;
            let again = report.replayed;
            let RunAnswer { run, session } = rows::run_answer(*report);
            let ask = run.asks.first().cloned();
            let body = PendingCall { run, session, ask };
            Ok(ToolAnswer::Pending(Box::new(PendingAnswer { run: id, body, replayed: again })))
        }
    }
}

/// The tool reads and needs something first: a read has no run in which a person could be asked.
fn wanted(tool: &ToolName, wants: &InputRequired) -> Failure {
    let keys: Vec<&str> = wants.inputs.keys().map(String::as_str).collect();
    let message = format!("`{tool}` wants `{}` of its caller first", keys.join("`, `"));
    Failure::new(StatusCode::CONFLICT, "input_wanted", message)
        .hint("call it in a plan, where a person is asked, or through `/mcp`")
        .detail(json!({"wants": wants.inputs}))
}

/// It became a run, and that is over without an output.
fn failed(tool: &ToolName, report: &RunReport) -> Failure {
    let error = report.run.last_error.as_ref();
    let failure = record_tools::failure_of(tool, error).unwrap_or_else(|| {
        let why = error.map_or_else(|| report.run.status.name().to_owned(), ToString::to_string);
        let message = format!("`{tool}` gave no output: {why}");
        Failure::new(StatusCode::BAD_GATEWAY, "tool_failed", message)
            .detail(json!({"run": report.run.id, "status": report.run.status}))
            .maybe_hint(error.and_then(|fault| fault.hint.clone()))
            .fault(error)
    });
    replayed_failure(failure, report.replayed)
}
