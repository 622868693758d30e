//! Replies to several asks at once: they are checked together and recorded together, so that all
//! of them count or none. And what the caller of a direct call gives it, which may be more than one
//! ask is about.

use super::commands::CommandResult;
use super::record::EVENTS_PER_APPEND;
use super::state::Driver;
use crate::command::Replier;
use crate::gate::rights::facts;
use crate::refusal::{Refusal, RefusalCode, Result};
use kernel::ask::{Ask, Decision, Reply};
use kernel::contracts::policy::Resource;
use kernel::event::Fact;
use kernel::session::CallState;
use kernel::tool::call::{Caller, InputRequest, InputRequired, InputResponses};
use kernel::values::caller::Act;
use kernel::values::ids::{AskId, CallId, RunId};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

struct CallInput {
    call: CallId,
    given: InputResponses,
    /// The reply to the open ask, if there is one.
    reply: Option<Reply>,
}

impl Driver {
    /// Decides these asks in one commit; gives their run.
    pub(super) async fn reply_all(
        &mut self,
        replies: Vec<(AskId, Reply)>,
        by: Box<Replier>,
    ) -> CommandResult<RunId> {
        let run = match self.count_all(&by.caller, &replies).await? {
            Ok(run) => run,
            Err(refusal) => {
                // A conflict is shown only once what it speaks of is durable.
                self.durable().await?;
                return Ok(Err(refusal));
            }
        };
        // What is pending goes first: the decisions stand in one append, and nothing else does.
        self.flush();
        let Replier { caller, claim, message } = *by;
        self.keep_key(claim, run, replies.first().map(|(ask, _)| *ask));
        let at = self.shared.clock.now();
        for (ask, reply) in replies {
            let decision = Box::new(Decision::of(&caller, at, reply));
            self.record_by(caller.clone(), Fact::AskDecided { ask, decision }).await?;
        }
        if let Some(message) = message {
            self.record(message.received(run)).await?;
        }
        Ok(Ok(run))
    }

    /// Whether all of these replies count; their one run.
    async fn count_all(
        &mut self,
        caller: &Caller,
        replies: &[(AskId, Reply)],
    ) -> CommandResult<RunId> {
        if replies.len() > EVENTS_PER_APPEND {
            let message = format!("at most {EVENTS_PER_APPEND} asks are answered at once");
            return Ok(Err(Refusal::new(RefusalCode::TooManyReplies, message)));
        }
        let mut run = None;
        for (index, (id, reply)) in replies.iter().enumerate() {
            if replies[..index].iter().any(|(other, _)| other == id) {
                let message = format!("ask `{id}` is answered twice");
                return Ok(Err(Refusal::new(RefusalCode::AnsweredTwice, message)));
            }
            let Some(ask) = self.open_ask(*id) else { return self.closed_ask(*id).await.map(Err) };
            if run.is_some_and(|run| run != ask.run) {
                let message = "these asks are of several runs";
                return Ok(Err(Refusal::new(RefusalCode::SeveralRuns, message)));
            }
            if let Err(refusal) = self.counts(caller, &ask, reply) {
                return Ok(Err(refusal));
            }
            run = Some(ask.run);
        }
        let nothing = || Refusal::new(RefusalCode::NoReplies, "nothing is answered");
        Ok(run.ok_or_else(nothing))
    }

    /// Gives a direct call what its caller answered, as it is: whether that fits is for its tool to
    /// say. What was not answered is not given, and the tool may want it again. Gives the run.
    pub(super) async fn give(
        &mut self,
        id: AskId,
        said: &InputResponses,
        caller: &Caller,
    ) -> CommandResult<RunId> {
        let Some(ask) = self.open_ask(id) else { return self.closed_ask(id).await.map(Err) };
        let CallInput { call, given, reply } = match self.giving(caller, &ask, said) {
            Ok(giving) => giving,
            Err(refusal) => return Ok(Err(refusal)),
        };
        // Both in one append: an ask that is closed alone would have the next one opened.
        self.flush();
        let at = self.shared.clock.now();
        let closed = match reply {
            Some(reply) => {
                let decision = Box::new(Decision::of(caller, at, reply));
                Fact::AskDecided { ask: id, decision }
            }
            None => Fact::AskWithdrawn { ask: id },
        };
        self.record_by(caller.clone(), closed).await?;
        self.record(Fact::CallResumed { call, given: Arc::new(given) }).await?;
        Ok(Ok(ask.run))
    }

    /// Input of a direct call from its own caller.
    fn giving(&self, caller: &Caller, ask: &Ask, said: &InputResponses) -> Result<CallInput> {
        self.may_answer(caller, ask)?;
        let nothing = || Refusal::not_found("ask", ask.id);
        let session = self.session.as_ref().filter(|_| self.key.space.is_call());
        let run = session.and_then(|session| session.runs.get(&ask.run));
        let is_own = run.is_some_and(|run| *run.subject() == caller.subject);
        let wanted = ask.wanted.as_ref().filter(|_| is_own).ok_or_else(nothing)?;
        let call = wanted.call.call_id;
        let open = self.open_call(call).ok_or_else(nothing)?;
        let CallState::Wanting(wanting) = &open.state else { return Err(nothing()) };
        let wants = &wanting.wants;
        // What is wanted again was not good enough, unless it was answered since, in the inbox.
        let mut inputs = newly(&open.given.inputs, &said.inputs, wants);
        for (key, answer) in &wanting.given {
            inputs.entry(key.clone()).or_insert_with(|| answer.clone());
        }
        let mut refused = newly(&open.given.refused, &said.refused, wants);
        refused.retain(|key, _| !inputs.contains_key(key));
        let answered = wants.inputs.get(&wanted.key).zip(inputs.get(&wanted.key));
        let reply = answered.map(|(want, answer)| reply_of(want, answer));
        Ok(CallInput {
            call,
            given: InputResponses { inputs, refused, state: wants.state.clone() },
            reply,
        })
    }

    /// Refuses an answer of who may not answer this ask; who may not even read it learns nothing of
    /// it.
    pub(super) fn may_answer(&self, caller: &Caller, ask: &Ask) -> Result<()> {
        let gate = &self.shared.gate;
        if gate.is_free(caller, Act::Answer) {
            return Ok(());
        }
        let run = self.session.as_ref().and_then(|session| session.runs.get(&ask.run));
        let owner = run.map(|run| &**run.subject());
        let session = facts(&self.key, run.map(|run| &run.plan)).owned_by(owner);
        let resource = Resource::Ask { kind: ask.body.kind(), session };
        let permitted = gate.permit(caller, Act::Answer, resource);
        let permitted = permitted.and_then(|()| gate.permit_narrowed(caller, ask, run, resource));
        permitted.map_err(|refusal| match gate.could_read(caller, resource) {
            true => refusal,
            false => Refusal::not_found("ask", ask.id),
        })
    }

    /// An ask that waits for a reply.
    pub(super) fn open_ask(&self, id: AskId) -> Option<Ask> {
        let open = self.session.as_ref()?.asks.get(&id)?;
        open.is_open().then(|| open.ask.clone())
    }
}

/// Earlier answers to inputs that are not required again, and new answers to those that are.
fn newly(
    before: &BTreeMap<String, Value>,
    now: &BTreeMap<String, Value>,
    wants: &InputRequired,
) -> BTreeMap<String, Value> {
    let is_wanted = |key: &String| wants.inputs.contains_key(key);
    let before = before.iter().filter(|(key, _)| !is_wanted(key));
    let all = before.chain(now.iter().filter(|(key, _)| is_wanted(key)));
    all.map(|(key, said)| (key.clone(), said.clone())).collect()
}

/// The reply that a caller's own answer is.
fn reply_of(want: &InputRequest, answer: &Value) -> Reply {
    let accepted = answer["action"] == "accept";
    match want {
        InputRequest::Form { .. } => {
            let content = || answer.get("content").cloned().unwrap_or_else(|| json!({}));
            Reply::Fill { content: accepted.then(content) }
        }
        InputRequest::Url { .. } => Reply::Authorize { done: accepted },
        InputRequest::Sample { .. } | InputRequest::Roots => {
            Reply::Fill { content: Some(answer.clone()) }
        }
    }
}
