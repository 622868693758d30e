//! Reads of the model store: sessions, lists, the feed.

use super::tables::{AskData, KeyName, RunData, SessionData, Tables};
use kernel::ask::AskStatus;
use kernel::contracts::{
    AskFilter, FeedRow, HistoryFilter, ListPage, LoadResult, OpenAsks, OpenSessions, PageRequest,
    RunFilter, RunPage, RunWithEvents, SessionAsk, SessionFilter, SessionRef, SessionRun,
    StoreError, StoredBytes, StoredSession,
};
use kernel::definition::pipeline::TallyRow;
use kernel::event::{self, Event};
use kernel::journal::projection::{HistoryItem, OnceRow, SessionRow};
use kernel::values::ids::{
    AskId, Millis, PipelineName, RealmId, RunId, SessionKey, SessionVersion, Space,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a session that is parked is counted.
const PARKED: &str = "parked";

impl Tables {
    /// Snapshot and tail, unless the session is the known one.
    pub(super) fn load(&self, key: &SessionKey, known: Option<SessionVersion>) -> LoadResult {
        let found = self.number(key).and_then(|number| Some((number, self.sessions.get(&number)?)));
        let Some((number, session)) = found else { return LoadResult::Missing };
        if known == Some(session.known()) {
            return LoadResult::Unchanged;
        }
        let after = session.snapshot.as_ref().map_or(0, |(seq, _)| *seq);
        let snapshot = session.snapshot.as_ref().map(|(_, body)| body.clone());
        let rows = self.rows_of(number).filter(|(_, row)| row.last > after);
        LoadResult::Found(StoredSession {
            id: session.row.id,
            fence: session.row.fence,
            snapshot_bytes: snapshot.as_ref().map_or(0, String::len),
            snapshot,
            tail: rows.map(|(_, row)| row.body.clone()).collect(),
        })
    }

    /// The nearest time after this one at which a session should be driven.
    pub(super) fn next_wake(&self, after: Millis) -> Option<Millis> {
        let times = self.sessions.values().filter_map(|session| session.row.wake_at);
        times.filter(|at| *at > after).min()
    }

    /// A session's events after a sequence, one by one as they were written.
    pub(super) fn events(
        &self,
        number: Option<u64>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, String)>, StoreError> {
        let Some(number) = number else { return Ok(Vec::new()) };
        let oldest = self.rows_of(number).next().map_or(0, |(_, row)| row.first);
        if after > 0 && after < oldest {
            return Err(StoreError::Gone(oldest));
        }
        let mut events = Vec::new();
        for (_, row) in self.rows_of(number).filter(|(_, row)| row.last > after) {
            events.extend(split(&row.body)?.into_iter().filter(|(seq, _)| *seq > after));
        }
        events.truncate(limit);
        Ok(events)
    }

    /// A page of a session's history, newest first.
    pub(super) fn history(
        &self,
        key: &SessionKey,
        only: &HistoryFilter,
        page: &PageRequest,
    ) -> Result<ListPage<HistoryItem>, StoreError> {
        let before = page.cursor.as_deref().map(place_of).transpose()?;
        let none = ListPage { items: Vec::new(), next_cursor: None };
        let Some(number) = self.number(key) else { return Ok(none) };
        let Some(session) = self.sessions.get(&number) else { return Ok(none) };
        let mut found = Vec::new();
        for (place, row) in session.history.iter().rev() {
            let is_meant = before.as_ref().is_none_or(|before| place < before)
                && only.run.is_none_or(|run| row.run == run)
                && only.step.as_ref().is_none_or(|step| row.step == *step);
            if is_meant {
                let requested = self.event(number, row.requested_seq)?;
                let finished = self.event(number, row.finished_seq)?;
                let item = HistoryItem::assemble(row, &requested, &finished);
                found.push((place.clone(), item.ok_or_else(|| torn(row.finished_seq))?));
            }
        }
        Ok(paged(found, page, |(position, seq)| format!("{}-{seq}", hex(position))))
    }

    fn event(&self, session: u64, seq: u64) -> Result<Event, StoreError> {
        let mut rows = self.rows_of(session);
        let row = rows.find(|(_, row)| row.first <= seq && seq <= row.last);
        let (_, row) = row.ok_or_else(|| torn(seq))?;
        let events =
            event::read(&row.body).map_err(|error| StoreError::Unreadable(error.to_string()))?;
        events.into_iter().find(|event| event.seq == seq).ok_or_else(|| torn(seq))
    }

    /// One session. A key without a space means the one in `session`, else the only one.
    pub(super) fn session(&self, realm: &RealmId, named: &SessionRef) -> Option<SessionRow> {
        let rows = || self.sessions.values().map(|session| &session.row);
        let mut ours = rows().filter(|row| row.key.realm == *realm);
        match named {
            SessionRef::Id(id) => ours.find(|row| row.id == *id).cloned(),
            SessionRef::Key { key, space } => {
                let is_meant = |row: &&SessionRow| row.key.id == *key && row.key.owner.is_none();
                the_only(ours.filter(is_meant), space.as_ref())
            }
            SessionRef::Owned { key, space, owner } => {
                let is_meant = |row: &&SessionRow| {
                    let is_own = row.key.owner.as_ref() == Some(owner);
                    let is_anyones = !row.key.space.is_owned() && row.key.owner.is_none();
                    row.key.id == *key && (is_own || is_anyones)
                };
                the_only(ours.filter(is_meant), space.as_ref())
            }
        }
    }

    /// Sessions, newest first.
    pub(super) fn sessions(
        &self,
        realm: &RealmId,
        filter: &SessionFilter,
        page: &PageRequest,
    ) -> Result<ListPage<SessionRow>, StoreError> {
        let before = number_of(page)?.unwrap_or(u64::MAX);
        let is_meant = |(number, session): &(&u64, &SessionData)| {
            let row = &session.row;
            **number < before
                && row.key.realm == *realm
                && filter.status.is_none_or(|status| row.status == status)
                && filter.plan.as_ref().is_none_or(|plan| row.plan.as_ref() == Some(plan))
                && filter.space.as_ref().is_none_or(|space| row.key.space == *space)
                && (!filter.parked || row.parked.is_some())
                && filter.blob.as_ref().is_none_or(|hash| session.held.contains(hash))
        };
        let found = self.sessions.iter().rev().filter(is_meant);
        let found: Vec<(u64, SessionRow)> =
            found.map(|(number, session)| (*number, session.row.clone())).collect();
        Ok(paged(found, page, u64::to_string))
    }

    pub(super) fn run(&self, realm: &RealmId, id: RunId) -> Option<SessionRun> {
        let RunData { session, row, .. } = self.runs.get(&id)?;
        let of = &self.sessions.get(session)?.row;
        let run = SessionRun { session: of.id, key: of.key.clone(), row: row.clone() };
        (of.key.realm == *realm).then_some(run)
    }

    /// The same with the first events of its session, where it is the first of it.
    pub(super) fn run_with_events(
        &self,
        realm: &RealmId,
        id: RunId,
        limit: usize,
    ) -> Result<Option<RunWithEvents>, StoreError> {
        let Some(run) = self.run(realm, id) else { return Ok(None) };
        let events = match run.row.no {
            1 => self.events(self.number(&run.key), 0, limit)?,
            _ => Vec::new(),
        };
        Ok(Some(RunWithEvents { run, events }))
    }

    /// Runs of contexts, the one that changed last first, and how many fit.
    pub(super) fn runs(
        &self,
        realm: &RealmId,
        filter: &RunFilter,
        page: &PageRequest,
    ) -> Result<RunPage, StoreError> {
        let before = page.cursor.as_deref().map(change_of).transpose()?;
        let RunFilter { whose, session, statuses, since } = filter;
        let is_meant = |run: &SessionRun| {
            let row = &run.row;
            run.key.space.has_many_runs()
                && whose.includes(row.owner.as_deref())
                && session.is_none_or(|session| run.session == session)
                && (statuses.is_empty() || statuses.contains(&row.status))
                && since.is_none_or(|since| row.changed_at >= since)
        };
        let found = self.runs.keys().filter_map(|id| self.run(realm, *id)).filter(is_meant);
        let mut found: Vec<((Millis, RunId), SessionRun)> =
            found.map(|run| ((run.row.changed_at, run.row.id), run)).collect();
        let total = found.len() as u64;
        found.sort_by(|(one, _), (other, _)| other.cmp(one));
        found.retain(|(place, _)| before.is_none_or(|before| *place < before));
        let page = paged(found, page, |(at, run)| format!("{}.{:032x}", at.0, run.0));
        Ok(RunPage { page, total })
    }

    fn session_ask(&self, ask: &AskData) -> Option<SessionAsk> {
        let of = &self.sessions.get(&ask.session)?.row;
        Some(SessionAsk { session: of.id, key: of.key.clone(), row: ask.row.clone() })
    }

    pub(super) fn ask(&self, realm: &RealmId, id: AskId) -> Option<SessionAsk> {
        self.session_ask(self.ask_of(id)?).filter(|ask| ask.key.realm == *realm)
    }

    /// Asks, oldest first.
    pub(super) fn asks(
        &self,
        realm: &RealmId,
        filter: &AskFilter,
        page: &PageRequest,
    ) -> Result<ListPage<SessionAsk>, StoreError> {
        let after = number_of(page)?.unwrap_or(0);
        let is_meant = |found: &SessionAsk| {
            let AskFilter { session, run, kind, status, step, held } = filter;
            let ask = &found.row.ask;
            let is = found.row.status.name();
            found.key.realm == *realm
                && session.is_none_or(|session| found.session == session)
                && run.is_none_or(|run| ask.run == run)
                && kind.as_deref().is_none_or(|kind| ask.body.kind() == kind)
                && status.as_deref().is_none_or(|status| is == status)
                && step.as_ref().is_none_or(|step| ask.step == *step)
                && held.is_none_or(|held| ask.held.is_some() == held)
        };
        let mut found = Vec::new();
        for (number, ask) in self.asks.iter().filter(|(number, _)| **number > after) {
            let ask = self.session_ask(ask).filter(is_meant);
            found.extend(ask.map(|ask| (*number, ask)));
        }
        Ok(paged(found, page, u64::to_string))
    }

    /// How many asks are open, by kind.
    pub(super) fn open_asks(&self, realm: &RealmId) -> Vec<OpenAsks> {
        let mut open: BTreeMap<&str, OpenAsks> = BTreeMap::new();
        for data in self.asks.values().filter(|ask| ask.row.status == AskStatus::Open) {
            let of = self.sessions.get(&data.session);
            if of.is_none_or(|session| session.row.key.realm != *realm) {
                continue;
            }
            let kind = data.row.ask.body.kind();
            let at = data.row.ask.created_at;
            let new = || OpenAsks { kind: kind.to_owned(), count: 0, oldest: at };
            let counted = open.entry(kind).or_insert_with(new);
            counted.count += 1;
            counted.oldest = at.min(counted.oldest);
        }
        open.into_values().collect()
    }

    /// How many sessions are not over, by status, and how many are parked.
    pub(super) fn open_sessions(&self, realm: &RealmId) -> Vec<OpenSessions> {
        let mut open: BTreeMap<&str, u64> = BTreeMap::new();
        for row in self.sessions.values().map(|session| &session.row) {
            if row.key.realm != *realm {
                continue;
            }
            let status = (!row.status.is_over()).then(|| row.status.name());
            let parked = row.parked.as_ref().map(|_| PARKED);
            status.into_iter().chain(parked).for_each(|name| *open.entry(name).or_default() += 1);
        }
        let counted = open.into_iter();
        counted.map(|(status, count)| OpenSessions { status: status.to_owned(), count }).collect()
    }

    /// How many bytes the runs store that are there, by realm and owner.
    pub(super) fn stored_bytes(&self) -> Vec<StoredBytes> {
        let mut sums: BTreeMap<(RealmId, Option<Arc<str>>), u64> = BTreeMap::new();
        for RunData { session, row, .. } in self.runs.values() {
            let Some(session) = self.sessions.get(session) else { continue };
            let whose = (session.row.key.realm.clone(), row.owner.clone());
            *sums.entry(whose).or_default() += row.bytes;
        }
        let rows = sums.into_iter();
        rows.map(|((realm, owner), bytes)| StoredBytes { realm, owner, bytes }).collect()
    }

    /// How often cases of a pipeline took which path, the most frequent first.
    pub(super) fn tallies(&self, realm: &RealmId, pipeline: &PipelineName) -> Vec<TallyRow> {
        let mut rows = Vec::new();
        for ((of, name, deterministic, reason), (count, last_at)) in &self.tallies {
            if of == realm && name == pipeline {
                let deterministic = *deterministic;
                let reason = reason.clone();
                rows.push(TallyRow { deterministic, reason, count: *count, last_at: *last_at });
            }
        }
        rows.sort_by(|one, other| {
            let by_count = other.count.cmp(&one.count);
            let by_reason = one.reason.cmp(&other.reason);
            by_count.then(by_reason).then(one.deterministic.cmp(&other.deterministic))
        });
        rows
    }

    /// The outcome of a keyed request.
    pub(super) fn once(&self, name: &KeyName) -> Option<OnceRow> {
        self.keys.get(name).cloned()
    }

    /// The feed of a realm after a cursor.
    pub(super) fn feed(&self, realm: &RealmId, after: u64, limit: usize) -> Vec<FeedRow> {
        let mut feed = Vec::new();
        for (cursor, row) in self.journal.range(after.saturating_add(1)..) {
            let Some(session) = self.sessions.get(&row.session) else { continue };
            if session.row.key.realm == *realm && feed.len() < limit {
                let SessionRow { id, key, owner, plan, .. } = session.row.clone();
                let cursor = *cursor;
                let body = row.body.clone();
                feed.push(FeedRow { cursor, session: id, key, owner, plan, body });
            }
        }
        feed
    }

    /// The newest row's cursor; one that was removed counts too.
    pub(super) fn feed_end(&self) -> u64 {
        let newest = self.journal.last_key_value().map_or(0, |(number, _)| *number);
        newest.max(self.removed_to)
    }

    /// The consumers of a realm whose names begin so.
    pub(super) fn consumers(&self, realm: &RealmId, prefix: &str) -> Vec<(String, u64)> {
        let is_meant =
            |((of, name), _): &(&(RealmId, String), &u64)| of == realm && name.starts_with(prefix);
        let found = self.consumers.iter().filter(is_meant);
        found.map(|((_, name), cursor)| (name.clone(), *cursor)).collect()
    }

    /// How far a named consumer has read; 0 where it has no place.
    pub(super) fn consumer(&self, realm: &RealmId, name: &str) -> u64 {
        self.consumers.get(&(realm.clone(), name.to_owned())).copied().unwrap_or(0)
    }
}

/// The session in this space; without one that in `session`, else the only one.
fn the_only<'t>(
    found: impl Iterator<Item = &'t SessionRow>,
    space: Option<&Space>,
) -> Option<SessionRow> {
    let found: Vec<&SessionRow> = found.collect();
    let named = Space::session();
    let row = found.iter().find(|row| row.key.space == *space.unwrap_or(&named));
    let only = || found.first().filter(|_| space.is_none() && found.len() == 1);
    row.or_else(only).map(|row| (*row).clone())
}

/// The events of one journal row, as texts.
pub(super) fn split(body: &str) -> Result<Vec<(u64, String)>, StoreError> {
    #[derive(Deserialize)]
    struct Numbered {
        seq: u64,
    }
    let unreadable = |error: serde_json::Error| StoreError::Unreadable(error.to_string());
    let texts: Vec<&RawValue> = serde_json::from_str(body).map_err(unreadable)?;
    let numbered = |text: &RawValue| -> serde_json::Result<(u64, String)> {
        let event: Numbered = serde_json::from_str(text.get())?;
        Ok((event.seq, text.get().to_owned()))
    };
    texts.into_iter().map(numbered).collect::<Result<_, _>>().map_err(unreadable)
}

fn torn(seq: u64) -> StoreError {
    StoreError::Unreadable(format!("event {seq} does not make the history entry that it should"))
}

/// The page out of all that is left of a list; each item with its place in it.
fn paged<P, T>(
    mut rows: Vec<(P, T)>,
    page: &PageRequest,
    cursor: impl Fn(&P) -> String,
) -> ListPage<T> {
    let limit = page.limit.max(1);
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor = rows.last().filter(|_| more).map(|(place, _)| cursor(place));
    ListPage { items: rows.into_iter().map(|(_, item)| item).collect(), next_cursor }
}

fn number_of(page: &PageRequest) -> Result<Option<u64>, StoreError> {
    let number = |cursor: &String| cursor.parse().map_err(|_| bad_cursor(cursor));
    page.cursor.as_ref().map(number).transpose()
}

fn bad_cursor(cursor: &str) -> StoreError {
    StoreError::BadCursor(format!("cursor `{cursor}` is not of this list; begin without one"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A place among changed runs out of its cursor.
fn change_of(cursor: &str) -> Result<(Millis, RunId), StoreError> {
    let read = || {
        let (at, run) = cursor.split_once('.')?;
        Some((Millis(at.parse().ok()?), RunId(u128::from_str_radix(run, 16).ok()?)))
    };
    read().ok_or_else(|| bad_cursor(cursor))
}

/// A place in the history out of its cursor.
fn place_of(cursor: &str) -> Result<(Vec<u8>, u64), StoreError> {
    let read = || {
        let (position, seq) = cursor.split_once('-')?;
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let position: Option<Vec<u8>> = position.as_bytes().chunks(2).map(byte).collect();
        let seq: Option<u64> = seq.parse().ok();
        position.zip(seq)
    };
    read().ok_or_else(|| bad_cursor(cursor))
}
