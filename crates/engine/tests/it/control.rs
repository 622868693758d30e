//! A run stays under control whatever it does: one that never waits is cancelled and reported like
//! any other, and a panic costs the call or the session that it happened in, nothing else.

use crate::fix;
use crate::world::{LOOK, LOOKS_MAX, WAIT_MS, World, caller};
use futures::future::BoxFuture;
use kernel::ask::{AskBody, FixAction};
use kernel::contracts::observe::{Observation, Observer};
use kernel::contracts::{
    Blobs, CrashMarks, Holder, Incoming, LoadResult, OpenBlob, Read, SessionRef, StoreError,
    Suspect,
};
use kernel::limits::Limits;
use kernel::tool::call::CallProgress;
use kernel::values::datum::BlobRef;
use kernel::values::ids::{ContentHash, Millis, RealmId, RunId, SessionId, Space};
use serde_json::json;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

const SPIN: &str = "planId: spin\nsteps: [{id: outer, type: loop_over_items, collectionPath: \
    {jsonPath: $.promptInput.items}, itemAlias: o, loopPlan: [{id: inner, type: loop_over_items, \
    collectionPath: {jsonPath: $.promptInput.items}, itemAlias: i, loopPlan: [{id: one, type: \
    tool_call, toolId: 'slow::read', arguments: {i: {jsonPath: $.context.i}}}]}], nextStepId: \
    end}, {id: end, type: final_response, message: ok}]";
const READ: &str = "planId: read\nsteps: [{id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {n: 1}, saveAs: out, nextStepId: end}, {id: end, type: final_response, message: ok}]";
const PANICS: &str = "planId: panics\nsteps: [{id: call, type: tool_call, toolId: 'slow::read', \
    arguments: {panic: true}, saveAs: out, nextStepId: end}, {id: end, type: final_response, \
    message: ok}]";
const WRITE_PANICS: &str = "planId: write\nsteps: [{id: call, type: tool_call, toolId: \
    'slow::write', arguments: {panic: true}, saveAs: out, nextStepId: end}, {id: end, type: \
    final_response, message: ok}]";
const ASK: &str = "planId: ask\nsteps: [{id: ask, type: human_in_the_loop, message: ready?, \
    nextStepIdOnInput: one}, {id: one, type: tool_call, toolId: 'slow::read', arguments: {n: 1}, \
    nextStepId: end}, {id: end, type: final_response, message: ok}]";

/// How many items each of the two loops has.
const ITEMS: usize = 400;
/// How many calls of the loops may go by meanwhile: many times as many as on an idle machine. Both
/// are slow on a busy one, so that no time is measured.
const MEANWHILE_MAX: usize = ITEMS * ITEMS / 4;

/// The outcome of work beside a run that never waits: it waits neither for its end nor for long.
async fn meanwhile<T>(world: &World, what: &str, work: impl Future<Output = T>) -> T {
    let before = world.sent();
    let done = tokio::time::timeout(Duration::from_millis(WAIT_MS), work).await;
    let calls = world.sent() - before;
    assert!(calls < MEANWHILE_MAX, "{what} took {calls} calls of the loops");
    done.unwrap_or_else(|_| panic!("waited {WAIT_MS} ms in vain for {what}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_run_can_be_reported_paused_and_cancelled_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[SPIN, READ]).await;
    world.permits.add_permits(1_000_000);
    let items: Vec<usize> = (0..ITEMS).collect();
    let starting = world.start("spin", json!({"items": items}), "s");
    let run = meanwhile(&world, "the start", starting).await.run.id;
    world.until("the loops to spin", |world| world.sent() > 200).await;

    let neighbour = meanwhile(&world, "a neighbour", world.run("read", json!({}), "other")).await;
    assert_eq!(neighbour.run.status.name(), "completed");
    let me = caller();
    let paused = meanwhile(&world, "the pause", world.engine.runs().pause(&me, run)).await;
    assert_eq!(paused.unwrap().run.status.name(), "paused");
    let engine = world.engine.clone();
    let continued = tokio::spawn(async move { engine.runs().continue_run(&caller(), run).await });
    let sent = world.sent();
    world.until("the loops to spin again", |world| world.sent() > sent + 200).await;
    let cancelled = meanwhile(&world, "the cancel", world.engine.runs().cancel(&me, run)).await;
    assert_eq!(cancelled.unwrap().run.status.name(), "cancelled");
    assert!(world.sent() < ITEMS * ITEMS, "it had ended by itself");
    assert_eq!(continued.await.unwrap().unwrap().run.status.name(), "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panicking_tool_fails_its_call_only() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[READ, PANICS, WRITE_PANICS]).await;
    world.permits.add_permits(9);
    for (plan, expected) in [("panics", CallProgress::Failed), ("write", CallProgress::Unknown)] {
        let report = world.run(plan, json!({}), plan).await;
        assert_eq!(report.run.status.name(), "stuck");
        let AskBody::Fix { how, fault, .. } = &report.asks[0].row.ask.body else {
            panic!("no fix")
        };
        assert_eq!((*how, fault.name.as_str()), (expected, "Panicked"));
        assert!(fault.message.contains("as the test wants"), "{}", fault.message);
    }
    let report = world.run("read", json!({}), "after").await;
    assert_eq!(report.run.status.name(), "completed");
}

/// Panics inside the driver, as often as it is told, when the call of a plan has ended.
struct Panicking {
    times: AtomicU32,
    plan: &'static str,
}

impl Observer for Panicking {
    fn saw(&self, seen: &Observation) {
        let seen = format!("{seen:?}");
        let concerned = seen.contains(self.plan) && !seen.contains("RecoveryGaveUp");
        let left = |times: u32| times.checked_sub(1);
        let armed =
            concerned && self.times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok();
        assert!(!armed, "the observer panics, as the test wants");
    }
}

async fn panicking(folder: &Path, times: u32) -> (World, Arc<Panicking>) {
    let observer = Arc::new(Panicking { times: AtomicU32::new(times), plan: "broken" });
    let broken = READ.replace("planId: read", "planId: broken");
    let plans = [broken.as_str(), READ];
    let models = Default::default();
    let world = World::observed(folder, (&plans, &[]), models, observer.clone()).await;
    world.permits.add_permits(100);
    (world, observer)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_resumes_after_its_driver_panicked_once() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _) = panicking(folder.path(), 1).await;
    let started = world
        .engine
        .runs()
        .start(&caller(), world.request("broken", json!({}), "s"), WAIT_MS)
        .await;
    // The panic came before the run was recorded, or after it: either way nothing hangs.
    match started {
        Ok(report) => assert_eq!(report.run.status.name(), "completed"),
        Err(refusal) => assert_eq!(refusal.code.name(), "driver_ended"),
    }
    assert_eq!(world.run("broken", json!({}), "s").await.run.status.name(), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_lost_in_a_panic_is_not_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let observer = Arc::new(Panicking { times: AtomicU32::new(1), plan: "slow::read" });
    let plans = [ASK];
    let models = Default::default();
    let world = World::observed(folder.path(), (&plans, &[]), models, observer).await;
    let run = world.run("ask", json!({}), "s").await;
    let ask = run.asks[0].row.ask.id;
    let reply = || kernel::ask::Reply::Clarify { answer: Some(json!("yes")) };
    // The read answers at once, so the panic comes before the decision is written.
    world.permits.add_permits(9);
    let refused =
        world.engine.asks().reply(&caller(), ask, reply(), None, WAIT_MS).await.unwrap_err();
    assert_eq!(refused.code.name(), "driver_ended");
    assert_eq!(world.engine.asks().get(&caller(), ask).await.unwrap().row.decision, None);
    let replied = world.engine.asks().reply(&caller(), ask, reply(), None, WAIT_MS).await.unwrap();
    assert_eq!(replied.run.run.status.name(), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_always_panics_its_driver_waits_for_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[ASK]).await;
    let run = world.run("ask", json!({}), "s").await;
    let id = run.run.id;
    let ask = run.asks[0].row.ask.id;
    world.crash().await;

    let observer = Arc::new(Panicking { times: AtomicU32::new(u32::MAX), plan: "slow::read" });
    let plans = [ASK, READ];
    let models = Default::default();
    let world = World::observed(folder.path(), (&plans, &[]), models, observer.clone()).await;
    let reply = kernel::ask::Reply::Clarify { answer: Some(json!("yes")) };
    world.engine.asks().reply(&caller(), ask, reply, None, 0).await.unwrap();
    world.until("the read to be sent", |world| world.sent() == 1).await;
    world.permits.add_permits(100);
    let report = world.until_status(id, "stuck").await;
    let AskBody::Fix { fault, .. } = &report.asks[0].row.ask.body else { panic!("not a fix") };
    assert_eq!(fault.name, "RecoveryGaveUp");
    assert!(fault.message.contains("2 times"), "{}", fault.message);

    // A retry runs into it again, and gets the same warning.
    let ask = report.asks[0].row.ask.id;
    world.permits.forget_permits(100);
    let sent = world.sent();
    world.engine.asks().reply(&caller(), ask, fix(FixAction::Retry, None), None, 0).await.unwrap();
    world.until("the read to be sent once more", |world| world.sent() > sent).await;
    world.permits.add_permits(100);
    let report = world.until_status(id, "stuck").await;
    assert_ne!(report.asks[0].row.ask.id, ask);
    assert_eq!(report.run.last_error.unwrap().name, "RecoveryGaveUp");
    // Once what was wrong is mended a retry gets through.
    observer.times.store(0, Ordering::SeqCst);
    let ask = report.asks[0].row.ask.id;
    let reply =
        world.engine.asks().reply(&caller(), ask, fix(FixAction::Retry, None), None, WAIT_MS).await;
    assert_eq!(reply.unwrap().run.run.status.name(), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_while_a_run_only_waits_never_counts_against_it() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[READ]).await;
    let run = world.start("read", json!({}), "s").await.run.id;
    world.until("the read to be sent", |world| world.sent() == 1).await;
    world.crash().await;
    for time in 1..=8 {
        let world = World::open(folder.path(), &[READ]).await;
        world.engine.admin().recover_once().await;
        world.until(&format!("recovery {time}"), |world| world.sent() == 1).await;
        world.crash().await;
    }
    let world = World::open(folder.path(), &[READ]).await;
    world.permits.add_permits(1);
    world.engine.admin().recover_once().await;
    world.until_status(run, "completed").await;
}

/// One life of a process that dies of this session, as its mark says.
async fn dies_of(folder: &Path, run: RunId) {
    let mut kept = None;
    let world = World::changed(folder, &[READ], |parts| {
        kept = Some(parts.marks.clone());
        parts
    });
    let world = world.await;
    let marks = kept.unwrap();
    let key = world.engine.runs().report(&caller(), run).await.unwrap().session.key;
    world.engine.admin().recover_once().await;
    world.until("the read to be sent again", |world| world.sent() == 1).await;
    let LoadResult::Found(stored) = world.store.load(&key, None).await.unwrap() else {
        panic!("the session is gone")
    };
    let claims =
        stored.tail.iter().map(|row| row.matches("\"run.claimed\"").count()).sum::<usize>();
    marks.begin(stored.id, u32::try_from(claims).unwrap()).unwrap();
    world.crash().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_recovery_ends_the_process_twice_waits_for_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[READ]).await;
    let run = world.start("read", json!({}), "s").await.run.id;
    world.until("the read to be sent", |world| world.sent() == 1).await;
    world.crash().await;
    dies_of(folder.path(), run).await;
    dies_of(folder.path(), run).await;

    let world = World::open(folder.path(), &[READ]).await;
    world.engine.admin().recover_once().await;
    let report = world.until_status(run, "stuck").await;
    let fault = report.run.last_error.unwrap();
    assert_eq!(fault.name, "RecoveryGaveUp");
    assert!(fault.hint.unwrap().contains("may end the server again"));
    assert_eq!(world.sent(), 0, "a run that ends the process was driven again");
    // In one row of the journal: if the power failed between the two, nobody would be asked.
    let key = report.session.key;
    let LoadResult::Found(stored) = world.store.load(&key, None).await.unwrap() else {
        panic!("the session is gone")
    };
    let row = stored.tail.iter().find(|row| row.contains("RecoveryGaveUp")).unwrap();
    assert!(row.contains("\"run.claimed\"") && row.contains("\"died\":true"), "{row}");
    // A retry that works is progress: what was counted is forgotten.
    world.permits.add_permits(1);
    let ask = report.asks[0].row.ask.id;
    let reply =
        world.engine.asks().reply(&caller(), ask, fix(FixAction::Retry, None), None, WAIT_MS).await;
    assert_eq!(reply.unwrap().run.run.status.name(), "completed");
}

/// The marks of a process that is killed as soon as it has recorded the death before: it neither
/// removes that mark nor makes one of its own.
struct Unsettled(Arc<dyn CrashMarks>);

impl CrashMarks for Unsettled {
    fn begin(&self, _: SessionId, _: u32) -> Option<usize> {
        None
    }

    fn end(&self, _: usize) {}

    fn suspects(&self) -> Vec<Suspect> {
        self.0.suspects()
    }

    fn settle(&self, _: SessionId) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_mark_counts_once_across_processes() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[READ]).await;
    let run = world.start("read", json!({}), "s").await.run.id;
    world.until("the read to be sent", |world| world.sent() == 1).await;
    world.crash().await;
    dies_of(folder.path(), run).await;
    for life in 1..=3 {
        let world = World::changed(folder.path(), &[READ], |parts| engine::Parts {
            marks: Arc::new(Unsettled(parts.marks.clone())),
            ..parts
        });
        let world = world.await;
        world.engine.admin().recover_once().await;
        world
            .until(&format!("the read to be sent in life {life}"), |world| world.sent() == 1)
            .await;
        world.crash().await;
    }

    // The next one that dies of it is the second.
    dies_of(folder.path(), run).await;
    let world = World::open(folder.path(), &[READ]).await;
    world.engine.admin().recover_once().await;
    let fault = world.until_status(run, "stuck").await.run.last_error.unwrap();
    assert_eq!(fault.name, "RecoveryGaveUp");
    assert!(fault.message.contains(" 2 times "), "{}", fault.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn lowering_a_limit_stops_no_active_run() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[ASK]).await;
    let report = world.run("ask", json!({}), "s").await;
    world.crash().await;

    let limits = Limits { plan_steps_max: 1, client_id_chars_max: 1, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[], limits).await;
    world.permits.add_permits(1);
    let reply = kernel::ask::Reply::Clarify { answer: Some(json!("yes")) };
    let ask = report.asks[0].row.ask.id;
    let reply = world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
    assert_eq!(reply.run.run.status.name(), "completed");
}

/// Blobs whose removal never ends, and that take nothing while there is no room.
struct Troubled {
    blobs: Arc<dyn Blobs>,
    is_full: Arc<AtomicBool>,
}

impl Blobs for Troubled {
    fn put<'a>(&'a self, realm: &'a RealmId, bytes: Vec<u8>) -> Read<'a, BlobRef> {
        if self.is_full.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Err(StoreError::Full)));
        }
        self.blobs.put(realm, bytes)
    }
    fn put_pieces<'a>(&'a self, realm: &'a RealmId, incoming: Incoming<'a>) -> Read<'a, BlobRef> {
        self.blobs.put_pieces(realm, incoming)
    }
    fn open<'a>(
        &'a self,
        realm: &'a RealmId,
        hash: &'a ContentHash,
        part: Range<u64>,
    ) -> Read<'a, Option<OpenBlob>> {
        self.blobs.open(realm, hash, part)
    }
    fn hold<'a>(
        &'a self,
        realm: &'a RealmId,
        holder: &'a Holder,
        blobs: &'a [ContentHash],
    ) -> Read<'a, ()> {
        self.blobs.hold(realm, holder, blobs)
    }
    fn release<'a>(&'a self, realm: &'a RealmId, holder: &'a Holder) -> Read<'a, ()> {
        self.blobs.release(realm, holder)
    }
    fn delete<'a>(&'a self, realm: &'a RealmId, hash: &'a ContentHash) -> Read<'a, ()> {
        self.blobs.delete(realm, hash)
    }
    fn purge<'a>(&'a self, realm: &'a RealmId) -> Read<'a, bool> {
        self.blobs.purge(realm)
    }
    fn sweep(&self, _before: Millis, _limit: usize) -> Read<'_, (usize, u64)> {
        let never: BoxFuture<'_, _> = Box::pin(std::future::pending());
        never
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_removal_does_not_block_recovery() {
    let folder = tempfile::tempdir().unwrap();
    let expiring = "planId: ask\nsteps: [{id: ask, type: human_in_the_loop, message: ready?, \
        expiresIn: 300ms, nextStepIdOnInput: end}, {id: end, type: final_response, message: ok}]";
    let world = World::changed(folder.path(), &[expiring], |parts| engine::Parts {
        blobs: Arc::new(Troubled { blobs: parts.blobs, is_full: Arc::default() }),
        ..parts
    })
    .await;
    world.engine.admin().keep_recovering();
    let report = world.run("ask", json!({}), "s").await;
    world.until_status(report.run.id, "failed").await;
}

/// Waits until the session of this name is in the store.
async fn until_stored(world: &World, name: &str) {
    let session = SessionRef::Key { key: name.into(), space: Some(Space::session()) };
    for _ in 0..LOOKS_MAX {
        if world.engine.sessions().get(&caller(), &session).await.is_ok() {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("waited in vain for session {name} to be stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_started_run_is_returned_although_its_driver_failed() {
    let folder = tempfile::tempdir().unwrap();
    let large = READ.replace("{n: 1}", "{repeat: 100000}");
    let is_full = Arc::new(AtomicBool::new(true));
    let told = is_full.clone();
    let world = World::changed(folder.path(), &[&large], |parts| engine::Parts {
        blobs: Arc::new(Troubled { blobs: parts.blobs, is_full: told }),
        ..parts
    })
    .await;
    // The output is too large for the journal, and there is no room for it elsewhere: the driver
    // fails when the run is long stored.
    let engine = world.engine.clone();
    let request = world.request("read", json!({}), "plain");
    let plain = tokio::spawn(async move { engine.runs().start(&caller(), request, WAIT_MS).await });
    until_stored(&world, "plain").await;
    world.permits.add_permits(1);
    let refused = plain.await.unwrap();
    assert!(refused.is_err(), "the driver did not fail: {refused:?}");

    let engine = world.engine.clone();
    let request = world.request("read", json!({}), "known");
    let known = tokio::spawn(async move {
        engine.runs().start_followed(&caller(), request, Some(WAIT_MS)).await
    });
    until_stored(&world, "known").await;
    world.permits.add_permits(1);
    let run = known.await.unwrap().unwrap().run();
    let report = world.engine.runs().report(&caller(), run).await.unwrap();
    assert_eq!((report.run.id, report.run.status.name()), (run, "running"));
    // It continues once what failed does not fail any more.
    is_full.store(false, Ordering::SeqCst);
    world.permits.add_permits(9);
    world.engine.admin().recover_once().await;
    world.until_status(run, "completed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_times_out_returns_a_durable_run() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[READ]).await;
    let request = world.request("read", json!({}), "s");
    let run = world.engine.runs().start_followed(&caller(), request, Some(0)).await.unwrap().run();
    let report = world.engine.runs().report(&caller(), run).await.unwrap();
    assert_eq!(report.run.status.name(), "running");
    world.permits.add_permits(1);
    world.until_status(run, "completed").await;
}
