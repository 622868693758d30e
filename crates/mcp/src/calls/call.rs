//! `tools/call`: a tool, or a plan as a tool. Most calls are answered with what the tool gives; one
//! that becomes a run is answered with its outcome, with what it asks for, or with a task.

use super::active_call::{ActiveCall, Guard, Params, occasion, takes_tasks, tasks_needed};
use super::input_required::{InputOutcome, ROUNDS_MAX, Retry, gathered, opened, want};
use super::pending_run;
use super::result::{refused, words};
use super::run_input::RequestState;
use crate::answer::AnswerResult;
use crate::exchange::{Exchange, ResolvedCall};
use crate::lists;
use engine::{CallReport, Refusal, RefusalCode, UnseenCall};
use kernel::tool::call::{InputResponses, Pace, Reach};
use kernel::values::ids::RunId;
use kernel::values::trace::TraceParent;
use serde_json::Value;
use wire::jsonrpc::RpcError;

/// How much of a name that no one knows is repeated.
const NAME_CHARS_MAX: usize = 80;

/// Calls a tool.
pub(crate) async fn call(mut exchange: Exchange) -> AnswerResult {
    let (known, read) = match exchange.called.take() {
        Some(ResolvedCall { tool, params }) => (Some(tool), params),
        None => (None, None),
    };
    let mut params = match read {
        Some(plain) => Params::from(plain),
        None => exchange.params()?,
    };
    let find = || lists::find(&exchange.mcp, &exchange.caller, &params.name);
    let Some(tool) = known.or_else(find) else {
        let name = params.name.clone();
        let trace = params.trace().or(exchange.trace);
        return Err(unseen(&exchange, &name, params.split().0, trace));
    };
    if tool.spec().pace == Pace::Task && !takes_tasks(&exchange.client) {
        return Err(tasks_needed());
    }
    let calling = ActiveCall::new(&exchange, tool, &mut params)?;
    let (arguments, retry) = params.split();
    let (waiting, given) = before(&calling, &retry)?;
    let run = match &waiting {
        Some(waiting) => waiting.run,
        None => calling.engine().runs().new_id(),
    };
    let guard = Guard::new(&calling, run);
    // Most calls end at once. What is rare is large, and boxed, so that not every call moves room
    // for it around: here and below that is what the boxes are for.
    let answered = match waiting {
        Some(waiting) => Box::pin(pending_run::resume(&calling, waiting, &retry)).await,
        None => begin(&calling, run, arguments, given).await,
    };
    guard.answered();
    answered
}

/// What a call that is sent again brings along: a run that waits, or what the tool wanted.
fn before(
    calling: &ActiveCall<'_>,
    retry: &Retry,
) -> Result<(Option<RequestState>, InputResponses), RpcError> {
    if retry.input_responses.is_none() && retry.request_state.is_none() {
        return Ok((None, InputResponses::default()));
    }
    let state = opened(calling.exchange, retry, &calling.bound())?;
    match state.as_ref().and_then(RequestState::read) {
        Some(waiting) => Ok((Some(waiting), InputResponses::default())),
        None => Ok((None, gathered(calling.exchange, retry, state)?)),
    }
}

/// Calls, and calls again while the tool wants more and the client can be asked at once.
async fn begin(
    calling: &ActiveCall<'_>,
    run: RunId,
    arguments: Value,
    given: InputResponses,
) -> AnswerResult {
    let engine = calling.engine();
    let caller = calling.caller();
    let mut arguments = arguments;
    let mut given = given;
    // What only reads becomes no run, or one that is attended once it waits.
    let spec = calling.spec();
    let recorded = spec.reach != Reach::Reads && !spec.unrecorded;
    let _attendance = recorded.then(|| calling.attend(run, given.clone()));
    let mut tool = calling.tool.clone();
    for _ in 0..=ROUNDS_MAX {
        let request = calling.request(tool, run, arguments, given.clone());
        let wants = match engine.tools().call_with(caller, request).await {
            Ok(CallReport::Done(output) | CallReport::Repeated(output)) => {
                return Ok(calling.done(output).await);
            }
            Ok(CallReport::Pending(report)) => {
                return Box::pin(pending_run::follow(calling, *report)).await;
            }
            Ok(CallReport::Failed(report)) => return Box::pin(calling.failed(&report)).await,
            Ok(CallReport::Wants(wants)) => wants,
            Err(Refusal { code: RefusalCode::NotFound | RefusalCode::NoRun(_), .. }) => {
                return Err(no_tool(spec.name.as_str()));
            }
            Err(refusal) => return refused(Some(spec), refusal, calling.exchange.client.version),
        };
        let name = spec.name.as_str();
        let bound = calling.bound();
        let wanted = Box::pin(want(calling.exchange, Some(name), &wants, given, &bound)).await;
        if wanted.is_err() {
            // No one can answer: what the tool holds for the answer must not wait for it.
            engine.tools().forget_wants(caller, name, &wants);
        }
        match wanted? {
            InputOutcome::Answer(outcome) => return Ok(outcome),
            InputOutcome::Again(more) => given = more,
        }
        arguments = calling.arguments();
        // A person may have thought about it for a while: it is looked for again.
        let Some(again) = engine.tools().find(caller, name) else {
            return Err(unseen(calling.exchange, name, arguments, calling.trace));
        };
        tool = again;
    }
    let tool = &spec.name;
    Ok(words(&format!("`{tool}` still wanted more after {ROUNDS_MAX} rounds"), true))
}

/// The client gets the same answer as for a tool that does not exist; the audit knows better.
fn unseen(
    exchange: &Exchange,
    written: &str,
    arguments: Value,
    trace: Option<TraceParent>,
) -> RpcError {
    let names = lists::names(written).collect();
    let call = UnseenCall { names, arguments, trace, occasion: occasion() };
    exchange.mcp.server.engine.audits().note_unseen(&exchange.caller, &call);
    no_tool(written)
}

/// A tool that is not visible is exactly like one that does not exist.
fn no_tool(name: &str) -> RpcError {
    let name: String = name.chars().take(NAME_CHARS_MAX).collect();
    RpcError::invalid_params(format!("there is no tool `{name}`; `tools/list` names all"))
}
