//! Tools that want something first, inside runs: a person is asked, and the same call goes out
//! again with the answer, also when the process ends in between.

use crate::world::{WAIT_MS, World, caller};
use engine::{CallReport, CallRequest, RunReport};
use kernel::ask::{Ask, AskBody, Reply};
use kernel::contracts::{PageRequest, SessionRef};
use kernel::tool::call::{CallProgress, Caller, InputResponses};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

const PLAN: &str = "planId: wants\nsteps: [{id: call, type: tool_call, toolId: 'TOOL', \
    arguments: {wants: {jsonPath: $.promptInput.wants}}, saveAs: out, nextStepId: end}, \
    {id: end, type: final_response, message: {jsonPath: $.context.out}}]";

async fn world(folder: &Path, tool: &str) -> World {
    let plan = PLAN.replace("TOOL", tool);
    World::open(folder, &[plan.as_str()]).await
}

fn key(name: &str) -> SessionRef {
    SessionRef::Key { key: name.into(), space: None }
}

fn form() -> Value {
    let schema = json!({"type": "object", "required": ["name"]});
    json!({"wants": {"who": {"kind": "form", "message": "who?", "schema": schema}}})
}

fn fill(name: &str) -> Reply {
    Reply::Fill { content: Some(json!({"name": name})) }
}

/// What the tool has to have been given.
fn given(name: &str) -> Value {
    let who = json!({"action": "accept", "content": {"name": name}});
    json!({"given": {"inputs": {"who": who}, "state": {"asked": 1}}})
}

/// The one ask that a run waits with.
fn asked(report: &RunReport) -> &Ask {
    assert_eq!((report.run.status.name(), report.asks.len()), ("waiting", 1));
    &report.asks[0].row.ask
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_whose_tool_requires_input_asks_and_continues() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), "slow::write").await;
    world.permits.add_permits(2);
    let waiting = world.run("wants", form(), "s").await;
    let ask = asked(&waiting);
    assert!(matches!(ask.body, AskBody::Fill { .. }), "{ask:?}");
    let wanted = ask.wanted.as_ref().unwrap();
    assert_eq!((wanted.key.as_str(), wanted.call.tool.as_str()), ("who", "slow::write"));
    let misfit = Reply::Fill { content: Some(json!({})) };
    let refusal =
        world.engine.asks().reply(&caller(), ask.id, misfit, None, 1_000).await.unwrap_err();
    assert_eq!((refusal.code.name(), world.sent()), ("input_misfit", 1));
    let done =
        world.engine.asks().reply(&caller(), ask.id, fill("ann"), None, WAIT_MS).await.unwrap();
    assert_eq!(done.run.run.answer, Some(given("ann")));
    let late =
        world.engine.asks().reply(&caller(), ask.id, fill("eve"), None, 1_000).await.unwrap_err();
    assert_eq!(late.code.name(), "ask_decided");
    let page = PageRequest { cursor: None, limit: 10 };
    let history = world.engine.sessions().history(&caller(), &key("s"), &page).await.unwrap();
    assert_eq!(history.items.len(), 1, "one call is one entry");
    let sent = world.ledger.0.lock().unwrap();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].0, sent[1].0, "it was sent again under another id");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_write_that_requires_input_is_pending_with_its_ask() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), "slow::write").await;
    world.permits.add_permits(2);
    let report = world.engine.tools().call(&caller(), &"slow::write".into(), form(), WAIT_MS).await;
    let report = report.unwrap();
    let CallReport::Pending(report) = report else { panic!("{report:?}") };
    let declined = Reply::Fill { content: None };
    let ask = asked(&report).id;
    let done = world.engine.asks().reply(&caller(), ask, declined, None, WAIT_MS).await.unwrap();
    // What a no means is the tool's to say.
    let answer = done.run.run.answer.unwrap();
    assert_eq!(answer["given"]["inputs"]["who"], json!({"action": "decline"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_caller_supplies_all_required_inputs_and_the_tool_validates_them() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), "slow::write").await;
    world.permits.add_permits(2);
    let mut wants = form();
    wants["wants"]["folders"] = json!({"kind": "roots"});
    let report = world.engine.tools().call(&caller(), &"slow::write".into(), wants, WAIT_MS).await;
    let Ok(CallReport::Pending(report)) = report else { panic!("{report:?}") };
    let ask = asked(&report).id;
    let wanted = world.engine.asks().wanted(&caller(), &report.asks[0]).await.unwrap().unwrap();
    assert_eq!(wanted.inputs.keys().collect::<Vec<_>>(), ["folders", "who"]);
    let misfit = json!({"action": "accept", "content": {"name": 7}});
    let given = json!({"folders": {"roots": []}, "who": misfit});
    let mut inputs: BTreeMap<String, Value> = serde_json::from_value(given.clone()).unwrap();
    inputs.insert("unasked".to_owned(), json!(1));
    let said = InputResponses { inputs, ..InputResponses::default() };
    let eve = Caller::new("default", "eve");
    let hers = world.engine.asks().wanted(&eve, &report.asks[0]).await.unwrap();
    assert_eq!(hers, None, "it is not wanted of her");
    let refused = world.engine.asks().give(&eve, ask, said.clone(), 1_000).await.unwrap_err();
    assert_eq!((refused.code.name(), world.sent()), ("not_found", 1), "it is not hers to give");
    let done = world.engine.asks().give(&caller(), ask, said.clone(), WAIT_MS).await.unwrap();
    assert_eq!(done.run.answer.unwrap()["given"]["inputs"], given);
    let late = world.engine.asks().give(&caller(), ask, said, 1_000).await.unwrap_err();
    assert_eq!((late.code.name(), world.sent()), ("ask_decided", 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_input_survives_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let first = world(folder.path(), "slow::write").await;
    first.permits.add_permits(1);
    let waiting = first.run("wants", form(), "s").await;
    let ask = asked(&waiting).id;
    let sent = first.ledger.0.lock().unwrap()[0].clone();
    first.crash().await;

    let world = world(folder.path(), "slow::write").await;
    assert_eq!(world.engine.admin().recover_once().await, 0, "nothing is under way");
    world.permits.add_permits(1);
    let done = world.engine.asks().reply(&caller(), ask, fill("ann"), None, WAIT_MS).await.unwrap();
    assert_eq!(done.run.run.answer, Some(given("ann")));
    assert_eq!(*world.ledger.0.lock().unwrap(), [sent]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_sent_with_its_input_is_unknown_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let first = world(folder.path(), "slow::write").await;
    first.permits.add_permits(1);
    let waiting = first.run("wants", form(), "s").await;
    let ask = asked(&waiting).id;
    let run = waiting.run.id;
    first.engine.asks().reply(&caller(), ask, fill("ann"), None, 0).await.unwrap();
    first.until("the write to be sent again", |world| world.sent() == 2).await;
    first.crash().await;

    let world = world(folder.path(), "slow::write").await;
    world.engine.admin().recover_once().await;
    let report = world.until_status(run, "stuck").await;
    let AskBody::Fix { how, fault, .. } = &report.asks[0].row.ask.body else { panic!("not a fix") };
    assert_eq!((*how, fault.name.as_str()), (CallProgress::Unknown, "OutcomeUnknown"));
    assert_eq!(world.sent(), 0, "the write was sent a third time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_resent_after_a_crash_with_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let first = world(folder.path(), "slow::read").await;
    first.permits.add_permits(1);
    let waiting = first.run("wants", form(), "s").await;
    let ask = asked(&waiting).id;
    let run = waiting.run.id;
    first.engine.asks().reply(&caller(), ask, fill("ann"), None, 0).await.unwrap();
    first.until("the read to be sent again", |world| world.sent() == 2).await;
    first.crash().await;

    let world = world(folder.path(), "slow::read").await;
    world.permits.add_permits(1);
    assert_eq!(world.engine.admin().recover_once().await, 1);
    let report = world.until_status(run, "completed").await;
    assert_eq!((report.run.answer, world.sent()), (Some(given("ann")), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_that_requires_unavailable_input_leaves_the_first_outcome_unknown() {
    let roots = json!({"wants": {"folders": {"kind": "roots"}}});
    let folder = tempfile::tempdir().unwrap();
    let first = world(folder.path(), "slow::put").await;
    first.permits.add_permits(1);
    let stuck = first.run("wants", roots.clone(), "a").await;
    let AskBody::Fix { how, fault, .. } = &stuck.asks[0].row.ask.body else { panic!("not a fix") };
    assert_eq!((*how, fault.name.as_str()), (CallProgress::NotSent, "InputWanted"));
    let run = first.start("wants", roots, "b").await.run.id;
    first.until("the write to be sent", |world| world.sent() == 2).await;
    first.crash().await;

    let world = world(folder.path(), "slow::put").await;
    world.permits.add_permits(1);
    world.engine.admin().recover_once().await;
    let report = world.until_status(run, "stuck").await;
    let AskBody::Fix { how, .. } = &report.asks[0].row.ask.body else { panic!("not a fix") };
    assert_eq!(*how, CallProgress::Unknown);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_withdraws_input_asks_and_a_fork_calls_its_tool_again() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), "slow::write").await;
    world.permits.add_permits(2);
    let waiting = world.run("wants", form(), "s").await;
    let ask = asked(&waiting).clone();
    let fork = world.engine.sessions().fork(&caller(), &key("s"), None).await.unwrap();
    let copy = world.until_status(fork.run.unwrap(), "waiting").await;
    assert_ne!(asked(&copy).id, ask.id);
    let sent = world.ledger.0.lock().unwrap().clone();
    assert_eq!(sent.len(), 2, "the copy's tool was not asked what it wants");
    assert_ne!(sent[0].0, sent[1].0);

    let report = world.engine.runs().cancel(&caller(), waiting.run.id).await.unwrap();
    assert_eq!(report.run.status.name(), "cancelled");
    assert_eq!(report.run.last_error.unwrap().hint, None, "a write that did nothing is unknown");
    let forgotten = world.ledger.2.lock().unwrap().clone();
    assert_eq!(forgotten, [json!({"asked": 1})], "its tool may hold something for the answer");
    let late =
        world.engine.asks().reply(&caller(), ask.id, fill("ann"), None, 1_000).await.unwrap_err();
    assert_eq!((late.code.name(), world.sent()), ("withdrawn", 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_input_ask_is_reported_to_the_tool() {
    let folder = tempfile::tempdir().unwrap();
    let plan = PLAN.replace("TOOL", "slow::write").replace("out,", "out, expiresIn: 1s,");
    let world = World::open(folder.path(), &[plan.as_str()]).await;
    world.permits.add_permits(2);
    let waiting = world.run("wants", form(), "s").await;
    let ask = asked(&waiting);
    assert_eq!(ask.expires_at, Some(ask.created_at.plus_ms(1_000)));
    world.engine.admin().keep_recovering();
    let report = world.until_status(waiting.run.id, "completed").await;
    let answer = report.run.answer.unwrap();
    assert_eq!(answer["given"]["inputs"]["who"], json!({"action": "cancel"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_form_fails_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), "slow::write").await;
    world.permits.add_permits(1);
    let broken = json!({"who": {"kind": "form", "message": "who?", "schema": {"type": 12}}});
    let stuck = world.run("wants", json!({"wants": broken}), "s").await;
    let fault = stuck.run.last_error.unwrap();
    assert_eq!(fault.name, "OutputValidationError");
    assert!(fault.message.contains("`who`"), "{fault}");
}

/// What a tool is given that wanted nothing but to be called again.
fn called_again() -> Value {
    json!({"given": {"state": {"asked": 1}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_task_is_polled_again_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let first = world(folder.path(), "slow::write").await;
    first.permits.add_permits(1);
    let run = first.start("wants", json!({"wants": {}}), "s").await.run.id;
    first.until("the write to be looked at", |world| world.sent() == 2).await;
    first.crash().await;

    let world = world(folder.path(), "slow::write").await;
    world.permits.add_permits(1);
    assert_eq!(world.engine.admin().recover_once().await, 1);
    let report = world.until_status(run, "completed").await;
    assert_eq!((report.run.answer, world.sent()), (Some(called_again()), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_call_with_a_remote_task_becomes_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), "slow::write").await;
    for tool in ["slow::read", "slow::write"] {
        let before = world.sent();
        world.permits.add_permits(1);
        let request = world.call_request(tool, json!({"wants": {}}));
        let request = CallRequest { as_task: true, ..request };
        let report = world.engine.tools().call_with(&caller(), request).await.unwrap();
        let CallReport::Pending(report) = report else { panic!("{tool}: {report:?}") };
        assert_eq!((report.run.status.name(), report.elsewhere), ("running", true), "{tool}");
        world.until("it to be looked at", |world| world.sent() == before + 2).await;
        world.permits.add_permits(1);
        let done = world.until_status(report.run.id, "completed").await;
        assert_eq!(done.run.answer, Some(called_again()), "{tool}");
        assert_eq!(world.sent(), before + 2, "{tool} was called again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_cannot_resume_calls_again_or_waits() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), "slow::write").await;
    world.permits.add_permits(1);
    let caller = caller();
    let wants = json!({"wants": {}});
    let read =
        world.engine.tools().call(&caller, &"slow::read".into(), wants.clone(), WAIT_MS).await;
    assert!(matches!(read, Ok(CallReport::Wants(wants)) if wants.inputs.is_empty()));
    world.permits.add_permits(2);
    let write = world.engine.tools().call(&caller, &"slow::write".into(), wants, WAIT_MS).await;
    assert_eq!(write.unwrap(), CallReport::Done(called_again()));
}
