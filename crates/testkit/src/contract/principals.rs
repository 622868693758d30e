//! Principals: each is written against the version that is stored, and stays.

use super::driver::got;
use super::scene::Scene;
use futures::executor::block_on;
use kernel::contracts::StoreError;
use kernel::contracts::identity::principals::StoredPrincipal;
use kernel::identity::audit::Entries;
use kernel::identity::principal::PrincipalRecord;
use serde_json::json;

/// A principal in which every member has a value.
pub(super) fn record(id: &str, name: &str) -> PrincipalRecord {
    let principal = json!({
        "id": id,
        "kind": "service",
        "name": name,
        "realms": {"*": ["viewer"], "shop-*": ["approver", "member"]},
        "defaultRealm": "shop",
        "realmOverrides": {"integration": "shop-eu"},
        "dataDomain": {"tenantId": "shop.test", "dataSegment": 3},
        "properties": {"floor": 7, "teams": ["a", "b"]},
        "identities": ["corp:1", "local"],
    });
    let record = json!({
        "id": id,
        "principal": principal,
        "disabled": 7,
        "by": "admin",
        "changed": 6,
    });
    serde_json::from_value(record).unwrap_or_else(|error| panic!("{error}"))
}

fn stored(record: PrincipalRecord, version: u64) -> StoredPrincipal {
    StoredPrincipal { record, version }
}

pub fn a_principal_is_written_only_against_the_version_that_is_stored(scene: Scene) {
    let store = scene.principals();
    let put = |name: &str, version: Option<u64>| {
        block_on(store.put_principal(&record("ann", name), version, Entries::new()))
    };
    let conflict = || Err(StoreError::Conflict("principal ann".to_owned()));
    assert_eq!(put("of none", Some(1)), conflict());
    assert_eq!(got(store.all_principals()), []);
    assert_eq!(put("first", None), Ok(1));
    assert_eq!(put("first again", None), conflict());
    assert_eq!(put("second", Some(1)), Ok(2));
    assert_eq!(put("late", Some(1)), conflict());
    assert_eq!(got(store.all_principals()), [stored(record("ann", "second"), 2)]);
}

pub fn principals_are_listed_by_id_and_are_there_after_a_restart(scene: Scene) {
    let alone = PrincipalRecord { principal: None, ..record("bob", "") };
    for record in [record("cyn", "Cyn"), record("ann", "Ann"), alone.clone()] {
        assert_eq!(got(scene.principals().put_principal(&record, None, Entries::new())), 1);
    }
    let all = [stored(record("ann", "Ann"), 1), stored(alone, 1), stored(record("cyn", "Cyn"), 1)];
    assert_eq!(got(scene.principals().all_principals()), all);
    assert_eq!(got(scene.reopened().principals().all_principals()), all);
}
