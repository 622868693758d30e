//! Replies to several asks at once: they are checked together and recorded together, so that all
//! of them count or none.

use super::commands::Obeyed;
use super::record::EVENTS_PER_APPEND;
use super::state::Driver;
use crate::command::Replier;
use crate::gate::rights::facts;
use crate::refusal::{Refusal, RefusalCode, Result};
use kernel::ask::{Ask, Decision, Reply};
use kernel::contracts::policy::Resource;
use kernel::event::Fact;
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::ids::{AskId, RunId};

impl Driver {
    /// Decides these asks in one commit; gives their run.
    pub(super) async fn reply_all(
        &mut self,
        replies: Vec<(AskId, Reply)>,
        by: Box<Replier>,
    ) -> Obeyed<RunId> {
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
        let Replier { caller, claim } = *by;
        self.keep_key(claim, run, replies.first().map(|(ask, _)| *ask));
        let at = self.shared.clock.now();
        for (ask, reply) in replies {
            let decision = Box::new(Decision { by: caller.subject.clone(), at, reply });
            self.record_by(caller.clone(), Fact::AskDecided { ask, decision }).await?;
        }
        Ok(Ok(run))
    }

    /// Whether all of these replies count; their one run.
    async fn count_all(&mut self, caller: &Caller, replies: &[(AskId, Reply)]) -> Obeyed<RunId> {
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
