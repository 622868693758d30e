//! What a session's journal tells, read event by event by someone who knows the rules but shares no
//! code with those who wrote it, except for `Session::apply`, which the lists are compared with.

use super::calls::{CallNow, CallStory};
use super::recovery::Recovery;
use super::rule_delays::RuleDelays;
use super::supervised::Supervised;
use super::turns::{Turns, decision_on};
use kernel::ask::{Ask, AskBody, AskStatus, Decision, FixAction, Reply};
use kernel::event::{CallRequest, Event, Fact, Outcome};
use kernel::journal::projection::{RunRow, run_row};
use kernel::session::Session;
use kernel::tool::call::{CallProgress, InputRequired, InputResponses, Judgement, Verdict};
use kernel::values::datum::Datum;
use kernel::values::ids::{AskId, CallId, FrameId, RunId, SessionId, SessionKey};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The story of one session.
pub struct Story {
    /// What its events add up to.
    pub session: Session,
    /// Its runs that ended, as lists must show them.
    pub ended: BTreeMap<RunId, RunRow>,
    /// All its runs: plan and input.
    pub runs: BTreeMap<RunId, Started>,
    pub asks: BTreeMap<AskId, AskStory>,
    pub calls: BTreeMap<CallId, CallStory>,
    /// How often each message is recorded that answers an ask.
    pub messages: BTreeMap<Arc<str>, u32>,
    pub wrong: Vec<String>,
    pub recovery: Recovery,
    /// How late rules acted on its asks.
    pub rule_delays: RuleDelays,
    turns: Turns,
    supervised: Supervised,
}

/// A run as it began.
pub struct Started {
    pub plan: String,
    /// Its input, or where it is.
    pub input: Arc<Datum>,
    /// No one steered it: its answer follows from plan and input.
    pub plain: bool,
}

/// An ask and what became of it.
pub struct AskStory {
    pub ask: Ask,
    pub status: AskStatus,
    /// The reply that won.
    pub decision: Option<Decision>,
    /// How often each call that it names was started on it.
    pub used: BTreeMap<CallId, u32>,
    /// It was decided in the session that this one is a copy of.
    elsewhere: bool,
}

impl Story {
    /// Reads a whole journal.
    pub fn read(id: SessionId, key: SessionKey, events: &[Event]) -> Self {
        let mut story = Self {
            session: Session::new(id, key),
            ended: BTreeMap::new(),
            runs: BTreeMap::new(),
            asks: BTreeMap::new(),
            calls: BTreeMap::new(),
            messages: BTreeMap::new(),
            wrong: Vec::new(),
            recovery: Recovery::default(),
            rule_delays: RuleDelays::default(),
            turns: Turns::default(),
            supervised: Supervised::default(),
        };
        for event in events {
            story.event(event);
        }
        story
    }

    fn event(&mut self, event: &Event) {
        let expected = self.session.seq + 1;
        if event.seq != expected {
            self.wrong.push(format!("event {} stands where {expected} should", event.seq));
        }
        if let Some(run) = self.run_of(&event.fact)
            && self.ended.contains_key(&run)
            && !matches!(event.fact, Fact::CallLate { .. })
        {
            self.wrong.push(format!("event {} changes run {run}, which is over", event.seq));
        }
        let turn = self.turns.event(&event.fact, &self.session);
        let recovery = self.recovery.event(event, &self.session);
        let supervised = self.supervised.event(event, &self.session);
        let wrong = turn.into_iter().chain(recovery).chain(supervised);
        self.wrong.extend(wrong.map(|wrong| format!("event {}: {wrong}", event.seq)));
        match &event.fact {
            Fact::AskOpened(_)
            | Fact::AskDecided { .. }
            | Fact::AskExpired { .. }
            | Fact::AskWithdrawn { .. } => self.ask(event),
            Fact::CallRequested(_)
            | Fact::CallJudged { .. }
            | Fact::CallStarted { .. }
            | Fact::CallWants { .. }
            | Fact::CallResumed { .. }
            | Fact::CallFinished { .. }
            | Fact::CallFailed { .. }
            | Fact::CallLate { .. } => self.call(event),
            Fact::RunStarted { run, plan, input, .. } => {
                let input = input.clone();
                self.runs.insert(*run, Started { plan: plan.to_string(), input, plain: true });
            }
            // A collected failure, a skipped step or a way round changes the answer.
            Fact::ItemFailed { frame, .. }
            | Fact::ItemFailing { frame, .. }
            | Fact::StepSkipped { frame, .. }
            | Fact::StepDiverted { frame, .. } => self.steered(*frame),
            Fact::RunEnded { run, outcome } => self.check_end(*run, outcome),
            Fact::MessageReceived(received) if received.misfit.is_none() => {
                *self.messages.entry(received.id.clone()).or_default() += 1;
            }
            Fact::SessionForked { .. } => self.forked(),
            _ => {}
        }
        self.session.apply(event);
        self.rule_delays.event(event, &self.session);
        if let Fact::RunEnded { run, .. } = &event.fact
            && let Some(row) = self.session.ended_run(*run).map(run_row)
        {
            self.ended.insert(*run, row);
        }
    }

    fn run_of(&self, fact: &Fact) -> Option<RunId> {
        match fact {
            Fact::RunClaimed { run, .. }
            | Fact::RunPaused { run, .. }
            | Fact::RunContinued { run, .. }
            | Fact::RunClosing { run, .. }
            | Fact::RunEnded { run, .. } => Some(*run),
            Fact::CallRequested(request) => self.calls.get(&request.replaces?).map(|call| call.run),
            Fact::CallJudged { call, .. }
            | Fact::CallStarted { call, .. }
            | Fact::CallWants { call, .. }
            | Fact::CallResumed { call, .. }
            | Fact::CallFinished { call, .. }
            | Fact::CallFailed { call, .. } => self.calls.get(call).map(|call| call.run),
            Fact::AskOpened(ask) => Some(ask.run),
            Fact::AskDecided { ask, .. }
            | Fact::AskExpired { ask }
            | Fact::AskWithdrawn { ask } => self.asks.get(ask).map(|story| story.ask.run),
            _ => None,
        }
    }

    /// What stands before this happened elsewhere, and its approvals hold there only.
    fn forked(&mut self) {
        self.wrong.clear();
        self.messages.clear();
        for ask in self.asks.values_mut() {
            ask.elsewhere = ask.decision.is_some();
        }
        for call in self.calls.values_mut() {
            call.starts = 0;
            call.unsent = 0;
            call.wants = 0;
            call.resumes = 0;
        }
    }

    fn steered(&mut self, frame: FrameId) {
        if let Some(run) = self.session.frames.get(&frame).map(|frame| frame.run) {
            self.steered_run(run);
        }
    }

    fn steered_run(&mut self, run: RunId) {
        if let Some(started) = self.runs.get_mut(&run) {
            started.plain = false;
        }
    }

    fn ask(&mut self, event: &Event) {
        match &event.fact {
            Fact::AskOpened(ask) => {
                if let AskBody::Fix { call: Some(call), .. } = &ask.body
                    && let Some(call) = self.calls.get_mut(&call.call_id)
                {
                    call.untold = false;
                    call.told = true;
                }
                let story = AskStory {
                    ask: (**ask).clone(),
                    status: AskStatus::Open,
                    decision: None,
                    used: BTreeMap::new(),
                    elsewhere: false,
                };
                if self.asks.insert(ask.id, story).is_some() {
                    self.wrong.push(format!("ask {} is opened twice", ask.id));
                }
            }
            Fact::AskDecided { ask, decision } => {
                self.close_ask(event.seq, *ask, AskStatus::Decided, Some((**decision).clone()));
                self.decided(*ask, &decision.reply);
                self.answered(*ask, Some(&decision.reply));
            }
            Fact::AskExpired { ask } => {
                self.close_ask(event.seq, *ask, AskStatus::Expired, None);
                self.answered(*ask, None);
            }
            Fact::AskWithdrawn { ask } => {
                self.close_ask(event.seq, *ask, AskStatus::Withdrawn, None);
            }
            _ => {}
        }
    }

    fn close_ask(&mut self, seq: u64, id: AskId, to: AskStatus, decision: Option<Decision>) {
        let Some(story) = self.asks.get_mut(&id) else {
            self.wrong.push(format!("event {seq} closes ask {id}, which was never opened"));
            return;
        };
        if story.status == AskStatus::Open {
            story.status = to;
            story.decision = decision;
        } else {
            let was = story.status.name();
            self.wrong.push(format!("event {seq} makes ask {id} {}, it is {was}", to.name()));
        }
    }

    fn decided(&mut self, id: AskId, reply: &Reply) {
        let Some(story) = self.asks.get(&id) else { return };
        let run = story.ask.run;
        let plain = match reply {
            Reply::Clarify { answer } => answer.is_some(),
            Reply::Fill { content } => content.is_some(),
            Reply::Approve { decisions } => {
                decisions.iter().all(|one| one.approve && one.arguments.is_none())
            }
            Reply::Fix { action, .. } => *action == FixAction::Retry,
            Reply::Authorize { done } => *done,
        };
        if let (
            AskBody::Fix { call: Some(call), how: CallProgress::Unknown, .. },
            Reply::Fix { action: FixAction::Retry, .. },
        ) = (&story.ask.body, reply)
            && let Some(call) = self.calls.get_mut(&call.call_id)
        {
            call.repeats += 1;
        }
        if !plain {
            self.steered_run(run);
        }
    }

    /// The outcome of an ask is for the call that wants it, if one does.
    fn answered(&mut self, id: AskId, reply: Option<&Reply>) {
        let Some(wanted) = self.asks.get(&id).and_then(|story| story.ask.wanted.as_ref()) else {
            return;
        };
        let answer = match reply {
            Some(Reply::Fill { content: Some(content) }) => {
                json!({"action": "accept", "content": content})
            }
            Some(Reply::Authorize { done: true }) => json!({"action": "accept"}),
            Some(_) => json!({"action": "decline"}),
            None => json!({"action": "cancel"}),
        };
        if let Some(call) = self.calls.get_mut(&wanted.call.call_id) {
            call.answers.insert(wanted.key.clone(), answer);
        }
    }

    fn wants(&mut self, seq: u64, call: CallId, wants: InputRequired) {
        let Some(story) = self.calls.get_mut(&call) else { return };
        if story.state != CallNow::Started {
            let state = story.state;
            self.wrong.push(format!("event {seq}: {call} wants something and is {state:?}"));
            return;
        }
        story.state = CallNow::Wanting;
        story.wanted = Some(wants);
        story.answers.clear();
        story.wants += 1;
    }

    /// It is sent again with its own state, and with an answer to all that it wanted.
    fn resumed(&mut self, seq: u64, call: CallId, given: &InputResponses) {
        let Some(story) = self.calls.get_mut(&call) else { return };
        let (CallNow::Wanting, Some(wanted)) = (story.state, &story.wanted) else {
            let state = story.state;
            self.wrong.push(format!("event {seq} resumes {call}, which is {state:?}"));
            return;
        };
        let answered = wanted.inputs.keys().all(|key| {
            let answer = story.answers.get(key);
            answer.is_some() && answer == given.inputs.get(key)
        });
        if !answered || given.state != wanted.state {
            self.wrong.push(format!("event {seq} gives {call} what it did not want: {given:?}"));
        }
        story.state = CallNow::Started;
        story.resumes += 1;
    }

    fn call(&mut self, event: &Event) {
        let seq = event.seq;
        match &event.fact {
            Fact::CallRequested(request) => self.requested(seq, request),
            Fact::CallJudged { call, judgement } => {
                if let (Some(story), Judgement::Admitted { pins, verdict, .. }) =
                    (self.calls.get_mut(call), judgement)
                {
                    story.repeatable = pins.repeatable();
                    story.verdict = verdict.clone();
                }
            }
            Fact::CallStarted { call, grant } => self.started(seq, *call, *grant),
            Fact::CallWants { call, inputs, state } => {
                let wants = InputRequired { inputs: inputs.clone(), state: state.clone() };
                self.wants(seq, *call, wants);
            }
            Fact::CallResumed { call, given } => self.resumed(seq, *call, given),
            Fact::CallFinished { call, settled, .. } => {
                let Some(story) = self.calls.get_mut(call) else { return };
                if settled.is_none() && story.state != CallNow::Started {
                    let state = story.state;
                    self.wrong.push(format!("event {seq} finishes {call}, which is {state:?}"));
                    return;
                }
                story.state = CallNow::Finished;
                story.untold = false;
                story.told = true;
                if settled.is_some() {
                    let run = story.run;
                    self.steered_run(run);
                }
            }
            Fact::CallFailed { call, how, .. } => {
                let Some(story) = self.calls.get_mut(call) else { return };
                if story.state == CallNow::Started && *how == CallProgress::NotSent {
                    story.unsent += 1;
                }
                story.state = CallNow::Failed;
                story.untold = *how == CallProgress::Unknown && !story.repeatable;
            }
            Fact::CallLate { call, .. } => {
                if let Some(story) = self.calls.get_mut(call) {
                    story.told = true;
                }
            }
            _ => {}
        }
    }

    fn requested(&mut self, seq: u64, request: &CallRequest) {
        let Some(run) = self.session.frames.get(&request.frame).map(|frame| frame.run) else {
            self.wrong.push(format!("event {seq} requests a call for a frame that is not there"));
            return;
        };
        let story = self.calls.entry(request.call).or_insert(CallStory {
            run,
            state: CallNow::Requested,
            starts: 0,
            unsent: 0,
            wants: 0,
            resumes: 0,
            repeats: 0,
            repeatable: false,
            told: false,
            replaces: request.replaces,
            needs_approval: request.approve,
            verdict: Verdict::Allow,
            untold: false,
            wanted: None,
            answers: BTreeMap::new(),
        });
        if matches!(story.state, CallNow::Started | CallNow::Wanting | CallNow::Finished) {
            let state = story.state;
            self.wrong.push(format!("event {seq} repeats {}, which is {state:?}", request.call));
        } else {
            story.state = CallNow::Requested;
        }
    }

    fn started(&mut self, seq: u64, call: CallId, grant: Option<AskId>) {
        let Some(story) = self.calls.get_mut(&call) else {
            self.wrong.push(format!("event {seq} starts {call}, which nobody requested"));
            return;
        };
        story.state = CallNow::Started;
        story.starts += 1;
        let allowed = 1 + story.repeats;
        if !story.repeatable && story.starts > allowed {
            let starts = story.starts;
            self.wrong.push(format!("event {seq}: {call} is started {starts} times unasked"));
        }
        let asked = story.needs_approval || matches!(story.verdict, Verdict::Ask(_));
        if asked && grant.is_none() {
            self.wrong.push(format!("event {seq} starts {call} without its approval"));
        }
        if let Verdict::Deny(why) = &story.verdict {
            self.wrong.push(format!("event {seq} starts {call}, which policy denied: {why}"));
        }
        let Some(ask) = grant else { return };
        let Some(approval) = self.asks.get_mut(&ask) else {
            self.wrong.push(format!("event {seq} uses approval {ask}, which is not there"));
            return;
        };
        let replaced = |call: CallId| self.calls.get(&call).and_then(|story| story.replaces);
        let decided = match approval.decision.as_ref().map(|decision| &decision.reply) {
            Some(Reply::Approve { decisions }) => decision_on(decisions, call, replaced),
            _ => None,
        };
        let approved = decided.is_some_and(|decision| decision.approve);
        let asked = decided.map_or(call, |decision| decision.call_id);
        let used = approval.used.entry(asked).or_default();
        *used += 1;
        if approval.elsewhere {
            self.wrong.push(format!("event {seq} starts {call} on ask {ask} of another session"));
        } else if !approved || *used > allowed {
            self.wrong.push(format!(
                "event {seq} starts {call} on ask {ask}: approved {approved}, used {used} times"
            ));
        }
    }

    /// A run that ends leaves no ask open and no unknown outcome untold.
    fn check_end(&mut self, run: RunId, outcome: &Outcome) {
        let listed: BTreeSet<CallId> = match outcome {
            Outcome::Cancelled { unknown, .. } => unknown.iter().copied().collect(),
            Outcome::Completed { .. } | Outcome::Failed { .. } => BTreeSet::new(),
        };
        let words = match outcome {
            Outcome::Failed { fault } => fault.hint.clone().unwrap_or_default(),
            Outcome::Completed { .. } | Outcome::Cancelled { .. } => String::new(),
        };
        for (id, call) in self.calls.iter_mut().filter(|(_, call)| call.run == run) {
            if listed.contains(id) || words.contains(&id.to_string()) {
                call.untold = false;
                call.told = true;
            }
            if call.untold {
                self.wrong.push(format!("run {run} ends and nobody is told of {id}"));
            }
            if call.state == CallNow::Started && !call.repeatable && !call.told {
                self.wrong.push(format!("run {run} ends while {id} is under way"));
            }
        }
        for (id, story) in self.asks.iter().filter(|(_, story)| story.ask.run == run) {
            if story.status == AskStatus::Open {
                self.wrong.push(format!("run {run} ends and its ask {id} stays open"));
            }
        }
    }
}
