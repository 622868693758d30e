//! What is over is gone: calls that a client gave up, connections, memory.

use crate::house::{House, LIMIT, Way};
use serde_json::json;
use std::time::Duration;
use testkit::caller::Era;
use testkit::harness::wait_for;
use testkit::http::NoAnswer;

/// Sooner than the server gives a call up itself.
const IMPATIENT: Duration = Duration::from_millis(300);
const GIVEN_UP: usize = 20;
const LARGE: usize = 5;

fn under_way(house: &House) -> String {
    house.caller(Era::Modern).call("bad.under_way", json!({})).unwrap().words()
}

#[test]
fn a_call_that_its_client_gave_up_is_given_up_at_the_upstream() {
    let _turn = crate::my_turn();
    for way in [Way::Http("modern"), Way::Http("legacy"), Way::Stdio("legacy")] {
        let house = House::outlasting(way);
        house.wait_for_tool("bad.hang");
        let mut caller = house.caller(Era::Modern).limit(IMPATIENT);
        let late = caller.call("bad.hang", json!({}));
        assert!(matches!(late, Err(NoAnswer::Late(_))), "{way:?}: {late:?}");
        drop(caller);
        wait_for(&format!("no call under way, {way:?}"), LIMIT, || {
            (under_way(&house) == "0").then_some(())
        });
        house.others_are_well("a call that was given up");
    }
}

#[test]
fn nothing_is_left_of_many_bad_calls() {
    let _turn = crate::my_turn();
    for way in [Way::Http("modern"), Way::Http("legacy"), Way::Stdio("legacy")] {
        let house = House::outlasting(way);
        house.wait_for_tool("bad.hang");
        house.others_are_well("the start");
        let (memory, files) = (house.rss_bytes(), house.open_files());
        for _ in 0..GIVEN_UP {
            let late = house.caller(Era::Modern).limit(IMPATIENT).call("bad.hang", json!({}));
            assert!(late.is_err(), "{way:?}: {late:?}");
        }
        let mut caller = house.caller(Era::Modern).limit(LIMIT);
        for _ in 0..LARGE {
            // Other tests check their outcome; here only what stays counts.
            let _ = caller.call("bad.huge", json!({})).unwrap();
            let _ = caller.call("bad.half", json!({})).unwrap();
        }
        wait_for(&format!("no call under way, {way:?}"), LIMIT, || {
            (under_way(&house) == "0").then_some(())
        });
        let after = house.rss_bytes();
        assert!(after < memory + 120_000_000, "{way:?}: {memory} bytes became {after}");
        wait_for(&format!("its files to be closed, {way:?}"), LIMIT, || {
            (house.open_files() <= files + 20).then_some(())
        });
        house.others_are_well("many bad calls");
    }
}
