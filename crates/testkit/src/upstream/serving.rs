//! Dispatches MCP messages to their handlers, over any transport.

use super::options::{Bad, Eras};
use super::state::State;
use super::talk::Talk;
use super::tools;
use super::words::{Era, METHOD_NOT_FOUND, Request};
use serde_json::{Value, json};
use std::io;
use std::thread;
use std::time::Duration;

/// Longer than a busy machine takes for anything: one who waits for it can be distinguished from
/// one who is slow.
const SLOW: Duration = Duration::from_secs(180);
/// As long as anybody would look.
const NEVER: Duration = Duration::from_secs(3_600);
/// How long a subscriber's line is quiet before it is checked.
const LISTEN_POLL: Duration = Duration::from_millis(100);
/// How often a storm says that the list has changed: as often as it can be written.
const STORM_PAUSE: Duration = Duration::from_micros(200);

/// Answers a request. What cannot be written any more is not an error: the client went away.
pub(super) fn request(state: &State, request: &Request, talk: &mut dyn Talk) {
    let _ = answer(state, request, talk);
}

fn answer(state: &State, request: &Request, talk: &mut dyn Talk) -> io::Result<()> {
    let options = &state.options;
    if options.is(Bad::Silent) {
        wait_for_the_end(talk, NEVER);
        return Ok(());
    }
    if options.is(Bad::Garbage) {
        return talk.garble("<html><body>It works!</body></html>");
    }
    let foreign = match (options.eras, request.era) {
        (Eras::Legacy, Era::Modern) | (Eras::Modern, Era::Legacy) => true,
        (Eras::Both | Eras::Legacy | Eras::Modern, _) => false,
    };
    if foreign {
        return talk.answer(400, &request.unheard_of());
    }
    match (request.method.as_str(), request.era) {
        ("initialize", Era::Legacy) => talk.answer(200, &request.greeting()),
        ("server/discover", Era::Modern) => talk.answer(200, &request.discovery()),
        ("ping", Era::Legacy) => talk.answer(200, &request.result(json!({}))),
        ("tools/list", _) => {
            if options.is(Bad::HangingLists) {
                wait_for_the_end(talk, NEVER);
                return Ok(());
            }
            if options.is(Bad::SlowLists) {
                wait_for_the_end(talk, SLOW);
            }
            talk.answer(200, &request.result(tools::list(state, request)))
        }
        ("tools/call", _) => tools::call(state, request, talk),
        ("subscriptions/listen", Era::Modern) => {
            talk.tell(&request.acknowledged())?;
            follow(state, talk, &request.list_changed())
        }
        (method, era) => {
            let status = if era == Era::Modern { 404 } else { 200 };
            let why = format!("Method not found: {method}");
            talk.answer(status, &request.error(METHOD_NOT_FOUND, &why))
        }
    }
}

/// Tells a subscriber whenever the list changes, until it goes away.
pub(super) fn follow(state: &State, talk: &mut dyn Talk, changed: &Value) -> io::Result<()> {
    let storms = state.options.is(Bad::Storm);
    let mut seen = state.changes_after(u64::MAX, Duration::ZERO);
    while !talk.is_gone() {
        if storms {
            talk.tell(changed)?;
            thread::sleep(STORM_PAUSE);
            continue;
        }
        let now = state.changes_after(seen, LISTEN_POLL);
        if now > seen {
            seen = now;
            talk.tell(changed)?;
        }
    }
    Ok(())
}

/// A message that wants no answer: a notification, or a reply to what the client was asked.
pub(super) fn note(state: &State, message: Value) {
    match message.get("method").and_then(Value::as_str) {
        Some("notifications/cancelled") => state.cancel(&message["params"]["requestId"]),
        Some(_) => {}
        None => state.reply(message),
    }
}

fn wait_for_the_end(talk: &mut dyn Talk, longest: Duration) {
    let begun = std::time::Instant::now();
    while begun.elapsed() < longest && !talk.is_gone() {
        thread::sleep(LISTEN_POLL);
    }
}
