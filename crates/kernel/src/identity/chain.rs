//! The chains of the audit: how rows of entries are linked, so that one that was changed, dropped
//! or put elsewhere is found. A chain is its realm's; one more is the server's. Keys are the
//! server's to give.

use crate::identity::audit::{ChainName, Entry, Mac};
use crate::values::ids::Millis;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How many flaws of one chain are reported; the total is reported as a number.
pub const FLAWS_MAX: usize = 100;

/// The keys of chains. They are made of the server's secret, each for one purpose.
pub trait ChainKeys: Send + Sync {
    /// The name of the key that new rows are made with.
    fn name(&self) -> &str;

    /// The mac of these parts, each with its length, with the key of this name; none where that is
    /// not known.
    fn mac(&self, key: &str, parts: &[&[u8]]) -> Option<Mac>;

    /// The keyed digest of arguments.
    fn digest(&self, bytes: &[u8]) -> Mac;
}

/// How far a chain goes: the number and the mac of its last row. A chain without rows has the
/// default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Head {
    /// The number of the row, from 1.
    pub seq: u64,
    /// Its mac.
    pub mac: Mac,
}

/// `<seq>:<mac>`, as people keep it.
impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.mac)
    }
}

/// A text that is no head.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `<number>:<64 hexadecimal digits>`")]
pub struct BadHead;

impl FromStr for Head {
    type Err = BadHead;

    fn from_str(text: &str) -> Result<Self, BadHead> {
        let (seq, mac) = text.split_once(':').ok_or(BadHead)?;
        Ok(Self { seq: seq.parse().map_err(|_| BadHead)?, mac: mac.parse().map_err(|_| BadHead)? })
    }
}

/// One row of a chain: the entries of the appends of one commit, or of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its number, from 1, without gaps.
    pub seq: u64,
    /// When it was written.
    pub at: Millis,
    /// The name of the key of its mac.
    pub key: String,
    /// The mac of the row before it.
    pub prev: Mac,
    /// Its entries, as a JSON array.
    pub body: String,
    /// The mac of all of it.
    pub mac: Mac,
}

/// The entries of a row that is still to come, as its text: who has many writes each of them where
/// it is made, and holds nothing of it but that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// When the newest of them was made.
    at: Millis,
    /// A JSON array without its end.
    text: String,
}

/// Texts that are written together, each as one row of its chain.
pub type Bodies = Vec<(ChainName, Body)>;

impl Body {
    /// One entry of this moment, as JSON.
    pub fn of(at: Millis, entry: &str) -> Self {
        Self { at, text: ["[", entry].concat() }
    }

    /// One more.
    pub fn add(&mut self, at: Millis, entry: &str) {
        self.at = self.at.max(at);
        self.text.push(',');
        self.text.push_str(entry);
    }

    /// How many bytes its text has.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    fn whole(&self) -> String {
        [self.text.as_str(), "]"].concat()
    }

    /// Its entries.
    pub fn entries(&self) -> Result<Vec<Entry>, serde_json::Error> {
        serde_json::from_str(&self.whole())
    }
}

/// What a chain begins with once its oldest rows were removed: the last of them, and the proof that
/// the server removed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// The last row that was removed.
    pub head: Head,
    /// The name of the key of the proof.
    pub key: String,
    /// The mac of all of it.
    pub proof: Mac,
}

/// There is no key to make a mac with, or entries are no JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an audit row cannot be made: {0}")]
pub struct Unchained(pub String);

impl Row {
    /// The row that follows this head.
    pub fn after(
        keys: &dyn ChainKeys,
        chain: &ChainName,
        head: &Head,
        at: Millis,
        entries: &[Entry],
    ) -> Result<Self, Unchained> {
        let body = serde_json::to_string(entries).map_err(|error| Unchained(error.to_string()))?;
        Self::made(keys, chain, head, at, body)
    }

    /// The same with entries that are written already.
    pub fn holding(
        keys: &dyn ChainKeys,
        chain: &ChainName,
        head: &Head,
        body: &Body,
    ) -> Result<Self, Unchained> {
        Self::made(keys, chain, head, body.at, body.whole())
    }

    fn made(
        keys: &dyn ChainKeys,
        chain: &ChainName,
        head: &Head,
        at: Millis,
        body: String,
    ) -> Result<Self, Unchained> {
        let (seq, key, mac) = (head.seq + 1, keys.name().to_owned(), Mac::default());
        let row = Self { seq, at, key, prev: head.mac, body, mac };
        let mac = row.expected(keys, chain).ok_or_else(|| Unchained("no key".to_owned()))?;
        Ok(Self { mac, ..row })
    }

    /// The chain up to this row.
    pub fn head(&self) -> Head {
        Head { seq: self.seq, mac: self.mac }
    }

    /// Its entries.
    pub fn entries(&self) -> Result<Vec<Entry>, serde_json::Error> {
        serde_json::from_str(&self.body)
    }

    /// The mac that it should have; none where its key is not known.
    fn expected(&self, keys: &dyn ChainKeys, chain: &ChainName) -> Option<Mac> {
        let (seq, at) = (self.seq.to_be_bytes(), self.at.0.to_be_bytes());
        let (name, key, body) = (chain.as_str(), &self.key, &self.body);
        let parts: [&[u8]; 7] =
            [b"row", name.as_bytes(), &seq, &at, key.as_bytes(), &self.prev.0, body.as_bytes()];
        keys.mac(key, &parts)
    }
}

impl Base {
    /// The base of a chain whose rows up to this one are removed.
    pub fn at(keys: &dyn ChainKeys, chain: &ChainName, head: Head) -> Result<Self, Unchained> {
        let base = Self { head, key: keys.name().to_owned(), proof: Mac::default() };
        let proof = base.expected(keys, chain).ok_or_else(|| Unchained("no key".to_owned()))?;
        Ok(Self { proof, ..base })
    }

    fn expected(&self, keys: &dyn ChainKeys, chain: &ChainName) -> Option<Mac> {
        let (name, seq) = (chain.as_str().as_bytes(), self.head.seq.to_be_bytes());
        let parts: [&[u8]; 5] = [b"base", name, &seq, &self.head.mac.0, self.key.as_bytes()];
        keys.mac(&self.key, &parts)
    }
}

/// What is wrong with a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The rows before the first one were not removed by the server.
    #[error("the rows up to {seq} are missing, and the server did not remove them")]
    Base {
        /// The last of them, as it is said.
        seq: u64,
    },
    /// Rows are missing, or stand elsewhere.
    #[error("row {found} follows row {after}: rows are missing, or were put elsewhere")]
    Gap {
        /// The row before.
        after: u64,
        /// The one that follows it.
        found: u64,
    },
    /// A row does not continue the one before it.
    #[error("row {seq} does not continue the row before it")]
    Unlinked {
        /// The row.
        seq: u64,
    },
    /// A row is not as it was written.
    #[error("row {seq} was changed")]
    Changed {
        /// The row.
        seq: u64,
    },
    /// A row names an unknown key where a known one was used before it.
    #[error("row {seq} was made with the unknown key `{key}`, after rows with a known one")]
    UnknownKey {
        /// The row.
        seq: u64,
        /// The name of the key.
        key: String,
    },
    /// The last rows are missing.
    #[error("the chain ends at row {found}, and its last row was {head}: the end was cut off")]
    Cut {
        /// The last row that there is.
        found: u64,
        /// The last row as the store knows it.
        head: u64,
    },
    /// The chain does not end as the store says.
    #[error("the last row is not the one that the store knows as the last")]
    Head,
    /// The chain is shorter than it was once: an older copy of it, or a cut one.
    #[error("the chain ends at row {found}, and row {known} is known: it is an older copy, or cut")]
    Older {
        /// The last row that there is.
        found: u64,
        /// The row that someone kept the mac of.
        known: u64,
    },
    /// The chain has another row in this place than it once had.
    #[error("row {seq} is not the one that was there when its head was kept")]
    Other {
        /// The row.
        seq: u64,
    },
}

/// What a look at a whole chain found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    /// How many rows were read.
    pub rows: u64,
    /// How many of them are of a secret that is not known any more: only that they follow each
    /// other was checked.
    pub unchecked: u64,
    /// How many things are wrong.
    pub flaws: u64,
    /// The first of them.
    pub found: Vec<Flaw>,
}

/// Reads a chain row by row, from its oldest on, and finds what is wrong with it.
pub struct Verifier<'k> {
    keys: &'k dyn ChainKeys,
    chain: ChainName,
    last: Head,
    /// Heads that someone kept, which the chain must still have.
    known: Vec<Head>,
    knew_a_key: bool,
    /// The last row of a base whose key is not known.
    unproven: Option<u64>,
    seen: Verified,
}

impl<'k> Verifier<'k> {
    /// Begins after this base; without one the chain begins with its first row. The chain must
    /// still have these heads.
    pub fn new(
        keys: &'k dyn ChainKeys,
        chain: ChainName,
        base: Option<&Base>,
        known: Vec<Head>,
    ) -> Self {
        let last = base.map(|base| base.head).unwrap_or_default();
        let (knew_a_key, unproven, seen) = (false, None, Verified::default());
        let mut verifier = Self { keys, chain, last, known, knew_a_key, unproven, seen };
        if let Some(base) = base {
            match base.expected(keys, &verifier.chain) {
                // The rows behind it may be of an older secret than the one that pruned.
                Some(proof) if proof == base.proof => {}
                Some(_) => verifier.note(Flaw::Base { seq: base.head.seq }),
                None => verifier.unproven = Some(base.head.seq),
            }
            verifier.compare(base.head);
        }
        verifier
    }

    /// The next row.
    pub fn take(&mut self, row: &Row) {
        self.seen.rows += 1;
        let (seq, last) = (row.seq, self.last);
        if seq != last.seq + 1 {
            self.note(Flaw::Gap { after: last.seq, found: seq });
        } else if row.prev != last.mac {
            self.note(Flaw::Unlinked { seq });
        }
        let expected = row.expected(self.keys, &self.chain);
        // Rows are pruned with the newest secret, and at least one stays: what follows a base of a
        // secret that is gone is of one that is gone as well.
        if let Some(seq) = self.unproven.take().filter(|_| expected.is_some()) {
            self.note(Flaw::Base { seq });
        }
        match expected {
            Some(mac) if mac == row.mac => self.knew_a_key = true,
            Some(_) => self.note(Flaw::Changed { seq }),
            None if self.knew_a_key => {
                self.note(Flaw::UnknownKey { seq, key: row.key.clone() });
            }
            None => self.seen.unchecked += 1,
        }
        self.last = row.head();
        self.compare(row.head());
    }

    /// There are no more rows, and the store says that this is the last one.
    pub fn end(mut self, head: &Head) -> Verified {
        let last = self.last;
        if last.seq < head.seq {
            self.note(Flaw::Cut { found: last.seq, head: head.seq });
        } else if last != *head {
            self.note(Flaw::Head);
        }
        for known in std::mem::take(&mut self.known) {
            if known.seq > last.seq {
                self.note(Flaw::Older { found: last.seq, known: known.seq });
            }
        }
        self.seen
    }

    fn compare(&mut self, there: Head) {
        let differs = |known: &Head| known.seq == there.seq && known.mac != there.mac;
        if self.known.iter().any(differs) {
            self.note(Flaw::Other { seq: there.seq });
        }
    }

    fn note(&mut self, flaw: Flaw) {
        self.seen.flaws += 1;
        if self.seen.found.len() < FLAWS_MAX {
            self.seen.found.push(flaw);
        }
    }
}

#[cfg(test)]
mod tests;
