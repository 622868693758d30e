//! The trail of decisions: what the audit keeps of those that no journal has. They wait in a
//! bounded buffer and are written together, soon. Each caller has a share of the buffer, and only
//! who fills it is refused: nothing is done that could not be written down. In local mode none of
//! this is used.

use crate::refusal::{Refusal, RefusalCode, Result, TryLater};
use crate::system::clock::timeout;
use crate::system::locks::lock;
use ahash::RandomState;
use kernel::contracts::identity::audit::Audit;
use kernel::contracts::{Clock, Spawn, StoreError};
use kernel::identity::audit::{ChainName, Entries, Entry, Mac};
use kernel::identity::chain::ChainKeys;
use kernel::values::caller::{Act, Caller};
use kernel::values::ids::RealmId;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, watch};

/// How long an entry waits for others before all of them are written. With the write itself it is
/// there within 200 milliseconds.
const WAIT_MS: u64 = 100;
/// From how many entries on none of them waits any longer: no share may fill up meanwhile.
const MANY: usize = SHARE_MAX / 2;
/// How long it takes until a failed write is tried again, and a caller should.
const RETRY_MS: u64 = 1_000;
/// How many entries are written at once, and how many a row has.
const BATCH_MAX: usize = 4_096;
const ROW_MAX: usize = 512;
/// How many entries of one caller wait at most.
const SHARE_MAX: usize = 16_384;
/// From how many on each caller has only a fair part of them.
const CROWDED: usize = 65_536;

/// What is kept beside what is journaled, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditRules {
    /// Whether what is not journaled is kept at all; not in local mode.
    pub unjournaled: bool,
    /// Whether allowed reads are kept.
    pub reads: bool,
    /// Whether callers wait until what was decided is written.
    pub strict: bool,
}

/// What the trail is made of.
pub struct AuditParts {
    /// Where it is kept.
    pub audit: Arc<dyn Audit>,
    /// What digests of arguments are made with.
    pub keys: Arc<dyn ChainKeys>,
    /// What is kept.
    pub rules: AuditRules,
}

/// The trail.
pub(crate) struct Trail {
    pub(crate) audit: Arc<dyn Audit>,
    keys: Arc<dyn ChainKeys>,
    rules: AuditRules,
    clock: Arc<dyn Clock>,
    spawn: Arc<dyn Spawn>,
    buffer: Mutex<Buffer>,
    /// How many entries it holds, for who only looks whether there is room.
    held: AtomicUsize,
    /// Told when many wait.
    many: Notify,
    /// How many entries were written, or given up with the store.
    written: watch::Sender<u64>,
}

/// Whose share: who acts as another fills none of the other's.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Whose {
    realm: RealmId,
    subject: Arc<str>,
    actor: Option<Arc<str>>,
}

/// What waits.
#[derive(Default)]
struct Buffer {
    entries: Vec<(Whose, Entry)>,
    /// How many entries of each caller wait or are being written, and of all of them.
    shares: HashMap<Whose, usize, RandomState>,
    held: usize,
    /// How many ever came.
    pushed: u64,
    /// Whether a task writes them.
    is_written: bool,
}

impl Buffer {
    /// Whether there is room for one more of this caller. Where all is crowded, those who hold less
    /// than a fair part still come in: they fill at most as much again.
    fn has_room(&self, caller: &Caller) -> bool {
        self.is_roomy() || self.has_room_for(&whose(caller))
    }

    /// Whether so little waits that no share can be full: most often.
    fn is_roomy(&self) -> bool {
        self.held < SHARE_MAX
    }

    fn has_room_for(&self, whose: &Whose) -> bool {
        let own = self.shares.get(whose).copied().unwrap_or_default();
        let fair = CROWDED / self.shares.len().max(1);
        own < SHARE_MAX && (self.held < CROWDED || own < fair)
    }

    fn add(&mut self, whose: Whose, entry: Entry) {
        match self.shares.get_mut(&whose) {
            Some(own) => *own += 1,
            None => {
                self.shares.insert(whose.clone(), 1);
            }
        }
        self.held += 1;
        self.pushed += 1;
        self.entries.push((whose, entry));
    }

    /// The next ones to be written.
    fn next(&mut self) -> Vec<(Whose, Entry)> {
        let rest = self.entries.split_off(self.entries.len().min(BATCH_MAX));
        std::mem::replace(&mut self.entries, rest)
    }

    /// Whether nothing is left to be written: the task ends with that.
    fn ends(&mut self) -> bool {
        self.is_written = !self.entries.is_empty();
        !self.is_written
    }

    /// The outcome of these is written.
    fn forget(&mut self, callers: &[Whose]) {
        self.held -= callers.len();
        // Most often several of one caller follow each other.
        for same in callers.chunk_by(|one, next| one == next) {
            let Some(whose) = same.first() else { continue };
            if let Some(own) = self.shares.get_mut(whose) {
                *own -= same.len();
                if *own == 0 {
                    self.shares.remove(whose);
                }
            }
        }
    }
}

impl Trail {
    pub(crate) fn new(parts: AuditParts, clock: Arc<dyn Clock>, spawn: Arc<dyn Spawn>) -> Self {
        let AuditParts { audit, keys, rules } = parts;
        let (buffer, held, many) = (Mutex::default(), AtomicUsize::new(0), Notify::new());
        let written = watch::Sender::new(0);
        Self { audit, keys, rules, clock, spawn, buffer, held, many, written }
    }

    /// The keyed digest of arguments.
    pub(crate) fn digest(&self, bytes: &[u8]) -> Mac {
        self.keys.digest(bytes)
    }

    /// What chains are made with.
    pub(crate) fn keys(&self) -> &dyn ChainKeys {
        &*self.keys
    }

    pub(crate) fn rules(&self) -> AuditRules {
        self.rules
    }

    /// Whether it is kept here that this act was allowed. What leads to an event is kept with that.
    pub(crate) fn keeps_allowed(&self, act: Act) -> bool {
        match act {
            Act::Read => self.rules.reads,
            Act::Run
            | Act::Talk
            | Act::Submit
            | Act::Call
            | Act::Cancel
            | Act::Fork
            | Act::Answer => false,
            Act::Export
            | Act::Remove
            | Act::Define
            | Act::LogIn
            | Act::Operate
            | Act::Administer
            | Act::Impersonate => true,
        }
    }

    /// Refuses a caller whose share of the buffer is full. Every request looks, and most often no
    /// share can be full.
    pub(crate) fn check_room(&self, caller: &Caller) -> Result<()> {
        let is_roomy = self.held.load(Ordering::Relaxed) < SHARE_MAX;
        let has_room = is_roomy || lock(&self.buffer).has_room(caller);
        if has_room { Ok(()) } else { Err(full(caller)) }
    }

    /// Has an entry written, soon. It is refused where the caller's share is full.
    pub(crate) fn push(self: &Arc<Self>, caller: &Caller, entry: Entry) -> Result<()> {
        let mut buffer = lock(&self.buffer);
        if !buffer.has_room(caller) {
            return Err(full(caller));
        }
        buffer.add(whose(caller), entry);
        self.held.store(buffer.held, Ordering::Relaxed);
        let begins = !std::mem::replace(&mut buffer.is_written, true);
        let are_many = buffer.held == MANY;
        drop(buffer);
        if are_many {
            self.many.notify_one();
        }
        if begins {
            let trail = self.clone();
            self.spawn.task("audit", Box::pin(async move { trail.write_all().await }));
        }
        Ok(())
    }

    /// Waits until all that came before is written.
    pub(crate) async fn settled(&self) {
        let pushed = lock(&self.buffer).pushed;
        let mut written = self.written.subscribe();
        // An error would mean that the sender is gone, which we hold.
        let _ = written.wait_for(|written| *written >= pushed).await;
    }

    fn forget(&self, callers: &[Whose]) {
        let mut buffer = lock(&self.buffer);
        buffer.forget(callers);
        self.held.store(buffer.held, Ordering::Relaxed);
    }

    /// Writes what waits until nothing does. As long as more comes, it gathers: a commit for a few
    /// entries costs almost as much as one for many.
    async fn write_all(&self) {
        let mut wait_ms = WAIT_MS;
        loop {
            self.gather(wait_ms).await;
            let (began, due) = (self.clock.elapsed(), lock(&self.buffer).pushed);
            while *self.written.borrow() < due {
                let batch = lock(&self.buffer).next();
                self.write(batch).await;
            }
            if lock(&self.buffer).ends() {
                return;
            }
            let took = self.clock.elapsed().saturating_sub(began).as_millis();
            wait_ms = WAIT_MS.saturating_sub(u64::try_from(took).unwrap_or(u64::MAX));
        }
    }

    /// Waits for more entries, so long, unless many are there or callers wait for them.
    async fn gather(&self, wait_ms: u64) {
        if !self.rules.strict && self.held.load(Ordering::Relaxed) < MANY {
            timeout(self.clock.as_ref(), wait_ms, self.many.notified()).await;
        }
    }

    /// Writes these, however often that takes.
    async fn write(&self, batch: Vec<(Whose, Entry)>) {
        let (callers, entries) = split(batch);
        let entries = Arc::new(entries);
        while let Err(error) = self.audit.write(entries.clone()).await {
            if error == StoreError::Closed {
                tracing::error!(entries = callers.len(), "the store closed before the audit");
                break;
            }
            tracing::warn!(%error, "the audit cannot be written; trying again");
            self.clock.sleep_ms(RETRY_MS).await;
        }
        self.forget(&callers);
        self.written.send_modify(|written| *written += callers.len() as u64);
    }
}

fn whose(caller: &Caller) -> Whose {
    let Caller { realm, subject, actor, .. } = caller;
    Whose { realm: realm.clone(), subject: subject.clone(), actor: actor.clone() }
}

/// Whose entries these are, and the entries of each realm, in rows of some size.
fn split(batch: Vec<(Whose, Entry)>) -> (Vec<Whose>, Entries) {
    let mut callers = Vec::with_capacity(batch.len());
    let mut chains: BTreeMap<RealmId, Vec<Vec<Entry>>> = BTreeMap::new();
    for (whose, entry) in batch {
        let rows = chains.entry(whose.realm.clone()).or_default();
        match rows.last_mut() {
            Some(row) if row.len() < ROW_MAX => row.push(entry),
            Some(_) | None => rows.push(vec![entry]),
        }
        callers.push(whose);
    }
    let mut lists = Vec::with_capacity(chains.len());
    for (realm, rows) in chains {
        lists.extend(rows.into_iter().map(|row| (ChainName::of(&realm), row)));
    }
    (callers, lists)
}

fn full(caller: &Caller) -> Refusal {
    let message = format!(
        "more decisions about `{}` wait to be written to the audit than may wait",
        caller.subject
    );
    let later = Box::new(TryLater::after(RETRY_MS));
    Refusal::new(RefusalCode::RateLimited(later), message)
        .hint("nothing was done: send it again a little later")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::identity::audit::Object;
    use kernel::values::ids::Millis;

    fn of(subject: &str) -> Whose {
        whose(&Caller::new("r", subject))
    }

    fn entry(subject: &str) -> Entry {
        Entry::new(Millis(0), subject.into(), "read", Object::only("server"))
    }

    fn fill(buffer: &mut Buffer, subject: &str, count: usize) {
        for _ in 0..count {
            buffer.add(of(subject), entry(subject));
        }
    }

    #[test]
    fn who_fills_its_share_is_refused_and_nobody_else() {
        let mut buffer = Buffer::default();
        fill(&mut buffer, "loud", SHARE_MAX - 1);
        let loud = Caller::new("r", "loud");
        assert!(buffer.is_roomy() && buffer.has_room(&loud) && buffer.has_room_for(&of("loud")));
        fill(&mut buffer, "loud", 1);
        assert!(!buffer.is_roomy() && !buffer.has_room(&loud));
        assert!(!buffer.has_room_for(&of("loud")) && buffer.has_room_for(&of("quiet")));
        for loud in ["b", "c", "d"] {
            fill(&mut buffer, loud, SHARE_MAX);
        }
        assert_eq!(buffer.held, CROWDED);
        assert!(buffer.has_room_for(&of("quiet")), "where all is crowded, too");
        let acting = Caller { actor: Some("quiet".into()), ..Caller::new("r", "loud") };
        assert!(buffer.has_room_for(&whose(&acting)), "who acts as another has a share of its own");
        let batch = buffer.next();
        assert_eq!((batch.len(), buffer.ends()), (BATCH_MAX, false));
        assert!(!buffer.has_room_for(&of("loud")), "what is being written still counts");
        buffer.forget(&split(batch).0);
        assert!(buffer.has_room_for(&of("loud")));
    }

    #[test]
    fn the_last_batch_ends_the_task() {
        let mut buffer = Buffer::default();
        fill(&mut buffer, "ann", 2);
        let batch = buffer.next();
        assert_eq!(batch.len(), 2);
        buffer.forget(&split(batch).0);
        assert!(buffer.next().is_empty() && buffer.ends() && !buffer.is_written);
        assert!(buffer.shares.is_empty() && buffer.held == 0);
    }

    #[test]
    fn entries_of_a_realm_are_in_rows_in_their_order() {
        let batch: Vec<(Whose, Entry)> =
            (0..=ROW_MAX).map(|number| (of("ann"), entry(&number.to_string()))).collect();
        let (callers, lists) = split(batch);
        assert!(callers.len() == ROW_MAX + 1 && callers.iter().all(|one| *one == of("ann")));
        let sizes: Vec<usize> = lists.iter().map(|(_, entries)| entries.len()).collect();
        assert_eq!(sizes, [ROW_MAX, 1]);
        assert_eq!(&*lists[1].1[0].subject, ROW_MAX.to_string());
    }
}
