//! The audit in the embedded store: entries are written with what they are about or not at all,
//! chains stay whole over restarts and pruning, and what is done to the database behind our back is
//! found.

use super::{Scene, open};
use futures::executor::block_on;
use kernel::contracts::audit::{Audit, AuditFilter, ChainState, Found};
use kernel::contracts::{Page, StoreError};
use kernel::identity::audit::{ChainName, Entry, Mac, Object};
use kernel::identity::chain::{ChainKeys, Flaw, Head, Verified, Verifier};
use kernel::journal::projection::Append;
use kernel::limits::Limits;
use kernel::values::ids::{ContentHash, Millis};
use std::sync::Arc;
use testkit::contract::api_keys::new_key;
use testkit::contract::arms::Threads;
use testkit::contract::driver::Driver;

/// Macs that a test can make: a hash with the key's name in front.
struct TestKeys;

impl ChainKeys for TestKeys {
    fn name(&self) -> &str {
        "k1"
    }

    fn mac(&self, key: &str, parts: &[&[u8]]) -> Option<Mac> {
        let mut all = key.as_bytes().to_vec();
        for part in parts {
            all.extend((part.len() as u64).to_be_bytes());
            all.extend_from_slice(part);
        }
        (key == "k1").then(|| ContentHash::of(&all).as_str().parse().unwrap())
    }

    fn digest(&self, bytes: &[u8]) -> Mac {
        self.mac("k1", &[bytes]).unwrap()
    }
}

fn realm() -> ChainName {
    ChainName::of(&"r".into())
}

fn entry(at: i64, subject: &str, act: &'static str) -> Entry {
    Entry::new(Millis(at), subject.into(), act, Object::new("tool", "math::add"))
}

/// A store whose audit has keys.
fn begun() -> Scene {
    let scene = Scene::new();
    scene.opened.audit.begin(Arc::new(TestKeys));
    scene
}

fn audit(scene: &Scene) -> &dyn Audit {
    &*scene.opened.audit
}

fn write(scene: &Scene, chain: ChainName, entries: Vec<Entry>) {
    block_on(audit(scene).write(vec![(chain, entries)])).unwrap();
}

/// A chain of the realm `r` with so many rows, of which the first comes with an append.
fn chained(rows: i64) -> Scene {
    let scene = begun();
    let append = Append { audit: vec![entry(1, "ann", "run")], ..Driver::new("r", "a").created() };
    block_on(scene.store().append(append)).unwrap();
    for at in 2..=rows {
        write(&scene, realm(), vec![entry(at, "ann", "call"), entry(at, "bob", "read")]);
    }
    scene
}

fn state(scene: &Scene) -> ChainState {
    let chains = block_on(audit(scene).chains()).unwrap();
    chains.into_iter().find(|state| state.chain == realm()).unwrap()
}

fn verified(scene: &Scene, known: &[Head]) -> Verified {
    let ChainState { chain, base, head } = state(scene);
    let mut verifier = Verifier::new(&TestKeys, chain.clone(), base.as_ref(), known.to_vec());
    let mut after = base.map_or(0, |base| base.head.seq);
    loop {
        let rows = block_on(audit(scene).rows(&chain, after, 2)).unwrap();
        let Some(last) = rows.last() else { return verifier.end(&head) };
        after = last.seq;
        rows.iter().for_each(|row| verifier.take(row));
    }
}

/// The same folder after this SQL was run on it.
fn changed_by(scene: Scene, sql: &str) -> Scene {
    let folder = scene.closed();
    let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
    database.execute_batch(sql).unwrap();
    drop(database);
    let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
    opened.audit.begin(Arc::new(TestKeys));
    Scene { opened, folder }
}

#[test]
fn an_append_and_its_entries_are_written_together_or_not_at_all() {
    let scene = begun();
    let mut a = Driver::new("r", "a");
    let mut stale = a.clone();
    let created = Append { audit: vec![entry(1, "ann", "run")], ..a.created() };
    block_on(scene.store().append(created)).unwrap();
    let refused = Append { audit: vec![entry(2, "bob", "run")], ..stale.created() };
    assert!(block_on(scene.store().append(refused)).is_err());
    assert_eq!(state(&scene).head.seq, 1);
    let page = Page { cursor: None, limit: 10 };
    let found = block_on(audit(&scene).entries(&realm(), &AuditFilter::default(), &page)).unwrap();
    assert_eq!(found.items, [Found { seq: 1, entry: entry(1, "ann", "run") }]);
    assert_eq!(verified(&scene, &[]).found, []);
}

#[test]
fn nothing_is_written_without_keys() {
    let scene = Scene::new();
    let mut a = Driver::new("r", "a");
    let plain = a.clone().created();
    let append = Append { audit: vec![entry(1, "ann", "run")], ..a.created() };
    let error = block_on(scene.store().append(append)).unwrap_err();
    assert!(matches!(&error, StoreError::Failed(why) if why.contains("keys")), "{error}");
    assert_eq!(block_on(audit(&scene).chains()).unwrap(), []);
    block_on(scene.store().load(Driver::new("r", "a").key(), None)).unwrap();
    block_on(scene.store().append(plain)).unwrap();
}

#[test]
fn a_key_and_its_entry_are_written_together() {
    let scene = begun();
    let keys = &scene.opened.api_keys;
    let key = new_key("aaaaaaaaaa", "a");
    let about = || vec![(ChainName::server(), vec![entry(1, "ann", "key.create")])];
    assert_eq!(block_on(keys.put_audited(&key, None, about())), Ok(1));
    assert!(block_on(keys.put_audited(&key, None, about())).is_err());
    let chains = block_on(audit(&scene).chains()).unwrap();
    assert_eq!(chains.iter().map(|state| state.head.seq).collect::<Vec<_>>(), [1]);
}

#[test]
fn chains_are_apart_and_go_on_after_a_restart() {
    let scene = chained(3);
    write(&scene, ChainName::server(), vec![entry(9, "admin", "server.start")]);
    let before = state(&scene).head;
    let scene = changed_by(scene, "");
    assert_eq!(state(&scene).head, before);
    write(&scene, realm(), vec![entry(10, "ann", "call")]);
    assert_eq!(verified(&scene, &[before]), Verified { rows: 4, ..Verified::default() });
    let chains = block_on(audit(&scene).chains()).unwrap();
    let heads: Vec<(&str, u64)> =
        chains.iter().map(|state| (state.chain.as_str(), state.head.seq)).collect();
    assert_eq!(heads, [("*", 1), ("r", 4)]);
}

#[test]
fn each_change_of_the_database_is_found() {
    for sql in [
        "UPDATE audit SET body = replace(body, 'ann', 'eve') WHERE seq = 2;",
        "UPDATE audit SET at = 7 WHERE seq = 1;",
        "UPDATE audit SET chain = '*' WHERE seq = 3;",
        "UPDATE audit SET mac = zeroblob(32) WHERE seq = 4;",
        "UPDATE audit SET mac = x'00' WHERE seq = 4;",
        "DELETE FROM audit WHERE seq = 1;",
        "DELETE FROM audit WHERE seq = 3;",
        "DELETE FROM audit WHERE seq = 5;",
        "DELETE FROM audit;",
        "UPDATE audit SET seq = 100 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3;
         UPDATE audit SET seq = 3 WHERE seq = 100;",
        "DELETE FROM audit WHERE seq <= 2; UPDATE audit_heads SET base_seq = 2, base_key = 'k1',
         base_proof = zeroblob(32), base_mac = (SELECT prev FROM audit WHERE seq = 3);",
    ] {
        let scene = changed_by(chained(5), sql);
        assert!(verified(&scene, &[]).flaws > 0, "{sql}");
    }
}

#[test]
fn a_cut_end_and_an_older_copy_are_found_against_a_head_that_was_kept() {
    let scene = chained(5);
    let kept = state(&scene).head;
    let cut = "DELETE FROM audit WHERE seq > 3; UPDATE audit_heads SET seq = 3, \
         mac = (SELECT mac FROM audit WHERE seq = 3);";
    let scene = changed_by(scene, cut);
    assert_eq!(verified(&scene, &[]).found, [], "the chain itself does not tell");
    assert_eq!(verified(&scene, &[kept]).found, [Flaw::Older { found: 3, known: 5 }]);
    // It goes on, and has other rows than it had.
    for at in 20..23 {
        write(&scene, realm(), vec![entry(at, "ann", "call")]);
    }
    assert_eq!(verified(&scene, &[kept]).found, [Flaw::Other { seq: 5 }]);
}

#[test]
fn what_was_pruned_leaves_a_base_and_the_newest_row_stays() {
    let scene = chained(5);
    let kept = state(&scene).head;
    assert_eq!(block_on(audit(&scene).prune(Millis(4), 2)), Ok(2));
    assert_eq!(block_on(audit(&scene).prune(Millis(4), 10)), Ok(1));
    assert_eq!(block_on(audit(&scene).prune(Millis(4), 10)), Ok(0));
    let seen = verified(&scene, &[kept]);
    assert_eq!(seen, Verified { rows: 2, ..Verified::default() });
    assert_eq!(block_on(audit(&scene).prune(Millis(100), 10)), Ok(1));
    assert_eq!(state(&scene).head, kept);
    write(&scene, realm(), vec![entry(6, "ann", "call")]);
    let scene = changed_by(scene, "");
    let seen = verified(&scene, &[kept]);
    assert_eq!(seen, Verified { rows: 2, ..Verified::default() });
}

#[test]
fn entries_come_newest_first_page_by_page() {
    let scene = chained(4);
    let all = |filter: &AuditFilter, limit: usize| {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = Page { cursor, limit };
            let paged = block_on(audit(&scene).entries(&realm(), filter, &page)).unwrap();
            assert!(paged.items.len() <= limit);
            found.extend(paged.items.iter().map(|item| (item.seq, item.entry.act.to_string())));
            cursor = paged.next_cursor;
            if cursor.is_none() {
                return found;
            }
        }
    };
    let every = AuditFilter::default();
    let seqs: Vec<u64> = all(&every, 100).iter().map(|(seq, _)| *seq).collect();
    assert_eq!(seqs, [4, 4, 3, 3, 2, 2, 1]);
    for limit in 1..8 {
        assert_eq!(all(&every, limit), all(&every, 100), "pages of {limit}");
    }
    let reads = AuditFilter { act: Some("read".to_owned()), ..AuditFilter::default() };
    assert_eq!(all(&reads, 1).len(), 3);
    let anns = AuditFilter { subject: Some("ann".to_owned()), ..AuditFilter::default() };
    assert_eq!(all(&anns, 2).len(), 4);
    let late = AuditFilter { since: Some(Millis(3)), ..AuditFilter::default() };
    assert_eq!(all(&late, 2).len(), 4);
    let page = Page { cursor: Some("made up".to_owned()), limit: 1 };
    let error = block_on(audit(&scene).entries(&realm(), &every, &page)).unwrap_err();
    assert!(matches!(error, StoreError::BadCursor(_)), "{error}");
}

#[test]
fn an_older_database_gets_a_place_for_the_audit() {
    let older = "DROP TABLE audit; DROP TABLE audit_heads; \
         DELETE FROM migrations WHERE version = 13;";
    let scene = changed_by(chained(3), older);
    assert_eq!(block_on(audit(&scene).chains()).unwrap(), []);
    write(&scene, realm(), vec![entry(1, "ann", "call")]);
    assert_eq!(verified(&scene, &[]), Verified { rows: 1, ..Verified::default() });
}
