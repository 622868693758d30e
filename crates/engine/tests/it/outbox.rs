//! Events on their way out: order, retries, crashes, what is held back for them, and resending.

use crate::outbox_scripted::{Does, Scripted};
use crate::world::{LOOK, LOOKS_MAX, WAIT_MS, World, caller, files, parts};
use engine::{Engine, Parts, RefusalKind, SinkRules, SinkState};
use kernel::contracts::cloud::{CloudEvent, cloud_events};
use kernel::contracts::sink::{DeliveryFilter, DeliveryRow, DeliveryStatus, EventSink};
use kernel::contracts::{PageRequest, SessionRef};
use kernel::limits::Limits;
use kernel::tool::rules::Pattern;
use kernel::values::ids::RealmId;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const TELL: &str = "planId: tell\nsteps: [{id: call, type: tool_call, toolId: 'slow::write', \
    arguments: {publish: {type: TradeRepaired, n: {jsonPath: $.promptInput.n}}}, nextStepId: end}, \
    {id: end, type: final_response, message: ok}]";
const ASK: &str = "planId: ask\nsteps: [{id: ask, type: human_in_the_loop, message: go on?, \
    nextStepIdOnInput: end}, {id: end, type: final_response, message: ok}]";

/// Tries follow each other at once.
pub fn hurried() -> Limits {
    Limits { delivery_backoff_ms: 2, delivery_backoff_ms_max: 4, ..Limits::default() }
}

pub fn realm() -> RealmId {
    "default".into()
}

pub async fn open(folder: &Path, limits: Limits) -> World {
    let world = World::with_limits(folder, &[TELL, ASK], limits).await;
    world.permits.add_permits(1_000);
    world
}

pub async fn send(world: &World, name: &str, sink: &Arc<Scripted>, rules: SinkRules) {
    let sink: Arc<dyn EventSink> = sink.clone();
    world.engine.feed().keep_sending(&realm(), name, sink, rules).await.unwrap();
}

/// Runs in these sessions, so many in each.
pub async fn runs(world: &World, sessions: &[&str], each: usize) {
    for n in 0..each {
        for session in sessions {
            let report = world.run("tell", json!({"n": n}), session).await;
            assert_eq!(report.run.status.name(), "completed", "{:?}", report.run.last_error);
        }
    }
}

/// The ids of all that the journal tells, in the order of the feed.
pub async fn told(world: &World) -> Vec<String> {
    let rows = world.store.feed(&realm(), 0, 10_000).await.unwrap();
    let events = rows.iter().flat_map(|row| cloud_events(row).unwrap());
    events.map(|event| event.id).collect()
}

pub async fn state(world: &World, name: &str) -> SinkState {
    let states = world.engine.feed().sinks(&caller()).await.unwrap();
    states.into_iter().find(|state| state.name == name).unwrap()
}

/// Waits until a sink has passed the whole feed, in the store too.
pub async fn caught_up(world: &World, name: &str) -> SinkState {
    for _ in 0..LOOKS_MAX {
        let state = state(world, name).await;
        if state.lag == 0 {
            return state;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("waited in vain for sink `{name}` to catch up: {:?}", state(world, name).await);
}

pub async fn log(world: &World, name: &str) -> Vec<DeliveryRow> {
    let filter = DeliveryFilter { sink: Some(name.to_owned()), status: None };
    let page = PageRequest { cursor: None, limit: 1_000 };
    world.engine.feed().deliveries(&caller(), &filter, &page).await.unwrap().items
}

/// Waits for a delivery of this status in the log.
pub async fn logged(world: &World, name: &str, status: DeliveryStatus) -> DeliveryRow {
    for _ in 0..LOOKS_MAX {
        let found = log(world, name).await.into_iter().find(|row| row.status == status);
        if let Some(row) = found {
            return row;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("waited in vain for a delivery that is {}: {:?}", status.name(), log(world, name).await);
}

/// Each event once, where several are the same the first of them.
fn first_of_each(ids: &[String]) -> Vec<String> {
    let mut seen = Vec::new();
    ids.iter().for_each(|id| {
        if !seen.contains(id) {
            seen.push(id.clone())
        }
    });
    seen
}

/// The first event of this type that a sink took.
fn first_told(sink: &Scripted, kind: &str) -> CloudEvent {
    let taken = sink.taken.lock().unwrap();
    taken.iter().find(|event| event.kind == kind).cloned().unwrap()
}

/// The ids by session, in order.
pub fn by_session(ids: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut sessions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for id in ids {
        let session = id.split('.').next().unwrap().to_owned();
        sessions.entry(session).or_default().push(id.clone());
    }
    sessions
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_arrives_in_order_of_its_session_however_often_it_fails() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), hurried()).await;
    // Every third event fails twice.
    let script = |event: &CloudEvent, times: usize| {
        if event.seq.is_multiple_of(3) && times <= 2 { Does::Fails } else { Does::Takes }
    };
    let sink = Arc::new(Scripted::new(script));
    send(&world, "a", &sink, SinkRules::default()).await;
    runs(&world, &["x", "y", "z"], 4).await;
    let all = told(&world).await;
    assert_eq!(all.len(), 3 * 4 * 3, "started, published, completed");
    world.until("all events", |_| sink.ids().len() >= all.len()).await;
    assert_eq!(by_session(&sink.ids()), by_session(&all));
    let state = caught_up(&world, "a").await;
    assert_eq!((state.kind.as_str(), state.delivered), ("scripted", all.len() as u64));
    assert_eq!((state.failed, state.retrying), (0, 0));
    let log = log(&world, "a").await;
    assert_eq!(log.len(), all.len());
    for row in log {
        let tries = if row.seq % 3 == 0 { 3 } else { 1 };
        assert_eq!((row.status, row.attempts), (DeliveryStatus::Delivered, tries), "{row:?}");
        assert_eq!((row.code, row.error), (Some(202), None));
    }
    let retried = world.engine.counts().deliveries_retried;
    assert_eq!(retried, sink.tries() as u64 - all.len() as u64);
    let published = first_told(&sink, "TradeRepaired");
    assert_eq!(published.data, json!({"type": "TradeRepaired", "n": 0}));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_lane_keeps_the_order_of_the_feed_and_goes_in_batches() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), hurried()).await;
    runs(&world, &["x", "y"], 4).await;
    let all = told(&world).await;
    // The first delivery of several fails: then they go one by one.
    let script = |_: &CloudEvent, times: usize| if times == 1 { Does::Fails } else { Does::Takes };
    let sink = Arc::new(Scripted { lanes: 1, batch: 5, ..Scripted::new(script) });
    send(&world, "a", &sink, SinkRules { from_start: true, ..SinkRules::default() }).await;
    world.until("all events", |_| sink.ids().len() >= all.len()).await;
    assert_eq!(sink.ids(), all);
    let tried = sink.tried.lock().unwrap();
    assert_eq!((tried[0].len(), tried[1].len()), (5, 1));
    assert!(tried.iter().all(|batch| batch.len() <= 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_session_does_not_delay_others() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), hurried()).await;
    let script = |event: &CloudEvent, _: usize| {
        if event.subject == "stuck" { Does::Hangs } else { Does::Takes }
    };
    let sink = Arc::new(Scripted::new(script));
    send(&world, "a", &sink, SinkRules::default()).await;
    let stuck = world.run("tell", json!({"n": 1}), "stuck").await.session;
    let tried = || {
        let tried = sink.tried.lock().unwrap();
        tried.iter().filter(|batch| batch[0].subject == "stuck").count()
    };
    world.until("the first event of the session that is stuck", |_| tried() > 0).await;
    runs(&world, &["x"], 3).await;
    world.until("the other session's events", |_| sink.ids().len() == 9).await;
    assert_eq!(tried(), 1);
    let before = state(&world, "a").await;
    let feed = world.store.feed(&realm(), 0, 1).await.unwrap();
    assert!(before.position < feed[0].cursor, "the place went past an event that did not arrive");
    sink.let_go.add_permits(10);
    caught_up(&world, "a").await;
    let ids = sink.ids();
    assert_eq!(ids.iter().filter(|id| id.starts_with(&stuck.id.to_string())).count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn undelivered_events_are_resent_after_a_crash_under_the_same_id() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), hurried()).await;
    let script = |event: &CloudEvent, _: usize| {
        if event.subject == "y" { Does::Hangs } else { Does::Takes }
    };
    let first = Arc::new(Scripted::new(script));
    send(&world, "a", &first, SinkRules::default()).await;
    runs(&world, &["x", "y"], 2).await;
    let all = told(&world).await;
    world.until("the first session's events", |_| first.ids().len() == 6).await;
    world.crash().await;

    let world = open(folder.path(), hurried()).await;
    let second = Scripted::taking();
    // Where it began is known: what this says now is of no account.
    send(&world, "a", &second, SinkRules { from_start: true, ..SinkRules::default() }).await;
    caught_up(&world, "a").await;
    let mut both = first.ids();
    both.extend(second.ids());
    assert_eq!(by_session(&first_of_each(&both)), by_session(&all));
    let sent_again = second.ids();
    world.crash().await;

    // What has arrived and is written down is not sent a third time.
    let world = open(folder.path(), hurried()).await;
    let third = Scripted::taking();
    send(&world, "a", &third, SinkRules::default()).await;
    runs(&world, &["x"], 1).await;
    caught_up(&world, "a").await;
    assert_eq!(third.ids().len(), 3);
    assert!(third.ids().iter().all(|id| !sent_again.contains(id)));
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_are_bounded_and_counted_across_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { delivery_attempts_max: 5, ..hurried() };
    let slow = Limits { delivery_backoff_ms: 600_000, delivery_backoff_ms_max: 600_000, ..limits };
    let world = open(folder.path(), slow).await;
    let kind = |event: &CloudEvent| event.kind == "TradeRepaired";
    let failing = move |event: &CloudEvent, _: usize| {
        if kind(event) { Does::Declines } else { Does::Takes }
    };
    let sink = Arc::new(Scripted::new(failing));
    send(&world, "a", &sink, SinkRules::default()).await;
    runs(&world, &["x"], 1).await;
    let row = logged(&world, "a", DeliveryStatus::Retrying).await;
    assert_eq!((row.attempts, row.code, row.error.as_deref()), (1, Some(400), Some("as told")));
    assert!(row.next_at.unwrap() > row.last_at);
    assert_eq!(state(&world, "a").await.retrying, 1);
    world.crash().await;

    let world = open(folder.path(), Limits { delivery_attempts_max: 5, ..hurried() }).await;
    let sink = Arc::new(Scripted::new(failing));
    send(&world, "a", &sink, SinkRules::default()).await;
    let state = caught_up(&world, "a").await;
    assert_eq!((state.failed, state.retrying), (1, 0));
    assert_eq!(state.last_error.as_deref(), Some("as told"));
    let rows = log(&world, "a").await;
    let failed: Vec<&DeliveryRow> =
        rows.iter().filter(|row| row.status == DeliveryStatus::Failed).collect();
    // Five that speak against it, after the one that the log tells of.
    assert_eq!((failed.len(), failed[0].attempts), (1, 6), "{rows:?}");
    assert_eq!(failed[0].first_at, row.first_at);
    assert_eq!(sink.kinds().last().map(String::as_str), Some("waypost.run.completed.v1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_delivery_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { delivery_timeout_ms: 20, ..hurried() };
    let world = open(folder.path(), limits).await;
    let script = |_: &CloudEvent, times: usize| if times == 1 { Does::Hangs } else { Does::Takes };
    let sink = Arc::new(Scripted::new(script));
    send(&world, "a", &sink, SinkRules::default()).await;
    runs(&world, &["x"], 1).await;
    let state = caught_up(&world, "a").await;
    assert_eq!(state.last_error.as_deref(), Some("was not done within 20 ms"));
    assert_eq!(sink.ids(), told(&world).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_gets_its_event_types_from_its_start() {
    let folder = tempfile::tempdir().unwrap();
    // A window that is smaller than a run: the rest is read when there is room.
    let world = open(folder.path(), Limits { outbox_window_max: 1, ..hurried() }).await;
    runs(&world, &["x"], 1).await;
    let types = |patterns: &[&str]| {
        Some(patterns.iter().map(|text| Pattern::new(text).unwrap()).collect::<Vec<_>>())
    };
    let new = Scripted::taking();
    let old = Scripted::taking();
    let trades = Scripted::taking();
    send(&world, "new", &new, SinkRules::default()).await;
    send(&world, "old", &old, SinkRules { types: None, from_start: true }).await;
    let rules = SinkRules { types: types(&["Trade*", "*.completed.v1"]), from_start: false };
    send(&world, "trades", &trades, rules).await;
    let again: Arc<dyn EventSink> = trades.clone();
    let refusal =
        world.engine.feed().keep_sending(&realm(), "new", again, SinkRules::default()).await;
    assert_eq!(refusal.unwrap_err().code.name(), "sink_exists");
    let asked = world.run("ask", json!({}), "q").await;
    runs(&world, &["x"], 1).await;
    for name in ["new", "old", "trades"] {
        caught_up(&world, name).await;
    }
    assert_eq!(old.ids().len(), 3 + 2 + 3);
    assert_eq!(new.kinds().len(), 2 + 3);
    assert_eq!(trades.kinds(), ["TradeRepaired", "waypost.run.completed.v1"]);
    let opened = first_told(&new, "waypost.ask.opened.v1");
    assert_eq!(opened.data["ask"], json!(asked.asks[0].row.ask.id));
    let stranger = kernel::tool::call::Caller { realm: "other".into(), ..caller() };
    assert_eq!(world.engine.feed().sinks(&stranger).await, Ok(Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn undelivered_events_are_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), hurried()).await;
    let sink = Arc::new(Scripted::new(|_, _| Does::Hangs));
    send(&world, "a", &sink, SinkRules::default()).await;
    runs(&world, &["x"], 1).await;
    world.at_rest().await;
    assert_eq!(world.engine.admin().prune(&caller(), 0).await.unwrap().sessions, 0);
    sink.let_go.add_permits(10);
    caught_up(&world, "a").await;
    assert_eq!(world.engine.admin().prune(&caller(), 0).await.unwrap().sessions, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_can_send_an_event_once_more() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), Limits { delivery_attempts_max: 1, ..hurried() }).await;
    let script = |event: &CloudEvent, times: usize| {
        if event.kind == "TradeRepaired" && times == 1 { Does::Declines } else { Does::Takes }
    };
    let sink = Arc::new(Scripted::new(script));
    send(&world, "a", &sink, SinkRules::default()).await;
    runs(&world, &["x"], 1).await;
    assert_eq!(caught_up(&world, "a").await.failed, 1);
    let rows = log(&world, "a").await;
    let row = rows.iter().find(|row| row.status == DeliveryStatus::Failed).unwrap();
    assert_eq!((row.kind.as_str(), row.attempts, row.code), ("TradeRepaired", 1, Some(400)));
    let event = row.event.clone();
    let resend = |sink: &'static str, event: String| {
        let engine = world.engine.clone();
        async move { engine.feed().resend(&caller(), sink, &event).await }
    };
    let again = resend("a", event.clone()).await.unwrap();
    assert_eq!((again.status, again.attempts), (DeliveryStatus::Delivered, 2));
    assert_eq!(log(&world, "a").await.iter().find(|row| row.event == event), Some(&again));
    assert_eq!(sink.ids().last(), Some(&event));
    let session = event.split('.').next().unwrap().to_owned();
    for unknown in ["x", "ses_1.1", &format!("{session}.0"), &format!("{session}.999")] {
        let refusal = resend("a", unknown.to_owned()).await.unwrap_err();
        assert_eq!(refusal.kind(), RefusalKind::NotFound, "{unknown}");
    }
    let refusal = resend("nobody", event.clone()).await.unwrap_err();
    assert_eq!(refusal.kind(), RefusalKind::NotFound);
    world.at_rest().await;
    assert_eq!(world.engine.admin().prune(&caller(), 0).await.unwrap().sessions, 1);
    let refusal = resend("a", event).await.unwrap_err();
    assert_eq!((refusal.kind(), refusal.code.name()), (RefusalKind::Gone, "event_gone"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_active_deliveries_and_records_them() {
    let folder = tempfile::tempdir().unwrap();
    let patient = |folder: &Path| {
        let brought = parts(folder, Limits::default(), Vec::new());
        let limits = Limits { stop_wait_ms: WAIT_MS, ..Limits::default() };
        Parts { limits: Arc::new(limits), ..brought }
    };
    let engine = Engine::start(patient(folder.path())).unwrap();
    engine.catalog().load_plans(&realm(), files(&[ASK])).unwrap();
    let sink = Arc::new(Scripted::new(|_, _| Does::Hangs));
    let taker: Arc<dyn EventSink> = sink.clone();
    engine.feed().keep_sending(&realm(), "a", taker, SinkRules::default()).await.unwrap();
    let request = engine::RunRequest {
        target: engine::RunTarget::Plan("ask".into()),
        input: json!({}),
        session: engine::RunSession::Named("s".to_owned()),
        once: None,
        about: Default::default(),
    };
    engine.runs().start(&caller(), request, WAIT_MS).await.unwrap();
    until("a delivery", || sink.tries() > 0).await;
    let stopper = engine.clone();
    let stopped = tokio::spawn(async move { stopper.stop().await });
    until("the stop to begin", || engine.healthy().is_err()).await;
    sink.let_go.add_permits(1);
    stopped.await.unwrap();
    assert_eq!(sink.ids().len(), 1, "what had not begun waits for the next start");

    let engine = Engine::start(patient(folder.path())).unwrap();
    let page = PageRequest { cursor: None, limit: 9 };
    let logged =
        engine.feed().deliveries(&caller(), &DeliveryFilter::default(), &page).await.unwrap();
    let logged: Vec<&str> = logged.items.iter().map(|row| row.event.as_str()).collect();
    assert_eq!(logged, sink.ids());
    let session = SessionRef::Key { key: "s".into(), space: None };
    assert_eq!(engine.sessions().get(&caller(), &session).await.unwrap().status.name(), "waiting");
}

/// Waits for a condition, saying what for when it does not come.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..LOOKS_MAX {
        if holds() {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("waited in vain for: {what}");
}
