//! Buffer of audit entries that belong to no journal event. Entries wait in a bounded buffer and
//! are written in batches. Each caller has a share of the buffer, and only a caller that fills its
//! share is refused: nothing is done that could not be recorded. Not used in local mode.

use crate::refusal::{Refusal, RefusalCode, Result, TryLater};
use crate::system::clock::timeout;
use crate::system::locks::lock;
use kernel::contracts::identity::audit::Audit;
use kernel::contracts::{Clock, Spawn, StoreError};
use kernel::identity::audit::{ChainName, Entry, Mac};
use kernel::identity::chain::{Bodies, Body, ChainKeys};
use kernel::values::caller::{Act, Caller};
use kernel::values::ids::{Millis, RealmId};
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
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
/// Most entries are not longer than this as a text.
const ENTRY_BYTES: usize = 512;
/// How many entries of one caller wait at most.
const SHARE_MAX: usize = 16_384;
/// From how many on each caller has only a fair part of them.
const CROWDED: usize = 65_536;
/// From how many bytes of text on the same holds for these: entries may be long, and what waits
/// while the store is away must fit into memory.
const CROWDED_BYTES: usize = 64 * 1024 * 1024;

/// Which decisions are audited beside those in journals, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditRules {
    /// Whether what is not journaled is kept at all; not in local mode.
    pub unjournaled: bool,
    /// Whether allowed reads are kept.
    pub reads: bool,
    /// Whether callers wait until what was decided is written.
    pub strict: bool,
}

pub struct AuditParts {
    pub audit: Arc<dyn Audit>,
    /// Keys for digests of arguments.
    pub keys: Arc<dyn ChainKeys>,
    pub rules: AuditRules,
}

pub(crate) struct Trail {
    pub(crate) audit: Arc<dyn Audit>,
    keys: Arc<dyn ChainKeys>,
    rules: AuditRules,
    clock: Arc<dyn Clock>,
    spawn: Arc<dyn Spawn>,
    buffer: Mutex<Buffer>,
    /// Whether it is roomy, for who only looks whether there is room.
    is_roomy: AtomicBool,
    /// Chains that cannot be continued, and whether there is one, for who only looks.
    broken: Mutex<BTreeSet<ChainName>>,
    is_broken: AtomicBool,
    /// Told when many wait.
    many: Notify,
    /// How many entries came before the first that is not written, or given up with the store.
    written: watch::Sender<u64>,
}

/// Whose share: who acts as another fills none of the other's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ShareKey {
    realm: RealmId,
    subject: Arc<str>,
    actor: Option<Arc<str>>,
}

/// Queued entries, as text: they are serialised on the caller's thread.
#[derive(Default)]
struct Buffer {
    /// In the order of their first entries.
    rows: Vec<Row>,
    /// How many rows were taken out of these, and which row is open for each realm, counted with
    /// those.
    taken: usize,
    open: HashMap<RealmId, usize>,
    /// Queued or active load of each caller, and the total of entries and bytes.
    shares: HashMap<ShareKey, Load>,
    count: usize,
    bytes: usize,
    /// How many ever came.
    pushed: u64,
    /// Whether a task writes them.
    is_written: bool,
}

/// How much some entries are.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    entries: usize,
    bytes: usize,
}

/// Entries of one realm that become one row.
struct Row {
    chain: ChainName,
    body: Body,
    /// How many entries of all realms came before its first.
    after: u64,
    /// How many it has, and whose they are: most often several of one caller follow each other.
    entries: usize,
    callers: Vec<(ShareKey, Load)>,
}

/// Rows that are written together, and whose entries they have.
#[derive(Default)]
struct Batch {
    bodies: Bodies,
    callers: Vec<(ShareKey, Load)>,
}

/// An entry as a text.
struct Text {
    at: Millis,
    json: String,
}

impl Buffer {
    /// Whether there is room for one more of this caller. Where all is crowded, those who hold less
    /// than a fair part still come in: they fill at most as much again.
    fn has_room(&self, caller: &Caller) -> bool {
        self.is_roomy() || self.has_room_for(&whose(caller))
    }

    /// Whether so little waits that no share can be full: most often.
    fn is_roomy(&self) -> bool {
        self.count < SHARE_MAX && self.bytes < CROWDED_BYTES
    }

    fn has_room_for(&self, whose: &ShareKey) -> bool {
        let own = self.shares.get(whose).copied().unwrap_or_default();
        let sharers = self.shares.len().max(1);
        own.entries < SHARE_MAX
            && (self.count < CROWDED || own.entries < CROWDED / sharers)
            && (self.bytes < CROWDED_BYTES || own.bytes < CROWDED_BYTES / sharers)
    }

    fn add(&mut self, whose: ShareKey, text: &Text) {
        match self.shares.get_mut(&whose) {
            Some(own) => own.add(text),
            None => {
                self.shares.insert(whose.clone(), Load::of(text));
            }
        }
        match self.open_row(&whose.realm) {
            Some(row) => row.add(whose, text),
            None => {
                self.open.insert(whose.realm.clone(), self.taken + self.rows.len());
                self.rows.push(Row::of(whose, text, self.pushed));
            }
        }
        self.count += 1;
        self.bytes += text.json.len();
        self.pushed += 1;
    }

    /// The row that takes the next entry of this realm, if there is one with room for it.
    fn open_row(&mut self, realm: &RealmId) -> Option<&mut Row> {
        let place = self.open.get(realm)?.checked_sub(self.taken)?;
        self.rows.get_mut(place).filter(|row| row.entries < ROW_MAX)
    }

    /// The next ones to be written.
    fn next(&mut self) -> Batch {
        let mut entries = 0;
        let fits = |row: &&Row| {
            entries += row.entries;
            entries <= BATCH_MAX
        };
        let count = self.rows.iter().take_while(fits).count();
        self.taken += count;
        let taken = self.taken;
        self.open.retain(|_, place| *place >= taken);
        let mut batch = Batch::default();
        for Row { chain, body, callers, .. } in self.rows.drain(..count) {
            batch.bodies.push((chain, body));
            batch.callers.extend(callers);
        }
        batch
    }

    /// Whether nothing is left to be written: the task ends with that.
    fn ends(&mut self) -> bool {
        self.is_written = !self.rows.is_empty();
        !self.is_written
    }

    /// The outcome of what these had is written.
    fn forget(&mut self, callers: &[(ShareKey, Load)]) {
        for (whose, load) in callers {
            self.count -= load.entries;
            self.bytes -= load.bytes;
            if let Some(own) = self.shares.get_mut(whose) {
                own.entries -= load.entries;
                own.bytes -= load.bytes;
                if own.entries == 0 {
                    self.shares.remove(whose);
                }
            }
        }
    }

    /// How many entries came before the first that still waits: rows wait in the order of their
    /// first entries, so all of these are written.
    fn done(&self) -> u64 {
        self.rows.first().map_or(self.pushed, |row| row.after)
    }
}

impl Load {
    /// That of one entry.
    fn of(text: &Text) -> Self {
        Self { entries: 1, bytes: text.json.len() }
    }

    fn add(&mut self, text: &Text) {
        self.entries += 1;
        self.bytes += text.json.len();
    }
}

impl Row {
    fn of(whose: ShareKey, text: &Text, after: u64) -> Self {
        let chain = ChainName::of(&whose.realm);
        let body = Body::of(text.at, &text.json);
        Self { chain, body, after, entries: 1, callers: vec![(whose, Load::of(text))] }
    }

    fn add(&mut self, whose: ShareKey, text: &Text) {
        self.body.add(text.at, &text.json);
        self.entries += 1;
        match self.callers.last_mut() {
            Some((last, load)) if *last == whose => load.add(text),
            Some(_) | None => self.callers.push((whose, Load::of(text))),
        }
    }
}

impl Text {
    fn of(entry: &Entry) -> Result<Self> {
        let mut json = Vec::with_capacity(ENTRY_BYTES);
        serde_json::to_writer(&mut json, entry).map_err(|error| unwritable(&error))?;
        let json = String::from_utf8(json).map_err(|error| unwritable(&error))?;
        Ok(Self { at: entry.at, json })
    }
}

impl Trail {
    pub(crate) fn new(parts: AuditParts, clock: Arc<dyn Clock>, spawn: Arc<dyn Spawn>) -> Self {
        let AuditParts { audit, keys, rules } = parts;
        Self {
            audit,
            keys,
            rules,
            clock,
            spawn,
            buffer: Mutex::default(),
            is_roomy: AtomicBool::new(true),
            broken: Mutex::default(),
            is_broken: AtomicBool::new(false),
            many: Notify::new(),
            written: watch::Sender::new(0),
        }
    }

    /// The keyed digest of arguments.
    pub(crate) fn digest(&self, bytes: &[u8]) -> Mac {
        self.keys.digest(bytes)
    }

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
            | Act::Save
            | Act::Remove
            | Act::Define
            | Act::LogIn
            | Act::Operate
            | Act::Administer
            | Act::Impersonate => true,
        }
    }

    /// A chain cannot be continued. What is still decided in its realm goes into the server's
    /// chain.
    pub(crate) fn mark_broken(&self, chain: &ChainName) {
        if lock(&self.broken).insert(chain.clone()) {
            tracing::error!(%chain, "the audit cannot be continued: someone else wrote its next \
                row; the realm is refused, and `waypost audit verify` says more");
        }
        self.is_broken.store(true, Ordering::Relaxed);
    }

    fn has_broken(&self, realm: &RealmId) -> bool {
        self.is_broken.load(Ordering::Relaxed) && lock(&self.broken).contains(&ChainName::of(realm))
    }

    /// Refuses a caller whose realm's chain cannot be continued, or whose share of the buffer is
    /// full. Every request looks, and most often no share can be full.
    pub(crate) fn check_room(&self, caller: &Caller) -> Result<()> {
        if self.has_broken(&caller.realm) {
            return Err(StoreError::AuditBroken(caller.realm.to_string()).into());
        }
        let has_room = self.is_roomy.load(Ordering::Relaxed) || lock(&self.buffer).has_room(caller);
        if has_room { Ok(()) } else { Err(full(caller)) }
    }

    /// Has an entry written, soon. It is refused where the caller's share is full.
    pub(crate) fn push(self: &Arc<Self>, caller: &Caller, entry: &Entry) -> Result<()> {
        // Others need not wait for that.
        let (text, whose) = match self.has_broken(&caller.realm) {
            true => (Text::of(&elsewhere(caller, entry))?, of_server(whose(caller))),
            false => (Text::of(entry)?, whose(caller)),
        };
        let mut buffer = lock(&self.buffer);
        if !buffer.is_roomy() && !buffer.has_room_for(&whose) {
            return Err(full(caller));
        }
        buffer.add(whose, &text);
        self.is_roomy.store(buffer.is_roomy(), Ordering::Relaxed);
        let begins = !std::mem::replace(&mut buffer.is_written, true);
        let are_many = buffer.count == MANY;
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

    /// Writes what waits until nothing does. As long as more comes, it gathers: a commit for a few
    /// entries costs almost as much as one for many.
    async fn write_all(&self) {
        let mut wait_ms = WAIT_MS;
        loop {
            self.gather(wait_ms).await;
            let began = self.clock.elapsed();
            let due = lock(&self.buffer).pushed;
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
        let are_few = lock(&self.buffer).count < MANY;
        if !self.rules.strict && are_few {
            timeout(self.clock.as_ref(), wait_ms, self.many.notified()).await;
        }
    }

    /// Writes these, however often that takes.
    async fn write(&self, batch: Batch) {
        let Batch { bodies, callers } = batch;
        let mut bodies = Arc::new(bodies);
        let server = ChainName::server();
        while let Err(error) = self.audit.write_bodies(bodies.clone()).await {
            match error {
                StoreError::Closed => {
                    let entries: usize = callers.iter().map(|(_, load)| load.entries).sum();
                    tracing::error!(entries, "the store closed before the audit");
                    break;
                }
                // Others need not wait for it, and what was decided is kept all the same.
                StoreError::AuditBroken(name) if name != server.as_str() => {
                    let broken = ChainName::named(name.into());
                    self.mark_broken(&broken);
                    let moved = |(chain, body): &(ChainName, Body)| {
                        let to = if *chain == broken { &server } else { chain };
                        (to.clone(), body.clone())
                    };
                    bodies = Arc::new(bodies.iter().map(moved).collect());
                }
                error => {
                    tracing::warn!(%error, "the audit cannot be written; trying again");
                    self.clock.sleep_ms(RETRY_MS).await;
                }
            }
        }
        let mut buffer = lock(&self.buffer);
        buffer.forget(&callers);
        self.is_roomy.store(buffer.is_roomy(), Ordering::Relaxed);
        self.written.send_replace(buffer.done());
    }
}

fn whose(caller: &Caller) -> ShareKey {
    let Caller { realm, subject, actor, .. } = caller;
    ShareKey { realm: realm.clone(), subject: subject.clone(), actor: actor.clone() }
}

/// The same in the server's own chain.
fn of_server(whose: ShareKey) -> ShareKey {
    ShareKey { realm: ChainName::server().as_str().into(), ..whose }
}

/// An entry that goes into the server's chain instead of its realm's.
fn elsewhere(caller: &Caller, entry: &Entry) -> Entry {
    let detail = json!({"realm": caller.realm.as_str(), "detail": entry.detail});
    Entry { detail: Some(detail), ..entry.clone() }
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

/// It cannot be kept what was decided, so nothing is done.
fn unwritable(error: &dyn Display) -> Refusal {
    let message = format!("an entry of the audit cannot be written as JSON: {error}");
    Refusal::new(RefusalCode::Unwritable, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::identity::audit::Object;

    fn of(subject: &str) -> ShareKey {
        whose(&Caller::new("r", subject))
    }

    fn text(subject: &str) -> Text {
        let entry = Entry::new(Millis(0), subject.into(), "read", Object::only("server"));
        Text::of(&entry).unwrap()
    }

    fn fill(buffer: &mut Buffer, subject: &str, count: usize) {
        for _ in 0..count {
            buffer.add(of(subject), &text(subject));
        }
    }

    /// How many entries each row of a batch has.
    fn sizes(batch: &Batch) -> Vec<usize> {
        batch.bodies.iter().map(|(_, body)| body.entries().unwrap().len()).collect()
    }

    #[test]
    fn a_caller_that_fills_its_share_of_the_audit_buffer_is_refused_alone() {
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
        assert_eq!(buffer.count, CROWDED);
        assert!(buffer.has_room_for(&of("quiet")), "where all is crowded, too");
        let acting = Caller { actor: Some("quiet".into()), ..Caller::new("r", "loud") };
        assert!(buffer.has_room_for(&whose(&acting)), "who acts as another has a share of its own");
        let batch = buffer.next();
        assert_eq!(sizes(&batch), [ROW_MAX; BATCH_MAX / ROW_MAX]);
        assert!(!buffer.ends());
        assert!(!buffer.has_room_for(&of("loud")), "what is being written still counts");
        buffer.forget(&batch.callers);
        assert!(buffer.has_room_for(&of("loud")));
    }

    #[test]
    fn long_audit_entries_count_by_their_bytes() {
        let mut buffer = Buffer::default();
        let long = Text { at: Millis(0), json: "x".repeat(CROWDED_BYTES / 4) };
        for _ in 0..3 {
            buffer.add(of("loud"), &long);
        }
        fill(&mut buffer, "quiet", 1);
        assert!(buffer.is_roomy() && buffer.has_room_for(&of("loud")));
        buffer.add(of("loud"), &long);
        assert!(!buffer.is_roomy() && !buffer.has_room(&Caller::new("r", "loud")));
        assert!(buffer.has_room_for(&of("quiet")) && buffer.has_room_for(&of("new")));
        buffer.add(of("quiet"), &long);
        assert!(buffer.has_room_for(&of("quiet")), "a fair part is half of it");
        buffer.add(of("quiet"), &long);
        assert!(!buffer.has_room_for(&of("quiet")));
        let batch = buffer.next();
        assert!(!buffer.has_room_for(&of("loud")), "what is being written still counts");
        buffer.forget(&batch.callers);
        assert!(buffer.is_roomy() && buffer.has_room_for(&of("loud")));
        assert_eq!((buffer.count, buffer.bytes), (0, 0));
    }

    #[test]
    fn the_last_batch_ends_the_task() {
        let mut buffer = Buffer::default();
        fill(&mut buffer, "ann", 2);
        let batch = buffer.next();
        assert_eq!(sizes(&batch), [2]);
        buffer.forget(&batch.callers);
        assert!(buffer.next().bodies.is_empty() && buffer.ends() && !buffer.is_written);
        assert!(buffer.shares.is_empty() && buffer.count == 0);
    }

    #[test]
    fn audit_rows_keep_the_order_of_a_realms_entries() {
        let mut buffer = Buffer::default();
        for number in 0..=ROW_MAX {
            buffer.add(of("ann"), &text(&number.to_string()));
        }
        let batch = buffer.next();
        let callers = batch.callers.iter().map(|(whose, load)| (whose.clone(), load.entries));
        assert_eq!(callers.collect::<Vec<_>>(), [(of("ann"), ROW_MAX), (of("ann"), 1)]);
        assert_eq!(sizes(&batch), [ROW_MAX, 1]);
        let last = batch.bodies[1].1.entries().unwrap();
        assert_eq!(&*last[0].subject, ROW_MAX.to_string());
    }

    #[test]
    fn the_settled_position_ends_before_the_first_queued_entry() {
        let mut buffer = Buffer::default();
        let other = whose(&Caller::new("other", "bob"));
        buffer.add(of("ann"), &text("ann"));
        buffer.add(other.clone(), &text("bob"));
        // With the row of the other realm, one row more than a batch takes is full.
        fill(&mut buffer, "ann", BATCH_MAX);
        assert_eq!((buffer.rows.len(), buffer.done()), (2 + BATCH_MAX / ROW_MAX, 0));
        let first = buffer.next();
        assert_eq!(first.bodies[1].0, ChainName::of(&other.realm));
        assert_eq!(sizes(&first)[..2], [ROW_MAX, 1]);
        // All full rows but one, and the entry of the other realm.
        let written = (BATCH_MAX - ROW_MAX + 1) as u64;
        assert_eq!(buffer.done(), written);
        fill(&mut buffer, "ann", 1);
        assert_eq!(buffer.done(), written, "what comes later changes nothing");
        assert_eq!(buffer.next().bodies.len(), 2);
        assert_eq!(buffer.done(), buffer.pushed);
    }
}
