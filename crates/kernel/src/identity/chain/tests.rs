//! What a chain finds: each row that was changed, dropped, swapped or cut off, an older copy, and
//! rows of another secret.

use super::*;
use crate::identity::audit::Object;
use crate::values::caller::Caller;
use sha2::{Digest, Sha256};

/// Keys that are good enough for a test: a hash with the key in front.
struct TestKeys {
    current: &'static str,
    known: &'static [&'static str],
}

const KEYS: TestKeys = TestKeys { current: "k1", known: &["k1"] };

impl ChainKeys for TestKeys {
    fn name(&self) -> &str {
        self.current
    }

    fn mac(&self, key: &str, parts: &[&[u8]]) -> Option<Mac> {
        self.known.contains(&key).then(|| {
            let mut hash = Sha256::new();
            for part in [key.as_bytes()].iter().chain(parts) {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
            let mut mac = Mac::default();
            mac.0.copy_from_slice(&hash.finalize()[..]);
            mac
        })
    }

    fn digest(&self, bytes: &[u8]) -> Mac {
        self.mac(self.current, &[bytes]).unwrap()
    }
}

fn chain() -> ChainName {
    ChainName::of(&"acme".into())
}

fn entry(at: i64) -> Entry {
    let caller = Caller::new("acme", "ann");
    Entry::by(Millis(at), &caller, "call", Object::new("tool", "math::add"))
}

/// So many rows more after this head.
fn rows(keys: &TestKeys, mut head: Head, count: i64) -> Vec<Row> {
    let mut rows = Vec::new();
    for at in 0..count {
        let entries = [entry(at), entry(at)];
        let row = Row::after(keys, &chain(), &head, Millis(at), &entries).unwrap();
        head = row.head();
        rows.push(row);
    }
    rows
}

fn whole() -> Vec<Row> {
    rows(&KEYS, Head::default(), 6)
}

fn last(rows: &[Row]) -> Head {
    rows.last().map(Row::head).unwrap_or_default()
}

/// What is found in these rows, where the store knows this head and someone kept those.
fn found(rows: &[Row], base: Option<&Base>, head: Head, known: &[Head]) -> Vec<Flaw> {
    let mut verifier = Verifier::new(&KEYS, chain(), base, known.to_vec());
    rows.iter().for_each(|row| verifier.take(row));
    verifier.end(&head).found
}

/// What a chain is compared with.
#[derive(Default)]
struct Known<'a> {
    heads: &'a [Head],
    recorded: RecordedChain,
    unchecked_until: u64,
}

/// The same, all of it: rows after the head are not the server's.
fn seen(rows: &[Row], head: Head, known: Known<'_>) -> ChainReport {
    let mut verifier = Verifier::new(&KEYS, chain(), None, known.heads.to_vec())
        .recorded(known.recorded)
        .unchecked_until(known.unchecked_until);
    for row in rows {
        match row.seq <= head.seq {
            true => verifier.take(row),
            false => verifier.take_beyond(row, &head),
        }
    }
    verifier.end(&head)
}

/// What a start says that found these rows.
fn recorded(rows: &[Row]) -> RecordedChain {
    let heads = rows.last().map(|row| (row.seq, row.mac)).into_iter().collect();
    RecordedChain { heads, keys: vec![KeySpan { key: "k1".to_owned(), from: 1 }] }
}

/// The rows up to this index with other texts and a key that nobody has; their macs stay.
fn rewritten(rows: &[Row], until: usize) -> Vec<Row> {
    let mut forged = rows.to_vec();
    for row in &mut forged[..until] {
        row.body = row.body.replace("ann", "eve");
        row.key = "00000000".to_owned();
    }
    forged
}

#[test]
fn rows_that_name_an_unknown_key_are_not_valid_unless_someone_expects_them() {
    let rows = whole();
    for until in 1..=rows.len() {
        let forged = rewritten(&rows, until);
        let head = last(&rows);
        let found = seen(&forged, head, Known::default());
        assert_eq!((found.unchecked, found.unexpected), (until as u64, until as u64));
        assert!(!found.is_valid(), "{found:?}");
        let by_hand = |row: u64| Known { unchecked_until: row, ..Known::default() };
        assert!(seen(&forged, head, by_hand(until as u64)).is_valid());
        assert!(!seen(&forged, head, by_hand(until as u64 - 1)).is_valid());
        // What a start recorded of the key tells, whatever someone expects.
        let known = Known { recorded: recorded(&rows), ..by_hand(until as u64) };
        let found = seen(&forged, head, known);
        assert_eq!(found.flaws, until as u64, "{found:?}");
        let other = |flaw: &Flaw| matches!(flaw, Flaw::OtherKey { used, .. } if used == "k1");
        assert!(found.found.iter().all(other), "{found:?}");
    }
}

#[test]
fn a_head_is_compared_with_the_code_that_a_row_should_have() {
    let rows = whole();
    let mut forged = rows.clone();
    forged[3].body = forged[3].body.replace("ann", "eve");
    let kept = [rows[3].head()];
    let flaws = found(&forged, None, last(&rows), &kept);
    assert_eq!(flaws, [Flaw::Changed { seq: 4 }, Flaw::Other { seq: 4 }]);
}

#[test]
fn rows_after_the_head_are_found() {
    let rows = whole();
    let mut added = rows.clone();
    added.push(Row { seq: 7, mac: Mac::default(), ..rows[5].clone() });
    added.push(Row { seq: 90, mac: Mac::default(), ..rows[5].clone() });
    let found = seen(&added, last(&rows), Known::default()).found;
    let beyond = [7, 90].map(|seq| Flaw::Beyond { seq, head: 6 });
    assert_eq!(found, beyond);
    // One that the server could have written, too.
    let next = super::tests::rows(&KEYS, last(&rows), 1);
    let longer = [rows.clone(), next].concat();
    let found = seen(&longer, last(&rows), Known::default()).found;
    assert_eq!(found, [Flaw::Beyond { seq: 7, head: 6 }]);
}

#[test]
fn a_chain_recorded_by_a_start_is_reported_if_missing_shorter_or_different() {
    let rows = whole();
    let knows = || Known { recorded: recorded(&rows), ..Known::default() };
    assert!(seen(&rows, last(&rows), knows()).is_valid());
    for length in 0..rows.len() {
        let cut = &rows[..length];
        let found = seen(cut, last(cut), knows()).found;
        assert_eq!(found, [Flaw::Lost { found: length as u64, known: 6 }]);
    }
    let mut other = rows[..3].to_vec();
    other.extend(super::tests::rows(&KEYS, last(&other), 4));
    let found = seen(&other, last(&other), knows()).found;
    assert_eq!(found, [Flaw::Replaced { seq: 6 }]);
}

#[test]
fn a_base_without_rows_needs_a_proof() {
    let base = Base::at(&KEYS, &chain(), last(&whole())).unwrap();
    let made_up = Base { key: "00000000".to_owned(), ..base.clone() };
    assert_eq!(found(&[], Some(&base), base.head, &[]), []);
    assert_eq!(found(&[], Some(&made_up), base.head, &[]), [Flaw::Base { seq: 6 }]);
}

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % end
    }
}

/// Does one thing to rows and to what the database says of their end, without the secret.
fn forge(rows: &mut Vec<Row>, head: &mut Head, random: &mut Random) {
    let index = random.below(rows.len().max(1));
    match random.below(9) {
        0 if !rows.is_empty() => {
            rows.remove(index);
        }
        1 => rows.truncate(index),
        2 if !rows.is_empty() => {
            let other = random.below(rows.len());
            let one = rows[index].clone();
            let two = rows[other].clone();
            rows[index] = Row { seq: one.seq, ..two.clone() };
            rows[other] = Row { seq: two.seq, ..one };
        }
        3 if !rows.is_empty() => rows[index].body = rows[index].body.replace("ann", "eve"),
        4 if !rows.is_empty() => {
            rows[index].key = "00000000".to_owned();
            rows[index].body = "[]".to_owned();
        }
        5 if !rows.is_empty() => rows[index].at = Millis(rows[index].at.0 + 1),
        6 => {
            let end = last(rows);
            let mac = Mac([5; 32]);
            let seq = end.seq + 1 + random.below(2) as u64;
            let prev = end.mac;
            let key = ["k1", "00000000"][random.below(2)].to_owned();
            let body = "[]".to_owned();
            rows.push(Row { seq, at: Millis(0), key, prev, body, mac });
        }
        7 => *head = last(rows),
        _ => {
            // All is numbered and linked anew, as far as that needs no secret.
            let mut before = Head::default();
            for row in rows.iter_mut() {
                row.seq = before.seq + 1;
                row.prev = before.mac;
                before = row.head();
            }
            *head = before;
        }
    }
}

#[test]
fn every_forgery_without_the_secret_is_found() {
    let rows = whole();
    let mut random = Random(7);
    let mut forgeries = 0;
    let mut rounds = 0;
    while forgeries < 2_000 && rounds < 20_000 {
        rounds += 1;
        let mut forged = rows.clone();
        let mut head = last(&rows);
        for _ in 0..=random.below(4) {
            forge(&mut forged, &mut head, &mut random);
        }
        if forged == rows && head == last(&rows) {
            continue;
        }
        forgeries += 1;
        let kept = [last(&rows)];
        let against_head = Known { heads: &kept, ..Known::default() };
        let seen_by_head = seen(&forged, head, against_head);
        let at_the_start = Known { recorded: recorded(&rows), unchecked_until: 99, heads: &[] };
        let seen_by_start = seen(&forged, head, at_the_start);
        assert!(!seen_by_head.is_valid(), "{head}: {forged:?}");
        assert!(!seen_by_start.is_valid(), "{head}: {forged:?}");
        // Without anything that was kept, only a shorter chain of true rows passes.
        let is_cut = rows.starts_with(&forged) && head == last(&forged);
        let alone = seen(&forged, head, Known::default());
        assert_eq!(alone.is_valid(), is_cut, "{head}: {forged:?}");
    }
    assert_eq!(forgeries, 2_000);
}

#[test]
fn entries_written_one_by_one_make_the_same_row() {
    let entries = [entry(3), entry(9), entry(5)];
    let texts = entries.each_ref().map(|entry| serde_json::to_string(entry).unwrap());
    let mut body = Body::of(entries[0].at, &texts[0]);
    assert_eq!(body.entries().unwrap(), entries[..1]);
    body.add(entries[1].at, &texts[1]);
    body.add(entries[2].at, &texts[2]);
    assert_eq!(body.entries().unwrap(), entries);
    let head = last(&whole());
    let row = Row::holding(&KEYS, &chain(), &head, &body).unwrap();
    assert_eq!(row, Row::after(&KEYS, &chain(), &head, Millis(9), &entries).unwrap());
}

#[test]
fn a_chain_as_it_was_written_has_no_flaw() {
    let rows = whole();
    let heads: Vec<Head> = rows.iter().map(Row::head).collect();
    assert_eq!(found(&rows, None, last(&rows), &heads), []);
    assert_eq!(found(&[], None, Head::default(), &[]), []);
    assert_eq!(rows[0].entries().unwrap(), [entry(0), entry(0)]);
}

#[test]
fn each_changed_row_is_found() {
    let rows = whole();
    for index in 0..rows.len() {
        let seq = rows[index].seq;
        let changes: [fn(&mut Row); 5] = [
            |row| row.body = row.body.replace("ann", "bob"),
            |row| row.at = Millis(row.at.0 + 1),
            |row| row.mac.0[31] ^= 1,
            |row| row.prev.0[0] ^= 1,
            |row| row.key = "k2".to_owned(),
        ];
        for change in changes {
            let mut changed = rows.clone();
            change(&mut changed[index]);
            assert!(!seen(&changed, last(&rows), Known::default()).is_valid(), "row {seq}");
        }
    }
}

#[test]
fn each_dropped_swapped_or_repeated_row_is_found() {
    let rows = whole();
    for index in 0..rows.len() {
        let mut dropped = rows.clone();
        dropped.remove(index);
        assert!(!found(&dropped, None, last(&rows), &[]).is_empty(), "dropped {index}");
        let mut renumbered = dropped;
        for (row, seq) in renumbered.iter_mut().zip(1..) {
            row.seq = seq;
        }
        let cut_head = last(&renumbered);
        let kept = [last(&rows)];
        assert!(!found(&renumbered, None, cut_head, &kept).is_empty(), "renumbered {index}");
        let mut repeated = rows.clone();
        repeated.insert(index, rows[index].clone());
        assert!(!found(&repeated, None, last(&rows), &[]).is_empty(), "repeated {index}");
        if index > 0 {
            let mut swapped = rows.clone();
            swapped.swap(index - 1, index);
            assert!(!found(&swapped, None, last(&rows), &[]).is_empty(), "swapped {index}");
            for (row, seq) in swapped.iter_mut().zip(1..) {
                row.seq = seq;
            }
            assert!(!found(&swapped, None, last(&rows), &[]).is_empty(), "and renumbered {index}");
        }
    }
}

#[test]
fn truncation_is_found_by_the_head_and_an_older_copy_by_a_kept_head() {
    let rows = whole();
    for length in 0..rows.len() {
        let cut = &rows[..length];
        let found_seq = length as u64;
        let head = Flaw::Cut { found: found_seq, head: 6 };
        assert_eq!(found(cut, None, last(&rows), &[]), [head]);
        let older = Flaw::Older { found: found_seq, known: 6 };
        assert_eq!(found(cut, None, last(cut), &[last(&rows)]), [older]);
        assert_eq!(found(cut, None, last(cut), &[]), [], "no one can tell without a head");
    }
    // One that continued from an older copy has other rows where a kept head was.
    let mut forked = rows[..3].to_vec();
    forked.extend(super::tests::rows(&KEYS, last(&forked), 4));
    let flaws = found(&forked, None, last(&forked), &[last(&rows)]);
    assert_eq!(flaws, [Flaw::Other { seq: 6 }]);
}

#[test]
fn rows_removed_by_retention_are_valid_and_other_missing_rows_are_flaws() {
    let rows = whole();
    let base = Base::at(&KEYS, &chain(), rows[2].head()).unwrap();
    assert_eq!(found(&rows[3..], Some(&base), last(&rows), &[rows[2].head()]), []);
    assert!(!found(&rows[3..], None, last(&rows), &[]).is_empty());
    assert!(!found(&rows[4..], Some(&base), last(&rows), &[]).is_empty());
    let made_up = Base { head: rows[3].head(), ..base.clone() };
    assert_eq!(found(&rows[4..], Some(&made_up), last(&rows), &[]), [Flaw::Base { seq: 4 }]);
    let unknown = Base { key: "k0".to_owned(), ..made_up };
    assert_eq!(found(&rows[4..], Some(&unknown), last(&rows), &[]), [Flaw::Base { seq: 4 }]);
    let all = Base::at(&KEYS, &chain(), last(&rows)).unwrap();
    assert_eq!(found(&[], Some(&all), last(&rows), &[]), []);
}

#[test]
fn rows_of_another_chain_are_found() {
    let rows = whole();
    let mut verifier = Verifier::new(&KEYS, ChainName::server(), None, Vec::new());
    rows.iter().for_each(|row| verifier.take(row));
    assert_eq!(verifier.end(&last(&rows)).flaws, 6);
}

#[test]
fn a_new_secret_continues_the_chain_and_only_older_rows_stay_unchecked() {
    let mut rows = whole();
    let renewed = TestKeys { current: "k2", known: &["k2"] };
    rows.extend(super::tests::rows(&renewed, last(&rows), 2));
    let look = |keys: &TestKeys, rows: &[Row]| {
        let mut verifier = Verifier::new(keys, chain(), None, Vec::new());
        rows.iter().for_each(|row| verifier.take(row));
        verifier.end(&last(rows))
    };
    // What the new secret pruned begins with rows of the old one.
    let base = Base::at(&renewed, &chain(), rows[1].head()).unwrap();
    let mut verifier = Verifier::new(&renewed, chain(), Some(&base), Vec::new());
    rows[2..].iter().for_each(|row| verifier.take(row));
    let pruned = verifier.end(&last(&rows));
    assert_eq!((pruned.rows, pruned.unchecked, pruned.flaws), (6, 4, 0));
    let seen = look(&renewed, &rows);
    assert_eq!((seen.rows, seen.unchecked, seen.flaws), (8, 6, 0));
    let both = TestKeys { current: "k2", known: &["k2", "k1"] };
    assert_eq!(look(&both, &rows).unchecked, 0);
    let older = look(&KEYS, &rows);
    assert_eq!((older.flaws, older.unchecked), (2, 2), "an unknown key after a known one");
    assert!(!seen.is_valid(), "nobody said that they are of an older secret");
}

#[test]
fn a_head_round_trips_as_text() {
    let head = last(&whole());
    assert_eq!(head.to_string().parse::<Head>(), Ok(head));
    for wrong in ["", "1", "1:", "x:00", "1:zz", &format!("1:{}", "é".repeat(32))] {
        assert_eq!(wrong.parse::<Head>(), Err(BadHead), "{wrong}");
    }
}

#[test]
fn an_entry_round_trips_and_omits_absent_members() {
    let text = serde_json::to_string(&entry(7)).unwrap();
    let expected = concat!(
        r#"{"at":7,"subject":"ann","act":"call","#,
        r#""object":{"kind":"tool","id":"math::add"},"verdict":"allow"}"#,
    );
    assert_eq!(text, expected);
    assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry(7));
}
