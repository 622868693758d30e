//! Realms that are made and removed at run time: a name is given once, a removal refuses what comes
//! later, and a purge leaves nothing but the audit.

use super::api_keys::new_key;
use super::audit::{TestKeys, entry, state};
use super::driver::{Driver, call, closure, done, got, page, realm, starting};
use super::principals::record;
use super::scene::Scene;
use futures::executor::block_on;
use kernel::contracts::identity::realms::{LostEntries, RealmRecord, Removal, StoredRealms};
use kernel::contracts::{FeedStart, SessionFilter, StoreError};
use kernel::identity::audit::{ChainName, Entries};
use kernel::journal::projection::OnceRow;
use kernel::values::ids::{ContentHash, Millis, RealmId};
use std::sync::Arc;

/// More slices than any test here needs.
const SLICES_MAX: usize = 50;

fn made(name: &str) -> RealmRecord {
    RealmRecord { name: name.into(), by: "root".into(), created: Millis(5), removed: None }
}

fn removal() -> Removal {
    Removal { by: "boss".into(), at: Millis(9), purged: false }
}

fn conflict(name: &str) -> Result<(), StoreError> {
    Err(StoreError::Conflict(format!("realm {name}")))
}

fn remove(realms: &dyn StoredRealms, name: &str) -> Result<(), StoreError> {
    block_on(realms.remove_realm(&name.into(), &removal(), LostEntries::default(), Vec::new()))
}

/// Purges a realm to its end.
fn purge(realms: &dyn StoredRealms, realm: &RealmId) {
    let slices = (0..SLICES_MAX).take_while(|_| got(realms.purge_realm(realm))).count();
    assert!(slices < SLICES_MAX, "the purge of `{realm}` does not end");
}

pub fn a_realm_is_made_once_and_is_there_after_a_restart(scene: Scene) {
    let create = |name: &str| block_on(scene.realms().create_realm(&made(name), Entries::new()));
    assert_eq!(got(scene.realms().all_realms()), []);
    assert_eq!(create("shop"), Ok(()));
    assert_eq!(create("acme"), Ok(()));
    assert_eq!(create("shop"), conflict("shop"));
    assert_eq!(got(scene.realms().all_realms()), [made("acme"), made("shop")]);
    assert_eq!(got(scene.reopened().realms().all_realms()), [made("acme"), made("shop")]);
}

pub fn a_removed_realm_takes_no_write_and_its_name_is_not_given_again(scene: Scene) {
    let mut a = Driver::new("r", "a");
    let mut late = Driver::new("r", "late");
    got(scene.realms().create_realm(&made("r"), Entries::new()));
    assert_eq!(remove(scene.realms(), "other"), conflict("other"), "it was never made");
    done(scene.store().append(a.created()));
    assert_eq!(remove(scene.realms(), "r"), Ok(()));
    assert_eq!(remove(scene.realms(), "r"), conflict("r"), "it is removed");
    let removed = RealmRecord { removed: Some(removal()), ..made("r") };
    assert_eq!(got(scene.realms().all_realms()), std::slice::from_ref(&removed));
    let refused = || Err(StoreError::RealmRemoved("r".to_owned()));
    assert_eq!(block_on(scene.store().append(a.next())), refused());
    assert_eq!(block_on(scene.store().append(late.created())), refused());
    let scene = scene.reopened();
    assert_eq!(block_on(scene.store().append(Driver::new("r", "b").created())), refused());
    let again = block_on(scene.realms().create_realm(&made("r"), Entries::new()));
    assert_eq!(again, conflict("r"));
    done(scene.store().append(Driver::new("other", "a").created()));
    purge(scene.realms(), &realm());
    got(scene.realms().note_purged(&realm()));
    let purged = RealmRecord { removed: Some(Removal { purged: true, ..removal() }), ..removed };
    assert_eq!(got(scene.reopened().realms().all_realms()), [purged]);
}

pub fn a_realm_goes_with_what_could_enter_it_or_not_at_all(scene: Scene) {
    scene.audit().begin(Arc::new(TestKeys));
    let keys = scene.api_keys();
    let principals = scene.principals();
    let realms = scene.realms();
    let key = new_key("aaaaaaaaaa", "a key");
    let ann = record("ann", "Ann");
    got(keys.put(&key, None));
    got(principals.put_principal(&ann, None, Entries::new()));
    got(realms.create_realm(&made("r"), Entries::new()));
    let server = ChainName::server();
    let about = || vec![(ChainName::server(), vec![entry(1, "root", "realm.remove")])];
    let lost = |version: u64| LostEntries {
        keys: vec![(new_key("aaaaaaaaaa", "another name"), 1)],
        principals: vec![(record("ann", "Anna"), version)],
    };
    let remove =
        |version: u64| block_on(realms.remove_realm(&realm(), &removal(), lost(version), about()));
    assert_eq!(remove(2), Err(StoreError::Conflict("principal ann".to_owned())));
    assert_eq!(got(realms.all_realms()), [made("r")]);
    assert_eq!(got(keys.all())[0].key, key);
    assert_eq!(remove(1), Ok(()));
    let changed = &got(keys.all())[0];
    assert_eq!((changed.key.name.as_str(), changed.version), ("another name", 2));
    let changed = &got(principals.all_principals())[0];
    assert_eq!((&changed.record, changed.version), (&record("ann", "Anna"), 2));
    assert_eq!(state(scene.audit(), &server).head.seq, 1, "it is written once");
}

pub fn what_a_removed_realm_owned_is_purged_and_nothing_else(scene: Scene) {
    got(scene.realms().create_realm(&made("r"), Entries::new()));
    let store = scene.store();
    for name in ["r", "other"] {
        let name = RealmId::from(name);
        let mut a = Driver::new(name.as_str(), "a");
        done(store.append(a.created()));
        let mut started = starting(&mut a, 1, &closure("one"));
        started.once = Some(OnceRow {
            subject: "ann".into(),
            route: "POST /runs".to_owned(),
            key: "k".to_owned(),
            digest: ContentHash::of(b"body"),
            run: Some(a.run_row(1).id),
            ask: None,
            at: Millis(10),
        });
        done(store.append(started));
        done(store.append(a.asking(&["one"])));
        done(store.append(call(&mut a, &[0, 0, 0, 1], "x")));
        got(store.begin_consumer(&name, "sinks/file", FeedStart::Oldest));
    }
    assert_eq!(remove(scene.realms(), "r"), Ok(()));
    purge(scene.realms(), &realm());
    let other = RealmId::from("other");
    let sessions = |of: &RealmId| {
        got(store.sessions(of, &SessionFilter::default(), &page(10, None))).items.len()
    };
    let keyed = |of: &RealmId| got(store.once(of, "ann", &["POST /runs"], "k")).is_some();
    let asks = |of: &RealmId| got(store.open_asks(of)).len();
    let consumers = |of: &RealmId| got(store.consumers(of, "")).len();
    let feed = |of: &RealmId| got(store.feed(of, 0, 10)).len();
    let all = |of: &RealmId| {
        let pinned = got(store.closure(of, &closure("one").hash)).is_some();
        (sessions(of), keyed(of), asks(of), consumers(of), feed(of), pinned)
    };
    assert_eq!(all(&realm()), (0, false, 0, 0, 0, false));
    assert_eq!(all(&other), (1, true, 1, 1, 4, true));
}
