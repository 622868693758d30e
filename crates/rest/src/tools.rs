//! `/api/v1/tools`: the catalog as the caller sees it, and direct calls.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::body::{RawBody, parse_maybe};
use edge::request::cursors::Purpose;
use edge::request::key::{Key, replayed, replayed_failure};
use edge::request::pages::{PageQuery, paged};
use edge::request::params::{Params, PathName, Wait, not_found};
use edge::request::run_body::{input, location};
use edge::request::server_state::{Shared, Who};
use edge::request::trace::Trace;
use edge::views::rows;
use engine::refusal::RefusalCode;
use engine::{CallReport, CallRequest, RunReport, UnseenCall};
use kernel::event::Occasion;
use kernel::tool::call::{Caller, InputRequired, ToolSpec};
use kernel::values::ids::ToolName;
use serde_json::json;
use std::sync::Arc;
use wire::rest::{CallAnswer, CallBody, Page, PendingCall, RunAnswer, Tool};

/// Where in the body stood what the engine refuses.
fn pointer_of(code: &RefusalCode) -> Option<&'static str> {
    matches!(code, RefusalCode::InputMisfit(_)).then_some("/arguments")
}

/// `GET /tools`, by name.
pub(crate) async fn list(
    Who { server, caller }: Who,
    Params(query): Params<PageQuery>,
) -> Result<Json<Page<Tool>>> {
    let tools = server.engine.tools().callables(&caller);
    let of = Purpose::of(&caller, "/api/v1/tools");
    let show = |spec: Arc<ToolSpec>| listed(&server, &caller, &spec);
    paged(&server, &of, tools, query, |spec| spec.name.as_str(), show)
}

/// `GET /tools/{name}`.
pub(crate) async fn show(
    Who { server, caller }: Who,
    PathName(name): PathName,
) -> Result<Json<Tool>> {
    server.engine.tools().within_scopes(&caller)?;
    match server.engine.tools().find(&caller, &name) {
        Some(found) => Ok(Json(rows::tool(found.spec(), found.is_plan()))),
        None => Err(no_tool(&server, &caller, &name)),
    }
}

/// `POST /tools/{name}/call`.
pub(crate) async fn call(
    Who { server, caller }: Who,
    PathName(name): PathName,
    Params(wait): Params<Wait>,
    key: Key,
    Trace(trace): Trace,
    RawBody(sent): RawBody,
) -> Result<Response> {
    server.engine.tools().within_scopes(&caller)?;
    let wait_ms = wait.ms(&server)?;
    let body: CallBody = parse_maybe(&sent, server.limits().body_depth_max)?;
    let arguments = input(body.arguments);
    let once = key.once(&sent);
    drop(sent);
    let occasion = Occasion::at("rest", "/api/v1/tools/{name}/call");
    let Some(found) = server.engine.tools().find(&caller, &name) else {
        let failure = no_tool(&server, &caller, &name);
        let unseen = UnseenCall { names: vec![name], arguments, trace, occasion };
        server.engine.audits().note_unseen(&caller, &unseen);
        return Err(failure);
    };
    let tool = found.name().clone();
    let request = CallRequest::new(found, arguments, wait_ms);
    let request = CallRequest { once, trace, occasion, ..request };
    let report = server.engine.tools().call_with(&caller, request).await;
    match report.map_err(|refusal| Failure::in_body(refusal, pointer_of))? {
        CallReport::Done(result) => Ok(Json(CallAnswer { result }).into_response()),
        CallReport::Repeated(result) => {
            Ok(replayed(Json(CallAnswer { result }).into_response(), true))
        }
        CallReport::Wants(wants) => {
            server.engine.tools().forget_wants(&caller, tool.as_str(), &wants);
            Err(wanted(&tool, &wants))
        }
        CallReport::Failed(report) => Err(failed(&tool, &report)),
        CallReport::Pending(report) => {
            let location = location(report.run.id);
            let again = report.replayed;
            let RunAnswer { run, session } = rows::run_answer(*report);
            let ask = run.asks.first().cloned();
            let body = Json(PendingCall { run, session, ask });
            let response = (StatusCode::ACCEPTED, [(LOCATION, location)], body).into_response();
            Ok(replayed(response, again))
        }
    }
}

/// A tool as it is shown; what is no tool of the caller's is a plan.
fn listed(server: &Shared, caller: &Caller, spec: &ToolSpec) -> Tool {
    let is_plan = server.engine.tools().get(caller, spec.name.as_str()).is_none();
    rows::tool(spec, is_plan)
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
    let why = error.map_or_else(|| report.run.status.name().to_owned(), ToString::to_string);
    let message = format!("`{tool}` gave no output: {why}");
    let failure = Failure::new(StatusCode::BAD_GATEWAY, "tool_failed", message)
        .detail(json!({"run": report.run.id, "status": report.run.status}))
        .maybe_hint(error.and_then(|fault| fault.hint.clone()))
        .fault(error);
    replayed_failure(failure, report.replayed)
}

fn no_tool(server: &Shared, caller: &Caller, name: &str) -> Failure {
    let switch = server.engine.tools().switch_of(name);
    let tools = server.engine.tools().callables(caller);
    let near = tools.iter().filter(|_| switch.is_none()).map(|spec| spec.name.as_str());
    not_found("tool", name, near, switch.unwrap_or("`GET /api/v1/tools` lists the tools"))
}
