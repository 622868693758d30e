//! What the model store holds, and how one append changes it: everything that can be refused is
//! looked at first, so that what is written is all of it.

use kernel::ask::AskStatus;
use kernel::contracts::StoreError;
use kernel::contracts::identity::api_keys::StoredKey;
use kernel::contracts::identity::claims::SubjectClaims;
use kernel::contracts::identity::principals::StoredPrincipal;
use kernel::contracts::identity::realms::RealmRecord;
use kernel::contracts::webhooks::{Webhook, WebhookName};
use kernel::definition::pipeline::OTHER_REASONS;
use kernel::identity::audit::ChainName;
use kernel::identity::chain::{Base, Head, Row};
use kernel::identity::key::KeyId;
use kernel::journal::projection::{
    Append, AskChange, AskRow, FormerRoute, HistoryRow, OnceRow, ParkedSession, RunRow, SessionRow,
};
use kernel::values::ids::{
    AskId, ContentHash, Fence, Millis, PipelineName, RealmId, RunId, SessionId, SessionKey,
    SessionVersion,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The node of what no one drives, or has claimed.
pub(super) const NOBODY: u64 = 0;

/// Everything there is, by number in the order in which it came.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// The sessions, by number.
    pub(super) sessions: BTreeMap<u64, SessionData>,
    /// The journal's rows of all sessions, by their place in the feed.
    pub(super) journal: BTreeMap<u64, JournalRow>,
    /// How many rows the journal ever had: no number comes twice.
    pub(super) rows_made: u64,
    /// The newest row that was removed.
    pub(super) removed_to: u64,
    pub(super) runs: BTreeMap<RunId, RunData>,
    /// The asks, by number.
    pub(super) asks: BTreeMap<u64, AskData>,
    /// The closures' texts.
    pub(super) closures: BTreeMap<(RealmId, ContentHash), String>,
    /// The closures that perhaps no run pins.
    pub(super) loose: BTreeSet<(RealmId, ContentHash)>,
    /// The texts of tools' specs that calls pinned.
    pub(super) specs: BTreeMap<(RealmId, ContentHash), String>,
    /// Which closures' runs pinned which specs: realm, closure, spec.
    pub(super) spec_pins: BTreeSet<(RealmId, ContentHash, ContentHash)>,
    /// How far consumers have read.
    pub(super) consumers: BTreeMap<(RealmId, String), u64>,
    /// The outcome of keyed requests.
    pub(super) keys: BTreeMap<KeyName, OnceRow>,
    /// How often which path was taken, and when last.
    pub(super) tallies: BTreeMap<(RealmId, PipelineName, bool, String), (u64, Millis)>,
    /// The keys of the server.
    pub(super) api_keys: BTreeMap<KeyId, StoredKey>,
    pub(super) claims: BTreeMap<Arc<str>, SubjectClaims>,
    pub(super) principals: BTreeMap<Arc<str>, StoredPrincipal>,
    /// The realms that were made, those that were removed included.
    pub(super) realms: BTreeMap<RealmId, RealmRecord>,
    /// The webhooks of tasks.
    pub(super) webhooks: BTreeMap<WebhookName, Webhook>,
    pub(super) audit: BTreeMap<ChainName, Chain>,
}

/// A chain of the audit.
#[derive(Debug, Default)]
pub(super) struct Chain {
    pub(super) rows: BTreeMap<u64, Row>,
    /// Its last row.
    pub(super) head: Head,
    /// What it begins with once its oldest rows were removed.
    pub(super) base: Option<Base>,
}

/// A request's key, with whose it is, who asked, and of which endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyName {
    pub(super) realm: RealmId,
    pub(super) subject: String,
    pub(super) route: String,
    pub(super) key: String,
}

impl Tables {
    /// Whether a key is taken, also under its earlier route.
    fn is_taken(&self, realm: &RealmId, once: &OnceRow, earlier: Option<&FormerRoute>) -> bool {
        let name = KeyName::of(realm, once);
        let is_taken_before = |FormerRoute { route, since }: &FormerRoute| {
            let before = KeyName { route: route.clone(), ..name.clone() };
            self.keys.get(&before).is_some_and(|row| row.at >= *since)
        };
        self.keys.contains_key(&name) || earlier.is_some_and(is_taken_before)
    }
}

impl KeyName {
    pub(super) fn of(realm: &RealmId, once: &OnceRow) -> Self {
        Self {
            realm: realm.clone(),
            subject: once.subject.to_string(),
            route: once.route.clone(),
            key: once.key.clone(),
        }
    }
}

/// A session and what only it has.
#[derive(Debug)]
pub(super) struct SessionData {
    /// Its row, with its fence.
    pub(super) row: SessionRow,
    /// The node that drives it.
    pub(super) owner: u64,
    /// The node that claimed it since its last append.
    pub(super) claimed: u64,
    /// The newest snapshot, and the last event in it.
    pub(super) snapshot: Option<(u64, String)>,
    /// Its finished calls, in the order of the history.
    pub(super) history: BTreeMap<(Vec<u8>, u64), HistoryRow>,
    /// The blobs that its journal names, and the last event of the newest row that does.
    pub(super) blobs: BTreeMap<ContentHash, u64>,
    /// Those of them that hold values.
    pub(super) held: BTreeSet<ContentHash>,
}

impl SessionData {
    /// Which session it is, and in which state.
    pub(super) fn known(&self) -> SessionVersion {
        self.row.known()
    }

    /// How many rows of other kinds only it has.
    pub(super) fn rows(&self) -> usize {
        self.history.len() + self.blobs.len() + usize::from(self.snapshot.is_some())
    }
}

/// The events of one append.
#[derive(Debug, Clone)]
pub(super) struct JournalRow {
    /// The session's number.
    pub(super) session: u64,
    /// The first event in it.
    pub(super) first: u64,
    pub(super) last: u64,
    /// All of them, as a JSON array.
    pub(super) body: String,
}

#[derive(Debug)]
pub(super) struct RunData {
    /// The session's number.
    pub(super) session: u64,
    pub(super) row: RunRow,
    /// The closure that it pins.
    pub(super) pinned: Option<ContentHash>,
}

#[derive(Debug)]
pub(super) struct AskData {
    /// The session's number.
    pub(super) session: u64,
    pub(super) row: AskRow,
}

impl Tables {
    pub(super) fn number(&self, key: &SessionKey) -> Option<u64> {
        let is_it = |(_, session): &(&u64, &SessionData)| session.row.key == *key;
        self.sessions.iter().find(is_it).map(|(number, _)| *number)
    }

    pub(super) fn number_of_id(&self, realm: &RealmId, id: SessionId) -> Option<u64> {
        let is_it = |(_, session): &(&u64, &SessionData)| {
            session.row.id == id && session.row.key.realm == *realm
        };
        self.sessions.iter().find(is_it).map(|(number, _)| *number)
    }

    /// The rows of one session, with their places in the feed.
    pub(super) fn rows_of(&self, session: u64) -> impl Iterator<Item = (u64, &JournalRow)> {
        let is_its = move |(_, row): &(&u64, &JournalRow)| row.session == session;
        self.journal.iter().filter(is_its).map(|(number, row)| (*number, row))
    }

    pub(super) fn runs_of(&self, session: u64) -> impl Iterator<Item = &RunData> {
        self.runs.values().filter(move |run| run.session == session)
    }

    pub(super) fn ask_of(&self, id: AskId) -> Option<&AskData> {
        self.asks.values().find(|ask| ask.row.ask.id == id)
    }

    /// Refuses an append, or writes all of it for this node.
    pub(super) fn append(
        &mut self,
        append: &Append,
        node: u64,
        reasons_max: usize,
    ) -> Result<(), StoreError> {
        let row = &append.session;
        if row.seq < append.first_seq {
            let why = format!("an append to session `{}` has no events", row.key);
            return Err(StoreError::Failed(why));
        }
        self.check_realm(&row.key.realm)?;
        self.check_asks(append)?;
        if let Some(once) = &append.once
            && self.is_taken(&row.key.realm, once, append.earlier.as_ref())
        {
            return Err(StoreError::Conflict(format!("key {}", once.key)));
        }
        let known = self.check_session(append)?;
        self.check_runs(append, known)?;
        let number = match known {
            Some(number) => number,
            None => self.create(row),
        };
        self.write_session(append, number, if append.owned { node } else { NOBODY });
        self.write_runs(append, number);
        self.write_asks(append, number);
        self.write_rest(append, reasons_max);
        Ok(())
    }

    /// Nothing is written for a realm that was removed.
    pub(super) fn check_realm(&self, realm: &RealmId) -> Result<(), StoreError> {
        match self.realms.get(realm).is_some_and(|record| record.removed.is_some()) {
            true => Err(StoreError::RealmRemoved(realm.to_string())),
            false => Ok(()),
        }
    }

    /// Asks are opened once, and closed while they are open.
    fn check_asks(&self, append: &Append) -> Result<(), StoreError> {
        let mut open: BTreeMap<AskId, bool> = BTreeMap::new();
        for change in &append.asks {
            match change {
                AskChange::Opened(ask) => {
                    if self.ask_of(ask.id).is_some() || open.insert(ask.id, true).is_some() {
                        return Err(StoreError::Failed(format!("`{}` is there already", ask.id)));
                    }
                }
                AskChange::Closed { ask, .. } => {
                    let stored =
                        || self.ask_of(*ask).is_some_and(|ask| ask.row.status == AskStatus::Open);
                    if !open.get(ask).copied().unwrap_or_else(stored) {
                        return Err(StoreError::Conflict(append.session.key.to_string()));
                    }
                    open.insert(*ask, false);
                }
            }
        }
        Ok(())
    }

    /// The number of the session, if it is to be there and is as the append says.
    fn check_session(&self, append: &Append) -> Result<Option<u64>, StoreError> {
        let SessionRow { key, id, .. } = &append.session;
        if append.creates {
            let mut sessions = self.sessions.values();
            return match sessions.any(|other| other.row.key == *key || other.row.id == *id) {
                true => Err(StoreError::Exists(key.to_string())),
                false => Ok(None),
            };
        }
        let number = self.number_of_id(&key.realm, *id);
        let is_it = |number: &u64| {
            self.sessions.get(number).is_some_and(|session| session.row.fence == append.fence)
        };
        match number.filter(is_it) {
            Some(number) => Ok(Some(number)),
            None => Err(StoreError::Conflict(key.to_string())),
        }
    }

    /// A run stays with its session.
    fn check_runs(&self, append: &Append, session: Option<u64>) -> Result<(), StoreError> {
        for run in &append.runs {
            if self.runs.get(&run.id).is_some_and(|known| Some(known.session) != session) {
                let why = format!("`{}` is a run of another session", run.id);
                return Err(StoreError::Failed(why));
            }
        }
        Ok(())
    }

    fn create(&mut self, row: &SessionRow) -> u64 {
        let number = self.sessions.last_key_value().map_or(1, |(number, _)| number + 1);
        let session = SessionData {
            row: SessionRow { fence: Fence::NONE, ..row.clone() },
            owner: NOBODY,
            claimed: NOBODY,
            snapshot: None,
            history: BTreeMap::new(),
            blobs: BTreeMap::new(),
            held: BTreeSet::new(),
        };
        self.sessions.insert(number, session);
        number
    }

    /// The session's row, its journal, and what else only it has.
    fn write_session(&mut self, append: &Append, number: u64, owner: u64) {
        let row = &append.session;
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.row = SessionRow {
            key: session.row.key.clone(),
            created_at: session.row.created_at,
            parked: None,
            fence: session.row.fence.next(),
            ..row.clone()
        };
        session.owner = owner;
        session.claimed = NOBODY;
        if let Some(snapshot) = &append.snapshot {
            session.snapshot = Some((row.seq, snapshot.clone()));
        }
        for entry in &append.history {
            session.history.insert((entry.position.clone(), entry.finished_seq), entry.clone());
        }
        for hash in &append.blobs {
            session.blobs.insert(hash.clone(), row.seq);
        }
        session.held.extend(append.held.iter().cloned());
        self.rows_made += 1;
        let first = append.first_seq;
        let body = append.body.clone();
        self.journal
            .insert(self.rows_made, JournalRow { session: number, first, last: row.seq, body });
    }

    fn write_runs(&mut self, append: &Append, session: u64) {
        for run in &append.runs {
            let new =
                || RunData { session, row: run.clone(), pinned: append.pins.get(&run.id).cloned() };
            let known = self.runs.entry(run.id).or_insert_with(new);
            // What a run is of does not change.
            known.row = RunRow {
                no: known.row.no,
                owner: known.row.owner.clone(),
                plan: known.row.plan.clone(),
                started_at: known.row.started_at,
                ..run.clone()
            };
        }
    }

    fn write_asks(&mut self, append: &Append, session: u64) {
        for change in &append.asks {
            match change {
                AskChange::Opened(ask) => {
                    let number = self.asks.last_key_value().map_or(1, |(number, _)| number + 1);
                    let ask = (**ask).clone();
                    let row = AskRow { ask, status: AskStatus::Open, decision: None };
                    self.asks.insert(number, AskData { session, row });
                }
                AskChange::Closed { ask, status, decision } => {
                    let is_it = |known: &&mut AskData| known.row.ask.id == *ask;
                    if let Some(known) = self.asks.values_mut().find(is_it) {
                        known.row.status = *status;
                        known.row.decision = decision.as_deref().cloned();
                    }
                }
            }
        }
    }

    /// What belongs to no session.
    fn write_rest(&mut self, append: &Append, reasons_max: usize) {
        let realm = &append.session.key.realm;
        if let Some(closure) = &append.closure {
            let name = (realm.clone(), closure.hash.clone());
            self.loose.remove(&name);
            self.closures.entry(name).or_insert_with(|| closure.body.clone());
        }
        if let Some(once) = &append.once {
            self.keys.insert(KeyName::of(realm, once), once.clone());
        }
        for pinned in &append.specs {
            let closure = pinned.closure.clone();
            let hash = pinned.hash.clone();
            let text = || pinned.spec.pinned_text();
            self.specs.entry((realm.clone(), hash.clone())).or_insert_with(text);
            self.spec_pins.insert((realm.clone(), closure, hash));
        }
        if append.tally.is_some() {
            self.count(append, reasons_max);
        }
    }

    /// Counts a case. Beyond so many unknown reasons a new one counts among the others.
    fn count(&mut self, append: &Append, reasons_max: usize) {
        let (Some(tally), realm) = (&append.tally, &append.session.key.realm) else { return };
        let road = |reason: &str| {
            (realm.clone(), tally.pipeline.clone(), tally.deterministic, reason.to_owned())
        };
        let is_unknown =
            |(of, pipeline, deterministic, reason): &&(RealmId, PipelineName, bool, String)| {
                *of == *realm
                    && *pipeline == tally.pipeline
                    && !deterministic
                    && reason != OTHER_REASONS
            };
        let mut counted = road(&tally.reason);
        if !self.tallies.contains_key(&counted)
            && !tally.deterministic
            && self.tallies.keys().filter(is_unknown).count() >= reasons_max
        {
            counted = road(OTHER_REASONS);
        }
        let at = append.session.updated_at;
        let (times, last_at) = self.tallies.entry(counted).or_insert((0, at));
        *times += 1;
        *last_at = at.max(*last_at);
    }

    /// Leaves a session alone until then; one that waits for no one but people stays as it is.
    pub(super) fn park(&mut self, key: &SessionKey, parked: ParkedSession) {
        let number = self.number(key);
        let Some(session) = number.and_then(|number| self.sessions.get_mut(&number)) else {
            return;
        };
        session.row.fence = session.row.fence.next();
        session.row.wake_at = session.row.wake_at.map(|at| at.max(parked.until));
        session.row.parked = Some(parked);
    }

    /// Lets a session that waits for a time be driven at this one, unless it moved on.
    pub(super) fn postpone(&mut self, key: &SessionKey, fence: Fence, at: Millis) {
        let number = self.number(key);
        let session = number.and_then(|number| self.sessions.get_mut(&number));
        if let Some(session) = session.filter(|session| session.row.fence == fence) {
            session.row.wake_at = session.row.wake_at.map(|_| at);
        }
    }
}
