//! The chains of the audit: how rows of entries are linked, so that one that was changed, dropped
//! or put elsewhere is found. A chain is its realm's; one more is the server's. Keys are the
//! server's to give.

use crate::identity::audit::{ChainName, Entry, Mac};
use crate::values::ids::Millis;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

mod verifier;

pub use verifier::{ChainReport, Flaw, KeySpan, RecordedChain, Verifier};

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

    pub fn entries(&self) -> Result<Vec<Entry>, serde_json::Error> {
        serde_json::from_str(&self.whole())
    }
}

/// Base of a chain whose oldest rows were removed: the last removed row, and the proof that the
/// server removed it.
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
        Self::linked(keys, chain, head, at, body)
    }

    /// The same with entries that are written already.
    pub fn holding(
        keys: &dyn ChainKeys,
        chain: &ChainName,
        head: &Head,
        body: &Body,
    ) -> Result<Self, Unchained> {
        Self::linked(keys, chain, head, body.at, body.whole())
    }

    fn linked(
        keys: &dyn ChainKeys,
        chain: &ChainName,
        head: &Head,
        at: Millis,
        body: String,
    ) -> Result<Self, Unchained> {
        let seq = head.seq + 1;
        let key = keys.name().to_owned();
        let mac = Mac::default();
        let row = Self { seq, at, key, prev: head.mac, body, mac };
        let mac = row.expected(keys, chain).ok_or_else(|| Unchained("no key".to_owned()))?;
        Ok(Self { mac, ..row })
    }

    /// The chain up to this row.
    pub fn head(&self) -> Head {
        Head { seq: self.seq, mac: self.mac }
    }

    pub fn entries(&self) -> Result<Vec<Entry>, serde_json::Error> {
        serde_json::from_str(&self.body)
    }

    /// Whether it is as a server wrote it that had one of these keys.
    pub fn is_proven(&self, keys: &dyn ChainKeys, chain: &ChainName) -> bool {
        self.expected(keys, chain) == Some(self.mac)
    }

    /// The mac that it should have; none where its key is not known.
    fn expected(&self, keys: &dyn ChainKeys, chain: &ChainName) -> Option<Mac> {
        let seq = self.seq.to_be_bytes();
        let at = self.at.0.to_be_bytes();
        let name = chain.as_str();
        let key = &self.key;
        let body = &self.body;
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
        let name = chain.as_str().as_bytes();
        let seq = self.head.seq.to_be_bytes();
        let parts: [&[u8]; 5] = [b"base", name, &seq, &self.head.mac.0, self.key.as_bytes()];
        keys.mac(&self.key, &parts)
    }
}

#[cfg(test)]
mod tests;
