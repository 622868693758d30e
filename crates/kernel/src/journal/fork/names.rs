//! Renames every id in an event, for a fork.

use super::Fork;
use crate::ask::{Ask, AskBody, Decision, Reply, digest};
use crate::conversation::talk::CallSettlement;
use crate::event::{Base, CallMade, CallRequest, CorrectionEntry, Fact, Outcome, QueuedRun};
use crate::values::datum::{Datum, DatumValue, Origin};
use crate::values::ids::{AskId, CallId, Millis};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Fork {
    /// Gives all that the fact names its new id.
    pub(super) fn rename(&self, fact: &mut Fact) {
        fact.data_mut().into_iter().for_each(|datum| *datum = self.datum(datum));
        match fact {
            Fact::SessionCreated { id, key, owner } => {
                *id = self.source.id;
                *key = self.source.key.clone();
                *owner = self.owner();
            }
            Fact::RunStarted { .. } => self.rename_run(fact),
            Fact::RunEnded { run, outcome: Outcome::Cancelled { unknown, .. } } => {
                *run = self.run(*run);
                unknown.iter_mut().for_each(|call| *call = self.call(*call));
            }
            Fact::RunQueued(queued) => self.rename_queued(queued),
            Fact::MessageReceived(received) => received.run = self.run(received.run),
            Fact::RunHeld { run, .. }
            | Fact::RunClaimed { run, .. }
            | Fact::RunPaused { run, .. }
            | Fact::RunContinued { run, .. }
            | Fact::RunClosing { run, .. }
            | Fact::RunEnded { run, .. } => *run = self.run(*run),
            Fact::CallRequested(request) => self.rename_request(request),
            Fact::CallStarted { call, grant: ask }
            | Fact::CallFinished { call, settled: ask, .. } => {
                *call = self.call(*call);
                *ask = ask.map(|ask| self.ask(ask));
            }
            Fact::CallJudged { call, .. }
            | Fact::CallWants { call, .. }
            | Fact::CallResumed { call, .. }
            | Fact::CallFailed { call, .. }
            | Fact::CallLate { call, .. } => *call = self.call(*call),
            Fact::AskOpened(ask) => self.rename_ask(ask),
            Fact::AskDecided { ask, decision } => self.rename_decision(ask, decision),
            Fact::AskExpired { ask } | Fact::AskWithdrawn { ask } => *ask = self.ask(*ask),
            Fact::CorrectionEntered(entry) => self.rename_correction(entry),
            Fact::ProposalAsked(start) => start.ask = self.ask(start.ask),
            Fact::BaseSet(base) => self.rename_base(base),
            Fact::TurnFinished(end) => self.rename_made(&mut end.calls),
            Fact::ResultsGiven { results, .. } => self.rename_results(results),
            Fact::SessionForked { .. }
            | Fact::StepChosen { .. }
            | Fact::EventPublished { .. }
            | Fact::StepFailed { .. }
            | Fact::StepSkipped { .. }
            | Fact::StepDiverted { .. }
            | Fact::StepRetried(_)
            | Fact::InputGiven { .. }
            | Fact::BranchesStarted { .. }
            | Fact::LoopStarted(_)
            | Fact::ItemStarted { .. }
            | Fact::ItemFailing { .. }
            | Fact::ItemFailed { .. }
            | Fact::FrameWaits { .. }
            | Fact::FrameEnded { .. }
            | Fact::FrameCancelled { .. }
            | Fact::FramesJoined { .. }
            | Fact::PlanEntered(_)
            | Fact::PlanReturned { .. }
            | Fact::CorrectionEnded(_)
            | Fact::ProposalGiven(_)
            | Fact::AnswerGiven { .. }
            | Fact::AgentEntered(_)
            | Fact::TurnStarted(_)
            | Fact::TurnFailed { .. }
            | Fact::TalkCompacted { .. }
            | Fact::AgentAnswered { .. }
            | Fact::TimerSet(_)
            | Fact::TimerFired { .. } => {}
        }
    }

    fn rename_queued(&self, QueuedRun { run, behind }: &mut QueuedRun) {
        *run = self.run(*run);
        *behind = self.run(*behind);
    }

    fn rename_made(&self, made: &mut [CallMade]) {
        made.iter_mut().for_each(|made| made.call = self.call(made.call));
    }

    /// Results name the calls that they are of.
    fn rename_results(&self, results: &mut BTreeMap<CallId, CallSettlement>) {
        let renamed = std::mem::take(results).into_iter();
        *results = renamed.map(|(call, settled)| (self.call(call), settled)).collect();
    }

    /// A run acts for who makes the copy, and names the one that it is a copy of.
    fn rename_run(&self, fact: &mut Fact) {
        let Fact::RunStarted { run, about, by, subject, actor, scopes, .. } = fact else { return };
        let about = about.get_or_insert_default();
        about.parent = Some(*run);
        about.makers = self.maker.makers.subjects().cloned().collect();
        *run = self.run(*run);
        *by = self.maker.subject.clone();
        *subject = None;
        *actor = self.maker.actor.clone();
        *scopes = self.maker.scopes;
    }

    fn rename_decision(&self, ask: &mut AskId, decision: &mut Decision) {
        *ask = self.ask(*ask);
        match &mut decision.reply {
            Reply::Approve { decisions } => {
                decisions.iter_mut().for_each(|one| one.call_id = self.call(one.call_id));
            }
            // The answers to an agent's questions, by their calls.
            Reply::Clarify { answer: Some(Value::Object(answers)) } => {
                let renamed = std::mem::take(answers).into_iter().map(|(key, answer)| {
                    let call = key.parse::<CallId>().map(|call| self.call(call).to_string());
                    (call.unwrap_or(key), answer)
                });
                *answers = renamed.collect();
            }
            Reply::Clarify { .. }
            | Reply::Fill { .. }
            | Reply::Authorize { .. }
            | Reply::Fix { .. } => {}
        }
    }

    /// One that is under way has as much time left as it had.
    fn rename_correction(&self, entry: &mut CorrectionEntry) {
        entry.ask = self.ask(entry.ask);
        if self.source.frames.contains_key(&entry.child) {
            let left = entry.ends_at.0.saturating_sub(self.source.updated_at.0).max(0);
            entry.ends_at = self.now.plus_ms(left.unsigned_abs());
        }
    }

    fn rename_base(&self, base: &mut Base) {
        base.id = self.source.id;
        base.key = self.source.key.clone();
        base.owner = self.owner().or_else(|| self.source.key.owner.clone());
        base.context.values_mut().for_each(|datum| *datum = self.datum(datum));
        base.timers.clear();
        if let Some((ask, decision)) = &mut base.last_decided {
            self.rename_decision(ask, decision);
        }
    }

    /// An approval covers the call that it was given for, in the session it was given in.
    fn rename_request(&self, request: &mut CallRequest) {
        let covered = request.grant.filter(|_| !self.source.calls.contains_key(&request.call));
        request.grant = covered.map(|ask| self.ask(ask));
        request.call = self.call(request.call);
        request.replaces = request.replaces.map(|call| self.call(call));
        for source in request.sources.values_mut().flatten() {
            source.from = self.origin(&source.from);
        }
    }

    fn rename_ask(&self, ask: &mut Ask) {
        if self.open.contains(&ask.id) {
            // It is asked again, so its time begins again.
            let asked_for = |end: Millis| end.0.saturating_sub(ask.created_at.0).max(0) as u64;
            let again = |end: Millis| self.now.plus_ms(asked_for(end));
            ask.expires_at = ask.expires_at.map(again);
            ask.held.iter_mut().for_each(|held| held.until = again(held.until));
        }
        let wanted = ask.wanted.as_mut().map(|wanted| {
            wanted.call.call_id = self.call(wanted.call.call_id);
            wanted.digested()
        });
        let more = match &mut ask.body {
            AskBody::Approve { calls } => {
                let specs = calls.iter().filter_map(|call| self.specs.get(&call.call_id));
                let more = specs.flat_map(|spec| spec.as_str().bytes()).collect();
                calls.iter_mut().for_each(|call| call.call_id = self.call(call.call_id));
                more
            }
            AskBody::Fix { call, .. } => {
                call.iter_mut().for_each(|call| call.call_id = self.call(call.call_id));
                Vec::new()
            }
            AskBody::Clarify { questions, .. } => {
                questions.iter_mut().for_each(|asked| asked.call_id = self.call(asked.call_id));
                Vec::new()
            }
            AskBody::Fill { .. } | AskBody::Authorize { .. } => wanted.unwrap_or_default(),
        };
        ask.about.iter_mut().for_each(|about| about.call_id = self.call(about.call_id));
        let by = &*self.maker.subject;
        ask.id = self.ask(ask.id);
        ask.run = self.run(ask.run);
        ask.subject = self.maker.owner();
        let realm = &self.source.key.realm;
        let session = self.source.id;
        ask.digest = digest(realm, session, ask.run, &ask.step, &ask.body, &more, by);
    }

    fn datum(&self, datum: &Datum) -> Arc<Datum> {
        let held = match &datum.held {
            DatumValue::Value(_) | DatumValue::Blob(_) => datum.held.clone(),
            DatumValue::Object(fields) => {
                let renamed =
                    |(key, datum): (&String, &Arc<Datum>)| (key.clone(), self.datum(datum));
                DatumValue::Object(fields.iter().map(renamed).collect())
            }
            DatumValue::Array(items) => {
                DatumValue::Array(items.iter().map(|item| self.datum(item)).collect())
            }
        };
        Arc::new(Datum { held, from: self.origin(&datum.from), labels: datum.labels.clone() })
    }

    fn origin(&self, origin: &Origin) -> Origin {
        match origin {
            Origin::Call(call) => Origin::Call(self.call(*call)),
            Origin::Reply(ask) => Origin::Reply(self.ask(*ask)),
            Origin::Input | Origin::Plan | Origin::Turn(_) | Origin::Join => origin.clone(),
        }
    }
}
