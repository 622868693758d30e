//! `/api/v1/runs`: starts a run of a plan or an agent, and what can be done with one.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::body::{RawBody, parse};
use edge::request::key::{Key, replayed};
use edge::request::params::{Params, PathName, Wait, not_found};
use edge::request::run_body::{input, location, target};
use edge::request::server_state::{ServerState, Who};
use edge::request::trace::Trace;
use edge::views::rows;
use engine::refusal::RefusalCode;
use engine::{RunMetadata, RunReport, RunRequest, RunSession, RunTarget};
use kernel::definition::agent::talk_id;
use kernel::event::Occasion;
use kernel::tool::call::Caller;
use kernel::values::ids::{AgentName, SessionId};
use serde_json::json;
use wire::rest::{RunAnswer, RunBody};

/// Where in the body stood what the engine refuses.
fn pointer_of(code: &RefusalCode) -> Option<&'static str> {
    match code {
        RefusalCode::InputMisfit(_) => Some("/input"),
        RefusalCode::InvalidPlan => Some("/plan"),
        RefusalCode::BadSessionId => Some("/session"),
        _ => None,
    }
}

/// `POST /runs`.
pub(crate) async fn start(
    Who { server, caller }: Who,
    Params(wait): Params<Wait>,
    key: Key,
    Trace(trace): Trace,
    RawBody(sent): RawBody,
) -> Result<Response> {
    let wait_ms = wait.ms(&server)?;
    let mut body: RunBody = parse(&sent, server.limits().body_depth_max)?;
    let once = key.once(&sent);
    drop(sent);
    let request = match body.agent.take() {
        Some(agent) => to_agent(&server, &caller, agent, body)?,
        None => RunRequest {
            target: target(body.plan, body.plan_id)?,
            input: input(body.input),
            session: body.session.map_or(RunSession::New, RunSession::Named),
            once: None,
            about: RunMetadata::default(),
        },
    };
    let occasion = Occasion::at("rest", "/api/v1/runs");
    let about = RunMetadata { trace, occasion, ..RunMetadata::default() };
    let request = RunRequest { once, about, ..request };
    let report = server.engine.runs().start(&caller, request, wait_ms).await;
    let report = report.map_err(|refusal| Failure::in_body(refusal, pointer_of))?;
    Ok(settled_or_not(report))
}

/// `GET /runs/{id}`.
pub(crate) async fn show(Who { server, caller }: Who, name: PathName) -> Result<Json<RunAnswer>> {
    let report = server.engine.runs().report(&caller, name.run()?).await?;
    Ok(Json(rows::run_answer(report)))
}

/// `POST /runs/{id}/cancel`.
pub(crate) async fn cancel(Who { server, caller }: Who, name: PathName) -> Result<Response> {
    let report = server.engine.runs().cancel(&caller, name.run()?).await?;
    Ok(settled_or_not(report))
}

/// `POST /runs/{id}/pause`.
pub(crate) async fn pause(Who { server, caller }: Who, name: PathName) -> Result<Json<RunAnswer>> {
    let report = server.engine.runs().pause(&caller, name.run()?).await?;
    Ok(Json(rows::run_answer(report)))
}

/// `POST /runs/{id}/continue`.
pub(crate) async fn go_on(Who { server, caller }: Who, name: PathName) -> Result<Json<RunAnswer>> {
    let report = server.engine.runs().continue_run(&caller, name.run()?).await?;
    Ok(Json(rows::run_answer(report)))
}

/// `POST /runs/{id}/retry`: tries the run's failed step again.
pub(crate) async fn retry(
    Who { server, caller }: Who,
    name: PathName,
    Params(wait): Params<Wait>,
) -> Result<Response> {
    let wait_ms = wait.ms(&server)?;
    let report = server.engine.runs().retry(&caller, name.run()?, wait_ms).await?;
    Ok(settled_or_not(report))
}

/// What is said to an agent: a run of the plan by which it is talked to. A session that is named is
/// a thread, where the conversation continues.
fn to_agent(
    server: &ServerState,
    caller: &Caller,
    agent: String,
    body: RunBody,
) -> Result<RunRequest> {
    if body.plan.is_some() || body.plan_id.is_some() {
        return Err(Failure::bad_request("agent_and_plan", "the body names an agent and a plan")
            .hint("leave one out"));
    }
    let name = AgentName::from(agent);
    let engine = &server.engine;
    if engine.catalog().agent(caller, &name).is_none() {
        let agents = engine.catalog().agents(caller);
        let names = agents.iter().map(|known| known.agent.name.as_str());
        let hint = "`waypost agent ls` lists the agents";
        return Err(not_found("agent", name.as_str(), names, hint));
    }
    let said = body.input.unwrap_or_default();
    let text = said.as_str().or_else(|| said["user_request"].as_str());
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return Err(Failure::wrong_value("/input", "an agent's input is a text")
            .hint("send the text itself, or `{\"user_request\": ..}`"));
    };
    let session = match body.session {
        None => RunSession::New,
        Some(named) if named.parse::<SessionId>().is_ok() => RunSession::Named(named),
        Some(thread) => RunSession::Thread(thread),
    };
    let target = RunTarget::Plan(talk_id(&name));
    let input = json!({"user_request": text});
    Ok(RunRequest { target, input, session, once: None, about: RunMetadata::default() })
}

/// 200 for a run that is over, else 202 and where to look.
fn settled_or_not(report: RunReport) -> Response {
    let id = report.run.id;
    let over = report.run.status.is_over();
    let again = report.replayed;
    let body = Json(rows::run_answer(report));
    let response = if over {
        body.into_response()
    } else {
        (StatusCode::ACCEPTED, [(LOCATION, location(id))], body).into_response()
    };
    replayed(response, again)
}
