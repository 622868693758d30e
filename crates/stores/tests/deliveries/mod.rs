//! The log of deliveries, and what sinks keep from being removed.

use super::{Driver, Scene, Threads, done, open, page, realm, three_runs, trim_at};
use futures::executor::block_on;
use kernel::contracts::{FeedStart, RETENTION, Realms, SINKS, Slice};
use kernel::event::Fact;
use kernel::ids::{Millis, RealmId, SessionId};
use kernel::limits::Limits;
use kernel::session::RunStatus;
use kernel::sink::{DeliveryFilter, DeliveryRow, DeliveryStatus};
use std::sync::Arc;

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
    let (realm, page) = (realm(), page(100, None));
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
fn deliveries_are_kept_with_the_sink_s_place_and_listed_newest_first() {
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
    let (all, nine) = (DeliveryFilter::default(), page(9, None));
    let foreign = block_on(log.deliveries(&elsewhere, &all, &nine));
    assert!(foreign.unwrap().items.is_empty());
    let scene = scene.reopened();
    assert_eq!((kept(&scene, &of("a")), place(&scene, "sink/a")), (vec![3, 2, 1], 9));
}

#[test]
fn a_delivery_has_one_row_that_is_brought_up_to_date() {
    let scene = Scene::new();
    let mut tried = row("a", 1, DeliveryStatus::Retrying);
    (tried.code, tried.error) = (Some(500), Some("answered 500".to_owned()));
    tried.next_at = Some(Millis(99));
    let event = tried.event.clone();
    keep(&scene, vec![tried.clone(), row("a", 2, DeliveryStatus::Delivered)], None);
    let found = || block_on(scene.opened.deliveries.delivery(&realm(), "a", &event)).unwrap();
    assert_eq!(found(), Some(tried));
    let mut done = row("a", 1, DeliveryStatus::Delivered);
    (done.attempts, done.first_at, done.last_at) = (2, Millis(50), Millis(50));
    keep(&scene, vec![done.clone()], None);
    // When it was tried first stays as it was.
    assert_eq!(found(), Some(DeliveryRow { first_at: Millis(10), ..done }));
    assert_eq!(kept(&scene, &of("a")), [2, 1]);
    let none = block_on(scene.opened.deliveries.delivery(&realm(), "b", &event));
    assert_eq!(none, Ok(None));
}

#[test]
fn of_each_sink_so_many_stay_and_failed_ones_longest() {
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
fn a_sink_begins_once_and_keeps_its_place_until_it_is_forgotten() {
    let scene = Scene::new();
    let store = scene.store();
    let mut a = Driver::new("r", "a");
    done(store.append(a.created()));
    done(store.append(a.next()));
    let end = block_on(store.feed_end()).unwrap();
    let begin = |name: &str, start| block_on(store.begin_consumer(&realm(), name, start)).unwrap();
    assert_eq!(begin("sink/new", FeedStart::Newest), end);
    assert_eq!(begin("sink/all", FeedStart::Oldest), 0);
    done(store.append(a.next()));
    assert_eq!(begin("sink/new", FeedStart::Newest), end, "it has its place");
    assert_eq!(begin("sink/new", FeedStart::Oldest), end);
    block_on(store.advance(&realm(), "nats", 2)).unwrap();
    let list = |realm: RealmId| block_on(store.consumers(&realm, SINKS)).unwrap();
    let both = [("sink/all".to_owned(), 0), ("sink/new".to_owned(), end)];
    assert_eq!((list(realm()), list("other".into())), (both.to_vec(), Vec::new()));
    let forget = |realm: RealmId| block_on(store.forget_consumer(&realm, "sink/new")).unwrap();
    assert_eq!((forget("other".into()), list(realm())), (false, both.to_vec()));
    assert_eq!((forget(realm()), forget(realm())), (true, false));
    assert_eq!((list(realm()), place(&scene, "nats")), (both[..1].to_vec(), 2));
    assert_eq!(begin("sink/new", FeedStart::Newest), end + 1, "a new one begins anew");
}

#[test]
fn a_sink_is_forgotten_with_its_log_and_stays_so() {
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

/// A session that is over, with one row in the feed.
fn over(scene: &Scene, realm: &str, id: &str) -> Driver {
    let mut driver = Driver::new(realm, id);
    driver.row.status = RunStatus::Completed;
    driver.row.run = Some(driver.run_row(1).id);
    done(scene.store().append(driver.created()));
    driver
}

#[test]
fn sessions_stay_until_every_sink_has_passed_them() {
    let scene = Scene::new();
    let store = scene.store();
    let (a, b) = (over(&scene, "r", "a"), over(&scene, "r", "b"));
    let other = over(&scene, "o", "a");
    let feed = block_on(store.feed(&realm(), 0, 9)).unwrap();
    let prune = || {
        let slice = Slice { after: 0, limit: 9 };
        let pruned = block_on(store.prune(Realms::AllBut(&[]), Millis(100), &[], slice));
        pruned.unwrap().removed
    };
    for sink in ["sink/slow", "sink/quick"] {
        block_on(store.begin_consumer(&realm(), sink, FeedStart::Oldest)).unwrap();
    }
    block_on(store.advance(&realm(), "sink/quick", feed[1].cursor)).unwrap();
    assert_eq!(prune(), [other.key().clone()], "another realm has no sinks");
    assert_eq!(place(&scene, RETENTION), 0);
    block_on(store.advance(&realm(), "sink/slow", feed[0].cursor)).unwrap();
    assert_eq!(prune(), [a.key().clone()]);
    assert_eq!(place(&scene, RETENTION), feed[0].cursor);
    // A sink that is forgotten holds nothing.
    assert_eq!(block_on(store.forget_consumer(&realm(), "sink/slow")), Ok(true));
    assert_eq!(prune(), [b.key().clone()]);
}

#[test]
fn a_session_is_removed_once_every_sink_has_passed_it() {
    let scene = Scene::new();
    let store = scene.store();
    let (a, b) = (over(&scene, "r", "a"), over(&scene, "r", "b"));
    let feed = block_on(store.feed(&realm(), 0, 9)).unwrap();
    let remove =
        |driver: &Driver| block_on(store.remove_sent(driver.key(), driver.row.known())).unwrap();
    for sink in ["sink/slow", "sink/quick"] {
        block_on(store.begin_consumer(&realm(), sink, FeedStart::Oldest)).unwrap();
    }
    block_on(store.advance(&realm(), "sink/quick", feed[1].cursor)).unwrap();
    block_on(store.advance(&realm(), "nats", 0)).unwrap();
    assert_eq!(remove(&a).as_deref(), Some("sink/slow"));
    block_on(store.advance(&realm(), "sink/slow", feed[0].cursor)).unwrap();
    assert_eq!((remove(&a), remove(&b).as_deref()), (None, Some("sink/slow")));
    let left = block_on(store.feed(&realm(), 0, 9)).unwrap();
    assert_eq!(left, feed[1..], "one is gone, the other is there");
    // Whoever insists removes it all the same, and another time there is nothing to do.
    block_on(store.remove(b.key(), b.row.known())).unwrap();
    assert_eq!(remove(&b), None);
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
    let (mut after, mut reads) = (0, Vec::new());
    loop {
        let rows = block_on(store.feed(&realm(), after, 100)).unwrap();
        let Some(last) = rows.last() else { break };
        after = last.cursor;
        reads.push(rows.len());
    }
    assert_eq!(reads, [3, 2], "a small one and two large ones, then the others");
}

#[test]
fn old_runs_stay_until_every_sink_has_passed_them() {
    let scene = Scene::new();
    let a = three_runs(&scene);
    let store = scene.store();
    let feed = block_on(store.feed(&realm(), 0, 9)).unwrap();
    block_on(store.begin_consumer(&realm(), "sink/a", FeedStart::Oldest)).unwrap();
    block_on(store.advance(&realm(), "sink/a", feed[2].cursor)).unwrap();
    assert_eq!(block_on(store.trim(trim_at(&a, 6, 2))), Ok(None), "event 6 is in the fourth row");
    assert_eq!(block_on(store.events(a.key(), 0, 1)).unwrap()[0].0, 1);
    block_on(store.advance(&realm(), "sink/a", feed[3].cursor)).unwrap();
    assert!(block_on(store.trim(trim_at(&a, 6, 2))).unwrap().is_some());
}

#[test]
fn a_database_of_before_gets_its_log() {
    let folder = Scene::new().closed();
    let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
    let as_before = "DROP TABLE deliveries; DELETE FROM migrations WHERE version = 5;";
    database.execute_batch(as_before).unwrap();
    drop(database);
    let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
    let scene = Scene { opened, folder };
    keep(&scene, vec![row("a", 1, DeliveryStatus::Delivered)], None);
    assert_eq!(kept(&scene, &of("a")), [1]);
}
