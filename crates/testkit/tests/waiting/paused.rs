//! Many paused sessions over a restart: half of them wait for a reply, half for their time to run
//! out. Each must go on after the restart, none may be lost, and none may end before its time.
//! `WAYPOST_PAUSED` asks for more of them.

use crate::api;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use testkit::harness::{Project, Server, StartOptions, rss_kb, wait_for, wait_long_for};
use testkit::http::Client;

const PAUSED: usize = 2_000;
const LANES: usize = 8;
/// An ask must still be open when the server is back: this long, and more for many sessions.
const EXPIRES_S_MIN: usize = 15;
const PAUSED_PER_S: usize = 200;
/// So many times as long on a machine that was too slow for less.
const PATIENCE: [usize; 3] = [1, 4, 16];
/// How long after their time the last of the timers may take.
const LATE_LIMIT: Duration = Duration::from_secs(300);
const RUN_LIMIT: Duration = Duration::from_secs(120);

const ASK: &str = r#"planId: paused/ask
description: asks one thing and repeats the answer
parameters: {type: object}
startStepId: ask
steps:
  - {id: ask, type: human_in_the_loop, message: "which word?", nextStepIdOnInput: end}
  - {id: end, type: final_response, message: "heard {{ context.human_input }}"}
"#;

const EXPIRING: &str = r#"planId: paused/expiring
description: asks one thing and gives up after a time
parameters: {type: object}
startStepId: ask
steps:
  - id: ask
    type: human_in_the_loop
    message: "which word?"
    expiresIn: SECONDSs
    nextStepIdOnInput: end
    onDeclined: {nextStepId: late}
  - {id: end, type: final_response, message: "heard {{ context.human_input }}"}
  - {id: late, type: final_response, message: late}
"#;

/// A session that was paused, as its server acknowledged it.
struct Paused {
    key: String,
    run: String,
    ask: String,
    expires_at: Option<String>,
}

#[test]
fn paused_sessions_go_on_after_a_restart_by_reply_and_by_timer() {
    let _turn = crate::my_turn();
    let count = crate::count_in("WAYPOST_PAUSED", PAUSED);
    let expires_s = EXPIRES_S_MIN + count / PAUSED_PER_S;
    let seen = PATIENCE.into_iter().any(|times| seen_over_a_restart(count, times * expires_s));
    assert!(seen, "this machine is too slow for every expiry that the test tries");
}

/// The whole test with asks that expire after so long; false if some had to be over before they
/// were looked at, which shows nothing.
fn seen_over_a_restart(count: usize, expires_s: usize) -> bool {
    crate::tell(&format!("paused: WAYPOST_PAUSED={count}, expiry after {expires_s} s"));
    let expiry = Duration::from_secs(expires_s as u64);
    let folder = tempfile::Builder::new().prefix("waypost-paused-").tempdir().unwrap();
    let expiring = EXPIRING.replace("SECONDS", &expires_s.to_string());
    let files = [("paused/ask.yaml", ASK), ("paused/expiring.yaml", expiring.as_str())];
    let project = Project::write(&folder.path().join("project"), &files, "");
    let data = folder.path().join("data");

    let (server, empty_kb) = started(project.path(), &data);
    let begun = Instant::now();
    let asks = create(server.address(), "paused/ask", count / 2);
    // These last, so that their time has hardly begun when the server is killed.
    let first_timer = Instant::now();
    let timers = create(server.address(), "paused/expiring", count - count / 2);
    let created = begun.elapsed();
    let open = api::open_asks(&mut server.client(), None).len();
    if first_timer.elapsed() >= expiry {
        return false;
    }
    assert_eq!(open, count, "not as many open asks before the restart as were acknowledged");
    let paused_kb = rss_kb(server.pid());
    server.kill9();

    let begun = Instant::now();
    let (server, back_kb) = started(project.path(), &data);
    let (back, ready) = (begun.elapsed(), Instant::now());
    let open = api::open_asks(&mut server.client(), None).len();
    // Looked at after they were counted: until here none may be over.
    if first_timer.elapsed() >= expiry {
        return false;
    }
    assert_eq!(open, count, "not as many open asks after the restart: lost, or over too early");
    let begun = Instant::now();
    lanes(server.address(), &asks, reply);
    let replied = begun.elapsed();
    wait_for_timers(&mut server.client(), expiry + LATE_LIMIT);
    let expired = ready.elapsed();
    let answered = lanes(server.address(), &asks, check_replied).len();
    let timed = lanes(server.address(), &timers, check_expired).len();
    assert_eq!(answered + timed, count, "some were never looked at");
    all_there(&mut server.client(), &asks, &timers);
    let over_kb = rss_kb(server.pid());
    crate::tell(&format!(
        "paused: {count} created in {created:.1?}, killed, back in {back:.1?}; {answered} resumed \
         by reply in {replied:.1?}, {timed} by timer, the last {expired:.1?} after the restart; \
         none lost, none early; VmRSS {empty_kb} kB empty, {paused_kb} kB with all paused, \
         {back_kb} kB after the restart, {over_kb} kB when all were over"
    ));
    true
}

/// A server that is ready, and how much memory it takes then.
pub(crate) fn started(project: &Path, data: &Path) -> (Server, u64) {
    let mut server = Server::start(&StartOptions { project, data, args: &[] });
    server.wait_until_ready();
    let kb = rss_kb(server.pid());
    (server, kb)
}

/// Does this with every item, in several threads with a client each; what came of them, in order.
pub(crate) fn lanes<T: Sync, R: Send>(
    address: SocketAddr,
    items: &[T],
    work: impl Fn(&mut Client, &T) -> R + Sync,
) -> Vec<R> {
    let share = items.len().div_ceil(LANES).max(1);
    thread::scope(|scope| {
        let work = &work;
        let mut lanes = Vec::new();
        for part in items.chunks(share) {
            lanes.push(scope.spawn(move || {
                let mut client = Client::new(address);
                part.iter().map(|item| work(&mut client, item)).collect::<Vec<R>>()
            }));
        }
        lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    })
}

/// Starts so many runs of a plan, each in a session of its own; each must pause at its ask.
fn create(address: SocketAddr, plan: &str, count: usize) -> Vec<Paused> {
    let keys: Vec<String> = (0..count).map(|number| format!("{plan}-{number}")).collect();
    lanes(address, &keys, |client, key| {
        let body = json!({"planId": plan, "session": key, "input": {}});
        let answer = client
            .post("/api/v1/runs", &body)
            .unwrap_or_else(|error| panic!("starting `{key}`: {error}"));
        assert_eq!(answer.status, 202, "starting `{key}`: {}", answer.body);
        let whole = answer.json();
        let run = &whole["run"];
        assert_eq!(run["status"], "waiting", "{run}");
        let ask = &run["asks"][0];
        let expires_at = ask["expiresAt"].as_str().map(str::to_owned);
        assert_eq!(expires_at.is_some(), plan == "paused/expiring", "{ask}");
        Paused { key: key.clone(), run: text(&run["id"]), ask: text(&ask["id"]), expires_at }
    })
}

fn reply(client: &mut Client, paused: &Paused) {
    let path = format!("/api/v1/asks/{}", paused.ask);
    let answer = client
        .post(&path, &json!({"answer": paused.key}))
        .unwrap_or_else(|error| panic!("answering `{}`: {error}", paused.key));
    assert_eq!(answer.status, 200, "answering `{}`: {}", paused.key, answer.body);
}

/// All asks with replies are decided, so the last open one is one whose time runs.
fn wait_for_timers(client: &mut Client, limit: Duration) {
    wait_long_for("every ask to have expired", limit, || {
        let page = api::get(client, "/api/v1/asks?status=open&limit=1");
        page["items"].as_array().is_some_and(Vec::is_empty).then_some(())
    });
}

fn check_replied(client: &mut Client, paused: &Paused) {
    let run = ended(client, paused);
    assert_eq!(run["answer"], format!("heard {}", paused.key), "{run}");
    let ask = api::get(client, &format!("/api/v1/asks/{}", paused.ask));
    assert_eq!(ask["status"], "decided", "{ask}");
    assert_eq!(ask["decision"]["reply"]["answer"], paused.key.as_str(), "{ask}");
}

fn check_expired(client: &mut Client, paused: &Paused) {
    let run = ended(client, paused);
    assert_eq!(run["answer"], "late", "{run}");
    let ask = api::get(client, &format!("/api/v1/asks/{}", paused.ask));
    assert_eq!(ask["status"], "expired", "{ask}");
    let expires_at = text(&ask["expiresAt"]);
    assert_eq!(Some(&expires_at), paused.expires_at.as_ref(), "another time than was told: {ask}");
    let ended_at = text(&run["endedAt"]);
    // The same form, in UTC, to the millisecond: the texts compare as the times do.
    assert_eq!(ended_at.len(), expires_at.len(), "`{ended_at}` and `{expires_at}` differ in form");
    assert!(ended_at >= expires_at, "ended early, {ended_at} and not {expires_at}: {run}");
}

/// The run once it is over: completed, in the session that was named.
fn ended(client: &mut Client, paused: &Paused) -> Value {
    let path = format!("/api/v1/runs/{}", paused.run);
    let what = format!("run `{}` of `{}` to be completed", paused.run, paused.key);
    let whole = wait_for(&what, RUN_LIMIT, || {
        let whole = api::get(client, &path);
        (whole["run"]["status"] == "completed").then_some(whole)
    });
    assert_eq!(whole["session"]["key"], paused.key.as_str(), "{whole}");
    whole["run"].clone()
}

/// The server's own list has exactly the sessions that were acknowledged.
fn all_there(client: &mut Client, asks: &[Paused], timers: &[Paused]) {
    let sessions: Vec<Value> = api::all(client, "/api/v1/sessions?status=completed");
    let mut listed: Vec<String> = sessions.iter().map(|session| text(&session["key"])).collect();
    let mut known: Vec<String> =
        asks.iter().chain(timers).map(|paused| paused.key.clone()).collect();
    listed.sort_unstable();
    known.sort_unstable();
    assert!(listed == known, "{} completed sessions for {} keys", listed.len(), known.len());
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}
