//! A realm that is removed while something is under way in it: who waits is refused, nothing new
//! begins there, and other realms are not affected.

use crate::world::{WAIT_MS, World, caller, files};
use engine::{RefusalCode, RunSession, RunTarget};
use kernel::tool::call::Caller;
use kernel::values::ids::RealmId;
use serde_json::json;
use std::time::Duration;

const READ: &str = "planId: read\nsteps: [{id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {n: 1}, saveAs: out, nextStepId: end}, {id: end, type: final_response, message: ok}]";

/// The same subject in another realm.
fn stranger() -> Caller {
    Caller { realm: RealmId::from("acme"), ..caller() }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_of_a_removed_realm_are_refused_and_others_continue() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[READ]).await;
    let here = caller();
    let there = stranger();
    let catalog = world.engine.catalog();
    catalog.load_plans(&there.realm, files(&[READ])).unwrap();
    let runs = world.engine.runs();
    let request = || world.request("read", json!({}), "s");
    let run = runs.start(&here, request(), 0).await.unwrap().run.id;
    let waiting = {
        let engine = world.engine.clone();
        let there = there.clone();
        let request = request();
        tokio::spawn(async move { engine.runs().start(&there, request, WAIT_MS).await })
    };
    world.until("both calls", |world| world.sent() == 2).await;

    world.engine.admin().close_realm(&there.realm);
    let refused = tokio::time::timeout(Duration::from_millis(WAIT_MS), waiting).await;
    let refused = refused.unwrap_or_else(|_| panic!("who waits was not refused"));
    let refused = refused.unwrap().unwrap_err();
    assert_eq!(refused.code, RefusalCode::RealmRemoved);
    let inline = json!({"planId": "own", "steps": [
        {"id": "end", "type": "final_response", "message": "ok"},
    ]});
    let again = engine::RunRequest {
        target: RunTarget::Inline(inline),
        session: RunSession::New,
        ..request()
    };
    let again = runs.start(&there, again, WAIT_MS).await.unwrap_err();
    assert_eq!(again.code, RefusalCode::RealmRemoved);
    let gone = runs.start(&there, request(), WAIT_MS).await.unwrap_err();
    assert_eq!(gone.code, RefusalCode::NotFound, "its plans are forgotten");

    world.permits.add_permits(1);
    world.until_status(run, "completed").await;
    world.at_rest().await;
}
