//! Calls that go wrong at the other side.

use crate::house::{House, LIMIT, WAYS, Way};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use testkit::caller::{Caller, Era, Outcome};
use testkit::harness::wait_for;
use testkit::http::Client;

/// The server gives up such a call after `CALL_TIMEOUT_MS`. This is longer, for a busy machine, but
/// not so long as it waits for a call that nobody limits.
const CALL_LIMIT: Duration = Duration::from_secs(120);

/// Tools of the bad one that cannot be answered well.
const BROKEN: [&str; 5] = ["hang", "huge", "other_id", "garbage", "half"];

/// A call ended in words: it failed, or it became a run that waits for a person and says so.
fn assert_clear(what: &str, outcome: &Outcome) {
    let words = outcome.words();
    let waits = words.contains("run_");
    assert!(outcome.is_failure() || waits, "{what}: neither failed nor waits: {outcome:?}");
    assert!(words.len() > 10, "{what}: says nothing: {outcome:?}");
    assert!(words.len() < 10_000, "{what}: says too much: {} bytes", words.len());
}

fn in_time(caller: &mut Caller, name: &str) -> Outcome {
    let begun = Instant::now();
    let outcome = caller.call(name, json!({})).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(begun.elapsed() < CALL_LIMIT, "{name} took {:?}", begun.elapsed());
    outcome
}

#[test]
fn every_call_has_a_clear_end_in_time() {
    let _turn = crate::our_turn();
    for way in WAYS {
        let house = House::start(way, &[]);
        house.wait_for_tool("bad.echo");
        // Both directions are bridged; all four pairs would tell nothing more.
        let eras: &[Era] = match way {
            Way::Http("modern") | Way::Stdio("legacy") => &[Era::Modern, Era::Legacy],
            Way::Http(_) | Way::Stdio(_) => &[Era::Modern],
        };
        for era in eras.iter().copied() {
            let mut caller = house.caller(era).limit(CALL_LIMIT * 2);
            for name in BROKEN {
                let what = format!("{name}, {way:?} for {era:?}");
                assert_clear(&what, &in_time(&mut caller, &format!("bad.{name}")));
                house.others_are_well(&what);
            }
            // One that answered too much, or not at all, still answers.
            wait_for("the bad one to be there", LIMIT, || {
                let said = caller.call("bad.add", json!({"a": 1, "b": 2})).ok()?;
                (said.words() == "3").then_some(())
            });
            // What breaks its own promise is passed on, with a word about that.
            let lied = in_time(&mut caller, "bad.lie").result();
            assert_eq!(lied["structuredContent"], json!({"sum": "three"}), "{way:?} for {era:?}");
            let misfit = lied["_meta"]["waypost/misfit"].as_str().unwrap_or_default();
            assert!(misfit.contains("/sum"), "{way:?} for {era:?}: {lied}");
            let failed = in_time(&mut caller, "bad.fail");
            assert!(failed.is_failure(), "{way:?} for {era:?}: {failed:?}");
            assert!(failed.words().contains("this tool fails"), "{failed:?}");
            // What nobody knows is refused: to the tool, where it can ask, else to the caller.
            let demanded = in_time(&mut caller, "bad.demand");
            if !demanded.words().contains("the client answered") {
                assert_clear(&format!("demand, {way:?} for {era:?}"), &demanded);
            }
            // Its result has no shape that anybody knows, but it has one.
            in_time(&mut caller, "bad.no_result");
            // The bad one is as well as it was before.
            let said = caller.call("bad.add", json!({"a": 1, "b": 2})).unwrap();
            assert_eq!(said.words(), "3", "{way:?} for {era:?}");
        }
    }
}

#[test]
fn a_flood_of_notifications_is_no_reason_to_fail() {
    let _turn = crate::our_turn();
    for way in [Way::Http("modern"), Way::Stdio("legacy")] {
        let house = House::start(way, &[]);
        house.wait_for_tool("bad.flood");
        let mut caller = house.caller(Era::Modern).limit(LIMIT);
        let before = house.rss_bytes();
        let outcome = caller.call("bad.flood", json!({})).unwrap();
        let words = outcome.words();
        assert!(words.contains("flooded") || words.contains("run_"), "{way:?}: {outcome:?}");
        let after = house.rss_bytes();
        assert!(after < before + 60_000_000, "{way:?}: {before} bytes became {after}");
        house.others_are_well("flood");
    }
}

#[test]
fn a_server_that_dies_in_a_call_fails_that_call_and_comes_back() {
    let _turn = crate::my_turn();
    for way in WAYS {
        let mut house = House::start(way, &[]);
        house.wait_for_tool("bad.die");
        let mut caller = house.caller(Era::Modern).limit(CALL_LIMIT * 2);
        assert_clear(&format!("die, {way:?}"), &in_time(&mut caller, "bad.die"));
        house.others_are_well("die");
        if let Way::Http(era) = way {
            // Its tools stay in the list; calling one says that nobody is there.
            assert!(caller.tools().iter().any(|tool| tool == "bad.echo"), "{way:?}");
            assert_clear("echo of a dead server", &in_time(&mut caller, "bad.echo"));
            house.replace_bad(era);
        }
        wait_for("the bad one to come back", LIMIT, || {
            let said = caller.call("bad.echo", json!({"text": "again"})).ok()?;
            (said.words() == "again").then_some(())
        });
    }
}

#[test]
fn an_upstream_that_changes_its_era_is_found_again() {
    let _turn = crate::my_turn();
    for (before, after) in [("modern", "legacy"), ("legacy", "modern")] {
        let mut house = House::start(Way::Http(before), &[]);
        house.wait_for_tool("bad.echo");
        let mut caller = house.caller(Era::Modern).limit(CALL_LIMIT * 2);
        let echo = |caller: &mut Caller, text: &str| {
            let said = caller.call("bad.echo", json!({"text": text})).ok()?;
            (said.words() == text).then_some(())
        };
        assert_eq!(echo(&mut caller, "first"), Some(()), "{before}");
        house.replace_bad(after);
        wait_for(&format!("{before} to be met as {after}"), LIMIT, || echo(&mut caller, "again"));
        // Its tools were there all the time, and it is found once, not with each call.
        assert!(caller.tools().iter().any(|tool| tool == "bad.echo"), "{before} to {after}");
        for number in 0..3 {
            let text = format!("call {number}");
            assert_eq!(echo(&mut caller, &text), Some(()), "{before} to {after}");
        }
        house.others_are_well("another era");
    }
}

#[test]
fn what_an_upstream_asks_for_reaches_only_who_can_answer() {
    let _turn = crate::our_turn();
    for way in WAYS {
        let house = House::unrecorded(way);
        house.wait_for_tool("bad.ask");
        // Nobody can show a form here: the call ends with words, not with a question.
        let mut unable = house.caller(Era::Modern).limit(CALL_LIMIT * 2);
        assert_clear(&format!("ask, {way:?}"), &in_time(&mut unable, "bad.ask"));
        let able = json!({"elicitation": {"form": {}}});
        let mut able = Caller::new(house.address(), Era::Modern, able).limit(CALL_LIMIT * 2);
        let wanted = in_time(&mut able, "bad.ask").result();
        assert_eq!(wanted["resultType"], "input_required", "{way:?}: {wanted}");
        let said = able.request("tools/call", answered(&wanted)).unwrap();
        assert_eq!(said.words(), "Hello, Ada!", "{way:?}");
        house.others_are_well("ask");
    }
}

/// The same call with a name for every form that was asked for.
fn answered(wanted: &Value) -> Value {
    let requests = wanted["inputRequests"].as_object().unwrap();
    let reply = json!({"action": "accept", "content": {"name": "Ada"}});
    let responses: serde_json::Map<String, Value> =
        requests.keys().map(|key| (key.clone(), reply.clone())).collect();
    json!({"name": "bad.ask", "arguments": {}, "inputResponses": responses,
        "requestState": wanted["requestState"]})
}

#[test]
fn the_rest_door_tells_the_same() {
    let _turn = crate::our_turn();
    let house = House::start(Way::Http("modern"), &[]);
    house.wait_for_tool("bad.echo");
    let mut client = Client::new(house.address());
    let call = |client: &mut Client, name: &str, arguments: Value| {
        let path = format!("/api/v1/tools/{name}/call");
        client.post(&path, &json!({"arguments": arguments})).unwrap()
    };
    let said = call(&mut client, "good.echo", json!({"text": "here"}));
    assert!(said.status < 300 && said.body.contains("here"), "{} {}", said.status, said.body);
    for name in ["bad.hang", "bad.garbage", "bad.half", "bad.huge"] {
        let begun = Instant::now();
        let said = call(&mut client, name, json!({}));
        assert!(begun.elapsed() < CALL_LIMIT, "{name} took {:?}", begun.elapsed());
        assert_ne!(said.status, 200, "{name}: {}", said.body);
        assert!(said.body.len() < 10_000, "{name}: {} bytes", said.body.len());
    }
}
