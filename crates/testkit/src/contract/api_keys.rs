//! The keys of a server: each is written against the version that is stored, and its last use is
//! noted beside it.

use super::driver::got;
use super::scene::Scene;
use futures::executor::block_on;
use futures::future::join;
use kernel::contracts::StoreError;
use kernel::contracts::identity::api_keys::{ApiKeys, StoredKey};
use kernel::identity::key::{ApiKey, KeyId};
use kernel::values::ids::Millis;
use serde_json::json;

const A: &str = "aaaaaaaaaa";
const B: &str = "bbbbbbbbbb";
const C: &str = "cccccccccc";

/// A key in the middle of a rotation, so that every member has a value but `revoked`.
pub fn new_key(id: &str, name: &str) -> ApiKey {
    let key = json!({
        "id": id,
        "name": name,
        "realms": {"*": ["viewer"], "shop-*": ["approver", "member"]},
        "scopes": ["read", "use"],
        "secrets": [{"sha256": "0f".repeat(32)}, {"sha256": "f0".repeat(32), "until": 5_000}],
        "by": "admin",
        "created": 1_000,
        "expires": 9_000,
    });
    serde_json::from_value(key).unwrap_or_else(|error| panic!("{error}"))
}

fn stored(key: &ApiKey, version: u64, used: Option<i64>) -> StoredKey {
    StoredKey { key: key.clone(), version, used: used.map(Millis) }
}

/// Notes all of these in one write.
fn note(keys: &dyn ApiKeys, uses: &[(&str, i64)]) {
    let uses: Vec<(KeyId, Millis)> =
        uses.iter().map(|(id, at)| (new_key(id, "any").id, Millis(*at))).collect();
    got(keys.note_uses(&uses));
}

fn used(keys: &dyn ApiKeys) -> Vec<Option<Millis>> {
    got(keys.all()).iter().map(|stored| stored.used).collect()
}

pub fn a_key_is_written_only_against_the_version_that_is_stored(scene: Scene) {
    let keys = scene.api_keys();
    let put = |name: &str, version: Option<u64>| block_on(keys.put(&new_key(A, name), version));
    let conflict = || Err(StoreError::Conflict(format!("API key {A}")));
    assert_eq!(put("of none", Some(1)), conflict());
    assert_eq!(put("of none", Some(0)), conflict());
    assert_eq!(got(keys.all()), []);
    assert_eq!(put("first", None), Ok(1));
    assert_eq!(put("first again", None), conflict());
    assert_eq!(put("second", Some(1)), Ok(2));
    assert_eq!(put("late", Some(1)), conflict());
    assert_eq!(put("ahead", Some(3)), conflict());
    assert_eq!(got(keys.all()), [stored(&new_key(A, "second"), 2, None)]);
}

pub fn of_two_who_write_a_key_at_once_one_is_refused(scene: Scene) {
    let keys = scene.api_keys();
    assert_eq!(got(keys.put(&new_key(A, "first"), None)), 1);
    let [one, other] = ["one", "other"].map(|name| new_key(A, name));
    let written = match block_on(join(keys.put(&one, Some(1)), keys.put(&other, Some(1)))) {
        (Ok(2), Err(StoreError::Conflict(_))) => &one,
        (Err(StoreError::Conflict(_)), Ok(2)) => &other,
        answers => panic!("one of them is written: {answers:?}"),
    };
    assert_eq!(got(keys.all()), [stored(written, 2, None)]);
}

pub fn keys_are_listed_by_id_and_one_that_was_revoked_stays(scene: Scene) {
    let keys = scene.api_keys();
    for id in [B, C, A] {
        assert_eq!(got(keys.put(&new_key(id, "new"), None)), 1);
    }
    let revoked = ApiKey { revoked: Some(Millis(2_000)), ..new_key(B, "revoked") };
    assert_eq!(got(keys.put(&revoked, Some(1))), 2);
    let listed = [
        stored(&new_key(A, "new"), 1, None),
        stored(&revoked, 2, None),
        stored(&new_key(C, "new"), 1, None),
    ];
    assert_eq!(got(keys.all()), listed);
    assert_eq!(got(scene.reopened().api_keys().all()), listed);
}

pub fn a_key_and_its_last_use_are_there_after_a_restart(scene: Scene) {
    let key = new_key(A, "a");
    assert_eq!(got(scene.api_keys().put(&key, None)), 1);
    note(scene.api_keys(), &[(A, 70)]);
    let scene = scene.reopened();
    assert_eq!(got(scene.api_keys().all()), [stored(&key, 1, Some(70))]);
    assert_eq!(got(scene.api_keys().put(&key, Some(1))), 2);
}

pub fn the_last_use_of_a_key_never_goes_back(scene: Scene) {
    let keys = scene.api_keys();
    for id in [A, B] {
        assert_eq!(got(keys.put(&new_key(id, "new"), None)), 1);
    }
    note(keys, &[(A, 50), (B, 60)]);
    note(keys, &[(A, 40), (B, 70)]);
    assert_eq!(used(keys), [Some(Millis(50)), Some(Millis(70))]);
    note(keys, &[(A, 90), (A, 80)]);
    // A use makes no new version, and a new version has the uses of the one before.
    assert_eq!(got(keys.put(&new_key(A, "changed"), Some(1))), 2);
    assert_eq!(used(keys), [Some(Millis(90)), Some(Millis(70))]);
}

pub fn the_use_of_a_key_that_is_not_there_is_ignored(scene: Scene) {
    let keys = scene.api_keys();
    let there = new_key(A, "there");
    let later = new_key(C, "later");
    assert_eq!(got(keys.put(&there, None)), 1);
    note(keys, &[(C, 10), (A, 20), (B, 30)]);
    assert_eq!(got(keys.all()), [stored(&there, 1, Some(20))]);
    assert_eq!(got(keys.put(&later, None)), 1);
    assert_eq!(got(keys.all()), [stored(&there, 1, Some(20)), stored(&later, 1, None)]);
}
