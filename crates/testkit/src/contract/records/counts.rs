//! What is counted, and how much is stored.

use super::scene::{Must, RecordsScene, got};
use query::evaluate::Row;
use query::evaluate::group::{Function, group};
use query::records::error::RecordError;
use serde_json::json;

pub fn groups_are_those_of_the_evaluator(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    let measures = [
        (Function::Count, ""),
        (Function::Count, "size"),
        (Function::Sum, "rent"),
        (Function::Avg, "slots.load"),
        (Function::Min, "checked"),
        (Function::Max, "town.entityRefName"),
        (Function::Max, "size"),
    ];
    let groupings: [&[&str]; 6] =
        [&[], &["kind"], &["open"], &["kind", "size"], &["slots.name"], &["opened"]];
    for by in groupings {
        for query in ["", "rent:>#0", "refName:nothing"] {
            let count = ann.count_of("Depot", query, by, &measures);
            let all = ann.found("Depot", query);
            let rows = all.iter().map(|record| Row { realm: "r", record });
            let grouping = count.grouping.as_ref().must();
            let expected = group(grouping, rows);
            let counted = ann.counted("Depot", query, by, &measures).must();
            assert_eq!(counted.groups, expected, "{by:?}: {query}");
            assert_eq!(counted.count, all.len() as u64, "{by:?}: {query}");
        }
    }
    let kinds = ann.counted("Depot", "", &["kind"], &[(Function::Sum, "size")]).must();
    let expected = json!([
        {"kind": "main", "Sum size": 9_007_199_254_740_993_i64},
        {"kind": "side", "Sum size": 20},
    ]);
    assert_eq!(json!(kinds.groups), expected);
}

pub fn there_are_not_more_groups_than_allowed(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    let by_town = ann.counted("Depot", "", &["town.entityId"], &[]).must();
    assert_eq!(by_town.groups.len(), 3);
    let by_name = ann.counted("Depot", "", &["refName"], &[]);
    assert_eq!(by_name, Err(RecordError::TooManyGroups { max: 3 }));
    let by_some = ann.counted("Depot", "refName:!four", &["refName"], &[]).must();
    assert_eq!(by_some.groups.len(), 3);
}

pub fn usage_is_counted_by_realm_and_owner(scene: RecordsScene) {
    let ann = scene.ann();
    let mut bob = scene.ann().in_realm("b");
    bob.author.subject = "bob".into();
    ann.put("Town", json!({"refName": "one"}));
    ann.put("Town", json!({"refName": "two"}));
    let short = bob.put("Town", json!({"refName": "one"}));
    let used = || {
        let usage = got(scene.store.usage());
        let shown = usage
            .iter()
            .map(|used| (used.realm.to_string(), used.owner.clone(), used.records, used.bytes));
        shown.collect::<Vec<_>>()
    };
    let before = used();
    let owners: Vec<(&str, &str, u64)> = before
        .iter()
        .map(|(realm, owner, records, _)| (realm.as_str(), owner.as_str(), *records))
        .collect();
    assert_eq!(owners, [("b", "bob", 1), ("r", "ann", 2)]);
    let grown = json!({"id": short.id, "name": "x".repeat(1_000)});
    bob.put("Town", grown);
    let after = used();
    assert!(after[0].3 >= before[0].3 + 1_000, "{before:?} {after:?}");
    assert_eq!(after[1], before[1]);
    bob.deleted("Town", &short.id).must();
    assert_eq!(used(), [before[1].clone()]);
}
