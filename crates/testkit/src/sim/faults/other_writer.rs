//! Another writer, as another process would be: now and then it changes a session at rest, right
//! before or right after the engine loads it. Then the engine's cached copy is stale, or the one it
//! decides on. It must notice both.

use kernel::contracts::{Clock, LoadResult, Store, StoreError, StoredSession};
use kernel::event::{self, Event, Fact, VERSION};
use kernel::journal::projection::Append;
use kernel::session::{Phase, Session};
use kernel::values::ids::{Fence, SessionKey};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often it writes in one life of the process: clients that have to try again do so a few
/// times only.
const WRITES_PER_LIFE: u64 = 8;

/// The other writer of one machine.
pub struct OtherWriter {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How many loads it came to.
    loads: u64,
    /// How often it wrote, and how often in this life.
    writes: u64,
    writes_now: u64,
    /// What the engine learned last of sessions that it knew: they are as it knows them.
    confirmed: BTreeMap<SessionKey, Fence>,
    wrong: Vec<String>,
}

/// When it comes, seen from a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Never,
    Before,
    After,
}

impl OtherWriter {
    /// Another writer by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// A new process begins.
    pub fn begin_life(&self) {
        let mut state = self.state();
        state.writes_now = 0;
        state.confirmed = BTreeMap::new();
    }

    /// Someone loads a session, and may have it in memory: then it comes.
    pub fn loads(&self, key: &SessionKey, is_known: bool) -> Turn {
        let mut state = self.state();
        state.confirmed.remove(key);
        if !is_known || state.writes_now >= WRITES_PER_LIFE {
            return Turn::Never;
        }
        state.loads += 1;
        if state.loads.is_multiple_of(2) { Turn::After } else { Turn::Before }
    }

    /// The one who loaded the session learned that it is as they know it.
    pub fn confirmed(&self, key: &SessionKey, fence: Fence) {
        self.state().confirmed.insert(key.clone(), fence);
    }

    /// Someone appends to a session; whether they learned that they know it as it is.
    pub fn was_confirmed(&self, key: &SessionKey, fence: Fence) -> bool {
        self.state().confirmed.remove(key) == Some(fence)
    }

    /// Someone who learned so is refused for not knowing it.
    pub fn accuse(&self, key: &SessionKey) {
        let what = format!("session {} was driven in a state that it was not in any more", key.id);
        self.state().wrong.push(what);
    }

    /// Writes an event to a session that rests, one that changes nothing else.
    pub async fn write(&self, store: &dyn Store, key: &SessionKey) -> Result<(), StoreError> {
        let LoadResult::Found(stored) = store.load(key, None).await? else { return Ok(()) };
        let Some(mut session) = added_up(&stored, key) else { return Ok(()) };
        if session.phase() == Phase::Moving {
            return Ok(());
        }
        let seq = session.seq + 1;
        let at = self.clock.now();
        let fact = Fact::TimerFired { timer: "of another writer".to_owned() };
        let event = Event { seq, at, v: VERSION, fact };
        session.apply(&event);
        let append = Append::new(&session, stored.fence, &[event], Vec::new(), at);
        let append = append.map_err(|error| StoreError::Failed(error.to_string()))?;
        store.append(append).await?;
        let mut state = self.state();
        state.writes += 1;
        state.writes_now += 1;
        Ok(())
    }

    /// How often it wrote.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    pub fn wrong(&self) -> Vec<String> {
        self.state().wrong.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a stored session adds up to, if it can be read.
fn added_up(stored: &StoredSession, key: &SessionKey) -> Option<Session> {
    let mut session = match &stored.snapshot {
        Some(snapshot) => Session::from_snapshot(snapshot)?,
        None => Session::new(stored.id, key.clone()),
    };
    for row in &stored.tail {
        let known = session.seq;
        for event in event::read(row).ok()?.iter().filter(|event| event.seq > known) {
            session.apply(event);
        }
    }
    Some(session)
}
