//! Asks that expire: by recovery, by a live driver, and against a reply that comes too late.

use crate::world::{World, caller};
use kernel::ask::Reply;
use kernel::contracts::SessionRef;
use serde_json::json;

const ASK: &str = "planId: ask\nsteps: [{id: ask, type: human_in_the_loop, message: go on?, \
    expiresIn: 1s, nextStepIdOnInput: end}, {id: end, type: final_response, message: ok}]";
const DIVERT: &str = "planId: divert\nsteps: [{id: call, type: tool_call, toolId: 'slow::write', \
    approve: true, expiresIn: 1s, onRejected: {nextStepId: no}, nextStepId: end}, \
    {id: end, type: final_response, message: done}, \
    {id: no, type: final_response, message: nobody came}]";
const BESIDE: &str = "planId: beside\nsteps: [{id: both, type: parallel_branch, branches: [{id: l, \
    steps: [{id: ask, type: human_in_the_loop, message: go on?, expiresIn: 1s, \
    onDeclined: {nextStepId: after}}, {id: after, type: tool_call, toolId: 'slow::read'}]}, \
    {id: r, steps: [{id: call, type: tool_call, toolId: 'slow::read'}]}], nextStepId: end}, \
    {id: end, type: final_response, message: ok}]";

#[tokio::test(flavor = "multi_thread")]
async fn recovery_expires_an_ask_on_time_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[ASK, DIVERT]).await;
    let asking = world.run("ask", json!({}), "a").await;
    let approving = world.run("divert", json!({}), "d").await;
    let ask = &asking.asks[0].row.ask;
    assert_eq!(ask.expires_at, Some(ask.created_at.plus_ms(1_000)));
    assert_eq!(asking.session.wake_at, ask.expires_at);
    let woken = world.engine.admin().recover_once().await;
    // On a busy machine its time may have come already.
    let is_time = Some(world.engine.clock().now()) >= ask.expires_at;
    assert!(woken == 0 || is_time, "woken before its time");
    world.crash().await;

    let world = World::open(folder.path(), &[]).await;
    world.engine.admin().keep_recovering();
    let report = world.until_status(asking.run.id, "failed").await;
    assert_eq!(report.run.last_error.unwrap().name, "Declined");
    let report = world.until_status(approving.run.id, "completed").await;
    assert_eq!(report.run.answer, Some(json!("nobody came")));
    assert_eq!(world.sent(), 0);
    let reply = Reply::Clarify { answer: Some(json!("late")) };
    let late = world.engine.asks().reply(&caller(), ask.id, reply, None, 1_000).await.unwrap_err();
    assert_eq!(late.code.name(), "expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_reply_finds_the_ask_expired_before_recovery_ran() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[ASK]).await;
    let asking = world.run("ask", json!({}), "a").await;
    let end = asking.asks[0].row.ask.expires_at.unwrap();
    world.engine.clock().sleep_until(end.plus_ms(5)).await;
    let reply = Reply::Clarify { answer: Some(json!("late")) };
    let ask = asking.asks[0].row.ask.id;
    let late = world.engine.asks().reply(&caller(), ask, reply, None, 1_000).await.unwrap_err();
    assert_eq!(late.code.name(), "expired");
    world.until_status(asking.run.id, "failed").await;
    let session = SessionRef::Key { key: "a".into(), space: None };
    let events = world.engine.sessions().events(&caller(), &session, 0, 100).await.unwrap();
    assert!(events.iter().any(|(_, event)| event.contains("ask.expired")));
    assert!(!events.iter().any(|(_, event)| event.contains("ask.decided")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driven_session_expires_its_own_asks() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[BESIDE]).await;
    let run = world.start("beside", json!({}), "s").await.run.id;
    // Nobody recovers here, and a call is under way: the ask ends all the same.
    world.until("the step after the ask", |world| world.sent() == 2).await;
    world.permits.add_permits(2);
    world.until_status(run, "completed").await;
}
