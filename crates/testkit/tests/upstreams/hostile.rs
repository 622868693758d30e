//! An upstream out of the hostile corpus: what cannot be used of its list is left out, the rest is
//! there, each of its answers ends its own call, and nobody else notices.

use crate::house::{House, LIMIT, PROMPT, Way};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Instant;
use testkit::caller::Era;
use testkit::fuzz::hostile::{Kind, of};
use testkit::http::Client;

/// How much the server may grow meanwhile.
const GROWTH_BYTES_MAX: u64 = 150_000_000;

#[test]
fn an_upstream_of_hostile_lists_and_answers_harms_nobody() {
    let _turn = crate::our_turn();
    let house = House::hostile(Way::Http("modern"));
    house.wait_for_tool("bad.echo");
    let before = house.rss_bytes();
    listed(&house);
    answered(&house);
    let after = house.rss_bytes();
    assert!(after < before + GROWTH_BYTES_MAX, "{before} bytes became {after}");
}

/// Whatever can be used is listed, and nothing else.
fn listed(house: &House) {
    let tools: BTreeSet<String> = house.caller(Era::Modern).tools().into_iter().collect();
    for case in of(Kind::Answered) {
        assert!(tools.contains(&format!("bad.{}", case.name)), "{}: {tools:?}", case.name);
    }
    for left_out in ["input_", "output_", "bell", "clear", "cookie", "nnnnnnnn"] {
        let is_listed =
            tools.iter().any(|tool| tool.starts_with("bad.") && tool.contains(left_out));
        assert!(!is_listed, "{left_out}: {tools:?}");
    }
    let said = house.caller(Era::Modern).call("bad.echo", json!({"text": "well"})).unwrap();
    assert_eq!(said.words(), "well");
}

/// Each call comes to an end, over both doors, and everybody else is served.
fn answered(house: &House) {
    for case in of(Kind::Answered) {
        let what = case.name;
        let begun = Instant::now();
        let path = format!("/api/v1/tools/bad.{}/call", case.name);
        let answer = Client::new(house.address()).limit(LIMIT).post(&path, &json!({}));
        let answer = answer.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_ne!(answer.status, 500, "{what}: {answer:?}");
        // An MCP client waits no longer for it.
        let name = format!("bad.{}", case.name);
        let called = house.caller(Era::Modern).limit(LIMIT).call(&name, json!({}));
        called.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(begun.elapsed() < 2 * PROMPT, "{what}: it took {:?}", begun.elapsed());
        house.others_are_well(what);
    }
}
