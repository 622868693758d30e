//! The engine over the real store: pauses, cancels, crashes, large values, long histories.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests wait with deadlines")]

mod agents;
mod approvers;
mod audit;
mod blobs;
mod breaker;
mod direct_calls;
mod cases;
mod contexts;
mod ask_details;
mod control;
mod drafts;
mod gate;
mod failure_rules;
mod identity;
mod realms;
mod realm_settings;
mod removed_realms;
mod registry;
mod rights;
mod rules;
mod shares;
mod expiry;
mod files;
mod follow;
mod retention;
mod keys;
mod model;
mod recording_store;
mod outbox;
mod outbox_scripted;
mod outbox_failures;
mod observed;
mod proposals;
mod run_events;
mod threads;
mod logins;
mod remote_tasks;
mod replies;
mod input_required;
mod webhooks;
mod unrecorded_calls;
mod world;

use kernel::ask::{AskBody, FixAction, Reply};
use kernel::contracts::{PageRequest, SessionRef};
use kernel::limits::Limits;
use kernel::tool::call::CallProgress;
use kernel::values::ids::ToolName;
use serde_json::{Value, json};
use world::{LOOK, LOOKS_MAX, WAIT_MS, World, caller};

const READ: &str = "planId: read\nsteps: [{id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {n: 1}, saveAs: out, nextStepId: end}, {id: end, type: final_response, message: ok}]";
const WRITE: &str = "planId: write\nsteps: [{id: call, type: tool_call, toolId: 'slow::write', \
    arguments: {n: 1}, saveAs: out, nextStepId: end}, {id: end, type: final_response, message: ok}]";
const ASK: &str = "planId: ask\nsteps: [{id: ask, type: human_in_the_loop, message: go on?, \
    nextStepIdOnInput: end}, {id: end, type: final_response, message: '{{ context.human_input }}'}]";
const LOOP: &str = "planId: loop\nsteps: [{id: each, type: loop_over_items, collectionPath: \
    {jsonPath: $.promptInput.items}, itemAlias: item, loopPlan: [{id: one, type: tool_call, \
    toolId: 'slow::read', arguments: {item: {jsonPath: $.context.item}}}], nextStepId: look}, \
    {id: look, type: tool_call, toolId: 'slow::read', arguments: {old: {jsonPath: \
    '$.history[25].request.arguments.item'}, all: {jsonPath: '$.history[*].planStepId'}}, \
    saveAs: seen, nextStepId: end}, {id: end, type: final_response, message: {jsonPath: $.context.seen}}]";
const LARGE: &str = "planId: large\nsteps: [{id: make, type: tool_call, toolId: 'slow::read', \
    arguments: {repeat: {jsonPath: $.promptInput.bytes}}, saveAs: big, nextStepId: use}, \
    {id: use, type: tool_call, toolId: 'slow::read', arguments: {whole: {jsonPath: $.context.big}}, \
    saveAs: used, nextStepId: end}, {id: end, type: final_response, message: {jsonPath: $.context.used}}]";

const BLOBS: &str = "planId: blobs\nsteps: [{id: make, type: tool_call, toolId: 'slow::read', \
    arguments: {items: {jsonPath: $.promptInput.items}}, saveAs: big, nextStepId: each}, \
    {id: each, type: loop_over_items, collectionPath: {jsonPath: $.context.big.got.items}, \
    itemAlias: item, loopPlan: [{id: one, type: tool_call, toolId: 'slow::read', arguments: \
    {item: {jsonPath: $.context.item}}}], nextStepId: again}, \
    {id: again, type: loop_over_items, collectionPath: {jsonPath: $.context.each}, itemAlias: item, \
    concurrency: 4, loopPlan: [{id: two, type: tool_call, toolId: 'slow::read', arguments: \
    {item: {jsonPath: $.context.item.got.item}}}], nextStepId: look}, \
    {id: look, type: tool_call, toolId: 'slow::read', arguments: {many: {jsonPath: \
    \"$.history[?(@.planStepId=='make')].result.output.got.items[*]\"}}, saveAs: seen, nextStepId: end}, \
    {id: end, type: final_response, message: {jsonPath: '$.context.again[299].got.item'}}]";

fn fix(action: FixAction, output: Option<Value>) -> Reply {
    Reply::Fix { action, arguments: None, output, plan_id: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_active_write_at_a_crash_opens_an_ask_and_is_never_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[WRITE]).await;
    let run = world.start("write", json!({}), "s").await.run.id;
    world.until("the write to be sent", |world| world.sent() == 1).await;
    world.crash().await;

    let world = World::open(folder.path(), &[WRITE]).await;
    world.engine.admin().recover_once().await;
    let report = world.until_status(run, "stuck").await;
    let AskBody::Fix { how, fault, .. } = &report.asks[0].row.ask.body else { panic!("not a fix") };
    assert_eq!((*how, fault.name.as_str()), (CallProgress::Unknown, "OutcomeUnknown"));
    assert_eq!(world.sent(), 0, "the write was sent a second time");
    let ask = report.asks[0].row.ask.id;
    let reply = fix(FixAction::Settle, Some(json!("it did")));
    let report = world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(report.run.run.status.name(), "completed");
    assert_eq!(world.sent(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_active_read_at_a_crash_is_repeated_under_its_call_id() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[READ]).await;
    let run = world.start("read", json!({}), "s").await.run.id;
    world.until("the read to be sent", |world| world.sent() == 1).await;
    let first = world.ledger.0.lock().unwrap()[0].clone();
    world.crash().await;

    let world = World::open(folder.path(), &[READ]).await;
    world.permits.add_permits(1);
    assert_eq!(world.engine.admin().recover_once().await, 1);
    world.until_status(run, "completed").await;
    assert_eq!(world.ledger.0.lock().unwrap()[0], first);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsent_repeat_leaves_the_first_outcome_unknown() {
    let put = "planId: put\nsteps: [{id: call, type: tool_call, toolId: 'slow::put', \
        arguments: {refuse: true}}]";
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[put]).await;
    let run = world.start("put", json!({}), "s").await.run.id;
    world.until("the write to be sent", |world| world.sent() == 1).await;
    world.crash().await;

    // The write may be repeated under its key; this time it does not go out.
    let world = World::open(folder.path(), &[put]).await;
    world.permits.add_permits(1);
    world.engine.admin().recover_once().await;
    let report = world.until_status(run, "stuck").await;
    let AskBody::Fix { how, fault, .. } = &report.asks[0].row.ask.body else { panic!("not a fix") };
    assert_eq!((*how, fault.name.as_str()), (CallProgress::Unknown, "Refused"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_stops_at_the_next_step_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[READ]).await;
    let run = world.start("read", json!({}), "s").await.run.id;
    world.until("the read to be sent", |world| world.sent() == 1).await;
    let engine = world.engine.clone();
    let pausing = tokio::spawn(async move { engine.runs().pause(&caller(), run).await });
    for _ in 0..LOOKS_MAX {
        let events = world.engine.sessions().events(&caller(), &key("s"), 0, 100).await.unwrap();
        if events.iter().any(|(_, event)| event.contains("run.paused")) {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    world.permits.add_permits(1);
    assert_eq!(pausing.await.unwrap().unwrap().run.status.name(), "paused");
    let report = world.engine.runs().continue_run(&caller(), run).await.unwrap();
    assert_eq!(report.run.status.name(), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_withdraws_asks_and_lists_writes_of_unknown_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { cancel_grace_ms: 50, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[ASK, WRITE], limits).await;
    let asking = world.run("ask", json!({}), "a").await;
    let ask = asking.asks[0].row.ask.id;
    let report = world.engine.runs().cancel(&caller(), asking.run.id).await.unwrap();
    assert_eq!(report.run.status.name(), "cancelled");
    let reply = Reply::Clarify { answer: Some(json!("too late")) };
    let refusal = world.engine.asks().reply(&caller(), ask, reply, None, 1_000).await.unwrap_err();
    assert_eq!(refusal.code.name(), "withdrawn");
    let again = world.engine.runs().cancel(&caller(), asking.run.id).await.unwrap_err();
    assert_eq!(again.code.name(), "run_over");

    let writing = world.start("write", json!({}), "w").await.run.id;
    world.until("the write to be sent", |world| world.sent() == 1).await;
    let report = world.engine.runs().cancel(&caller(), writing).await.unwrap();
    assert_eq!(report.run.status.name(), "cancelled");
    let fault = report.run.last_error.unwrap();
    assert_eq!(fault.name, "Cancelled");
    assert!(fault.hint.unwrap().contains("call_"), "the unknown call is not named");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_run_at_a_time_and_asks_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[ASK]).await;
    let first = world.run("ask", json!({}), "s").await;
    let request = world.request("ask", json!({}), "s");
    let refusal = world.engine.runs().start(&caller(), request, 1_000).await.unwrap_err();
    assert_eq!(refusal.code.name(), "run_active");
    world.crash().await;

    let world = World::open(folder.path(), &[]).await;
    let ask = first.asks[0].row.ask.id;
    let reply = Reply::Clarify { answer: Some(json!("Ann")) };
    // The catalog of this process has no plan at all: the run has its own.
    let report =
        world.engine.asks().reply(&caller(), ask, reply.clone(), None, WAIT_MS).await.unwrap();
    assert_eq!(report.run.run.answer, Some(json!("Ann")));
    let refusal = world.engine.asks().reply(&caller(), ask, reply, None, 1_000).await.unwrap_err();
    assert_eq!(refusal.code.name(), "ask_decided");
    assert_eq!(refusal.code.detail().unwrap()["decision"]["reply"]["answer"], json!("Ann"));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_values_go_to_blobs_and_pointers_find_them() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[LARGE]).await;
    world.permits.add_permits(2);
    let report = world.run("large", json!({"bytes": 100_000}), "s").await;
    assert_eq!(report.run.status.name(), "completed", "{:?}", report.run.last_error);
    let given = world.ledger.0.lock().unwrap()[1].1["whole"].as_str().unwrap().to_owned();
    let hash = given.strip_prefix("blob://").expect("a whole blob is passed by its URI");
    let bytes = world.engine.sessions().blob(&caller(), &hash.into()).await.unwrap();
    assert_eq!(bytes.len(), 100_002, "a JSON string with its quotes");
    let context = world.engine.sessions().inspect(&caller(), &key("s")).await.unwrap().context;
    assert_eq!(context["big"], json!(given));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_pointer_selects_does_not_depend_on_size() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { context_inline_bytes_max: 256, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[BLOBS], limits).await;
    world.permits.add_permits(2_000);
    let items: Vec<u32> = (0..300).collect();
    let report = world.run("blobs", json!({"items": items}), "s").await;
    assert_eq!(report.run.status.name(), "completed", "{:?}", report.run.last_error);
    assert_eq!(report.run.answer, Some(json!(299)));
    let sent = world.ledger.0.lock().unwrap();
    let (_, looked) = sent.last().unwrap();
    assert_eq!(looked["many"].as_array().unwrap().len(), 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_histories_are_answered_by_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { snapshot_floor_bytes: 4_096, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[LOOP], limits).await;
    world.permits.add_permits(1_000);
    let items: Vec<u32> = (0..300).collect();
    let report = world.run("loop", json!({"items": items}), "s").await;
    let answer = report.run.answer.unwrap();
    assert_eq!(answer["got"]["old"], json!(274), "the entry before the 25 newest ones");
    assert_eq!(answer["got"]["all"].as_array().unwrap().len(), 300);
    let page = PageRequest { cursor: None, limit: 50 };
    let first = world.engine.sessions().history(&caller(), &key("s"), &page).await.unwrap();
    assert_eq!(first.items[0].entry.step.as_str(), "look");
    assert_eq!(first.items[1].entry.arguments["item"], json!(299));
    world.crash().await;

    let world = World::open(folder.path(), &[LOOP]).await;
    let context = world.engine.sessions().inspect(&caller(), &key("s")).await.unwrap().context;
    assert_eq!(context["each"].as_array().unwrap().len(), 300, "snapshot and tail lost something");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_realm_sees_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[ASK]).await;
    let run = world.run("ask", json!({}), "s").await;
    let stranger = kernel::tool::call::Caller { realm: "other".into(), ..caller() };
    let engine = &world.engine;
    assert_eq!(
        engine.sessions().get(&stranger, &key("s")).await.unwrap_err().code.name(),
        "not_found"
    );
    assert_eq!(
        engine.runs().report(&stranger, run.run.id).await.unwrap_err().code.name(),
        "not_found"
    );
    let ask = run.asks[0].row.ask.id;
    assert_eq!(engine.asks().get(&stranger, ask).await.unwrap_err().code.name(), "not_found");
    let reply = Reply::Clarify { answer: Some(json!("mine")) };
    assert_eq!(
        engine.asks().reply(&stranger, ask, reply, None, 100).await.unwrap_err().code.name(),
        "not_found"
    );
    assert_eq!(
        engine.runs().cancel(&stranger, run.run.id).await.unwrap_err().code.name(),
        "not_found"
    );
    assert!(engine.catalog().plans(&stranger).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_write_is_a_run_and_a_direct_read_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[]).await;
    world.permits.add_permits(4);
    let call = |tool: &'static str, arguments: Value| {
        let engine = world.engine.clone();
        async move { engine.tools().call(&caller(), &tool.into(), arguments, WAIT_MS).await }
    };
    let done = call("slow::read", json!({"n": 1})).await.unwrap();
    assert_eq!(done, engine::CallReport::Done(json!({"got": {"n": 1}})));
    let page = PageRequest { cursor: None, limit: 10 };
    let sessions =
        world.engine.sessions().list(&caller(), &Default::default(), &page).await.unwrap();
    assert!(sessions.items.is_empty());
    let done = call("slow::write", json!({"n": 2})).await.unwrap();
    assert_eq!(done, engine::CallReport::Done(json!({"got": {"n": 2}})));
    let sessions =
        world.engine.sessions().list(&caller(), &Default::default(), &page).await.unwrap();
    assert_eq!(sessions.items[0].key.space.as_str(), "call");
    // Ids of different endpoints never meet: this one is not there for the session endpoints.
    let key = sessions.items[0].key.id.clone();
    let elsewhere = SessionRef::Key { key, space: Some(kernel::values::ids::Space::session()) };
    let refusal = world.engine.sessions().get(&caller(), &elsewhere).await.unwrap_err();
    assert_eq!(refusal.code.name(), "not_found");
    // The caller learns of a failure; only an unknown outcome is for a person.
    let failed = call("slow::write", json!({"fail": true})).await.unwrap();
    let engine::CallReport::Failed(report) = failed else { panic!("{failed:?}") };
    assert_eq!(report.run.last_error.unwrap().name, "Boom");
    assert_eq!(report.asks.len(), 0);
    let pending = call("slow::write", json!({"lost": true})).await.unwrap();
    let engine::CallReport::Pending(report) = pending else { panic!("{pending:?}") };
    assert_eq!(report.asks.len(), 1);
    assert_eq!(call("no::such", json!({})).await.unwrap_err().code.name(), "not_found");
    assert_eq!(call("slow::read", json!([])).await.unwrap_err().code.name(), "input_misfit");
}

/// The plan of a call that its run reports.
const REPORTED: engine::ReportedPlan = engine::ReportedPlan { id: "reports/call", written };

fn written(tool: Option<&ToolName>) -> Value {
    json!({"steps": [{"id": "call", "type": "tool_call", "toolId": tool, "on_error": "fail",
        "arguments": {"jsonPath": "$.promptInput"}, "saveAs": "out"}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reported_call_of_unknown_outcome_ends_its_run_and_asks_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[]).await;
    world.permits.add_permits(1);
    let call = engine::ReportedCall {
        plan: REPORTED,
        tool: Some(ToolName::from("slow::write")),
        input: json!({"lost": true}),
        session: engine::RunSession::New,
        once: None,
        about: engine::RunMetadata::default(),
        wait_ms: Some(WAIT_MS),
    };
    let run = world.engine.tools().begin_reported(&caller(), call).await.unwrap().run();
    let report = world.engine.runs().report(&caller(), run).await.unwrap();
    assert_eq!((report.run.status.name(), report.asks.len()), ("failed", 0), "{:?}", report.run);
}

fn key(name: &str) -> SessionRef {
    SessionRef::Key { key: name.into(), space: None }
}
