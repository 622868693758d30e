//! Where a session's journal can be cut: the runs before the cut are old and over, and one event
//! takes the place of all of theirs. It holds what they left, so that a replay from it leads
//! to the state that the whole journal gives.

use crate::conversation::talk::Talk;
use crate::event::{Base, Event, Fact, VERSION};
use crate::session::Session;
use crate::values::ids::{AgentName, Fence, Millis, SessionId, SessionKey};
use std::collections::BTreeMap;

/// A trim in one commit: a session's events up to a sequence are removed with their runs, and
/// replaced by the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trim {
    /// The session.
    pub key: SessionKey,
    /// Its id: another session may have come under the same key.
    pub id: SessionId,
    /// Its fence as it was looked at.
    pub fence: Fence,
    /// All runs that go ended before this.
    pub before: Millis,
    /// The base's sequence: the last one that goes.
    pub seq: u64,
    /// The base, as JSON.
    pub base: String,
    /// The number of the last run that goes.
    pub last_run: u32,
}

/// A place where a journal can be cut.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// The conversation so far; the cut puts its messages into the base.
    pub talk: Talk,
    /// The same for each agent, where several runs may be active at once.
    pub talks: BTreeMap<AgentName, Talk>,
    /// Takes the place of its sequence and of all before it.
    pub base: Event,
    /// The number of the last run that goes.
    pub last_run: u32,
    /// How many runs go.
    pub runs: u32,
}

/// Reads a journal from its beginning and finds the last place where it can be cut: no run was
/// active there, and all that had been started ended before a time.
#[derive(Debug)]
pub struct Cutter {
    session: Session,
    before: Millis,
    /// The number of the first run that stays.
    keeps: u32,
    /// How many runs ended in the events that were taken in.
    ended: u32,
    found: Option<Cut>,
}

impl Cutter {
    /// For a session whose runs from number `keeps` on stay.
    pub fn new(id: SessionId, key: SessionKey, before: Millis, keeps: u32) -> Self {
        Self { session: Session::new(id, key), before, keeps, ended: 0, found: None }
    }

    /// The last event that was taken in.
    pub fn seq(&self) -> u64 {
        self.session.seq
    }

    /// Takes in the next event; whether there may be a later place.
    pub fn take(&mut self, event: &Event) -> bool {
        match &event.fact {
            Fact::RunStarted { .. } => {
                if self.ended > 0 && is_at_rest(&self.session) {
                    self.found = Some(self.cut_here());
                }
                if self.session.runs_made + 1 >= self.keeps {
                    return false;
                }
            }
            Fact::RunEnded { .. } if event.at >= self.before => return false,
            Fact::RunEnded { .. } => self.ended += 1,
            _ => {}
        }
        self.session.apply(event);
        true
    }

    /// The last place that was found.
    pub fn found(&self) -> Option<&Cut> {
        self.found.as_ref()
    }

    fn cut_here(&self) -> Cut {
        let session = &self.session;
        let base = Base {
            id: session.id,
            key: session.key.clone(),
            owner: session.owner.clone(),
            created_at: session.created_at,
            context: (*session.context).clone(),
            runs: session.runs_made,
            frames: session.frames_made,
            timers: session.timers.clone(),
            last_decided: session.last_decided.clone(),
            talk: None,
            talks: BTreeMap::new(),
        };
        let seq = session.seq;
        let at = session.updated_at;
        let base = Event { seq, at, v: VERSION, fact: Fact::BaseSet(Box::new(base)) };
        let talk = session.talk.clone();
        let talks = session.talks.clone();
        Cut { talk, talks, base, last_run: session.runs_made, runs: self.ended }
    }
}

/// Whether nothing is open that a base does not hold.
fn is_at_rest(session: &Session) -> bool {
    session.runs.is_empty()
        && session.frames.is_empty()
        && session.calls.is_empty()
        && session.asks.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{Ask, AskBody, Decision, Reply};
    use crate::event::{CallRequest, Outcome, TimerStart};
    use crate::tool::call::{Judgement, Pins, Reach, Verdict};
    use crate::values::datum::{Datum, Origin};
    use crate::values::ids::{AskId, CallId, ContentHash, FrameId, RunId, Space};
    use serde_json::json;
    use std::sync::Arc;

    const ID: SessionId = SessionId(1);

    fn key() -> SessionKey {
        SessionKey::new("r", Space::session(), "s")
    }

    fn datum(number: u32, from: Origin) -> Arc<Datum> {
        Arc::new(Datum::inline(json!(number), from))
    }

    fn asked(no: u32) -> Ask {
        Ask {
            id: AskId(u128::from(no)),
            run: RunId(u128::from(no)),
            frame: FrameId(no),
            step: "ask".into(),
            title: "go on?".to_owned(),
            body: AskBody::Clarify { message: "go on?".to_owned(), questions: Vec::new() },
            digest: ContentHash::of(b"ask"),
            created_at: Millis(0),
            expires_at: None,
            wanted: None,
            answerers: None,
            subject: None,
            held: None,
            tried: Vec::new(),
            next: crate::ask::context::NextSteps::default(),
            about: Vec::new(),
        }
    }

    /// A run that calls a tool, asks, and continues; its end comes last.
    fn run(no: u32) -> Vec<Fact> {
        let run = RunId(u128::from(no));
        let frame = FrameId(no);
        let call = CallId(u128::from(no));
        let ask = AskId(u128::from(no));
        let request = CallRequest {
            call,
            frame,
            step: "call".into(),
            try_no: 1,
            tool: "math::add".into(),
            arguments: Arc::new(json!({})),
            sources: BTreeMap::new(),
            save_as: format!("of{no}").into(),
            next: Some("ask".into()),
            approve: false,
            grant: None,
            replaces: None,
        };
        let pins = Pins { spec: ContentHash::of(b"spec"), reach: Reach::Reads, idempotent: true };
        let reply = Reply::Clarify { answer: Some(json!(no)) };
        let decision = Box::new(Decision::new("eve", Millis(0), reply));
        vec![
            Fact::RunStarted {
                run,
                plan: "p".into(),
                closure: ContentHash::of(b"closure"),
                input: datum(no, Origin::Input),
                by: "ann".into(),
                frame,
                start: "call".into(),
                trace: None,
                subject: None,
                actor: None,
                scopes: None,
                about: None,
                rules: None,
            },
            Fact::CallRequested(Box::new(request)),
            Fact::CallJudged { call, judgement: Judgement::admitted(Verdict::Allow, pins) },
            Fact::CallStarted { call, grant: None },
            Fact::CallFinished {
                call,
                output: datum(no, Origin::Call(call)),
                settled: None,
                published: Vec::new(),
            },
            Fact::AskOpened(Box::new(asked(no))),
            Fact::AskDecided { ask, decision },
            Fact::InputGiven {
                frame,
                step: "ask".into(),
                value: datum(no, Origin::Reply(ask)),
                next: None,
            },
            Fact::RunEnded { run, outcome: Outcome::Completed { answer: datum(no, Origin::Plan) } },
        ]
    }

    /// Three runs, one after the other; something comes late between the first two.
    fn journal() -> Vec<Event> {
        let mut facts = vec![Fact::SessionCreated { id: ID, key: key(), owner: None }];
        facts.extend(run(1));
        let result = Ok(datum(9, Origin::Call(CallId(1))));
        facts.push(Fact::CallLate { call: CallId(1), result });
        let timer = TimerStart { timer: "t".to_owned(), at: Millis(999) };
        facts.push(Fact::TimerSet(timer));
        facts.extend(run(2));
        facts.extend(run(3));
        let event =
            |(seq, fact): (u64, Fact)| Event { seq, at: Millis(seq as i64), v: VERSION, fact };
        (1..).zip(facts).map(event).collect()
    }

    fn cut(events: &[Event], before: i64, keeps: u32) -> Option<Cut> {
        let mut cutter = Cutter::new(ID, key(), Millis(before), keeps);
        let _ = events.iter().all(|event| cutter.take(event));
        cutter.found().cloned()
    }

    fn started(events: &[Event], no: u32) -> u64 {
        let is_it = |event: &&Event| match &event.fact {
            Fact::RunStarted { run, .. } => run.0 == u128::from(no),
            _ => false,
        };
        events.iter().find(is_it).unwrap().seq
    }

    #[test]
    fn replay_from_a_base_gives_the_same_states() {
        let events = journal();
        for keeps in [2, 3] {
            let cut = cut(&events, 1_000, keeps).unwrap();
            assert_eq!((cut.last_run, cut.runs), (keeps - 1, keeps - 1));
            assert_eq!(cut.base.seq, started(&events, keeps) - 1);
            // Through JSON, as it is stored.
            let base: Event =
                serde_json::from_str(&serde_json::to_string(&cut.base).unwrap()).unwrap();
            assert_eq!(base, cut.base);
            let mut whole = Session::new(ID, key());
            let mut short = Session::new(ID, key());
            let mut ended = false;
            for event in &events {
                let row = whole.apply(event);
                if event.seq < base.seq {
                    continue;
                }
                let short_row = short.apply(if event.seq == base.seq { &base } else { event });
                if event.seq > base.seq {
                    assert_eq!(row, short_row, "event {}", event.seq);
                }
                ended |= event.seq > base.seq && matches!(event.fact, Fact::RunEnded { .. });
                let mut seen = whole.clone();
                if !ended {
                    assert_eq!(short.last_run, None, "the run is gone");
                    seen.last_run = None;
                }
                assert_eq!(short, seen, "after event {}", event.seq);
            }
        }
    }

    #[test]
    fn a_trimmed_journal_can_be_trimmed_again() {
        let events = journal();
        let first = cut(&events, 1_000, 2).unwrap();
        let rest = events.iter().filter(|event| event.seq > first.base.seq).cloned();
        let shorter: Vec<Event> = std::iter::once(first.base.clone()).chain(rest).collect();
        assert_eq!(cut(&shorter, 1_000, 2), None, "there is nothing left to remove");
        let again = cut(&shorter, 1_000, 3).unwrap();
        let at_once = cut(&events, 1_000, 3).unwrap();
        assert_eq!((&again.base, again.last_run), (&at_once.base, 2));
        assert_eq!((again.runs, at_once.runs), (1, 2));
    }

    #[test]
    fn young_runs_active_runs_and_the_newest_run_stay() {
        let events = journal();
        let second = started(&events, 2);
        // The second run ends later than that.
        let young = cut(&events, second as i64 + 1, 9).unwrap();
        assert_eq!((young.last_run, young.base.seq), (1, second - 1));
        assert_eq!(cut(&events, 1, 9), None);
        // A run is only known not to be the newest once another has begun.
        assert_eq!(cut(&events[..second as usize - 1], 1_000, 9), None);
        // Two at the same time are cut off together or not at all.
        let mut facts = vec![Fact::SessionCreated { id: ID, key: key(), owner: None }];
        let mut other = run(2);
        let end = other.pop().unwrap();
        facts.extend(other);
        facts.extend(run(1));
        let before_end = facts.len() as u64;
        facts.push(end);
        facts.extend(run(3));
        let event = |(seq, fact)| Event { seq, at: Millis(1), v: VERSION, fact };
        let events: Vec<Event> = (1..).zip(facts).map(event).collect();
        let both = cut(&events, 1_000, 9).unwrap();
        assert_eq!((both.runs, both.base.seq), (2, before_end + 1));
    }
}
