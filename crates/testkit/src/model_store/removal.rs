//! Removal in the model store: sessions, old runs, closures, and the positions of consumers that
//! hold all of that back.

use super::reads::split;
use super::tables::{JournalRow, SessionData, Tables};
use kernel::contracts::{
    FeedStart, PrunedSlice, RETENTION, RealmSet, SINKS, Slice, StoreError, Trimmable,
};
use kernel::event::{self, Event};
use kernel::journal::trim::Trim;
use kernel::values::datum::blobs_named;
use kernel::values::ids::{ContentHash, Millis, RealmId, RunId, SessionKey, SessionVersion};
use std::collections::BTreeSet;

impl Tables {
    /// Moves a named consumer on, never back.
    pub(super) fn advance(&mut self, realm: &RealmId, name: &str, cursor: u64) {
        let place = self.consumers.entry((realm.clone(), name.to_owned())).or_default();
        *place = cursor.max(*place);
    }

    /// The place of a named consumer, which is given one if it has none.
    pub(super) fn begin(&mut self, realm: &RealmId, name: &str, start: FeedStart) -> u64 {
        let first = match start {
            FeedStart::Oldest => 0,
            FeedStart::Newest => self.feed_end(),
        };
        *self.consumers.entry((realm.clone(), name.to_owned())).or_insert(first)
    }

    /// Removes the place of a named consumer; false where it has none.
    pub(super) fn forget(&mut self, realm: &RealmId, name: &str) -> bool {
        self.consumers.remove(&(realm.clone(), name.to_owned())).is_some()
    }

    /// The sink of a realm that is furthest behind this row; none where all have passed it.
    fn behind(&self, realm: &RealmId, row: u64) -> Option<String> {
        let sinks = self.consumers(realm, SINKS).into_iter();
        let behind = sinks.filter(|(_, cursor)| *cursor < row);
        behind.min_by_key(|(name, cursor)| (*cursor, name.clone())).map(|(name, _)| name)
    }

    /// The last row that a session has in the feed; 0 if it has none.
    fn newest_row(&self, session: u64) -> u64 {
        self.rows_of(session).last().map_or(0, |(number, _)| number)
    }

    /// The number of a session, if it is there; a conflict if it is not the known one.
    fn known(&self, key: &SessionKey, known: SessionVersion) -> Result<Option<u64>, StoreError> {
        let Some(number) = self.number(key) else { return Ok(None) };
        let is_it = self.sessions.get(&number).is_some_and(|session| session.known() == known);
        if is_it { Ok(Some(number)) } else { Err(StoreError::Conflict(key.to_string())) }
    }

    pub(super) fn remove(
        &mut self,
        key: &SessionKey,
        known: SessionVersion,
    ) -> Result<(), StoreError> {
        if let Some(number) = self.known(key, known)? {
            self.remove_session(number);
        }
        Ok(())
    }

    /// Removes a session that all sinks have passed; who has not.
    pub(super) fn remove_sent(
        &mut self,
        key: &SessionKey,
        known: SessionVersion,
    ) -> Result<Option<String>, StoreError> {
        let Some(number) = self.known(key, known)? else { return Ok(None) };
        let behind = self.behind(&key.realm, self.newest_row(number));
        if behind.is_none() {
            self.remove_session(number);
        }
        Ok(behind)
    }

    /// Removes a session and all that belongs to it; how many rows that were.
    fn remove_session(&mut self, number: u64) -> u64 {
        self.removed_to = self.removed_to.max(self.newest_row(number));
        self.loosen(number, u32::MAX);
        let before = self.journal.len() + self.runs.len() + self.asks.len();
        self.journal.retain(|_, row| row.session != number);
        self.runs.retain(|_, run| run.session != number);
        self.asks.retain(|_, ask| ask.session != number);
        let after = self.journal.len() + self.runs.len() + self.asks.len();
        let webhooks = self.drop_webhooks();
        let own = self.sessions.remove(&number).map_or(0, |session| 1 + session.rows());
        (before - after + own + webhooks) as u64
    }

    /// Removes the webhooks of runs that are gone; how many.
    fn drop_webhooks(&mut self) -> usize {
        let before = self.webhooks.len();
        let runs = &self.runs;
        self.webhooks.retain(|name, _| runs.contains_key(&name.run));
        before - self.webhooks.len()
    }

    /// Removes all that a realm owned, but for the audit; whether there was something.
    pub(super) fn purge(&mut self, realm: &RealmId) -> bool {
        let is_its = |session: &SessionData| session.row.key.realm == *realm;
        let sessions = self.sessions.iter().filter(|(_, session)| is_its(session));
        let sessions: Vec<u64> = sessions.map(|(number, _)| *number).collect();
        let found: u64 = sessions.into_iter().map(|number| self.remove_session(number)).sum();
        let before = self.keyed_rows();
        self.closures.retain(|(of, _), _| of != realm);
        self.loose.retain(|(of, _)| of != realm);
        self.specs.retain(|(of, _), _| of != realm);
        self.spec_pins.retain(|(of, _, _)| of != realm);
        self.consumers.retain(|(of, _), _| of != realm);
        self.keys.retain(|name, _| name.realm != *realm);
        self.tallies.retain(|(of, ..), _| of != realm);
        found > 0 || before > self.keyed_rows()
    }

    /// How many rows there are that name their realm themselves.
    fn keyed_rows(&self) -> usize {
        let pins = self.closures.len() + self.loose.len() + self.specs.len() + self.spec_pins.len();
        pins + self.consumers.len() + self.keys.len() + self.tallies.len()
    }

    /// Lists what the runs of a session pin, up to this one, before they are removed.
    fn loosen(&mut self, session: u64, last_run: u32) {
        let Some(realm) = self.sessions.get(&session).map(|found| found.row.key.realm.clone())
        else {
            return;
        };
        let old = self.runs_of(session).filter(|run| run.row.no <= last_run);
        let pinned = old.filter_map(|run| run.pinned.clone());
        let listed: Vec<_> = pinned.map(|hash| (realm.clone(), hash)).collect();
        let listed = listed.into_iter().filter(|name| self.closures.contains_key(name));
        self.loose.extend(listed);
    }

    /// Removes one slice of the old sessions, and after the last one old keys.
    pub(super) fn prune(
        &mut self,
        realms: RealmSet<'_>,
        before: Millis,
        but: &[SessionKey],
        slice: Slice<u64>,
    ) -> PrunedSlice {
        let is_old = |(number, session): &(&u64, &SessionData)| {
            let row = &session.row;
            **number > slice.after
                && is_of(realms, &row.key.realm)
                && row.updated_at < before
                && row.created_at < before
                && (row.run.is_none() || row.status.is_over())
        };
        let old = self.sessions.iter().filter(is_old).take(slice.limit);
        let old: Vec<(u64, SessionKey)> =
            old.map(|(number, session)| (*number, session.row.key.clone())).collect();
        let is_full = old.len() >= slice.limit;
        let mut pruned = PrunedSlice {
            next: old.last().filter(|_| is_full).map(|(number, _)| *number),
            ..PrunedSlice::default()
        };
        for (number, key) in old {
            let newest = self.newest_row(number);
            if but.contains(&key) || self.behind(&key.realm, newest).is_some() {
                continue;
            }
            pruned.rows += self.remove_session(number);
            self.advance(&key.realm, RETENTION, newest);
            pruned.removed.push(key);
        }
        if pruned.next.is_none() {
            pruned.rows += self.prune_keys(realms, before);
        }
        pruned
    }

    /// Removes keys of requests that are old and whose runs are gone; how many.
    fn prune_keys(&mut self, realms: RealmSet<'_>, before: Millis) -> u64 {
        let keys = self.keys.len();
        let runs = &self.runs;
        self.keys.retain(|name, once| {
            let is_there = once.run.is_some_and(|run| runs.contains_key(&run));
            is_there || once.at >= before || !is_of(realms, &name.realm)
        });
        (keys - self.keys.len()) as u64
    }

    /// Sessions with runs that ended before this and that are not their newest, after a place.
    pub(super) fn trimmable(
        &self,
        realms: RealmSet<'_>,
        before: Millis,
        slice: Slice<Option<(Millis, u64)>>,
    ) -> Vec<Trimmable> {
        let mut found: Vec<Trimmable> = Vec::new();
        for (number, session) in &self.sessions {
            let newest = self.runs_of(*number).map(|run| run.row.no).max().unwrap_or(0);
            let older = self.runs_of(*number).filter(|run| run.row.no < newest);
            let ended = older.filter_map(|run| run.row.ended_at).min();
            let Some(ended) = ended.filter(|at| *at < before) else { continue };
            let cursor = (ended, *number);
            if !is_of(realms, &session.row.key.realm)
                || slice.after.is_some_and(|after| cursor <= after)
            {
                continue;
            }
            let stays = self.runs_of(*number).filter(|run| {
                run.row.no == newest || run.row.ended_at.is_none_or(|at| at >= before)
            });
            found.push(Trimmable {
                cursor,
                key: session.row.key.clone(),
                id: session.row.id,
                fence: session.row.fence,
                keeps: stays.map(|run| run.row.no).min().unwrap_or(newest),
            });
        }
        found.sort_by_key(|found| found.cursor);
        found.truncate(slice.limit);
        found
    }

    /// The session that a trim is of, if it is as the trim says.
    fn stands(&self, trim: &Trim) -> Option<u64> {
        let number = self.number_of_id(&trim.key.realm, trim.id)?;
        let session = self.sessions.get(&number)?;
        let (old, new): (Vec<_>, Vec<_>) =
            self.runs_of(number).partition(|run| run.row.no <= trim.last_run);
        let is_over = old.iter().all(|run| run.row.ended_at.is_some_and(|at| at < trim.before));
        let first = self.rows_of(number).next().map_or(0, |(_, row)| row.first);
        let stands = session.row.fence == trim.fence
            && !old.is_empty()
            && !new.is_empty()
            && is_over
            && first < trim.seq;
        stands.then_some(number)
    }

    /// Removes the beginning of a session's journal, if the session is as the request says; how
    /// many rows went.
    pub(super) fn trim(&mut self, trim: &Trim) -> Result<Option<u64>, StoreError> {
        let Some(session) = self.stands(trim) else { return Ok(None) };
        let is_held = |(_, row): &(u64, &JournalRow)| row.first <= trim.seq && trim.seq <= row.last;
        let held = self.rows_of(session).find(is_held);
        let Some((place, row)) = held.map(|(place, row)| (place, row.clone())) else {
            return Ok(None);
        };
        if self.behind(&trim.key.realm, place).is_some() {
            return Ok(None);
        }
        let mut events = vec![trim.base.clone()];
        let rest = split(&row.body)?.into_iter().filter(|(seq, _)| *seq > trim.seq);
        events.extend(rest.map(|(_, text)| text));
        let body = format!("[{}]", events.join(","));
        let gone = self.cut(session, place, trim, &body);
        if let Some(row) = self.journal.get_mut(&place) {
            row.first = trim.seq;
            row.body = body;
        }
        self.advance(&trim.key.realm, RETENTION, place);
        Ok(Some(gone))
    }

    /// Removes what lies before a row; how many rows. The row will be this one.
    fn cut(&mut self, session: u64, place: u64, trim: &Trim, body: &str) -> u64 {
        self.loosen(session, trim.last_run);
        let last = self.journal.get(&place).map_or(0, |row| row.last);
        let old = self.runs_of(session).filter(|run| run.row.no <= trim.last_run);
        let old: BTreeSet<RunId> = old.map(|run| run.row.id).collect();
        let before = self.journal.len() + self.runs.len() + self.asks.len();
        self.journal.retain(|number, row| row.session != session || *number >= place);
        self.runs.retain(|id, _| !old.contains(id));
        self.asks.retain(|_, ask| ask.session != session || !old.contains(&ask.row.ask.run));
        let after = self.journal.len() + self.runs.len() + self.asks.len();
        self.drop_webhooks();
        let Some(found) = self.sessions.get_mut(&session) else { return 0 };
        let own_before = found.rows();
        let first_kept = trim.last_run.saturating_add(1).to_be_bytes().to_vec();
        found.history.retain(|(position, _), _| *position >= first_kept);
        found.blobs.retain(|_, seq| *seq > last);
        found.snapshot = found.snapshot.take().filter(|(seq, _)| *seq >= trim.seq);
        let gone = before - after + own_before - found.rows();
        let SessionData { blobs, held, .. } = found;
        held.retain(|hash| blobs.contains_key(hash));
        blobs.extend(blobs_named(body).into_iter().map(|hash| (hash, last)));
        held.extend(event::read(body).map(|events| Event::held_blobs(&events)).unwrap_or_default());
        found.row.fence = found.row.fence.next();
        gone as u64
    }

    /// Looks at so many closures whose runs were removed, and removes those that no run pins.
    pub(super) fn sweep_closures(&mut self, limit: usize) -> (usize, u64) {
        let looked: Vec<_> = self.loose.iter().take(limit).cloned().collect();
        let mut removed = 0;
        for name in &looked {
            self.loose.remove(name);
            let is_pinned = self.runs.values().any(|run| run.pinned.as_ref() == Some(&name.1));
            if !is_pinned && self.closures.remove(name).is_some() {
                removed += 1;
                self.unpin(&name.0, &name.1);
            }
        }
        (looked.len(), removed)
    }

    /// A closure is gone: so are the specs that no other pins.
    fn unpin(&mut self, realm: &RealmId, closure: &ContentHash) {
        self.spec_pins.retain(|(of, by, _)| of != realm || by != closure);
        let pins = &self.spec_pins;
        let is_pinned =
            |hash: &ContentHash| pins.iter().any(|(of, _, spec)| of == realm && spec == hash);
        self.specs.retain(|(of, hash), _| of != realm || is_pinned(hash));
    }
}

/// Whether this realm is among those that are meant.
fn is_of(realms: RealmSet<'_>, realm: &RealmId) -> bool {
    match realms {
        RealmSet::One(one) => one == realm,
        RealmSet::AllBut(others) => !others.contains(realm),
    }
}
