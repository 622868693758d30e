//! Pipelines: the routes at which their cases come in, `/api/v1/pipelines` with the same endpoint
//! under each name, and which paths cases took. A route is found when a request comes, for
//! pipelines can change while we serve.

use axum::Json;
use axum::extract::{FromRequestParts, Request};
use axum::http::header::{ALLOW, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result, Shape};
use edge::request::body::{parse, read};
use edge::request::cursors::Purpose;
use edge::request::key::{Key, replayed, replayed_failure};
use edge::request::pages::{PageQuery, paged};
use edge::request::params::{Params, PathName, not_found, short};
use edge::request::server_state::{ServerState, Shared, Who};
use edge::request::trace;
use edge::views::content::whole;
use edge::views::rows;
use engine::{CaseReport, RunReport, SubmitOptions};
use kernel::definition::pipeline::{BadCase, Case, Pipeline};
use kernel::event::Occasion;
use kernel::session::RunStatus;
use kernel::tool::call::Caller;
use kernel::tool::schema::Misfit;
use kernel::values::ids::{PipelineName, SessionId};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wire::rest::{Page, PipelineAnswer, PipelineStats, PipelineSummary};

/// What to do about a body that is no case at all.
const AN_OBJECT: &str = "send the case as a JSON object";

/// `GET /pipelines`, by name.
pub(crate) async fn list(
    Who { server, caller }: Who,
    Params(query): Params<PageQuery>,
) -> Result<Json<Page<PipelineSummary>>> {
    let pipelines = server.engine.catalog().pipelines(&caller);
    let of = Purpose::of(&caller, "/api/v1/pipelines");
    let show = |known: Arc<Pipeline>| rows::pipeline(&known);
    paged(&server, &of, pipelines, query, |known| known.name.as_str(), show)
}

/// `GET /pipelines/{name}`.
pub(crate) async fn show(
    Who { server, caller }: Who,
    PathName(name): PathName,
) -> Result<Json<PipelineAnswer>> {
    let pipeline = named(&server, &caller, &name)?;
    Ok(Json(rows::pipeline_answer(&pipeline)))
}

/// `GET /pipelines/{name}/stats`.
pub(crate) async fn stats(
    Who { server, caller }: Who,
    PathName(name): PathName,
) -> Result<Json<PipelineStats>> {
    let pipeline = named(&server, &caller, &name)?;
    let rows = server.engine.cases().tallies(&caller, &pipeline.name).await?;
    let chars_max = server.limits().tally_reason_chars_max;
    Ok(Json(rows::pipeline_stats(&pipeline, rows, chars_max)))
}

/// `POST /pipelines/{name}/cases`: what the pipeline's own route does.
pub(crate) async fn submit(
    Who { server, caller }: Who,
    PathName(name): PathName,
    request: Request,
) -> Result<Response> {
    let pipeline = named(&server, &caller, &name)?;
    taken(&server, &caller, &pipeline, request).await
}

/// A request at a pipeline's route.
pub async fn serve(
    server: &Shared,
    caller: &Caller,
    pipeline: &Arc<Pipeline>,
    request: Request,
) -> Result<Response> {
    if request.method() != Method::POST {
        let message = format!("`{}` is not understood at `{}`", request.method(), pipeline.route);
        return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
            .hint("use POST")
            .header(ALLOW, HeaderValue::from_static("POST"))
            .shaped(Shape::Plain));
    }
    taken(server, caller, pipeline, request).await.map_err(|failure| failure.shaped(Shape::Plain))
}

fn named(server: &ServerState, caller: &Caller, name: &str) -> Result<Arc<Pipeline>> {
    let found = server.engine.catalog().pipeline(caller, &PipelineName::from(name));
    found.ok_or_else(|| {
        let pipelines = server.engine.catalog().pipelines(caller);
        let names = pipelines.iter().map(|known| known.name.as_str());
        not_found("pipeline", name, names, "`GET /api/v1/pipelines` lists the pipelines")
    })
}

/// Takes a case in, and answers with the outcome.
async fn taken(
    server: &Shared,
    caller: &Caller,
    pipeline: &Arc<Pipeline>,
    request: Request,
) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    let key = Key::from_request_parts(&mut parts, server).await?;
    let trace = trace::of(&parts.headers);
    let sent = read(server, body).await?;
    // A body may take its time, and pipelines can change meanwhile.
    let pipeline = &named(server, caller, pipeline.name.as_str())?;
    let body = object(&sent, server.limits().body_depth_max)?;
    let case = pipeline.admit(&body).map_err(refused)?;
    let options = SubmitOptions {
        wait_ms: pipeline.request_timeout_ms,
        once: key.once(&sent),
        trace,
        occasion: Occasion::at("pipeline", pipeline.route.clone()),
    };
    drop(sent);
    let road = CasePath::by(case.handler.is_some());
    let told = CaseView { pipeline, id: case_id(&case, pipeline), road };
    let report = server.engine.cases().submit(caller, pipeline, case, options).await?;
    told.report(opened(server, caller, report).await)
}

/// The same with a whole answer: a client of this endpoint knows nothing of blobs.
async fn opened(server: &ServerState, caller: &Caller, report: CaseReport) -> CaseReport {
    let mut report = match report {
        CaseReport::Ran(report) => report,
        CaseReport::Waits { .. } | CaseReport::Late(_) => return report,
    };
    if let Some(answer) = report.run.answer.take() {
        let engine = &server.engine;
        let mut answer = whole(engine, caller, answer).await;
        if let Some(result) = answer.get_mut("result") {
            *result = whole(engine, caller, result.take()).await;
        }
        report.run.answer = Some(answer);
    }
    CaseReport::Ran(report)
}

/// A body as an object. Whatever else it is, is one mistake to a client of this endpoint.
fn object(sent: &[u8], depth_max: usize) -> Result<Value> {
    let failure = match parse::<Map<String, Value>>(sent, depth_max) {
        Ok(body) => return Ok(Value::Object(body)),
        Err(failure) => failure,
    };
    let hint = match failure.code() {
        "too_deep" => return Err(failure),
        "malformed_json" => failure.message().to_owned(),
        _ => AN_OBJECT.to_owned(),
    };
    Err(Failure::bad_request(failure.code(), BadCase::NoObject.to_string()).hint(hint))
}

/// Why a body is no case of this pipeline.
fn refused(bad: BadCase) -> Failure {
    let (code, hint, fields) = match &bad {
        BadCase::NoObject => ("wrong_shape", AN_OBJECT, Vec::new()),
        BadCase::Missing(fields) => {
            ("missing_fields", "send a value that is not null", fields.clone())
        }
        BadCase::BadId(field) => ("bad_case_id", "send a short text", vec![field.clone()]),
    };
    let wrong = match &bad {
        BadCase::Missing(_) => "missing",
        BadCase::NoObject | BadCase::BadId(_) => "not usable as an id",
    };
    let misfit = |field: &String| Misfit {
        pointer: format!("/{}", field.replace('~', "~0").replace('/', "~1")),
        message: wrong.to_owned(),
    };
    let errors = fields.iter().map(misfit).collect();
    Failure::bad_request(code, bad.to_string()).hint(hint).errors(errors)
}

/// The case's id, as its body has it: a number stays one.
fn case_id(case: &Case, pipeline: &Pipeline) -> Value {
    case.input.get(&pipeline.schema.case_id_field).cloned().unwrap_or_else(|| json!(case.id))
}

/// Which path a case takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CasePath {
    Deterministic,
    Agent,
}

impl CasePath {
    fn by(deterministic: bool) -> Self {
        if deterministic { CasePath::Deterministic } else { CasePath::Agent }
    }

    fn name(self) -> &'static str {
        match self {
            CasePath::Deterministic => "deterministic",
            CasePath::Agent => "agent",
        }
    }
}

/// Whether it asks a person: what a rule holds is no one's to answer yet.
fn is_asking(report: &RunReport) -> bool {
    report.asks.iter().any(|asked| asked.row.ask.held.is_none())
}

/// What is shown of a case.
struct CaseView<'a> {
    pipeline: &'a Pipeline,
    id: Value,
    road: CasePath,
}

impl CaseView<'_> {
    fn report(self, report: CaseReport) -> Result<Response> {
        match report {
            CaseReport::Ran(report) => self.ran(report),
            // An earlier request began it, for another reason perhaps.
            CaseReport::Waits { report, deterministic } => {
                let road = CasePath::by(deterministic);
                Ok(CaseView { road, ..self }.pending(report))
            }
            // Part of it asks already while another part still works.
            CaseReport::Late(Some(report)) if is_asking(&report) => Ok(self.pending(report)),
            CaseReport::Late(report) => Err(self.late(report.as_ref())),
        }
    }

    fn ran(self, report: RunReport) -> Result<Response> {
        match report.run.status {
            RunStatus::Completed => Ok(self.answered(report)),
            RunStatus::Waiting | RunStatus::Paused => Ok(self.pending(report)),
            RunStatus::Running => Err(self.late(Some(&report))),
            RunStatus::Stuck => Err(stuck(&report)),
            RunStatus::Failed | RunStatus::Cancelled => Err(over(&report)),
        }
    }

    /// 200 with the answer. An agent that a limit stopped is one too, and says so.
    fn answered(self, report: RunReport) -> Response {
        let stopped = report.run.stopped.as_deref().filter(|_| self.road == CasePath::Agent);
        let answer = match stopped {
            Some(limit) => self.with_id(json!({
                "status": "error", "path": self.road.name(), "reason": stopped_by(limit),
            })),
            None => report.run.answer.unwrap_or_default(),
        };
        replayed(pretty(StatusCode::OK, &answer), report.replayed)
    }

    /// 202 with the ask that someone has to answer first.
    fn pending(self, report: RunReport) -> Response {
        let RunReport { run, session, asks, replayed: again, .. } = report;
        let mut body = self.with_id(json!({"status": "pending", "path": self.road.name()}));
        if let Some(asked) = asks.into_iter().next() {
            body["ask"] = json!(rows::ask(asked, Some(&run.plan)));
        }
        let mut response = pretty(StatusCode::ACCEPTED, &body);
        response.headers_mut().insert(LOCATION, location(session.id));
        replayed(response, again)
    }

    /// 504: the request's time is over, whatever its run does.
    fn late(&self, goes_on: Option<&RunReport>) -> Failure {
        let ms = self.pipeline.request_timeout_ms;
        let message = format!("case `{}` was not done within {ms} ms", short(&words(&self.id)));
        let failure = Failure::new(StatusCode::GATEWAY_TIMEOUT, "timeout", message);
        match goes_on {
            Some(report) => {
                let hint = "it continues: look at `Location`, and do not send it again";
                placed(failure.hint(hint), report)
            }
            None => {
                failure.hint("it did not begin, for others of this case go first; send it again")
            }
        }
    }

    fn with_id(&self, mut body: Value) -> Value {
        body[&self.pipeline.schema.case_id_field] = self.id.clone();
        body
    }
}

/// A step failed, and the case is left as it is until a person says what to do.
fn stuck(report: &RunReport) -> Failure {
    let fault = report.run.last_error.as_ref();
    let message = fault.map_or("a step of the case failed", |fault| fault.message.as_str());
    let asks: Vec<Value> = report
        .asks
        .iter()
        .map(|asked| json!({"askId": asked.row.ask.id, "kind": asked.row.ask.body.kind()}))
        .collect();
    let hint = match report.asks.first().map(|asked| asked.row.ask.id) {
        Some(ask) => {
            format!("say what to do: `waypost inbox show {ask}`, or POST /api/v1/asks/{ask}")
        }
        None => "look at the session in `Location`".to_owned(),
    };
    let failure = Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "run_stuck", message).hint(hint);
    let fault = fault.map(|fault| fault.name.as_str());
    let detail = json!({"run": report.run.id, "fault": fault, "asks": asks});
    placed(failure.detail(detail), report)
}

/// The case is over without an answer.
fn over(report: &RunReport) -> Failure {
    let is_cancelled = report.run.status == RunStatus::Cancelled;
    let (code, usual) = match is_cancelled {
        true => ("run_cancelled", "the case was cancelled"),
        false => ("run_failed", "the case failed"),
    };
    let fault = report.run.last_error.as_ref();
    let message = fault.map_or(usual, |fault| fault.message.as_str());
    let detail = json!({"run": report.run.id, "fault": fault.map(|fault| fault.name.as_str())});
    let failure = Failure::new(StatusCode::INTERNAL_SERVER_ERROR, code, message).detail(detail);
    let hint = fault.and_then(|fault| fault.hint.clone());
    placed(failure.maybe_hint(hint), report)
}

/// A failure that says where its case is, and whether an earlier request met it.
fn placed(failure: Failure, report: &RunReport) -> Failure {
    let failure = failure.header(LOCATION, location(report.session.id));
    replayed_failure(failure, report.replayed)
}

/// What stopped an agent, in words.
fn stopped_by(limit: &str) -> String {
    let what = match limit {
        "steps" => "Step limit reached",
        "time" => "Time limit reached",
        "tokens" => "Token limit reached",
        "money" => "Cost limit reached",
        "repeats" => "Repetition limit reached",
        "length" => "Answer was cut off",
        "refused" => "Model refused",
        other => return format!("Limit `{other}` reached (safety stop)"),
    };
    format!("{what} (safety stop)")
}

/// A value as it is named in a sentence.
fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Where a case can be looked at.
fn location(session: SessionId) -> HeaderValue {
    // An id is plain ASCII; nothing in it can be refused.
    let path = format!("/api/v1/sessions/{session}");
    HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/"))
}

/// JSON as people read it: two spaces a level.
fn pretty(status: StatusCode, body: &Value) -> Response {
    // Cannot fail: the keys of a `Value` are texts.
    let text = serde_json::to_string_pretty(body).unwrap_or_default();
    let kind = HeaderValue::from_static("application/json");
    (status, [(CONTENT_TYPE, kind)], text).into_response()
}

#[cfg(test)]
mod tests;
