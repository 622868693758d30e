//! Spans, decoded with the official messages.

use super::*;
use crate::otlp::{Request, ResourceSpans, Scope, ScopeSpans};
use kernel::conversation::llm::Usage;
use kernel::values::ids::{AskId, CallId, RunId, SessionKey, Space};
use kernel::values::trace::TraceParent;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1 as official;
use prost::Message;
use std::collections::BTreeMap;

fn seen(work: ObservedWork) -> Observation {
    Observation {
        realm: "default".into(),
        subject: Some("ann".into()),
        actor: Some("bot".into()),
        session: Some(SessionKey::new("default", Space::thread(), "t-1")),
        run: Some(RunId(7)),
        at: None,
        trace: Some(TraceParent { trace: 0xabc, span: 0xdef, sampled: true }),
        parent: Some(0x123),
        began: Millis(1_000),
        ended: Millis(2_500),
        work,
        error: None,
        content: Vec::new(),
    }
}

/// What a collector reads.
fn read(seen: &Observation) -> (official::Span, BTreeMap<String, Option<Value>>) {
    let spans = vec![span(seen).unwrap()];
    let scope = Some(Scope { name: "waypost".to_owned(), version: "1".to_owned() });
    let scope_spans = vec![ScopeSpans { scope, spans }];
    let request = Request { resource_spans: vec![ResourceSpans { resource: None, scope_spans }] };
    let bytes = request.encode_to_vec();
    let request = ExportTraceServiceRequest::decode(bytes.as_slice()).unwrap();
    let scoped = &request.resource_spans[0].scope_spans[0];
    assert_eq!(scoped.scope.as_ref().unwrap().name, "waypost");
    let span = scoped.spans[0].clone();
    let value = |value: &opentelemetry_proto::tonic::common::v1::KeyValue| {
        (value.key.clone(), value.value.clone().and_then(|value| value.value))
    };
    let attributes = span.attributes.iter().map(value).collect();
    (span, attributes)
}

fn call(tool: &str, id: CallId, upstream: Option<Upstream>) -> ObservedWork {
    ObservedWork::Call { tool: tool.into(), upstream, id, reach: "reads", outcome: "ok" }
}

fn words(text: &str) -> Option<Value> {
    Some(Value::StringValue(text.to_owned()))
}

#[test]
fn a_run_is_a_workflow() {
    let run = ObservedWork::Run {
        plan: "trade/repair".into(),
        status: "failed",
        agent: None,
        turns: 0,
        agent_step: false,
    };
    let (span, attributes) =
        read(&Observation { error: Some("Timeout".into()), ..seen(run.clone()) });
    assert_eq!(span.name, "invoke_workflow trade/repair");
    assert_eq!(span.kind, official::span::SpanKind::Internal as i32);
    assert_eq!(span.trace_id, 0xabc_u128.to_be_bytes());
    assert_eq!(span.span_id, 0xdef_u64.to_be_bytes());
    assert_eq!(span.parent_span_id, 0x123_u64.to_be_bytes());
    assert_eq!(
        (span.start_time_unix_nano, span.end_time_unix_nano),
        (1_000_000_000, 2_500_000_000)
    );
    assert_eq!(span.flags, 0x301, "recorded, and its parent is a caller's");
    assert_eq!(span.status.unwrap().code, official::status::StatusCode::Error as i32);
    for (name, value) in [
        ("gen_ai.operation.name", "invoke_workflow"),
        ("gen_ai.workflow.name", "trade/repair"),
        ("error.type", "Timeout"),
        ("gen_ai.conversation.id", "t-1"),
        ("session.id", "t-1"),
        ("waypost.session", "t-1"),
        ("waypost.realm", "default"),
        ("waypost.subject", "ann"),
        ("waypost.actor", "bot"),
        ("waypost.run", "run_00000000000000000000000000000007"),
        ("waypost.run.status", "failed"),
    ] {
        assert_eq!(attributes.get(name), Some(&words(value)), "{name}");
    }
    let nobody = Observation { subject: None, actor: None, ..seen(run.clone()) };
    let (_, attributes) = read(&nobody);
    assert!(!attributes.contains_key("waypost.subject"), "{attributes:?}");
    let (begins, _) = read(&Observation { parent: None, ..seen(run) });
    assert_eq!((begins.parent_span_id, begins.flags, begins.status), (Vec::new(), 0x101, None));
}

#[test]
fn a_turn_is_a_chat_with_a_model() {
    let turn = ObservedWork::Turn {
        agent: "desk".into(),
        model: "fast".into(),
        provider: Some("openai".into()),
        provider_model: Some("gpt-5-mini".into()),
        kind: "act",
        usage: Usage { input: 100, cached: 40, cache_written: 20, output: 7 },
        cost_micros: Some(250),
        stop: Some("tool_calls"),
        first_piece_ms: Some(250),
    };
    let (span, attributes) = read(&seen(turn));
    assert_eq!(span.name, "chat gpt-5-mini");
    assert_eq!(span.kind, official::span::SpanKind::Client as i32);
    assert_eq!(span.flags, 0x101, "its parent is ours");
    assert_eq!(attributes["gen_ai.provider.name"], words("openai"));
    assert_eq!(attributes["gen_ai.request.model"], words("gpt-5-mini"));
    assert_eq!(attributes["gen_ai.usage.input_tokens"], Some(Value::IntValue(100)));
    assert_eq!(attributes["gen_ai.usage.cache_read.input_tokens"], Some(Value::IntValue(40)));
    let written = "gen_ai.usage.cache_creation.input_tokens";
    assert_eq!(attributes[written], Some(Value::IntValue(20)));
    assert_eq!(attributes["gen_ai.usage.output_tokens"], Some(Value::IntValue(7)));
    assert_eq!(attributes["waypost.cost_micros"], Some(Value::IntValue(250)));
    let first = Some(Value::DoubleValue(0.25));
    assert_eq!(attributes["gen_ai.response.time_to_first_chunk"], first);
    let Some(Value::ArrayValue(reasons)) = &attributes["gen_ai.response.finish_reasons"] else {
        panic!("{attributes:?}")
    };
    let reasons: Vec<_> = reasons.values.iter().map(|reason| reason.value.clone()).collect();
    assert_eq!(reasons, [words("tool_calls")]);
}

#[test]
fn spans_of_calls_agents_and_waits_are_named_by_the_conventions() {
    let direct =
        Observation { session: None, run: None, ..seen(call("math::add", CallId(9), None)) };
    let (span, attributes) = read(&direct);
    assert_eq!((span.name.as_str(), span.flags), ("execute_tool math::add", 0x301));
    assert_eq!(attributes["gen_ai.tool.name"], words("math::add"));
    assert_eq!(attributes["gen_ai.tool.call.id"], words("call_00000000000000000000000000000009"));
    assert_eq!(attributes["waypost.reach"], words("reads"));
    assert!(!attributes.contains_key("session.id"));
    let agent = ObservedWork::Agent { agent: "desk".into(), turns: 2, calls: 3, stopped: None };
    assert_eq!(read(&seen(agent)).0.name, "invoke_agent desk");
    let wait = ObservedWork::Wait { ask: AskId(1), kind: "approve", ending: "decided" };
    let (span, attributes) = read(&seen(wait));
    assert_eq!(span.name, "human_wait approve");
    assert_eq!(attributes["waypost.ask.ending"], words("decided"));
}

#[test]
fn a_span_of_an_upstream_call_names_its_server_and_step() {
    let version = Some("2025-11-25".into());
    let mcp = Upstream { name: "crm".into(), speaks: UpstreamProtocol::Mcp { version } };
    let at = Some(StepRef { plan: "sub/inner".into(), step: "look".into() });
    let call_of = |upstream: Upstream| call("crm.find", CallId(1), Some(upstream));
    let failed = Observation { at, error: Some("ToolFailed".into()), ..seen(call_of(mcp)) };
    let (_, attributes) = read(&failed);
    for (name, value) in [
        ("waypost.upstream", "crm"),
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", "2025-11-25"),
        ("waypost.plan", "sub/inner"),
        ("waypost.step", "look"),
        ("error.type", "tool_error"),
    ] {
        assert_eq!(attributes.get(name), Some(&words(value)), "{name}");
    }
    let rpc = Upstream { name: "files".into(), speaks: UpstreamProtocol::Other };
    let (_, attributes) = read(&Observation { error: failed.error, ..seen(call_of(rpc)) });
    assert_eq!(attributes["error.type"], words("ToolFailed"));
    assert!(!attributes.contains_key("mcp.method.name"), "{attributes:?}");
}

#[test]
fn unrecorded_work_makes_no_span_and_content_is_optional() {
    let call = || call("t", CallId(1), None);
    assert_eq!(span(&Observation { trace: None, ..seen(call()) }), None);
    let (_, attributes) = read(&seen(call()));
    assert!(!attributes.contains_key("gen_ai.tool.call.arguments"));
    let content = vec![("gen_ai.tool.call.arguments", "{\"a\":1}".to_owned())];
    let (_, attributes) = read(&Observation { content, ..seen(call()) });
    assert_eq!(attributes["gen_ai.tool.call.arguments"], words("{\"a\":1}"));
}
