//! The record that each start writes into the server's own audit chain: the head of every chain,
//! and the keys of its rows. Only rows that verify count, so whoever changes the database cannot
//! forge a record.

use crate::identity::audit::{ChainName, Entry, Mac};
use crate::identity::chain::{ChainKeys, Head, KeySpan, RecordedChain, Row};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The act of a start.
pub const START: &str = "server.start";

/// What earlier starts recorded, by chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartRecords {
    heads: BTreeMap<String, BTreeSet<(u64, Mac)>>,
    keys: BTreeMap<String, Vec<KeySpan>>,
}

/// The detail of the entry of a start.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StartDetail {
    /// The head of each chain, as people keep it.
    heads: BTreeMap<String, String>,
    /// The keys of each chain.
    keys: BTreeMap<String, Vec<KeySpan>>,
}

/// A chain that is shorter than a start found it, or gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainLoss {
    pub chain: ChainName,
    /// Its last row now.
    pub found: u64,
    /// The last row that a start found.
    pub known: Head,
}

impl StartRecords {
    /// Takes in a row of the server's own chain, oldest first. Rows that do not verify are ignored.
    pub fn take(&mut self, keys: &dyn ChainKeys, row: &Row) {
        if !row.body.contains(START) || !row.is_proven(keys, &ChainName::server()) {
            return;
        }
        for entry in row.entries().unwrap_or_default() {
            self.add(&row.key, &entry);
        }
    }

    fn add(&mut self, key: &str, entry: &Entry) {
        let detail = entry.detail.as_ref().filter(|_| entry.act == START);
        let Some(Ok(found)) = detail.map(StartDetail::deserialize) else { return };
        for (chain, head) in &found.heads {
            let Ok(Head { seq, mac }) = head.parse() else { continue };
            self.heads.entry(chain.clone()).or_default().insert((seq, mac));
            let spans = self.keys.entry(chain.clone()).or_default();
            if let Some(known) = found.keys.get(chain) {
                spans.clone_from(known);
            }
            note_key(spans, key, seq + 1);
        }
    }

    /// What was recorded of a chain.
    pub fn of(&self, chain: &ChainName) -> RecordedChain {
        let heads = self.heads.get(chain.as_str()).cloned().unwrap_or_default();
        let keys = self.keys.get(chain.as_str()).cloned().unwrap_or_default();
        RecordedChain { heads, keys }
    }

    /// The chains that are gone or shorter than a start recorded.
    pub fn lost(&self, chains: &[(ChainName, Head)]) -> Vec<ChainLoss> {
        let now = |chain: &ChainName| {
            let there = chains.iter().find(|(name, _)| name == chain);
            there.map_or(0, |(_, head)| head.seq)
        };
        let newest = self.heads.iter().filter_map(|(chain, heads)| {
            let (seq, mac) = *heads.last()?;
            let chain = ChainName::named(chain.as_str().into());
            Some(ChainLoss { found: now(&chain), chain, known: Head { seq, mac } })
        });
        newest.filter(|lost| lost.found < lost.known.seq).collect()
    }

    /// The record of the next start: the current heads, and the keys of each chain including its
    /// own. A lost chain keeps its last known head, so that later starts report it too.
    pub fn next(&self, key: &str, chains: &[(ChainName, Head)]) -> Value {
        let mut found = StartDetail::default();
        for (chain, head) in chains {
            let mut spans = self.of(chain).keys;
            note_key(&mut spans, key, head.seq + 1);
            found.heads.insert(chain.to_string(), head.to_string());
            found.keys.insert(chain.to_string(), spans);
        }
        for ChainLoss { chain, known, .. } in self.lost(chains) {
            found.heads.insert(chain.to_string(), known.to_string());
        }
        json!(found)
    }
}

/// Notes that rows from `from` on use `key`.
fn note_key(spans: &mut Vec<KeySpan>, key: &str, from: u64) {
    if spans.last().is_none_or(|last| last.key != key) {
        spans.push(KeySpan { key: key.to_owned(), from });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::audit::Object;
    use crate::values::ids::{ContentHash, Millis};

    /// Macs that need no secret: a hash with the name of the key in front. All of these are known.
    struct TestKeys(&'static [&'static str]);

    impl ChainKeys for TestKeys {
        fn name(&self) -> &str {
            self.0[0]
        }

        fn mac(&self, key: &str, parts: &[&[u8]]) -> Option<Mac> {
            let mut all = key.as_bytes().to_vec();
            parts.iter().for_each(|part| all.extend_from_slice(part));
            self.0.contains(&key).then(|| ContentHash::of(&all).as_str().parse().unwrap())
        }

        fn digest(&self, bytes: &[u8]) -> Mac {
            self.mac(self.0[0], &[bytes]).unwrap()
        }
    }

    /// The row of a start after this head.
    fn start(keys: &TestKeys, head: &Head, detail: Value) -> Row {
        let entry = Entry::new(Millis(1), "server".into(), START, Object::only("server"));
        let entry = Entry { detail: Some(detail), ..entry };
        Row::after(keys, &ChainName::server(), head, Millis(1), &[entry]).unwrap()
    }

    fn realm() -> ChainName {
        ChainName::of(&"acme".into())
    }

    fn head(seq: u64) -> Head {
        Head { seq, mac: Mac([3; 32]) }
    }

    fn span(key: &str, from: u64) -> KeySpan {
        KeySpan { key: key.to_owned(), from }
    }

    #[test]
    fn a_start_records_the_keys_of_each_chain_and_their_first_rows() {
        let old = TestKeys(&["k1"]);
        let both = TestKeys(&["k2", "k1"]);
        let mut starts = StartRecords::default();
        let first = start(&old, &Head::default(), starts.next("k1", &[(realm(), head(4))]));
        starts.take(&both, &first);
        let second = start(&both, &first.head(), starts.next("k2", &[(realm(), head(9))]));
        let keys = [span("k1", 5), span("k2", 10)];
        starts.take(&both, &second);
        assert_eq!(starts.of(&realm()).keys, keys);
        // Who lost the old secret still has it from the start under the new one.
        let mut renewed = StartRecords::default();
        [first, second].iter().for_each(|row| renewed.take(&TestKeys(&["k2"]), row));
        assert_eq!(renewed.of(&realm()).keys, keys);
        assert_eq!(renewed.of(&realm()).heads.len(), 1, "the other one cannot be checked");
        assert_eq!(renewed.of(&ChainName::server()), RecordedChain::default());
    }

    #[test]
    fn a_lost_chain_is_reported_at_every_later_start() {
        let keys = TestKeys(&["k1"]);
        let mut starts = StartRecords::default();
        let first = start(&keys, &Head::default(), starts.next("k1", &[(realm(), head(4))]));
        starts.take(&keys, &first);
        assert_eq!(starts.lost(&[(realm(), head(4))]), []);
        let lost = |found: u64| [ChainLoss { chain: realm(), found, known: head(4) }];
        assert_eq!(starts.lost(&[(realm(), head(3))]), lost(3));
        assert_eq!(starts.lost(&[]), lost(0));
        let mut later = StartRecords::default();
        later.take(&keys, &start(&keys, &first.head(), starts.next("k1", &[])));
        assert_eq!(later.lost(&[]), lost(0));
    }

    #[test]
    fn a_forged_start_record_is_ignored() {
        let keys = TestKeys(&["k1"]);
        let detail = StartRecords::default().next("k1", &[(realm(), head(4))]);
        let row = start(&keys, &Head::default(), detail);
        let mut starts = StartRecords::default();
        starts.take(&keys, &Row { body: row.body.replace("acme", "else"), ..row.clone() });
        starts.take(&keys, &Row { key: "00000000".to_owned(), ..row });
        assert_eq!(starts, StartRecords::default());
    }
}
