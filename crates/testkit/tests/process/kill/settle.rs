//! After the last restart: everything that is still open is answered, as a person would who can
//! look at the other side, until every run is over.

use super::effects::Effects;
use super::hits::Hits;
use super::login;
use super::plans;
use crate::api;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use testkit::http::Client;
use testkit::kill::{Ask, Load, Rng, covers};
use testkit::servers::receiver::Receiver;

const SETTLE_LIMIT: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(20);

/// What had to be settled.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Calls whose unknown outcome a person was asked about, each with its ask.
    pub(super) unknown: BTreeMap<String, String>,
    /// Those that had happened.
    pub(super) happened: BTreeSet<String>,
}

/// Answers asks until nothing runs and nothing is asked.
pub(super) fn all(
    client: &mut Client,
    load: &Load<'_>,
    receiver: &Receiver,
    hits: &Hits,
) -> Settled {
    let begun = Instant::now();
    let mut settled = Settled::default();
    let mut rng = Rng::new(0);
    // Replies that were sent and never answered: whether they were accepted, only a second try can
    // tell.
    for ask in load.take_left() {
        let answered = load.answer(client, &ask, &mut rng);
        answered.unwrap_or_else(|error| panic!("no answer to a reply to {ask:?}: {error}"));
    }
    loop {
        // In this order: what does not run cannot raise an ask between the two looks.
        let running: Vec<Value> = api::all(client, "/api/v1/sessions?status=running");
        let asks = api::open_asks(client, None);
        if running.is_empty() && asks.is_empty() && is_over(client) {
            return settled;
        }
        assert!(
            begun.elapsed() < SETTLE_LIMIT,
            "waited {SETTLE_LIMIT:?} in vain for all runs to end; running: {running:?}; \
             asked: {asks:?}"
        );
        if asks.is_empty() {
            std::thread::sleep(POLL);
        }
        let effects = Effects::read(receiver);
        for ask in asks {
            if login::is_asked_there(&ask) {
                login::answer(client, &ask, hits);
                continue;
            }
            let answered = if ask.kind == "fix" {
                hits.check(&ask);
                let reply = settled.fix(&ask, &effects);
                load.reply(client, &ask, &reply)
            } else {
                load.answer(client, &ask, &mut rng)
            };
            answered.unwrap_or_else(|error| panic!("no answer to a reply to {ask:?}: {error}"));
        }
    }
}

/// Whether every run is over: one whose ask a rule holds is neither running nor in the inbox.
fn is_over(client: &mut Client) -> bool {
    let over = ["completed", "failed", "cancelled"];
    ["session", "thread"].into_iter().all(|space| {
        let sessions: Vec<Value> = api::all(client, &format!("/api/v1/sessions?space={space}"));
        sessions.iter().all(|session| over.iter().any(|status| session["status"] == *status))
    })
}

/// The rule looked once, and what it thinks is part of the ask.
fn was_looked_at(ask: &Ask) {
    let [tried] = ask.tried.as_slice() else { panic!("not looked at once: {ask:?}") };
    let expected = json!({
        "rule": "project 1", "does": "correct", "plan": "kill/look", "times": 1,
        "found": {"reply": {"kind": "fix", "action": "retry"}, "why": "nobody can know"},
    });
    assert!(covers(tried, &expected), "{ask:?}");
}

impl Settled {
    /// What a person does about a failed step who looks into the receiver's log first.
    fn fix(&mut self, ask: &Ask, effects: &Effects) -> Value {
        let reply = match (ask.how.as_deref(), ask.calls.as_slice()) {
            (Some("unknown"), [call]) => {
                match Hits::is_given_up(ask) {
                    // No rule decides about a run that was given up.
                    true => assert!(ask.tried.is_empty(), "a rule acted on {ask:?}"),
                    false => was_looked_at(ask),
                }
                let before = self.unknown.insert(call.call_id.clone(), ask.id.clone());
                assert!(
                    before.is_none_or(|before| before == ask.id),
                    "asked twice about the same call: {ask:?}"
                );
                match effects.by_call.get(&call.call_id) {
                    Some(n) => {
                        self.happened.insert(call.call_id.clone());
                        json!({"action": "settle", "output": plans::output(*n)})
                    }
                    None => json!({"action": "retry"}),
                }
            }
            // It was given up before anything was sent.
            _ if Hits::is_given_up(ask) => json!({"action": "retry"}),
            // The receiver takes everything that reaches it, and it was there all the time.
            _ => panic!("a call failed that cannot fail: {ask:?}"),
        };
        let action = reply["action"].as_str().unwrap_or_default();
        assert!(ask.actions.iter().any(|offered| offered == action), "no `{action}` in {ask:?}");
        reply
    }
}
