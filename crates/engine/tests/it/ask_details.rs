//! What an ask says of its run as that was pinned: what follows each answer, and what its calls do.

use crate::ASK;
use crate::recording_store::RecordingStore;
use crate::world::{World, caller};
use engine::Parts;
use kernel::ask::Ask;
use kernel::ask::context::{ApprovalReason, NextStep, NextSteps};
use kernel::contracts::{PageRequest, SessionAsk};
use kernel::tool::call::Reach;
use serde_json::{Value, json};

/// An approval with a step for a no; one whose answers both end the run; one in a loop.
const PAY: &str = "planId: pay\nsteps: [\
    {id: pay, type: tool_call, toolId: 'slow::write', arguments: {n: 1}, approve: true, \
    onRejected: {nextStepId: told}, nextStepId: done}, \
    {id: told, type: final_response, message: rejected}, {id: done, type: final_response, message: ok}]";
const LAST: &str = "planId: last\nsteps: [{id: pay, type: tool_call, toolId: 'slow::write', \
    arguments: {n: 1}, approve: true}]";
const EACH: &str = "planId: each\nsteps: [{id: each, type: loop_over_items, collectionPath: \
    {jsonPath: $.promptInput.items}, itemAlias: item, loopPlan: [{id: pay, type: tool_call, \
    toolId: 'slow::write', arguments: {n: 1}, approve: true}], nextStepId: end}, \
    {id: end, type: final_response, message: ok}]";
const WANTS: &str = "planId: wants\nsteps: [{id: call, type: tool_call, toolId: 'slow::write', \
    arguments: {wants: true}, nextStepId: end}, {id: end, type: final_response, message: ok}]";
const FAILS: &str = "planId: fails\nsteps: [{id: call, type: tool_call, toolId: 'slow::write', \
    arguments: {fail: true}, nextStepId: end}, {id: end, type: final_response, message: ok}]";

fn step(id: &str) -> Option<NextStep> {
    Some(NextStep::Step(id.into()))
}

async fn asked(world: &World, plan: &str, input: Value) -> Ask {
    let report = world.run(plan, input, plan).await;
    assert_eq!(report.asks.len(), 1, "{plan}: {:?}", report.run);
    report.asks[0].row.ask.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ask_shows_the_next_step_of_each_answer() {
    let folder = tempfile::tempdir().unwrap();
    let plans = [ASK, PAY, LAST, EACH, WANTS, FAILS];
    let world = World::open(folder.path(), &plans).await;
    world.permits.add_permits(9);
    let ends = Some(NextStep::Ends);
    for (plan, input, yes, no) in [
        ("ask", json!({}), step("end"), ends.clone()),
        ("pay", json!({}), step("done"), step("told")),
        ("last", json!({}), ends.clone(), ends.clone()),
        // The end of an iteration leads to its loop; a no ends the whole run.
        ("each", json!({"items": [1]}), step("each"), ends),
        // The tool acts upon a no itself, and a failed step has other answers.
        ("wants", json!({}), step("end"), None),
        ("fails", json!({}), None, None),
    ] {
        let ask = asked(&world, plan, input).await;
        assert_eq!(ask.next, NextSteps { yes, no }, "{plan}: {ask:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ask_shows_pinned_specs_of_tools_that_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[PAY]).await;
    let ask = asked(&world, "pay", json!({})).await;
    let [about] = ask.about.as_slice() else { panic!("{ask:?}") };
    assert_eq!(about.why, Some(ApprovalReason::Plan));
    let pins = about.pins.clone().unwrap();
    assert_eq!((pins.reach, pins.idempotent), (Reach::Writes, false));
    world.crash().await;

    let world = World::open(folder.path(), &[]).await;
    let asks = world.engine.asks();
    let again = asks.get(&caller(), ask.id).await.unwrap();
    assert_eq!((&again.row.ask.next, &again.row.ask.about), (&ask.next, &ask.about));
    let pinned = asks.pinned(&caller(), &[&again]).await.unwrap();
    assert_eq!(pinned.plan(ask.run).map(|plan| plan.as_str()), Some("pay"));
    let spec = pinned.spec(&pins.spec).unwrap();
    assert_eq!((spec.name.as_str(), spec.hash()), ("slow::write", pins.spec));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_and_specs_of_many_asks_are_read_in_one_query() {
    let folder = tempfile::tempdir().unwrap();
    let plans = [PAY, ASK];
    let mut recorder = None;
    let world = World::changed(folder.path(), &plans, |parts| {
        let store = RecordingStore::over(parts.store.clone());
        recorder = Some(store.clone());
        Parts { store, ..parts }
    });
    let world = world.await;
    let recorder = recorder.unwrap();
    let pay = asked(&world, "pay", json!({})).await;
    let ask = asked(&world, "ask", json!({})).await;
    let page = PageRequest { cursor: None, limit: 10 };
    let listed = world.engine.asks().list(&caller(), &Default::default(), &page).await.unwrap();
    let all: Vec<&SessionAsk> = listed.items.iter().collect();
    let reads = || ["run", "run_plans", "tool_specs"].map(|name| recorder.count(name));
    recorder.forget();
    let pinned = world.engine.asks().pinned(&caller(), &all).await.unwrap();
    assert_eq!(reads(), [0, 1, 1]);
    let plan = |ask: &Ask| pinned.plan(ask.run).map(|plan| plan.as_str().to_owned());
    assert_eq!((plan(&pay), plan(&ask)), (Some("pay".to_owned()), Some("ask".to_owned())));
    let [about] = pay.about.as_slice() else { panic!("{pay:?}") };
    assert!(pinned.spec(&about.pins.as_ref().unwrap().spec).is_some());
    recorder.forget();
    world.engine.asks().pinned(&caller(), &[]).await.unwrap();
    assert_eq!(reads(), [0, 0, 0], "nothing is shown");
}
