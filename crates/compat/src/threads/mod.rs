//! `/run`, `/resume` and `/health-check`: conversations with agents. A thread is a session in a
//! space of its own, a request in it a run of an agent.

mod replies;
mod follow;

use axum::Json;
use axum::http::header::{ACCEPT, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::body::{RawBody, parse};
use edge::request::key::{Key, replayed};
use edge::request::params::{Params, Wait, short};
use edge::request::run_body::location;
use edge::request::server_state::{ServerState, Who};
use edge::request::trace;
use edge::views::threads;
use engine::refusal::{ActiveRun, Refusal, RefusalCode, RefusalKind};
use engine::{Engine, IdempotencyKey, RunReport, ThreadMessage};
use follow::ThreadStream;
use kernel::ask::{Ask, AskBody};
use kernel::contracts::{AskFilter, PageRequest, SessionAsk, SessionRef};
use kernel::event::Occasion;
use kernel::session::RunStatus;
use kernel::tool::call::Caller;
use kernel::values::ids::{AgentName, RunId, Space};
use serde_json::{Value, json};
use wire::conversations::{ResumeThread, RunThread, ThreadStatus};

/// Where in the body stood what the engine refuses.
fn pointer_of(code: &RefusalCode) -> Option<&'static str> {
    match code {
        RefusalCode::BadSessionId => Some("/thread_id"),
        RefusalCode::AgentNeeded(_) => Some("/agent"),
        RefusalCode::InputMisfit(_) => Some("/elicitation_responses"),
        RefusalCode::FeedbackMissing(_) | RefusalCode::EditRefused => Some("/approvals"),
        _ => None,
    }
}

/// How long a request waits for a look at a login that is under way.
const LOOK_WAIT_MS: u64 = 10_000;

const EVENTS: &str = "text/event-stream";

/// `GET /health-check`.
pub(crate) async fn health() -> Json<&'static str> {
    Json("Server is healthy")
}

/// `POST /run`.
pub(crate) async fn run(
    Who { server, caller }: Who,
    Params(wait): Params<Wait>,
    key: Key,
    headers: HeaderMap,
    RawBody(sent): RawBody,
) -> Result<Response> {
    let wait_ms = wait.ms_or(&server, server.limits().execute_wait_ms)?;
    let body: RunThread = parse(&sent, server.limits().body_depth_max)?;
    if body.user_request.trim().is_empty() {
        return Err(Failure::wrong_value("/user_request", "`user_request` says nothing")
            .hint("say what you want, in words"));
    }
    let agent = body.agent.as_deref().map(AgentName::from);
    let agent = agent.or_else(|| server.default_agent(&caller.realm));
    let saying = ThreadMessage {
        agent: agent.as_ref(),
        thread: &body.thread_id,
        text: &body.user_request,
        once: key.once(&sent),
        trace: trace::of(&headers),
        occasion: Occasion::at("run", "/run"),
    };
    drop(sent);
    if takes_events(&headers) {
        // Listened to before it begins, so that nothing is missed.
        let ear = ThreadStream::open(&server, &caller, &body.thread_id).await?;
        let report = say(&server.engine, &caller, saying, 0).await?;
        return Ok(ear.tell(server, &report));
    }
    answered(&server, &caller, say(&server.engine, &caller, saying, wait_ms).await?)
}

/// `POST /resume`.
pub(crate) async fn resume(
    Who { server, caller }: Who,
    Params(wait): Params<Wait>,
    key: Key,
    headers: HeaderMap,
    RawBody(sent): RawBody,
) -> Result<Response> {
    let wait_ms = wait.ms_or(&server, server.limits().execute_wait_ms)?;
    let body: ResumeThread = parse(&sent, server.limits().body_depth_max)?;
    let (thread, given) = replies::thread_and_list(body)?;
    let asks = asks(&server, &caller, &thread).await?;
    let replies = replies::read(&thread, given, &asks);
    let session = session(&thread);
    let once = key.once(&sent);
    drop(sent);
    let ear = match takes_events(&headers) {
        true => Some(ThreadStream::open(&server, &caller, &thread).await?),
        false => None,
    };
    let wait_ms = if ear.is_some() { 0 } else { wait_ms };
    let report = match replies {
        Ok(replies) => {
            let report =
                server.engine.asks().reply_all(&caller, &session, replies, once, wait_ms).await;
            report.map_err(|refusal| Failure::in_body(refusal, pointer_of))?
        }
        Err(failure) => repeated(&server, &caller, &session, once, wait_ms).await.ok_or(failure)?,
    };
    match ear {
        Some(ear) => Ok(ear.tell(server, &report)),
        None => answered(&server, &caller, report),
    }
}

/// The outcome of the very same request before, if it has a key: what it answered may have been
/// asked by an older run, and no one asks it any more.
async fn repeated(
    server: &ServerState,
    caller: &Caller,
    session: &SessionRef,
    once: Option<IdempotencyKey>,
    wait_ms: u64,
) -> Option<RunReport> {
    let once = Some(once?);
    // It answers nothing: either it is a repeat, or it is refused.
    let replies = Vec::new();
    server.engine.asks().reply_all(caller, session, replies, once, wait_ms).await.ok()
}

fn session(thread: &str) -> SessionRef {
    SessionRef::Key { key: thread.into(), space: Some(Space::thread()) }
}

fn takes_events(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.any(|value| value.contains(EVENTS))
}

/// Says something in a thread.
async fn say(
    engine: &Engine,
    caller: &Caller,
    saying: ThreadMessage<'_>,
    wait_ms: u64,
) -> Result<RunReport> {
    let thread = saying.thread;
    let said = engine.threads().say(caller, saying.clone(), wait_ms).await;
    let said = match said {
        Err(refusal) => match look_under_way(&refusal) {
            Some(run) => {
                // A login gives way to what is said now, once no one looks at it any more.
                engine.runs().settled(caller, run, LOOK_WAIT_MS).await?;
                engine.threads().say(caller, saying, wait_ms).await
            }
            None => Err(refusal),
        },
        said => said,
    };
    said.map_err(|refusal| match &refusal.code {
        RefusalCode::RunActive(active) => busy(thread, active),
        _ => Failure::in_body(refusal, pointer_of),
    })
}

/// The run of a thread that only waits for a login, and is looking this moment whether that is
/// done.
fn look_under_way(refusal: &Refusal) -> Option<RunId> {
    let RefusalCode::RunActive(active) = &refusal.code else { return None };
    let is_login = |ask: &Ask| matches!(ask.body, AskBody::Authorize { .. });
    let only_logins = !active.asks.is_empty() && active.asks.iter().all(is_login);
    (only_logins && active.status == RunStatus::Running).then_some(active.run)
}

/// A thread does one thing at a time.
fn busy(thread: &str, active: &ActiveRun) -> Failure {
    let run = active.run;
    let (what, first) = match active.asks.is_empty() {
        false => ("waits for an answer", "answer it with POST /resume"),
        true => ("is still at work", "wait for it"),
    };
    let message = format!("thread `{}` {what}", short(thread));
    let hint = format!("{first}, give it up with POST /api/v1/runs/{run}/cancel, or use another");
    let detail = active.detail();
    Failure::new(StatusCode::CONFLICT, "thread_busy", message).hint(hint).detail(detail)
}

/// The asks of a thread's latest run, open and closed.
async fn asks(server: &ServerState, caller: &Caller, thread: &str) -> Result<Vec<SessionAsk>> {
    let engine = &server.engine;
    let row =
        engine.sessions().get(caller, &session(thread)).await.map_err(|refusal| {
            match refusal.kind() {
                RefusalKind::NotFound => {
                    Refusal::not_found("thread", short(thread)).hint("POST /run begins one")
                }
                _ => refusal,
            }
        })?;
    let Some(run) = row.run else { return Ok(Vec::new()) };
    let filter = AskFilter { run: Some(run), ..AskFilter::default() };
    let mut page = PageRequest { cursor: None, limit: server.limits().page_items_max };
    let mut asks = Vec::new();
    // As many as a run has: its agent's limits bound them.
    loop {
        let found = engine.asks().list(caller, &filter, &page).await?;
        asks.extend(found.items);
        page.cursor = found.next_cursor;
        if page.cursor.is_none() {
            return Ok(asks);
        }
    }
}

/// 200 for what is done, 202 for all that continues.
fn answered(server: &ServerState, caller: &Caller, report: RunReport) -> Result<Response> {
    let run = report.run.id;
    let again = report.replayed;
    let answer = threads::answer(&report, |asked| server.engine.asks().may_answer(caller, asked))?;
    let response = match answer.status {
        ThreadStatus::Success => Json(answer).into_response(),
        _ => {
            let location = [(LOCATION, location(run))];
            (StatusCode::ACCEPTED, location, Json(answer)).into_response()
        }
    };
    Ok(replayed(response, again))
}

/// A refusal that names one value of the body.
fn wrong(code: &'static str, pointer: String, message: String) -> Failure {
    Failure::bad_request(code, message).at(pointer)
}

/// A conflict with where the thread stands.
fn conflict(code: &'static str, message: String, detail: Value) -> Failure {
    let detail = json!({"asks": detail});
    Failure::new(StatusCode::CONFLICT, code, message).detail(detail)
}
