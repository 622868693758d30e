//! What must hold after every restart, and what must hold at the end.

use super::effects::Effects;
use super::plans;
use super::settle::Settled;
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
pub(super) fn spots(client: &mut Client, load: &Load<'_>, rng: &mut Rng) {
    let (runs, replies) = chosen(&load.book(), rng);
    for seen in &runs {
        kept_run(client, seen);
    }
    for (ask, reply) in &replies {
        kept_reply(client, ask, reply);
    }
}

/// Looks at everything: acknowledged or not, every run there is must be over, and exactly what it
/// says it did must have happened.
pub(super) fn everything(client: &mut Client, book: &Book, effects: &Effects, settled: &Settled) {
    assert!(book.faults.is_empty(), "the load saw faults:\n{}", book.faults.join("\n"));
    for seen in &book.runs {
        kept_run(client, seen);
    }
    let mut replies = BTreeMap::new();
    for (ask, reply) in &book.replies {
        let session = kept_reply(client, ask, reply);
        // A call that is tried again is asked about again: a no ends the run, so it was the last.
        let is_last = !rejects(replies.get(&session));
        if reply.get("action").is_none() && is_last {
            replies.insert(session, reply.clone());
        }
    }
    let sessions: Vec<Session> = api::all(client, "/api/v1/sessions?space=session");
    for session in &sessions {
        let reply = replies.get(&session.key);
        ended(client, session, &Outside { book, effects, reply });
    }
    let known: BTreeSet<&str> = sessions.iter().map(|session| session.key.as_str()).collect();
    assert_eq!(known.len(), sessions.len(), "a session is listed twice");
    for run in effects.by_run.keys() {
        assert!(known.contains(run.as_str()), "session `{run}` wrote, and is not there");
    }
    for seen in &book.runs {
        assert!(known.contains(seen.session.as_str()), "{seen:?} is in no list");
    }
    let is_asked = |call: &&String| settled.unknown.contains_key(*call);
    let unasked: Vec<&String> = effects.unheard.iter().filter(|call| !is_asked(call)).collect();
    assert!(unasked.is_empty(), "unknown outcomes that nobody was asked about: {unasked:?}");
}

/// What is known of a session from outside the server.
struct Outside<'a> {
    book: &'a Book,
    effects: &'a Effects,
    reply: Option<&'a Value>,
}

fn ended(client: &mut Client, session: &Session, outside: &Outside<'_>) {
    let key = &session.key;
    let Some(plan) = outside.book.orders.get(key) else {
        panic!("nobody ordered {session:?}");
    };
    let plan = plans::named(plan);
    let Some(run) = &session.run else {
        panic!("{session:?} was made for a run, and has none");
    };
    let run = api::run(client, run);
    let none = BTreeMap::new();
    let writes = outside.effects.by_run.get(key).unwrap_or(&none);
    if rejects(outside.reply) {
        let name = run.last_error.as_ref().map_or(&Value::Null, |error| &error["name"]);
        assert_eq!((run.status.as_str(), name.as_str()), ("failed", Some("Rejected")), "{run:?}");
        assert!(writes.is_empty(), "a rejected call was sent: {run:?}, {writes:?}");
        return;
    }
    assert_eq!(run.status, "completed", "{run:?}");
    let steps: BTreeSet<&str> = writes.keys().map(String::as_str).collect();
    let expected: BTreeSet<&str> = plan.writes.iter().copied().collect();
    assert_eq!(steps, expected, "what {run:?} wrote");
    let answer = plans::answer(plan, key, writes);
    assert_eq!(run.answer, Some(Value::String(answer)), "{run:?}");
    if let Some(word) = outside.reply.and_then(|reply| reply.get("answer")) {
        let written = writes.get("write").map(|written| written.word.as_str());
        assert_eq!(written, word.as_str(), "what {run:?} wrote is not what was replied");
    }
}

fn rejects(reply: Option<&Value>) -> bool {
    let decision = reply.and_then(|reply| reply.pointer("/decisions/0/approve"));
    decision.and_then(Value::as_bool) == Some(false)
}

/// An acknowledged run is there, and what was told of it is still so.
fn kept_run(client: &mut Client, seen: &SeenRun) {
    let run = api::run(client, &seen.id);
    if seen.answer.is_some() {
        let now = (run.status.as_str(), &run.answer);
        assert_eq!(now, ("completed", &seen.answer), "{seen:?} was acknowledged; now {run:?}");
    }
}

/// An acknowledged reply is the decision of its ask; the key of the session that asked.
fn kept_reply(client: &mut Client, ask: &str, reply: &Value) -> String {
    let ask = api::ask(client, ask);
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
