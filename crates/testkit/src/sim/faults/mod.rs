//! Faults on purpose, each behind a switch, to see that the oracle notices; and those of them that
//! a store can have, in the wrapper around it.

pub mod damage;
pub mod other_writer;

use crate::sim::machine::archive::Archive;
use crate::sim::machine::nodes::Node;
use crate::sim::machine::power::Power;
use crate::sim::realms::SHARED;
use damage::Damage;
use kernel::contracts::{
    FeedRow, ListPage, LoadResult, PageRequest, SessionFilter, SessionRef, Store, StoreError,
};
use kernel::journal::projection::{Append, SessionRow};
use kernel::planted::Switch;
use kernel::values::ids::{RealmId, SessionId, SessionKey, SessionVersion};
use other_writer::{OtherWriter, Turn};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A fault that can be planted: in what surrounds the engine, or by a switch inside the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// Every ticket resolves before its append is written.
    AcknowledgeBeforeCommit,
    /// The ticket of an append that starts a call resolves before it is written.
    CallBeforeStarted,
    /// Syncs do nothing.
    NoSync,
    /// A blob is durable only some time after the row that names it.
    RowBeforeBlob,
    /// No one learns which sessions should move.
    LostWakeUp,
    /// The feed leaves out a row now and then.
    FeedSkips,
    /// A snapshot claims to be one event further than it is.
    SnapshotAhead,
    /// A snapshot is kept although its append was lost.
    SnapshotOfLostAppend,
    /// A row of the feed shows up only after a newer one.
    FeedRowLate,
    /// An append counts that was decided on an older state, though another one got in before it.
    StaleFenceAccepted,
    /// What rests in memory is used although another writer has changed the session.
    StaleRestUsed,
    /// The place that is kept of a sink is further than the sink is.
    PlaceAhead,
    /// The place that is kept of a webhook is further than its receiver is.
    WebhookAhead,
    /// A message that is sent again is not known.
    MessagesForgotten,
    /// The policy decides by the rules of before for a while after a change.
    OldPolicyDecides,
    /// A list of sessions has those of another realm in it.
    ListOfTwoRealms,
    /// A supervisor that was refused because another one had acted acts all the same.
    RefusedActs,
    /// The policy allows each call without its rules.
    JudgementSkipped,
    /// A deny of a call that the policy had not denied before is not heard.
    DenyIgnored,
    /// What a process died of is not recognised by the next one.
    DeathsForgotten,
    /// A session that cannot be read is tried again at once, again and again.
    UnreadableNotParked,
    /// A rule inside is broken.
    Inside(Switch),
}

impl Planted {
    /// The switch inside the rules that this fault turns, if it is one of those.
    pub fn switch(self) -> Option<Switch> {
        match self {
            Planted::Inside(switch) => Some(switch),
            _ => None,
        }
    }

    /// Whether it takes tasks in contexts to meet it.
    pub fn takes_contexts(self) -> bool {
        matches!(self, Planted::WebhookAhead | Planted::MessagesForgotten)
    }

    /// Whether it takes another writer to meet it.
    pub fn takes_two(self) -> bool {
        matches!(self, Planted::StaleFenceAccepted | Planted::StaleRestUsed)
    }

    /// Whether it takes two supervisors to meet it.
    pub fn takes_two_supervisors(self) -> bool {
        self == Planted::RefusedActs
    }

    /// Whether it takes two realms to meet it.
    pub fn takes_two_realms(self) -> bool {
        matches!(
            self,
            Planted::OldPolicyDecides | Planted::ListOfTwoRealms | Planted::JudgementSkipped
        )
    }

    /// Whether it takes rules for failed steps to meet it.
    pub fn heals(self) -> bool {
        let switch = self.switch();
        matches!(
            switch,
            Some(
                Switch::UnknownWriteRetried
                    | Switch::UsedUpRuleActs
                    | Switch::CorrectionRunTwice
                    | Switch::HeldByNobody
                    | Switch::BackoffForgotten
                    | Switch::BackoffRepeated
                    | Switch::RuleActsEarly
            )
        )
    }

    /// Whether it takes models that are asked about failed steps to meet it.
    pub fn takes_advice(self) -> bool {
        let switch = self.switch();
        matches!(switch, Some(Switch::ProposedWriteActs | Switch::WritingDraftRuns))
    }

    /// Whether only a rough seed can meet it.
    pub fn is_rough(self) -> bool {
        matches!(
            self,
            Planted::DeathsForgotten
                | Planted::UnreadableNotParked
                | Planted::Inside(Switch::PanickedWriteRepeated | Switch::PinnedPlansLimited)
        )
    }
}

/// The store as the engine sees it.
pub struct SimStore {
    /// The real one.
    pub inner: Arc<dyn Store>,
    pub power: Arc<Power>,
    /// What is wrong with it.
    pub planted: Option<Planted>,
    /// How many feed rows were given.
    pub fed: AtomicU64,
    /// Where the oracle finds what was removed.
    pub archive: Arc<Archive>,
    /// What cannot be read.
    pub damage: Arc<Damage>,
    /// Who else writes, if someone does.
    pub other_writer: Option<Arc<OtherWriter>>,
    /// Which node it is opened by, where there are two.
    pub node: Option<Node>,
    /// What the broken store remembers.
    pub broken: Mutex<Broken>,
}

/// What a store with a planted fault remembers.
#[derive(Debug, Default)]
pub struct Broken {
    /// How many appends came with a snapshot.
    snapshots: u64,
    /// Snapshots of appends that were lost.
    lost: BTreeMap<SessionKey, String>,
    /// The rows of the feed that were late.
    late: BTreeSet<u64>,
}

/// How many rows the broken feed gives before it leaves one out.
const FEED_SKIPS_AFTER: u64 = 10;

impl SimStore {
    pub(super) fn acknowledges_early(&self, append: &Append) -> bool {
        match self.planted {
            Some(Planted::AcknowledgeBeforeCommit) => true,
            Some(Planted::CallBeforeStarted) => {
                let holds = |kind: &str| append.body.contains(kind);
                holds("\"call.started\"") || holds("\"call.resumed\"")
            }
            _ => false,
        }
    }

    pub(super) fn skip(&self, rows: Vec<FeedRow>) -> Vec<FeedRow> {
        if self.planted != Some(Planted::FeedSkips) {
            return rows;
        }
        let kept = |_: &FeedRow| self.fed.fetch_add(1, Ordering::SeqCst) != FEED_SKIPS_AFTER;
        rows.into_iter().filter(kept).collect()
    }

    /// Leaves out the last row but one, the first time.
    pub(super) fn late(&self, mut rows: Vec<FeedRow>) -> Vec<FeedRow> {
        if self.planted == Some(Planted::FeedRowLate) && rows.len() > 1 {
            let place = rows.len() - 2;
            if self.broken().late.insert(rows[place].cursor) {
                rows.remove(place);
            }
        }
        rows
    }

    /// Whether this append is lost: every other one that has a snapshot, which is kept all the
    /// same, with the session's next append.
    pub(super) fn loses(&self, append: &mut Append) -> bool {
        let key = &append.session.key;
        match self.planted {
            Some(Planted::SnapshotOfLostAppend) => {}
            Some(Planted::SnapshotAhead) => {
                append.snapshot =
                    append.snapshot.take().map(|body| ahead(&body, append.session.seq));
                return false;
            }
            _ => return false,
        }
        let mut broken = self.broken();
        if append.snapshot.is_none() {
            append.snapshot = broken.lost.remove(key);
            return false;
        }
        broken.snapshots += 1;
        let is_lost = broken.snapshots % 2 == 1;
        if is_lost && let Some(snapshot) = append.snapshot.take() {
            broken.lost.insert(key.clone(), snapshot);
        }
        is_lost
    }

    /// The sessions of a page, with those of the other realm where that fault is planted.
    pub(super) async fn listed(
        &self,
        realm: &RealmId,
        filter: &SessionFilter,
        page: &PageRequest,
    ) -> Result<ListPage<SessionRow>, StoreError> {
        let mut found = self.inner.sessions(realm, filter, page).await?;
        if self.planted == Some(Planted::ListOfTwoRealms) {
            for other in SHARED.iter().map(|name| RealmId::from(*name)) {
                if other != *realm {
                    let others = self.inner.sessions(&other, filter, page).await?;
                    found.items.extend(others.items);
                }
            }
        }
        Ok(found)
    }

    /// A load while another writer is there, who may come before it or after it.
    pub(super) async fn load_beside(
        &self,
        other_writer: &OtherWriter,
        key: &SessionKey,
        known: Option<SessionVersion>,
    ) -> Result<LoadResult, StoreError> {
        let turn = other_writer.loads(key, known.is_some());
        // Whether the other writer gets through is not the engine's concern.
        if turn == Turn::Before {
            let _ = other_writer.write(self.inner.as_ref(), key).await;
        }
        let mut loaded = self.inner.load(key, known).await?;
        if turn == Turn::After {
            let _ = other_writer.write(self.inner.as_ref(), key).await;
        }
        let Some(known) = known else { return Ok(loaded) };
        if self.planted == Some(Planted::StaleRestUsed) && matches!(loaded, LoadResult::Found(_)) {
            loaded = LoadResult::Unchanged;
        }
        if loaded == LoadResult::Unchanged && turn != Turn::After {
            other_writer.confirmed(key, known.fence);
        }
        Ok(loaded)
    }

    /// What is known of an append that another writer may get in before.
    pub(super) fn beside(&self, append: &Append) -> Option<Beside> {
        let other_writer = self.other_writer.clone()?;
        let id = append.session.id;
        let key = append.session.key.clone();
        let was_confirmed = other_writer.was_confirmed(&key, append.fence);
        let accepts = self.planted == Some(Planted::StaleFenceAccepted);
        Some(Beside { store: self.inner.clone(), other_writer, id, key, was_confirmed, accepts })
    }

    fn broken(&self) -> MutexGuard<'_, Broken> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An append beside another writer's.
pub(super) struct Beside {
    store: Arc<dyn Store>,
    other_writer: Arc<OtherWriter>,
    id: SessionId,
    key: SessionKey,
    /// The writer learned that it knows the session as it is.
    was_confirmed: bool,
    /// The broken store says that it is fine, whatever it is based on.
    accepts: bool,
}

impl Beside {
    /// What the writer learns of it.
    pub(super) async fn judged(self, result: Result<(), StoreError>) -> Result<(), StoreError> {
        let stale = StoreError::Conflict(self.key.to_string());
        if result != Err(stale) {
            return result;
        }
        // Retention may have removed it meanwhile.
        let named = SessionRef::Id(self.id);
        let found = self.store.session(&self.key.realm, &named).await;
        if self.was_confirmed && matches!(found, Ok(Some(_))) {
            self.other_writer.accuse(&self.key);
        }
        if self.accepts { Ok(()) } else { result }
    }
}

/// The same snapshot, one event further than it is.
fn ahead(body: &str, seq: u64) -> String {
    body.replacen(&format!("\"seq\":{seq}"), &format!("\"seq\":{}", seq + 1), 1)
}
