//! Models that are asked about failed steps: a start is recorded, the model is asked once that is
//! durable, and what it says is recorded. One whose process ended is asked again.

use crate::advice::asking::TurnsUsage;
use crate::advice::proposing::{FailedStep, Proposal, propose};
use crate::driver::record::no_session;
use crate::driver::state::{ActiveProposal, Completion, Driver};
use crate::refusal::Result;
use futures::FutureExt;
use futures::future::abortable;
use kernel::ask::AskBody;
use kernel::ask::remedy::Remedy;
use kernel::definition::plan::flow::reload;
use kernel::event::{Fact, ProposalEnd};
use kernel::session::FrameState;
use kernel::values::fault::Fault;
use kernel::values::ids::{FrameId, RunId};
use std::sync::Arc;

struct Question {
    attempt: u32,
    /// Or why it is not asked: it costs money, and is asked for who started the run.
    about: Result<Failure, Fault>,
}

/// A failed step, and what its rule does about it.
struct Failure {
    failed: FailedStep,
    does: Remedy,
}

impl Driver {
    /// Asks the model of a frame's rule, once the start is durable: from then on it may cost money.
    pub(in crate::driver) fn ask_proposal(&mut self, frame: FrameId) {
        let Some(Question { attempt, about }) = self.question(frame) else { return };
        self.flush();
        let shared = self.shared.clone();
        let ticket = self.ticket.clone();
        let asking = async move {
            if let Some(ticket) = ticket
                && let Err(error) = ticket.await
            {
                return Completion::Kept(Err(error));
            }
            let proposal = match about {
                Ok(Failure { failed, does }) => propose(&shared, &failed, &does).await,
                Err(denied) => Proposal::nothing(denied),
            };
            Completion::Proposed(frame, attempt, Some(Box::new(proposal)))
        };
        let (asking, abort) = abortable(asking);
        self.proposals.insert(frame, ActiveProposal { attempt, abort });
        let given_up = move |_| Completion::Proposed(frame, attempt, None);
        self.in_flight.push(asking.map(move |done| done.unwrap_or_else(given_up)).boxed());
    }

    fn question(&self, frame: FrameId) -> Option<Question> {
        let session = self.session.as_ref()?;
        let of = session.frames.get(&frame)?;
        let FrameState::Proposing { ask, attempt, .. } = of.state else { return None };
        let run = session.runs.get(&of.run)?;
        if let Some(denied) = self.not_any_more(run) {
            return Some(Question { attempt, about: Err(denied) });
        }
        let ask = &session.asks.get(&ask)?.ask;
        let AskBody::Fix { fault, call, how, .. } = &ask.body else { return None };
        let does = ask.held.as_ref()?.does.clone();
        let retries = of.tried.iter().filter(|tried| tried.does == Remedy::Retry);
        let failed = FailedStep {
            caller: run.caller(&self.key.realm),
            plan: of.plan.clone(),
            step: ask.step.clone(),
            ask: ask.id,
            call: call.clone(),
            fault: fault.clone(),
            how: *how,
            tries: 1 + retries.map(|tried| tried.times).sum::<u32>(),
        };
        Some(Question { attempt, about: Ok(Failure { failed, does }) })
    }

    /// Takes in what a model proposed, unless nobody waits for it any more.
    pub(in crate::driver) async fn proposed(
        &mut self,
        frame: FrameId,
        attempt: u32,
        proposal: Proposal,
    ) -> Result<()> {
        if self.proposals.get(&frame).is_none_or(|asked| asked.attempt != attempt) {
            return Ok(());
        }
        self.proposals.remove(&frame);
        let Proposal { found, took } = proposal;
        let found = self.session.as_ref().ok_or_else(no_session)?.judged(frame, found);
        let TurnsUsage { turns, usage, cost_micros, uncached_micros } = took;
        let end = ProposalEnd { frame, attempt, found, turns, usage, cost_micros, uncached_micros };
        self.record(Fact::ProposalGiven(Box::new(end))).await
    }

    /// A closing run asks no model any more.
    pub(in crate::driver) async fn close_proposals(&mut self, run: RunId) -> Result<()> {
        let fault = Fault::new("Cancelled", "the run is being closed");
        self.end_proposals(run, &fault).await
    }

    /// The models of a run that are asked about its failed steps are not asked any more.
    pub(in crate::driver) async fn end_proposals(&mut self, run: RunId, why: &Fault) -> Result<()> {
        let session = self.session.as_ref().ok_or_else(no_session)?;
        let frames = session.frames.values().filter(|frame| frame.run == run);
        let asked: Vec<(FrameId, u32)> = frames
            .filter_map(|frame| match frame.state {
                FrameState::Proposing { attempt, .. } => Some((frame.id, attempt)),
                _ => None,
            })
            .collect();
        for (frame, attempt) in asked {
            if let Some(asked) = self.proposals.remove(&frame) {
                asked.abort.abort();
            }
            let end = ProposalEnd::nothing(frame, attempt, why.clone());
            self.record(Fact::ProposalGiven(Box::new(end))).await?;
        }
        Ok(())
    }

    /// Gives up models that no frame waits for any more.
    pub(in crate::driver) fn drop_orphan_proposals(&mut self) {
        let Some(session) = &self.session else { return };
        self.proposals.retain(|frame, asked| {
            let state = session.frames.get(frame).map(|frame| &frame.state);
            let wanted = matches!(state, Some(FrameState::Proposing { attempt, .. })
                if *attempt == asked.attempt);
            if !wanted {
                asked.abort.abort();
            }
            wanted
        });
    }

    /// Reads the corrections under way that models wrote: their sources are part of the state.
    pub(in crate::driver) fn read_drafted(&mut self) {
        let Some(session) = &self.session else { return };
        self.drafted.retain(|id, _| session.drafted.contains_key(id));
        for (id, source) in &session.drafted {
            if self.drafted.contains_key(id) {
                continue;
            }
            match reload(source) {
                Ok(plan) => drop(self.drafted.insert(id.clone(), Arc::new(plan))),
                Err(_) => tracing::error!(plan = %id, "a correction that was read cannot be"),
            }
        }
    }
}
