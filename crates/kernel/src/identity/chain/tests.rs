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

#[test]
fn entries_that_are_written_one_by_one_make_the_same_row() {
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
            let flaws = found(&changed, None, last(&rows), &[]);
            // An unknown key in the first row looks like an older secret; the next row tells.
            let is_first_key = index == 0 && changed[0].key != rows[0].key;
            assert!(!flaws.is_empty() || is_first_key, "row {seq}");
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
fn a_cut_end_is_found_by_the_head_and_an_older_copy_by_one_that_was_kept() {
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
fn what_the_server_removed_is_no_flaw_and_what_others_removed_is() {
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
fn another_secret_continues_the_chain_and_only_older_rows_are_not_checked() {
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
    assert_eq!(look(&KEYS, &rows).flaws, 2, "an unknown key after a known one");
}

#[test]
fn a_head_is_kept_as_a_text() {
    let head = last(&whole());
    assert_eq!(head.to_string().parse::<Head>(), Ok(head));
    for wrong in ["", "1", "1:", "x:00", "1:zz", &format!("1:{}", "é".repeat(32))] {
        assert_eq!(wrong.parse::<Head>(), Err(BadHead), "{wrong}");
    }
}

#[test]
fn an_entry_is_read_as_it_was_written_and_leaves_out_what_it_has_not() {
    let text = serde_json::to_string(&entry(7)).unwrap();
    let expected = concat!(
        r#"{"at":7,"subject":"ann","act":"call","#,
        r#""object":{"kind":"tool","id":"math::add"},"verdict":"allow"}"#,
    );
    assert_eq!(text, expected);
    assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry(7));
}
