//! What retention removes: old sessions, old runs, blobs that nothing names. Where a journal can be
//! cut is a rule of the kernel (`journal::trim`); the store removes, in its transaction.

pub(crate) mod trim;

use crate::handles::Admin;
use crate::observe::counts::add;
use crate::refusal::Result;
use crate::shared::{Shared, lock};
use kernel::contracts::policy::{Decision, Request, Resource};
use kernel::contracts::{CommitNotice, Read, RealmSet, Slice};
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::ids::{Millis, RealmId, SessionKey};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneReport {
    /// Whole sessions.
    pub sessions: u64,
    /// Runs of sessions that stay.
    pub runs: u64,
    /// Rows of the store, those of the sessions and runs included.
    pub rows: u64,
}

impl Admin<'_> {
    /// Whether this caller may do this to everything: then no one needs to know to what.
    pub fn is_free(self, caller: &Caller, act: Act) -> bool {
        self.shared.gate.is_free(caller, act)
    }

    /// Refuses what this caller may not do to something that an endpoint keeps itself, such as an
    /// upstream or a provider. What is the engine's own, its handles ask about.
    pub fn permit(self, caller: &Caller, act: Act, resource: Resource<'_>) -> Result<()> {
        self.shared.gate.permit(caller, act, resource)
    }

    /// Whether this caller may read something that an endpoint keeps itself. What it may not read
    /// must look as if it were not there.
    pub fn reads(self, caller: &Caller, resource: Resource<'_>) -> bool {
        self.shared.gate.could_read(caller, resource)
    }

    /// The decision about a hypothetical request, which is not audited.
    pub fn foresee(self, request: &Request<'_>) -> Decision {
        self.shared.gate.decide(request)
    }

    /// Those of a list of what an endpoint keeps itself that this caller may read, judged at once.
    pub fn readable<T>(
        self,
        caller: &Caller,
        items: Vec<T>,
        resource: impl Fn(&T) -> Resource<'_>,
    ) -> Vec<T> {
        self.shared.gate.readable(caller, items, resource)
    }

    /// Removes whole sessions of the caller's realm that are over, or never had a run, and that
    /// no one touched for so long; with them the keys of requests that are as old. Of sessions that
    /// stay, runs that ended before that go, their newest excepted. Then blobs that nothing has
    /// named for `blob_grace_ms` go, whosever they are.
    pub async fn prune(self, caller: &Caller, older_than_ms: u64) -> Result<PruneReport> {
        self.shared.gate.permit(caller, Act::Operate, Resource::Server)?;
        let realm = RealmSet::One(&caller.realm);
        let pruned = self.prune_before(realm, self.ago(older_than_ms)).await?;
        self.sweep().await;
        Ok(pruned)
    }

    /// The same for every realm, by its own `session_ttl_ms` or by that of the limits.
    pub async fn prune_expired(self) {
        let ttls = &self.shared.session_ttls;
        for (realm, ttl_ms) in ttls {
            self.prune_older(RealmSet::One(realm), *ttl_ms).await;
        }
        let named: Vec<RealmId> = ttls.keys().cloned().collect();
        self.prune_older(RealmSet::AllBut(&named), self.shared.limits.session_ttl_ms).await;
        self.sweep().await;
    }

    /// Removes closures whose last run was removed, and blobs that nothing has named for
    /// `blob_grace_ms`. What cannot be removed now will be another time.
    async fn sweep(self) {
        let shared = self.shared;
        let limit = shared.limits.prune_batch_max.max(1);
        let slice = move || shared.store.sweep_closures(limit);
        in_slices("plans that no run pins", limit, slice).await;
        let before = self.ago(shared.limits.blob_grace_ms);
        let slice = move || shared.blobs.sweep(before, limit);
        let blobs = in_slices("blobs that nothing names", limit, slice).await;
        add(&shared.counters.blobs_removed, blobs);
        if blobs > 0 {
            tracing::info!(blobs, "blobs that nothing names removed");
        }
    }

    async fn prune_older(self, realms: RealmSet<'_>, ttl_ms: u64) {
        if ttl_ms == 0 {
            return;
        }
        match self.prune_before(realms, self.ago(ttl_ms)).await {
            Ok(PruneReport { sessions: 0, runs: 0, .. }) => {}
            Ok(PruneReport { sessions, runs, rows }) => {
                tracing::info!(sessions, runs, rows, "old sessions and runs removed");
            }
            Err(refusal) => tracing::warn!("old sessions cannot be removed: {}", refusal.message),
        }
    }

    fn ago(self, age_ms: u64) -> Millis {
        let age_ms = i64::try_from(age_ms).unwrap_or(i64::MAX);
        Millis(self.shared.clock.now().0.saturating_sub(age_ms))
    }

    /// In slices, so that a large removal never holds up a run.
    async fn prune_before(self, realms: RealmSet<'_>, before: Millis) -> Result<PruneReport> {
        let shared = self.shared;
        let mut pruned = PruneReport::default();
        let mut after = 0;
        loop {
            // The driver of a session may be about to start a run in it.
            let driven: Vec<SessionKey> = lock(&shared.driven).keys().cloned().collect();
            let slice = Slice { after, limit: shared.limits.prune_batch_max };
            let slice = shared.store.prune(realms, before, &driven, slice).await?;
            shared.removed(&slice.removed);
            let sessions = slice.removed.len() as u64;
            add(&shared.counters.sessions_removed, sessions);
            pruned.sessions += sessions;
            pruned.rows += slice.rows;
            match slice.next {
                Some(next) => after = next,
                None => break,
            }
        }
        let trimmed = self.trim_before(realms, before).await?;
        pruned.runs += trimmed.runs;
        pruned.rows += trimmed.rows;
        add(&shared.counters.runs_removed, trimmed.runs);
        Ok(pruned)
    }
}

/// Removes slices until one looks at less than it may; how many went.
async fn in_slices<'a>(
    what: &str,
    limit: usize,
    slice: impl Fn() -> Read<'a, (usize, u64)>,
) -> u64 {
    let mut removed = 0;
    loop {
        match slice().await {
            Ok((looked, more)) => {
                removed += more;
                if looked < limit {
                    return removed;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "{what} cannot be removed");
                return removed;
            }
        }
    }
}

impl Shared {
    /// These sessions were removed: nothing of them stays in memory, and a follower of one of them
    /// looks again.
    pub(crate) fn removed(&self, keys: &[SessionKey]) {
        for key in keys {
            drop(self.rest.take(key));
        }
        if !keys.is_empty() {
            let gone: Vec<CommitNotice<'_>> = keys.iter().map(CommitNotice::change).collect();
            self.watchers.committed(&gone);
        }
    }
}
