//! Forking: a session that begins as a copy of another, up to one of its events. Everything in the
//! copy has ids of its own, so that no reply, approval or idempotency key reaches from one session
//! into the other. What was under way is not known here: a fork repeats no write by itself.

use crate::ask::AskBody;
use crate::event::{Event, Fact, VERSION};
use crate::planted::{Switch, is_on};
use crate::session::{AgentPhase, CallState, Frame, FrameState, OpenCall, Session};
use crate::tool::call::{CallProgress, Judgement};
use crate::values::caller::Caller;
use crate::values::fault::Fault;
use crate::values::ids::{
    AskId, CallId, ContentHash, Millis, PlanId, RunId, SessionId, SessionKey,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod names;

/// The state that a fork begins with, found by reading the journal of its source a first time.
pub struct ForkScan {
    source: Session,
    /// The maker of the new session: its runs act for this caller.
    maker: Caller,
    /// The new id of each run.
    runs: BTreeMap<RunId, RunId>,
}

impl ForkScan {
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
/// calls that want something first are back before their start and judged again, timers and claims
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
    /// Calls that a person is asked about in the copy; all others that wait are judged again.
    asked: BTreeSet<CallId>,
    /// The pinned spec of each judged call that is not over, for digests.
    specs: BTreeMap<CallId, ContentHash>,
}

impl Fork {
    /// A fork of what was followed to its end.
    pub fn new(followed: ForkScan, now: Millis) -> Self {
        let ForkScan { source, maker, runs } = followed;
        let about_calls = |body: &AskBody| match body {
            AskBody::Approve { .. } | AskBody::Fix { .. } => true,
            AskBody::Clarify { .. } | AskBody::Fill { .. } | AskBody::Authorize { .. } => false,
        };
        let held = || source.asks.iter();
        // A correction that is under way was chosen by its ask: that is acted upon.
        let chose = |frame: &Frame| match frame.state {
            FrameState::Correcting { ask, .. } => Some(ask),
            _ => None,
        };
        let chosen: BTreeSet<AskId> = source.frames.values().filter_map(chose).collect();
        let undecided: BTreeSet<AskId> = held()
            .filter(|(_, open)| open.decision.is_some() && about_calls(&open.ask.body))
            .map(|(id, _)| *id)
            .filter(|id| !chosen.contains(id))
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
                let id = self.source.id;
                let key = self.source.key.clone();
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
        if let Fact::ProposalAsked(start) = &event.fact {
            // No one here waits for what that model says: its rule holds the ask again.
            let state = self.source.frames.get(&start.frame).map(|frame| &frame.state);
            if matches!(state, Some(FrameState::Proposing { ask, .. }) if *ask == start.ask) {
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
            | Fact::TimerSet(_)
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
            Fact::CallFailed { call: self.call(*id), how: CallProgress::Unknown, fault, said: None }
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
    use crate::ask::context::{ApprovalReason, CallDetails};
    use crate::ask::{
        Ask, AskedCall, CallDecision, Decision, FixAction, InputSource, Reply, digest,
    };
    use crate::conversation::published::PublishedEvent;
    use crate::event::{Base, CallRequest, CorrectionEntry};
    use crate::session::Phase;
    use crate::tool::call::{InputRequest, InputResponses, Pins, Reach, Verdict};
    use crate::values::caller::Scope;
    use crate::values::datum::{Datum, Origin};
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
            next: crate::ask::context::NextSteps::default(),
            about: vec![CallDetails { call_id: CALL, pins: None, why: Some(ApprovalReason::Plan) }],
        }
    }

    /// A write that was requested, judged, asked about, approved and started.
    fn journal() -> Vec<Event> {
        let pins = Pins { spec: ContentHash::of(b"spec"), reach: Reach::Writes, idempotent: false };
        let decisions =
            vec![CallDecision { call_id: CALL, approve: true, feedback: None, arguments: None }];
        let reply = Reply::Approve { decisions };
        let decision = Box::new(Decision::new("eve", Millis(110), reply));
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
        let form = InputRequest::Form { message: "who?".to_owned(), schema: Arc::new(json!({})) };
        let call =
            AskedCall { call_id: CALL, tool: "write::pay".into(), arguments: request().arguments };
        let asked = Ask {
            id: AskId(5),
            body: AskBody::Fill { message: "who?".to_owned(), schema: Arc::new(json!({})) },
            wanted: Some(InputSource { call, key: "who".to_owned() }),
            ..approval()
        };
        let reply = Reply::Fill { content: Some(json!({"who": "ann"})) };
        let decision = Box::new(Decision::new("eve", Millis(120), reply));
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
        let id = SessionId(9);
        let key = key("b");
        let mut following = ForkScan::new(id, key.clone(), eve());
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
    fn an_unused_approval_is_asked_again_under_a_new_id_in_a_fork() {
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
    fn an_active_write_is_unknown_in_a_fork_and_has_its_own_id() {
        let (_, session) = forked(&journal());
        let (id, open) = session.calls.first_key_value().unwrap();
        assert_ne!(*id, CALL);
        assert!(
            matches!(open.state, CallState::Failed(CallProgress::Unknown, _)),
            "{:?}",
            open.state
        );
        // A value that looks like an id is a value.
        assert_eq!(open.request.arguments, request().arguments);
        assert!(!session.runs.contains_key(&RunId(2)));
    }

    #[test]
    fn a_fork_belongs_to_its_maker_and_its_runs_name_their_originals() {
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
    fn runs_and_asks_of_a_fork_belong_to_its_maker() {
        let (_, session) = forked(&journal()[..5]);
        let run = &session.runs[&RunId(102)];
        assert_eq!(run.caller(&"r".into()), eve());
        let asks: Vec<&Ask> = session.open_asks(RunId(102)).collect();
        assert_eq!(asks[0].subject.as_deref(), Some("eve"));
        let AskBody::Approve { calls } = &asks[0].body else { panic!("{asks:?}") };
        assert_eq!(asks[0].about[0].call_id, calls[0].call_id);
        let more = ContentHash::of(b"spec");
        let body = &asks[0].body;
        let realm = &session.key.realm;
        let id = session.id;
        let expected =
            digest(realm, id, run.id, &asks[0].step, body, more.as_str().as_bytes(), "eve");
        assert_eq!(asks[0].digest, expected);
    }

    #[test]
    fn a_fork_rejudges_calls_that_have_not_started() {
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
    fn a_fork_restarts_active_reads_for_its_caller() {
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
    fn an_active_correction_continues_in_a_fork() {
        let mut events = journal();
        events.truncate(4);
        let fault = Fault::new("Boom", "it broke");
        let how = CallProgress::Failed;
        let plans = vec!["fixes/look".into()];
        let actions = vec![FixAction::Retry, FixAction::Correct];
        let body = AskBody::Fix { fault: fault.clone(), call: None, how, actions, plans };
        let reply = Reply::Fix {
            action: FixAction::Correct,
            arguments: None,
            output: None,
            plan_id: Some("fixes/look".into()),
        };
        let entry = CorrectionEntry {
            frame: FrameId(1),
            step: "pay".into(),
            child: FrameId(2),
            plan: "fixes/look".into(),
            input: Arc::new(Datum::inline(json!({}), Origin::Plan)),
            start: "look".into(),
            ask: ASK,
            ends_at: Millis(400),
            drafted: None,
        };
        let facts = [
            Fact::CallFailed { call: CALL, how, fault, said: None },
            Fact::AskOpened(Box::new(Ask { body, expires_at: None, ..approval() })),
            Fact::AskDecided {
                ask: ASK,
                decision: Box::new(Decision::new("supervisor", Millis(100), reply)),
            },
            Fact::CorrectionEntered(Box::new(entry)),
        ];
        let event = |(seq, fact)| Event { seq, at: Millis(100), v: VERSION, fact };
        events.extend((5..).zip(facts).map(event));
        let (_, session) = forked(&events);
        assert_eq!(session.open_asks(RunId(102)).count(), 0, "it was chosen already");
        assert_eq!(session.frames[&FrameId(2)].corrects, Some(Millis(1_300)));
        // Before it began the choice is made again.
        let (_, session) = forked(&events[..7]);
        assert_eq!(session.open_asks(RunId(102)).count(), 1);
    }

    #[test]
    fn a_fork_sends_no_old_events_again() {
        let published = PublishedEvent { source: None, event: Arc::new(json!({"type": "Paid"})) };
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
    fn an_active_remote_task_has_an_unknown_outcome_in_a_fork() {
        let mut events = journal();
        let first = events.len() as u64 + 1;
        let given = InputResponses { state: json!({"task": "1"}), ..InputResponses::default() };
        let facts = [
            Fact::CallWants { call: CALL, inputs: BTreeMap::new(), state: given.state.clone() },
            Fact::CallResumed { call: CALL, given: Arc::new(given) },
        ];
        let event = |(seq, fact)| Event { seq, at: Millis(100), v: VERSION, fact };
        events.extend((first..).zip(facts).map(event));
        for cut in [events.len() - 1, events.len()] {
            let (_, session) = forked(&events[..cut]);
            let open = session.calls.first_key_value().unwrap().1;
            let unknown = matches!(open.state, CallState::Failed(CallProgress::Unknown, _));
            assert!(unknown, "cut after {cut}: {:?}", open.state);
        }
    }

    #[test]
    fn a_call_that_waits_for_input_is_reset_in_a_fork() {
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
        assert!(
            matches!(open.state, CallState::Failed(CallProgress::Unknown, _)),
            "{:?}",
            open.state
        );
        let wanted = events.iter().find_map(|event| match &event.fact {
            Fact::AskOpened(ask) => ask.wanted.clone(),
            _ => None,
        });
        assert_eq!(wanted.unwrap().call.call_id, *id);
    }

    #[test]
    fn a_fork_of_a_trimmed_session_begins_like_any_other() {
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
            talks: BTreeMap::new(),
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
