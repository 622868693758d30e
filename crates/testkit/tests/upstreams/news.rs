//! What clients hear of an upstream that changes: one change is one notification, for each client.

use crate::house::{House, LIMIT, WAYS};
use serde_json::{Value, json};
use testkit::caller::Era;
use testkit::events::Events;
use testkit::harness::wait_for;
use testkit::http::{Client, Request};

/// How often the upstream changes. A second notification of one change that comes late is found
/// where the next one is expected.
const CHANGES: u64 = 3;
const TOOLS: &str = "notifications/tools/list_changed";
/// The last notification where all lists change.
const RESOURCES: &str = "notifications/resources/list_changed";

/// A client that listens, and what it is called in messages.
struct Listener {
    what: String,
    events: Events,
}

impl Listener {
    /// The method of the next message.
    fn hear(&mut self) -> String {
        let what = &self.what;
        let heard = self.events.next(LIMIT).unwrap_or_else(|error| panic!("{what}: {error}"));
        let heard: Value = heard.unwrap_or_else(|| panic!("{what}: the stream ended"));
        heard["method"].as_str().unwrap_or_else(|| panic!("{what}: no news: {heard}")).to_owned()
    }
}

/// Two clients with a session and two stateless ones, all of which listen by now.
fn listeners(house: &House) -> Vec<Listener> {
    let with_session = (0..2).map(|number| {
        let events = house.caller(Era::Legacy).news(LIMIT).unwrap();
        Listener { what: format!("session {number}"), events }
    });
    let stateless = (0..2).map(|number| {
        let wanted = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true,
            "resourcesListChanged": true}});
        let opened = house.caller(Era::Modern).open("subscriptions/listen", wanted, LIMIT);
        let mut listener =
            Listener { what: format!("stateless {number}"), events: opened.unwrap() };
        assert_eq!(listener.hear(), "notifications/subscriptions/acknowledged");
        listener
    });
    with_session.chain(stateless).collect()
}

/// Changes something else, of which all lists tell.
fn store_plan(house: &House, number: u64) {
    let plan = json!({
        "planId": "it/marker",
        "description": format!("the marker after change {number}"),
        "steps": [{"id": "end", "type": "final_response", "message": "here"}],
    });
    let (path, body) = ("/api/v1/plans/it%2Fmarker", plan.to_string());
    let request = Request { method: "PUT", path, headers: &[], body: Some(&body) };
    let stored = Client::new(house.address()).send(&request).unwrap();
    assert!(stored.status < 300, "{} {}", stored.status, stored.body);
}

#[test]
fn one_change_of_an_upstream_is_one_notification_for_each_client() {
    let _turn = crate::our_turn();
    for way in WAYS {
        let house = House::unrecorded_with(way, &["--bad", "grows"]);
        house.wait_for_tool("bad.change");
        let mut caller = house.caller(Era::Modern).limit(LIMIT);
        let mut listeners = listeners(&house);
        // What was told while they came is over with this.
        store_plan(&house, 0);
        for listener in &mut listeners {
            while listener.hear() != RESOURCES {}
        }
        for change in 1..=CHANGES {
            caller.call("bad.change", json!({})).unwrap();
            let grown = format!("bad.grown_{change}");
            wait_for(&format!("`{grown}` in the list, {way:?}"), LIMIT, || {
                caller.tools().contains(&grown).then_some(())
            });
            for listener in &mut listeners {
                assert_eq!(listener.hear(), TOOLS, "{}, {way:?}, change {change}", listener.what);
            }
            // What is heard next is this, unless the change was told twice.
            store_plan(&house, change);
            for listener in &mut listeners {
                let heard: Vec<String> = (0..3).map(|_| listener.hear()).collect();
                let expected = [TOOLS, "notifications/prompts/list_changed", RESOURCES];
                assert_eq!(heard, expected, "{}, {way:?}, change {change}", listener.what);
            }
        }
    }
}
