//! What the program makes of a folder that was killed before anybody does anything: sessions that
//! rested are as they were, those that moved go on by the rules of recovery.

use super::LIMIT;
use super::noted::Noted;
use super::site::Site;
use super::statuses;
use crate::api;
use serde_json::{Value, json};
use testkit::harness::wait_for;
use testkit::http::Client;
use testkit::kill::Ask;

/// The sessions that moved, by key, and where they come to without anybody's help: a read, a write
/// that may be repeated and a model are asked again; a write that may not be is a person's; a time
/// that is over by now has its effect.
const MOVED: [(&str, &str); 7] = [
    ("look", "completed"),
    ("keep", "completed"),
    ("silent", "completed"),
    ("busy", "completed"),
    ("soon", "completed"),
    ("order", "stuck"),
    ("write", "stuck"),
];

/// What their runs answered.
const ANSWERS: [(&str, &str); 5] = [
    ("look", "look: True"),
    ("keep", "keep: True"),
    ("silent", "said: Hello there, dear friend."),
    ("busy", "said: Hello there, dear friend."),
    ("soon", "late"),
];

/// Waits until everything has come to rest, and looks at what was done.
pub(super) fn check(site: &Site, client: &mut Client) {
    let noted = &site.noted;
    for session in &noted.sessions {
        let moved = MOVED.iter().find(|(key, _)| *key == session.key);
        let status = moved.map_or(session.status.as_str(), |(_, status)| *status);
        let what = format!("`{}`, which was {}, to be {status}", session.key, session.status);
        wait_for(&what, LIMIT, || (shown(client, &session.id)["status"] == status).then_some(()));
        let now = shown(client, &session.id);
        assert_eq!(now["key"], session.key.as_str(), "{now}");
        assert_eq!(now["space"], session.space.as_str(), "{now}");
        assert_eq!(now["run"], session.run.as_str(), "{now}");
    }
    let listed: Vec<String> = statuses(client).into_keys().collect();
    let mut known: Vec<String> = noted.sessions.iter().map(|session| session.id.clone()).collect();
    known.sort_unstable();
    assert_eq!(listed, known, "there are other sessions than were recorded");
    for (key, answer) in ANSWERS {
        let run = api::run(client, &noted.session(key).run);
        assert_eq!(run.answer, Some(json!(answer)), "{run:?}");
    }
    check_effects(site);
    check_asks(noted, client);
}

fn shown(client: &mut Client, session: &str) -> Value {
    api::get(client, &format!("/api/v1/sessions/{session}"))
}

/// Each call that may be repeated was sent once more, under its id; no other was.
fn check_effects(site: &Site) {
    let effects = site.shop.effects();
    let mut sent: Vec<(Option<String>, Value)> =
        effects.into_iter().map(|effect| (effect.key, effect.body)).collect();
    sent.sort_by(|one, other| one.0.cmp(&other.0));
    let keep = site.noted.calls["keep"].clone();
    assert_eq!(sent, [(None, json!("")), (Some(keep), json!({"run": "keep"}))]);
    let asked = site.models.requests();
    let mut models: Vec<&str> =
        asked.iter().map(|seen| seen.body["model"].as_str().unwrap_or_default()).collect();
    models.sort_unstable();
    assert_eq!(models, ["busy--says", "silent--says"]);
}

/// Every open ask is still open, and each write of unknown outcome has one.
fn check_asks(noted: &Noted, client: &mut Client) {
    for ask in &noted.asks {
        let now = api::get(client, &format!("/api/v1/asks/{}", ask.id));
        let status = if ask.session == "soon" { "expired" } else { "open" };
        assert_eq!((&now["status"], &now["kind"]), (&json!(status), &json!(ask.kind)), "{now}");
    }
    for key in ["order", "write"] {
        // By its id: a key is its owner's word.
        let asks: Vec<Ask> = api::open_asks(client, Some(&noted.session(key).id));
        let [ask] = asks.as_slice() else { panic!("`{key}` asks {asks:?}") };
        let calls: Vec<&str> = ask.calls.iter().map(|call| call.call_id.as_str()).collect();
        assert_eq!((ask.kind.as_str(), ask.how.as_deref()), ("fix", Some("unknown")), "{ask:?}");
        assert_eq!(calls, [noted.calls[key].as_str()], "{ask:?}");
    }
}
