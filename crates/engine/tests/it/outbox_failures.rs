//! Sinks in trouble: which events are given up and which never, what a person can do about one that
//! is tried again, and what becomes of a session that is to be removed.

use crate::outbox::{
    by_session, caught_up, hurried, log, logged, open, realm, runs, send, state, told,
};
use crate::outbox_scripted::{Does, Scripted};
use crate::world::{LOOK, LOOKS_MAX, WAIT_MS, World, caller};
use engine::{RefusalCode, RefusalKind, SinkRules};
use kernel::contracts::SessionRef;
use kernel::contracts::cloud::CloudEvent;
use kernel::contracts::sink::DeliveryStatus;
use kernel::limits::Limits;
use kernel::tool::call::Caller;
use kernel::tool::rules::Pattern;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// After a failure the sink waits for longer than any test.
fn patient() -> Limits {
    Limits { delivery_backoff_ms: 600_000, delivery_backoff_ms_max: 600_000, ..Limits::default() }
}

fn key(name: &str) -> SessionRef {
    SessionRef::Key { key: name.into(), space: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_is_given_up_while_a_sink_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), Limits { delivery_attempts_max: 2, ..hurried() }).await;
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    let script = move |_: &CloudEvent, _: usize| {
        if well.load(Ordering::SeqCst) { Does::Takes } else { Does::Fails }
    };
    let sink = Arc::new(Scripted::new(script));
    send(&world, "a", &sink, SinkRules::default()).await;
    runs(&world, &["x", "y"], 2).await;
    let tried_often = |session: &&str| {
        let tried = sink.tried.lock().unwrap();
        tried.iter().filter(|batch| batch[0].subject == **session).count() > 10
    };
    world.until("many tries", |_| ["x", "y"].iter().all(&tried_often)).await;
    let before = state(&world, "a").await;
    assert_eq!((before.failed, before.delivered, before.retrying), (0, 0, 2));
    is_well.store(true, Ordering::SeqCst);
    let after = caught_up(&world, "a").await;
    assert_eq!((after.failed, after.retrying), (0, 0));
    assert_eq!(by_session(&sink.ids()), by_session(&told(&world).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_refused_while_others_succeed_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), Limits { delivery_attempts_max: 3, ..hurried() }).await;
    let script = |event: &CloudEvent, _: usize| {
        let is_bad = event.subject == "bad" && event.kind == "TradeRepaired";
        if is_bad { Does::Fails } else { Does::Takes }
    };
    let sink = Arc::new(Scripted::new(script));
    send(&world, "a", &sink, SinkRules::default()).await;
    runs(&world, &["bad"], 1).await;
    for _ in 0..LOOKS_MAX {
        if state(&world, "a").await.failed > 0 {
            break;
        }
        runs(&world, &["good"], 1).await;
    }
    let state = caught_up(&world, "a").await;
    assert_eq!((state.failed, state.retrying), (1, 0), "{state:?}");
    let failed = logged(&world, "a", DeliveryStatus::Failed).await;
    assert!(failed.kind == "TradeRepaired" && failed.attempts >= 3, "{failed:?}");
    let of_bad: Vec<String> = {
        let taken = sink.taken.lock().unwrap();
        let of_bad = taken.iter().filter(|event| event.subject == "bad");
        of_bad.map(|event| event.kind.clone()).collect()
    };
    assert_eq!(of_bad, ["waypost.run.started.v1", "waypost.run.completed.v1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_continues_after_a_person_resent_its_blocking_event() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), patient()).await;
    let script = |event: &CloudEvent, times: usize| {
        if event.kind == "TradeRepaired" && times <= 2 { Does::Fails } else { Does::Takes }
    };
    let sink = Arc::new(Scripted::new(script));
    send(&world, "a", &sink, SinkRules::default()).await;
    runs(&world, &["x"], 1).await;
    let waits = logged(&world, "a", DeliveryStatus::Retrying).await;
    let resend = || async { world.engine.feed().resend(&caller(), "a", &waits.event).await };
    let failed = resend().await.unwrap();
    assert_eq!((failed.status, failed.next_at), (DeliveryStatus::Retrying, waits.next_at));
    // A retry by itself is logged.
    assert_eq!(logged(&world, "a", DeliveryStatus::Retrying).await, waits);
    assert_eq!(resend().await.unwrap().status, DeliveryStatus::Delivered);
    let state = caught_up(&world, "a").await;
    assert_eq!((state.retrying, state.failed), (0, 0));
    assert_eq!(sink.ids(), told(&world).await, "in order, each once");
    let rows = log(&world, "a").await;
    assert!(rows.iter().all(|row| row.status == DeliveryStatus::Delivered), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gone_sink_is_paused_until_resumed() {
    let folder = tempfile::tempdir().unwrap();
    // One try that speaks against an event would fail it.
    let world = open(folder.path(), Limits { delivery_attempts_max: 1, ..hurried() }).await;
    let is_gone = Arc::new(AtomicBool::new(true));
    let gone = is_gone.clone();
    let script = move |_: &CloudEvent, _: usize| {
        if gone.load(Ordering::SeqCst) { Does::Leaves } else { Does::Takes }
    };
    let sink = Arc::new(Scripted::new(script));
    send(&world, "a", &sink, SinkRules::default()).await;
    runs(&world, &["x"], 1).await;
    let waits = logged(&world, "a", DeliveryStatus::Retrying).await;
    assert_eq!((waits.attempts, waits.code, waits.next_at), (1, Some(410), None));
    rested(&world).await;
    runs(&world, &["x"], 1).await;
    let rests = state(&world, "a").await;
    assert!(rests.gone && rests.lag > 0, "{rests:?}");
    let before = world.store.feed_end().await;
    let elsewhere = Caller::new("other", "ann");
    world.engine.sessions().create(&elsewhere, Some("x".to_owned())).await.unwrap();
    assert_ne!(world.store.feed_end().await, before);
    let lag = state(&world, "a").await.lag;
    assert_eq!(lag, rests.lag, "what other realms do is not ahead of it");
    assert_eq!((rests.delivered, rests.failed, rests.retrying), (0, 0, 1));
    assert_eq!(sink.tries(), 1, "it was left alone");
    // Somebody hopes in vain.
    world.engine.feed().resume_sink(&caller(), "a").await.unwrap();
    world.until("another try", |_| sink.tries() > 1).await;
    rested(&world).await;
    assert_eq!(sink.tries(), 2);
    let unknown = world.engine.feed().resume_sink(&caller(), "nobody").await.unwrap_err();
    assert_eq!(unknown.kind(), RefusalKind::NotFound);
    // It is back, as an event shows that a person sends.
    is_gone.store(false, Ordering::SeqCst);
    let sent = world.engine.feed().resend(&caller(), "a", &waits.event).await.unwrap();
    assert_eq!(sent.status, DeliveryStatus::Delivered);
    let state = caught_up(&world, "a").await;
    assert_eq!((state.failed, state.retrying, state.gone), (0, 0, false));
    assert_eq!(sink.ids(), told(&world).await, "in order, each once");
}

/// Waits until the sink rests.
async fn rested(world: &World) {
    for _ in 0..LOOKS_MAX {
        if state(world, "a").await.gone {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("waited in vain for the sink to rest: {:?}", state(world, "a").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gone_sink_gets_every_event_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), hurried()).await;
    let sink = Arc::new(Scripted::new(|_, _| Does::Leaves));
    send(&world, "a", &sink, SinkRules::default()).await;
    runs(&world, &["x", "y"], 2).await;
    logged(&world, "a", DeliveryStatus::Retrying).await;
    world.crash().await;

    let world = open(folder.path(), hurried()).await;
    let sink = Scripted::taking();
    send(&world, "a", &sink, SinkRules::default()).await;
    let state = caught_up(&world, "a").await;
    assert_eq!((state.failed, state.retrying, state.gone), (0, 0, false));
    assert_eq!(by_session(&sink.ids()), by_session(&told(&world).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_previous_process_that_no_longer_match_are_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), patient()).await;
    let script = |event: &CloudEvent, _: usize| {
        if event.kind == "TradeRepaired" { Does::Fails } else { Does::Takes }
    };
    let sink = Arc::new(Scripted::new(script));
    send(&world, "a", &sink, SinkRules::default()).await;
    runs(&world, &["x"], 1).await;
    logged(&world, "a", DeliveryStatus::Retrying).await;
    world.crash().await;

    let world = open(folder.path(), patient()).await;
    let types = Some(vec![Pattern::new("waypost.*").unwrap()]);
    send(&world, "a", &Scripted::taking(), SinkRules { types, from_start: false }).await;
    let failed = logged(&world, "a", DeliveryStatus::Failed).await;
    assert_eq!((failed.kind.as_str(), failed.attempts), ("TradeRepaired", 1));
    assert!(failed.error.is_some_and(|error| error.contains("not tried any more")));
    assert_eq!(caught_up(&world, "a").await.retrying, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_window_delays_but_loses_nothing() {
    let by_bytes = Limits { outbox_window_bytes_max: 1, ..hurried() };
    for limits in [by_bytes, Limits { outbox_ahead_max: 1, ..hurried() }] {
        let folder = tempfile::tempdir().unwrap();
        let world = open(folder.path(), limits).await;
        let script = |_: &CloudEvent, times: usize| match times {
            1 => Does::Fails,
            _ => Does::Takes,
        };
        let sink = Arc::new(Scripted::new(script));
        send(&world, "a", &sink, SinkRules::default()).await;
        runs(&world, &["x", "y"], 2).await;
        caught_up(&world, "a").await;
        assert_eq!(by_session(&sink.ids()), by_session(&told(&world).await));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_unsent_events_is_removed_only_if_forced() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), Limits { unsent_wait_ms: 100, ..hurried() }).await;
    let sink = Arc::new(Scripted::new(|_, _| Does::Hangs));
    send(&world, "hook", &sink, SinkRules::default()).await;
    runs(&world, &["x"], 1).await;
    world.at_rest().await;
    let refusal = world.engine.sessions().remove(&caller(), &key("x")).await.unwrap_err();
    assert_eq!((refusal.kind(), refusal.code.name()), (RefusalKind::Conflict, "events_unsent"));
    assert!(refusal.message.contains("sink `hook`"), "{refusal:?}");
    assert!(world.engine.sessions().get(&caller(), &key("x")).await.is_ok());
    world.engine.sessions().remove_unsent(&caller(), &key("x")).await.unwrap();
    let gone = world.engine.sessions().get(&caller(), &key("x")).await.unwrap_err();
    assert_eq!(gone.kind(), RefusalKind::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn removal_of_a_session_waits_for_its_events_to_be_sent() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), Limits { unsent_wait_ms: WAIT_MS, ..hurried() }).await;
    let sink = Arc::new(Scripted::new(|_, _| Does::Hangs));
    send(&world, "hook", &sink, SinkRules::default()).await;
    runs(&world, &["x"], 1).await;
    world.at_rest().await;
    let all = told(&world).await;
    let engine = world.engine.clone();
    let removal = tokio::spawn(async move { engine.sessions().remove(&caller(), &key("x")).await });
    sink.let_go.add_permits(all.len());
    removal.await.unwrap().unwrap();
    assert_eq!(sink.ids(), all);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unconfigured_sink_keeps_its_position_until_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), hurried()).await;
    let stuck = Arc::new(Scripted::new(|_, _| Does::Fails));
    send(&world, "old", &stuck, SinkRules::default()).await;
    runs(&world, &["x"], 1).await;
    logged(&world, "old", DeliveryStatus::Retrying).await;
    world.crash().await;

    // Another start has another sink.
    let patient = Limits { unsent_wait_ms: 600_000, ..hurried() };
    let world = open(folder.path(), patient).await;
    send(&world, "new", &Scripted::taking(), SinkRules::default()).await;
    world.engine.feed().rest_sink(&realm(), "resting");
    world.at_rest().await;
    let left = state(&world, "old").await;
    assert!(!left.configured && left.lag > 0, "{left:?}");
    assert_eq!(world.engine.feed().unconfigured_sinks(&realm()).await, Ok(vec![left]));
    assert!(state(&world, "new").await.configured);
    assert_eq!(world.engine.admin().prune(&caller(), 0).await.unwrap().sessions, 0);
    // It never passes them, so that nothing is waited for.
    let refusal = world.engine.sessions().remove(&caller(), &key("x")).await.unwrap_err();
    assert_eq!(refusal.code.name(), "events_unsent");
    assert!(refusal.hint.is_some_and(|hint| hint.contains("waypost events forget old")));

    for configured in ["new", "resting"] {
        let refusal = world.engine.feed().forget_sink(&caller(), configured).await.unwrap_err();
        assert_eq!(refusal.code, RefusalCode::SinkConfigured);
    }
    assert_eq!(world.engine.feed().forget_sink(&caller(), "old").await, Ok(()));
    let unknown = world.engine.feed().forget_sink(&caller(), "old").await.unwrap_err();
    assert_eq!(unknown.code, RefusalCode::NotFound);
    assert_eq!(log(&world, "old").await, Vec::new());
    assert_eq!(world.engine.feed().unconfigured_sinks(&realm()).await, Ok(Vec::new()));
    assert_eq!(world.engine.admin().prune(&caller(), 0).await.unwrap().sessions, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconfigured_sink_continues_at_its_position() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(folder.path(), hurried()).await;
    let first = Scripted::taking();
    send(&world, "a", &first, SinkRules::default()).await;
    runs(&world, &["x"], 1).await;
    caught_up(&world, "a").await;
    world.crash().await;

    let world = open(folder.path(), hurried()).await;
    runs(&world, &["x"], 1).await;
    assert!(!state(&world, "a").await.configured);
    world.crash().await;

    let world = open(folder.path(), hurried()).await;
    let again = Scripted::taking();
    send(&world, "a", &again, SinkRules::default()).await;
    caught_up(&world, "a").await;
    let both = [first.ids(), again.ids()].concat();
    assert_eq!(both, told(&world).await, "what was recorded meanwhile, and nothing twice");
}
