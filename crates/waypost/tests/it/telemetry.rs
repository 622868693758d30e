//! What a server tells a collector: spans of runs, agents, turns, calls and waits as one tree for
//! each run, to OTLP and to Langfuse; and nothing of what was said, unless that is wanted.

use crate::process::{Server, write};
use crate::thread_client::{DemoClient, LIMIT};
use crate::traced::{
    CALL, PLAN, READ, SOON, TALK, Trace, WORDS, find, is_measured, parts, said, sending,
    spend_a_day,
};
use serde_json::json;
use tempfile::TempDir;
use testkit::harness::wait_for;
use testkit::http::{Client, Request};
use testkit::llms::{FakeModels, KEY};
use testkit::servers::otlp::{COLLECTOR, Collector, Export, LANGFUSE, Manner};

const CONTENT: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// The names of the conversation's spans.
const TALK_SPANS: [&str; 5] = [
    "invoke_workflow agent/assistant",
    "invoke_agent assistant",
    "chat rules",
    "execute_tool create_event",
    "human_wait approve",
];

/// A demo with these variables, over a folder of its own.
fn demo(variables: &[(&str, &str)]) -> (TempDir, DemoClient) {
    let folder = tempfile::tempdir().unwrap();
    let demo = DemoClient::with_variables(&folder.path().join("data"), variables);
    (folder, demo)
}

/// Which words stand in what was sent.
fn words_in(exports: &[Export], words: &[&'static str]) -> Vec<&'static str> {
    let is_there = |word: &&&'static str| exports.iter().any(|export| export.contains(word));
    words.iter().filter(is_there).copied().collect()
}

fn the_plan_is_a_tree(collector: &Collector) {
    let plan = Trace::of(collector, PLAN, &["invoke_workflow it/sum", "execute_tool math::add"]);
    let root = plan.root(PLAN);
    assert_eq!(said(root, "gen_ai.operation.name"), "invoke_workflow");
    let call = plan.the("execute_tool math::add");
    assert_eq!(said(call, "gen_ai.operation.name"), "execute_tool");
    assert_eq!(said(call, "gen_ai.tool.name"), "math::add");
    assert!(plan.all("chat ").is_empty(), "no model has a part in it: {plan:#?}");
    assert!(!root.failed && !call.failed, "{plan:#?}");
}

fn the_talk_is_a_tree(collector: &Collector) {
    let talk = Trace::of(collector, TALK, &TALK_SPANS);
    let root = talk.root(TALK);
    assert_eq!(talk.all("invoke_agent ").len(), 1, "{talk:#?}");
    let agent = talk.the("invoke_agent assistant");
    assert_eq!(agent.parent.as_ref(), Some(&root.id), "{talk:#?}");
    assert_eq!(said(agent, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(said(agent, "gen_ai.agent.name"), "assistant");
    for span in [talk.all("chat "), talk.all("execute_tool ")].concat() {
        assert_eq!(span.parent.as_ref(), Some(&agent.id), "{}: {talk:#?}", span.name);
    }
    let turn = talk.the("chat rules");
    assert_eq!(said(turn, "gen_ai.operation.name"), "chat");
    assert_eq!(said(turn, "gen_ai.request.model"), "rules");
    let call = talk.the("execute_tool create_event");
    for (name, value) in [
        ("gen_ai.tool.name", "create_event"),
        ("waypost.upstream", "calendar"),
        ("mcp.method.name", "tools/call"),
        ("waypost.plan", "agent/assistant"),
    ] {
        assert_eq!(said(call, name), value, "{name}");
    }
    assert!(!said(call, "mcp.protocol.version").is_empty(), "{call:#?}");
    let conversation = said(root, "gen_ai.conversation.id");
    assert!(!conversation.is_empty(), "{root:#?}");
    for span in &talk.spans {
        assert_eq!(said(span, "gen_ai.conversation.id"), conversation, "{}", span.name);
    }
}

/// A call becomes a run of its own; one that only reads is a single span.
fn the_calls_are_trees(collector: &Collector) {
    let names = ["invoke_workflow call/create_event", "execute_tool create_event"];
    let call = Trace::of(collector, CALL, &names);
    call.root(CALL);
    assert_eq!(said(call.the(names[1]), "gen_ai.tool.name"), "create_event");
    let read = Trace::of(collector, READ, &["execute_tool math::add"]);
    assert_eq!(read.spans.len(), 1, "{read:#?}");
    assert_eq!(read.spans[0].parent.as_deref(), Some(parts(READ).1), "{read:#?}");
}

#[test]
fn a_collector_gets_a_tree_for_each_run_and_no_content() {
    let collector = Collector::start();
    let url = collector.url();
    let secret = ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue,authorization=Bearer%20hushhush");
    let (_folder, mut demo) = demo(&sending(&url, &[secret]));
    spend_a_day(&mut demo);
    the_plan_is_a_tree(&collector);
    the_talk_is_a_tree(&collector);
    the_calls_are_trees(&collector);
    // One that nobody traced before us begins a trace of its own.
    let alone = demo.post(
        "/api/v1/runs",
        &json!({"planId": "math::conditional_add",
        "input": {"a": 1, "b": 2}}),
    );
    assert_eq!(alone.status, 200, "{alone:?}");
    let name = "invoke_workflow math::conditional_add";
    let root = find(&collector, name, |spans| spans.iter().find(|one| one.name == name).cloned());
    assert_eq!(root.parent, None, "{root:#?}");
    assert!(root.resource.contains_key("service.name"), "{root:#?}");
    demo.stop();

    let exports = collector.exports();
    for export in &exports {
        assert_eq!(export.path, COLLECTOR);
        assert_eq!(export.header("x-team"), Some("blue"));
        assert_eq!(export.header("authorization"), Some("Bearer hushhush"));
    }
    assert_eq!(words_in(&exports, &WORDS), Vec::<&str>::new());
    assert_eq!(words_in(&exports, &["hushhush", "create an event"]), Vec::<&str>::new());
}

#[test]
fn langfuse_gets_the_same_spans_with_its_own_attributes() {
    let collector = Collector::start();
    let url = collector.url();
    let keys = [
        ("LANGFUSE_BASE_URL", url.as_str()),
        ("LANGFUSE_PUBLIC_KEY", "pk-lf-test"),
        ("LANGFUSE_SECRET_KEY", "sk-lf-hushhush"),
    ];
    let (_folder, mut demo) = demo(&[&keys[..], &SOON[..]].concat());
    spend_a_day(&mut demo);
    the_plan_is_a_tree(&collector);
    the_talk_is_a_tree(&collector);
    the_calls_are_trees(&collector);
    let name = "langfuse.trace.name";
    for span in collector.spans() {
        // What is above these is a caller's, which Langfuse may never see, or nothing is.
        let callers = [PLAN, TALK, CALL, READ].map(|caller| parts(caller).1);
        let named = span.parent.as_deref().is_none_or(|parent| callers.contains(&parent));
        assert_eq!(!span.says(name).is_null(), named, "{span:#?}");
    }
    demo.stop();
    let exports = collector.exports();
    for export in &exports {
        assert_eq!(export.path, LANGFUSE);
        let both = "Basic cGstbGYtdGVzdDpzay1sZi1odXNoaHVzaA==";
        assert_eq!(export.header("authorization"), Some(both));
        assert_eq!(export.header("x-langfuse-ingestion-version"), Some("4"));
    }
    assert_eq!(words_in(&exports, &WORDS), Vec::<&str>::new());
    assert_eq!(words_in(&exports, &["hushhush"]), Vec::<&str>::new());
}

#[test]
fn content_is_exported_where_it_is_switched_on() {
    let collector = Collector::start();
    let url = collector.url();
    let (_folder, mut demo) = demo(&sending(&url, &[(CONTENT, "true")]));
    spend_a_day(&mut demo);
    the_talk_is_a_tree(&collector);
    the_calls_are_trees(&collector);
    demo.stop();
    let talked = ["create an event called", "Zanzibarfest", "Quokkaparade"];
    assert_eq!(words_in(&collector.exports(), &talked), talked);
}

/// What it says, and to whom, when a model counts its tokens and learns of its span.
#[test]
fn a_turn_span_has_its_tokens_and_reaches_the_provider() {
    let collector = Collector::start();
    let fake = FakeModels::start();
    let folder = tempfile::tempdir().unwrap();
    let settings = format!(
        "[models.fake]\nprovider = \"openai\"\nmodel = \"m--says\"\nbase_url = \"{}\"\n\
         api_key = \"{KEY}\"\n",
        fake.url()
    );
    let agent = "refName: helper\nllmConfigRef: fake\nenabledTools: []\n";
    write(folder.path(), &[("waypost.toml", settings.as_str()), ("agents/helper.yaml", agent)]);
    let url = collector.url();
    let server = Server::of_project_with(folder.path(), &sending(&url, &[]));
    let mut client = Client::new(server.url.strip_prefix("http://").unwrap().parse().unwrap());
    let body = json!({"thread_id": "t", "user_request": "Hello"}).to_string();
    let headers = [("traceparent", TALK)];
    let request = Request { method: "POST", path: "/run", headers: &headers, body: Some(&body) };
    let answer = client.send(&request).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");

    let names = ["invoke_workflow agent/helper", "invoke_agent helper", "chat m--says"];
    let talk = Trace::of(&collector, TALK, &names);
    let turn = talk.the("chat m--says");
    assert_eq!(said(turn, "gen_ai.request.model"), "m--says");
    assert_eq!(said(turn, "gen_ai.provider.name"), "openai");
    for counted in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
        assert!(turn.says(counted).as_u64().is_some_and(|count| count > 0), "{turn:#?}");
    }
    let seen = fake.requests();
    let span = parts(seen[0].header("traceparent").unwrap());
    assert_eq!(span, (turn.trace.as_str(), turn.id.as_str()));
    assert_eq!(server.stop().0.code, Some(0));
}

#[test]
fn a_collector_that_hangs_or_is_gone_delays_nothing() {
    let collector = Collector::start();
    collector.behave(Manner::Hangs);
    // Nobody listens on port 1.
    for url in [collector.url(), "http://127.0.0.1:1".to_owned()] {
        let (_folder, mut demo) = demo(&sending(&url, &[]));
        spend_a_day(&mut demo);
        assert_eq!(demo.get("/health-check"), json!("Server is healthy"));
        demo.stop();
    }
    assert!(!collector.exports().is_empty(), "it was tried");
}

#[test]
fn refused_exports_are_sent_again() {
    for status in [429, 503] {
        let collector = Collector::start();
        collector.behave(Manner::Refuses { status, retry_after: Some(1) });
        let url = collector.url();
        let (_folder, mut demo) = demo(&sending(&url, &[]));
        spend_a_day(&mut demo);
        let refused = format!("an export that is refused with {status}");
        wait_for(&refused, LIMIT, || (!collector.exports().is_empty()).then_some(()));
        collector.behave(Manner::Takes);
        the_plan_is_a_tree(&collector);
        the_talk_is_a_tree(&collector);
        demo.stop();
    }
}

#[test]
fn metrics_have_every_duration() {
    let (_folder, mut demo) = demo(&[]);
    spend_a_day(&mut demo);
    for name in [
        "waypost_run_duration_seconds",
        "waypost_call_duration_seconds",
        "waypost_turn_duration_seconds",
        "waypost_human_wait_seconds",
    ] {
        is_measured(&mut demo, name);
    }
    let metrics = demo.metrics();
    let named: Vec<&&str> = WORDS.iter().filter(|word| metrics.contains(**word)).collect();
    assert!(named.is_empty(), "{named:?} in {metrics}");
    demo.stop();
}
