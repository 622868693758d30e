//! A tool that is called by its name, outside of MCP: `/rpc` and protocols that take the names of
//! tools as their methods. The result has MCP's shape, as JSON text.

use crate::request::server_state::ServerState;
use crate::views::content::{content, failure, words_with};
use crate::views::rows;
use engine::refusal::{Refusal, RefusalKind};
use engine::{CallReport, CallRequest, Callable, RunReport};
use kernel::tool::call::{Caller, InputRequired, ToolSpec};
use kernel::tool::schema::sentence;
use kernel::values::ids::ToolName;
use kernel::values::names::{Alphabet, inward};
use serde_json::json;
use std::iter;

/// A result as JSON.
pub struct CallResult {
    pub result: String,
    /// An earlier request with the same key did it.
    pub replayed: bool,
}

impl CallResult {
    pub fn new(result: String) -> Self {
        Self { result, replayed: false }
    }
}

/// The outcome of a call.
pub fn call_result(
    server: &ServerState,
    caller: &Caller,
    spec: &ToolSpec,
    report: CallReport,
) -> CallResult {
    match report {
        CallReport::Done(output) => CallResult::new(content(spec, &output)),
        CallReport::Repeated(output) => {
            CallResult { result: content(spec, &output), replayed: true }
        }
        CallReport::Wants(wants) => {
            server.engine.tools().forget_wants(caller, spec.name.as_str(), &wants);
            wanted(&spec.name, &wants)
        }
        CallReport::Failed(report) => failed(&spec.name, &report),
        CallReport::Pending(report) => pending(&spec.name, *report),
    }
}

/// Calls a tool for another protocol of JSON-RPC: its result as JSON, or why it is refused. A tool
/// that fails has a result that says so.
pub async fn called(
    server: &ServerState,
    caller: &Caller,
    request: CallRequest,
) -> Result<String, Refusal> {
    let spec = request.tool.spec().clone();
    match server.engine.tools().call_with(caller, request).await {
        Ok(report) => Ok(call_result(server, caller, &spec, report).result),
        Err(refusal) => match refusal.kind() {
            RefusalKind::Upstream | RefusalKind::TooMany => Ok(failure(&refusal_text(&refusal))),
            _ => Err(refusal),
        },
    }
}

/// A tool by any of its names.
pub fn find(server: &ServerState, caller: &Caller, written: &str) -> Option<Callable> {
    names(written).find_map(|name| server.engine.tools().find(caller, &name))
}

/// The names that a tool may have that is written like this: its own, the one that MCP clients use,
/// or with dots.
pub fn names(written: &str) -> impl Iterator<Item = String> {
    let dotted = move || written.contains('.').then(|| written.replace('.', "::"));
    let of_mcp = move || inward(written, Alphabet::Mcp);
    let others = iter::once_with(of_mcp).chain(iter::once_with(dotted));
    iter::once(written.to_owned()).chain(others.flatten())
}

/// The tool needs something that only a protocol with questions can bring.
fn wanted(tool: &ToolName, wants: &InputRequired) -> CallResult {
    let keys: Vec<&str> = wants.inputs.keys().map(String::as_str).collect();
    let keys = keys.join("`, `");
    CallResult::new(failure(&format!(
        "`{tool}` wants `{keys}` of its caller first; call it through `/mcp` with a client that \
         takes questions"
    )))
}

/// It became a run, and that is over without an output.
fn failed(tool: &ToolName, report: &RunReport) -> CallResult {
    let error = report.run.last_error.as_ref();
    let why = error.map_or_else(|| report.run.status.name().to_owned(), ToString::to_string);
    let hint = error.and_then(|fault| fault.hint.as_ref());
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    let message = format!("`{tool}` gave no output: {why} (run `{}`){hint}", report.run.id);
    CallResult { result: failure(&message), replayed: report.replayed }
}

/// A person is asked, or it takes longer than the caller waits.
fn pending(tool: &ToolName, report: RunReport) -> CallResult {
    let again = report.replayed;
    let run = rows::run_answer(report).run;
    let id = &run.id;
    let message = match run.asks.first() {
        Some(ask) => format!(
            "`{tool}` waits for a person: run `{id}` asks `{}`, ask `{}`; answer it with \
             `waypost inbox` or `POST /api/v1/asks/{}`, then look at `GET /api/v1/runs/{id}`",
            ask.title, ask.id, ask.id
        ),
        None => format!(
            "`{tool}` takes longer: it continues as run `{id}`; look at `GET /api/v1/runs/{id}`"
        ),
    };
    let values = json!({"run": run.id, "status": run.status, "asks": run.asks});
    CallResult { result: words_with(&message, &values), replayed: again }
}

/// A refusal in one text, with all that is wrong.
pub fn refusal_text(refusal: &Refusal) -> String {
    let mut text = refusal.message.clone();
    let missing = refusal.errors.first().is_some_and(|error| !text.contains(&error.message));
    if missing {
        text.push_str(": ");
        text.push_str(&sentence(&refusal.errors));
    }
    if let Some(hint) = &refusal.hint {
        text.push_str("; ");
        text.push_str(hint);
    }
    text
}
