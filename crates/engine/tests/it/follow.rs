//! Runs and sessions that are followed: late, slowly, again after a cut or a restart, while they
//! wait, while turns are made, and until they are removed.

use crate::model::{Says, Scripted, calls, text};
use crate::world::{WAIT_MS, World, caller};
use engine::{Parts, RefusalCode, RunStream, RunUpdate, SessionUpdate, ThreadMessage, TurnUpdate};
use futures::future::join;
use kernel::ask::Reply;
use kernel::contracts::policy::{Decision, Request};
use kernel::contracts::{Policy, SessionRef};
use kernel::conversation::llm::Delta;
use kernel::limits::Limits;
use kernel::values::caller::Act;
use kernel::values::ids::RunId;
use serde_json::{Value, json};
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tokio::sync::Semaphore;

const READ: &str = "planId: read\nsteps: [{id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {n: 1}, saveAs: out, nextStepId: end}, {id: end, type: final_response, message: ok}]";
const ASK: &str = "planId: ask\nsteps: [{id: ask, type: human_in_the_loop, message: go on?, \
    nextStepIdOnInput: end}, {id: end, type: final_response, message: '{{ context.human_input }}'}]";
const LOOP: &str = "planId: loop\nsteps: [{id: each, type: loop_over_items, collectionPath: \
    {jsonPath: $.promptInput.items}, itemAlias: item, loopPlan: [{id: one, type: tool_call, \
    toolId: 'slow::read', arguments: {item: {jsonPath: $.context.item}}}], nextStepId: end}, \
    {id: end, type: final_response, message: ok}]";
const HELPER: &str = "refName: helper\nllmConfigRef: fast\nenabledTools: []\n";

/// Events with their sequences.
type Events = Vec<(u64, String)>;

/// Pages are short, so that a few events fill many.
fn short_pages() -> Limits {
    Limits { page_items_max: 2, ..Limits::default() }
}

fn key(name: &str) -> SessionRef {
    SessionRef::Key { key: name.into(), space: None }
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_millis(WAIT_MS), work).await.unwrap()
}

async fn follow(world: &World, run: RunId, after: Option<u64>) -> RunStream {
    world.engine.runs().follow(&caller(), run, after).await.unwrap()
}

async fn refused(world: &World, run: RunId, after: Option<u64>) -> RefusalCode {
    world.engine.runs().follow(&caller(), run, after).await.err().unwrap().code
}

async fn next(stream: &mut RunStream) -> Option<RunUpdate> {
    within(stream.next()).await.unwrap()
}

/// The events until the run rests or ends, and how it stands then.
async fn told(stream: &mut RunStream) -> (Events, &'static str) {
    let mut events = Vec::new();
    loop {
        match next(stream).await.unwrap() {
            RunUpdate::Event { seq, body } => events.push((seq, body)),
            RunUpdate::Rest(report) | RunUpdate::End(report) => {
                return (events, report.run.status.name());
            }
            RunUpdate::Snapshot(_) | RunUpdate::Delta(_) => {}
        }
    }
}

/// The journal from the start of a run on.
async fn journal(world: &World, session: &str, run: RunId) -> Events {
    let events = world.engine.sessions().events(&caller(), &key(session), 0, 10_000).await.unwrap();
    let run = run.to_string();
    let is_start = |body: &str| body.contains("\"run.started\"") && body.contains(&run);
    events.into_iter().skip_while(|(_, body)| !is_start(body)).collect()
}

/// An update about a turn, in short: which attempt at which turn, and what.
fn of_a_turn(update: RunUpdate) -> Option<String> {
    match update {
        RunUpdate::Event { body, .. } => {
            let event: Value = serde_json::from_str(&body).unwrap();
            let kind = event["type"].as_str().unwrap();
            let data = &event["data"];
            let is_of_turn = kind.starts_with("turn.");
            is_of_turn.then(|| format!("{}.{} {kind}", data["turn"], data["attempt"]))
        }
        RunUpdate::Delta(TurnUpdate::Delta { at, delta: Delta::Text(word) }) => {
            Some(format!("{}.{} says {word}", at.turn, at.attempt))
        }
        RunUpdate::Delta(TurnUpdate::Restarted(at)) => {
            Some(format!("{}.{} restarts", at.turn, at.attempt))
        }
        RunUpdate::Delta(other) => panic!("{other:?}"),
        RunUpdate::Snapshot(_) | RunUpdate::Rest(_) | RunUpdate::End(_) => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_follower_gets_the_same_events_as_an_early_one() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with_limits(folder.path(), &[READ], short_pages()).await;
    world.permits.add_permits(1);
    world.run("read", json!({}), "s").await;
    let run = world.start("read", json!({}), "s").await.run.id;
    let mut early = follow(&world, run, None).await;
    let Some(RunUpdate::Snapshot(report)) = next(&mut early).await else { panic!("no snapshot") };
    assert_eq!((report.run.id, report.run.no), (run, 2));
    world.permits.add_permits(1);
    let (events, status) = told(&mut early).await;
    assert_eq!(status, "completed");
    assert_eq!(next(&mut early).await, None);
    assert_eq!(events, journal(&world, "s", run).await);

    // What the session does after it is of another run.
    world.permits.add_permits(1);
    world.run("read", json!({}), "s").await;
    let mut late = follow(&world, run, None).await;
    assert_eq!(told(&mut late).await, (events, "completed"));
    assert_eq!(next(&mut late).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_can_resume_after_any_event() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with_limits(folder.path(), &[READ], short_pages()).await;
    world.permits.add_permits(3);
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(world.run("read", json!({}), "s").await.run.id);
    }
    let (all, _) = told(&mut follow(&world, runs[1], None).await).await;
    assert!(all.len() > 3, "{all:?}");
    for (index, (seq, _)) in all.iter().enumerate() {
        let mut again = follow(&world, runs[1], Some(*seq)).await;
        assert_eq!(told(&mut again).await, (all[index + 1..].to_vec(), "completed"), "{seq}");
    }
    // Places in the runs before and after it, and one that is not there yet.
    for (after, expected) in [(0, &all[..]), (all[0].0 - 1, &all[..]), (1_000_000, &all[..0])] {
        let mut again = follow(&world, runs[1], Some(after)).await;
        assert_eq!(told(&mut again).await.0, expected, "{after}");
    }
    let last = all[all.len() - 1].0;
    let (events, status) = told(&mut follow(&world, runs[1], Some(last + 1)).await).await;
    assert_eq!((events, status), (Vec::new(), "completed"), "of the run after it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_misses_no_event() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with_limits(folder.path(), &[LOOP], short_pages()).await;
    let items: Vec<usize> = (0..50).collect();
    let run = world.start("loop", json!({"items": items}), "s").await.run.id;
    let mut slow = follow(&world, run, None).await;
    world.permits.add_permits(50);
    world.until_status(run, "completed").await;
    let (events, status) = told(&mut slow).await;
    assert!(events.len() >= 100, "{}", events.len());
    assert_eq!((events, status), (journal(&world, "s", run).await, "completed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_followers_see_the_same_in_the_same_order() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with_limits(folder.path(), &[LOOP], short_pages()).await;
    let run = world.start("loop", json!({"items": [1, 2, 3, 4, 5]}), "s").await.run.id;
    let mut one = follow(&world, run, None).await;
    let mut other = follow(&world, run, None).await;
    world.permits.add_permits(5);
    let (one, other) = join(told(&mut one), told(&mut other)).await;
    assert_eq!(one, other);
    assert_eq!(one.0, journal(&world, "s", run).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_a_waiting_run_continues_after_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[ASK]).await;
    let run = world.start("ask", json!({}), "s").await.run.id;
    let mut stream = follow(&world, run, None).await;
    let mut events = Vec::new();
    let ask = loop {
        match next(&mut stream).await.unwrap() {
            RunUpdate::Event { seq, body } => events.push((seq, body)),
            RunUpdate::Rest(report) => break report.asks[0].row.ask.id,
            RunUpdate::Snapshot(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(stream.try_next().await.unwrap(), None, "that it rests is told once");
    let reply = Reply::Clarify { answer: Some(json!("yes")) };
    world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    let (more, status) = told(&mut stream).await;
    events.extend(more);
    assert_eq!((events, status), (journal(&world, "s", run).await, "completed"));
    assert_eq!(next(&mut stream).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_can_be_followed_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = World::open(folder.path(), &[READ]).await;
    let run = first.start("read", json!({}), "s").await.run.id;
    first.until("the read to be sent", |world| world.sent() == 1).await;
    let mut stream = follow(&first, run, None).await;
    let mut events = Vec::new();
    while let Some(update) = stream.try_next().await.unwrap() {
        if let RunUpdate::Event { seq, body } = update {
            events.push((seq, body));
        }
    }
    drop(stream);
    first.crash().await;

    let world = World::open(folder.path(), &[READ]).await;
    let after = events.last().map(|(seq, _)| *seq);
    assert!(after.is_some(), "nothing was told before the crash");
    let mut stream = follow(&world, run, after).await;
    world.permits.add_permits(1);
    world.engine.admin().recover_once().await;
    let (more, status) = told(&mut stream).await;
    events.extend(more);
    assert_eq!((events, status), (journal(&world, "s", run).await, "completed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_removed_ends_its_streams() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with_limits(folder.path(), &[READ], short_pages()).await;
    world.permits.add_permits(1);
    let run = world.run("read", json!({}), "s").await.run.id;
    let mut stream = follow(&world, run, None).await;
    world.engine.sessions().remove(&caller(), &key("s")).await.unwrap();
    let mut updates = 0;
    let refusal = loop {
        match within(stream.next()).await {
            Ok(Some(RunUpdate::End(_)) | None) => panic!("it came to its end"),
            Ok(Some(_)) => updates += 1,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(
        (refusal.code.name(), updates),
        ("not_found", 2),
        "a snapshot, and the page that was read"
    );
    assert_eq!(refused(&world, run, None).await.name(), "not_found");

    world.engine.sessions().create(&caller(), Some("empty".to_owned())).await.unwrap();
    let sessions = world.engine.sessions();
    let (_, mut events) = sessions.follow(&caller(), &key("empty"), 0).await.unwrap();
    while let SessionUpdate::Event { .. } = events.try_next().await.unwrap() {}
    world.engine.sessions().remove(&caller(), &key("empty")).await.unwrap();
    within(events.wait()).await;
    assert_eq!(events.try_next().await.unwrap_err().code.name(), "not_found");
}

/// Allows everything, and stops once, at one of the reads that it is asked about, until the test
/// lets it continue: what happens meanwhile happens between two looks at the store.
struct Stopping {
    /// How many reads are asked about until then; 0 where it does not stop.
    reads: AtomicU32,
    reached: Semaphore,
    resumed: Mutex<mpsc::Receiver<()>>,
}

impl Policy for Stopping {
    fn decide(&self, asked: &Request<'_>) -> Decision {
        let counted = |reads: u32| reads.checked_sub(1);
        let order = Ordering::SeqCst;
        if asked.act == Act::Read && self.reads.fetch_update(order, order, counted) == Ok(1) {
            self.reached.add_permits(1);
            let resumed = self.resumed.lock().unwrap();
            let limit = Duration::from_millis(WAIT_MS);
            let waited = tokio::task::block_in_place(|| resumed.recv_timeout(limit));
            assert!(waited.is_ok(), "the test did not let the follower continue");
        }
        Decision::allow()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_follower_gets_no_events_of_a_new_session_under_the_same_key() {
    let folder = tempfile::tempdir().unwrap();
    let (resume, resumed) = mpsc::channel();
    let reads = AtomicU32::new(0);
    let reached = Semaphore::new(0);
    let stopping = Arc::new(Stopping { reads, reached, resumed: Mutex::new(resumed) });
    let policy = stopping.clone();
    let world = World::changed(folder.path(), &[READ], |parts| Parts { policy, ..parts }).await;
    world.permits.add_permits(2);
    world.run("read", json!({}), "s").await;
    world.at_rest().await;
    // It is looked up, and once more before its events are read.
    stopping.reads.store(2, Ordering::SeqCst);
    let engine = world.engine.clone();
    let following = tokio::spawn(async move {
        let (_, mut stream) = engine.sessions().follow(&caller(), &key("s"), 0).await?;
        stream.try_next().await
    });
    within(stopping.reached.acquire()).await.unwrap().forget();
    world.engine.sessions().remove_unsent(&caller(), &key("s")).await.unwrap();
    world.run("read", json!({}), "s").await;
    resume.send(()).unwrap();
    let refusal = within(following).await.unwrap().unwrap_err();
    assert_eq!(refusal.code.name(), "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn following_from_a_trimmed_event_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[READ, ASK]).await;
    world.permits.add_permits(1);
    let old = world.run("read", json!({}), "s").await.run.id;
    let waiting = world.run("ask", json!({}), "s").await.run.id;
    world.until("the drivers to end", |world| world.engine.counts().sessions_active == 0).await;
    let clock = world.engine.clock();
    clock.sleep_until(clock.now().plus_ms(5)).await;
    assert_eq!(world.engine.admin().prune(&caller(), 0).await.unwrap().runs, 1);
    assert_eq!(refused(&world, old, None).await.name(), "not_found");
    assert_eq!(refused(&world, waiting, Some(1)).await.name(), "cursor_gone");
    let (events, status) = told(&mut follow(&world, waiting, None).await).await;
    assert_eq!((events, status), (journal(&world, "s", waiting).await, "waiting"));
}

#[tokio::test(flavor = "multi_thread")]
async fn deltas_of_a_turn_are_streamed_beside_its_events() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([text("all of it"), text("one two three four five")]);
    let limits = Limits { turn_deltas_max: 4, ..Limits::default() };
    let world = World::talking(folder.path(), (&[], &[HELPER]), limits, model.models()).await;
    // The second one is more than a listener may be behind.
    for (words, lost) in [("all of it", 0), ("one two three four five", 1)] {
        let listening = world.engine.threads().listen(&caller(), "t").await;
        let saying = ThreadMessage { thread: "t", text: "hello", ..ThreadMessage::default() };
        let done = world.engine.threads().say(&caller(), saying, WAIT_MS).await.unwrap();
        let mut stream = listening.follow(done.run.id);
        let mut heard = String::new();
        let mut missed = 0;
        let mut kept = 0;
        while let Some(update) = next(&mut stream).await {
            match update {
                RunUpdate::Delta(TurnUpdate::Delta { delta: Delta::Text(word), .. }) => {
                    heard.push_str(&word);
                }
                RunUpdate::Delta(TurnUpdate::Lost(count)) => missed += count,
                RunUpdate::Event { body, .. } if body.contains("\"turn.finished\"") => {
                    kept += usize::from(body.contains(words));
                }
                RunUpdate::End(report) => assert_eq!(report.run.answer, Some(json!(words))),
                RunUpdate::Event { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(words.ends_with(&heard) && !heard.is_empty(), "{heard}");
        assert_eq!((missed, heard == words, kept), (lost, lost == 0, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deltas_of_a_turn_come_between_its_events() {
    let folder = tempfile::tempdir().unwrap();
    let refused = calls([("no::tool", json!({}))]);
    let model = Scripted::new([Says::Hangs("Well"), refused, text("Then without.")]);
    let limits = Limits { turn_backoff_ms: 10, ..short_pages() };
    let models = model.models_within(Some(50));
    let world = World::talking(folder.path(), (&[], &[HELPER]), limits, models).await;
    let listening = world.engine.threads().listen(&caller(), "t").await;
    let saying = ThreadMessage { thread: "t", text: "hello", ..ThreadMessage::default() };
    // Every piece is there before the first event is read.
    let done = world.engine.threads().say(&caller(), saying, WAIT_MS).await.unwrap();
    let mut stream = listening.follow(done.run.id);
    let mut order = Vec::new();
    while let Some(update) = next(&mut stream).await {
        order.extend(of_a_turn(update));
    }
    let expected = [
        "1.1 turn.started", "1.1 says Well", "1.1 turn.failed", "1.2 turn.started", "1.2 restarts",
        "1.2 turn.finished", "2.1 turn.started", "2.1 says Then ", "2.1 says without.",
        "2.1 turn.finished",
    ];
    assert_eq!(order, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delta_waits_only_for_the_events_before_its_turn() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::new([Says::Hangs("Well")]);
    let agents = [HELPER];
    let models = model.models();
    let world = World::talking(folder.path(), (&[], &agents), short_pages(), models).await;
    let listening = world.engine.threads().listen(&caller(), "t").await;
    let saying = ThreadMessage { thread: "t", text: "hello", ..ThreadMessage::default() };
    let run = world.engine.threads().say(&caller(), saying, 0).await.unwrap().run.id;
    world.until("the model to be asked", |_| model.asked() == 1).await;
    let mut stream = listening.follow(run);
    let mut order = Vec::new();
    while order.len() < 2 {
        order.extend(of_a_turn(next(&mut stream).await.unwrap()));
    }
    assert_eq!(order, ["1.1 turn.started", "1.1 says Well"]);
    world.engine.runs().cancel(&caller(), run).await.unwrap();
    while let Some(update) = next(&mut stream).await {
        order.extend(of_a_turn(update));
    }
    assert_eq!(order[2..], ["1.1 turn.failed"]);
}
