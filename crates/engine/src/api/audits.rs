//! The audit, as endpoints reach it: read, verified, pruned, and what a start writes. Which
//! decisions are kept, the gate knows.

use crate::gate::trail::Trail;
use crate::handles::Audits;
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::request::UnseenCall;
use crate::shared::Shared;
use kernel::contracts::identity::audit::{AuditFilter, ChainState, LocatedEntry};
use kernel::contracts::policy::Resource;
use kernel::contracts::{ListPage, PageRequest, StoreError};
use kernel::identity::audit::{ChainName, Entry, Object};
use kernel::identity::chain::{ChainReport, Head, Verifier};
use kernel::identity::start_records::{ChainLoss, START, StartRecords};
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::ids::{Millis, PlanId};
use serde_json::Value;
use std::sync::{Arc, Weak};

/// How many rows are read at once to verify them.
const ROWS_PER_READ: usize = 64;
/// How often a chain is read again that was pruned meanwhile.
const READINGS_MAX: usize = 3;
/// How many rows of a chain one write removes, and how often the server looks for such rows.
const PRUNED_AT_ONCE: usize = 500;
const PRUNE_EVERY_MS: u64 = 60 * 60 * 1_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Subject of entries that no caller caused.
const SERVER: &str = "server";

impl Audits<'_> {
    /// Refuses a caller of whom more waits to be written than may wait.
    pub fn check_room(self, caller: &Caller) -> Result<()> {
        self.shared.gate.check_room(caller)
    }

    /// Waits until what was decided is written, where callers wait for that.
    pub async fn settled(self) {
        self.shared.gate.settled().await;
    }

    /// Whether callers wait until what was decided is written.
    pub fn is_strict(self) -> bool {
        self.shared.gate.is_strict()
    }

    /// Keeps that an endpoint refuses an act because the credential does not cover it. What could
    /// not be kept is refused all the same.
    pub fn note_out_of_scope(self, caller: &Caller, act: Act) {
        let _ = self.shared.gate.note_out_of_scope(caller, act);
    }

    /// Keeps that an endpoint refuses what policy allows in the caller's realm, because it reaches
    /// further than that: a grant, or something of the whole server. What could not be kept is
    /// refused all the same.
    pub fn note_beyond(self, caller: &Caller, act: Act, why: String) {
        let _ = self.shared.gate.note_endpoint_denial(caller, act, Object::only("server"), why);
    }

    /// Keeps that a caller is shown what others wrote. What could not be kept must not be shown.
    pub fn note_shown(self, caller: &Caller, object: Object, detail: Value) -> Result<()> {
        self.shared.gate.note_shown(caller, object, detail)
    }

    /// Keeps a deed of an endpoint that policy is not asked about as such. What could not be kept
    /// must not be done.
    pub fn note_done(
        self,
        caller: &Caller,
        act: &'static str,
        object: Object,
        detail: Value,
    ) -> Result<()> {
        self.shared.gate.note_done(caller, act, object, detail)
    }

    /// Keeps that an endpoint refuses something to who administers. What could not be kept is
    /// refused all the same.
    pub fn note_refused(self, caller: &Caller, object: Object, why: String) {
        let _ = self.shared.gate.note_endpoint_denial(caller, Act::Administer, object, why);
    }

    /// Keeps that an endpoint refuses a call of a tool, or of a plan as a tool, because the caller
    /// does not see it. One that is not there leaves no entry. What could not be kept is refused
    /// all the same.
    pub fn note_unseen(self, caller: &Caller, call: &UnseenCall) {
        let _ = self.shared.gate.note_unseen(caller, call);
    }

    /// The same at an endpoint that calls no plans: one of such a name was not asked for.
    pub fn note_unseen_tool(self, caller: &Caller, call: &UnseenCall) {
        let _ = self.shared.gate.note_unseen_tool(caller, call);
    }

    /// The same of a plan, an agent or a pipeline that is to be started.
    pub fn note_unstarted(self, caller: &Caller, plan: &PlanId) {
        let _ = self.shared.gate.note_unstarted(caller, plan, None);
    }

    /// Entries of a chain, newest first, for who administers. Whose chain it may be, the endpoint
    /// asks.
    pub async fn entries(
        self,
        caller: &Caller,
        chain: &ChainName,
        filter: &AuditFilter,
        page: &PageRequest,
    ) -> Result<ListPage<LocatedEntry>> {
        let trail = self.administered(caller)?;
        Ok(trail.audit.entries(chain, filter, page).await?)
    }

    /// How far a chain goes, for who administers.
    pub async fn head(self, caller: &Caller, chain: &ChainName) -> Result<ChainState> {
        let trail = self.administered(caller)?;
        Ok(state(trail, chain).await?)
    }

    /// Reads a whole chain and finds what is wrong with it, for who administers. It must still have
    /// these heads and those that starts of the server found. Up to this row some may be of a key
    /// that is lost: that is for a person to say.
    pub async fn verify(
        self,
        caller: &Caller,
        chain: &ChainName,
        known: &[Head],
        unchecked_until: u64,
    ) -> Result<ChainReport> {
        let trail = self.administered(caller)?;
        let starts = all_starts(trail).await?;
        let mut reading = 1;
        loop {
            let before = state(trail, chain).await?;
            let verifier =
                Verifier::new(trail.keys(), chain.clone(), before.base.as_ref(), known.to_vec())
                    .recorded(starts.of(chain))
                    .unchecked_until(unchecked_until);
            let seen = read_through(trail, &before, verifier).await?;
            let was_pruned = state(trail, chain).await?.base != before.base;
            if seen.flaws == 0 || !was_pruned || reading == READINGS_MAX {
                return Ok(seen);
            }
            reading += 1;
        }
    }

    /// Writes down that the server began, with the heads that it found and the keys of each chain:
    /// one that was cut while no one looked does not have them any more. What the start before
    /// found and is gone is logged as an error.
    pub async fn note_start(self) -> Result<()> {
        let Some(trail) = &self.shared.gate.trail else { return Ok(()) };
        let starts = match last_start(trail).await {
            Err(StoreError::Unreadable(why)) => {
                tracing::error!(%why, "the server's own audit cannot be read");
                StartRecords::default()
            }
            read => read?,
        };
        let chains = trail.audit.chains().await?.into_iter();
        let heads: Vec<(ChainName, Head)> = chains.map(|state| (state.chain, state.head)).collect();
        for (chain, head) in heads.iter().filter(|(chain, _)| *chain != ChainName::server()) {
            if !trail.audit.rows(chain, head.seq, 1).await?.is_empty() {
                trail.mark_broken(chain);
            }
        }
        for ChainLoss { chain, found, known } in starts.lost(&heads) {
            let known = known.seq;
            tracing::error!(%chain, found, known, "the audit was cut: a chain has fewer rows than \
                the start before found; `waypost audit verify` says more");
        }
        self.note_own(START, starts.next(trail.keys().name(), &heads)).await
    }

    /// Writes down what the server did by itself, such as that it took a change of its files;
    /// durable on return. What is stored brings its entries in its own commit instead, as a key
    /// does.
    pub async fn note_own(self, act: &'static str, detail: Value) -> Result<()> {
        let Some(trail) = &self.shared.gate.trail else { return Ok(()) };
        let now = self.shared.clock.now();
        let entry = Entry::new(now, SERVER.into(), act, Object::only(SERVER));
        let entry = Entry { detail: Some(detail), ..entry };
        let entries = vec![(ChainName::server(), vec![entry])];
        Ok(trail.audit.write(Arc::new(entries)).await?)
    }

    /// Removes rows that are older than so many days, from now on.
    pub fn keep_pruning(self, days: u32) {
        let shared = Arc::downgrade(self.shared);
        let task = keep_pruning(shared, i64::from(days) * DAY_MS);
        self.shared.spawn.task("audit retention", Box::pin(task));
    }

    fn administered(&self, caller: &Caller) -> Result<&Arc<Trail>> {
        let gate = &self.shared.gate;
        gate.permit(caller, Act::Administer, Resource::Server)?;
        gate.trail
            .as_ref()
            .ok_or_else(|| Refusal::new(RefusalCode::NotFound, "this server keeps no audit"))
    }
}

/// A chain as it stands; one without rows has none.
async fn state(trail: &Trail, chain: &ChainName) -> Result<ChainState, StoreError> {
    let chains = trail.audit.chains().await?;
    let found = chains.into_iter().find(|state| state.chain == *chain);
    let empty = || ChainState { chain: chain.clone(), base: None, head: Head::default() };
    Ok(found.unwrap_or_else(empty))
}

/// Reads a chain to the end of its table. Rows that were written meanwhile belong to it.
async fn read_through(
    trail: &Trail,
    before: &ChainState,
    mut verifier: Verifier<'_>,
) -> Result<ChainReport, StoreError> {
    let ChainState { chain, mut head, .. } = before.clone();
    let mut after = 0;
    loop {
        let rows = trail.audit.rows(&chain, after, ROWS_PER_READ).await?;
        let last = rows.last().map_or(after, |row| row.seq);
        // A row is there no sooner than the head says so: what comes after a head that was read
        // later was not written by the server.
        if last > head.seq {
            head = state(trail, &chain).await?.head;
        }
        for row in &rows {
            match row.seq <= head.seq {
                true => verifier.take(row),
                false => verifier.take_beyond(row, &head),
            }
        }
        // More may have come before that head was read.
        let is_end = rows.len() < ROWS_PER_READ && last >= head.seq;
        if rows.is_empty() || is_end {
            return Ok(verifier.end(&head));
        }
        after = last;
    }
}

/// What all starts wrote down that the server's own chain still has.
async fn all_starts(trail: &Trail) -> Result<StartRecords, StoreError> {
    let server = ChainName::server();
    let mut starts = StartRecords::default();
    let mut after = 0;
    loop {
        let rows = trail.audit.rows(&server, after, ROWS_PER_READ).await?;
        rows.iter().for_each(|row| starts.take(trail.keys(), row));
        match rows.last() {
            Some(last) => after = last.seq,
            None => return Ok(starts),
        }
    }
}

/// The same of the last start alone, which has what those before it knew: a start must not wait
/// until a long chain is read.
async fn last_start(trail: &Trail) -> Result<StartRecords, StoreError> {
    let server = ChainName::server();
    let mut starts = StartRecords::default();
    let filter = AuditFilter { act: Some(START.to_owned()), ..AuditFilter::default() };
    let mut page = PageRequest { cursor: None, limit: 1 };
    loop {
        let found = trail.audit.entries(&server, &filter, &page).await?;
        if let Some(LocatedEntry { seq, .. }) = found.items.first() {
            let rows = trail.audit.rows(&server, seq.saturating_sub(1), 1).await?;
            rows.iter().for_each(|row| starts.take(trail.keys(), row));
        }
        // One that cannot be checked says nothing.
        match found.next_cursor {
            Some(cursor) if starts == StartRecords::default() => page.cursor = Some(cursor),
            Some(_) | None => return Ok(starts),
        }
    }
}

async fn keep_pruning(shared: Weak<Shared>, keep_ms: i64) {
    loop {
        let Some(there) = shared.upgrade() else { return };
        let Some(trail) = there.gate.trail.clone() else { return };
        let clock = there.clock.clone();
        drop(there);
        let before = Millis(clock.now().0.saturating_sub(keep_ms));
        match trail.audit.prune(before, PRUNED_AT_ONCE).await {
            // There is more: other writes come in between.
            Ok(removed) if removed > 0 => continue,
            Ok(_) => {}
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(%error, "old rows of the audit were not removed"),
        }
        drop(trail);
        clock.sleep_ms(PRUNE_EVERY_MS).await;
    }
}
