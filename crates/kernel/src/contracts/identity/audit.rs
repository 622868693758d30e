//! The contract of audit storage: chains of rows. The content of a row and its link to the previous
//! one are in `identity`.

use crate::contracts::{ListPage, PageRequest, Read};
use crate::identity::audit::{ChainName, Entries, Entry};
use crate::identity::chain::{Base, Bodies, ChainKeys, Head, Row};
use crate::values::ids::Millis;
use std::sync::Arc;

/// A chain as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainState {
    pub chain: ChainName,
    /// Its base, if its oldest rows were removed.
    pub base: Option<Base>,
    /// Its last row.
    pub head: Head,
}

/// An entry where it lies.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedEntry {
    /// The row that holds it.
    pub seq: u64,
    pub entry: Entry,
}

/// How far the moments of a chain's rows may fall from one row to the next without hiding rows from
/// a look that goes back to a moment. A row has the moment of its newest entry, and is written a
/// little later, while rows that come with appends are written at once; clocks are set back, too.
/// Without an end every such look would read the whole chain. What falls further, as after a long
/// outage, may hide rows before it.
pub const FALL_MS_MAX: u64 = 60_000;

/// Which entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub act: Option<String>,
    /// Done for this subject, by it for someone else, or as it by its realm.
    pub subject: Option<String>,
    /// In rows whose newest entry is of this moment or later.
    pub since: Option<Millis>,
}

impl AuditFilter {
    /// Whether a row of this moment is left out.
    pub fn skips(&self, at: Millis) -> bool {
        self.since.is_some_and(|since| at < since)
    }

    /// Whether the rows before one of this moment are left out as well.
    pub fn ends_at(&self, at: Millis) -> bool {
        self.skips(at.plus_ms(FALL_MS_MAX))
    }

    /// Whether an entry passes, whenever it was written.
    pub fn passes(&self, entry: &Entry) -> bool {
        let is_act = self.act.as_deref().is_none_or(|act| entry.act == act);
        let is_subject = self.subject.as_deref().is_none_or(|subject| {
            let others = [&entry.actor, &entry.run_as];
            &*entry.subject == subject || others.iter().any(|who| who.as_deref() == Some(subject))
        });
        is_act && is_subject
    }
}

/// The audit of a server. Entries of what is journaled come with the append that they are about
/// (`Append::audit`), those of a key or a principal with that; all others come here.
pub trait Audit: Send + Sync {
    /// The keys that rows are made with from now on. Nothing is written to a chain before that, and
    /// an append that brings entries is refused.
    fn begin(&self, keys: Arc<dyn ChainKeys>);

    /// Writes entries, each list as one row of its chain, all of them or none. Durable on return.
    /// They are shared, so that who must try again needs no copy.
    fn write(&self, entries: Arc<Entries>) -> Read<'_, ()>;

    /// The same of entries that are texts already, each body as one row of its chain.
    fn write_bodies(&self, bodies: Arc<Bodies>) -> Read<'_, ()>;

    /// All chains, by name.
    fn chains(&self) -> Read<'_, Vec<ChainState>>;

    /// Entries of a chain, newest first. A page may have fewer than it could, also none, where a
    /// filter passes few: the cursor says whether there are more.
    fn entries<'a>(
        &'a self,
        chain: &'a ChainName,
        filter: &'a AuditFilter,
        page: &'a PageRequest,
    ) -> Read<'a, ListPage<LocatedEntry>>;

    /// Rows of a chain after this one, oldest first.
    fn rows<'a>(&'a self, chain: &'a ChainName, after: u64, limit: usize) -> Read<'a, Vec<Row>>;

    /// Removes rows of all chains that were written before this moment, the oldest first, at most
    /// so many of each; the newest row of a chain stays. How many it removed. What a chain begins
    /// with then is kept, with a proof.
    fn prune(&self, before: Millis, limit: usize) -> Read<'_, usize>;
}
