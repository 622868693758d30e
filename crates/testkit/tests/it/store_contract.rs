//! The contract suite over every store that there is, what several nodes see of one, and whether
//! two stores give the same answers. `WAYPOST_SEED` chooses the seed of the last.

use futures::executor::block_on;
use kernel::contracts::{
    CommitNotice, Feed, Journal, LoadResult, Ownership, Retention, Store, StoreError,
};
use kernel::journal::projection::Append;
use kernel::values::ids::{Fence, Millis};
use std::io::Write;
use std::sync::{Arc, Mutex};
use testkit::contract::arms::{ModelArm, SqliteArm};
use testkit::contract::differential::{Comparison, differences};
use testkit::contract::driver::{Driver, done, got};
use testkit::contract::scene::limits;
use testkit::model_store::{ModelState, ModelStore};

mod sqlite {
    testkit::store_contract!(super::SqliteArm::new());
}

mod model {
    testkit::store_contract!(super::ModelArm::new(1));
}

mod model_of_another_seed {
    testkit::store_contract!(super::ModelArm::new(2));
}

/// How many operations two stores are compared by.
const OPERATIONS: u64 = 4_000;

#[test]
fn two_stores_give_the_same_answers() {
    let seed = std::env::var("WAYPOST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let line = format!("two stores, {OPERATIONS} operations: WAYPOST_SEED={seed}");
    let _ = writeln!(std::io::stderr(), "{line}");
    let Comparison { refused, wrong } =
        differences(&SqliteArm::new(), &ModelArm::new(seed), seed, OPERATIONS);
    assert!(wrong.is_none(), "{line}\n{}", wrong.unwrap_or_default());
    // Too many refusals would compare nothing, and without any nothing was tried.
    assert!(refused > OPERATIONS / 100 && refused < OPERATIONS / 2, "{refused} were refused");
}

fn two_nodes() -> (ModelStore, ModelStore) {
    let state = ModelState::new(3, limits().tally_reasons_max);
    (ModelStore::open(&state, "one"), ModelStore::open(&state, "two"))
}

/// An append that says whether its session is owned afterwards.
fn owned(append: Append, owned: bool) -> Append {
    Append { owned, ..append }
}

#[test]
fn of_two_nodes_that_decided_on_one_state_one_is_refused() {
    let (one, two) = two_nodes();
    let mut a = Driver::new("r", "a");
    done(one.append(a.created()));
    assert_eq!(got(two.load(a.key(), Some(a.row.known()))), LoadResult::Unchanged);
    let mut other = a.clone();
    done(two.append(other.next()));
    let conflict = || Err(StoreError::Conflict("r/session/a".into()));
    assert_eq!(block_on(one.append(a.clone().next())), conflict());
    // A later load knows what the other did.
    let LoadResult::Found(stored) = got(one.load(a.key(), Some(a.row.known()))) else {
        panic!("it has changed")
    };
    assert_eq!((stored.fence, stored.tail.len()), (Fence(2), 2));
    done(one.append(other.clone().next()));
    assert_eq!(block_on(two.remove(other.key(), other.row.known())), conflict());
}

#[test]
fn a_session_that_moves_is_its_owner_s_until_it_rests_or_the_owner_is_gone() {
    let state = ModelState::new(3, limits().tally_reasons_max);
    let one = ModelStore::open(&state, "one");
    let two = ModelStore::open(&state, "two");
    let mut a = Driver::new("r", "a");
    a.row.wake_at = Some(Millis(10));
    done(one.append(owned(a.created(), true)));
    assert_eq!(got(two.claim(Millis(50), 9)), []);
    let conflict = Err(StoreError::Conflict("r/session/a".into()));
    assert_eq!(block_on(two.append(a.clone().next())), conflict);
    assert!(matches!(got(two.load(a.key(), None)), LoadResult::Found(_)));
    done(one.append(owned(a.next(), false)));
    done(two.append(owned(a.next(), true)));
    // One that starts anew finds what the other drives, and what it drove itself before.
    drop(one);
    let one = ModelStore::open(&state, "one");
    assert_eq!(got(one.claim(Millis(50), 9)), []);
    let again = ModelStore::open(&state, "two");
    assert_eq!(block_on(two.append(a.clone().next())), Err(StoreError::Closed));
    assert_eq!(got(again.claim(Millis(50), 9)), [a.key().clone()]);
    assert_eq!(got(one.claim(Millis(50), 9)), [], "it is claimed");
}

#[test]
fn a_commit_of_one_node_wakes_the_other_and_is_in_its_feed() {
    let (one, two) = two_nodes();
    let woken = Arc::new(Mutex::new(Vec::new()));
    let heard = woken.clone();
    two.on_commit(Arc::new(move |commits: &[CommitNotice<'_>]| {
        let told = commits.iter().map(|commit| (commit.key.clone(), commit.appended.is_some()));
        heard.lock().unwrap().extend(told);
    }));
    let mut a = Driver::new("r", "a");
    let mut b = Driver::new("r", "b");
    // Queued here first, and committed there first: rows are numbered by commits.
    let queued = one.append(a.created());
    done(two.append(b.created()));
    done(queued);
    let mut heard = woken.lock().unwrap().clone();
    heard.sort();
    // What it did not write itself it does not know.
    assert_eq!(heard, [(a.key().clone(), false), (b.key().clone(), true)]);
    let rows = got(one.feed(&a.key().realm, 0, 9));
    assert_eq!(rows, got(two.feed(&a.key().realm, 0, 9)));
    assert_eq!(rows.iter().map(|row| row.cursor).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(rows[0].key, *b.key());
}
