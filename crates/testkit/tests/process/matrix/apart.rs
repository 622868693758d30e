//! Two members with the same thread id and the same idempotency keys: neither sees anything of the
//! other, in no list, stream, refusal or task.

use super::sending::{Key, Sending};
use super::site::{Site, blob, text};
use super::told;
use serde_json::{Value, json};
use testkit::caller::Era;
use testkit::http::Answer;

const THREAD: &str = "same";
/// As long that an answer with it is a blob.
const LETTERS: usize = 40_000;

/// Where lists are, and what else tells of many things at once.
const LISTS: [&str; 14] = [
    "/api/v1/sessions",
    "/api/v1/sessions?space=thread",
    "/api/v1/sessions/same?space=thread",
    "/api/v1/asks",
    "/api/v1/asks?status=any",
    "/api/v1/pipelines/desk/stats",
    "/api/v1/sinks",
    "/api/v1/webhooks",
    "/api/v1/upstreams",
    "/api/v1/whoami",
    "/capabilities",
    "/openapi.json",
    "/metrics",
    "/readyz?verbose",
];

/// The lists of MCP.
const MCP_LISTS: [&str; 4] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

/// What a member left behind.
struct Traces {
    key: Key,
    canary: String,
    /// Ids that are nobody else's business.
    ids: Vec<String>,
    /// The session of the thread.
    thread: String,
    /// A run that waits, what it asks, and its session.
    run: String,
    ask: String,
    session: String,
    blob: String,
    /// A call in the thread that waits to be approved.
    call: String,
}

#[test]
fn two_members_see_nothing_of_each_other() {
    let _turn = crate::my_turn();
    let mut site = Site::start();
    let (ann, bob) = (site.keys.owner.clone(), site.keys.other.clone());
    let ann = left(&mut site, ann, "canary-of-ann");
    let bob = left(&mut site, bob, "canary-of-bob");
    assert!(ann.ids.iter().all(|id| !bob.ids.contains(id)), "{:?} {:?}", ann.ids, bob.ids);
    for (one, other) in [(&ann, &bob), (&bob, &ann)] {
        lists_are_apart(&mut site, one, other);
        names_lead_nowhere(&mut site, one, other);
        let feed = site.feed(&one.key, &one.thread);
        tells_nothing(&feed, other, "the feed");
    }
    approvals_are_apart(&mut site, &ann, &bob);
    who_may_only_use_cannot_approve(&mut site);
    site.stop();
}

/// Does the same as every other member, under the same names.
fn left(site: &mut Site, key: Key, canary: &str) -> Traces {
    let said = site.said(&key, THREAD, canary);
    assert_eq!(said.answer.header("idempotency-replayed"), None, "{:?}", said.answer);
    let thread = site.done(&key, "GET", "/api/v1/sessions/same?space=thread", &Value::Null);
    let thread = text(&thread["id"]);
    let words = format!("{canary}{}", "x".repeat(LETTERS));
    let large = started(site, &key, &json!({"planId": "matrix::echo", "input": {"text": words}}));
    let waiting = json!({"planId": "matrix::ask", "input": {"text": canary}});
    let waiting = started(site, &key, &waiting);
    // The same request, word by word, and yet another run.
    let equal = started(site, &key, &json!({"planId": "matrix::ask"}));
    let blob = blob(&large);
    let (run, session) = (text(&waiting["run"]["id"]), text(&waiting["session"]["id"]));
    let ask = text(&waiting["run"]["asks"][0]["id"]);
    let mut ids = vec![thread.clone(), run.clone(), session.clone(), ask.clone(), blob.clone()];
    ids.extend([text(&equal["run"]["id"]), said.call.clone()]);
    let canary = canary.to_owned();
    Traces { key, canary, ids, thread, run, ask, session, blob, call: said.call }
}

/// A run under a key that everybody uses for the same plan.
fn started(site: &mut Site, key: &Key, body: &Value) -> Value {
    let once = format!("{}-{}", text(&body["planId"]).replace(':', "-"), body["input"].is_null());
    let headers = vec![("idempotency-key", once)];
    let body = body.to_string();
    let (key, method, path) = (Some(key), "POST", "/api/v1/runs");
    let answer = site.send(&Sending { key, headers, method, path, body: &body });
    assert!(matches!(answer.status, 200..=299), "{answer:?}");
    assert_eq!(answer.header("idempotency-replayed"), None, "{answer:?}");
    answer.json()
}

/// No list has anything of the other, be it an id.
fn lists_are_apart(site: &mut Site, one: &Traces, other: &Traces) {
    for path in LISTS {
        let answer = site.get(&one.key, path);
        let expected = if path == "/metrics" { "403 forbidden" } else { "200" };
        assert_eq!(told(&answer), expected, "{path}: {answer:?}");
        tells_nothing(&answer.body, other, path);
    }
    let shown = site.get(&one.key, "/api/v1/sessions?space=thread").body;
    assert!(shown.contains(&one.thread), "one's own thread is not listed: {shown}");
    for method in MCP_LISTS {
        let answer = asked(site, &one.key, method, &json!({}));
        assert_eq!(told(&answer), "200", "{method}: {answer:?}");
        tells_nothing(&answer.body, other, method);
    }
}

/// What is the other's is not there, by whatever name.
fn names_lead_nowhere(site: &mut Site, one: &Traces, other: &Traces) {
    let Traces { run, ask, session, blob, thread, canary, .. } = other;
    for path in [
        format!("/api/v1/runs/{run}"),
        format!("/api/v1/asks/{ask}"),
        format!("/api/v1/blobs/{blob}"),
        format!("/api/v1/sessions/{thread}"),
        format!("/api/v1/sessions/{session}"),
        format!("/api/v1/sessions/{session}/history"),
        format!("/api/v1/sessions/{session}/context"),
        format!("/api/v1/sessions/{session}/export"),
        format!("/api/v1/sessions/{session}/events"),
    ] {
        let answer = site.get(&one.key, &path);
        assert_eq!(told(&answer), "404 not_found", "{path}: {answer:?}");
        assert!(!answer.body.contains(canary), "{path}: {answer:?}");
    }
    for (method, params) in [
        ("tasks/get", json!({"taskId": run})),
        ("resources/read", json!({"uri": format!("waypost://runs/{run}")})),
        ("resources/read", json!({"uri": format!("waypost://blobs/{blob}")})),
        ("resources/read", json!({"uri": format!("waypost://sessions/{session}/history")})),
    ] {
        let answer = asked(site, &one.key, method, &params);
        assert_eq!(told(&answer), "200 -32602", "{method}: {answer:?}");
        assert!(!answer.body.contains(canary), "{method}: {answer:?}");
    }
}

/// A call of the other's thread is none of one's own, although both threads have the same id.
fn approvals_are_apart(site: &mut Site, ann: &Traces, bob: &Traces) {
    let foreign = resumed(site, &bob.key, THREAD, &ann.call);
    assert!(matches!(foreign.status, 400..=499), "{foreign:?}");
    assert!(!foreign.body.contains(&ann.canary), "{foreign:?}");
    for one in [ann, bob] {
        let own = resumed(site, &one.key, THREAD, &one.call);
        assert_eq!(own.status, 200, "{own:?}");
        assert_eq!(own.json()["status"], "success", "{own:?}");
    }
}

/// A token that may call cannot approve, not even what it asked for itself: it is not asked, and
/// refused if it knows the call.
fn who_may_only_use_cannot_approve(site: &mut Site) {
    let (uses, root) = (site.keys.uses.clone(), site.keys.root.clone());
    let answer = site.say(&uses, THREAD, "it");
    assert_eq!((answer.status, &answer.json()["pending_action"]), (202, &Value::Null));
    let ask = word(&answer.body, "ask_");
    let call = word(&site.get(&root, &format!("/api/v1/asks/{ask}")).body, "call_");
    let refused = resumed(site, &uses, THREAD, &call);
    assert_eq!(told(&refused), "403 forbidden", "{refused:?}");
}

/// The first id that begins so.
fn word(text: &str, begin: &str) -> String {
    let at = text.find(begin).unwrap_or_else(|| panic!("no `{begin}` in {text}"));
    let is_part = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
    text[at..].chars().take_while(is_part).collect()
}

pub(super) fn resumed(site: &mut Site, key: &Key, thread: &str, call: &str) -> Answer {
    let approvals = json!([{"call_id": call, "approved": true}]);
    let body = json!({"thread_id": thread, "approvals": approvals}).to_string();
    let (key, headers, method, path) = (Some(key), Vec::new(), "POST", "/resume");
    site.send(&Sending { key, headers, method, path, body: &body })
}

/// A stateless request of MCP.
pub(super) fn asked(site: &mut Site, key: &Key, method: &str, params: &Value) -> Answer {
    let mut headers = Vec::new();
    let body = site.message(Era::Modern, method, &params.to_string(), key, &mut headers);
    let (key, method, path) = (Some(key), "POST", "/mcp");
    site.send(&Sending { key, headers, method, path, body: &body })
}

fn tells_nothing(told: &str, other: &Traces, place: &str) {
    let words = other.ids.iter().chain([&other.canary]);
    for word in words {
        assert!(!told.contains(word.as_str()), "{place} tells of `{word}`: {told}");
    }
}
