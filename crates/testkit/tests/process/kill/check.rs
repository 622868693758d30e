//! What must hold after every restart, and what must hold at the end.

use super::effects::Effects;
use super::plans::{self, Plan, Written};
use super::settle::Settled;
use super::talk::Talks;
use super::told::{Ending, Told};
use crate::api;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use testkit::http::Client;
use testkit::kill::{Book, Load, Rng, SeenRun, covers};

/// How many of the newest, and of all, acknowledgements are looked at after a restart.
const SPOT_CHECKS: u64 = 12;
const NEWEST: usize = 24;

#[derive(Debug, Deserialize)]
struct Session {
    key: String,
    run: Option<String>,
}

/// Looks whether some of what was acknowledged is still there, above all of the newest.
pub(super) fn spots(client: &mut Client, load: &Load<'_>, told: &mut Told<'_>, rng: &mut Rng) {
    let (runs, replies) = chosen(&load.book(), rng);
    for seen in &runs {
        kept_run(client, seen, told);
    }
    for (ask, reply) in &replies {
        kept_reply(client, ask, reply, told);
    }
}

/// What is known from outside the server.
pub(super) struct Facts<'a> {
    pub(super) book: &'a Book,
    pub(super) effects: &'a Effects,
    pub(super) settled: &'a Settled,
    pub(super) talks: &'a Talks,
}

/// Looks at everything: acknowledged or not, every run there is must be over, and exactly what it
/// says it did must have happened. Of what was removed the sink knows the end.
pub(super) fn everything(client: &mut Client, facts: &Facts<'_>, told: &mut Told<'_>) {
    let Facts { book, effects, settled, talks } = facts;
    assert!(book.faults.is_empty(), "the load saw faults:\n{}", book.faults.join("\n"));
    told.check();
    for seen in &book.runs {
        kept_run(client, seen, told);
        assert!(told.began(&seen.id), "the sink was not told that {seen:?} began");
    }
    let mut replies = BTreeMap::new();
    for (ask, reply) in &book.replies {
        let session = kept_reply(client, ask, reply, told);
        assert!(told.decided(ask).is_some(), "the sink was not told of the reply to {ask}");
        // A call that is tried again is asked about again: a no ends the run, so it was the last.
        let is_last = !rejects(replies.get(&session));
        if reply.get("action").is_none() && is_last {
            replies.insert(session, reply.clone());
        }
    }
    let outside = Outside { book, effects, replies: &replies };
    let mut sessions: Vec<Session> = api::all(client, "/api/v1/sessions?space=session");
    sessions.retain(|session| session.key.starts_with(plans::PREFIX));
    for session in &sessions {
        ended(client, session, &outside, told);
    }
    let known: BTreeSet<&str> = sessions.iter().map(|session| session.key.as_str()).collect();
    assert_eq!(known.len(), sessions.len(), "a session is listed twice");
    let endings = told.endings();
    for (key, plan) in book.orders.iter().filter(|(key, _)| !known.contains(key.as_str())) {
        removed(key, plans::named(plan), endings.get(key), &outside);
    }
    for run in effects.by_run.keys() {
        let is_ours = book.orders.contains_key(run) || talks.told_to_note(run);
        assert!(is_ours, "`{run}` wrote, and nobody ordered it");
    }
    talks.check(client, effects, told);
    let is_asked = |call: &&String| settled.unknown.contains_key(*call);
    let unasked: Vec<&String> = effects.unheard.iter().filter(|call| !is_asked(call)).collect();
    assert!(unasked.is_empty(), "unknown outcomes that nobody was asked about: {unasked:?}");
}

/// What is known of sessions from outside the server.
struct Outside<'a> {
    book: &'a Book,
    effects: &'a Effects,
    /// The last reply to each session.
    replies: &'a BTreeMap<String, Value>,
}

impl Outside<'_> {
    fn writes(&self, key: &str) -> BTreeMap<String, Written> {
        self.effects.by_run.get(key).cloned().unwrap_or_default()
    }

    /// What a completed run of this plan must have written, and must have answered.
    fn completed(&self, key: &str, plan: &Plan) -> Value {
        let writes = self.writes(key);
        let steps: BTreeSet<&str> = writes.keys().map(String::as_str).collect();
        let expected: BTreeSet<&str> = plan.writes.iter().copied().collect();
        assert_eq!(steps, expected, "what `{key}` wrote");
        let reply = self.replies.get(key);
        if let Some(word) = reply.and_then(|reply| reply.get("answer")) {
            let written = writes.get("write").map(|written| written.word.as_str());
            assert_eq!(written, word.as_str(), "what `{key}` wrote is not what was replied");
        }
        Value::String(plans::answer(plan, key, &writes))
    }
}

fn ended(client: &mut Client, session: &Session, outside: &Outside<'_>, told: &mut Told<'_>) {
    let key = &session.key;
    let Some(plan) = outside.book.orders.get(key) else {
        panic!("nobody ordered {session:?}");
    };
    let plan = plans::named(plan);
    let Some(run) = &session.run else {
        panic!("{session:?} was made for a run, and has none");
    };
    let run = api::run(client, run);
    let ending = told.ended(&run.id).map(|ending| ending.how);
    assert_eq!(ending.as_deref(), Some(run.status.as_str()), "what the sink was told of {run:?}");
    if rejects(outside.replies.get(key)) {
        let name = run.last_error.as_ref().map_or(&Value::Null, |error| &error["name"]);
        assert_eq!((run.status.as_str(), name.as_str()), ("failed", Some("Rejected")), "{run:?}");
        let writes = outside.writes(key);
        assert!(writes.is_empty(), "a rejected call was sent: {run:?}, {writes:?}");
        return;
    }
    assert_eq!(run.status, "completed", "{run:?}");
    assert_eq!(run.answer, Some(outside.completed(key, plan)), "{run:?}");
}

/// A session that is not there: it was removed after its run had ended, or it never began.
fn removed(key: &str, plan: &Plan, ending: Option<&Ending>, outside: &Outside<'_>) {
    let seen: Vec<&SeenRun> = outside.book.runs.iter().filter(|seen| seen.session == key).collect();
    let writes = outside.writes(key);
    let Some(ending) = ending else {
        assert!(seen.is_empty() && writes.is_empty(), "`{key}` is not there: {seen:?}, {writes:?}");
        return;
    };
    if rejects(outside.replies.get(key)) {
        assert_eq!(ending.how, "failed", "`{key}` was rejected");
        assert!(writes.is_empty(), "a rejected call was sent: `{key}`, {writes:?}");
        return;
    }
    assert_eq!(ending.how, "completed", "`{key}`");
    let answer = outside.completed(key, plan);
    for told in seen.iter().filter_map(|seen| seen.answer.as_ref()) {
        assert_eq!(*told, answer, "what was acknowledged of `{key}`");
    }
}

fn rejects(reply: Option<&Value>) -> bool {
    let decision = reply.and_then(|reply| reply.pointer("/decisions/0/approve"));
    decision.and_then(Value::as_bool) == Some(false)
}

/// An acknowledged run is there, and what was told of it is still so; or it is over and removed.
fn kept_run(client: &mut Client, seen: &SeenRun, told: &mut Told<'_>) {
    let Some(run) = api::find_run(client, &seen.id) else {
        let ending = told.ended(&seen.id);
        assert!(ending.is_some(), "{seen:?} was acknowledged, and is gone before its end");
        return;
    };
    if seen.answer.is_some() {
        let now = (run.status.as_str(), &run.answer);
        assert_eq!(now, ("completed", &seen.answer), "{seen:?} was acknowledged; now {run:?}");
    }
}

/// An acknowledged reply is the decision of its ask, unless that was removed; the key of the
/// session that asked.
fn kept_reply(client: &mut Client, id: &str, reply: &Value, told: &mut Told<'_>) -> String {
    let Some(ask) = api::find_ask(client, id) else {
        let decided = told.decided(id);
        return decided.unwrap_or_else(|| panic!("{reply} was acknowledged, and `{id}` is gone"));
    };
    let kept = ask.decision.as_ref().is_some_and(|decision| covers(&decision.reply, reply));
    assert!(kept && ask.status == "decided", "{reply} was acknowledged; now {ask:?}");
    ask.session.key
}

fn chosen(book: &Book, rng: &mut Rng) -> (Vec<SeenRun>, Vec<(String, Value)>) {
    let newest = book.runs.len().saturating_sub(NEWEST);
    let mut runs = book.runs[newest..].to_vec();
    let mut replies = Vec::new();
    for _ in 0..SPOT_CHECKS {
        let place = rng.bits() as usize;
        runs.extend(book.runs.get(place % book.runs.len().max(1)).cloned());
        let reply = book.replies.iter().nth(place % book.replies.len().max(1));
        replies.extend(reply.map(|(ask, reply)| (ask.clone(), reply.clone())));
    }
    (runs, replies)
}
