//! Many asks that rules hold, over a restart: each rule acts once, none before its time, and none
//! is forgotten. While they wait they take no memory of their own. `WAYPOST_HELD` asks for more.

use crate::api;
use crate::paused::{lanes, started};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::harness::{DEMO_TOOLS, Project, rss_kb, wait_long_for};
use testkit::http::Client;

const HELD: usize = 10_000;
/// How long a rule waits: this long for the restart, as long as all the asks should take on this
/// machine with a quarter more, and no longer than a rule may.
const WAIT_S_MIN: usize = 15;
const WITH_A_QUARTER: f64 = 1.25;
const WAIT_S_MAX: usize = 3_600;
/// With so many asks it is measured how long they take, and how often they are listed for it: as
/// often as all of them are later.
const MEASURED: usize = 500;
const LISTED: usize = 3;
/// So many times as long where the machine became slower than it was.
const PATIENCE: [usize; 3] = [1, 4, 16];
/// How long after its time the last rule may take.
const LATE_LIMIT: Duration = Duration::from_secs(300);
/// By how much the memory may grow with the second half of the asks.
const GROWTH_KB_MAX: u64 = 64 * 1024;

const PLAN: &str = r#"planId: held/call
description: a call that fails, and is tried again after a while
steps:
  - id: call
    type: tool_call
    toolId: "test::always_fail"
    arguments: {}
    on_error: [{retry: {times: 1, wait_ms: WAIT, jitter: 0}}, ask]
    nextStepId: end
  - {id: end, type: final_response, message: done}
"#;

#[test]
fn held_asks_are_acted_on_once_and_in_time_over_a_restart() {
    let _turn = crate::my_turn();
    let count = crate::count_in("WAYPOST_HELD", HELD);
    let wait_s = WAIT_S_MIN + (seconds_for(count) * WITH_A_QUARTER) as usize;
    let mut waits_s = PATIENCE.into_iter().map(|times| WAIT_S_MAX.min(times * wait_s));
    let seen = waits_s.any(|wait_s| seen_over_a_restart(count, wait_s));
    assert!(seen, "this machine is too slow for every wait that the test tries");
}

/// How long it should take on this machine to make so many asks and to list them. Rules that wait
/// less show nothing, and those that wait much longer only prolong the test.
fn seconds_for(count: usize) -> f64 {
    let folder = tempfile::Builder::new().prefix("waypost-held-").tempdir().unwrap();
    let project = written(folder.path(), WAIT_S_MAX);
    let (server, _) = started(project.path(), &folder.path().join("data"));
    let (begun, few) = (Instant::now(), count.min(MEASURED));
    create(server.address(), 0, few);
    let deadline = begun + Duration::from_secs(WAIT_S_MAX as u64);
    for _ in 0..LISTED {
        let held = held_before(&mut server.client(), few, deadline);
        assert!(held.is_some(), "waited {WAIT_S_MAX} s in vain for {few} asks to be held");
    }
    begun.elapsed().as_secs_f64() * count as f64 / few as f64
}

/// A project with a plan whose rule waits so long.
fn written(folder: &Path, wait_s: usize) -> Project {
    let plan = PLAN.replace("WAIT", &(wait_s * 1_000).to_string());
    Project::write(&folder.join("project"), &[("held/call.yaml", plan.as_str())], DEMO_TOOLS)
}

/// The whole test with rules that wait so long; false if some acted before they were looked at,
/// which shows nothing.
fn seen_over_a_restart(count: usize, wait_s: usize) -> bool {
    crate::tell(&format!("held: WAYPOST_HELD={count}, rules wait for {wait_s} s"));
    let wait = Duration::from_secs(wait_s as u64);
    let folder = tempfile::Builder::new().prefix("waypost-held-").tempdir().unwrap();
    let project = written(folder.path(), wait_s);
    let data = folder.path().join("data");

    let (server, empty_kb) = started(project.path(), &data);
    let begun = Instant::now();
    create(server.address(), 0, count / 2);
    if held_before(&mut server.client(), count / 2, begun + wait).is_none() {
        return false;
    }
    let half_kb = rss_kb(server.pid());
    create(server.address(), count / 2, count);
    let Some(held) = held_before(&mut server.client(), count, begun + wait) else { return false };
    let all_kb = rss_kb(server.pid());
    server.kill9();

    let (server, back_kb) = started(project.path(), &data);
    let again = held_before(&mut server.client(), count, begun + wait);
    if again.is_none() {
        return false;
    }
    let ready = Instant::now();
    wait_long_for("every rule to have acted", wait + LATE_LIMIT, || {
        let page = api::get(&mut server.client(), "/api/v1/asks?held=true&limit=1");
        page["items"].as_array().is_some_and(Vec::is_empty).then_some(())
    });
    let left: Vec<Value> = wait_long_for("every step to be a person's", LATE_LIMIT, || {
        let left: Vec<Value> = api::all(&mut server.client(), "/api/v1/asks?status=open");
        (left.len() == count).then_some(left)
    });
    let acted = ready.elapsed();
    left.iter().for_each(check_left);
    lanes(server.address(), &held, check_acted);
    let grown_kb = all_kb.saturating_sub(half_kb);
    crate::tell(&format!(
        "held: {count} asks, killed, all acted on {acted:.1?} after the restart, each once and none \
         early; VmRSS {empty_kb} kB empty, {half_kb} kB with half of them, {all_kb} kB with all, \
         {back_kb} kB after the restart"
    ));
    assert!(grown_kb < GROWTH_KB_MAX, "the second half of the asks took {grown_kb} kB");
    true
}

/// Starts runs in sessions of these numbers, and waits for none of them.
fn create(address: SocketAddr, first: usize, end: usize) {
    let keys: Vec<String> = (first..end).map(|number| format!("held-{number}")).collect();
    lanes(address, &keys, |client, key| {
        let body = json!({"planId": "held/call", "session": key, "input": {}});
        let answer = client.post("/api/v1/runs?wait=0", &body);
        let answer = answer.unwrap_or_else(|error| panic!("starting `{key}`: {error}"));
        assert_eq!(answer.status, 202, "starting `{key}`: {}", answer.body);
    });
}

/// The asks that rules hold once there are so many; none if that comes too late to show anything.
fn held_before(client: &mut Client, count: usize, deadline: Instant) -> Option<Vec<Value>> {
    loop {
        let held: Vec<Value> = api::all(client, "/api/v1/asks?held=true");
        if Instant::now() >= deadline {
            return None;
        }
        assert!(held.len() <= count, "{} asks are held, more than {count}", held.len());
        if held.len() == count {
            return Some(held);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A person is asked, and told that the rule tried once.
fn check_left(ask: &Value) {
    let tried = &ask["tried"];
    assert_eq!(tried.as_array().map(Vec::len), Some(1), "{ask}");
    assert_eq!((&tried[0]["rule"], &tried[0]["times"]), (&json!("step 1"), &json!(1)), "{ask}");
}

/// The rule acted on what it held, and not before its time.
fn check_acted(client: &mut Client, held: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ask = api::get(client, &format!("/api/v1/asks/{}", text(&held["id"])));
    assert_eq!(ask["held"], held["held"], "another time than was told: {ask}");
    assert_eq!(ask["decision"]["by"], "supervisor", "{ask}");
    let (until, at) = (text(&held["held"]["until"]), text(&ask["decision"]["at"]));
    // The same form, in UTC, to the millisecond: the texts compare as the times do.
    assert_eq!(until.len(), at.len(), "`{until}` and `{at}` differ in form");
    assert!(at >= until, "acted early, {at} and not {until}: {ask}");
}
