//! A whole tool call: started, or resumed where its server required input. Stateless servers are
//! called in rounds; handshake servers ask during the call.

use super::super::ROUNDS_MAX;
use super::super::lanes::{CallConnection, LanePermit};
use super::super::line::PeerErrorKind;
use super::super::peer::{Era, Peer};
use super::super::requests::{ELICIT, SAMPLE};
use super::invocation::{CallEvent, Invocation};
use super::task;
use crate::Result;
use crate::mcp::questions::{
    CarriedState, OpenCall, PendingWork, Question, Round, RunningTask, key, nobody, read, refusal,
};
use kernel::tool::call::{CallProgress, InputRequest, ToolError, ToolOutput};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::jsonrpc::{Id, RpcError};

impl Invocation<'_> {
    /// Calls, or continues with a call; where someone must log in first, that is wanted.
    pub(in crate::mcp::tool) async fn run(self) -> Result<ToolOutput> {
        self.timely().await.or_else(|error| self.wanting_login(error))
    }

    /// The same within the time that the upstream may take.
    async fn timely(self) -> Result<ToolOutput> {
        let config = &self.link().config;
        let Some(ms) = config.timeout_ms else { return self.go().await };
        let answered = self.link().parts.within(ms, Box::pin(self.go())).await;
        answered.unwrap_or_else(|| {
            let message = format!("upstream `{}` did not answer within {ms} ms", config.name);
            let hint = format!("raise its `timeout_ms` in {}, or look at it", config.origin);
            Err(ToolError::unknown("UpstreamTimeout", message).hint(hint).passing())
        })
    }

    /// Most calls come for the first time. What is rare is kept apart from what every call moves
    /// around: here and below that is what the boxes are for.
    async fn go(self) -> Result<ToolOutput> {
        if self.call.given.state.is_null() {
            return self.make(CarriedState::default()).await;
        }
        Box::pin(self.go_on()).await
    }

    /// Takes a call up again whose server had asked for something.
    async fn go_on(self) -> Result<ToolOutput> {
        let carried = CarriedState::read(&self.call.given.state);
        let kept = carried.pending.as_deref();
        let kept = kept.and_then(|token| self.link().pending.take(token, &self.whose()));
        if let Some(error) = carried.refused(&self.call.given) {
            // Without a handshake an answer has no place for an error.
            let message = self.named("its caller answered with an error what it asked");
            return Err(ToolError::failed("Declined", message).answered(error.clone()));
        }
        if carried.pages {
            self.pages_were_opened(&carried)?;
            self.wait_for_login(&carried).await;
        }
        if let Some(id) = &carried.task {
            let running = match kept {
                Some(PendingWork::Task(running)) => running,
                // It outlives us: a task is found by its id.
                _ => RunningTask::new(self.peer().await?, id.clone(), &self.link().parts),
            };
            return task::resume(self, running, &carried).await;
        }
        match kept {
            // What it asks next must be known to be its own.
            Some(PendingWork::Talk(talk, question)) if !talk.peer.is_lost() && talk.is_alone() => {
                return self.converse(*talk, Some(question)).await;
            }
            // The call is gone, with the connection, a restart or its time, or others share its
            // connection by now: it is made again.
            gone => drop(gone),
        }
        self.make(carried).await
    }

    /// Makes the call, with what its server carried along if it was made before.
    async fn make(self, carried: CarriedState) -> Result<ToolOutput> {
        let seat = self.seat().await?;
        if !seat.permit.as_ref().is_some_and(LanePermit::is_own) {
            return self.make_in(seat, carried).await;
        }
        let made = Box::pin(self.in_session(seat)).await;
        if !made.as_ref().is_err_and(is_forgotten) {
            return made;
        }
        // A session is kept for the next call, and the server may have ended it meanwhile. Once:
        // the next one is new.
        self.link().lanes.let_go_of_idle();
        let seat = Box::pin(self.seat()).await?;
        Box::pin(self.make_in(seat, carried)).await
    }

    /// Makes it over this connection.
    async fn make_in(self, seat: CallConnection, carried: CarriedState) -> Result<ToolOutput> {
        match seat.peer.era() {
            Era::Modern => self.in_rounds(seat.peer, carried).await,
            Era::Legacy => self.in_session(seat).await,
        }
    }

    /// Makes the call of a server with a handshake.
    async fn in_session(self, seat: CallConnection) -> Result<ToolOutput> {
        let CallConnection { peer, permit } = seat;
        let talk = self.open(&peer, Map::new(), None).await?;
        self.converse(OpenCall { permit, ..talk }, None).await
    }

    /// A stateless server is called again until it has what it needs, or someone must be asked.
    async fn in_rounds(self, peer: Arc<Peer>, carried: CarriedState) -> Result<ToolOutput> {
        let mut answers = carried.answers(&self.call.given);
        let mut state = carried.request_state;
        for _ in 0..=ROUNDS_MAX {
            let talk = self.open(&peer, std::mem::take(&mut answers), state.take()).await?;
            let result = match self.answer(talk).await? {
                Ok(result) => result,
                Err(error) => return self.refused(&error),
            };
            match result.get("resultType").and_then(Value::as_str) {
                None | Some("complete") => return self.done(result),
                Some("task") => return Box::pin(task::begin(self, peer, result)).await,
                Some("input_required") => match Round::read(&result, self.call.can) {
                    Round::Wants(wants) => return Ok(wants),
                    Round::Again(more, next) => (answers, state) = (more, next),
                    Round::Impossible(what, lacks) => return Err(self.impossible(&what, lacks)),
                },
                Some(kind) => return Err(self.not_understood(&format!("an answer `{kind}`"))),
            }
        }
        let message = format!("it still wanted more after {ROUNDS_MAX} rounds");
        Err(ToolError::failed("UpstreamError", self.named(&message)))
    }

    /// The answer to a request of the stateless version, in which nothing is asked on the way.
    async fn answer(self, mut talk: OpenCall) -> Result<Result<Value, RpcError>> {
        loop {
            match self.hear(&mut talk).await? {
                CallEvent::Answer(result) => return Ok(Ok(result)),
                CallEvent::Refused(error) => return Ok(Err(error)),
                CallEvent::Asked(id, method, _) => Box::pin(talk.peer.serve(&id, &method)).await,
            }
        }
    }

    /// Listens to a server of the older versions, and answers what it asks, or has it asked.
    async fn converse(
        self,
        mut talk: OpenCall,
        mut question: Option<Question>,
    ) -> Result<ToolOutput> {
        loop {
            if let Some(asked) = question.take() {
                match self.answer_to(&asked) {
                    Some(answer) => self.reply(&talk, &asked.id, answer).await?,
                    None => return Ok(self.keep(talk, asked)),
                }
            }
            let heard = self.hear(&mut talk).await?;
            if !matches!(heard, CallEvent::Asked(..)) {
                talk.answered();
            }
            match heard {
                CallEvent::Answer(result) => {
                    let promise = self.tool.spec.output_schema.as_deref();
                    return self.done(as_promised(promise, result));
                }
                // With a handshake a client has no word for what it lacks: it gets the server's.
                CallEvent::Refused(error) if !talk.lacks.is_none() && !self.call.can.handshake => {
                    return Err(self.refused_without(talk.lacks, &error));
                }
                CallEvent::Refused(error) => return self.refused(&error),
                CallEvent::Asked(id, method, params) => {
                    question = self.question(&mut talk, id, &method, &params).await?;
                }
            }
        }
    }

    /// Passes on the server's question, or refuses it if nobody can be asked.
    async fn question(
        self,
        talk: &mut OpenCall,
        id: Id,
        method: &str,
        params: &Value,
    ) -> Result<Option<Question>> {
        let asked = read(method, params);
        if asked.is_ok() {
            talk.asked();
        }
        match asked {
            // A caller without folders: then those count that the operator names for the server.
            Ok(InputRequest::Roots)
                if !self.call.can.roots && !self.link().config.roots.is_empty() =>
            {
                talk.peer.serve(&id, method).await;
                Ok(None)
            }
            // It may continue without; whether it could is for it to say.
            Ok(want) if self.is_without(&want) => {
                talk.lacks = talk.lacks.and(&want);
                self.reply(talk, &id, Err(nobody(&want, self.call.can))).await?;
                Ok(None)
            }
            Ok(want) => {
                talk.questions += 1;
                Ok(Some(Question { id, key: key(talk.questions, &want, params), want }))
            }
            Err(error) if [ELICIT, SAMPLE].contains(&method) => {
                self.reply(talk, &id, Err(error)).await?;
                Ok(None)
            }
            Err(_) => {
                talk.peer.serve(&id, method).await;
                Ok(None)
            }
        }
    }

    /// The caller's answer to this question, if it was asked.
    fn answer_to(self, asked: &Question) -> Option<Result<Value, RpcError>> {
        let given = &self.call.given;
        let refused = || given.refused.get(&asked.key).map(|error| Err(refusal(error)));
        given.inputs.get(&asked.key).map(|answer| Ok(answer.clone())).or_else(refused)
    }

    /// Whether the server is to learn that the caller has no such thing. A form is refused in the
    /// name of a client with a handshake that is there, as that client would refuse it. A page may
    /// be opened by anyone, so it is asked for all the same.
    fn is_without(self, want: &InputRequest) -> bool {
        let can = self.call.can;
        match want {
            InputRequest::Sample { .. } | InputRequest::Roots => !can.can(want),
            InputRequest::Form { .. } => can.handshake && !can.form,
            InputRequest::Url { .. } => false,
        }
    }

    fn pages_were_opened(self, carried: &CarriedState) -> Result<()> {
        let inputs = &self.call.given.inputs;
        let opened = |key: &String| inputs.get(key).is_some_and(|said| said["action"] == "accept");
        if carried.asked.iter().all(opened) {
            return Ok(());
        }
        let message = self.named("a page had to be opened first, and that was declined");
        Err(ToolError::not_sent("Declined", message))
    }

    /// Keeps the call until its question is answered.
    fn keep(self, talk: OpenCall, question: Question) -> ToolOutput {
        let inputs = BTreeMap::from([(question.key.clone(), question.want.clone())]);
        let link = self.link();
        let kept = PendingWork::Talk(Box::new(talk), question);
        let token = link.pending.keep(&link.parts, self.whose(), kept);
        // Where there are too many connections, its own can be had from now on.
        link.lanes.wake();
        CarriedState { pending: Some(token), ..CarriedState::default() }.wanting(inputs)
    }
}

/// Whether a call was refused because the server does not know its session any more.
fn is_forgotten(error: &ToolError) -> bool {
    error.how != CallProgress::Unknown && error.fault.name == PeerErrorKind::Gone.word()
}

/// A result with a handshake, as its tool promises it. There an output is an object: one that is
/// listed without a handshake and promises something else is sent as `{result: ..}`.
fn as_promised(promise: Option<&Value>, mut result: Value) -> Value {
    let is_bare = promise.is_some_and(|schema| match &schema["type"] {
        Value::String(kind) => kind != "object",
        Value::Array(kinds) => !kinds.iter().any(|kind| kind == "object"),
        _ => false,
    });
    if is_bare
        && let Some(Value::Object(carrier)) = result.get_mut("structuredContent")
        && carrier.len() == 1
        && let Some(output) = carrier.remove("result")
    {
        result["structuredContent"] = output;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_wrapped_non_object_output_is_unwrapped() {
        let number = json!({"type": "number"});
        let object = json!({"type": "object"});
        let nullable = json!({"type": ["object", "null"]});
        let any = json!({});
        for (promise, sent, output) in [
            (Some(&number), json!({"result": 3}), json!(3)),
            (Some(&number), json!({"result": null}), json!(null)),
            (Some(&number), json!({"result": 3, "more": 1}), json!({"result": 3, "more": 1})),
            (Some(&number), json!({"other": 3}), json!({"other": 3})),
            (Some(&number), json!(3), json!(3)),
            (Some(&object), json!({"result": 3}), json!({"result": 3})),
            (Some(&nullable), json!({"result": 3}), json!({"result": 3})),
            (Some(&any), json!({"result": 3}), json!({"result": 3})),
            (None, json!({"result": 3}), json!({"result": 3})),
        ] {
            let result = json!({"content": [], "structuredContent": sent});
            let expected = json!({"content": [], "structuredContent": output});
            assert_eq!(as_promised(promise, result), expected, "{promise:?}");
        }
        let none = json!({"content": []});
        assert_eq!(as_promised(Some(&number), none.clone()), none);
    }
}
