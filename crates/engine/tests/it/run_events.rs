//! Runs whose events are followed: what that costs the store, and that each follower gets every
//! event once, however late it comes, however slow it is, and whatever is committed meanwhile.

use crate::recording_store::RecordingStore;
use crate::world::{LOOK, WAIT_MS, World, caller};
use engine::{
    IdempotencyKey, Message, Parts, RefusalKind, RunEvents, RunMetadata, RunRequest, RunSession,
    RunTarget, StartedRun,
};
use futures::future::join_all;
use kernel::ask::Reply;
use kernel::contracts::{SessionRef, SessionRun};
use kernel::event::{Event, Fact, Outcome};
use kernel::limits::Limits;
use kernel::values::ids::{ContentHash, PlanId, RunId};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ASK: &str = "planId: ask\nsteps: [{id: ask, type: human_in_the_loop, message: go on?, \
    nextStepIdOnInput: end}, {id: end, type: final_response, message: {jsonPath: \
    $.context.human_input}}]";
const ECHO: &str = "planId: echo\nsteps: [{id: end, type: final_response, message: {jsonPath: \
    $.promptInput}}]";
/// Publishes one event after the other, each in a commit of its own.
const SHOW: &str = "planId: show\nsteps: [{id: each, type: loop_over_items, collectionPath: \
    {jsonPath: $.promptInput.items}, itemAlias: item, loopPlan: [{id: one, type: tool_call, \
    toolId: 'slow::write', arguments: {publish: {type: part.made, n: {jsonPath: \
    $.context.item}}}}], nextStepId: end}, {id: end, type: final_response, message: ok}]";
const PLANS: &[&str] = &[ASK, ECHO, SHOW];

/// More commits than are at hand for a follower that lags.
const ITEMS: usize = 24;

/// A world whose store notes what it is asked.
async fn open(folder: &Path) -> (World, Arc<RecordingStore>) {
    let mut recording = None;
    let world = World::changed(folder, PLANS, |parts| {
        let store = RecordingStore::over(parts.store.clone());
        recording = Some(store.clone());
        Parts { store, ..parts }
    });
    let world = world.await;
    (world, recording.unwrap())
}

fn request(plan: &str, input: Value, session: RunSession) -> RunRequest {
    let message = Message {
        id: "m-1".into(),
        body: json!({"messageId": "m-1"}),
        files: Vec::new(),
        misfit: None,
    };
    RunRequest {
        target: RunTarget::Plan(PlanId::from(plan)),
        input,
        session,
        once: None,
        about: RunMetadata { message: Some(message), ..RunMetadata::default() },
    }
}

fn new_context() -> RunSession {
    RunSession::NewContext("ctx_1".to_owned())
}

fn context() -> RunSession {
    RunSession::Context("c".to_owned())
}

/// Starts a run and waits until it ends or asks.
async fn start(world: &World, request: RunRequest) -> StartedRun {
    world.engine.runs().start_followed(&caller(), request, Some(WAIT_MS)).await.unwrap()
}

async fn follow(world: &World, started: impl Into<StartedRun>) -> RunEvents {
    world.engine.runs().follow_events(&caller(), started).await.unwrap()
}

/// All events that are there without waiting.
async fn recorded(events: &mut RunEvents) -> Vec<Arc<Event>> {
    let mut recorded = Vec::new();
    while let Some(event) = events.try_next().await.unwrap() {
        recorded.push(event);
    }
    recorded
}

/// The run and all its events, as they are read at once.
async fn read(world: &World, run: RunId) -> (SessionRun, Vec<Event>) {
    let mut events = Vec::new();
    let mut keep = |event: &Event| events.push(event.clone());
    let found = world.engine.runs().replay(&caller(), run, &mut keep).await.unwrap();
    (found, events)
}

fn are_same(followed: &[Arc<Event>], read: &[Event]) -> bool {
    followed.iter().map(|event| &**event).eq(read)
}

async fn woken(events: &mut RunEvents) {
    let waiting = tokio::time::timeout(Duration::from_millis(WAIT_MS), events.wait());
    waiting.await.unwrap_or_else(|_| panic!("waited in vain for the run to change"));
}

/// Follows on until such an event came; the follower takes so long for each.
async fn until(
    events: &mut RunEvents,
    is_last: fn(&Fact) -> bool,
    pause: Duration,
) -> Vec<Arc<Event>> {
    let mut followed: Vec<Arc<Event>> = Vec::new();
    while !followed.last().is_some_and(|event| is_last(&event.fact)) {
        match events.try_next().await.unwrap() {
            Some(event) => followed.push(event),
            None => woken(events).await,
        }
        tokio::time::sleep(pause).await;
    }
    followed
}

/// All events up to the end of the run.
async fn to_the_end(events: &mut RunEvents, pause: Duration) -> Vec<Arc<Event>> {
    until(events, |fact| matches!(fact, Fact::RunEnded { .. }), pause).await
}

/// The answer that a run ended with, if it did.
fn answer(events: &[Arc<Event>]) -> Option<Value> {
    events.iter().find_map(|event| match &event.fact {
        Fact::RunEnded { outcome: Outcome::Completed { answer }, .. } => Some(answer.to_value()),
        _ => None,
    })
}

/// Why a stream ends that something happened to.
async fn refused(events: &mut RunEvents) -> Option<RefusalKind> {
    woken(events).await;
    events.try_next().await.err().map(|refusal| refusal.kind())
}

/// The numbers of what they published.
fn published(events: &[Arc<Event>]) -> Vec<u64> {
    let numbers = |event: &Arc<Event>| -> Vec<u64> {
        match &event.fact {
            Fact::CallFinished { published, .. } => {
                published.iter().filter_map(|published| published.event["n"].as_u64()).collect()
            }
            _ => Vec::new(),
        }
    };
    events.iter().flat_map(numbers).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_a_new_context_is_followed_without_a_read() {
    let folder = tempfile::tempdir().unwrap();
    let (world, store) = open(folder.path()).await;
    for session in [new_context(), context()] {
        store.forget();
        let started = start(&world, request("echo", json!({"n": 1}), session)).await;
        let run = started.run();
        let mut events = follow(&world, started).await;
        let followed = recorded(&mut events).await;
        assert_eq!(answer(&followed), Some(json!({"n": 1})));
        assert_eq!((events.run().row.id, events.run().row.no), (run, 1));
        let has_message = followed.iter().any(|event| match &event.fact {
            Fact::MessageReceived(received) => &*received.id == "m-1",
            _ => false,
        });
        assert!(has_message, "{followed:?}");
        assert_eq!(
            (store.count("append"), store.count("run"), store.count("events_of")),
            (1, 0, 0)
        );
        store.forget();
        let (found, all) = read(&world, run).await;
        assert!(are_same(&followed, &all), "{followed:?} is not {all:?}");
        assert_eq!(found.row.status, events.run().row.status);
        let reads = ["run_with_events", "run", "events"].map(|name| store.count(name));
        assert_eq!(reads, [1, 0, 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_over_several_pages_are_read_completely() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { page_items_max: 2, ..Limits::default() };
    let world = World::with_limits(folder.path(), PLANS, limits).await;
    let first = start(&world, request("ask", json!({}), context())).await;
    let second = start(&world, request("echo", json!({"n": 2}), context())).await;
    let asking = whole(&world, first).await;
    let asks = asking.iter().filter(|event| matches!(&event.fact, Fact::AskOpened(_))).count();
    assert_eq!((asks, answer(&asking)), (1, None));
    assert_eq!(answer(&whole(&world, second).await), Some(json!({"n": 2})));
}

/// The events of a run, which are the same as they are read and as they are followed.
async fn whole(world: &World, started: StartedRun) -> Vec<Arc<Event>> {
    let (found, all) = read(world, started.run()).await;
    let mut events = follow(world, started).await;
    let followed = recorded(&mut events).await;
    assert_eq!(found.row.id, events.run().row.id);
    assert!(are_same(&followed, &all), "{followed:?} is not {all:?}");
    followed
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unawaited_run_is_followed_from_its_start_without_a_read() {
    let folder = tempfile::tempdir().unwrap();
    let (world, store) = open(folder.path()).await;
    let request = request("ask", json!({}), new_context());
    let started = world.engine.runs().start_followed(&caller(), request, None).await.unwrap();
    let run = started.run();
    let mut events = follow(&world, started).await;
    let is_asking = |fact: &Fact| matches!(fact, Fact::AskOpened(_));
    let mut followed = until(&mut events, is_asking, Duration::ZERO).await;
    assert!(matches!(&followed[0].fact, Fact::RunStarted { .. }), "{followed:?}");
    followed.extend(recorded(&mut events).await);
    assert_eq!((store.count("run"), store.count("events_of")), (0, 0));
    let (_, all) = read(&world, run).await;
    assert!(are_same(&followed, &all), "{followed:?} is not {all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_is_looked_up_first_only_if_the_plan_makes_calls() {
    let folder = tempfile::tempdir().unwrap();
    let (world, store) = open(folder.path()).await;
    let sent = |plan: &str, key: &str, name: &str| {
        let once =
            IdempotencyKey::new("message".to_owned(), key.to_owned(), ContentHash::of(b"body"));
        let session = RunSession::NewContext(name.to_owned());
        RunRequest { once: Some(once), ..request(plan, json!({"items": []}), session) }
    };
    let first = start(&world, sent("echo", "m-1", "ctx_1")).await;
    assert_eq!((first.is_replayed(), store.count("once")), (false, 0));
    let again = start(&world, sent("echo", "m-1", "ctx_2")).await;
    assert_eq!((again.run(), again.is_replayed()), (first.run(), true));
    assert_eq!(answer(&whole(&world, again).await), Some(json!({"items": []})));
    store.forget();
    let calling = start(&world, sent("show", "m-2", "ctx_3")).await;
    assert_eq!((calling.is_replayed(), store.count("once")), (false, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn later_runs_of_a_context_and_repeats_need_a_read() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _) = open(folder.path()).await;
    let first = start(&world, request("echo", json!({"n": 1}), context())).await;
    let once =
        IdempotencyKey::new("message".to_owned(), "m-1".to_owned(), ContentHash::of(b"body"));
    let second = RunRequest { once: Some(once), ..request("echo", json!({"n": 2}), context()) };
    let [second, again] = [start(&world, second.clone()).await, start(&world, second).await];
    assert_eq!(second.run(), again.run());
    for (started, no) in [(first, 1), (second, 2), (again, 2)] {
        let run = started.run();
        let mut events = follow(&world, started).await;
        assert_eq!((events.run().row.id, events.run().row.no), (run, no));
        assert_eq!(answer(&recorded(&mut events).await), Some(json!({"n": no})));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_on_many_streams_needs_no_read() {
    let folder = tempfile::tempdir().unwrap();
    let (world, store) = open(folder.path()).await;
    let run = start(&world, request("ask", json!({}), context())).await.run();
    let asking = world.engine.runs().report(&caller(), run).await.unwrap();
    let mut streams = Vec::new();
    for _ in 0..50 {
        let mut events = follow(&world, run).await;
        recorded(&mut events).await;
        streams.push(events);
    }
    store.forget();
    let following = streams.iter_mut().map(|events| to_the_end(events, Duration::ZERO));
    let reply = Reply::Clarify { answer: Some(json!("Ann")) };
    let ask = asking.asks[0].row.ask.id;
    world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    let told = join_all(following).await;
    assert_eq!(store.count("events_of"), 0);
    assert!(told.iter().all(|events| *events == told[0]), "{told:?}");
    let decisions =
        told[0].iter().filter(|event| matches!(&event.fact, Fact::AskDecided { .. })).count();
    assert_eq!((decisions, answer(&told[0])), (1, Some(json!("Ann"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_follower_gets_every_event_once_during_commits() {
    let folder = tempfile::tempdir().unwrap();
    let (world, store) = open(folder.path()).await;
    let items: Vec<usize> = (0..ITEMS).collect();
    let show = request("show", json!({"items": items}), context());
    let run = world.engine.runs().start_followed(&caller(), show, None).await.unwrap().run();
    let mut lagging = follow(&world, run).await;
    let mut late = recorded(&mut lagging).await;
    let mut followers = Vec::new();
    for n in 0..ITEMS {
        world.until("the next call to be sent", |world| world.sent() > n).await;
        for pause in [Duration::ZERO, LOOK] {
            let engine = world.engine.clone();
            followers.push(tokio::spawn(async move {
                let followed = engine.runs().follow_events(&caller(), run).await;
                to_the_end(&mut followed.unwrap(), pause).await
            }));
        }
        world.permits.add_permits(1);
    }
    world.until_status(run, "completed").await;
    let all = to_the_end(&mut follow(&world, run).await, Duration::ZERO).await;
    assert_eq!(published(&all), (0..ITEMS as u64).collect::<Vec<_>>());
    for (number, follower) in followers.into_iter().enumerate() {
        let told = tokio::time::timeout(Duration::from_millis(WAIT_MS), follower).await;
        let told = told.unwrap_or_else(|_| panic!("waited in vain for follower {number}"));
        assert_eq!(told.unwrap(), all, "follower {number}");
    }
    // One that is far behind reads, and takes nothing for new that it has.
    store.forget();
    late.extend(to_the_end(&mut lagging, Duration::ZERO).await);
    assert_eq!(late, all);
    assert!(store.count("events_of") > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_a_removed_session_ends_even_if_its_key_is_reused() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _) = open(folder.path()).await;
    let run = start(&world, request("echo", json!({}), context())).await.run();
    let mut first = follow(&world, run).await;
    let mut second = follow(&world, run).await;
    recorded(&mut first).await;
    recorded(&mut second).await;
    world.at_rest().await;
    let session = SessionRef::Id(first.run().session);
    world.engine.sessions().remove_unsent(&caller(), &session).await.unwrap();
    assert_eq!(refused(&mut first).await, Some(RefusalKind::NotFound));
    start(&world, request("echo", json!({}), context())).await;
    assert_eq!(refused(&mut second).await, Some(RefusalKind::NotFound));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_gets_nothing_of_a_new_longer_journal_under_the_same_key() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _) = open(folder.path()).await;
    let run = start(&world, request("echo", json!({}), context())).await.run();
    let mut events = follow(&world, run).await;
    recorded(&mut events).await;
    world.at_rest().await;
    let session = SessionRef::Id(events.run().session);
    world.engine.sessions().remove_unsent(&caller(), &session).await.unwrap();
    // Frames are numbered by session: those of this run have the numbers of the other's.
    let other = start(&world, request("ask", json!({}), context())).await.run();
    let asking = world.engine.runs().report(&caller(), other).await.unwrap();
    let reply = Reply::Clarify { answer: Some(json!("Ann")) };
    let ask = asking.asks[0].row.ask.id;
    world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(refused(&mut events).await, Some(RefusalKind::NotFound));
}
