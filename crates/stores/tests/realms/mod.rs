//! A removed realm in the embedded store: blobs and definitions, which the contract suite has not.

use super::Scene;
use super::backups::files_below;
use futures::executor::block_on;
use kernel::contracts::identity::realms::{LostEntries, RealmRecord, Removal};
use kernel::contracts::{Definition, Precondition, StoreError};
use kernel::values::ids::{ContentHash, Millis, RealmId};
use serde_json::json;
use stores::OpenStore;

#[test]
fn a_removed_realm_loses_its_blobs_and_its_definitions_and_takes_no_more_of_them() {
    let scene = Scene::new();
    let OpenStore { blobs, definitions, realms, .. } = &scene.opened;
    let gone = RealmId::from("acme");
    let stays = RealmId::from("other");
    let plan = || Definition {
        kind: "plan".to_owned(),
        name: "a".to_owned(),
        version: 0,
        body: json!({}),
        updated_at: Millis(0),
        by: None,
    };
    let texts = ["one", "two", "three"];
    for realm in [&gone, &stays] {
        let record = RealmRecord {
            name: realm.clone(),
            by: "root".into(),
            created: Millis(1),
            removed: None,
        };
        block_on(realms.create_realm(&record, Vec::new())).unwrap();
        block_on(definitions.put(realm, plan(), Precondition::default())).unwrap();
        for text in texts {
            block_on(blobs.put(realm, text.into())).unwrap();
        }
    }
    let removal = Removal { by: "root".into(), at: Millis(2), purged: false };
    let removed = realms.remove_realm(&gone, &removal, LostEntries::default(), Vec::new());
    block_on(removed).unwrap();
    let refused = || StoreError::RealmRemoved("acme".to_owned());
    assert_eq!(block_on(blobs.put(&gone, b"late".to_vec())), Err(refused()));
    assert_eq!(block_on(definitions.put(&gone, plan(), Precondition::default())), Err(refused()));
    let folder = scene.folder.path().join("data/blobs");
    assert!(folder.join("acme").is_dir());
    while block_on(blobs.purge(&gone)).unwrap() {}
    while block_on(realms.purge_realm(&gone)).unwrap() {}
    assert!(!folder.join("acme").exists() && folder.join("other").is_dir());
    assert_eq!(block_on(blobs.purge(&gone)), Ok(false), "nothing is left");
    assert_eq!(block_on(definitions.counts()).unwrap(), [(stays.clone(), 1)]);
    for text in texts {
        let hash = ContentHash::of(text.as_bytes());
        assert_eq!(block_on(blobs.get(&gone, &hash)).unwrap(), None);
        assert_eq!(block_on(blobs.get(&stays, &hash)).unwrap(), Some(text.into()));
    }
}

/// What no file of a removed realm's server may hold any more.
const CANARY: &str = "canary-of-the-removed-realm";

#[test]
fn a_purged_realm_leaves_no_text_in_any_file() {
    let scene = Scene::new();
    let OpenStore { blobs, definitions, realms, .. } = &scene.opened;
    let gone = RealmId::from("acme");
    let stays = RealmId::from("other");
    for realm in [&gone, &stays] {
        let record = RealmRecord {
            name: realm.clone(),
            by: "root".into(),
            created: Millis(1),
            removed: None,
        };
        block_on(realms.create_realm(&record, Vec::new())).unwrap();
    }
    // Rows of both realms, of many sizes and in turns: pages are split and rows move.
    for number in 0..150 {
        for (realm, text) in [(&gone, CANARY), (&stays, "kept")] {
            let definition = Definition {
                kind: "plan".to_owned(),
                name: format!("p{}", number * 7 % 150),
                version: 0,
                body: json!({"text": text.repeat(1 + number * number % 41)}),
                updated_at: Millis(0),
                by: None,
            };
            block_on(definitions.put(realm, definition, Precondition::default())).unwrap();
        }
    }
    block_on(blobs.put(&gone, CANARY.into())).unwrap();
    let removal = Removal { by: "root".into(), at: Millis(2), purged: false };
    let removed = realms.remove_realm(&gone, &removal, LostEntries::default(), Vec::new());
    block_on(removed).unwrap();
    while block_on(blobs.purge(&gone)).unwrap() {}
    while block_on(realms.purge_realm(&gone)).unwrap() {}
    block_on(realms.note_purged(&gone)).unwrap();
    assert_eq!(block_on(definitions.counts()).unwrap(), [(stays, 150)]);
    let folder = scene.closed();
    for file in files_below(folder.path()) {
        let bytes = std::fs::read(&file).unwrap();
        let is_there = bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes());
        assert!(!is_there, "{} has text of the removed realm", file.display());
    }
}
