//! The trace that a call belongs to, from a client through the server to an upstream.

use crate::house::{House, WAYS, Way};
use serde_json::{Value, json};
use testkit::caller::{Caller, Era};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// What came beside a call at the bad upstream.
fn beside(caller: &mut Caller, meta: Value) -> Value {
    let params = json!({"name": "bad.beside", "arguments": {}, "_meta": meta});
    let outcome = caller.request("tools/call", params).unwrap();
    let words = outcome.words();
    serde_json::from_str(&words).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

/// A call that belongs to a trace reaches the upstream as a part of it, in each place where an
/// upstream may look; one that does not belong to any names none.
fn is_carried_on(house: &House, way: Way, era: Era) {
    let what = format!("{way:?} for {era:?}");
    let mut caller = house.caller(era);
    let said = beside(&mut caller, json!({"traceparent": PARENT, "tracestate": "vendor=1"}));
    // Nobody here records spans: a span of ours would be a gap in the client's trace.
    assert_eq!(said["meta"]["traceparent"], json!(PARENT), "{what}");
    assert_eq!(said["meta"]["tracestate"], Value::Null, "{what}");
    match way {
        Way::Http(_) => assert_eq!(said["traceparent"], said["meta"]["traceparent"], "{what}"),
        Way::Stdio(_) => assert_eq!(said["traceparent"], Value::Null, "{what}"),
    }
    for none in [json!({}), json!({"traceparent": "nonsense"}), json!({"traceparent": 7})] {
        let said = beside(&mut caller, none);
        let named = (&said["meta"]["traceparent"], &said["traceparent"]);
        assert_eq!(named, (&Value::Null, &Value::Null), "{what}: nobody traces this call");
    }
}

#[test]
fn a_call_reaches_every_upstream_in_the_trace_of_its_client() {
    let _turn = crate::our_turn();
    for way in WAYS {
        let house = House::unrecorded(way);
        house.wait_for_tool("bad.beside");
        for era in [Era::Modern, Era::Legacy] {
            is_carried_on(&house, way, era);
        }
    }
}

#[test]
fn a_recorded_call_does_too() {
    let _turn = crate::our_turn();
    for way in [Way::Http("modern"), Way::Stdio("legacy")] {
        let house = House::patient(way);
        house.wait_for_tool("bad.beside");
        is_carried_on(&house, way, Era::Modern);
    }
}
