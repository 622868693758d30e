//! Forking: a session that begins as a copy of another, up to one of its events. Everything in the
//! copy has ids of its own, so that no reply, approval or idempotency key reaches from one session
//! into the other. What was under way is not known here: a fork repeats no write by itself.

use crate::ask::{Ask, AskBody, Decision, Reply, digest};
use crate::event::{Base, CallRequest, Event, Fact, Outcome, VERSION};
use crate::planted::{Switch, is_on};
use crate::session::{AgentPhase, CallState, OpenCall, Session};
use crate::tool::call::{HowFar, Judgement};
use crate::values::caller::Caller;
use crate::values::datum::{Datum, Held, Origin};
use crate::values::fault::Fault;
use crate::values::ids::{
    AskId, CallId, ContentHash, Millis, PlanId, RunId, SessionId, SessionKey,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The state that a fork begins with, found by reading the journal of its source a first time.
pub struct Following {
    source: Session,
    /// Who makes the new session: its runs act for this caller.
    maker: Caller,
    /// The new id of each run.
    runs: BTreeMap<RunId, RunId>,
}

impl Following {
    /// Nothing was read yet; the new session has this id and this key, and belongs to its maker.
    pub fn new(id: SessionId, key: SessionKey, maker: Caller) -> Self {
        Self { source: Session::new(id, key), maker, runs: BTreeMap::new() }
    }

    /// Reads the next event. `new_run` gives a run that begins its new id.
    pub fn see(&mut self, event: &Event, new_run: impl FnOnce(RunId) -> RunId) {
        if let Fact::RunStarted { run, .. } = &event.fact {
            self.runs.insert(*run, new_run(*run));
        }
        drop(self.source.apply(event));
    }
}

/// The same fact without what it published: that was published once, under the other session's id.
fn untold(fact: Fact) -> Fact {
    match fact {
        Fact::EventPublished { frame, step, next, .. } => Fact::StepChosen { frame, step, next },
        Fact::CallFinished { call, output, settled, .. } => {
            Fact::CallFinished { call, output, settled, published: Vec::new() }
        }
        other => other,
    }
}

/// A fork in the making: the journal of a new session that begins where that of another ends. Its
/// source is read twice more, from its beginning on: `weigh` finds what the copy leaves out, `copy`
/// gives its events. So a journal is copied without being held, however long it is.
///
/// The runs of the copy act for who makes it. Unconsumed decisions about calls are asked again,
/// calls under way that must not be repeated are of unknown outcome, other calls under way and
/// calls that want something first are back before their start and judged anew, timers and claims
/// are not copied.
pub struct Fork {
    source: Session,
    maker: Caller,
    runs: BTreeMap<RunId, RunId>,
    now: Millis,
    /// The session that is copied, once that is read.
    from: SessionId,
    /// The last event of the copy.
    seq: u64,
    /// Asks that wait for a reply in the copy.
    open: BTreeSet<AskId>,
    /// Decisions that no one acted upon and that must be asked again.
    undecided: BTreeSet<AskId>,
    /// Calls that are put back to before their start, and what happened after that: the events by
    /// sequence, and the asks.
    back: BTreeSet<CallId>,
    undone: BTreeSet<u64>,
    unasked: BTreeSet<AskId>,
    /// Calls that a person is asked about in the copy; all others that wait are judged anew.
    asked: BTreeSet<CallId>,
    /// The pinned spec of each judged call that is not over, for digests.
    specs: BTreeMap<CallId, ContentHash>,
}

impl Fork {
    /// A fork of what was followed to its end.
    pub fn new(followed: Following, now: Millis) -> Self {
        let Following { source, maker, runs } = followed;
        let about_calls = |body: &AskBody| match body {
            AskBody::Approve { .. } | AskBody::Fix { .. } => true,
            AskBody::Clarify { .. } | AskBody::Fill { .. } | AskBody::Authorize { .. } => false,
        };
        let held = || source.asks.iter();
        let undecided: BTreeSet<AskId> = held()
            .filter(|(_, open)| open.decision.is_some() && about_calls(&open.ask.body))
            .map(|(id, _)| *id)
            .collect();
        let open = held().filter(|(_, open)| open.is_open()).map(|(id, _)| *id);
        let asked = held().flat_map(|(_, open)| calls_of(&open.ask.body)).collect();
        Self {
            open: open.chain(undecided.iter().copied()).collect(),
            undecided,
            asked,
            source,
            maker,
            runs,
            now,
            from: SessionId(0),
            seq: 0,
            back: BTreeSet::new(),
            undone: BTreeSet::new(),
            unasked: BTreeSet::new(),
            specs: BTreeMap::new(),
        }
    }

    /// The plans of the runs that are not over where the copy begins.
    pub fn plans(&self) -> impl Iterator<Item = &PlanId> {
        self.source.runs.values().map(|run| &run.plan)
    }

    /// Whose the new session is, where its key does not say so.
    fn owner(&self) -> Option<Arc<str>> {
        self.maker.owner().filter(|_| self.source.key.owner.is_none())
    }

    /// The events of the copy that stand for this one: most often one, or none.
    pub fn copy(&mut self, event: &Event) -> Vec<Event> {
        let mut facts = Vec::new();
        let mut at = event.at;
        match &event.fact {
            Fact::SessionCreated { id, .. } => (self.from, at) = (*id, self.now),
            // The source has lost its beginning; the copy begins like any other session.
            Fact::BaseSet(base) if self.seq == 0 => {
                self.from = base.id;
                let (id, key) = (self.source.id, self.source.key.clone());
                let owner = self.owner();
                facts.push((self.now, Fact::SessionCreated { id, key, owner }));
            }
            _ => {}
        }
        if self.keeps(event) {
            let mut fact = untold(event.fact.clone());
            self.note(&fact);
            self.rename(&mut fact);
            facts.push((at, fact));
        }
        self.numbered(facts)
    }

    /// The last events of the copy, which say where it comes from: what stands before them happened
    /// elsewhere, and the copy is as young as they are.
    pub fn finish(&mut self) -> Vec<Event> {
        let forked = Fact::SessionForked { from: self.from, at: self.source.seq };
        let facts: Vec<Fact> = [forked].into_iter().chain(self.unknown_calls()).collect();
        let now = self.now;
        self.numbered(facts.into_iter().map(|fact| (now, fact)))
    }

    fn numbered(&mut self, facts: impl IntoIterator<Item = (Millis, Fact)>) -> Vec<Event> {
        let number = |(at, fact)| {
            self.seq += 1;
            Event { seq: self.seq, at, v: VERSION, fact }
        };
        facts.into_iter().map(number).collect()
    }

    /// Looks at an event before any is copied. A call that wants something first is put back to
    /// before its start, and so is what it used: it has done nothing yet, its tool's state was
    /// handed out to another call, and neither an approval nor an answer to a tool reaches from one
    /// session into the other. So is a call that may be repeated and that nobody approved: here it
    /// is another caller's.
    pub fn weigh(&mut self, event: &Event) {
        if let Fact::TurnStarted(start) = &event.fact {
            // No one here waits for that answer: the turn begins again.
            let phase = self.source.agent(start.frame).map(|agent| &agent.phase);
            if let Some(AgentPhase::Turn { turn, attempt, .. }) = phase
                && (*turn, *attempt) == (start.turn, start.attempt)
            {
                self.undone.insert(event.seq);
            }
            return;
        }
        let call = match &event.fact {
            Fact::CallStarted { call, .. }
            | Fact::CallWants { call, .. }
            | Fact::CallResumed { call, .. } => *call,
            Fact::AskOpened(ask) => match &ask.wanted {
                Some(wanted) => wanted.call.call_id,
                None => return,
            },
            _ => return,
        };
        let open = self.source.calls.get(&call).filter(|open| begins_anew(open));
        let Some(open) = open else { return };
        // Before that the same call may have been tried, and it may have happened.
        if event.seq < open.requested_seq {
            return;
        }
        // A person approved this very call: it is repeated as it was sent.
        let is_under_way = open.rounds == 0 && matches!(open.state, CallState::Started);
        if is_under_way && matches!(event.fact, Fact::CallStarted { grant: Some(_), .. }) {
            return;
        }
        self.back.insert(call);
        self.undone.insert(event.seq);
        match &event.fact {
            Fact::AskOpened(ask) => {
                self.unasked.insert(ask.id);
            }
            // One that came with the request is not carried over by `rename_request`.
            Fact::CallStarted { grant: Some(ask), .. } if open.request.grant.is_none() => {
                self.open.insert(*ask);
                self.undecided.insert(*ask);
                self.asked.insert(call);
            }
            _ => {}
        }
    }

    /// Whether the copy has this event too.
    fn keeps(&self, event: &Event) -> bool {
        match &event.fact {
            Fact::SessionForked { .. }
            | Fact::RunClaimed { .. }
            | Fact::TimerSet { .. }
            | Fact::TimerFired { .. } => false,
            Fact::AskDecided { ask, .. }
                if self.undecided.contains(ask) && !is_on(Switch::ForkKeepsApproval) =>
            {
                false
            }
            Fact::AskDecided { ask, .. }
            | Fact::AskExpired { ask }
            | Fact::AskWithdrawn { ask } => !self.unasked.contains(ask),
            Fact::CallJudged { call, .. } => !self.is_judged_anew(*call, event.seq),
            // What they waited for may be back before its start: they look again.
            Fact::FrameWaits { .. } => self.back.is_empty(),
            _ => !self.undone.contains(&event.seq),
        }
    }

    /// Whether the copy asks policy again about a call that waits for its start: what was said
    /// there was said of another caller. Where a person is asked, the start asks policy too.
    fn is_judged_anew(&self, call: CallId, judged_seq: u64) -> bool {
        let waits = |open: &OpenCall| match open.state {
            CallState::Judged(_) => true,
            _ => self.back.contains(&call),
        };
        let open = self.source.calls.get(&call);
        open.is_some_and(|open| judged_seq > open.requested_seq && waits(open))
            && !self.asked.contains(&call)
    }

    /// What later digests need.
    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::CallJudged { call, judgement: Judgement::Admitted { pins, .. } } => {
                self.specs.insert(*call, pins.spec.clone());
            }
            Fact::CallFinished { call, .. } => drop(self.specs.remove(call)),
            _ => {}
        }
    }

    fn run(&self, id: RunId) -> RunId {
        self.runs.get(&id).copied().unwrap_or(id)
    }

    fn ask(&self, id: AskId) -> AskId {
        AskId::of(&[&self.source.id.0.to_be_bytes(), &id.0.to_be_bytes()])
    }

    fn call(&self, id: CallId) -> CallId {
        CallId::of(&[&self.source.id.0.to_be_bytes(), &id.0.to_be_bytes()])
    }

    /// Gives all that the fact names its new id.
    fn rename(&self, fact: &mut Fact) {
        fact.data_mut().into_iter().for_each(|datum| *datum = self.datum(datum));
        match fact {
            Fact::SessionCreated { id, key, owner } => {
                (*id, *key, *owner) = (self.source.id, self.source.key.clone(), self.owner());
            }
            Fact::RunStarted { .. } => self.rename_run(fact),
            Fact::RunEnded { run, outcome: Outcome::Cancelled { unknown, .. } } => {
                *run = self.run(*run);
                unknown.iter_mut().for_each(|call| *call = self.call(*call));
            }
            Fact::RunMetered { run }
            | Fact::RunHeld { run, .. }
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
            Fact::CorrectionEntered(entry) => entry.ask = self.ask(entry.ask),
            Fact::BaseSet(base) => self.rename_base(base),
            Fact::TurnFinished(end) => {
                end.calls.iter_mut().for_each(|made| made.call = self.call(made.call));
            }
            Fact::ResultsGiven { results, .. } => {
                let renamed = std::mem::take(results).into_iter();
                *results = renamed.map(|(call, settled)| (self.call(call), settled)).collect();
            }
            Fact::SessionForked { .. }
            | Fact::StepChosen { .. }
            | Fact::EventPublished { .. }
            | Fact::StepFailed { .. }
            | Fact::StepSkipped { .. }
            | Fact::StepDiverted { .. }
            | Fact::StepRetried { .. }
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
            | Fact::AnswerGiven { .. }
            | Fact::AgentEntered(_)
            | Fact::TurnStarted(_)
            | Fact::TurnFailed { .. }
            | Fact::TalkCompacted { .. }
            | Fact::AgentAnswered { .. }
            | Fact::TimerSet { .. }
            | Fact::TimerFired { .. } => {}
        }
    }

    /// A run acts for who makes the copy, and names the one that it is a copy of.
    fn rename_run(&self, fact: &mut Fact) {
        let Fact::RunStarted { run, about, by, subject, actor, scopes, .. } = fact else { return };
        about.get_or_insert_default().parent = Some(*run);
        *run = self.run(*run);
        (*by, *subject) = (self.maker.subject.clone(), None);
        (*actor, *scopes) = (self.maker.actor.clone(), self.maker.scopes);
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

    fn rename_base(&self, base: &mut Base) {
        (base.id, base.key) = (self.source.id, self.source.key.clone());
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
        let by = &*self.maker.subject;
        ask.id = self.ask(ask.id);
        ask.run = self.run(ask.run);
        ask.subject = self.maker.owner();
        let (realm, session) = (&self.source.key.realm, self.source.id);
        ask.digest = digest(realm, session, ask.run, &ask.step, &ask.body, &more, by);
    }

    fn datum(&self, datum: &Datum) -> Arc<Datum> {
        let held = match &datum.held {
            Held::Value(_) | Held::Blob(_) => datum.held.clone(),
            Held::Object(fields) => {
                let renamed =
                    |(key, datum): (&String, &Arc<Datum>)| (key.clone(), self.datum(datum));
                Held::Object(fields.iter().map(renamed).collect())
            }
            Held::Array(items) => Held::Array(items.iter().map(|item| self.datum(item)).collect()),
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

    /// Calls that were under way and must not be repeated: no one here knows how they end.
    fn unknown_calls(&self) -> impl Iterator<Item = Fact> {
        let started = self.source.calls.iter().filter(|(_, open)| {
            let is_sent = matches!(open.state, CallState::Started) || open.is_elsewhere();
            is_sent && !open.repeatable()
        });
        started.map(move |(id, open)| {
            let message = format!(
                "the session was forked while `{}` was under way: it may have happened",
                open.request.tool
            );
            let fault = Fault::new("OutcomeUnknown", message)
                .hint("look at the other session, then settle, retry, skip or abort");
            Fact::CallFailed { call: self.call(*id), how: HowFar::Unknown, fault, said: None }
        })
    }
}

/// The calls that an ask is about.
fn calls_of(body: &AskBody) -> Vec<CallId> {
    match body {
        AskBody::Approve { calls } => calls.iter().map(|asked| asked.call_id).collect(),
        AskBody::Fix { call, .. } => call.iter().map(|asked| asked.call_id).collect(),
        AskBody::Clarify { .. } | AskBody::Fill { .. } | AskBody::Authorize { .. } => Vec::new(),
    }
}

/// Whether a call is started again in the copy: it wants something, or is under way and may be
/// repeated.
fn begins_anew(open: &OpenCall) -> bool {
    match open.state {
        CallState::Wanting(_) => !open.is_elsewhere() || open.repeatable(),
        CallState::Started => open.repeatable(),
        CallState::Requested | CallState::Judged(_) | CallState::Failed(..) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{AskedCall, CallDecision, Wanted};
    use crate::conversation::published::Published;
    use crate::session::Phase;
    use crate::tool::call::{Given, Pins, Reach, Verdict, Want};
    use crate::values::caller::Scope;
    use crate::values::ids::{FrameId, RealmId, Space};
    use serde_json::json;

    const CALL: CallId = CallId(3);
    const ASK: AskId = AskId(4);

    fn key(id: &str) -> SessionKey {
        SessionKey::new(RealmId::from("r"), Space::session(), id)
    }

    /// Who forks, with a credential that can do little.
    fn eve() -> Caller {
        let scopes = Some([Scope::Use].into_iter().collect());
        Caller { actor: Some("bot".into()), scopes, ..Caller::new("r", "eve") }
    }

    fn request() -> CallRequest {
        CallRequest {
            call: CALL,
            frame: FrameId(1),
            step: "pay".into(),
            try_no: 1,
            tool: "write::pay".into(),
            arguments: Arc::new(json!({"to": "call_00000000000000000000000000000003"})),
            sources: BTreeMap::new(),
            save_as: "paid".into(),
            next: None,
            approve: true,
            grant: None,
            replaces: None,
        }
    }

    fn approval() -> Ask {
        let call =
            AskedCall { call_id: CALL, tool: "write::pay".into(), arguments: request().arguments };
        Ask {
            id: ASK,
            run: RunId(2),
            frame: FrameId(1),
            step: "pay".into(),
            title: "approve".to_owned(),
            body: AskBody::Approve { calls: vec![call] },
            digest: ContentHash::of(b"elsewhere"),
            created_at: Millis(100),
            expires_at: Some(Millis(160)),
            wanted: None,
            answerers: None,
            subject: None,
            held: None,
            tried: Vec::new(),
        }
    }

    /// A write that was requested, judged, asked about, approved and started.
    fn journal() -> Vec<Event> {
        let pins = Pins { spec: ContentHash::of(b"spec"), reach: Reach::Writes, idempotent: false };
        let decisions =
            vec![CallDecision { call_id: CALL, approve: true, feedback: None, arguments: None }];
        let reply = Reply::Approve { decisions };
        let decision = Box::new(Decision { by: "eve".into(), at: Millis(110), reply });
        let facts = vec![
            Fact::SessionCreated { id: SessionId(1), key: key("a"), owner: None },
            Fact::RunStarted {
                run: RunId(2),
                plan: "p".into(),
                closure: ContentHash::of(b"closure"),
                input: Arc::new(Datum::inline(json!({}), Origin::Input)),
                by: "ann".into(),
                frame: FrameId(1),
                start: "pay".into(),
                trace: None,
                metered: true,
                subject: None,
                actor: None,
                scopes: None,
                about: None,
                rules: None,
            },
            Fact::CallRequested(Box::new(request())),
            Fact::CallJudged { call: CALL, judgement: Judgement::admitted(Verdict::Allow, pins) },
            Fact::AskOpened(Box::new(approval())),
            Fact::AskDecided { ask: ASK, decision },
            Fact::CallStarted { call: CALL, grant: Some(ASK) },
        ];
        let event = |(seq, fact)| Event { seq, at: Millis(100), v: VERSION, fact };
        (1..).zip(facts).map(event).collect()
    }

    /// The same write, which then wants something, is given it, and is sent again.
    fn wanting() -> Vec<Event> {
        let form = Want::Form { message: "who?".to_owned(), schema: Arc::new(json!({})) };
        let call =
            AskedCall { call_id: CALL, tool: "write::pay".into(), arguments: request().arguments };
        let asked = Ask {
            id: AskId(5),
            body: AskBody::Fill { message: "who?".to_owned(), schema: Arc::new(json!({})) },
            wanted: Some(Wanted { call, key: "who".to_owned() }),
            ..approval()
        };
        let reply = Reply::Fill { content: Some(json!({"who": "ann"})) };
        let decision = Box::new(Decision { by: "eve".into(), at: Millis(120), reply });
        let inputs = BTreeMap::from([("who".to_owned(), form)]);
        let facts = [
            Fact::CallWants { call: CALL, inputs, state: json!(1) },
            Fact::AskOpened(Box::new(asked)),
            Fact::AskDecided { ask: AskId(5), decision },
            Fact::CallResumed { call: CALL, given: Arc::default() },
        ];
        let mut events = journal();
        let first = events.len() as u64 + 1;
        let event = |(seq, fact)| Event { seq, at: Millis(100), v: VERSION, fact };
        events.extend((first..).zip(facts).map(event));
        events
    }

    fn forked(events: &[Event]) -> (Vec<Event>, Session) {
        let (id, key) = (SessionId(9), key("b"));
        let mut following = Following::new(id, key.clone(), eve());
        events.iter().for_each(|event| following.see(event, |run| RunId(run.0 + 100)));
        let mut fork = Fork::new(following, Millis(1_000));
        events.iter().for_each(|event| fork.weigh(event));
        let mut copied: Vec<Event> = events.iter().flat_map(|event| fork.copy(event)).collect();
        copied.extend(fork.finish());
        let events = copied;
        let mut session = Session::new(id, key);
        events.iter().for_each(|event| drop(session.apply(event)));
        (events, session)
    }

    #[test]
    fn an_approval_that_was_not_consumed_is_asked_again_under_a_new_id() {
        for cut in 5..=6 {
            let (events, session) = forked(&journal()[..cut]);
            assert!(!events.iter().any(|event| matches!(event.fact, Fact::AskDecided { .. })));
            let open: Vec<&Ask> = session.open_asks(RunId(102)).collect();
            assert_eq!(open.len(), 1, "cut after {cut}");
            assert_ne!((open[0].id, &open[0].digest), (ASK, &approval().digest));
            assert_eq!(open[0].expires_at, Some(Millis(1_060)));
            assert_eq!((session.phase(), session.updated_at), (Phase::Waiting, Millis(1_000)));
            let last = events.last().map(|event| &event.fact);
            let at = cut as u64;
            assert_eq!(last, Some(&Fact::SessionForked { from: SessionId(1), at }));
        }
    }

    #[test]
    fn a_call_under_way_is_unknown_and_has_an_id_of_its_own() {
        let (_, session) = forked(&journal());
        let (id, open) = session.calls.first_key_value().unwrap();
        assert_ne!(*id, CALL);
        assert!(matches!(open.state, CallState::Failed(HowFar::Unknown, _)), "{:?}", open.state);
        // A value that looks like an id is a value.
        assert_eq!(open.request.arguments, request().arguments);
        assert!(!session.runs.contains_key(&RunId(2)));
    }

    #[test]
    fn a_copy_is_its_makers_and_its_runs_name_those_that_they_are_copies_of() {
        let (events, session) = forked(&journal());
        assert_eq!(session.owner.as_deref(), Some("eve"));
        let parents: Vec<Option<RunId>> = events
            .iter()
            .filter_map(|event| match &event.fact {
                Fact::RunStarted { about, .. } => Some(about.as_ref().and_then(|it| it.parent)),
                _ => None,
            })
            .collect();
        assert_eq!(parents, [Some(RunId(2))]);
    }

    #[test]
    fn the_runs_and_asks_of_a_copy_are_for_its_maker() {
        let (_, session) = forked(&journal()[..5]);
        let run = &session.runs[&RunId(102)];
        assert_eq!(run.caller(&"r".into()), eve());
        let asks: Vec<&Ask> = session.open_asks(RunId(102)).collect();
        assert_eq!(asks[0].subject.as_deref(), Some("eve"));
        let more = ContentHash::of(b"spec");
        let body = &asks[0].body;
        let (realm, id) = (&session.key.realm, session.id);
        let expected =
            digest(realm, id, run.id, &asks[0].step, body, more.as_str().as_bytes(), "eve");
        assert_eq!(asks[0].digest, expected);
    }

    #[test]
    fn a_call_that_waits_for_its_start_is_judged_anew_unless_a_person_is_asked() {
        let (events, session) = forked(&journal()[..4]);
        let is_judged = |event: &Event| matches!(event.fact, Fact::CallJudged { .. });
        assert!(!events.iter().any(is_judged));
        let open = session.calls.first_key_value().unwrap().1;
        assert!(matches!(open.state, CallState::Requested), "{:?}", open.state);
        assert_eq!(session.phase(), Phase::Moving);
        let (events, _) = forked(&journal()[..5]);
        assert!(events.iter().any(is_judged), "what a person is asked about stays judged");
    }

    #[test]
    fn a_read_under_way_begins_again_for_its_new_caller() {
        let mut events = journal();
        let pins = Pins { spec: ContentHash::of(b"spec"), reach: Reach::Reads, idempotent: true };
        let verdict = Verdict::Allow;
        let judgement = Judgement::admitted(verdict, pins);
        events[3].fact = Fact::CallJudged { call: CALL, judgement };
        events.truncate(4);
        let fact = Fact::CallStarted { call: CALL, grant: None };
        events.push(Event { seq: 5, at: Millis(100), v: VERSION, fact });
        let (_, session) = forked(&events);
        let open = session.calls.first_key_value().unwrap().1;
        assert!(matches!(open.state, CallState::Requested), "{:?}", open.state);
    }

    #[test]
    fn a_copy_tells_the_world_nothing_again() {
        let published = Published { source: None, event: Arc::new(json!({"type": "Paid"})) };
        let output = Arc::new(Datum::inline(json!(1), Origin::Call(CALL)));
        let facts = [
            Fact::CallFinished {
                call: CALL,
                output,
                settled: None,
                published: vec![published.clone()],
            },
            Fact::EventPublished {
                frame: FrameId(1),
                step: "tell".into(),
                published,
                next: Some("end".into()),
            },
        ];
        let mut events = journal();
        let first = events.len() as u64 + 1;
        let event = |(seq, fact)| Event { seq, at: Millis(100), v: VERSION, fact };
        events.extend((first..).zip(facts).map(event));
        let (copied, _) = forked(&events);
        assert!(!serde_json::to_string(&copied).unwrap().contains("Paid"));
        let goes_on = |event: &Event| match &event.fact {
            Fact::StepChosen { next: Some(next), .. } => next.as_str() == "end",
            _ => false,
        };
        assert!(copied.iter().any(goes_on), "the copy goes another way: {copied:?}");
    }

    #[test]
    fn a_call_that_goes_on_elsewhere_is_unknown_as_any_under_way() {
        let mut events = journal();
        let first = events.len() as u64 + 1;
        let given = Given { state: json!({"task": "1"}), ..Given::default() };
        let facts = [
            Fact::CallWants { call: CALL, inputs: BTreeMap::new(), state: given.state.clone() },
            Fact::CallResumed { call: CALL, given: Arc::new(given) },
        ];
        let event = |(seq, fact)| Event { seq, at: Millis(100), v: VERSION, fact };
        events.extend((first..).zip(facts).map(event));
        for cut in [events.len() - 1, events.len()] {
            let (_, session) = forked(&events[..cut]);
            let open = session.calls.first_key_value().unwrap().1;
            let unknown = matches!(open.state, CallState::Failed(HowFar::Unknown, _));
            assert!(unknown, "cut after {cut}: {:?}", open.state);
        }
    }

    #[test]
    fn a_call_that_wants_something_is_back_before_its_start() {
        let whole = wanting();
        for cut in 8..=10 {
            let (events, session) = forked(&whole[..cut]);
            let undone = |event: &Event| {
                let fact = &event.fact;
                matches!(fact, Fact::CallStarted { .. } | Fact::CallWants { .. })
                    || matches!(fact, Fact::AskDecided { .. })
            };
            assert!(!events.iter().any(undone), "cut after {cut}");
            let (id, open) = session.calls.first_key_value().unwrap();
            assert_ne!(*id, CALL);
            assert!(matches!(open.state, CallState::Judged(_)), "{:?}", open.state);
            let asks: Vec<&Ask> = session.open_asks(RunId(102)).collect();
            assert_eq!(asks.len(), 1, "cut after {cut}");
            assert!(matches!(asks[0].body, AskBody::Approve { .. }), "{:?}", asks[0]);
            assert_eq!(session.runs[&RunId(102)].open_asks, 1);
            assert_eq!(session.phase(), Phase::Waiting);
        }
        // Once it is sent with what it wanted it may have happened, as any write.
        let (events, session) = forked(&whole);
        let (id, open) = session.calls.first_key_value().unwrap();
        assert!(matches!(open.state, CallState::Failed(HowFar::Unknown, _)), "{:?}", open.state);
        let wanted = events.iter().find_map(|event| match &event.fact {
            Fact::AskOpened(ask) => ask.wanted.clone(),
            _ => None,
        });
        assert_eq!(wanted.unwrap().call.call_id, *id);
    }

    #[test]
    fn a_copy_of_a_session_that_lost_its_beginning_begins_like_any_other() {
        let value = Datum::inline(json!(7), Origin::Call(CALL));
        let base = Base {
            id: SessionId(1),
            key: key("a"),
            owner: Some("ann".into()),
            created_at: Millis(5),
            context: BTreeMap::from([("paid".into(), Arc::new(value))]),
            runs: 3,
            frames: 8,
            timers: BTreeMap::from([("t".to_owned(), Millis(900))]),
            last_decided: None,
            talk: None,
        };
        let fact = Fact::BaseSet(Box::new(base));
        let base = Event { seq: 20, at: Millis(60), v: VERSION, fact };
        let (events, session) = forked(&[base]);
        let owner = Some("eve".into());
        let created = Fact::SessionCreated { id: SessionId(9), key: key("b"), owner };
        assert_eq!(events[0].fact, created);
        let last = events.last().map(|event| (event.seq, &event.fact));
        assert_eq!(last, Some((3, &Fact::SessionForked { from: SessionId(1), at: 20 })));
        assert_eq!((session.runs_made, session.frames_made, session.timers.len()), (3, 8, 0));
        assert_ne!(session.context["paid"].from, Origin::Call(CALL));
        assert_eq!(session.owner.as_deref(), Some("eve"));
    }

    #[test]
    fn a_grant_is_not_carried_over_and_a_fork_of_a_fork_names_its_own_source() {
        let mut events = journal();
        events.truncate(3);
        if let Fact::CallRequested(request) = &mut events[2].fact {
            request.grant = Some(ASK);
        }
        let (events, session) = forked(&events);
        assert!(session.calls.values().all(|open| open.request.grant.is_none()));
        let (again, _) = forked(&events);
        let forks: Vec<&Fact> = again
            .iter()
            .map(|event| &event.fact)
            .filter(|fact| matches!(fact, Fact::SessionForked { .. }))
            .collect();
        assert_eq!(forks, [&Fact::SessionForked { from: SessionId(9), at: 4 }]);
    }
}
