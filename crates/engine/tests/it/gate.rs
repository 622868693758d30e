//! The gate: what is not listed cannot be called, calls end in time, outputs are as promised.

use crate::world::{WAIT_MS, World, caller, count_in};
use engine::{CallReport, CallRequest, Parts};
use kernel::ask::{AskBody, FixAction, Reply};
use kernel::contracts::policy::{Context, Decision, Request};
use kernel::contracts::{LoadResult, Policy};
use kernel::limits::Limits;
use kernel::tool::call::{CallProgress, Caller};
use kernel::values::caller::Act;
use kernel::values::fault::Fault;
use kernel::values::ids::{ContentHash, Space};
use serde_json::{Map, json};
use std::sync::{Arc, Mutex};

const SECRET: &str = "planId: secret\nsteps: [{id: call, type: tool_call, toolId: 'secret::write', \
    arguments: {}, nextStepId: end}, {id: end, type: final_response, message: ok}]";
const READ: &str = "planId: read\nsteps: [{id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {n: 1}, nextStepId: end}, {id: end, type: final_response, message: ok}]";
const GIVEN: &str = "planId: given\nsteps: [{id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {n: {jsonPath: $.promptInput.n}}, nextStepId: end}, \
    {id: end, type: final_response, message: ok}]";

const CONFLICT: &str = "planId: conflict\nsteps: [{id: call, type: tool_call, \
    toolId: 'slow::write', arguments: {detail: {jsonPath: $.promptInput}}, nextStepId: end}, \
    {id: end, type: final_response, message: ok}]";

#[tokio::test(flavor = "multi_thread")]
async fn a_faults_detail_reaches_who_called_and_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[CONFLICT]).await;
    world.permits.add_permits(10);
    let detail = Map::from_iter([("record".to_owned(), json!(7))]);
    let fault = Fault::new("Boom", "as told").detail(detail);
    let arguments = json!({"detail": {"record": 7}});
    // A read has no run: the fault comes with the refusal. The run of a write failed with it.
    let tools = world.engine.tools();
    let read = tools.call(&caller(), &"slow::read".into(), arguments.clone(), WAIT_MS).await;
    let refused = read.unwrap_err();
    assert_eq!((refused.code.name(), refused.message.as_str()), ("tool_failed", "Boom: as told"));
    assert_eq!(refused.fault.as_deref(), Some(&fault));
    let written = tools.call(&caller(), &"slow::write".into(), arguments, WAIT_MS).await.unwrap();
    let CallReport::Failed(report) = written else { panic!("{written:?}") };
    assert_eq!(report.run.last_error.as_ref(), Some(&fault));

    let stuck = world.run("conflict", json!({"record": 7}), "s").await;
    let ask = stuck.asks[0].row.ask.id;
    world.crash().await;
    let world = World::open(folder.path(), &[CONFLICT]).await;
    world.engine.admin().recover_once().await;
    // What the run ends with was read from the journal.
    let action = FixAction::Abort;
    let reply = Reply::Fix { action, arguments: None, output: None, plan_id: None };
    let over = world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(over.run.run.last_error, Some(fault));
    let recorded = "\"detail\":{\"record\":7}";
    assert!(count_in(&world.engine, &crate::key("s"), recorded).await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_not_listed_for_a_caller_cannot_be_called_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[SECRET]).await;
    world.permits.add_permits(10);
    let root = Caller { subject: "root".into(), ..caller() };
    let listed = |who: &Caller| {
        let tools = world.engine.tools().list(who);
        tools.iter().any(|spec| spec.name.as_str() == "secret::write")
    };
    assert!(listed(&root) && !listed(&caller()));
    assert!(world.engine.tools().get(&caller(), "secret::write").is_none());
    let hidden =
        world.engine.tools().call(&caller(), &"secret::write".into(), json!({}), 100).await;
    let absent =
        world.engine.tools().call(&caller(), &"secret::wrote".into(), json!({}), 100).await;
    let hidden = hidden.unwrap_err();
    let absent = absent.unwrap_err();
    assert_eq!(hidden.message.replace("write", "wrote"), absent.message);
    assert_eq!(hidden.code, absent.code);

    // What another caller found is no way to it.
    let found = world.engine.tools().find(&root, "secret::write").unwrap();
    let request = CallRequest::new(found, json!({}), WAIT_MS);
    let denied = world.engine.tools().call_with(&caller(), request).await.unwrap_err();
    assert_eq!(denied.code.name(), "policy_denied");
    let report = world.run("secret", json!({}), "s").await;
    assert_eq!(report.run.last_error.unwrap().name, "ToolNotFoundError");
    assert_eq!(world.sent(), 0, "a plan got at a tool that its caller does not see");
    let done = world
        .engine
        .tools()
        .call(&root, &"secret::write".into(), json!({}), WAIT_MS)
        .await
        .unwrap();
    assert!(matches!(done, CallReport::Done(_)));
}

/// Keeps where the arguments of calls came from, as policy sees it.
#[derive(Default)]
struct Told(Mutex<Vec<Vec<&'static str>>>);

impl Policy for Told {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let Context { arguments, sources, .. } = request.context;
        if request.act == Act::Call && arguments.is_some() {
            let sources = sources.into_iter().flat_map(|sources| sources.values().flatten());
            self.0.lock().unwrap().push(sources.map(|one| one.from.word()).collect());
        }
        Decision::allow()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_gets_the_sources_of_a_steps_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let told = Arc::new(Told::default());
    let policy = told.clone();
    let watched = |parts: Parts| Parts { policy, ..parts };
    let world = World::changed(folder.path(), &[GIVEN], watched).await;
    world.permits.add_permits(2);
    let report = world.run("given", json!({"n": 1}), "s").await;
    assert_eq!(report.run.status.name(), "completed", "{:?}", report.run.last_error);
    let of_run = std::mem::take(&mut *told.0.lock().unwrap());
    assert!(of_run.len() > 1, "it is judged, and again when it starts");
    assert!(of_run.iter().all(|sources| *sources == ["input"]), "{of_run:?}");
    let tools = world.engine.tools();
    tools.call(&caller(), &"slow::read".into(), json!({"n": 1}), WAIT_MS).await.unwrap();
    let direct = std::mem::take(&mut *told.0.lock().unwrap());
    assert!(!direct.is_empty() && direct.iter().all(Vec::is_empty), "{direct:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_spec_that_a_call_pins_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[READ]).await;
    world.permits.add_permits(2);
    let spec = world.engine.tools().get(&caller(), "slow::read").unwrap();
    let realm = caller().realm;
    let pinned = [spec.hash()];
    assert_eq!(world.store.tool_specs(&realm, &pinned).await, Ok(Vec::new()));
    for session in ["one", "two"] {
        let report = world.run("read", json!({}), session).await;
        assert_eq!(report.run.status.name(), "completed");
        let specs = world.store.tool_specs(&realm, &pinned).await.unwrap();
        let [(hash, text)] = specs.as_slice() else { panic!("{specs:?}") };
        assert_eq!((hash, &ContentHash::of(text.as_bytes())), (&pinned[0], &pinned[0]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_ends_in_time_and_its_output_is_as_promised() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { call_timeout_ms: 50, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[], limits).await;
    let how = async |world: &World, tool: &'static str| {
        let called = world.engine.tools().call(&caller(), &tool.into(), json!({}), WAIT_MS).await;
        let Ok(CallReport::Pending(report)) = called else { panic!("{tool} is not asked about") };
        let AskBody::Fix { how, fault, .. } = report.asks[0].row.ask.body.clone() else {
            panic!("not a fix")
        };
        (how, fault.name)
    };
    assert_eq!(how(&world, "slow::write").await, (CallProgress::Unknown, "Timeout".to_owned()));
    // The others have time enough, so that nothing but their output is wrong.
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[]).await;
    world.permits.add_permits(2);
    // The write happened, whatever it answered: nobody may take it for undone.
    let (how_far, name) = how(&world, "write::promised").await;
    assert_eq!((how_far, name.as_str()), (CallProgress::Unknown, "OutputValidationError"));
    let read =
        world.engine.tools().call(&caller(), &"read::promised".into(), json!({}), WAIT_MS).await;
    assert!(read.unwrap_err().message.contains("OutputValidationError"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_does_not_grow_with_its_runs() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { snapshot_floor_bytes: 0, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[READ], limits).await;
    world.permits.add_permits(1_000);
    let key = caller().key(Space::session(), "s");
    let mut sizes = Vec::new();
    for run in 1..=120 {
        world.run("read", json!({}), "s").await;
        if run == 20 || run == 120 {
            let LoadResult::Found(stored) = world.store.load(&key, None).await.unwrap() else {
                panic!("the session is not there");
            };
            sizes.push(stored.snapshot_bytes);
        }
    }
    assert!(sizes[1] < sizes[0] + 64, "the state grows with the session: {sizes:?} bytes");
}
