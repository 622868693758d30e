//! The audit: entries come with what they are about or not at all, in rows of their chain that one
//! commit may share, and chains stay whole over restarts and removals.

use super::api_keys::new_key;
use super::driver::{Driver, done, got};
use super::principals::record;
use super::scene::Scene;
use futures::executor::block_on;
use kernel::contracts::identity::audit::{
    Audit, AuditFilter, ChainState, FALL_MS_MAX, LocatedEntry,
};
use kernel::contracts::{PageRequest, Store, StoreError};
use kernel::identity::audit::{ChainName, Entry, Mac, Object};
use kernel::identity::chain::{Body, ChainKeys, ChainReport, Head, Verifier};
use kernel::journal::projection::Append;
use kernel::values::ids::{ContentHash, Millis};
use serde_json::json;
use std::sync::Arc;

/// How many rows are read at once: fewer than most chains here have.
const ROWS_PER_READ: usize = 2;

/// Macs that need no secret: a hash with the name of the key in front.
#[derive(Debug, Clone, Copy)]
pub struct TestKeys;

impl TestKeys {
    /// The name of the one key that there is.
    pub const NAME: &str = "k1";
}

impl ChainKeys for TestKeys {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn mac(&self, key: &str, parts: &[&[u8]]) -> Option<Mac> {
        let mut all = key.as_bytes().to_vec();
        for part in parts {
            all.extend((part.len() as u64).to_be_bytes());
            all.extend_from_slice(part);
        }
        (key == Self::NAME).then(|| {
            let mac: Result<Mac, _> = ContentHash::of(&all).as_str().parse();
            mac.unwrap_or_else(|error| panic!("{error}"))
        })
    }

    fn digest(&self, bytes: &[u8]) -> Mac {
        self.mac(Self::NAME, &[bytes]).unwrap_or_default()
    }
}

/// The chain of the realm of most sessions here.
pub fn of_realm() -> ChainName {
    ChainName::of(&"r".into())
}

/// An entry of this moment.
pub fn entry(at: i64, subject: &str, act: &'static str) -> Entry {
    Entry::new(Millis(at), subject.into(), act, Object::new("tool", "math::add"))
}

/// Writes one row.
pub fn write(audit: &dyn Audit, chain: ChainName, entries: Vec<Entry>) {
    got(audit.write(Arc::new(vec![(chain, entries)])));
}

/// A chain as it stands; one without rows has none.
pub fn state(audit: &dyn Audit, chain: &ChainName) -> ChainState {
    let found = got(audit.chains()).into_iter().find(|state| state.chain == *chain);
    let empty = || ChainState { chain: chain.clone(), base: None, head: Head::default() };
    found.unwrap_or_else(empty)
}

/// What a look at a whole chain finds, which must still have these heads.
pub fn verified(audit: &dyn Audit, chain: &ChainName, known: &[Head]) -> ChainReport {
    let ChainState { base, head, .. } = state(audit, chain);
    let mut verifier = Verifier::new(&TestKeys, chain.clone(), base.as_ref(), known.to_vec());
    let mut after = base.map_or(0, |base| base.head.seq);
    loop {
        let rows = got(audit.rows(chain, after, ROWS_PER_READ));
        let Some(last) = rows.last() else { return verifier.end(&head) };
        after = last.seq;
        rows.iter().for_each(|row| verifier.take(row));
    }
}

/// All entries of a chain that pass, newest first, read in pages of this size.
pub fn paged(
    audit: &dyn Audit,
    chain: &ChainName,
    filter: &AuditFilter,
    limit: usize,
) -> Vec<LocatedEntry> {
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let page = got(audit.entries(chain, filter, &PageRequest { cursor, limit }));
        assert!(page.items.len() <= limit, "{} on a page of {limit}", page.items.len());
        found.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return found;
        }
    }
}

fn whole(rows: u64) -> ChainReport {
    ChainReport { rows, ..ChainReport::default() }
}

/// A chain of so many rows, of which the first comes with an append.
pub fn chained(store: &dyn Store, audit: &dyn Audit, rows: i64) {
    audit.begin(Arc::new(TestKeys));
    let created = Driver::new("r", "a").created();
    done(store.append(Append { audit: vec![entry(1, "ann", "run")], ..created }));
    for at in 2..=rows {
        write(audit, of_realm(), vec![entry(at, "ann", "call"), entry(at, "bob", "read")]);
    }
}

pub fn entries_of_appends_that_are_queued_together_are_each_written_once(scene: Scene) {
    let audit = scene.audit();
    audit.begin(Arc::new(TestKeys));
    done(scene.store().append(Driver::new("r", "b").created()));
    let appends = [("r", "a"), ("r", "b"), ("other", "c"), ("r", "d")].map(|(realm, id)| {
        let created = Driver::new(realm, id).created();
        Append { audit: vec![entry(1, id, "run"), entry(2, id, "call")], ..created }
    });
    let tickets = appends.map(|append| scene.store().append(append));
    let answers = tickets.map(|ticket| block_on(ticket).is_ok());
    assert_eq!(answers, [true, false, true, true], "one of them is there already");
    for (chain, ids) in [(of_realm(), "aadd"), (ChainName::of(&"other".into()), "cc")] {
        let found = paged(audit, &chain, &AuditFilter::default(), 9);
        let subjects: String = found.iter().rev().map(|found| &*found.entry.subject).collect();
        assert_eq!(subjects, ids);
        let rows = state(audit, &chain).head.seq;
        assert_eq!(verified(audit, &chain, &[]), whole(rows));
    }
}

pub fn an_append_and_its_entries_are_written_together_or_not_at_all(scene: Scene) {
    let audit = scene.audit();
    audit.begin(Arc::new(TestKeys));
    let mut a = Driver::new("r", "a");
    let mut stale = a.clone();
    let both = vec![entry(1, "ann", "run"), entry(1, "ann", "call")];
    done(scene.store().append(Append { audit: both.clone(), ..a.created() }));
    let refused = Append { audit: vec![entry(2, "bob", "run")], ..stale.created() };
    assert!(block_on(scene.store().append(refused)).is_err());
    assert_eq!(state(audit, &of_realm()).head.seq, 1, "one row for one append");
    let found = paged(audit, &of_realm(), &AuditFilter::default(), 9);
    let entries: Vec<Entry> = found.into_iter().rev().map(|found| found.entry).collect();
    assert_eq!(entries, both);
    assert_eq!(scene.tail(a.key()).len(), 1);
    done(scene.store().append(a.next()));
    assert_eq!(verified(audit, &of_realm(), &[]), whole(1), "an append may bring none");
}

pub fn a_key_and_its_entries_are_written_together_or_not_at_all(scene: Scene) {
    let audit = scene.audit();
    let keys = scene.api_keys();
    audit.begin(Arc::new(TestKeys));
    let key = new_key("aaaaaaaaaa", "a");
    let about = |act: &'static str| vec![(ChainName::server(), vec![entry(1, "ann", act)])];
    assert_eq!(block_on(keys.put_audited(&key, None, about("key.create"))), Ok(1));
    assert!(block_on(keys.put_audited(&key, None, about("key.create"))).is_err());
    assert_eq!(state(audit, &ChainName::server()).head.seq, 1);
    assert_eq!(block_on(keys.put_audited(&key, Some(1), about("key.revoke"))), Ok(2));
    assert_eq!(verified(audit, &ChainName::server(), &[]), whole(2));
}

pub fn a_principal_and_its_entries_are_written_together_or_not_at_all(scene: Scene) {
    let audit = scene.audit();
    let principals = scene.principals();
    audit.begin(Arc::new(TestKeys));
    let put = |version: Option<u64>, act: &'static str| {
        let about = vec![(of_realm(), vec![entry(1, "root", act)])];
        block_on(principals.put_principal(&record("ann", "Ann"), version, about))
    };
    assert_eq!(put(None, "principal.create"), Ok(1));
    assert!(put(None, "principal.create").is_err());
    assert_eq!(state(audit, &of_realm()).head.seq, 1);
    assert_eq!(put(Some(1), "principal.disable"), Ok(2));
    assert_eq!(verified(audit, &of_realm(), &[]), whole(2));
}

pub fn of_several_lists_all_are_written_or_none(scene: Scene) {
    let audit = scene.audit();
    audit.begin(Arc::new(TestKeys));
    let one = |at: i64| vec![entry(at, "ann", "call")];
    let server = ChainName::server();
    let lists = vec![(of_realm(), one(1)), (server.clone(), one(1)), (of_realm(), one(2))];
    got(audit.write(Arc::new(lists)));
    got(audit.write(Arc::default()));
    got(audit.write(Arc::new(vec![(of_realm(), Vec::new())])));
    assert_eq!(verified(audit, &of_realm(), &[]), whole(2), "each list is a row of its own");
    assert_eq!(verified(audit, &server, &[]), whole(1));
}

pub fn entries_that_are_texts_become_the_same_rows(scene: Scene) {
    let audit = scene.audit();
    audit.begin(Arc::new(TestKeys));
    let entries = [entry(2, "ann", "call"), entry(1, "bob", "read")];
    let texts = entries.each_ref().map(|entry| json!(entry).to_string());
    let mut body = Body::of(entries[0].at, &texts[0]);
    body.add(entries[1].at, &texts[1]);
    write(audit, of_realm(), entries.to_vec());
    got(audit.write_bodies(Arc::new(vec![(of_realm(), body)])));
    assert_eq!(verified(audit, &of_realm(), &[]), whole(2));
    let rows = got(audit.rows(&of_realm(), 0, 9));
    assert_eq!((&rows[0].body, rows[0].at), (&rows[1].body, rows[1].at));
}

pub fn nothing_is_written_to_the_audit_without_keys(scene: Scene) {
    let audit = scene.audit();
    let keys = scene.api_keys();
    let no_keys = |error: &StoreError| match error {
        StoreError::Failed(why) => why.contains("keys"),
        _ => false,
    };
    let created = Driver::new("r", "a").created();
    let append = Append { audit: vec![entry(1, "ann", "run")], ..created };
    let error = block_on(scene.store().append(append)).err();
    assert!(error.as_ref().is_some_and(no_keys), "{error:?}");
    let about = || vec![(ChainName::server(), vec![entry(1, "ann", "key.create")])];
    let key = new_key("aaaaaaaaaa", "a");
    let error = block_on(keys.put_audited(&key, None, about())).err();
    assert!(error.as_ref().is_some_and(no_keys), "{error:?}");
    assert!(block_on(audit.write(Arc::new(about()))).is_err());
    assert_eq!((got(audit.chains()), got(keys.all())), (Vec::new(), Vec::new()));
    assert!(scene.load(Driver::new("r", "a").key()).is_none());
    done(scene.store().append(Driver::new("r", "a").created()));
}

pub fn chains_are_apart_and_stay_whole_after_a_restart(scene: Scene) {
    chained(scene.store(), scene.audit(), 3);
    write(scene.audit(), ChainName::server(), vec![entry(9, "admin", "server.start")]);
    let before = state(scene.audit(), &of_realm()).head;
    let scene = scene.reopened();
    let audit = scene.audit();
    audit.begin(Arc::new(TestKeys));
    assert_eq!(state(audit, &of_realm()).head, before);
    write(audit, of_realm(), vec![entry(10, "ann", "call")]);
    assert_eq!(verified(audit, &of_realm(), &[before]), whole(4));
    let chains = got(audit.chains());
    let heads: Vec<(&str, u64)> =
        chains.iter().map(|state| (state.chain.as_str(), state.head.seq)).collect();
    assert_eq!(heads, [("*", 1), ("r", 4)]);
}

pub fn old_rows_of_a_chain_are_removed_and_leave_a_base(scene: Scene) {
    chained(scene.store(), scene.audit(), 5);
    let kept = state(scene.audit(), &of_realm()).head;
    let prune = |before: i64, limit: usize| got(scene.audit().prune(Millis(before), limit));
    assert_eq!((prune(4, 2), prune(4, 10), prune(4, 10)), (2, 1, 0));
    assert_eq!(verified(scene.audit(), &of_realm(), &[kept]), whole(2));
    assert_eq!(prune(100, 10), 1, "the newest row stays");
    assert_eq!(state(scene.audit(), &of_realm()).head, kept);
    let scene = scene.reopened();
    scene.audit().begin(Arc::new(TestKeys));
    write(scene.audit(), of_realm(), vec![entry(6, "ann", "call")]);
    assert_eq!(verified(scene.audit(), &of_realm(), &[kept]), whole(2));
}

pub fn entries_come_newest_first_in_pages(scene: Scene) {
    let audit = scene.audit();
    chained(scene.store(), audit, 4);
    let all = |filter: &AuditFilter, limit: usize| paged(audit, &of_realm(), filter, limit);
    let every = AuditFilter::default();
    let seqs: Vec<u64> = all(&every, 100).iter().map(|found| found.seq).collect();
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
    assert_eq!(paged(audit, &ChainName::server(), &every, 9), []);
    let page = PageRequest { cursor: Some("made up".to_owned()), limit: 1 };
    let error = block_on(audit.entries(&of_realm(), &every, &page)).err();
    assert!(matches!(error, Some(StoreError::BadCursor(_))), "{error:?}");
}

pub fn a_row_of_an_earlier_moment_hides_none_before_it(scene: Scene) {
    let audit = scene.audit();
    audit.begin(Arc::new(TestKeys));
    let since = 1_000_000;
    let lowest = since - FALL_MS_MAX as i64;
    for at in [since, lowest - 1, since, lowest, since + 5, since - 1, since + 1] {
        write(audit, of_realm(), vec![entry(at, "ann", "call"), entry(at, "bob", "read")]);
    }
    let seqs = |found: &[LocatedEntry]| found.iter().map(|found| found.seq).collect::<Vec<_>>();
    let late = AuditFilter { since: Some(Millis(since)), ..AuditFilter::default() };
    for limit in 1..8 {
        let found = paged(audit, &of_realm(), &late, limit);
        assert_eq!(seqs(&found), [7, 7, 5, 5, 3, 3], "pages of {limit}: row 2 is the end");
    }
    // A page that begins inside of a row that is left out has all of the row before it.
    let newest = got(audit.entries(
        &of_realm(),
        &AuditFilter::default(),
        &PageRequest { cursor: None, limit: 3 },
    ));
    assert_eq!(seqs(&newest.items), [7, 7, 6]);
    let rest = got(audit.entries(
        &of_realm(),
        &late,
        &PageRequest { cursor: newest.next_cursor, limit: 9 },
    ));
    assert_eq!(seqs(&rest.items), [5, 5, 3, 3]);
}
