//! Shares: one caller cannot take another's place among runs, turns and calls, nor its room in the
//! store, and is not kept from its own by what it finished.

use crate::model::{Says, Scripted};
use crate::world::{LOOK, LOOKS_MAX, WAIT_MS, World, caller};
use crate::{ASK, READ};
use engine::refusal::{Quota, Refusal};
use engine::{AgentFile, CallReport, Models, Parts, ThreadMessage};
use kernel::ask::Reply;
use kernel::contracts::SessionRef;
use kernel::identity::realm::{RealmSettings, Realms};
use kernel::identity::shares::SharedLimit;
use kernel::limits::Limits;
use kernel::tool::call::Caller;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const HELPER: &str = "refName: helper\nllmConfigRef: fast\n";
/// Its output is kept as a blob.
const FAT: &str = "planId: fat\nsteps: [{id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {repeat: 120000}, saveAs: out, nextStepId: end}, {id: end, type: final_response, \
    message: ok}]";

/// With one realm that has four of this, and a share of one for each caller.
async fn world(folder: &Path, limit: SharedLimit, models: Models) -> World {
    limited(folder, limit, 4, models).await
}

/// With one realm that has so much of this, and a quarter of it for each caller.
async fn limited(folder: &Path, limit: SharedLimit, own: usize, models: Models) -> World {
    let own = RealmSettings { limits: BTreeMap::from([(limit, own)]), ..RealmSettings::default() };
    let realms = Arc::new(Realms(BTreeMap::from([("default".into(), own)])));
    let limits = Limits { caller_share_percent: 25, stop_wait_ms: 0, ..Limits::default() };
    let limits = Arc::new(limits);
    let change = |parts| Parts { limits, models, realms: Some(Arc::new(realms)), ..parts };
    let world = World::changed(folder, &[READ, ASK, FAT], change).await;
    let agent = AgentFile { file: "helper.yaml".to_owned(), text: HELPER.to_owned() };
    world.engine.catalog().set_agents_from_files(&"default".into(), vec![agent]).unwrap();
    world
}

fn bob() -> Caller {
    Caller { subject: "bob".into(), ..caller() }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_cannot_take_the_runs_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), SharedLimit::Runs, Models::default()).await;
    world.start("read", json!({}), "first").await;
    world.until("the call of the first run", |world| world.sent() == 1).await;
    for session in ["second", "third", "fourth", "fifth"] {
        let request = world.request("read", json!({}), session);
        let refusal = world.engine.runs().start(&caller(), request, 0).await.unwrap_err();
        assert_eq!(refusal.code.name(), "runs_active_max");
        assert!(refusal.message.contains("this caller may have 1 "), "{}", refusal.message);
    }
    let request = world.request("read", json!({}), "of bob");
    world.engine.runs().start(&bob(), request, 0).await.unwrap();
    world.until("the call of the other caller", |world| world.sent() == 2).await;
    world.permits.add_permits(2);
    world.at_rest().await;
    world.permits.add_permits(1);
    let report = world.run("read", json!({}), "second").await;
    assert_eq!(report.run.status.name(), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_of_one_serves_consecutive_requests() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), SharedLimit::Runs, Models::default()).await;
    for number in 0..50 {
        world.permits.add_permits(1);
        let report = world.run("read", json!({}), &format!("read-{number}")).await;
        assert_eq!(report.run.status.name(), "completed");
        let report = world.run("ask", json!({}), &format!("ask-{number}")).await;
        assert_eq!(report.run.status.name(), "waiting");
        world.engine.sessions().create(&caller(), None).await.unwrap();
        let request = world.request("read", json!({}), &format!("ask-{number}"));
        let active = world.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap_err();
        assert_eq!(active.code.name(), "run_active");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_and_cancellations_are_not_refused_for_a_share() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), SharedLimit::Runs, Models::default()).await;
    let answered = world.run("ask", json!({}), "answered").await;
    let cancelled = world.run("ask", json!({}), "cancelled").await;
    world.start("read", json!({}), "moving").await;
    world.until("the call that uses the share up", |world| world.sent() == 1).await;
    let refused = world.engine.sessions().create(&caller(), None).await.unwrap_err();
    assert_eq!(refused.code.name(), "runs_active_max");
    let ask = answered.asks[0].row.ask.id;
    let reply = Reply::Clarify { answer: Some(json!("yes")) };
    let replied = world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(replied.run.run.status.name(), "completed");
    let report = world.engine.runs().cancel(&caller(), cancelled.run.id).await.unwrap();
    assert_eq!(report.run.status.name(), "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_cannot_take_the_calls_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path(), SharedLimit::Calls, Models::default()).await;
    let call = |who: Caller| {
        let engine = world.engine.clone();
        tokio::spawn(async move {
            engine.tools().call(&who, &"slow::read".into(), json!({}), WAIT_MS).await
        })
    };
    // Of a call by itself and of calls of runs.
    let mut calls = vec![call(caller())];
    world.until("the first call", |world| world.sent() == 1).await;
    calls.extend((0..5).map(|_| call(caller())));
    for session in ["one", "two", "three"] {
        world.start("read", json!({}), session).await;
    }
    calls.push(call(bob()));
    world.until("the call of the other caller", |world| world.sent() == 2).await;
    world.permits.add_permits(10);
    for call in calls {
        let called = tokio::time::timeout(std::time::Duration::from_millis(WAIT_MS), call).await;
        let called = called.expect("the call ends").unwrap().unwrap();
        assert!(matches!(called, CallReport::Done(_)));
    }
    world.at_rest().await;
    assert_eq!(world.sent(), 10, "those that waited were sent in the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_cannot_take_the_turns_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new((0..7).map(|_| Says::Hangs("well")));
    let world = world(folder.path(), SharedLimit::Turns, model.models()).await;
    let say = async |who: &Caller, thread: &str| {
        let saying = ThreadMessage { thread, text: "hello", ..ThreadMessage::default() };
        world.engine.threads().say(who, saying, 0).await.unwrap().run.id
    };
    let first = say(&caller(), "0").await;
    world.until("the first turn", |_| model.asked() == 1).await;
    for thread in ["1", "2", "3", "4", "5"] {
        say(&caller(), thread).await;
    }
    say(&bob(), "0").await;
    world.until("the turn of the other caller", |_| model.asked() == 2).await;
    world.engine.runs().cancel(&caller(), first).await.unwrap();
    world.until("the next turn, once one is given up", |_| model.asked() == 3).await;
}

/// Makes sessions until that is refused: a new process soon learns what it finds in its store.
async fn until_refused(world: &World) -> Refusal {
    for _ in 0..LOOKS_MAX {
        match world.engine.sessions().create(&caller(), None).await {
            Ok(_) => tokio::time::sleep(LOOK).await,
            Err(refusal) => return refusal,
        }
    }
    panic!("waited in vain for a refusal");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_cannot_take_the_room_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let open = async || {
        let world =
            limited(folder.path(), SharedLimit::StoredBytes, 400_000, Models::default()).await;
        world.permits.add_permits(9);
        world
    };
    let world = open().await;
    let waiting = world.run("ask", json!({}), "waiting").await;
    assert_eq!(world.run("fat", json!({}), "fat").await.run.status.name(), "completed");
    let request = world.request("read", json!({}), "more");
    let refusal = world.engine.runs().start(&caller(), request, 0).await.unwrap_err();
    assert_eq!(refusal.code.name(), "stored_bytes_max");
    assert_eq!(refusal.message, "the runs of this caller may store 100000 bytes, and do");
    let quota = Quota { of: "bytes", max: 100_000, window_s: None };
    assert_eq!(refusal.code.quota(), Some(quota));
    let request = world.request("fat", json!({}), "of bob");
    let report = world.engine.runs().start(&bob(), request, WAIT_MS).await.unwrap();
    assert_eq!(report.run.status.name(), "completed", "another caller has room of its own");
    // What was begun continues.
    let ask = waiting.asks[0].row.ask.id;
    let reply = Reply::Clarify { answer: Some(json!("yes")) };
    let replied = world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(replied.run.run.status.name(), "completed");
    world.at_rest().await;
    world.crash().await;

    let world = open().await;
    assert_eq!(until_refused(&world).await.code.name(), "stored_bytes_max");
    let fat = SessionRef::Key { key: "fat".into(), space: None };
    world.engine.sessions().remove(&caller(), &fat).await.unwrap();
    for _ in 0..LOOKS_MAX {
        if world.engine.sessions().create(&caller(), None).await.is_ok() {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("waited in vain for the room of what was removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_shares_all_runs_share_one_limit() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { stored_bytes_max: 100_000, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[FAT], limits).await;
    world.permits.add_permits(1);
    world.run("fat", json!({}), "fat").await;
    let refusal = world.engine.sessions().create(&bob(), None).await.unwrap_err();
    assert_eq!(refusal.code.name(), "stored_bytes_max");
    assert_eq!(refusal.message, "runs may store 100000 bytes, and do");
}
