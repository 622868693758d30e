//! Tasks that are followed: what they cost the store, and that each follower gets every update
//! once, however late it comes, however slow it is, and whatever is committed meanwhile.

use crate::noted::Noted;
use crate::world::{LOOK, WAIT_MS, World, caller};
use engine::{
    IdempotencyKey, Message, Parts, RefusalKind, RunMetadata, RunRequest, RunSession, RunTarget,
    TaskRun, TaskStream,
};
use futures::future::join_all;
use kernel::ask::Reply;
use kernel::contracts::SessionRef;
use kernel::journal::task::{Chunk, TaskState, TaskUpdate};
use kernel::limits::Limits;
use kernel::values::ids::{ContentHash, PlanId};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ASK: &str = "planId: ask\nsteps: [{id: ask, type: human_in_the_loop, message: go on?, \
    nextStepIdOnInput: end}, {id: end, type: final_response, message: {jsonPath: \
    $.context.human_input}}]";
const ECHO: &str = "planId: echo\nsteps: [{id: end, type: final_response, message: {jsonPath: \
    $.promptInput}}]";
/// Shows one artifact after the other, each in a commit of its own.
const SHOW: &str = "planId: show\nsteps: [{id: each, type: loop_over_items, collectionPath: \
    {jsonPath: $.promptInput.items}, itemAlias: item, loopPlan: [{id: one, type: tool_call, \
    toolId: 'slow::write', arguments: {publish: {type: a2a.artifact, n: {jsonPath: \
    $.context.item}}}}], nextStepId: end}, {id: end, type: final_response, message: ok}]";
const PLANS: &[&str] = &[ASK, ECHO, SHOW];

/// More commits than are at hand for a follower that lags.
const ITEMS: usize = 24;

/// A world whose store notes what it is asked.
async fn open(folder: &Path) -> (World, Arc<Noted>) {
    let mut noted = None;
    let world = World::changed(folder, PLANS, |parts| {
        let store = Noted::over(parts.store.clone());
        noted = Some(store.clone());
        Parts { store, ..parts }
    });
    let world = world.await;
    (world, noted.unwrap())
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

/// Starts a task and waits until it ends or asks.
async fn start(world: &World, request: RunRequest) -> TaskRun {
    world.engine.runs().start_task(&caller(), request, Some(WAIT_MS)).await.unwrap()
}

async fn follow(world: &World, started: impl Into<TaskRun>, message: Option<&str>) -> TaskStream {
    world.engine.runs().follow_task(&caller(), started, message).await.unwrap()
}

async fn woken(stream: &mut TaskStream) {
    let waiting = tokio::time::timeout(Duration::from_millis(WAIT_MS), stream.woken());
    waiting.await.unwrap_or_else(|_| panic!("waited in vain for the task to change"));
}

/// All updates up to the end of the task; the follower takes so long for each.
async fn to_the_end(stream: &mut TaskStream, pause: Duration) -> Vec<TaskUpdate> {
    let mut updates = Vec::new();
    loop {
        match stream.look().await.unwrap() {
            Some(update) => updates.push(update),
            None if stream.task().state.is_over() => return updates,
            None => woken(stream).await,
        }
        tokio::time::sleep(pause).await;
    }
}

/// Why a stream ends that something happened to.
async fn refused(stream: &mut TaskStream) -> Option<RefusalKind> {
    woken(stream).await;
    stream.look().await.err().map(|refusal| refusal.kind())
}

/// The numbers of the artifacts among them.
fn shown(updates: &[TaskUpdate]) -> Vec<u64> {
    let number = |update: &TaskUpdate| match update {
        TaskUpdate::Chunk(Chunk::Published(event)) => event["n"].as_u64(),
        TaskUpdate::Chunk(Chunk::Answer(_)) | TaskUpdate::Status(_) => None,
    };
    updates.iter().filter_map(number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_in_a_new_context_is_shown_without_a_read() {
    let folder = tempfile::tempdir().unwrap();
    let (world, store) = open(folder.path()).await;
    for session in [new_context(), context()] {
        store.forget();
        let started = start(&world, request("echo", json!({"n": 1}), session)).await;
        let run = started.run();
        let stream = follow(&world, started, None).await;
        assert_eq!(stream.task().state, TaskState::Completed);
        assert_eq!((stream.run().row.id, stream.run().row.no), (run, 1));
        assert!(stream.task().has_message("m-1"));
        assert_eq!(
            (store.count("append"), store.count("run"), store.count("events_of")),
            (1, 0, 0)
        );
        store.forget();
        let report = world.engine.runs().task(&caller(), run).await.unwrap();
        assert_eq!(report.task, *stream.task());
        assert_eq!(report.run.row.status, stream.run().row.status);
        let reads = ["run_with_events", "run", "events"].map(|name| store.count(name));
        assert_eq!(reads, [1, 0, 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_many_pages_and_one_of_a_later_run_are_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { page_items_max: 2, ..Limits::default() };
    let world = World::with_limits(folder.path(), PLANS, limits).await;
    let first = start(&world, request("ask", json!({}), context())).await;
    let second = start(&world, request("echo", json!({"n": 2}), context())).await;
    assert!(matches!(read(&world, first).await, TaskState::Asking(_)));
    assert_eq!(read(&world, second).await, TaskState::Completed);
}

/// The state of a task as it is read, and as it is followed.
async fn read(world: &World, started: TaskRun) -> TaskState {
    let report = world.engine.runs().task(&caller(), started.run()).await.unwrap();
    let stream = follow(world, started, None).await;
    assert_eq!((report.run.row.id, &report.task), (stream.run().row.id, stream.task()));
    report.task.state
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_not_waited_for_is_followed_from_its_message_on_without_a_read() {
    let folder = tempfile::tempdir().unwrap();
    let (world, store) = open(folder.path()).await;
    let request = request("ask", json!({}), new_context());
    let started = world.engine.runs().start_task(&caller(), request, None).await.unwrap();
    let run = started.run();
    let mut stream = follow(&world, started, Some("m-1")).await;
    assert_eq!(stream.task().state, TaskState::Submitted, "the place is behind the message");
    while !matches!(stream.task().state, TaskState::Asking(_)) {
        if stream.look().await.unwrap().is_none() {
            woken(&mut stream).await;
        }
    }
    while stream.look().await.unwrap().is_some() {}
    assert_eq!((store.count("run"), store.count("events_of")), (0, 0));
    assert_eq!(world.engine.runs().task(&caller(), run).await.unwrap().task, *stream.task());
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_a_message_came_before_is_asked_first_only_where_something_is_called() {
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
    assert_eq!(read(&world, again).await, TaskState::Completed);
    store.forget();
    let calling = start(&world, sent("show", "m-2", "ctx_3")).await;
    assert_eq!((calling.is_replayed(), store.count("once")), (false, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn later_runs_of_a_context_and_repeats_are_read() {
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
        let stream = follow(&world, started, None).await;
        assert_eq!((stream.run().row.id, stream.run().row.no), (run, no));
        assert_eq!(stream.task().state, TaskState::Completed);
        let [Chunk::Answer(answer)] = stream.task().chunks.as_slice() else {
            panic!("{:?}", stream.task().chunks)
        };
        assert_eq!(answer.to_value(), json!({"n": no}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_event_on_many_streams_is_read_by_none_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let (world, store) = open(folder.path()).await;
    let run = start(&world, request("ask", json!({}), context())).await.run();
    let asking = world.engine.runs().report(&caller(), run).await.unwrap();
    let mut streams = Vec::new();
    for _ in 0..50 {
        streams.push(follow(&world, run, None).await);
    }
    store.forget();
    let following = streams.iter_mut().map(|stream| to_the_end(stream, Duration::ZERO));
    let reply = Reply::Clarify { answer: Some(json!("Ann")) };
    let ask = asking.asks[0].row.ask.id;
    world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    let told = join_all(following).await;
    assert_eq!(store.count("events_of"), 0);
    assert!(told.iter().all(|updates| *updates == told[0]), "{told:?}");
    assert_eq!(told[0].len(), 3, "working, the answer, completed: {:?}", told[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_follower_gets_every_update_once_while_commits_come() {
    let folder = tempfile::tempdir().unwrap();
    let (world, store) = open(folder.path()).await;
    let items: Vec<usize> = (0..ITEMS).collect();
    let show = request("show", json!({"items": items}), context());
    let run = world.engine.runs().start_task(&caller(), show, None).await.unwrap().run();
    let mut lagging = follow(&world, run, Some("m-1")).await;
    let mut followers = Vec::new();
    for n in 0..ITEMS {
        world.until("the next call to be sent", |world| world.sent() > n).await;
        for pause in [Duration::ZERO, LOOK] {
            let engine = world.engine.clone();
            followers.push(tokio::spawn(async move {
                let begun = engine.runs().replay_task(&caller(), run).await;
                to_the_end(&mut begun.unwrap(), pause).await
            }));
        }
        world.permits.add_permits(1);
    }
    world.until_status(run, "completed").await;
    let mut late = world.engine.runs().replay_task(&caller(), run).await.unwrap();
    let all = to_the_end(&mut late, Duration::ZERO).await;
    assert_eq!(shown(&all), (0..ITEMS as u64).collect::<Vec<_>>());
    for (number, follower) in followers.into_iter().enumerate() {
        let told = tokio::time::timeout(Duration::from_millis(WAIT_MS), follower).await;
        let told = told.unwrap_or_else(|_| panic!("waited in vain for follower {number}"));
        assert_eq!(told.unwrap(), all, "follower {number}");
    }
    // One that is far behind reads, and takes nothing for new that it has.
    store.forget();
    assert_eq!(to_the_end(&mut lagging, Duration::ZERO).await, all);
    assert!(store.count("events_of") > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_session_was_removed_ends_also_where_another_has_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _) = open(folder.path()).await;
    let run = start(&world, request("echo", json!({}), context())).await.run();
    let mut first = follow(&world, run, None).await;
    let mut second = follow(&world, run, None).await;
    world.at_rest().await;
    let session = SessionRef::Id(first.run().session);
    world.engine.sessions().remove_unsent(&caller(), &session).await.unwrap();
    assert_eq!(refused(&mut first).await, Some(RefusalKind::NotFound));
    start(&world, request("echo", json!({}), context())).await;
    assert_eq!(refused(&mut second).await, Some(RefusalKind::NotFound));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_gets_nothing_of_a_longer_journal_that_another_session_has_under_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _) = open(folder.path()).await;
    let run = start(&world, request("echo", json!({}), context())).await.run();
    let mut stream = follow(&world, run, None).await;
    world.at_rest().await;
    let session = SessionRef::Id(stream.run().session);
    world.engine.sessions().remove_unsent(&caller(), &session).await.unwrap();
    // Frames are numbered by session: those of this run have the numbers of the other's.
    let other = start(&world, request("ask", json!({}), context())).await.run();
    let asking = world.engine.runs().report(&caller(), other).await.unwrap();
    let reply = Reply::Clarify { answer: Some(json!("Ann")) };
    let ask = asking.asks[0].row.ask.id;
    world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(refused(&mut stream).await, Some(RefusalKind::NotFound));
}
