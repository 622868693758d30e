//! Pipelines as people write them: what is read, what is reported, and the result.

use super::*;
use crate::definition::agent_reader::read_pinned;
use crate::definition::pipeline::{BadCase, Case, HandlerKind, PipelineLlm, Tally};
use crate::definition::plan::flow::{check_flow, reload};
use crate::definition::plan::{Plan, StepKind};
use serde_json::json;

const TRADES: &str = r#"
name: trades
description: Repairs trades that failed
addresses: {inbound: trade.failures, agent: agent.required, events: trades.out}
http: {port: 8080, route: /trade/failures, requestTimeoutMs: 9000}
schema:
  caseIdField: tradeId
  allowedFields: [tradeId, reason, altIds]
  requiredFields: [tradeId, reason]
agent: {maxSteps: 8, timeoutMs: 1500}
handlers:
  - {reason: Missing ISIN, type: lookup-enrich, params: {identifier: ISIN}}
  - {reason: Invalid Counterparty, type: escalate}
  - {reason: Late, plan: trades/late}
  - {reason: Very late, type: "plan: trades/late"}
  - {reason: Too late, type: plan, params: {plan: trades/late}}
tools: [{type: publish-event}, {type: raise-ticket}, math::add, {name: "a::b"}, {type: mine}]
llm: {type: openai, params: {model: gpt, apiKey: "${KEY}"}}
"#;

fn load(text: &str) -> ReadPipeline {
    read_text(text, "pipelines/p.yaml", "p", &Limits::default())
}

/// The pipeline and its warnings; what is wrong with it is shown.
#[track_caller]
fn good(text: &str) -> (Pipeline, Vec<String>) {
    match load(text) {
        Ok((pipeline, warnings)) => (pipeline, warnings.iter().map(ToString::to_string).collect()),
        Err(mistakes) => panic!("{mistakes:#?}\n{text}"),
    }
}

const HTTP: &str = "http: {route: /p}\n";
const SCHEMA: &str =
    "schema: {caseIdField: id, allowedFields: [id, reason, n], requiredFields: [id, reason]}\n";
const REST: &str = "tools: [a]\nllm: {type: stub}\n";

/// A small pipeline with these lines more.
fn with(lines: &str) -> String {
    format!("{HTTP}{SCHEMA}{REST}{lines}")
}

/// The first mistake stands at `«` and begins so.
#[track_caller]
fn bad(text: &str, begins: &str) {
    let (before, after) = text.split_once('«').unwrap();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    let mistakes = load(&format!("{before}{after}")).expect_err(text);
    let told = mistakes[0].to_string();
    let expected = format!("pipelines/p.yaml:{line}:{column}: error: {begins}");
    assert!(told.starts_with(&expected), "expected {expected}\n     got {told}\n{text}");
    assert!(mistakes.iter().all(|mistake| mistake.hint.is_some()), "{mistakes:#?}");
}

/// The step with this id in a plan's source.
fn step<'p>(pipeline: &'p Pipeline, id: &str) -> &'p Value {
    let steps = pipeline.plan_source["steps"].as_array().unwrap();
    steps.iter().find(|step| step["id"] == id).unwrap()
}

fn plan_of(pipeline: &Pipeline) -> Plan {
    reload(&pipeline.plan_source).unwrap()
}

#[test]
fn all_keys_of_a_pipeline_are_read() {
    let (pipeline, warnings) = good(TRADES);
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!((pipeline.name.as_str(), pipeline.port), ("trades", Some(8080)));
    assert_eq!((pipeline.route.as_str(), pipeline.request_timeout_ms), ("/trade/failures", 9000));
    assert_eq!(pipeline.addresses.events, "trades.out");
    assert_eq!(pipeline.schema.required, ["tradeId", "reason"]);
    assert_eq!(pipeline.schema.reason_field, "reason");
    let kinds: Vec<&HandlerKind> = pipeline.handlers.iter().map(|handler| &handler.kind).collect();
    let late = HandlerKind::Plan("trades/late".into());
    let isin = HandlerKind::LookupEnrich { identifier: "ISIN".to_owned() };
    assert_eq!(kinds, [&isin, &HandlerKind::Escalate, &late, &late, &late]);
    let tools = ["events.publish", "case.raiseTicket", "math::add", "a::b", "mine"];
    assert_eq!(pipeline.tools, tools);
    let PipelineLlm::Own { name, kind, params } = &pipeline.llm else { panic!() };
    assert_eq!(
        (&**name, kind.as_str(), &params["apiKey"]),
        ("pipeline/trades", "openai", &json!("${KEY}"))
    );
}

#[test]
fn model_secrets_of_a_pipeline_are_not_shown() {
    let (pipeline, _) = good(&TRADES.replace("${KEY}", "sk-secret"));
    assert!(!format!("{pipeline:?}").contains("sk-secret"));
    let sources = format!("{}{}", pipeline.plan_source, pipeline.agent_source);
    assert!(!sources.contains("sk-secret"), "{sources}");
}

#[test]
fn what_is_left_out_has_defaults() {
    let (pipeline, warnings) = good(&with(""));
    assert_eq!(warnings, Vec::<String>::new());
    let Addresses { inbound, agent, events } = &pipeline.addresses;
    assert_eq!([inbound, agent, events], ["p.inbound", "p.agent", "events.out"]);
    assert_eq!((pipeline.name.as_str(), pipeline.port), ("p", None));
    assert_eq!((pipeline.request_timeout_ms, pipeline.handlers.len()), (10_000, 0));
    assert_eq!(pipeline.agent_source["limits"], json!({"steps": 5, "time": "10000ms"}));
    let named = format!("{HTTP}{SCHEMA}tools: []\nllm: {{type: model, params: {{name: fast}}}}\n");
    let (named, warnings) = good(&named);
    assert_eq!(named.llm, PipelineLlm::Named("fast".into()));
    assert!(warnings[0].contains("3:8: warning: the agent has no tools"), "{warnings:?}");
    let warnings = good(&with("mcp: {enabled: true}\nx-owner: me\n$schema: x\n")).1;
    assert!(warnings[0].contains("warning: `mcp` has no effect"), "{warnings:?}");
    // JSON is the same.
    let schema = json!({"caseIdField": "id", "allowedFields": ["id", "reason", "n"],
        "requiredFields": ["id", "reason"]});
    let json = json!({"http": {"route": "/p"}, "tools": ["a"], "llm": {"type": "stub"},
        "schema": schema});
    assert_eq!(good(&json.to_string()).0, pipeline);
}

#[test]
fn what_must_be_there_is_missed() {
    bad(&format!("«{SCHEMA}{REST}"), "`http` is missing; hint: add `http: ..` here");
    bad(&format!("«{HTTP}{REST}"), "`schema` is missing");
    bad(&format!("«{HTTP}{SCHEMA}tools: [a]\n"), "`llm` is missing");
    bad(&format!("http: «{{port: 1}}\n{SCHEMA}{REST}"), "`route` is missing");
    bad("«just text", "expected a map for a pipeline, found a text");
    bad(
        &with("«handler: []\n"),
        "unknown key `handler` in a pipeline; hint: did you mean `handlers`?",
    );
    let told = load(" \n").unwrap_err()[0].to_string();
    assert!(
        told.starts_with("pipelines/p.yaml:") && told.contains("the text holds no pipeline"),
        "{told}"
    );
    let told = load("http: [\n").unwrap_err()[0].to_string();
    assert!(told.starts_with("pipelines/p.yaml:"), "{told}");
    let large = format!("{}# {}\n", with(""), "x".repeat(Limits::default().plan_bytes_max));
    assert!(load(&large).unwrap_err()[0].message.contains("`plan_bytes_max`"));
}

#[test]
fn names_routes_and_numbers_are_checked() {
    bad(&with("name: «a/b\n"), "`a/b` cannot be the name of a pipeline");
    let told = read_text(&with(""), "f", "a b", &Limits::default()).unwrap_err()[0].to_string();
    assert!(told.starts_with("f:1:1: error: `a b` cannot be the name of a pipeline"), "{told}");
    // What no request can have as its path, or what clients change on the way.
    let odd = ["trade", "/a b", "/{id}", "/a?b", "/a#b", "", "/ä", "/a%20b", "/a|b"];
    for route in odd.iter().chain(&["/..", "/a/../b", "/./a", "/a/*", "/:id", "/a/:id"]) {
        let text = format!("http: {{route: «{route:?}}}\n{SCHEMA}{REST}");
        bad(&text, &format!("`route` cannot be `{route}`; hint: write a path"));
    }
    for route in ["/", "/a/", "/a..b/c.json", "/trades:repair", "/~me/(a),b;c=d"] {
        assert_eq!(good(&format!("http: {{route: {route:?}}}\n{SCHEMA}{REST}")).0.route, route);
    }
    let http = |part: &str| format!("http: {{route: /p, {part}}}\n{SCHEMA}{REST}");
    bad(&http("port: «70000"), "`port` must be a whole number from 0 to 65535");
    bad(&http("port: «\"80\""), "`port` must be a whole number");
    bad(
        &http("requestTimeoutMs: «0"),
        "`requestTimeoutMs` must be a whole number from 1 to 300000",
    );
    bad(&http("«path: /x"), "unknown key `path` in `http`");
    assert_eq!(good(&http("port: 0")).0.port, Some(0));
    bad(&with("agent: {maxSteps: «0}\n"), "`maxSteps` must be a whole number from 1");
    bad(&with("agent: {timeoutMs: «1.5}\n"), "`timeoutMs` must be a whole number from 1");
    bad(&with("addresses: {events: «\"a b\"}\n"), "`events` cannot be `a b`");
}

#[test]
fn fields_fit_each_other() {
    let schema = |text: &str| format!("{HTTP}schema: {{{text}}}\n{REST}");
    bad(
        &schema("caseIdField: id, allowedFields: [id, reason], requiredFields: [id, reason, «n]"),
        "`n` is required and not allowed; hint: add it to `allowedFields`",
    );
    bad(
        &schema("caseIdField: «id, allowedFields: [id, reason], requiredFields: [reason]"),
        "`id` is the `caseIdField`, and not required",
    );
    bad(
        &schema(
            "caseIdField: id, reasonField: «why, allowedFields: [id, why], requiredFields: [id]",
        ),
        "`why` is the `reasonField`, and not required",
    );
    bad(
        &format!(
            "{HTTP}schema: «{{caseIdField: id, allowedFields: [id], requiredFields: [id]}}\n{REST}"
        ),
        "`reason` is the `reasonField`, and not required",
    );
    bad(
        &schema("caseIdField: id, allowedFields: [id, reason, «id], requiredFields: [id, reason]"),
        "`id` is in `allowedFields` twice",
    );
    bad(
        &schema("caseIdField: «status, allowedFields: [reason], requiredFields: [reason]"),
        "`caseIdField` cannot be `status`",
    );
    bad(
        &schema(
            "caseIdField: id, allowedFields: [id, reason, «jsonPath], requiredFields: [id, reason]",
        ),
        "a field cannot be called `jsonPath`",
    );
    bad(&schema("caseIdField: id, allowedFields: «[], requiredFields: [id]"), "this list is empty");
    bad(&schema("caseIdField: id, allowedFields: [«7], requiredFields: [id]"), "expected a text");
}

#[test]
fn unknown_handlers_and_duplicate_reasons_are_mistakes() {
    let handler = |text: &str| with(&format!("handlers:\n  - {{{text}}}\n"));
    bad(
        &handler("reason: a, type: «escalte"),
        "unknown handler type `escalte`; hint: did you mean `escalate`? the types are",
    );
    bad(
        &handler("reason: a, type: «repair"),
        "unknown handler type `repair`; hint: the types are `lookup-enrich`, `escalate`, `plan:",
    );
    bad(
        &with("handlers:\n  - «{reason: a, type: lookup-enrich}\n"),
        "`lookup-enrich` needs `params: {identifier: ..}`",
    );
    bad(&handler("reason: a, type: lookup-enrich, params: «{}"), "`identifier` is missing");
    bad(
        &handler("reason: a, type: lookup-enrich, params: {identifier: x, «more: 1}"),
        "unknown key `more` in the params of `lookup-enrich`",
    );
    bad(&handler("reason: a, type: escalate, params: «{x: 1}"), "`escalate` has no `params`");
    bad(&handler("reason: a, type: escalate, plan: «x"), "`type` and `plan` both say what is done");
    bad(&handler("reason: a, type: «\"plan:\""), "no plan is named");
    bad(&handler("reason: a, plan: «pipeline/p"), "`pipeline/p` is a pipeline, not a plan");
    bad(&with("handlers: [«{reason: a}]\n"), "`type` is missing");
    bad(&with("handlers: [«{type: escalate}]\n"), "`reason` is missing");
    bad(
        &with("handlers:\n  - {reason: a, type: escalate}\n  - «{reason: a, plan: x}\n"),
        "two handlers have the reason `a`",
    );
}

#[test]
fn tools_and_models_are_named_plainly() {
    let tools = |text: &str| format!("{HTTP}{SCHEMA}tools: [{text}]\nllm: {{type: stub}}\n");
    bad(&tools("a, «a"), "tool `a` is named twice");
    bad(&tools("events.publish, «{type: publish-event}"), "tool `events.publish` is named twice");
    bad(&tools("«\"math::*\""), "`math::*` cannot be the name of a tool");
    bad(&tools("«7"), "expected the name of a tool, or `{type: ..}`, found a number");
    bad(&tools("{type: a, name: «b}"), "`type` and `name` both name the tool");
    bad(&tools("{name: a, «args: 1}"), "unknown key `args` in a tool");
    let llm = |text: &str| format!("{HTTP}{SCHEMA}tools: [a]\nllm: {text}\n");
    bad(
        &llm("{type: «open-ay}"),
        "unknown llm type `open-ay`; hint: did you mean `openai`? the types are `stub`, `rules`",
    );
    bad(&llm("«{params: {}}"), "`type` is missing");
    bad(&llm("«{type: model}"), "`model` needs `params: {name: ..}`");
    bad(&llm("{type: stub, params: «[1]}"), "expected a map of params, found a list");
    bad(&llm("«stub"), "expected a map for `llm`, found a text");
}

#[test]
fn all_mistakes_are_told_in_the_order_of_the_text() {
    let text = "http: {route: x}\nschema: {caseIdField: id, allowedFields: [id], \
        requiredFields: [id]}\nhandlers: [{reason: a, type: b}]\ntools: [1]\nllm: {type: c}\n";
    let told = load(text).unwrap_err();
    let lines: Vec<u32> = told.iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [1, 2, 3, 4, 5], "{told:#?}");
}

#[test]
fn a_pipeline_compiles_to_a_plan_that_loads() {
    let (pipeline, _) = good(TRADES);
    let plan = plan_of(&pipeline);
    assert_eq!((plan.id.as_str(), plan.start.as_str()), ("pipeline/trades", "route"));
    assert_eq!(plan.event_source.as_deref(), Some("trades.out"));
    assert!(plan.parameters.is_none());
    let node = Node::from_value(&plan.source);
    assert_eq!(check_flow(&plan, &node, &Origin::default()), []);
    let StepKind::Match { cases, default, .. } = &plan.steps[0].kind else { panic!() };
    let next: Vec<&str> = cases.iter().map(|case| case.next.as_ref().unwrap().as_str()).collect();
    assert_eq!(next, ["handler_1", "handler_2", "handler_3", "handler_4", "handler_5"]);
    assert_eq!(default.as_ref().map(|step| step.as_str()), Some("agent"));
    // Without handlers there is nothing to choose.
    let plain = good(&with("")).0;
    assert_eq!(plan_of(&plain).start.as_str(), "agent");
}

#[test]
fn a_compiled_handler_reports_and_answers_in_the_case_contract() {
    let (pipeline, _) = good(TRADES);
    let id = json!({"jsonPath": "$.promptInput[\"tradeId\"]"});
    let event = json!({"type": "TradeRepaired", "tradeId": id, "by": "deterministic-processor",
        "details": {"action": "lookup+enrich ISIN"}});
    assert_eq!(step(&pipeline, "handler_1")["event"], event);
    let answer = json!({"status": "ok", "path": "deterministic", "resultEvent": event});
    assert_eq!(step(&pipeline, "handler_1_answer")["message"], answer);
    let reason = json!({"jsonPath": "$.promptInput[\"reason\"]"});
    let event = json!({"type": "TradeEscalated", "tradeId": id, "by": "deterministic-processor",
        "reason": reason});
    assert_eq!(step(&pipeline, "handler_2")["event"], event);
    // Field by field: a pointer to the whole of a large case would give its name only.
    let other = json!({"jsonPath": "$.promptInput[\"altIds\"]"});
    let whole = json!({"tradeId": id, "reason": reason, "altIds": other});
    let late = step(&pipeline, "handler_3");
    assert_eq!((&late["planId"], &late["arguments"]), (&json!("trades/late"), &whole));
    assert_eq!(step(&pipeline, "agent")["input"], whole);
    let answer = &step(&pipeline, "agent_answer")["message"];
    assert_eq!((&answer["path"], &answer["tradeId"]), (&json!("agent"), &id));
}

#[test]
fn a_pipeline_agent_can_be_pinned_and_its_name_is_reserved() {
    let braces = TRADES.replace("Repairs trades that failed", r#""{{ x }} {% if %} {{ \"y\" }}""#);
    for text in [TRADES, &braces] {
        let (pipeline, _) = good(text);
        let (agent, _) = read_pinned(&pipeline.agent_source).unwrap();
        assert_eq!((agent.name.as_str(), &*agent.model), ("pipeline/trades", "pipeline/trades"));
        assert_eq!((agent.limits.steps, agent.limits.time_ms), (8, Some(1_500)));
        assert_eq!((agent.routed, agent.approve.len()), (false, 0));
        assert!(agent.sees(&"case.raiseTicket".into(), None));
        assert!(!agent.sees(&"case.other".into(), None));
        let told = crate::definition::agent_reader::read_value(&pipeline.agent_source).unwrap_err();
        assert!(told[0].message.contains("cannot be the name of an agent"), "{told:?}");
    }
}

#[test]
fn a_case_body_is_validated_and_reduced_to_its_schema() {
    let pipeline = good(&with("handlers: [{reason: known, type: escalate}]\n")).0;
    let body = json!({"id": "T-1", "reason": "known", "n": null, "correlationId": "mine"});
    let case = pipeline.admit(&body).unwrap();
    let input = json!({"id": "T-1", "reason": "known", "n": null});
    let expected = Case { id: "T-1".into(), input, reason: "known".into(), handler: Some(0) };
    assert_eq!(case, expected);
    let reason = |reason: Value| {
        let case = pipeline.admit(&json!({"id": 7, "reason": reason})).unwrap();
        (case.id, case.reason, case.handler)
    };
    let agents = |reason: &str| ("7".to_owned(), reason.to_owned(), None);
    assert_eq!(reason(json!("Known")), agents("Known"), "reasons are compared exactly");
    assert_eq!(reason(json!("")), agents(""), "an empty text is there");
    assert_eq!(reason(json!({"b": 1, "a": 2})), agents("{\"a\":2,\"b\":1}"), "counted as one");
    let tally = Tally::of(&pipeline, &Case { reason: "ääää".into(), ..case.clone() }, 3);
    assert_eq!((&*tally.reason, tally.deterministic), ("äää", true));
}

#[test]
fn an_invalid_case_body_is_refused_with_a_reason() {
    let pipeline = good(&with("")).0;
    let refused = |body: Value| pipeline.admit(&body).unwrap_err();
    assert_eq!(refused(json!([1])), BadCase::NoObject);
    let missing = refused(json!({"n": 1, "reason": null}));
    assert_eq!(missing, BadCase::Missing(vec!["id".into(), "reason".into()]));
    assert_eq!(missing.to_string(), "Missing required field(s): id, reason");
    let long = "x".repeat(256);
    let texts = [json!(""), json!("a\nb"), json!("ses_1"), json!(long)];
    // Numbers that are not whole, or lose digits when they are read.
    let numbers = ["123456789012345678901", "1.5", "1e3", "-0"];
    let numbers = numbers.map(|text| serde_json::from_str::<Value>(text).unwrap());
    for id in texts.into_iter().chain(numbers).chain([json!([1]), json!({})]) {
        let bad = refused(json!({"id": id, "reason": "a"}));
        assert_eq!(bad, BadCase::BadId("id".to_owned()), "{id}");
    }
    for id in [json!("x".repeat(255)), json!(u64::MAX), json!(i64::MIN), json!(true)] {
        assert!(pipeline.admit(&json!({"id": id, "reason": "a"})).is_ok(), "{id}");
    }
}

#[test]
fn the_schema_of_pipelines_has_the_keys_that_are_read() {
    use crate::definition::schemas::described::{keys, schema, words};
    use std::collections::BTreeSet;
    let described = schema(crate::definition::schemas::PIPELINE);
    assert_eq!(keys(&described), KEYS.iter().copied().collect::<BTreeSet<_>>());
    let defs = &described["$defs"];
    assert_eq!(
        keys(&defs["caseSchema"]),
        super::schema::KEYS.iter().copied().collect::<BTreeSet<_>>()
    );
    assert_eq!(keys(&defs["handler"]), handlers::KEYS.iter().copied().collect::<BTreeSet<_>>());
    assert_eq!(words(&defs["llm"]["properties"]["type"]), llm::TYPES);
}
