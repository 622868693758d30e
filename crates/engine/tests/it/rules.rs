//! What an operator says of tools: what is kept out is not there, and what is limited keeps to it.

use crate::world::{WAIT_MS, World, caller, files};
use engine::{
    AgentFile, CallReport, CallRequest, Parts, RefusalKind, RunRequest, RunSession, RunTarget,
    SwitchedOff,
};
use kernel::ask::{AskBody, CallDecision, Reply};
use kernel::contracts::PageRequest;
use kernel::limits::Limits;
use kernel::tool::call::{CallProgress, Caller};
use kernel::tool::rules::{Pattern, ToolLimits, ToolRules};
use kernel::values::ids::RealmId;
use serde_json::{Value, json};
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

const GREET: &str = "planId: demo/greet\nsteps: [{id: end, type: final_response, message: hi}]";
const READ: &str = "planId: read\nsteps: [{id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {n: 1}, nextStepId: end}, {id: end, type: final_response, message: ok}]";
const WRITE: &str = "planId: write\nsteps: [{id: call, type: tool_call, toolId: 'slow::write', \
    arguments: {n: 1}, nextStepId: end}, {id: end, type: final_response, message: ok}]";
const APPROVED: &str = "planId: approved\nsteps: [{id: call, type: tool_call, \
    toolId: 'slow::read', approve: true, arguments: {n: 1}, nextStepId: end}, \
    {id: end, type: final_response, message: ok}]";

const LATER: &str = "planId: later\nsteps: [{id: ask, type: human_in_the_loop, message: go on?, \
    nextStepIdOnInput: call}, {id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {n: 1}, nextStepId: end}, {id: end, type: final_response, message: ok}]";
/// What to set for a tool that is off.
const SWITCH: &str = "set `demo = true`";

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(text).unwrap()).collect()
}

fn limited(pattern: &str, limits: ToolLimits) -> ToolRules {
    let pattern = Pattern::new(pattern).unwrap();
    ToolRules { tools: vec![(pattern, limits)], ..ToolRules::default() }
}

fn inline(tool: &str) -> Value {
    json!({"planId": "it/inline", "steps": [{"id": "call", "type": "tool_call", "toolId": tool,
        "arguments": {}}]})
}

fn run_of(plan: Value) -> RunRequest {
    let target = RunTarget::Inline(plan);
    RunRequest {
        target,
        input: json!({}),
        session: RunSession::New,
        once: None,
        about: Default::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_excluded_by_rules_are_absent() {
    let folder = tempfile::tempdir().unwrap();
    let rules = ToolRules {
        allow: Some(patterns(&["slow::*", "secret::*", "read"])),
        deny: patterns(&["slow::write"]),
        tools: Vec::new(),
    };
    let world = World::with_rules(folder.path(), &[GREET, READ], rules, Limits::default()).await;
    let engine = &world.engine;
    let ann = caller();
    let listed = engine.tools().callables(&ann);
    let names: Vec<&str> = listed.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["read", "slow::put", "slow::read"]);

    for (kept_out, absent) in [("slow::write", "slow::wrote"), ("demo/greet", "demo/great")] {
        assert!(engine.tools().callable(&ann, kept_out).is_none());
        let called = engine.tools().call(&ann, &kept_out.into(), json!({}), 100).await.unwrap_err();
        let none = engine.tools().call(&ann, &absent.into(), json!({}), 100).await.unwrap_err();
        assert_eq!(called.message.replace(kept_out, absent), none.message);
        assert_eq!((called.code, called.hint), (none.code, none.hint));
    }
    // A plan that is no tool is a plan all the same.
    let report = world.run("demo/greet", json!({}), "s").await;
    assert_eq!(report.run.answer, Some(json!("hi")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_cannot_name_an_excluded_tool() {
    let folder = tempfile::tempdir().unwrap();
    let rules = ToolRules { deny: patterns(&["slow::write"]), ..ToolRules::default() };
    let world = World::with_rules(folder.path(), &[], rules, Limits::default()).await;
    let realm = RealmId::from("default");
    let told =
        world.engine.catalog().load_plans(&realm, files(&[WRITE])).unwrap_err()[0].to_string();
    assert!(told.contains("there is no tool `slow::write`; hint: `[tools]`"), "{told}");

    // A caller learns less: for it, what it does not see was never there.
    for hidden in ["slow::write", "secret::write"] {
        let refused =
            world.engine.runs().start(&caller(), run_of(inline(hidden)), 100).await.unwrap_err();
        let absent = world.engine.runs().start(&caller(), run_of(inline("no::such")), 100).await;
        let absent = absent.unwrap_err();
        assert_eq!(refused.message.replace(hidden, "no::such"), absent.message);
        let mistakes =
            world.engine.catalog().validate_plan(&caller(), &inline(hidden)).unwrap_err();
        assert!(mistakes[0].message.contains("there is no tool"), "{mistakes:?}");
    }
    let root = Caller { subject: "root".into(), ..caller() };
    assert!(world.engine.catalog().validate_plan(&root, &inline("secret::write")).is_ok());
}

fn without_read(parts: Parts) -> Parts {
    let switched_off = SwitchedOff::from([("slow::read".into(), SWITCH)]);
    Parts { tools: Vec::new(), switched_off, ..parts }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_tool_is_switched_off_asks_with_the_setting() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[LATER]).await;
    let waits = world.run("later", json!({}), "s").await;
    world.crash().await;

    let world = World::changed(folder.path(), &[], without_read).await;
    let ask = waits.asks[0].row.ask.id;
    let reply = Reply::Clarify { answer: Some(json!("yes")) };
    let report = world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    let AskBody::Fix { fault, .. } = &report.run.asks[0].row.ask.body else { panic!("not a fix") };
    assert_eq!((fault.name.as_str(), fault.hint.as_deref()), ("ToolNotFoundError", Some(SWITCH)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switched_off_tool_is_refused_with_its_setting() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::changed(folder.path(), &[], without_read).await;
    let catalog = world.engine.catalog();
    let realm = RealmId::from("default");
    let told = catalog.load_plans(&realm, files(&[READ])).unwrap_err()[0].to_string();
    assert!(told.ends_with(&format!("no tool `slow::read`; hint: {SWITCH}")), "{told}");
    let inline = world.engine.runs().start(&caller(), run_of(inline("slow::read")), 100).await;
    assert!(inline.unwrap_err().message.contains(SWITCH));
    let agent = AgentFile {
        file: "agents/a.yaml".to_owned(),
        text: "refName: a\nllmConfigRef: m\napprove: ['slow::read', 'slow::*']\n".to_owned(),
    };
    let found = catalog.set_agents_from_files(&realm, vec![agent.clone()]).unwrap_err();
    let told: Vec<String> = found.iter().map(ToString::to_string).collect();
    let expected = "agents/a.yaml:3:11: error: there is no tool `slow::read`; hint: ";
    assert_eq!(told, [format!("{expected}{SWITCH}")]);

    // A tool of that name may come from elsewhere, and is there then.
    assert_eq!(world.engine.tools().replace(world.late("slow::read")), []);
    assert!(catalog.load_plans(&realm, files(&[READ])).is_ok());
    assert!(catalog.set_agents_from_files(&realm, vec![agent]).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limited_caller_gets_a_retry_time() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ToolLimits { per_minute: NonZeroU32::new(1), ..ToolLimits::default() };
    let rules = limited("*", limits);
    let world = World::with_rules(folder.path(), &[READ, GREET], rules, Limits::default()).await;
    world.permits.add_permits(10);
    let engine = &world.engine;
    for tool in ["slow::read", "slow::write", "demo/greet"] {
        let done = engine.tools().call(&caller(), &tool.into(), json!({}), WAIT_MS).await.unwrap();
        assert!(matches!(done, CallReport::Done(_)), "{done:?}");
        let refused =
            engine.tools().call(&caller(), &tool.into(), json!({}), WAIT_MS).await.unwrap_err();
        assert_eq!(
            (refused.kind(), refused.code.name()),
            (RefusalKind::TooMany, "rate_limited"),
            "{tool}"
        );
        let retry_ms = refused.code.retry_ms().unwrap();
        assert!((1..=60_000).contains(&retry_ms), "{retry_ms}");
        assert!(refused.message.contains(&format!("{retry_ms} ms")), "{}", refused.message);
    }
    // One write and one plan, each with a session; what was refused left nothing behind.
    let page = PageRequest { cursor: None, limit: 10 };
    let sessions = engine.sessions().list(&caller(), &Default::default(), &page).await.unwrap();
    assert_eq!((sessions.items.len(), world.sent()), (2, 2));
    let root = Caller { subject: "root".into(), ..caller() };
    assert!(engine.tools().call(&root, &"slow::read".into(), json!({}), WAIT_MS).await.is_ok());

    // In a run it is a failed step, and a person is asked.
    let report = world.run("read", json!({}), "s").await;
    let AskBody::Fix { how, fault, .. } = &report.asks[0].row.ask.body else { panic!("no fix") };
    assert_eq!((*how, fault.name.as_str()), (CallProgress::NotSent, "RateLimited"));
}

#[tokio::test(flavor = "multi_thread")]
async fn rates_do_not_apply_to_admission() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ToolLimits { per_minute: NonZeroU32::new(1), ..ToolLimits::default() };
    let rules = limited("slow::read", limits);
    let world = World::with_rules(folder.path(), &[APPROVED], rules, Limits::default()).await;
    world.permits.add_permits(10);
    let asked = world.run("approved", json!({}), "s").await;
    let again = world.run("approved", json!({}), "t").await;
    let approve = |asked: &engine::RunReport| {
        let ask = &asked.asks[0].row.ask;
        let AskBody::Approve { calls } = &ask.body else { panic!("not asked for approval") };
        let decision = CallDecision {
            call_id: calls[0].call_id,
            approve: true,
            arguments: None,
            feedback: None,
        };
        (ask.id, Reply::Approve { decisions: vec![decision] })
    };
    // Both were asked about, though only one may begin: the rate is looked at when they begin.
    let (ask, reply) = approve(&asked);
    let done = world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(done.run.run.status.name(), "completed");
    let (ask, reply) = approve(&again);
    let late = world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(late.run.run.status.name(), "stuck");
    assert_eq!(late.run.run.last_error.unwrap().name, "RateLimited");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_of_a_tool_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ToolLimits {
        concurrency: NonZeroU32::new(1),
        timeout_ms: NonZeroU64::new(3_000),
        ..ToolLimits::default()
    };
    let world =
        World::with_rules(folder.path(), &[], limited("slow::write", limits), Limits::default())
            .await;
    let engine = &world.engine;
    let write = || world.call_request("slow::write", json!({}));
    let first = CallRequest { wait_ms: 0, ..write() };
    engine.tools().call_with(&caller(), first).await.unwrap();
    world.until("the first write to be sent", |world| world.sent() == 1).await;
    // The first one keeps its place until it comes back, however late.
    let crowded = engine.tools().call_with(&caller(), write()).await.unwrap_err();
    assert_eq!((crowded.kind(), crowded.code.name()), (RefusalKind::TooMany, "too_many_calls"));
    assert!(crowded.code.detail().unwrap()["run"].is_string());
    assert_eq!(world.sent(), 1);
    // Other tools do not wait for it, and a waiting call gets the place that becomes free.
    world.permits.add_permits(3);
    let read =
        engine.tools().call(&caller(), &"slow::read".into(), json!({}), WAIT_MS).await.unwrap();
    assert!(matches!(read, CallReport::Done(_)), "{read:?}");
    let second = engine.tools().call_with(&caller(), write()).await.unwrap();
    assert!(matches!(second, CallReport::Done(_)), "{second:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn timeout_and_output_size_can_be_set_per_tool() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ToolLimits { timeout_ms: NonZeroU64::new(50), ..ToolLimits::default() };
    let world =
        World::with_rules(folder.path(), &[], limited("slow::read", limits), Limits::default())
            .await;
    let call = async |world: &World, tool: &'static str, arguments: Value| {
        let called = world.engine.tools().call(&caller(), &tool.into(), arguments, WAIT_MS).await;
        called.map_err(|refusal| refusal.message)
    };
    let late = call(&world, "slow::read", json!({})).await.unwrap_err();
    assert!(late.contains("did not answer within 50 ms"), "{late}");

    // In another world, where nothing is late.
    let folder = tempfile::tempdir().unwrap();
    let limits = ToolLimits { output_bytes: NonZeroUsize::new(100), ..ToolLimits::default() };
    let short = Limits { call_output_bytes_max: 10, ..Limits::default() };
    let world = World::with_rules(folder.path(), &[], limited("slow::read", limits), short).await;
    world.permits.add_permits(10);
    // Within its own size, though beyond what others may give.
    assert!(call(&world, "slow::read", json!({"repeat": 90})).await.is_ok());
    let large = call(&world, "slow::read", json!({"repeat": 200})).await.unwrap_err();
    assert!(large.contains("larger than 100 bytes"), "{large}");
    let other = call(&world, "read::promised", json!({"repeat": 90})).await.unwrap_err();
    assert!(other.contains("larger than 10 bytes"), "{other}");
}
