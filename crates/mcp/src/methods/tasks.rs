//! Tasks: the extension by which a client comes back to a call. A task is a run, under the run's
//! id; what it waits for is answered here or anywhere else that asks are answered. Where its call
//! is a task of another server, the client sees all that this one asks for, by that server's keys.

use crate::answer::{AnswerResult, Kind, Outcome};
use crate::calls::active_call::{takes_tasks, tasks_needed};
use crate::calls::elicit::{self, ElicitError, ElicitOutcome};
use crate::calls::input_required::{Retry, responses};
use crate::calls::pending_run::why;
use crate::calls::result::{self, TaskStatus, not_now, trouble};
use crate::calls::run_input::{is_closed, matching_responses, wanted_in_parts};
use crate::exchange::Exchange;
use edge::views::content::whole;
use engine::refusal::{RefusalCode, RefusalKind};
use engine::{Engine, RunReport};
use kernel::ask::{AskStatus, Reply};
use kernel::contracts::SessionAsk;
use kernel::session::RunStatus;
use kernel::tool::call::{InputResponses, RawFailure};
use kernel::values::ids::{AskId, RunId};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use wire::jsonrpc::{INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError};

/// How much of an id that no one knows is repeated.
const ID_CHARS_MAX: usize = 80;
/// How often answers are given to a call while someone else answers it as well.
const GIVE_TRIES: u32 = 4;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskParams {
    task_id: String,
    #[serde(flatten)]
    retry: Retry,
}

/// `tasks/get`: where a task stands, with its result, its error, or what it asks for.
pub(crate) async fn get(exchange: Exchange) -> AnswerResult {
    let (report, _) = find(&exchange).await?;
    let engine = &exchange.mcp.server.engine;
    let requests = requests(&exchange, &report).await?;
    let raw_failure = engine.runs().own_words(&report).await.map_err(trouble)?;
    // A task runs without its client: what it could not be asked for is explained in words.
    let raw_failure =
        raw_failure.filter(|raw_failure| !matches!(raw_failure, RawFailure::Lacks(_)));
    let status = match &raw_failure {
        // An error of the protocol is no result.
        Some(RawFailure::Error(_)) => TaskStatus::Failed,
        Some(RawFailure::Result(_) | RawFailure::Lacks(_) | RawFailure::Reply(_)) | None => {
            TaskStatus::of(&report, requests.len())
        }
    };
    let mut task = result::task(engine, &exchange.caller, &report, status);
    match status {
        TaskStatus::InputRequired => task["inputRequests"] = Value::Object(requests),
        TaskStatus::Failed => {
            task["error"] = match raw_failure {
                Some(RawFailure::Error(error)) => error,
                Some(RawFailure::Result(_) | RawFailure::Lacks(_) | RawFailure::Reply(_))
                | None => error(&report),
            };
        }
        TaskStatus::Working | TaskStatus::Cancelled => {}
        TaskStatus::Completed => {
            let result =
                outcome(&exchange, report, raw_failure).await?.write(exchange.client.version);
            let task = task.to_string();
            let members = task.strip_prefix('{').and_then(|task| task.strip_suffix('}'));
            let members = format!("{},\"result\":{result}", members.unwrap_or_default());
            return Ok(Outcome::written(Kind::Complete, members));
        }
    }
    Ok(Outcome::complete(&task))
}

/// `tasks/update`: answers to what a task asks for. Keys that no one asked for are ignored, and so
/// are answers to what is decided already. If one does not fit, or cannot be passed on now, none of
/// them counts.
pub(crate) async fn update(exchange: Exchange) -> AnswerResult {
    let (report, retry) = find(&exchange).await?;
    if retry.input_responses.is_none() {
        return Err(RpcError::invalid_params("`inputResponses` is missing"));
    }
    let mut answers = Answers { replies: Vec::new(), others: Map::new() };
    for (key, answer) in responses(&retry)? {
        match own_ask(&exchange, &report, &key).await? {
            Some(found) => {
                let reply = reply(&exchange, &found, &answer)?;
                answers.replies.extend(reply.map(|reply| (found.row.ask.id, reply)));
            }
            None => {
                answers.others.insert(key, answer);
            }
        }
    }
    give(&exchange, report, &answers).await?;
    for (ask, reply) in answers.replies {
        // Not waited for: the client looks at the task again. It is durable when this returns.
        let engine = &exchange.mcp.server.engine;
        match engine.asks().reply(&exchange.caller, ask, reply, None, 0).await {
            Ok(_) => {}
            Err(refusal) if is_closed(&refusal) => {}
            Err(refusal) => return Err(trouble(refusal)),
        }
    }
    Ok(Outcome::empty())
}

/// `tasks/cancel`: ends a task. One that is over stays as it is.
pub(crate) async fn cancel(exchange: Exchange) -> AnswerResult {
    let (report, _) = find(&exchange).await?;
    match exchange.mcp.server.engine.runs().cancel(&exchange.caller, report.run.id).await {
        Ok(_) => Ok(Outcome::empty()),
        Err(refusal) if refusal.code == RefusalCode::RunOver => Ok(Outcome::empty()),
        Err(refusal) => Err(trouble(refusal)),
    }
}

/// The task that a request names, if the client takes tasks at all.
async fn find(exchange: &Exchange) -> Result<(RunReport, Retry), RpcError> {
    if !exchange.client.version.is_modern() {
        let version = exchange.client.version.name();
        let message = format!("version {version} has no tasks");
        return Err(RpcError::new(METHOD_NOT_FOUND, message));
    }
    if !takes_tasks(&exchange.client) {
        return Err(tasks_needed());
    }
    let TaskParams { task_id, retry } = exchange.params()?;
    let Ok(run) = task_id.parse::<RunId>() else { return Err(no_task(&task_id)) };
    match exchange.mcp.server.engine.runs().report(&exchange.caller, run).await {
        Ok(report) => Ok((report, retry)),
        Err(refusal) if refusal.kind() == RefusalKind::NotFound => Err(no_task(&task_id)),
        Err(refusal) => Err(trouble(refusal)),
    }
}

fn no_task(id: &str) -> RpcError {
    let id: String = id.chars().take(ID_CHARS_MAX).collect();
    RpcError::invalid_params(format!("there is no task `{id}`"))
}

/// What the client is asked for: what a call wants that takes its answers in parts, by the tool's
/// own keys; else what its caller may answer, by ask.
async fn requests(exchange: &Exchange, report: &RunReport) -> Result<Map<String, Value>, RpcError> {
    if let Some(wanted) = wanted_in_parts(exchange, report).await? {
        return Ok(wanted.asked_for(exchange).0);
    }
    let chars_max = exchange.mcp.server.limits().mcp_shown_chars_max;
    let asks = exchange.mcp.server.engine.asks();
    let request = |asked: &SessionAsk| {
        let ask = &asked.row.ask;
        let params = elicit::request_or_text(ask, &exchange.client, chars_max)?;
        Some((ask.id.to_string(), json!({"method": elicit::METHOD, "params": params})))
    };
    let own = report.asks.iter().filter(|asked| asks.may_answer(&exchange.caller, asked));
    Ok(own.filter_map(request).collect())
}

/// The answers of a client.
struct Answers {
    /// Those to open asks of the task, by ask.
    replies: Vec<(AskId, Reply)>,
    /// Those under all other keys: the tool's own, or no one's.
    others: Map<String, Value>,
}

/// What a client gives to the call of its task.
struct TaskInput {
    /// The ask that is open for what is wanted.
    ask: AskId,
    responses: InputResponses,
    /// Whether something is left to be asked for.
    is_part: bool,
}

/// Gives the call of a task what these answers say to what it wants, if it takes them in parts.
async fn give(
    exchange: &Exchange,
    mut report: RunReport,
    answers: &Answers,
) -> Result<(), RpcError> {
    if answers.others.is_empty() || !report.session.key.space.is_call() {
        return Ok(());
    }
    let engine = &exchange.mcp.server.engine;
    let caller = &exchange.caller;
    let run = report.run.id;
    let wait_ms = engine.limits().mcp_task_after_ms;
    for _ in 0..GIVE_TRIES {
        if report.run.status == RunStatus::Running {
            // It may have a part of its answers and be about to want the rest, which is here.
            report = engine.runs().settled(caller, run, wait_ms).await.map_err(trouble)?;
        }
        let Some(giving) = giving(exchange, &report, answers).await? else {
            let may_want = engine.asks().may_want(&report, &answers.others);
            if !may_want.await.map_err(trouble)? {
                return Ok(());
            }
            if report.run.status == RunStatus::Running {
                break;
            }
            // It moved since it was looked at.
            report = engine.runs().report(caller, run).await.map_err(trouble)?;
            continue;
        };
        // What is left is asked for again before the client looks at the task again, if that does
        // not take long. All else is not waited for.
        let wait_ms = if giving.is_part { wait_ms } else { 0 };
        match engine.asks().give(caller, giving.ask, giving.responses, wait_ms).await {
            Ok(_) => return Ok(()),
            // The rest of what is said here may still be wanted.
            Err(refusal) if is_closed(&refusal) => {
                report = engine.runs().report(caller, run).await.map_err(trouble)?;
            }
            Err(refusal) => return Err(trouble(refusal)),
        }
    }
    // An acknowledgement would be the last of these answers: a client answers a key once.
    let message = format!("task `{run}` moves at the moment: these answers were not taken");
    Err(not_now(message, "send them again"))
}

/// What these answers say to what the call of a task wants; none where that is nothing.
async fn giving(
    exchange: &Exchange,
    report: &RunReport,
    answers: &Answers,
) -> Result<Option<TaskInput>, RpcError> {
    let Some(wanted) = wanted_in_parts(exchange, report).await? else { return Ok(None) };
    let (_, expected) = wanted.asked_for(exchange);
    let mut responses = matching_responses(&exchange.mcp.server.engine, expected, &answers.others)?;
    if responses.inputs.is_empty() {
        return Ok(None);
    }
    let ask = wanted.ask();
    // The ask is closed with what is given: a reply to it has to go along.
    let reply = answers.replies.iter().find(|(of, _)| *of == ask);
    if let Some((key, answer)) = reply.and_then(|(_, reply)| wanted.answer_of(reply)) {
        responses.inputs.entry(key).or_insert(answer);
    }
    let is_part = responses.inputs.len() < wanted.count();
    Ok(Some(TaskInput { ask, responses, is_part }))
}

/// The result of a task that has one.
async fn outcome(
    exchange: &Exchange,
    report: RunReport,
    raw_failure: Option<RawFailure>,
) -> AnswerResult {
    let engine: &Engine = &exchange.mcp.server.engine;
    let spec = result::called(engine, &exchange.caller, &report);
    if report.run.status != RunStatus::Completed {
        return result::failed(spec.as_deref(), &report, raw_failure, exchange.client.version);
    }
    let output = report.run.answer.unwrap_or_default();
    let output = whole(engine, &exchange.caller, output).await;
    Ok(result::done(spec.as_deref(), output, exchange.client.version))
}

/// Why a task has no result.
fn error(report: &RunReport) -> Value {
    let run = report.run.id;
    let message = match &report.run.last_error {
        Some(fault) => result::in_words(fault),
        None => format!("run `{run}` failed"),
    };
    let name = report.run.last_error.as_ref().map(|fault| &fault.name);
    let data = json!({"name": name, "run": run});
    RpcError::new(INTERNAL_ERROR, message).data(data).to_value()
}

/// The ask of a task that a key names, be it open or not.
async fn own_ask(
    exchange: &Exchange,
    report: &RunReport,
    key: &str,
) -> Result<Option<SessionAsk>, RpcError> {
    let Ok(ask) = key.parse::<AskId>() else { return Ok(None) };
    match exchange.mcp.server.engine.asks().get(&exchange.caller, ask).await {
        Ok(found) => Ok((found.row.ask.run == report.run.id).then_some(found)),
        Err(refusal) if refusal.kind() == RefusalKind::NotFound => Ok(None),
        Err(refusal) => Err(trouble(refusal)),
    }
}

/// The reply to an ask that an answer is; none where it is decided already, or nothing was decided.
fn reply(
    exchange: &Exchange,
    found: &SessionAsk,
    answer: &Value,
) -> Result<Option<Reply>, RpcError> {
    if found.row.status != AskStatus::Open {
        return Ok(None);
    }
    let engine = &exchange.mcp.server.engine;
    let asked = &found.row.ask;
    let ask = asked.id;
    let unfit = |wrong: &str| {
        RpcError::invalid_params(format!("the answer to `{ask}` does not fit: {wrong}"))
    };
    let version = exchange.client.version;
    let chars_max = engine.limits().mcp_shown_chars_max;
    let reply = match elicit::read(asked, answer, version, chars_max) {
        Ok(ElicitOutcome::Reply(reply)) => reply,
        Ok(ElicitOutcome::Nothing) => return Ok(None),
        Err(ElicitError::Misfit(wrong) | ElicitError::Malformed(wrong)) => {
            return Err(unfit(&wrong));
        }
    };
    engine.asks().check(asked, &reply).map_err(|bad| unfit(&why(&bad)))?;
    Ok(Some(reply))
}
