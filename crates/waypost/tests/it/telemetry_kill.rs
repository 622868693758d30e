//! A demo killed while a run of it waits for a person: the process that continues the run continues
//! its trace.

use crate::thread_client::DemoClient;
use crate::traced::{PLAN, TALK, Trace, find, parts, sending, spend_a_day, talk};
use jiff::{ToSpan, Zoned};
use serde_json::json;
use testkit::servers::otlp::{Collector, Span};

const RUN: &str = "invoke_workflow agent/assistant";

/// The turn of the conversation that began before the kill.
fn turn(spans: &[Span]) -> Option<Span> {
    spans.iter().find(|span| span.name == "chat rules").cloned()
}

#[test]
fn a_run_has_one_trace_before_and_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let collector = Collector::start();
    let url = collector.url();
    let mut demo = DemoClient::with_variables(&data, &sending(&url, &[]));
    demo.listed();
    let day = Zoned::now().date() + 72.days();
    let request = format!("create an event called Kept on {day} at 9am");
    let call = demo.run("kept", &request).call("kept");
    let before = find(&collector, "the turn before the kill", turn);
    assert!(!collector.spans().iter().any(|span| span.name == RUN), "it waits for somebody");
    drop(demo);

    let mut demo = DemoClient::with_variables(&data, &sending(&url, &[]));
    assert!(demo.decide("kept", &[(&call, None)]).success().contains("Kept has been created"));
    let names = [RUN, "invoke_agent assistant", "execute_tool create_event", "human_wait approve"];
    let parent = format!("00-{}-{}-01", before.trace, before.id);
    let after = Trace::of(&collector, &parent, &names);
    // The turn of before the kill hangs below the agent whose end came after it.
    let agent = after.the("invoke_agent assistant");
    assert_eq!(before.parent.as_ref(), Some(&agent.id), "{after:#?}");
    assert_eq!(agent.parent.as_ref(), Some(&after.the(RUN).id), "{after:#?}");
    assert_eq!(after.the(RUN).parent, None, "nobody traced it before us: {after:#?}");
    let conversation = before.says("gen_ai.conversation.id");
    assert!(conversation.is_string(), "{before:#?}");
    for span in collector.spans() {
        if span.says("gen_ai.conversation.id") == conversation {
            assert_eq!(span.trace, before.trace, "{span:#?}");
        }
    }
    // What began after the restart is reported as well.
    spend_a_day(&mut demo);
    Trace::of(&collector, PLAN, &["invoke_workflow it/sum"]).root(PLAN);
    demo.stop();
}

#[test]
fn a_run_in_somebody_elses_trace_stays_there_over_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let collector = Collector::start();
    let url = collector.url();
    let mut demo = DemoClient::with_variables(&data, &sending(&url, &[]));
    demo.listed();
    let call = talk(&mut demo, "kept", "Kept");
    let before = find(&collector, "the turn before the kill", turn);
    assert_eq!(before.trace, parts(TALK).0);
    drop(demo);

    let mut demo = DemoClient::with_variables(&data, &sending(&url, &[]));
    // The reply's own trace is another one, and does not count.
    let other = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let body = json!({"thread_id": "kept", "approvals": [{"call_id": call.id, "approved": true}]});
    demo.post_in(other, "/resume", &body).success();
    Trace::of(&collector, TALK, &[RUN, "human_wait approve"]).root(TALK);
    assert!(collector.spans().iter().all(|span| span.trace != parts(other).0));
    demo.stop();
}
