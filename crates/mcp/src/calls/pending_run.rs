//! Calls whose runs do not end at once. A run that waits for a person asks the client's, where the
//! client can show it: in the stateless version by `input_required`, in the others by a request of
//! ours. Someone else may answer meanwhile, in the inbox; then the call continues with that.

use super::active_call::ActiveCall;
use super::elicit::{self, ElicitError, ElicitOutcome};
use super::input_required::{ROUNDS_MAX, Retry, asking, responses, tell_when_opened};
use super::result::trouble;
use super::run_input::{self, ClientAnswer, RequestState, hear, is_closed};
use crate::answer::{AnswerResult, Outcome};
use engine::refusal::{RefusalCode, RefusalKind};
use engine::{IdempotencyKey, RunReport};
use futures::future::join_all;
use kernel::ask::Ask;
use kernel::ask::reply::BadReply;
use kernel::contracts::SessionAsk;
use kernel::session::RunStatus;
use kernel::tool::call::InputResponses;
use kernel::tool::schema::sentence;
use kernel::values::canonical;
use kernel::values::ids::{AskId, ContentHash};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use wire::jsonrpc::RpcError;

/// The endpoint under which replies that come with a state are remembered.
const ROUTE: &str = "mcp/requestState";

/// What was answered so far in this request.
#[derive(Debug, Default)]
struct AnswerNotes {
    /// Answers that did not fit, and why.
    wrong: BTreeMap<AskId, String>,
    /// Asks that the person did not want to decide.
    left: BTreeSet<AskId>,
    /// How many answers did not fit.
    misfits: u32,
}

/// The outcome of one answer.
enum AnswerOutcome {
    /// The ask is decided, by this answer or another.
    Decided,
    /// The answer does not fit.
    Wrong(String),
    /// The ask stays open.
    Left,
}

impl AnswerNotes {
    fn note(&mut self, ask: AskId, taken: AnswerOutcome) {
        self.wrong.remove(&ask);
        match taken {
            AnswerOutcome::Decided => {}
            AnswerOutcome::Wrong(why) => {
                self.wrong.insert(ask, why);
                self.misfits += 1;
            }
            AnswerOutcome::Left => {
                self.left.insert(ask);
            }
        }
    }
}

/// Answers a call whose run did not end at once.
pub(crate) async fn follow(calling: &ActiveCall<'_>, report: RunReport) -> AnswerResult {
    let _attendance = calling.attend(report.run.id, InputResponses::default());
    go_on(calling, report, AnswerNotes::default()).await
}

/// Answers a call that is sent again with the state of a run that waits: gives the run the answers
/// that came, and continues with it. The same answers again change nothing.
pub(crate) async fn resume(
    calling: &ActiveCall<'_>,
    waiting: RequestState,
    retry: &Retry,
) -> AnswerResult {
    let _attendance = calling.attend(waiting.run, InputResponses::default());
    if !waiting.wanted.is_empty() {
        let report = run_input::bring(calling, waiting, retry).await?;
        return go_on(calling, report, AnswerNotes::default()).await;
    }
    let responses = responses(retry)?;
    let state = ContentHash::of(retry.request_state.as_deref().unwrap_or_default().as_bytes());
    let mut taking = Vec::new();
    for ask in &waiting.asks {
        let Some(answer) = responses.get(&ask.to_string()) else { continue };
        let key = format!("{state}/{ask}");
        let digest = canonical::digest(answer);
        let once = IdempotencyKey::new(ROUTE.to_owned(), key, digest);
        taking.push(take_stored(calling, *ask, answer, once));
    }
    // Together: each waits for the run, which may need all of them.
    let mut notes = AnswerNotes::default();
    for taken in join_all(taking).await {
        let (id, taken) = taken?;
        notes.note(id, taken);
    }
    let report = calling.now(waiting.run).await?;
    go_on(calling, report, notes).await
}

async fn go_on(
    calling: &ActiveCall<'_>,
    report: RunReport,
    mut notes: AnswerNotes,
) -> AnswerResult {
    let mut report = report;
    loop {
        match report.run.status {
            RunStatus::Completed => {
                return Ok(calling.done(report.run.answer.unwrap_or_default()).await);
            }
            RunStatus::Failed | RunStatus::Cancelled => return calling.failed(&report).await,
            RunStatus::Paused => return Ok(calling.later(&report)),
            _ if calling.is_task() || calling.became_task(&report) => {
                return Ok(calling.later(&report));
            }
            RunStatus::Waiting | RunStatus::Stuck if !report.is_moving() => {
                match ask(calling, &report, &mut notes).await? {
                    Some(outcome) => return Ok(outcome),
                    None => report = calling.now(report.run.id).await?,
                }
            }
            RunStatus::Running | RunStatus::Waiting | RunStatus::Stuck
                if calling.left_ms() == 0 =>
            {
                return Ok(calling.later(&report));
            }
            RunStatus::Running | RunStatus::Waiting | RunStatus::Stuck => {
                report = calling.wait(&report).await?;
            }
        }
    }
}

/// Asks the client for what the run waits for: the call's answer, or none once some of it is
/// decided.
async fn ask(
    calling: &ActiveCall<'_>,
    report: &RunReport,
    notes: &mut AnswerNotes,
) -> Result<Option<Outcome>, RpcError> {
    let client = &calling.exchange.client;
    let limits = calling.limits();
    let left = report.asks.iter().any(|asked| notes.left.contains(&asked.row.ask.id));
    if left || notes.misfits > ROUNDS_MAX {
        return Ok(Some(calling.unfinished(report)));
    }
    if let Some(wanted) = Box::pin(run_input::wanted(calling.exchange, report)).await? {
        return Box::pin(run_input::ask(calling, report, wanted)).await;
    }
    let shown = |asked: &SessionAsk| {
        // A caller who may not answer learns of the ask, and is not asked; nor is anyone while a
        // rule holds it.
        if asked.row.ask.held.is_some() {
            return None;
        }
        if !calling.engine().asks().may_answer(calling.caller(), asked) {
            return None;
        }
        let ask = &asked.row.ask;
        let params = elicit::request(ask, client, limits.mcp_shown_chars_max)?;
        Some(match notes.wrong.get(&ask.id) {
            Some(wrong) => elicit::again(params, wrong),
            None => params,
        })
    };
    if client.version.is_modern() {
        let requests = report.asks.iter().filter_map(|asked| {
            let request = json!({"method": elicit::METHOD, "params": shown(asked)?});
            Some((asked.row.ask.id, request))
        });
        return Ok(Some(input_required(calling, report, requests.collect())));
    }
    let mut shown = report.asks.iter().filter_map(|asked| Some((asked, shown(asked)?)));
    let Some((asked, params)) = shown.next() else {
        return Ok(Some(calling.unfinished(report)));
    };
    if let (Some(wanted), Some(id)) = (&asked.row.ask.wanted, params["elicitationId"].as_str()) {
        tell_when_opened(calling.exchange, wanted.call.tool.as_str(), &wanted.key, id);
    }
    match hear(calling, asked, elicit::METHOD, params).await {
        ClientAnswer::Answer(answer) => {
            let ask = &asked.row.ask;
            let taken = take(calling, ask, &answer, None).await?;
            notes.note(ask.id, taken);
            Ok(None)
        }
        ClientAnswer::Closed => Ok(None),
        ClientAnswer::Refused(_) | ClientAnswer::Nothing => Ok(Some(calling.unfinished(report))),
    }
}

fn input_required(
    calling: &ActiveCall<'_>,
    report: &RunReport,
    requests: BTreeMap<AskId, Value>,
) -> Outcome {
    if requests.is_empty() {
        return calling.later(report);
    }
    let asks = requests.keys().copied().collect();
    let waiting = RequestState { run: report.run.id, asks, wanted: BTreeMap::new() };
    let requests: Map<String, Value> =
        requests.into_iter().map(|(ask, request)| (ask.to_string(), request)).collect();
    asking(calling.exchange, requests, &json!(waiting), &calling.bound())
}

/// The same as `take` for an ask that is only known by its id.
async fn take_stored(
    calling: &ActiveCall<'_>,
    id: AskId,
    answer: &Value,
    once: IdempotencyKey,
) -> Result<(AskId, AnswerOutcome), RpcError> {
    let asked = calling.engine().asks().get(calling.caller(), id).await.map_err(trouble)?;
    let taken = take(calling, &asked.row.ask, answer, Some(once)).await?;
    Ok((id, taken))
}

/// Gives an ask the client's answer and waits for the run.
async fn take(
    calling: &ActiveCall<'_>,
    ask: &Ask,
    answer: &Value,
    once: Option<IdempotencyKey>,
) -> Result<AnswerOutcome, RpcError> {
    let version = calling.exchange.client.version;
    let chars_max = calling.limits().mcp_shown_chars_max;
    let reply = match elicit::read(ask, answer, version, chars_max) {
        Ok(ElicitOutcome::Reply(reply)) => reply,
        Ok(ElicitOutcome::Nothing) => return Ok(AnswerOutcome::Left),
        Err(ElicitError::Misfit(why)) => return Ok(AnswerOutcome::Wrong(why)),
        Err(ElicitError::Malformed(why)) => return Err(RpcError::invalid_params(why)),
    };
    let engine = calling.engine();
    if let Err(bad) = engine.asks().check(ask, &reply) {
        return Ok(AnswerOutcome::Wrong(why(&bad)));
    }
    match engine.asks().reply(calling.caller(), ask.id, reply, once, calling.first_ms()).await {
        Ok(_) => Ok(AnswerOutcome::Decided),
        Err(refusal) if is_closed(&refusal) => Ok(AnswerOutcome::Decided),
        Err(refusal) if refusal.code == RefusalCode::IdempotencyMismatch => {
            let message = format!("`{}` was answered otherwise with this `requestState`", ask.id);
            Err(RpcError::invalid_params(message))
        }
        Err(refusal) if refusal.kind() == RefusalKind::WrongShape => {
            Ok(AnswerOutcome::Wrong(refusal.message))
        }
        Err(refusal) => Err(trouble(refusal)),
    }
}

/// Why a reply does not fit, with the faulty values.
pub(crate) fn why(bad: &BadReply) -> String {
    match bad {
        BadReply::Misfits(misfits) => sentence(misfits),
        BadReply::OtherKind { .. } | BadReply::Calls(_) | BadReply::Action(_) => bad.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_fits_clears_what_was_wrong() {
        let mut notes = AnswerNotes::default();
        notes.note(AskId(1), AnswerOutcome::Wrong("no".to_owned()));
        assert_eq!((notes.wrong.len(), notes.misfits), (1, 1));
        notes.note(AskId(1), AnswerOutcome::Decided);
        assert_eq!((notes.wrong.len(), notes.misfits), (0, 1));
        notes.note(AskId(2), AnswerOutcome::Left);
        assert!(notes.left.contains(&AskId(2)));
    }
}
