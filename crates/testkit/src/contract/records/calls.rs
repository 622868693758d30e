//! Calls: a write whose call id is known does nothing, and is answered as the first time.

use super::scene::{Must, NOW, Person, RecordsScene, got};
use futures::executor::block_on;
use kernel::values::ids::Millis;
use query::records::error::RecordError;
use query::records::requests::SaveMode;
use serde_json::json;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

pub fn a_call_writes_once(scene: RecordsScene) {
    let scene = scene.furnished();
    let first = scene.ann().calling("save").put("Town", json!({"name": "new"}));
    let delete = |person: Person<'_>| person.deleted_many("Depot", "kind:main", None, false);
    assert_eq!(delete(scene.ann().calling("delete")), Ok(1));
    let id = scene.ann().id_of("Depot", "four");
    assert_eq!(scene.ann().calling("one").deleted("Depot", &id), Ok(()));
    let scene = scene.reopened();
    let ann = scene.ann();
    ann.saved(SaveMode::Merge, "Town", json!({"id": first.id, "name": "newer"})).must();
    let again = scene.ann().calling("save").put("Town", json!({"name": "new"}));
    assert_eq!(again, first);
    assert_eq!(ann.names("Town", "name:^[new,newer]", "").len(), 1);
    ann.put("Depot", json!({"kind": "main", "town": "rome"}));
    assert_eq!(delete(scene.ann().calling("delete")), Ok(1));
    assert_eq!(ann.found("Depot", "kind:main").len(), 1);
    assert_eq!(scene.ann().calling("one").deleted("Depot", &id), Ok(()));
    let clerk = scene.ann().without("Town", "name").calling("save");
    let masked = clerk.put("Town", json!({"mayor": "Ida"}));
    assert_eq!((masked.id, masked.record.get("name")), (first.id, None));
}

pub fn a_call_that_was_refused_can_be_made_again(scene: RecordsScene) {
    let ann = scene.ann().calling("one");
    assert!(ann.saved(SaveMode::Put, "Depot", json!({"town": "oslo"})).is_err());
    scene.ann().put("Town", json!({"refName": "oslo"}));
    let saved = ann.put("Depot", json!({"town": "oslo"}));
    assert_eq!(ann.put("Depot", json!({"town": "oslo"})).id, saved.id);
    assert_eq!(ann.found("Depot", "").len(), 1);
}

pub fn a_call_stands_for_one_write_in_its_realm(scene: RecordsScene) {
    let ann = scene.ann().calling("one");
    let saved = ann.put("Town", json!({"refName": "oslo"}));
    let other = ann.saved(SaveMode::Put, "Depot", json!({"town": "oslo"}));
    assert_eq!(other, Err(RecordError::CallReused));
    assert_eq!(ann.deleted("Town", &saved.id), Err(RecordError::CallReused));
    let many = ann.deleted_many("Town", "", None, false);
    assert_eq!(many, Err(RecordError::CallReused));
    let asking = |asked: &str| scene.ann().calling("two").asking(asked);
    let rome = asking("rome").put("Town", json!({"refName": "rome"}));
    assert_eq!(asking("rome").put("Town", json!({"refName": "rome"})).id, rome.id);
    let bonn = asking("bonn").saved(SaveMode::Put, "Town", json!({"refName": "bonn"}));
    assert_eq!(bonn, Err(RecordError::CallReused));
    let elsewhere = ann.clone().in_realm("other").put("Town", json!({"refName": "oslo"}));
    assert_ne!(elsewhere.id, saved.id);
    assert_eq!(ann.found("Town", "").len(), 2);
}

pub fn an_outcome_is_forgotten_after_30_days(scene: RecordsScene) {
    let mut ann = scene.ann().calling("one");
    let first = ann.put("Town", json!({"name": "x"}));
    ann.at = Millis(NOW.0 + 30 * DAY_MS - 1);
    assert_eq!(ann.put("Town", json!({"name": "x"})).id, first.id);
    assert_eq!(got(scene.store.forget_outcomes(ann.at)), 0);
    ann.at = Millis(NOW.0 + 30 * DAY_MS);
    let second = ann.put("Town", json!({"name": "x"}));
    assert_ne!(second.id, first.id, "it is another call by now");
    assert_eq!(got(scene.store.forget_outcomes(ann.at)), 0, "that of the second is kept");
    assert_eq!(got(scene.store.forget_outcomes(Millis(NOW.0 + 60 * DAY_MS))), 1);
    assert_eq!(ann.found("Town", "").len(), 2);
}

pub fn a_closed_store_refuses(scene: RecordsScene) {
    let scene = scene.furnished();
    got(scene.store.close());
    let saved = scene.ann().saved(SaveMode::Put, "Town", json!({"name": "x"}));
    assert_eq!(saved, Err(RecordError::Closed));
    assert_eq!(block_on(scene.store.usage()), Err(RecordError::Closed));
    let counted = scene.ann().counted("Town", "", &[], &[]);
    assert_eq!(counted, Err(RecordError::Closed));
    assert_eq!(scene.reopened().ann().found("Town", "").len(), 3);
}
