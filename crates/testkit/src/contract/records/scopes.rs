//! What a caller may reach: everything else is as if it were not there.

use super::scene::{Must, RecordsScene, names};
use query::evaluate::group::Function;
use query::records::error::RecordError;
use query::records::requests::{Page, SaveMode, Saved};
use query::records::scope::CallerScope;
use serde_json::{Value, json};

pub fn rows_outside_the_scope_are_not_there(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    let clerk = scene.ann().seeing("Depot", "size:10").seeing("Depot", "rent:<#20");
    let two = ann.id_of("Depot", "two");
    assert_eq!(clerk.names("Depot", "", ""), ["one"]);
    for query in ["refName:two", "code:!A-1", "text(rome)", "kind:main || refName:three"] {
        assert_eq!(clerk.found("Depot", query), Vec::<Value>::new(), "{query}");
    }
    let page = Page { limit: 1, ..Page::default() };
    let found = clerk.page("Depot", "", "", page).must();
    assert_eq!((found.total, found.next), (Some(1), None));
    let counted = clerk.counted("Depot", "", &["kind"], &[(Function::Max, "size")]).must();
    assert_eq!(counted.count, 1);
    assert_eq!(counted.groups, [json!({"kind": "side", "Max size": 10})]);
    assert_eq!((clerk.get("Depot", "two"), clerk.get("Depot", &two)), (None, None));
    assert_eq!(clerk.deleted("Depot", &two), Err(RecordError::NotFound));
    assert_eq!(clerk.deleted_many("Depot", "kind:main", None, false), Ok(0));
    let change = json!({"id": two, "rent": 1});
    for mode in [SaveMode::Put, SaveMode::Merge] {
        let refused = clerk.saved(mode, "Depot", change.clone());
        assert_eq!(refused, Err(RecordError::NotFound));
    }
    // A cursor of another caller leads no further than one's own rows.
    let page = Page { limit: 1, ..Page::default() };
    let after = ann.page("Depot", "", "", page).must().next;
    let found = clerk.page("Depot", "", "", Page { after, skip: 0, limit: 9 }).must();
    assert_eq!(found.rows, Vec::<Value>::new());
    assert_eq!(ann.get("Depot", &two).must()["version"], 1);
}

pub fn a_save_fits_its_scope_before_and_after(scene: RecordsScene) {
    let scene = scene.furnished();
    let clerk = scene.ann().seeing("Depot", "kind:side");
    let id = clerk.id_of("Depot", "one");
    let save = |entity: Value| clerk.saved(SaveMode::Merge, "Depot", entity).map(|_| ());
    assert_eq!(save(json!({"id": id, "kind": "main"})), Err(RecordError::OutOfScope));
    assert_eq!(save(json!({"id": id, "rent": 3})), Ok(()));
    let new = json!({"town": "oslo", "kind": "main"});
    assert_eq!(clerk.saved(SaveMode::Put, "Depot", new), Err(RecordError::OutOfScope));
    assert_eq!(scene.ann().names("Depot", "kind:main", ""), ["two"]);
}

pub fn hidden_fields_are_kept_and_never_shown(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    let clerk = scene
        .ann()
        .without("Depot", "rent")
        .without("Depot", "slots.load")
        .without("Town", "displayName");
    let one = clerk.get("Depot", "one").must();
    assert_eq!(one.get("rent"), None);
    assert_eq!(one["slots"], json!([{"name": "s1"}, {"name": "s2"}]));
    assert_eq!(one["town"].get("entityDisplayName"), None);
    assert_eq!(clerk.found("Depot", "refName:one"), std::slice::from_ref(&one));
    let found = clerk.found("Depot", "refName:one && expand(town)");
    assert_eq!(found[0]["town"].get("displayName"), None);
    let mut changed = one.clone();
    changed["size"] = json!(11);
    changed["slots"] = json!([{"name": "s2"}, {"name": "s1"}]);
    let saved = clerk.put("Depot", changed);
    assert_eq!((saved.record.get("rent"), &saved.record["size"]), (None, &json!(11)));
    let whole = ann.get("Depot", "one").must();
    assert_eq!(whole["rent"], 19.9);
    assert_eq!(whole["slots"], json!([{"name": "s2", "load": 7}, {"name": "s1", "load": 1.5}]));
    let named = clerk.saved(SaveMode::Put, "Depot", json!({"town": "oslo", "rent": 1}));
    let unknown = clerk.saved(SaveMode::Put, "Depot", json!({"town": "oslo", "zzzz": 1}));
    let mistake = |refused: Result<Saved, RecordError>| match refused {
        Err(RecordError::InvalidEntity(mistakes)) => mistakes[0].message.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(mistake(named), mistake(unknown));
    let taken = json!({"town": "oslo", "size": 11, "code": "A-3"});
    let mut taken = clerk.put("Depot", taken).record;
    taken["rent"] = json!(19.9);
    let refused = ann.saved(SaveMode::Put, "Depot", taken);
    let both = vec!["size".to_owned(), "rent".to_owned()];
    assert_eq!(refused, Err(RecordError::DuplicateKey(both)));
}

pub fn what_is_embedded_is_in_scope(scene: RecordsScene) {
    let scene = scene.furnished();
    let clerk = scene.ann().seeing("Town", "name:!rome");
    assert_eq!(clerk.found("Depot", "refName:two && expand(town)")[0]["town"], Value::Null);
    assert_eq!(clerk.found("Depot", "refName:one && expand(town)")[0]["town"]["name"], "oslo");
    for town in [json!("rome"), json!(scene.ann().id_of("Town", "rome"))] {
        let refused = clerk.saved(SaveMode::Put, "Depot", json!({"town": town}));
        assert!(matches!(refused, Err(RecordError::InvalidEntity(_))), "{refused:?}");
    }
    // What was referred to before can stay.
    let kept = clerk.saved(SaveMode::Merge, "Depot", json!({"refName": "two", "rent": 1}));
    assert_eq!(kept.must().record["town"]["entityRefName"], "rome");
}

pub fn a_type_that_is_not_admitted_is_empty(scene: RecordsScene) {
    let scene = scene.furnished();
    let mut clerk = scene.ann();
    clerk.scope = CallerScope::default();
    clerk.scope.admit(scene.of_type("Depot"));
    assert_eq!(clerk.found("Town", ""), Vec::<Value>::new());
    assert_eq!(clerk.counted("Town", "", &[], &[]).must().count, 0);
    let new = clerk.saved(SaveMode::Put, "Town", json!({"name": "x"}));
    assert_eq!(new, Err(RecordError::OutOfScope));
    assert_eq!(names(&clerk.found("Depot", "")).len(), 4);
    assert_eq!(clerk.found("Depot", "refName:one && expand(town)")[0]["town"], Value::Null);
}
