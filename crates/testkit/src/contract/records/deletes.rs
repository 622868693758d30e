//! Deletions: what goes, what stays because others refer to it, and all or none of many.

use super::scene::{Must, RecordsScene, got};
use kernel::values::ids::RealmId;
use query::records::error::{RecordError, Referrer};
use serde_json::{Value, json};

pub fn a_deleted_record_is_gone(scene: RecordsScene) {
    let scene = scene.furnished();
    let id = scene.ann().id_of("Depot", "two");
    assert_eq!(scene.ann().deleted("Depot", &id), Ok(()));
    assert_eq!(scene.ann().deleted("Depot", &id), Err(RecordError::NotFound));
    let scene = scene.reopened();
    let ann = scene.ann();
    assert_eq!(ann.get("Depot", &id), None);
    assert_eq!(ann.names("Depot", "", ""), ["one", "Three", "four"]);
    let again = ann.put("Depot", json!({"id": id, "refName": "two", "town": "rome"}));
    assert!(again.is_new);
}

pub fn a_record_that_others_refer_to_stays(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    let rome = ann.id_of("Town", "rome");
    let referrer = Referrer {
        record_type: "shop.Depot".to_owned(),
        id: ann.id_of("Depot", "two"),
        field: "town".to_owned(),
    };
    let blocked = |referrers| Err(RecordError::ReferentialIntegrity(referrers));
    assert_eq!(ann.deleted("Town", &rome), blocked(vec![referrer]));
    let clerk = scene.ann().seeing("Depot", "refName:one");
    assert_eq!(clerk.deleted("Town", &rome), blocked(Vec::new()), "it does not see the referrer");
    let clerk = scene.ann().without("Depot", "town");
    assert_eq!(clerk.deleted("Town", &rome), blocked(Vec::new()), "nor the field");
    let one = ann.id_of("Depot", "one");
    assert!(ann.deleted("Depot", &one).is_err(), "a slot of another refers to it");
    ann.deleted("Depot", &ann.id_of("Depot", "four")).must();
    assert_eq!(ann.deleted("Depot", &one), Ok(()));
    let own = ann.put("Depot", json!({"refName": "own", "town": "oslo"}));
    let slots = json!([{"next": "own"}]);
    ann.put("Depot", json!({"id": own.id, "town": "oslo", "slots": slots}));
    assert_eq!(ann.deleted("Depot", &own.id), Ok(()), "what refers to itself can go");
}

pub fn of_many_all_go_or_none(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    let delete =
        |query: &str, expected: Option<u64>| ann.deleted_many("Depot", query, expected, false);
    let not_met = RecordError::ExpectationNotMet { expected: 2, found: 3 };
    assert_eq!(delete("kind:side", Some(2)), Err(not_met));
    assert_eq!(delete("refName:nothing", Some(0)), Ok(0));
    let blocked = delete("refName:^[one,two]", None);
    assert!(matches!(blocked, Err(RecordError::ReferentialIntegrity(_))), "{blocked:?}");
    assert_eq!(ann.found("Depot", "").len(), 4);
    assert_eq!(delete("refName:^[one,four]", Some(2)), Ok(2), "one refers to the other");
    assert_eq!(ann.names("Depot", "", ""), ["two", "Three"]);
    for number in 0..6 {
        ann.put("Town", json!({"name": "many", "number": number}));
    }
    let many = |query: &str| ann.deleted_many("Town", query, None, false);
    assert_eq!(many("name:many"), Err(RecordError::TooManyMatches { max: 5 }));
    assert_eq!(many("name:many && number:>#0"), Ok(5));
    assert_eq!(ann.found("Town", "").len(), 4);
}

pub fn a_dry_run_deletes_nothing(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann().calling("dry");
    assert_eq!(ann.deleted_many("Depot", "kind:main", Some(1), true), Ok(1));
    let blocked = ann.deleted_many("Town", "", None, true);
    assert!(matches!(blocked, Err(RecordError::ReferentialIntegrity(_))), "{blocked:?}");
    assert_eq!(ann.found("Depot", "").len(), 4);
    assert_eq!(ann.deleted_many("Depot", "kind:main", None, false), Ok(1));
    assert_eq!(ann.found("Depot", "").len(), 3);
}

pub fn a_removed_realm_leaves_nothing(scene: RecordsScene) {
    let scene = scene.furnished();
    let elsewhere = scene.ann().in_realm("other").calling("one");
    let town = elsewhere.put("Town", json!({"refName": "here"}));
    assert_eq!(got(scene.store.remove_realm(RealmId::from("other"))), 1);
    assert_eq!(elsewhere.found("Town", ""), Vec::<Value>::new());
    assert_eq!(elsewhere.get("Town", &town.id), None);
    let again = elsewhere.put("Town", json!({"refName": "here"}));
    assert_ne!(again.id, town.id, "the outcome of the call is gone, too");
    let usage = got(scene.store.usage());
    let records: Vec<(&str, u64)> =
        usage.iter().map(|used| (used.realm.as_str(), used.records)).collect();
    assert_eq!(records, [("other", 1), ("r", 7)]);
    assert_eq!(got(scene.store.remove_realm(RealmId::from("nowhere"))), 0);
}
