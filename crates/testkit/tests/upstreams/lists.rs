//! Lists that go wrong at the other side: ours are there at once, whatever becomes of theirs.

use crate::house::{House, LIMIT, PROMPT, Way, promptly};
use serde_json::json;
use std::time::{Duration, Instant};
use testkit::caller::Era;
use testkit::harness::wait_for;
use testkit::http::Client;

/// How long the server is watched while it waits for the bad one. A list that waited, too, would
/// take two minutes, so the first one already shows it.
const WATCH: Duration = Duration::from_secs(1);
/// How long a storm is watched: its rate is counted by the second.
const STORM_WATCH: Duration = Duration::from_secs(3);

/// Until when lists are watched.
#[derive(Clone, Copy)]
enum Until {
    /// For so long.
    Over(Duration),
    /// Until the server has listed the bad one, or says why it cannot.
    Tried,
}

impl Until {
    fn is_there(self, begun: Instant, rest: &mut Client) -> bool {
        match self {
            Until::Over(time) => begun.elapsed() >= time,
            Until::Tried => {
                let waited = begun.elapsed();
                assert!(waited < LIMIT, "waited {waited:?} in vain for the bad one to be tried");
                let bad = rest.get("/api/v1/upstreams/bad").unwrap().json();
                bad["state"] != "connecting" || !bad["lastError"].is_null()
            }
        }
    }
}

/// Lists again and again for a while: always at once, always with the good one in it.
fn assert_lists_are_prompt(house: &House, what: &str, until: Until) {
    let mut caller = house.caller(Era::Modern);
    let mut rest = Client::new(house.address());
    let begun = Instant::now();
    let mut is_over = false;
    while !is_over {
        // Looked at before: lists are asked for once more after it has happened.
        is_over = until.is_there(begun, &mut rest);
        let listed = Instant::now();
        let tools = caller.tools();
        assert!(listed.elapsed() < PROMPT, "{what}: a list took {:?}", listed.elapsed());
        assert!(tools.iter().any(|tool| tool == "good.echo"), "{what}: {tools:?}");
        assert!(tools.iter().any(|tool| tool == "math__add"), "{what}: {tools:?}");
        let listed = Instant::now();
        assert_eq!(rest.get("/api/v1/tools").unwrap().status, 200, "{what}");
        assert!(listed.elapsed() < PROMPT, "{what}: a list took {:?}", listed.elapsed());
    }
}

#[test]
fn a_bad_list_delays_and_empties_no_other() {
    let _turn = crate::my_turn();
    let (http, older, child) = (Way::Http("modern"), Way::Http("legacy"), Way::Stdio("legacy"));
    let cases: [(&str, &[Way], Until); 6] = [
        ("silent", &[http, older, child], Until::Over(WATCH)),
        ("garbage", &[http, child], Until::Over(WATCH)),
        ("slow-lists", &[http], Until::Over(WATCH)),
        ("hanging-lists", &[http, older], Until::Over(WATCH)),
        ("endless-pages", &[http, child], Until::Tried),
        ("huge-list", &[http, child], Until::Tried),
    ];
    for (flag, ways, until) in cases {
        for way in ways.iter().copied() {
            let what = format!("{flag}, {way:?}");
            let house = House::start(way, &["--bad", flag]);
            let before = house.rss_bytes();
            assert_lists_are_prompt(&house, &what, until);
            house.others_are_well(&what);
            assert_is_bounded(&house, &what, before);
        }
    }
}

/// The server has not grown much since it had so many bytes.
fn assert_is_bounded(house: &House, what: &str, before: u64) {
    let after = house.rss_bytes();
    assert!(after < before + 150_000_000, "{what}: {before} bytes became {after}");
}

#[test]
fn a_server_that_dies_at_its_start_is_tried_with_patience() {
    let _turn = crate::my_turn();
    let house = House::start(Way::Stdio("legacy"), &["--bad", "dies-at-start"]);
    assert_lists_are_prompt(&house, "dies-at-start", Until::Over(WATCH));
    house.others_are_well("dies-at-start");
}

#[test]
fn what_cannot_be_listed_is_left_out_and_the_rest_is_there() {
    let _turn = crate::my_turn();
    for way in [Way::Http("modern"), Way::Stdio("legacy")] {
        let house = House::start(way, &["--bad", "huge-names", "--bad", "wrong-schemas"]);
        house.wait_for_tool("bad.echo");
        let tools = house.caller(Era::Modern).tools();
        assert!(tools.iter().all(|tool| tool.len() <= 128), "{way:?}: a name is too long");
        for left_out in ["misdescribed", "endless", "bell"] {
            let is_listed = tools.iter().any(|tool| tool.contains(left_out));
            assert!(!is_listed, "{way:?}: {left_out}: {tools:?}");
        }
        let count = json!(tools.iter().filter(|tool| tool.starts_with("bad.")).count());
        let mut rest = Client::new(house.address());
        wait_for("a count of the tools that can be called", LIMIT, || {
            let bad = rest.get("/api/v1/upstreams/bad").unwrap().json();
            (bad["tools"] == count).then_some(())
        });
        let said = house.caller(Era::Modern).call("bad.echo", json!({"text": "well"})).unwrap();
        assert_eq!(said.words(), "well", "{way:?}");
        house.others_are_well("huge-names");
    }
}

#[test]
fn renamed_tools_are_found_under_their_new_names() {
    let _turn = crate::my_turn();
    for way in [Way::Http("modern"), Way::Http("legacy"), Way::Stdio("legacy")] {
        let house = House::start(way, &["--bad", "renames"]);
        house.wait_for_tool("bad.echo");
        let mut caller = house.caller(Era::Modern);
        let renamed = |tools: &[String]| -> Vec<String> {
            tools.iter().filter(|tool| tool.starts_with("bad.echo_")).cloned().collect()
        };
        let before = renamed(&caller.tools());
        let [old] = before.as_slice() else {
            panic!("{way:?}: not one renamed tool: {before:?}");
        };
        caller.call("bad.change", json!({})).unwrap();
        let new = wait_for("another name in the list", LIMIT, || {
            let now = renamed(&caller.tools());
            (now != before).then_some(now)
        });
        let [new] = new.as_slice() else {
            panic!("{way:?}: not one renamed tool: {new:?}");
        };
        let said = promptly("the new name", || caller.call(new, json!({})));
        assert!(said.words().contains("echo_"), "{way:?}: {said:?}");
        let said = promptly("the old name", || caller.call(old, json!({})));
        assert!(said.is_failure(), "{way:?}: {said:?}");
    }
}

/// A thousand times a second is not asked a thousand times a second, and nobody notices the storm.
#[test]
fn a_storm_of_changes_is_followed_at_leisure() {
    let _turn = crate::my_turn();
    for way in [Way::Http("modern"), Way::Http("legacy"), Way::Stdio("legacy")] {
        let what = format!("storm, {way:?}");
        let house = House::start(way, &["--bad", "storm"]);
        let size = house.rss_bytes();
        house.wait_for_tool("bad.lists");
        let mut caller = house.caller(Era::Modern).limit(LIMIT);
        let mut lists = || -> u64 {
            let said = caller.call("bad.lists", json!({})).unwrap();
            said.words().parse().unwrap_or_else(|_| panic!("{way:?}: {said:?}"))
        };
        let begun = Instant::now();
        let before = lists();
        assert_lists_are_prompt(&house, &what, Until::Over(STORM_WATCH));
        let more = lists() - before;
        // On a busy machine more time went by than was watched.
        let watched = begun.elapsed();
        let most = watched.as_secs() * 10;
        assert!(more <= most, "{what}: asked for the list {more} times in {watched:?}");
        house.others_are_well(&what);
        assert_is_bounded(&house, &what, size);
    }
}
