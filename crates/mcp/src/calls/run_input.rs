//! What the run of a direct call wants of the client that made it. The client is asked as if there
//! were no run: for all of it, by the tool's own keys, and its answers go to the tool as they are.
//! An ask is open in the inbox meanwhile: who answers there first is heard, and it is what is left
//! when the client is gone.

use super::active_call::ActiveCall;
use super::elicit::opens_pages;
use super::input_required::{
    ExpectedAnswer, FormValidator, Retry, asked_for, asking, judge, possible, request, responses,
    tell_when_opened,
};
use super::result::{not_now, trouble};
use crate::answer::Outcome;
use crate::exchange::Exchange;
use crate::messages::outbox::AskError;
use engine::refusal::{Refusal, RefusalCode};
use engine::{Engine, RunReport};
use futures::future::{Either, select};
use kernel::ask::Reply;
use kernel::contracts::SessionAsk;
use kernel::session::answer_to;
use kernel::tool::call::{InputRequest, InputRequired, InputResponses};
use kernel::values::ids::{AskId, RunId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::pin::pin;
use wire::jsonrpc::RpcError;

/// What a client carries while its person answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RequestState {
    pub(crate) run: RunId,
    /// The asks that were shown, or the one that is open for what is wanted.
    pub(crate) asks: Vec<AskId>,
    /// What its call wants, by the tool's own keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) wanted: BTreeMap<String, ExpectedAnswer>,
}

impl RequestState {
    /// What an opened state says, if it is one of a run that waits.
    pub(crate) fn read(state: &Value) -> Option<Self> {
        RequestState::deserialize(state).ok()
    }
}

/// What a run waits for of its own client.
pub(crate) struct ClientInput<'r> {
    /// The ask that is open for it.
    asked: &'r SessionAsk,
    wants: InputRequired,
}

impl ClientInput<'_> {
    /// The ask that is open for it.
    pub(crate) fn ask(&self) -> AskId {
        self.asked.row.ask.id
    }

    /// How much is wanted, be the client able to give it or not.
    pub(crate) fn count(&self) -> usize {
        self.wants.inputs.len()
    }

    /// What a stateless client is asked for, by the tool's own keys, and what its answers must be.
    pub(crate) fn asked_for(
        &self,
        exchange: &Exchange,
    ) -> (Map<String, Value>, BTreeMap<String, ExpectedAnswer>) {
        let possible = possible(&exchange.client, &self.wants).unwrap_or_default();
        asked_for(exchange, &possible, judge(exchange, self.tool()))
    }

    /// The answer that a reply to its ask is, with the tool's own key.
    pub(crate) fn answer_of(&self, reply: &Reply) -> Option<(String, Value)> {
        let key = &self.asked.row.ask.wanted.as_ref()?.key;
        Some((key.clone(), answer_to(self.wants.inputs.get(key), Some(reply))))
    }

    /// The tool whose call wants it.
    fn tool(&self) -> Option<&str> {
        self.asked.row.ask.wanted.as_ref().map(|wanted| wanted.call.tool.as_str())
    }
}

/// What this run wants of its client, if that is what it waits for and the client may give it.
pub(crate) async fn wanted<'r>(
    exchange: &Exchange,
    report: &'r RunReport,
) -> Result<Option<ClientInput<'r>>, RpcError> {
    let asks = exchange.mcp.server.engine.asks();
    let caller = &exchange.caller;
    let of_call = |asked: &&SessionAsk| asked.row.ask.wanted.is_some();
    let Some(asked) = report.asks.iter().find(of_call) else { return Ok(None) };
    if !asks.may_answer(caller, asked) {
        return Ok(None);
    }
    let Some(wants) = asks.wanted(caller, asked).await.map_err(trouble)? else { return Ok(None) };
    // A page has a name of ours in the versions with a handshake, and a client that cannot open it
    // gets its address: it is shown as an ask.
    let client = &exchange.client;
    let only_pages = wants.inputs.values().all(|want| matches!(want, InputRequest::Url { .. }));
    let as_ask = only_pages && !(client.version.is_modern() && opens_pages(client));
    Ok((!as_ask).then_some(ClientInput { asked, wants }))
}

/// The same of a run that is a task, where its call takes a part of what it wants: of such a call
/// the client may answer one thing now and another later. Only the tool can tell: where it is not
/// there, the client has to come again.
pub(crate) async fn wanted_in_parts<'r>(
    exchange: &Exchange,
    report: &'r RunReport,
) -> Result<Option<ClientInput<'r>>, RpcError> {
    let Some(found) = wanted(exchange, report).await? else { return Ok(None) };
    let Some(tool) = found.tool() else { return Ok(None) };
    let tools = exchange.mcp.server.engine.tools();
    let Some(takes_parts) = tools.takes_parts(&exchange.caller, tool, &found.wants).await else {
        let message = format!("tool `{tool}`, whose call asks for something, is not there now");
        return Err(not_now(message, "send it again when the tool's server is back"));
    };
    let is_possible = possible(&exchange.client, &found.wants).is_ok();
    Ok((takes_parts && is_possible).then_some(found))
}

/// Asks the client for it: the call's answer, or none once the run has moved.
pub(crate) async fn ask(
    calling: &ActiveCall<'_>,
    report: &RunReport,
    wanted: ClientInput<'_>,
) -> Result<Option<Outcome>, RpcError> {
    let exchange = calling.exchange;
    let engine = calling.engine();
    let ClientInput { asked, wants } = &wanted;
    let tool = calling.spec().name.as_str();
    let judge = judge(exchange, Some(tool));
    let possible = match possible(&exchange.client, wants) {
        Ok(possible) => possible,
        Err(lacking) => {
            // Its tool asked for what no one has, although it knew that; without the run, too,
            // that would be the end of the call.
            if let Err(refusal) = engine.runs().cancel(calling.caller(), report.run.id).await {
                tracing::debug!(run = %report.run.id, "it stays as it is: {}", refusal.message);
            }
            return Err(lacking);
        }
    };
    let run = report.run.id;
    let ask = asked.row.ask.id;
    if exchange.client.version.is_modern() {
        let (requests, wanted) = asked_for(exchange, &possible, judge);
        let waiting = RequestState { run, asks: vec![ask], wanted };
        return Ok(Some(asking(exchange, requests, &json!(waiting), &calling.bound())));
    }
    let mut collected = InputResponses::default();
    for (key, want) in possible {
        let (method, params) = request(exchange, want);
        if let Some(id) = params["elicitationId"].as_str() {
            tell_when_opened(exchange, tool, key, id);
        }
        match hear(calling, asked, method, params).await {
            ClientAnswer::Answer(answer) => {
                ExpectedAnswer::of(want, judge).check(engine, key, &answer)?;
                collected.inputs.insert(key.clone(), answer);
            }
            // What that means is for the server to say that asked.
            ClientAnswer::Refused(error) if judge == FormValidator::Upstream => {
                collected.refused.insert(key.clone(), error.to_value());
            }
            ClientAnswer::Closed => return Ok(None),
            ClientAnswer::Refused(_) | ClientAnswer::Nothing => {
                return Ok(Some(calling.unfinished(report)));
            }
        }
    }
    give(calling, run, ask, collected).await?;
    Ok(None)
}

/// Gives a run what a client brings along that comes back with what was wanted.
pub(crate) async fn bring(
    calling: &ActiveCall<'_>,
    waiting: RequestState,
    retry: &Retry,
) -> Result<RunReport, RpcError> {
    let matched = matching_responses(calling.engine(), waiting.wanted, &responses(retry)?)?;
    match waiting.asks.first() {
        Some(ask) => give(calling, waiting.run, *ask, matched).await,
        None => calling.now(waiting.run).await,
    }
}

/// What a client's answers say to what it was asked for.
pub(crate) fn matching_responses(
    engine: &Engine,
    wanted: BTreeMap<String, ExpectedAnswer>,
    responses: &Map<String, Value>,
) -> Result<InputResponses, RpcError> {
    let mut matched = InputResponses::default();
    for (key, expected) in wanted {
        if let Some(response) = responses.get(&key) {
            expected.check(engine, &key, response)?;
            matched.inputs.insert(key, response.clone());
        }
    }
    Ok(matched)
}

async fn give(
    calling: &ActiveCall<'_>,
    run: RunId,
    ask: AskId,
    responses: InputResponses,
) -> Result<RunReport, RpcError> {
    let asks = calling.engine().asks();
    match asks.give(calling.caller(), ask, responses, calling.left_ms()).await {
        Ok(report) => Ok(report),
        // Someone else answered meanwhile, or this very answer came before.
        Err(refusal) if is_closed(&refusal) => calling.now(run).await,
        Err(refusal) => Err(trouble(refusal)),
    }
}

/// What was heard from the client.
pub(crate) enum ClientAnswer {
    Answer(Value),
    /// It answered with this error.
    Refused(RpcError),
    /// Someone else decided, or the ask expired.
    Closed,
    /// It does not answer, or not in time.
    Nothing,
}

/// Asks the client of a version with a handshake, as long as this ask is open.
pub(crate) async fn hear(
    calling: &ActiveCall<'_>,
    asked: &SessionAsk,
    method: &str,
    params: Value,
) -> ClientAnswer {
    let engine = calling.engine();
    if !calling.exchange.outbox.is_open() || calling.left_ms() == 0 {
        return ClientAnswer::Nothing;
    }
    let closed = engine.asks().closed(calling.caller(), asked);
    let answered = calling.exchange.outbox.ask(method, params);
    let first = async {
        match select(pin!(answered), pin!(closed)).await {
            Either::Left((Ok(answer), _)) => ClientAnswer::Answer(answer),
            Either::Left((Err(AskError::Refused(error)), _)) => ClientAnswer::Refused(error),
            Either::Left((Err(AskError::Silent(error)), _)) => {
                tracing::debug!(code = error.code, "a client did not answer: {}", error.message);
                ClientAnswer::Nothing
            }
            Either::Right(((), _)) => ClientAnswer::Closed,
        }
    };
    let heard = engine::timeout(engine.clock().as_ref(), calling.left_ms(), first).await;
    heard.unwrap_or(ClientAnswer::Nothing)
}

/// Whether a reply was refused because the ask is not open any more.
pub(crate) fn is_closed(refusal: &Refusal) -> bool {
    matches!(
        refusal.code,
        RefusalCode::AskDecided(_) | RefusalCode::AskExpired(_) | RefusalCode::AskWithdrawn(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_state_of_a_run_is_one() {
        let asked = BTreeMap::from([("who".to_owned(), ExpectedAnswer::Form { schema: None })]);
        for wanted in [BTreeMap::new(), asked] {
            let waiting = RequestState { run: RunId(1), asks: vec![AskId(2)], wanted };
            assert_eq!(RequestState::read(&json!(waiting)), Some(waiting));
        }
        assert_eq!(RequestState::read(&json!({"wanted": {}, "given": {}})), None);
    }
}
