//! Assigns calls to connections when an upstream's requests carry no id of a call. A tool
//! that asks gets a connection of its own for each call; all others share one, because a server may
//! keep things in its memory. Which tools ask is learned. Over a pipe the first call of a tool
//! waits a moment for those under way, and then has the shared connection to itself for a moment,
//! so that it is known whose question comes; where that cannot be known, and the server has asked
//! before, it gets one of its own. Over HTTP few servers ask outside of the answer to a call: no
//! call waits, and each tool that was called when one did is tried alone in a session of its own.

use crate::RemoteParts;
use crate::lock;
use crate::mcp::calls::LEFT_MS;
use crate::mcp::peer::Peer;
use kernel::values::ids::Millis;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// For how long the first call of a tool has the shared connection to itself while others wait, and
/// for how long it waits for others itself.
const FIRST_MS: u64 = 2_000;
/// How many processes, or sessions, one upstream has at most for calls of tools that ask.
pub(super) const OWN_MAX: usize = 16;
/// How long such a one is kept for the next call.
const IDLE_MS: u64 = 60_000;

/// How much longer a call waits that has waited so long, if nothing changes meanwhile.
pub(super) fn wait_ms(waited_ms: u64) -> u64 {
    let until_ms = if waited_ms < FIRST_MS { FIRST_MS } else { LEFT_MS };
    until_ms.saturating_sub(waited_ms)
}

/// The connections of one upstream beside its main one, and who has which.
pub(crate) struct Lanes {
    parts: RemoteParts,
    state: Mutex<State>,
    /// Grows when a place is free again, or more is known of a tool.
    changes: watch::Sender<u64>,
    /// Held while the shared session is opened, so that there is one.
    pub(super) opening: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    habits: BTreeMap<Arc<str>, Habit>,
    /// How many calls share a connection, and until when the first of a tool is alone on it.
    sharing: usize,
    alone_until: Option<Millis>,
    /// The session with a handshake, beside a stateless main connection.
    session: Option<Arc<Peer>>,
    /// Until when no such session is asked for: the server refused it.
    refused_until: Option<Millis>,
    /// The same for sessions of a call's own.
    own_refused_until: Option<Millis>,
    own: Vec<OwnConnection>,
    opening: usize,
    numbers: u64,
    is_closed: bool,
}

impl State {
    /// Whether any of its tools asked something.
    fn has_asked(&self) -> bool {
        self.habits.values().any(|habit| *habit == Habit::Asks)
    }
}

/// What was learned about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    /// It was answered and asked nothing.
    Quiet,
    /// It was called when something was asked on the general stream.
    MayAsk,
    /// It asked something in the middle of a call.
    Asks,
}

/// A connection for one call at a time.
struct OwnConnection {
    number: u64,
    peer: Arc<Peer>,
    is_taken: bool,
    /// Grows with each use.
    uses: u64,
}

/// Whether a call may share the connection.
pub(super) enum Shared {
    /// It may.
    Place(LanePermit),
    /// Its tool asks, or may: it needs one of its own.
    NeedsOwn,
    /// Another has it to itself for now.
    Later,
}

/// A connection of its own for a call.
pub(super) enum LaneGrant {
    Place(Arc<Peer>, LanePermit),
    /// It may be opened.
    Open(OpeningConnection),
    /// There are as many as there may be, and all are in use.
    Full,
}

impl Lanes {
    /// None yet.
    pub(crate) fn new(parts: RemoteParts) -> Self {
        let state = Mutex::default();
        let opening = tokio::sync::Mutex::default();
        Self { parts, state, changes: watch::Sender::new(0), opening }
    }

    /// Wakes when a place is free again, or more is known of a tool.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A place on the shared connection for a call of this tool, which has waited so long for it;
    /// one that waited long enough gets it also beside others. In doubt, a question there could be
    /// of another call.
    pub(super) fn share(
        self: &Arc<Self>,
        tool: &Arc<str>,
        waited_ms: u64,
        in_doubt: bool,
    ) -> Shared {
        let now = self.parts.clock.now();
        let mut state = lock(&self.state);
        let is_reserved = state.alone_until.is_some_and(|until| now < until);
        let is_first = match state.habits.get(tool) {
            Some(Habit::Asks | Habit::MayAsk) => return Shared::NeedsOwn,
            Some(Habit::Quiet) if is_reserved && waited_ms < FIRST_MS => return Shared::Later,
            Some(Habit::Quiet) => false,
            // Those beside it may be over in a moment, and a doubt is. What it does in the memory
            // of a process of its own, no other call would find.
            None if state.sharing > 0 && waited_ms < FIRST_MS => return Shared::Later,
            None if state.sharing == 0 && in_doubt && state.has_asked() && waited_ms < LEFT_MS => {
                return Shared::Later;
            }
            None if (state.sharing > 0 || in_doubt) && state.has_asked() => {
                return Shared::NeedsOwn;
            }
            None => state.sharing == 0,
        };
        if is_first {
            state.alone_until = Some(now.plus_ms(FIRST_MS));
        }
        state.sharing += 1;
        Shared::Place(self.permit(tool, LaneSlot::Shared { is_first }))
    }

    /// A connection that no other call uses.
    pub(super) fn take_own(self: &Arc<Self>, tool: &Arc<str>) -> LaneGrant {
        let mut state = lock(&self.state);
        state.own.retain(|own| !own.peer.is_lost());
        if let Some(own) = state.own.iter_mut().find(|own| !own.is_taken) {
            own.is_taken = true;
            own.uses += 1;
            return LaneGrant::Place(
                own.peer.clone(),
                self.permit(tool, LaneSlot::Own { number: own.number }),
            );
        }
        if state.own.len() + state.opening >= OWN_MAX {
            return LaneGrant::Full;
        }
        state.opening += 1;
        LaneGrant::Open(OpeningConnection { lanes: self.clone() })
    }

    /// Over HTTP: whether a call of this tool needs a session of its own, and may have one.
    pub(super) fn wants_own(&self, tool: &Arc<str>) -> bool {
        let now = self.parts.clock.now();
        let state = lock(&self.state);
        let asks = matches!(state.habits.get(tool), Some(Habit::Asks | Habit::MayAsk));
        asks && state.own_refused_until.is_none_or(|until| now >= until)
    }

    /// The server gives a call no session of its own, and is not asked for one for so long.
    pub(super) fn refused_own(&self, ms: u64) {
        lock(&self.state).own_refused_until = Some(self.parts.clock.now().plus_ms(ms));
    }

    /// Over HTTP: while these tools were called, something was asked on the general stream.
    pub(super) fn asked_outside(&self, tools: &[Arc<str>]) {
        let mut state = lock(&self.state);
        for tool in tools {
            let habit = state.habits.entry(tool.clone()).or_insert(Habit::MayAsk);
            if *habit == Habit::Quiet {
                *habit = Habit::MayAsk;
            }
        }
    }

    /// Lets go of all connections that no call has: the server forgot one of them.
    pub(crate) fn let_go_of_idle(&self) {
        let idle: Vec<OwnConnection> =
            lock(&self.state).own.extract_if(.., |own| !own.is_taken).collect();
        idle.iter().for_each(|own| own.peer.let_go());
    }

    /// The session with a handshake, if there is one.
    pub(super) fn session(&self) -> Option<Arc<Peer>> {
        lock(&self.state).session.clone().filter(|peer| !peer.is_lost())
    }

    /// Whether the server has refused such a session, and is not asked again yet.
    pub(super) fn is_refused(&self) -> bool {
        let now = self.parts.clock.now();
        lock(&self.state).refused_until.is_some_and(|until| now < until)
    }

    /// No such session is asked for, for so long.
    pub(super) fn refused(&self, ms: u64) {
        lock(&self.state).refused_until = Some(self.parts.clock.now().plus_ms(ms));
    }

    /// This is the session from now on; whether it can be used.
    pub(super) fn keep_session(&self, peer: &Arc<Peer>) -> bool {
        let mut state = lock(&self.state);
        if !state.is_closed {
            state.session = Some(peer.clone());
        }
        !state.is_closed
    }

    /// A question came while these tools were called, and no one can tell whose it is. Each is
    /// called alone once more; of one there is little doubt.
    pub(super) fn could_not_tell(&self, tools: &[Arc<str>]) {
        let mut state = lock(&self.state);
        if let [tool] = tools {
            state.habits.insert(tool.clone(), Habit::Asks);
        } else {
            let stays =
                |tool: &Arc<str>, habit: &mut Habit| *habit == Habit::Asks || !tools.contains(tool);
            state.habits.retain(stays);
        }
    }

    /// Takes all connections out, for good.
    pub(super) fn take_all(&self) -> Vec<Arc<Peer>> {
        let mut state = lock(&self.state);
        state.is_closed = true;
        let session = state.session.take();
        state.own.drain(..).map(|own| own.peer).chain(session).collect()
    }

    fn permit(self: &Arc<Self>, tool: &Arc<str>, at: LaneSlot) -> LanePermit {
        LanePermit { lanes: self.clone(), tool: tool.clone(), at, is_answered: false }
    }

    /// Has those look again who wait for a place.
    pub(crate) fn wake(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// A call with a connection of its own is over. One that was not answered may still ask: its
    /// connection is not used again.
    fn free(self: &Arc<Self>, number: u64, is_answered: bool) {
        let mut state = lock(&self.state);
        let Some(at) = state.own.iter().position(|own| own.number == number) else { return };
        if !is_answered {
            let own = state.own.remove(at);
            drop(state);
            own.peer.let_go();
            return;
        }
        let Some(own) = state.own.get_mut(at) else { return };
        own.is_taken = false;
        let uses = own.uses;
        let lanes = Arc::downgrade(self);
        drop(state);
        let over = self.parts.clock.sleep_ms(IDLE_MS);
        let idle = async move {
            over.await;
            if let Some(lanes) = lanes.upgrade() {
                lanes.end_idle(number, uses);
            }
        };
        self.parts.spawn.task("upstream idle", Box::pin(idle));
    }

    /// Lets a connection go that no one has used since.
    fn end_idle(&self, number: u64, uses: u64) {
        let mut state = lock(&self.state);
        let is_it = |own: &OwnConnection| own.number == number && own.uses == uses && !own.is_taken;
        let Some(at) = state.own.iter().position(is_it) else { return };
        let own = state.own.remove(at);
        drop(state);
        own.peer.let_go();
    }
}

/// A connection of its own is being opened for a call.
pub(super) struct OpeningConnection {
    lanes: Arc<Lanes>,
}

impl OpeningConnection {
    /// It is open; none where the upstream was let go meanwhile.
    pub(super) fn done(self, peer: &Arc<Peer>, tool: &Arc<str>) -> Option<LanePermit> {
        let mut state = lock(&self.lanes.state);
        if state.is_closed {
            return None;
        }
        state.numbers += 1;
        let number = state.numbers;
        state.own.push(OwnConnection { number, peer: peer.clone(), is_taken: true, uses: 1 });
        drop(state);
        Some(self.lanes.permit(tool, LaneSlot::Own { number }))
    }
}

impl Drop for OpeningConnection {
    fn drop(&mut self) {
        lock(&self.lanes.state).opening -= 1;
        self.lanes.wake();
    }
}

/// A call's place on a connection, for as long as the call lasts.
pub(crate) struct LanePermit {
    lanes: Arc<Lanes>,
    tool: Arc<str>,
    at: LaneSlot,
    is_answered: bool,
}

/// Where a call is made.
#[derive(Clone, Copy)]
enum LaneSlot {
    Shared { is_first: bool },
    Own { number: u64 },
}

impl LanePermit {
    /// The server asked something in the middle of the call.
    pub(crate) fn asked(&self) {
        let mut state = lock(&self.lanes.state);
        state.habits.insert(self.tool.clone(), Habit::Asks);
        if let LaneSlot::Shared { is_first: true } = self.at {
            state.alone_until = None;
        }
        drop(state);
        self.lanes.wake();
    }

    /// The server answered the call: it has no more to ask.
    pub(crate) fn answered(&mut self) {
        self.is_answered = true;
    }

    /// Whether no other call shares its connection.
    pub(crate) fn is_alone(&self) -> bool {
        self.is_own() || lock(&self.lanes.state).sharing == 1
    }

    /// Whether it has a connection of its own.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.at, LaneSlot::Own { .. })
    }
}

impl Drop for LanePermit {
    fn drop(&mut self) {
        {
            let mut state = lock(&self.lanes.state);
            if self.is_answered && state.habits.get(&self.tool) != Some(&Habit::Asks) {
                state.habits.insert(self.tool.clone(), Habit::Quiet);
            }
            if let LaneSlot::Shared { is_first } = self.at {
                state.sharing = state.sharing.saturating_sub(1);
                if is_first {
                    state.alone_until = None;
                }
            }
        }
        if let LaneSlot::Own { number } = self.at {
            self.lanes.free(number, self.is_answered);
        }
        self.lanes.wake();
    }
}
