//! Reads a chain row by row and says what is wrong with it: by itself, against heads that someone
//! kept, and against what the server's own chain says of it.

use super::{Base, ChainKeys, FLAWS_MAX, Head, Row};
use crate::identity::audit::{ChainName, Mac};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

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
    /// A row that cannot be checked names another key than the server used there.
    #[error("row {seq} names the unknown key `{key}`, and the server used `{used}` there")]
    OtherKey {
        /// The row.
        seq: u64,
        /// The name of the key.
        key: String,
        /// The name of the key that a start of the server recorded for this row.
        used: String,
    },
    /// A row comes after the last one that the store knows.
    #[error("row {seq} comes after row {head}, the last one that the server wrote: it was added")]
    Beyond {
        /// The row.
        seq: u64,
        /// The last row as the store knows it.
        head: u64,
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
    /// The chain is shorter than a start of the server found it, or gone.
    #[error("the chain ends at row {found}, and an earlier start found row {known}: it was cut")]
    Lost {
        /// The last row that there is.
        found: u64,
        /// The last row that a start found.
        known: u64,
    },
    /// The chain has another row in this place than a start of the server found.
    #[error("row {seq} is not the one that an earlier start of the server found there")]
    Replaced {
        /// The row.
        seq: u64,
    },
}

/// With which key rows were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySpan {
    /// The name of the key.
    pub key: String,
    /// From this row on.
    pub from: u64,
}

/// What verified rows of the server's own chain record about a chain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedChain {
    /// The heads that starts of the server found.
    pub heads: BTreeSet<(u64, Mac)>,
    /// The keys that it used, oldest first.
    pub keys: Vec<KeySpan>,
}

impl RecordedChain {
    /// Whether a start found another row here.
    fn differs(&self, head: Head) -> bool {
        let of_row = (head.seq, Mac::default())..(head.seq + 1, Mac::default());
        self.heads.range(of_row).any(|(_, mac)| *mac != head.mac)
    }

    /// The key that the server used for this row, where that is recorded.
    fn used(&self, seq: u64) -> Option<&str> {
        let span = self.keys.iter().rev().find(|span| span.from <= seq);
        span.map(|span| span.key.as_str())
    }
}

/// Result of verifying a chain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChainReport {
    /// How many rows were read.
    pub rows: u64,
    /// How many of them name a key that is not known: only that they follow each other was checked,
    /// and who changed the database chose that name.
    pub unchecked: u64,
    /// How many of those come after the last row of which that is expected.
    pub unexpected: u64,
    /// How many things are wrong.
    pub flaws: u64,
    /// The first of them.
    pub found: Vec<Flaw>,
}

impl ChainReport {
    /// Whether every row is as it was written, as far as it was not expected that some cannot be
    /// checked.
    pub fn is_valid(&self) -> bool {
        self.flaws == 0 && self.unexpected == 0
    }
}

/// Reads a chain row by row, from its oldest on, and finds what is wrong with it.
pub struct Verifier<'k> {
    keys: &'k dyn ChainKeys,
    chain: ChainName,
    last: Head,
    /// Heads that someone kept, which the chain must still have.
    known: Vec<Head>,
    recorded: RecordedChain,
    /// Up to this row some may be of a key that is not known.
    unchecked_until: u64,
    knew_a_key: bool,
    /// The last row of a base whose key is not known.
    unproven: Option<u64>,
    seen: ChainReport,
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
        let knew_a_key = false;
        let unproven = None;
        let seen = ChainReport::default();
        let recorded = RecordedChain::default();
        let unchecked_until = 0;
        let mut verifier = Self {
            keys,
            chain,
            last,
            known,
            recorded,
            unchecked_until,
            knew_a_key,
            unproven,
            seen,
        };
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

    /// The same, compared with what the server's own chain says of it.
    #[must_use]
    pub fn recorded(mut self, recorded: RecordedChain) -> Self {
        self.recorded = recorded;
        if self.last.seq > 0 && self.recorded.differs(self.last) {
            self.note(Flaw::Replaced { seq: self.last.seq });
        }
        self
    }

    /// The same where someone says by hand that rows up to this one may be of a lost key.
    #[must_use]
    pub fn unchecked_until(self, row: u64) -> Self {
        Self { unchecked_until: row, ..self }
    }

    /// The next row.
    pub fn take(&mut self, row: &Row) {
        self.seen.rows += 1;
        let seq = row.seq;
        let last = self.last;
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
            None => self.take_unknown(row),
        }
        self.last = row.head();
        // Whoever changed a row left its mac as it was: what counts is the one that it should have.
        self.compare(Head { seq, mac: expected.unwrap_or(row.mac) });
    }

    /// A row of a key that is not known.
    fn take_unknown(&mut self, row: &Row) {
        let seq = row.seq;
        self.seen.unchecked += 1;
        if seq > self.unchecked_until {
            self.seen.unexpected += 1;
        }
        let used = self.recorded.used(seq).filter(|used| *used != row.key).map(str::to_owned);
        let key = row.key.clone();
        match used {
            Some(used) => self.note(Flaw::OtherKey { seq, key, used }),
            None if self.knew_a_key => self.note(Flaw::UnknownKey { seq, key }),
            None => {}
        }
    }

    /// A row after the last one that the store knows.
    pub fn take_beyond(&mut self, row: &Row, head: &Head) {
        self.seen.rows += 1;
        self.note(Flaw::Beyond { seq: row.seq, head: head.seq });
    }

    /// There are no more rows, and the store says that this is the last one.
    pub fn end(mut self, head: &Head) -> ChainReport {
        let last = self.last;
        // Pruning leaves at least one row, and none is here that could tell.
        if let Some(seq) = self.unproven.take().filter(|_| self.seen.rows == 0) {
            self.note(Flaw::Base { seq });
        }
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
        let recorded = self.recorded.heads.last().map_or(0, |(seq, _)| *seq);
        if recorded > last.seq {
            self.note(Flaw::Lost { found: last.seq, known: recorded });
        }
        self.seen
    }

    fn compare(&mut self, head: Head) {
        let differs = |known: &Head| known.seq == head.seq && known.mac != head.mac;
        if self.known.iter().any(differs) {
            self.note(Flaw::Other { seq: head.seq });
        }
        if self.recorded.differs(head) {
            self.note(Flaw::Replaced { seq: head.seq });
        }
    }

    fn note(&mut self, flaw: Flaw) {
        self.seen.flaws += 1;
        if self.seen.found.len() < FLAWS_MAX {
            self.seen.found.push(flaw);
        }
    }
}
