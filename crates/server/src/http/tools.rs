//! `/api/v1/tools`: the catalog as the caller sees it, and direct calls.

use super::runs::{input, location};
use crate::problem::{Failure, Result};
use crate::request::body::{RawBody, parse_maybe};
use crate::request::cursors::Purpose;
use crate::request::doors::{Doors, Shared, Who};
use crate::request::key::{Key, replayed, replayed_failure};
use crate::request::params::{Params, PathName, Wait, not_found, page};
use crate::request::trace::Trace;
use crate::views::rows;
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use engine::refusal::RefusalCode;
use engine::{CallReport, CallRequest, RunReport, UnseenCall};
use kernel::event::Occasion;
use kernel::tool::call::{Caller, InputRequired, ToolSpec};
use kernel::values::ids::ToolName;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use wire::rest::{CallAnswer, CallBody, Page, PendingCall, RunAnswer, Tool};

/// `?limit=&cursor=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PageQuery {
    pub(crate) limit: Option<usize>,
    pub(crate) cursor: Option<String>,
}

/// Where in the body stood what the engine refuses.
fn place(code: &RefusalCode) -> Option<&'static str> {
    matches!(code, RefusalCode::InputMisfit(_)).then_some("/arguments")
}

/// `GET /tools`, by name.
pub(crate) async fn list(
    Who { doors, caller }: Who,
    Params(query): Params<PageQuery>,
) -> Result<Json<Page<Tool>>> {
    let tools = doors.engine.tools().callables(&caller);
    let of = Purpose::of(&caller, "/api/v1/tools");
    let show = |spec: Arc<ToolSpec>| listed(&doors, &caller, &spec);
    paged(&doors, &of, tools, query, |spec| spec.name.as_str(), show)
}

/// `GET /tools/{name}`.
pub(crate) async fn show(
    Who { doors, caller }: Who,
    PathName(name): PathName,
) -> Result<Json<Tool>> {
    doors.engine.tools().within_scopes(&caller)?;
    match doors.engine.tools().find(&caller, &name) {
        Some(found) => Ok(Json(rows::tool(found.spec(), found.is_plan()))),
        None => Err(no_tool(&doors, &caller, &name)),
    }
}

/// `POST /tools/{name}/call`.
pub(crate) async fn call(
    Who { doors, caller }: Who,
    PathName(name): PathName,
    Params(wait): Params<Wait>,
    key: Key,
    Trace(trace): Trace,
    RawBody(sent): RawBody,
) -> Result<Response> {
    doors.engine.tools().within_scopes(&caller)?;
    let wait_ms = wait.ms(&doors)?;
    let body: CallBody = parse_maybe(&sent, doors.limits().body_depth_max)?;
    let arguments = input(body.arguments);
    let once = key.once(&sent);
    drop(sent);
    let occasion = Occasion::at("rest", "/api/v1/tools/{name}/call");
    let Some(found) = doors.engine.tools().find(&caller, &name) else {
        let failure = no_tool(&doors, &caller, &name);
        let unseen = UnseenCall { names: vec![name], arguments, trace, occasion };
        doors.engine.audits().note_unseen(&caller, &unseen);
        return Err(failure);
    };
    let tool = found.name().clone();
    let request = CallRequest::new(found, arguments, wait_ms);
    let request = CallRequest { once, trace, occasion, ..request };
    let report = doors.engine.tools().call_with(&caller, request).await;
    match report.map_err(|refusal| Failure::placed(refusal, place))? {
        CallReport::Done(result) => Ok(Json(CallAnswer { result }).into_response()),
        CallReport::Repeated(result) => {
            Ok(replayed(Json(CallAnswer { result }).into_response(), true))
        }
        CallReport::Wants(wants) => {
            doors.engine.tools().forget_wants(&caller, tool.as_str(), &wants);
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
fn listed(doors: &Shared, caller: &Caller, spec: &ToolSpec) -> Tool {
    let is_plan = doors.engine.tools().get(caller, spec.name.as_str()).is_none();
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
        .maybe_hint(error.and_then(|fault| fault.hint.clone()));
    replayed_failure(failure, report.replayed)
}

/// One page of what is in memory, in order of name; the cursor is the last name of the page before,
/// sealed.
pub(super) fn paged<T, V>(
    doors: &Doors,
    of: &Purpose,
    mut items: Vec<T>,
    query: PageQuery,
    name: fn(&T) -> &str,
    show: impl Fn(T) -> V,
) -> Result<Json<Page<V>>> {
    let page = page(query.limit, doors.cursors.start(of, query.cursor)?, doors.limits());
    items.sort_by(|left, right| name(left).cmp(name(right)));
    if let Some(cursor) = &page.cursor {
        items.retain(|item| name(item) > cursor.as_str());
    }
    let more = items.len() > page.limit;
    items.truncate(page.limit);
    let last = items.last().filter(|_| more).map(|item| doors.cursors.seal(of, name(item)));
    Ok(Json(Page { items: items.into_iter().map(show).collect(), next_cursor: last }))
}

fn no_tool(doors: &Shared, caller: &Caller, name: &str) -> Failure {
    let switch = doors.engine.tools().switch_of(name);
    let tools = doors.engine.tools().callables(caller);
    let near = tools.iter().filter(|_| switch.is_none()).map(|spec| spec.name.as_str());
    not_found("tool", name, near, switch.unwrap_or("`GET /api/v1/tools` lists the tools"))
}
