//! `/sessions`, `/capabilities`, `/admin/capabilities`: thin aliases of what `/api/v1` does, with
//! names and statuses that existing clients expect.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::body::{JsonBody, OptionalBody, RawBody, parse, parse_maybe};
use edge::request::cursors::Purpose;
use edge::request::key::{Key, replayed};
use edge::request::pages::PageQuery;
use edge::request::params::{Params, PathName, page};
use edge::request::run_body::{input, target};
use edge::request::server_state::{Administrator, ServerState, Who};
use edge::request::trace::Trace;
use edge::views::rows;
use engine::{RefusalCode, RunMetadata, RunReport, RunRequest, RunSession, SessionReply};
use kernel::ask::AskBody;
use kernel::contracts::{AskFilter, PageRequest, SessionRef};
use kernel::definition::plan::Plan;
use kernel::event::Occasion;
use kernel::journal::projection::SessionRow;
use kernel::session::RunStatus;
use kernel::tool::call::{Caller, ToolSpec};
use kernel::values::ids::{AskId, BadId, Space, StepId};
use serde_json::{Map, Value};
use std::sync::Arc;
use wire::plan_sessions::{
    Capabilities, Capability, CapabilityType, CreateSession, Discover, ExecutePlan, Register,
    Registered, ResumeBody, SessionCore, SessionStatus, SessionView,
};

const DISCOVER_LIMIT_DEFAULT: u64 = 10;
/// The key of the context under which clients look for what a person is asked.
const HUMAN_PROMPT: &str = "humanPromptMessage";

/// Where in the body stood what the engine refuses.
fn pointer_of(code: &RefusalCode) -> Option<&'static str> {
    match code {
        RefusalCode::BadSessionId => Some("/sessionId"),
        RefusalCode::InputMisfit(_) => Some("/initialArgs"),
        RefusalCode::InvalidPlan => Some("/plan"),
        _ => None,
    }
}

/// The same for what answers an ask.
fn resume_pointer(code: &RefusalCode) -> Option<&'static str> {
    match code {
        RefusalCode::InputMisfit(_) | RefusalCode::BadAction(_) | RefusalCode::UnsafeAction(_) => {
            Some("/input")
        }
        _ => None,
    }
}

/// The same for a plan that is registered.
fn register_pointer(code: &RefusalCode) -> Option<&'static str> {
    matches!(code, RefusalCode::InvalidPlan).then_some("/definition")
}

/// `POST /sessions`.
pub(crate) async fn create(
    Who { server, caller }: Who,
    OptionalBody(body): OptionalBody<CreateSession>,
) -> Result<(StatusCode, Json<SessionCore>)> {
    let row = server.engine.sessions().create(&caller, body.session_id).await;
    let row = row.map_err(|refusal| Failure::in_body(refusal, pointer_of))?;
    Ok((StatusCode::CREATED, Json(session_core(row))))
}

/// `GET /sessions/{id}`.
pub(crate) async fn show(
    Who { server, caller }: Who,
    PathName(name): PathName,
    Params(query): Params<PageQuery>,
) -> Result<Json<SessionView>> {
    let wanted = named(&server, &caller, &name).await?;
    let of = Purpose::history(&caller, &wanted);
    let page = page(query.limit, server.cursors.start(&of, query.cursor)?, server.limits());
    let inspection = server.engine.sessions().inspect(&caller, &wanted).await?;
    let history = server.engine.sessions().history(&caller, &wanted, &page).await?;
    let mut context = inspection.context;
    if let Some(message) = prompt(&server, &caller, &inspection.row).await? {
        context.entry(HUMAN_PROMPT).or_insert(Value::from(message));
    }
    let entries = history.items.iter().map(|item| item.entry.datum().to_value());
    Ok(Json(SessionView {
        core: session_core(inspection.row),
        context,
        history: entries.collect(),
        next_cursor: server.cursors.next(&of, history.next_cursor),
    }))
}

/// What a person is asked by a session that waits for one: the oldest open ask of its run.
async fn prompt(server: &ServerState, caller: &Caller, row: &SessionRow) -> Result<Option<String>> {
    let Some(run) = row.run.filter(|_| row.status == RunStatus::Waiting) else { return Ok(None) };
    let open = Some("open".to_owned());
    let filter = AskFilter { run: Some(run), status: open, ..AskFilter::default() };
    let asks =
        server.engine.asks().list(caller, &filter, &PageRequest { cursor: None, limit: 1 }).await?;
    let oldest = asks.items.into_iter().next();
    Ok(oldest.map(|asked| match asked.row.ask.body {
        AskBody::Clarify { message, .. }
        | AskBody::Fill { message, .. }
        | AskBody::Authorize { message, .. } => message,
        AskBody::Approve { .. } | AskBody::Fix { .. } => asked.row.ask.title,
    }))
}

/// `POST /sessions/{id}/execute-plan`.
pub(crate) async fn execute(
    Who { server, caller }: Who,
    PathName(name): PathName,
    key: Key,
    Trace(trace): Trace,
    RawBody(sent): RawBody,
) -> Result<Response> {
    let body: ExecutePlan = parse(&sent, server.limits().body_depth_max)?;
    let request = RunRequest {
        target: target(body.plan, body.plan_id)?,
        input: input(body.initial_args),
        session: RunSession::Existing(named(&server, &caller, &name).await?),
        once: key.once(&sent),
        about: RunMetadata {
            trace,
            occasion: Occasion::at("rest", "/sessions/{id}/execute-plan"),
            ..RunMetadata::default()
        },
    };
    drop(sent);
    let wait_ms = server.limits().execute_wait_ms;
    let report = server.engine.runs().start(&caller, request, wait_ms).await;
    let report = report.map_err(|refusal| Failure::in_body(refusal, pointer_of))?;
    Ok(accepted(report))
}

/// `POST /sessions/{id}/resume`.
pub(crate) async fn resume(
    Who { server, caller }: Who,
    PathName(name): PathName,
    key: Key,
    RawBody(sent): RawBody,
) -> Result<Response> {
    let body: ResumeBody = parse_maybe(&sent, server.limits().body_depth_max)?;
    let ask = body.ask_id.as_deref().map(str::parse::<AskId>).transpose();
    let ask = ask.map_err(|bad: BadId| Failure::wrong_value("/askId", bad.to_string()))?;
    let step = body.step_id.map(StepId::from);
    let resume = SessionReply { input: body.input, ask, step, once: key.once(&sent) };
    drop(sent);
    let wait_ms = server.limits().execute_wait_ms;
    let wanted = named(&server, &caller, &name).await?;
    let report = server.engine.asks().resume(&caller, &wanted, resume, wait_ms).await;
    let report = report.map_err(|refusal| Failure::in_body(refusal, resume_pointer))?;
    Ok(accepted(report))
}

/// `GET /capabilities`.
pub(crate) async fn capabilities(Who { server, caller }: Who) -> Json<Capabilities> {
    let tools = server.engine.tools().list(&caller);
    let plans = server.engine.catalog().plans(&caller);
    Json(Capabilities {
        tools: tools.iter().map(|spec| tool(spec)).collect(),
        plans: plans.iter().map(|known| plan(known)).collect(),
    })
}

/// `POST /capabilities/discover`.
pub(crate) async fn discover(
    Who { server, caller }: Who,
    JsonBody(body): JsonBody<Discover>,
) -> Json<Capabilities> {
    let limit = body.limit.unwrap_or(DISCOVER_LIMIT_DEFAULT);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX).min(server.limits().page_items_max);
    let found = server.engine.catalog().find(&caller, &body.query, limit);
    Json(Capabilities {
        tools: found.tools.iter().map(|spec| tool(spec)).collect(),
        plans: found.plans.iter().map(|known| plan(known)).collect(),
    })
}

/// `POST /admin/capabilities`.
pub(crate) async fn register(
    Administrator { server, caller }: Administrator,
    JsonBody(body): JsonBody<Register>,
) -> Result<(StatusCode, Json<Registered>)> {
    match body.kind {
        CapabilityType::Tool => Err(Failure::bad_request(
            "tool_without_code",
            "a tool that is only described cannot be called, so it is not registered",
        )
        .hint("register a plan, or write the tool as code")),
        CapabilityType::Plan if !has_plan_id(&body.definition) => {
            Err(Failure::bad_request("no_plan_id", "`definition` has no `planId`")
                .hint("a registered plan is called by its `planId`"))
        }
        CapabilityType::Plan => {
            let stored =
                server.engine.catalog().register_plan(&caller, body.definition, None).await;
            let stored = stored.map_err(|refusal| Failure::in_body(refusal, register_pointer))?;
            let id = stored.id.as_str().to_owned();
            let status = "registered".to_owned();
            Ok((StatusCode::CREATED, Json(Registered { id, status })))
        }
    }
}

/// A session by the id that this endpoint gave or took, or by its own. Ids of different endpoints
/// never meet: a session of another space is not there, whatever its own id is.
async fn named(server: &ServerState, caller: &Caller, name: &str) -> Result<SessionRef> {
    let by_key = || SessionRef::Key { key: name.into(), space: Some(Space::session()) };
    let Ok(id) = name.parse() else { return Ok(by_key()) };
    let id = SessionRef::Id(id);
    match server.engine.sessions().get(caller, &id).await {
        Ok(row) if row.key.space == Space::session() => Ok(id),
        Ok(_) => Ok(by_key()),
        Err(refusal) if refusal.code == RefusalCode::NotFound => Ok(by_key()),
        Err(refusal) => Err(refusal.into()),
    }
}

fn accepted(report: RunReport) -> Response {
    let status = SessionStatus {
        session_id: report.session.key.id.to_string(),
        status: report.run.status.plan_session_name().to_owned(),
    };
    replayed((StatusCode::ACCEPTED, Json(status)).into_response(), report.replayed)
}

fn session_core(row: SessionRow) -> SessionCore {
    SessionCore {
        session_id: row.key.id.to_string(),
        status: row.status.plan_session_name().to_owned(),
        created_at: row.created_at.rfc3339(),
        updated_at: row.updated_at.rfc3339(),
        current_plan_id: row.plan.map(|plan| plan.as_str().to_owned()),
        current_step_id: row.step.map(|step| step.as_str().to_owned()),
        last_error: row.last_error.map(rows::fault),
    }
}

fn has_plan_id(definition: &Value) -> bool {
    let id = definition.get("planId").and_then(Value::as_str);
    id.is_some_and(|id| !id.is_empty())
}

fn tool(spec: &ToolSpec) -> Capability {
    Capability {
        id: spec.name.as_str().to_owned(),
        description: spec.description.clone(),
        parameters: (*spec.input_schema).clone(),
        output_schema: schema(spec.output_schema.as_ref()),
        plan_id: None,
        start_step_id: None,
        steps: Vec::new(),
    }
}

fn plan(plan: &Plan) -> Capability {
    let steps = plan.source.get("steps").and_then(Value::as_array);
    Capability {
        id: plan.id.as_str().to_owned(),
        description: plan.description.clone(),
        parameters: schema(plan.parameters.as_ref()),
        output_schema: schema(plan.output_schema.as_ref()),
        plan_id: Some(plan.id.as_str().to_owned()),
        start_step_id: Some(plan.start.as_str().to_owned()),
        steps: steps.cloned().unwrap_or_default(),
    }
}

/// `{}` is the schema of anything.
fn schema(schema: Option<&Arc<Value>>) -> Value {
    schema.map_or_else(|| Value::Object(Map::new()), |schema| (**schema).clone())
}
