//! Saves: what is stored, against which version, and which keys no two records share.

use super::scene::{Must, RecordsScene, got, names};
use query::records::error::RecordError;
use query::records::requests::SaveMode;
use serde_json::{Value, json};

const ID: &str = "65a000000000000000000001";
const UUID: &str = "7d444840-9dc0-11d1-b245-5ffdce74fad2";

pub fn what_is_saved_is_there_after_a_restart(scene: RecordsScene) {
    let scene = scene.furnished();
    let before = scene.ann().found("Depot", "");
    let new = scene.ann().put("Town", json!({"_id": UUID, "other": {"a": [1, null, "ö"]}}));
    assert!(new.is_new);
    assert_eq!((new.id.as_str(), new.version), (UUID, 1));
    assert_eq!(new.record["other"], json!({"a": [1, null, "ö"]}));
    assert_eq!(new.record["dataDomain"]["ownerId"], "ann");
    let scene = scene.reopened();
    let ann = scene.ann();
    assert_eq!(ann.get("Town", UUID), Some(new.record.clone()));
    assert_eq!(ann.get("Town", &UUID.to_uppercase()), Some(new.record));
    assert_eq!(ann.found("Depot", ""), before);
    let one = ann.get("Depot", "ONE").must();
    assert_eq!(one["checked"], "2024-01-31T09:00:00Z");
    assert_eq!(
        (&one["kind"], &one["size"], &one["rent"]),
        (&json!("side"), &json!(10), &json!(19.9))
    );
    assert_eq!(ann.get("Depot", "two").must()["size"], 9_007_199_254_740_993_i64);
}

pub fn a_save_changes_one_version_or_nothing(scene: RecordsScene) {
    let ann = scene.ann();
    let saved = |version: Option<u64>, name: &str| {
        let entity = json!({"id": ID, "name": name});
        ann.saved_at(SaveMode::Put, "Town", entity, version).map(|saved| saved.version)
    };
    let conflict = |expected, found| Err(RecordError::VersionConflict { expected, found });
    assert_eq!(saved(Some(1), "a"), conflict(1, 0));
    assert_eq!(saved(Some(0), "b"), Ok(1));
    assert_eq!(saved(Some(0), "c"), conflict(0, 1));
    assert_eq!(saved(None, "d"), Ok(2));
    assert_eq!(saved(Some(1), "e"), conflict(1, 2));
    assert_eq!(saved(Some(2), "f"), Ok(3));
    assert_eq!(ann.get("Town", ID).must()["name"], "f");
}

pub fn an_id_is_taken_once(scene: RecordsScene) {
    let ann = scene.ann();
    let insert = |name: &str| ann.saved(SaveMode::Insert, "Town", json!({"id": ID, "name": name}));
    assert!(insert("first").is_ok());
    assert_eq!(insert("second"), Err(RecordError::DuplicateKey(vec!["id".to_owned()])));
    let other = ann.put("Town", json!({"name": "third"}));
    assert_ne!(other.id, ID);
    assert_eq!(other.record["refName"], other.id.as_str());
    assert_eq!(ann.found("Town", "name:first || name:third").len(), 2);
}

pub fn a_merge_finds_its_record_by_ref_name(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    let merge = |entity: Value| ann.saved(SaveMode::Merge, "Town", entity);
    let merged = merge(json!({"refName": "ÖLFUS", "mayor": null, "extra": 1})).must();
    assert!(!merged.is_new);
    assert_eq!(merged.version, 2);
    assert_eq!((merged.record.get("mayor"), &merged.record["name"]), (None, &json!("Ölfus")));
    assert_eq!(merge(json!({"refName": "nowhere"})), Err(RecordError::NotFound));
    assert_eq!(merge(json!({"id": ID, "name": "x"})), Err(RecordError::NotFound));
}

pub fn a_ref_name_is_unique_without_case_in_its_tenant(scene: RecordsScene) {
    let ann = scene.ann();
    ann.put("Town", json!({"refName": "Öre"}));
    let again = || json!({"refName": "öRE"});
    let taken = Err(RecordError::DuplicateKey(vec!["refName".to_owned()]));
    assert_eq!(ann.saved(SaveMode::Put, "Town", again()), taken);
    let elsewhere = ann.clone().of_tenant("south");
    let other = elsewhere.put("Town", again());
    assert_eq!(elsewhere.get("Town", "ÖRE").must()["id"], other.id.as_str());
    assert_ne!(ann.id_of("Town", "öre"), other.id);
    let renamed = json!({"id": ann.id_of("Town", "öre"), "refName": "ÖRE"});
    assert_eq!(ann.put("Town", renamed).record["refName"], "ÖRE");
    assert_eq!(ann.names("Town", "", "refName").len(), 2);
}

pub fn unique_fields_are_unique_together(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    let saved = |entity: Value| ann.saved(SaveMode::Put, "Depot", entity).map(|_| ());
    let taken = |fields: &[&str]| {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        Err(RecordError::DuplicateKey(fields))
    };
    assert_eq!(saved(json!({"town": "oslo", "code": "A-1"})), taken(&["code"]));
    assert_eq!(saved(json!({"town": "oslo", "size": 10, "rent": 20.0})), taken(&["size", "rent"]));
    assert_eq!(saved(json!({"town": "oslo", "size": 10})), Ok(()));
    assert_eq!(saved(json!({"town": "oslo", "size": 10})), Ok(()), "one field is missing");
    let freed = ann.id_of("Depot", "one");
    ann.saved(SaveMode::Merge, "Depot", json!({"id": freed, "code": "A-2"})).must();
    assert_eq!(saved(json!({"town": "oslo", "code": "A-1"})), Ok(()));
}

pub fn references_lead_to_records_that_are_there(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    let oslo = ann.id_of("Town", "oslo");
    let shown = json!({
        "entityId": oslo, "entityType": "shop.Town", "entityRefName": "oslo",
        "entityDisplayName": "oslo",
    });
    for given in [json!("OSLO"), json!(oslo), json!({"entityId": oslo}), shown.clone()] {
        let saved = ann.put("Depot", json!({"town": given}));
        assert_eq!(saved.record["town"], shown);
        assert_eq!(ann.get("Depot", &saved.id).must()["town"], shown);
    }
    for nowhere in [json!("paris"), json!(ID), json!({"refName": "one"})] {
        let refused = ann.saved(SaveMode::Put, "Depot", json!({"town": nowhere}));
        assert!(matches!(refused, Err(RecordError::InvalidEntity(_))), "{refused:?}");
    }
    let reference = format!("town:@@{oslo}");
    assert_eq!(ann.found("Depot", &reference).len(), 6);
    let ids = names(&ann.found("Depot", "town.entityRefName:rome"));
    assert_eq!(ids, ["two"]);
}

pub fn an_invalid_record_is_not_written(scene: RecordsScene) {
    let ann = scene.ann();
    for entity in [json!([]), json!({"name": 7}), json!({"refName": "ab"}), json!({"tags": "x"})] {
        let refused = ann.saved(SaveMode::Put, "Town", entity);
        assert!(matches!(refused, Err(RecordError::InvalidEntity(_))), "{refused:?}");
    }
    let refused = ann.saved(SaveMode::Put, "Town", json!({"id": "x"}));
    assert_eq!(refused, Err(RecordError::InvalidId("x".to_owned())));
    let long = json!({"name": "x".repeat(4_000)});
    let refused = ann.saved(SaveMode::Put, "Town", long);
    assert_eq!(refused, Err(RecordError::TooLarge { max: 4_000 }));
    assert_eq!(ann.found("Town", ""), Vec::<Value>::new());
    assert_eq!(got(scene.store.usage()), []);
}

pub fn realms_and_types_are_apart(scene: RecordsScene) {
    let here = scene.ann();
    let there = scene.ann().in_realm("other");
    here.put("Town", json!({"id": ID, "refName": "here"}));
    there.put("Town", json!({"id": ID, "refName": "there"}));
    assert_eq!(here.names("Town", "", ""), ["here"]);
    assert_eq!(there.names("Town", "realm:other", ""), ["there"]);
    assert_eq!(there.names("Town", "realm:r", ""), Vec::<String>::new());
    assert_eq!(there.get("Town", "here"), None);
    here.put("Depot", json!({"id": ID, "refName": "here", "town": ID}));
    assert_eq!(there.found("Depot", "").len(), 0);
    assert_eq!(there.deleted("Depot", ID), Err(RecordError::NotFound));
    assert_eq!(here.get("Town", ID).must()["version"], 1);
}
