//! What every store must promise of the feed and its consumers.

use super::driver::{Driver, done, got, realm};
use super::scene::Scene;
use futures::executor::block_on;
use kernel::contracts::{FeedStart, SINKS};
use kernel::values::ids::RealmId;

pub fn the_feed_skips_nothing_and_never_goes_back(scene: Scene) {
    let mut a = Driver::new("r", "a");
    let mut b = Driver::new("r", "b");
    let mut elsewhere = Driver::new("other", "a");
    let first = a.created();
    let second = b.created();
    let third = a.next();
    let bodies = [first.body.clone(), second.body.clone(), third.body.clone()];
    done(scene.store().append(first));
    done(scene.store().append(elsewhere.created()));
    done(scene.store().append(second));
    done(scene.store().append(third));
    let feed = |after: u64, limit: usize| got(scene.store().feed(&realm(), after, limit));
    let rows = feed(0, 10);
    assert_eq!(rows.iter().map(|row| row.body.clone()).collect::<Vec<_>>(), bodies);
    assert_eq!(
        rows.iter().map(|row| row.session).collect::<Vec<_>>(),
        [a.row.id, b.row.id, a.row.id]
    );
    assert!(rows.is_sorted_by(|one, next| one.cursor < next.cursor));
    assert_eq!(feed(0, 1), rows[..1]);
    assert_eq!(feed(rows[0].cursor, 10), rows[1..]);
    // Rows of other realms are not ahead of anyone here.
    let ahead = |after: u64, max: usize| got(scene.store().feed_ahead(&realm(), after, max));
    assert_eq!((ahead(0, 10), ahead(0, 2), ahead(rows[0].cursor, 10)), (3, 2, 2));
    assert_eq!(ahead(rows[2].cursor, 10), 0);
    // The newest row goes, and its number with it; the end stays where it was.
    got(scene.store().remove(a.key(), a.row.known()));
    assert_eq!(block_on(scene.store().feed_end()), Ok(rows[2].cursor));
    done(scene.store().append(b.next()));
    let after = feed(rows[2].cursor, 10);
    assert_eq!(after.len(), 1);
    assert!(after[0].cursor > rows[2].cursor);
    assert_eq!(block_on(scene.store().feed_end()), Ok(after[0].cursor));
    // What is refused leaves no gap: the end is a row that is there.
    let refused = block_on(scene.store().append(Driver::new("r", "b").created()));
    assert!(refused.is_err());
    assert_eq!(block_on(scene.store().feed_end()), Ok(after[0].cursor));
}

pub fn a_consumer_moves_on_only(scene: Scene) {
    let at = |realm: &str| block_on(scene.store().consumer(&realm.into(), "nats"));
    assert_eq!(at("r"), Ok(0));
    got(scene.store().advance(&realm(), "nats", 7));
    got(scene.store().advance(&realm(), "nats", 5));
    assert_eq!((at("r"), at("other")), (Ok(7), Ok(0)));
}

pub fn a_sink_begins_once_and_keeps_its_place_until_it_is_forgotten(scene: Scene) {
    let store = scene.store();
    let mut a = Driver::new("r", "a");
    done(store.append(a.created()));
    done(store.append(a.next()));
    let end = got(store.feed_end());
    let begin = |name: &str, start| got(store.begin_consumer(&realm(), name, start));
    assert_eq!(begin("sink/new", FeedStart::Newest), end);
    assert_eq!(begin("sink/all", FeedStart::Oldest), 0);
    done(store.append(a.next()));
    assert_eq!(begin("sink/new", FeedStart::Newest), end, "it has its place");
    assert_eq!(begin("sink/new", FeedStart::Oldest), end);
    got(store.advance(&realm(), "nats", 2));
    let list = |realm: RealmId| got(store.consumers(&realm, SINKS));
    let both = [("sink/all".to_owned(), 0), ("sink/new".to_owned(), end)];
    assert_eq!((list(realm()), list("other".into())), (both.to_vec(), Vec::new()));
    let forget = |realm: RealmId| got(store.forget_consumer(&realm, "sink/new"));
    assert_eq!((forget("other".into()), list(realm())), (false, both.to_vec()));
    assert_eq!((forget(realm()), forget(realm())), (true, false));
    assert_eq!((list(realm()), scene.place("nats")), (both[..1].to_vec(), 2));
    assert_eq!(begin("sink/new", FeedStart::Newest), end + 1, "a new one begins anew");
}
