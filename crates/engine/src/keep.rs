//! Sessions as a whole: forked, exported, and what retention removes of them.

use crate::command::Command;
use crate::counts::add;
use crate::refusal::{Refusal, RefusalKind};
use crate::shared::{Engine, lock};
use kernel::call::Caller;
use kernel::contracts::{Page, Realms, SessionRef, StoreError};
use kernel::event::{self, Event, Fact};
use kernel::fork::fork;
use kernel::ids::{Millis, RealmId, RunId, SessionId, SessionKey};
use kernel::projection::SessionRow;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many events are read at once.
const EVENTS_PER_READ: usize = 1_000;

/// What a removal of what is old removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Whole sessions.
    pub sessions: u64,
    /// Runs of sessions that stay.
    pub runs: u64,
    /// Rows of the store, those of the sessions and runs included.
    pub rows: u64,
}

impl Engine {
    /// Makes a new session that begins as a copy of another, up to one of its events (default: the
    /// last). It goes on by itself from there if it has something to do.
    pub async fn fork(
        &self,
        caller: &Caller,
        session: &SessionRef,
        at: Option<u64>,
    ) -> Result<SessionRow, Refusal> {
        let row = self.session(caller, session).await?;
        let at = at.unwrap_or(row.seq);
        if at == 0 || at > row.seq {
            let message = format!("session `{}` has events up to {}", row.key.id, row.seq);
            return Err(Refusal::new(RefusalKind::WrongShape, "bad_fork_point", message)
                .hint("`at` is the sequence of one of its events; leave it out for the last"));
        }
        let events = self.journal(&row.key, at).await?;
        let mut runs = BTreeMap::new();
        for event in &events {
            if let Fact::RunStarted { run, .. } = &event.fact {
                runs.insert(*run, RunId(self.shared.id_bits()));
            }
        }
        let id = SessionId(self.shared.id_bits());
        let key = SessionKey { id: id.to_string().into(), ..row.key };
        let new_run = |run: RunId| runs.get(&run).copied().unwrap_or(run);
        let events = fork(&events, (id, &key), self.shared.clock.now(), &new_run);
        self.shared.ask(&key, |answer| Command::Adopt { id, events, answer }).await
    }

    /// A session's events up to a sequence; refused if there are too many of them.
    async fn journal(&self, key: &SessionKey, until: u64) -> Result<Vec<Event>, Refusal> {
        let mut events = Vec::new();
        for text in self.journal_texts(key, until).await? {
            let read = event::read(&format!("[{text}]")).map_err(|error| {
                Refusal::new(RefusalKind::Failed, "unreadable", error.to_string())
                    .hint("a newer release wrote this session: run that release")
            })?;
            events.extend(read);
        }
        Ok(events)
    }

    async fn journal_texts(&self, key: &SessionKey, until: u64) -> Result<Vec<String>, Refusal> {
        let mut texts = Vec::new();
        let mut after = 0;
        while after < until {
            let read = match self.shared.store.events(key, after, EVENTS_PER_READ).await {
                Ok(read) => read,
                // Retention took the beginning while it was read: from the new one on.
                Err(StoreError::Gone(_)) => {
                    texts.clear();
                    after = 0;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let Some((last, _)) = read.last() else { break };
            if let (0, Some((oldest, _))) = (after, read.first()) {
                self.within(key, *oldest, until)?;
            }
            after = *last;
            texts.extend(read.into_iter().filter(|(seq, _)| *seq <= until).map(|(_, text)| text));
        }
        Ok(texts)
    }

    /// Whether the events from the oldest on up to a sequence are there, and not too many.
    fn within(&self, key: &SessionKey, oldest: u64, until: u64) -> Result<(), Refusal> {
        if until < oldest {
            let message = format!("session `{}` has no events before {oldest} any more", key.id);
            return Err(Refusal::new(RefusalKind::Gone, "fork_point_gone", message)
                .hint(format!("the oldest event that it can be forked at is {oldest}")));
        }
        let max = self.shared.limits.export_events_max;
        let count = until - oldest + 1;
        if usize::try_from(count).is_ok_and(|count| count <= max) {
            return Ok(());
        }
        let message = format!("session `{}` has {count} events, more than {max}", key.id);
        Err(Refusal::new(RefusalKind::TooLarge, "export_events_max", message)
            .hint("raise `export_events_max` in [limits]"))
    }

    /// The whole session as JSON: its row, its journal, and its history newest first as far as
    /// that can be read.
    pub async fn export(&self, caller: &Caller, session: &SessionRef) -> Result<Value, Refusal> {
        let row = self.session(caller, session).await?;
        let mut events = Vec::new();
        for text in self.journal_texts(&row.key, row.seq).await? {
            // Texts, not events: what this release cannot read is exported all the same.
            events.push(serde_json::from_str::<Value>(&text).unwrap_or(Value::String(text)));
        }
        let mut history = Vec::new();
        let mut page = Page { cursor: None, limit: self.shared.limits.page_items_max };
        loop {
            let paged = match self.history(caller, &SessionRef::Id(row.id), &page).await {
                // Its values stand in events that this release cannot read.
                Err(refusal) if refusal.code == "unreadable" => break,
                paged => paged?,
            };
            history.extend(paged.items.iter().map(|item| item.entry.datum().to_value()));
            match paged.next_cursor {
                Some(cursor) => page.cursor = Some(cursor),
                None => break,
            }
        }
        Ok(json!({"session": row, "events": events, "history": history}))
    }

    /// Removes whole sessions of the caller's realm that are over, or never had a run, and that
    /// nobody touched for so long; with them the keys of requests that are as old. Of sessions that
    /// stay, runs that ended before that go, their newest excepted. Then blobs that nothing has
    /// named for `blob_grace_ms` go, whosever they are.
    pub async fn prune(&self, caller: &Caller, older_than_ms: u64) -> Result<Pruned, Refusal> {
        let realm = Realms::One(&caller.realm);
        let pruned = self.prune_before(realm, self.ago(older_than_ms)).await?;
        self.sweep().await;
        Ok(pruned)
    }

    /// The same for every realm, by its own `session_ttl_ms` or by that of the limits.
    pub async fn prune_expired(&self) {
        let ttls = &self.shared.session_ttls;
        for (realm, ttl_ms) in ttls {
            self.prune_older(Realms::One(realm), *ttl_ms).await;
        }
        let named: Vec<RealmId> = ttls.keys().cloned().collect();
        self.prune_older(Realms::AllBut(&named), self.shared.limits.session_ttl_ms).await;
        self.sweep().await;
    }

    /// Removes blobs that nothing has named for `blob_grace_ms`, in slices. What cannot be removed
    /// now will be another time.
    async fn sweep(&self) {
        let before = self.ago(self.shared.limits.blob_grace_ms);
        let limit = self.shared.limits.prune_batch_max.max(1);
        let mut blobs = 0;
        loop {
            match self.shared.blobs.sweep(before, limit).await {
                Ok((looked, removed)) => {
                    blobs += removed;
                    if looked < limit {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "blobs that nothing names cannot be removed");
                    break;
                }
            }
        }
        add(&self.shared.counters.blobs_removed, blobs);
        if blobs > 0 {
            tracing::info!(blobs, "blobs that nothing names removed");
        }
    }

    async fn prune_older(&self, realms: Realms<'_>, ttl_ms: u64) {
        if ttl_ms == 0 {
            return;
        }
        match self.prune_before(realms, self.ago(ttl_ms)).await {
            Ok(Pruned { sessions: 0, runs: 0, .. }) => {}
            Ok(Pruned { sessions, runs, rows }) => {
                tracing::info!(sessions, runs, rows, "old sessions and runs removed");
            }
            Err(refusal) => tracing::warn!("old sessions cannot be removed: {}", refusal.message),
        }
    }

    fn ago(&self, age_ms: u64) -> Millis {
        let age_ms = i64::try_from(age_ms).unwrap_or(i64::MAX);
        Millis(self.shared.clock.now().0.saturating_sub(age_ms))
    }

    /// In slices, so that a large removal never holds up a run.
    async fn prune_before(&self, realms: Realms<'_>, before: Millis) -> Result<Pruned, Refusal> {
        let shared = &self.shared;
        let mut pruned = Pruned::default();
        let mut after = 0;
        loop {
            // Whoever drives a session may be about to start a run in it.
            let driven: Vec<SessionKey> = lock(&shared.driven).keys().cloned().collect();
            let limit = shared.limits.prune_batch_max;
            let slice = shared.store.prune(realms, before, &driven, (after, limit)).await?;
            for key in &slice.removed {
                drop(shared.rest.take(key));
            }
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
