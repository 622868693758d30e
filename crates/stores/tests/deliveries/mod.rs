//! The log of deliveries, and how the feed is read that they come from.

use super::Scene;
use futures::executor::block_on;
use kernel::contracts::SINKS;
use kernel::contracts::sink::{DeliveryFilter, DeliveryRow, DeliveryStatus};
use kernel::event::Fact;
use kernel::limits::Limits;
use kernel::values::ids::{Millis, RealmId, SessionId};
use std::sync::Arc;
use testkit::contract::arms::Threads;
use testkit::contract::driver::{Driver, done, page, realm};

fn row(sink: &str, seq: u64, status: DeliveryStatus) -> DeliveryRow {
    DeliveryRow {
        sink: sink.to_owned(),
        event: format!("{}.{seq}", SessionId(7)),
        kind: "TradeRepaired".to_owned(),
        session: SessionId(7),
        seq,
        status,
        attempts: 1,
        first_at: Millis(10),
        last_at: Millis(10),
        next_at: None,
        code: Some(200),
        error: None,
    }
}

fn keep(scene: &Scene, rows: Vec<DeliveryRow>, place: Option<(&str, u64)>) {
    block_on(scene.opened.deliveries.keep_deliveries(&realm(), rows, place)).unwrap();
}

/// The numbers of the events in the log, newest first.
fn kept(scene: &Scene, filter: &DeliveryFilter) -> Vec<u64> {
    let realm = realm();
    let page = page(100, None);
    let read = scene.opened.deliveries.deliveries(&realm, filter, &page);
    block_on(read).unwrap().items.iter().map(|row| row.seq).collect()
}

fn of(sink: &str) -> DeliveryFilter {
    DeliveryFilter { sink: Some(sink.to_owned()), status: None }
}

fn place(scene: &Scene, consumer: &str) -> u64 {
    block_on(scene.store().consumer(&realm(), consumer)).unwrap()
}

#[test]
fn deliveries_are_stored_with_the_sinks_position_and_listed_newest_first() {
    let scene = Scene::new();
    let rows = (1..=3).map(|seq| row("a", seq, DeliveryStatus::Delivered)).collect();
    keep(&scene, rows, Some(("sink/a", 9)));
    assert_eq!(place(&scene, "sink/a"), 9);
    keep(&scene, vec![row("b", 4, DeliveryStatus::Failed)], None);
    let log = &scene.opened.deliveries;
    let first = block_on(log.deliveries(&realm(), &of("a"), &page(2, None))).unwrap();
    assert_eq!(first.items.iter().map(|row| row.seq).collect::<Vec<_>>(), [3, 2]);
    let second = block_on(log.deliveries(&realm(), &of("a"), &page(2, first.next_cursor))).unwrap();
    assert_eq!((second.items.len(), second.items[0].seq, second.next_cursor), (1, 1, None));
    let failed = DeliveryFilter { status: Some(DeliveryStatus::Failed), ..Default::default() };
    assert_eq!((kept(&scene, &failed), kept(&scene, &Default::default()).len()), (vec![4], 4));
    let elsewhere = RealmId::from("other");
    let all = DeliveryFilter::default();
    let nine = page(9, None);
    let foreign = block_on(log.deliveries(&elsewhere, &all, &nine));
    assert!(foreign.unwrap().items.is_empty());
    let scene = scene.reopened();
    assert_eq!((kept(&scene, &of("a")), place(&scene, "sink/a")), (vec![3, 2, 1], 9));
}

#[test]
fn a_delivery_has_one_row_that_is_updated() {
    let scene = Scene::new();
    let mut tried = row("a", 1, DeliveryStatus::Retrying);
    tried.code = Some(500);
    tried.error = Some("answered 500".to_owned());
    tried.next_at = Some(Millis(99));
    let event = tried.event.clone();
    keep(&scene, vec![tried.clone(), row("a", 2, DeliveryStatus::Delivered)], None);
    let found = || block_on(scene.opened.deliveries.delivery(&realm(), "a", &event)).unwrap();
    assert_eq!(found(), Some(tried));
    let mut done = row("a", 1, DeliveryStatus::Delivered);
    done.attempts = 2;
    done.first_at = Millis(50);
    done.last_at = Millis(50);
    keep(&scene, vec![done.clone()], None);
    // When it was tried first stays as it was.
    assert_eq!(found(), Some(DeliveryRow { first_at: Millis(10), ..done }));
    assert_eq!(kept(&scene, &of("a")), [2, 1]);
    let none = block_on(scene.opened.deliveries.delivery(&realm(), "b", &event));
    assert_eq!(none, Ok(None));
}

#[test]
fn the_delivery_log_is_bounded_per_sink_and_keeps_failures_longest() {
    let limits = Limits { deliveries_kept_max: 3, ..Limits::default() };
    let scene = Scene::with(Arc::new(Threads::default()), limits);
    let status = [
        DeliveryStatus::Failed,
        DeliveryStatus::Delivered,
        DeliveryStatus::Retrying,
        DeliveryStatus::Delivered,
        DeliveryStatus::Failed,
    ];
    let rows = (1..).zip(status).map(|(seq, status)| row("a", seq, status)).collect();
    keep(&scene, rows, None);
    assert_eq!(kept(&scene, &of("a")), [5, 3, 1]);
    keep(&scene, vec![row("b", 9, DeliveryStatus::Delivered)], None);
    keep(&scene, vec![row("a", 6, DeliveryStatus::Failed)], None);
    assert_eq!(kept(&scene, &of("a")), [6, 5, 1]);
    keep(&scene, vec![row("a", 7, DeliveryStatus::Failed)], None);
    assert_eq!(kept(&scene, &of("a")), [7, 6, 5]);
    assert_eq!(kept(&scene, &of("b")), [9], "another sink has its own log");
}

#[test]
fn a_forgotten_sink_loses_its_log_for_good() {
    let scene = Scene::new();
    for (sink, consumer) in [("a", "sink/a"), ("b", "sink/b")] {
        keep(&scene, vec![row(sink, 1, DeliveryStatus::Failed)], Some((consumer, 9)));
    }
    assert_eq!(block_on(scene.store().forget_consumer(&realm(), "sink/a")), Ok(true));
    let scene = scene.reopened();
    assert_eq!((kept(&scene, &of("a")), kept(&scene, &of("b"))), (vec![], vec![1]));
    let left = block_on(scene.store().consumers(&realm(), SINKS)).unwrap();
    assert_eq!(left, [("sink/b".to_owned(), 9)]);
}

#[test]
fn large_rows_are_read_a_few_at_a_time_and_none_is_skipped() {
    let scene = Scene::new();
    let store = scene.store();
    let mut a = Driver::new("r", "a");
    done(store.append(a.created()));
    for _ in 0..4 {
        let timer = "t".repeat(3 * 1024 * 1024);
        done(store.append(a.append(vec![Fact::TimerFired { timer }])));
    }
    let mut after = 0;
    let mut reads = Vec::new();
    loop {
        let rows = block_on(store.feed(&realm(), after, 100)).unwrap();
        let Some(last) = rows.last() else { break };
        after = last.cursor;
        reads.push(rows.len());
    }
    assert_eq!(reads, [3, 2], "a small one and two large ones, then the others");
}
