//! `/api/v1/tools`: the catalog as the caller sees it, and direct calls.

use axum::Json;
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::body::{RawBody, parse_maybe};
use edge::request::cursors::Purpose;
use edge::request::key::Key;
use edge::request::pages::{PageQuery, paged};
use edge::request::params::{Params, PathName, Wait, not_found};
use edge::request::run_body::input;
use edge::request::server_state::{Shared, Who};
use edge::request::trace::Trace;
use edge::tool_answer;
use edge::views::rows;
use engine::refusal::RefusalCode;
use engine::{CallRequest, UnseenCall};
use kernel::event::Occasion;
use kernel::tool::call::{Caller, ToolSpec};
use std::sync::Arc;
use wire::rest::{CallAnswer, CallBody, Page, Tool};

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
    let request = CallRequest::new(found, arguments, wait_ms);
    let request = CallRequest { once, trace, occasion, ..request };
    let refused = |refusal| Failure::in_body(refusal, pointer_of);
    let answer = tool_answer::call(&server, &caller, request, refused).await?;
    Ok(answer.respond(|result| Json(CallAnswer { result }).into_response()))
}

/// A tool as it is shown; what is no tool of the caller's is a plan.
fn listed(server: &Shared, caller: &Caller, spec: &ToolSpec) -> Tool {
    let is_plan = server.engine.tools().get(caller, spec.name.as_str()).is_none();
    rows::tool(spec, is_plan)
}

fn no_tool(server: &Shared, caller: &Caller, name: &str) -> Failure {
    let switch = server.engine.tools().switch_of(name);
    let tools = server.engine.tools().callables(caller);
    let near = tools.iter().filter(|_| switch.is_none()).map(|spec| spec.name.as_str());
    not_found("tool", name, near, switch.unwrap_or("`GET /api/v1/tools` lists the tools"))
}
