//! Broadcast of text deltas of turns to listeners. Nothing is stored and nobody is waited for: the
//! outcome of a turn is in the journal, and deltas may still be discarded before that.

use crate::system::locks::lock;
use kernel::conversation::llm::{Delta, DeltaSink};
use kernel::values::ids::{FrameId, RunId, SessionKey};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// Which attempt at which turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnPlace {
    pub run: RunId,
    /// The agent's frame.
    pub frame: FrameId,
    /// Which turn of the agent.
    pub turn: u32,
    pub attempt: u32,
    /// The sequence of the event that began it: what was recorded before led to it.
    pub started: u64,
}

/// An update of an acting model's turn. Routers and summaries send none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnUpdate {
    /// A piece of a turn.
    Delta { at: TurnPlace, delta: Delta },
    /// The turn is begun again: what was heard of its earlier attempts is void.
    Restarted(TurnPlace),
    /// The listener was too slow, and so many pieces are lost for it.
    Lost(u64),
}

/// Hears the turns of one session.
#[derive(Debug)]
pub(crate) struct Deltas {
    pieces: broadcast::Receiver<TurnUpdate>,
}

impl Deltas {
    /// The next piece; none once no one speaks any more.
    pub(crate) async fn next(&mut self) -> Option<TurnUpdate> {
        match self.pieces.recv().await {
            Ok(heard) => Some(heard),
            Err(RecvError::Lagged(lost)) => Some(TurnUpdate::Lost(lost)),
            Err(RecvError::Closed) => None,
        }
    }

    /// The next piece that is there without waiting. Not by `next`: that may yield although there
    /// is one.
    pub(crate) fn try_next(&mut self) -> Option<TurnUpdate> {
        match self.pieces.try_recv() {
            Ok(heard) => Some(heard),
            Err(TryRecvError::Lagged(lost)) => Some(TurnUpdate::Lost(lost)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

/// The listeners of all sessions.
#[derive(Debug)]
pub(crate) struct Listeners {
    pieces_max: usize,
    heard: Mutex<HashMap<SessionKey, broadcast::Sender<TurnUpdate>>>,
    /// How many are in the map, so that a turn that no one hears costs one load for each piece.
    size: AtomicUsize,
}

/// More than this no listener may be behind, whatever is configured: the room is taken at once.
const PIECES_MOST: usize = 65_536;

impl Listeners {
    /// Each may be so many pieces behind.
    pub(crate) fn new(pieces_max: usize) -> Self {
        let pieces_max = pieces_max.clamp(1, PIECES_MOST);
        Self { pieces_max, heard: Mutex::default(), size: AtomicUsize::new(0) }
    }

    /// One more listener.
    pub(crate) fn listen(&self, key: &SessionKey) -> Deltas {
        let mut heard = lock(&self.heard);
        heard.retain(|_, sender| sender.receiver_count() > 0);
        let sender =
            heard.entry(key.clone()).or_insert_with(|| broadcast::Sender::new(self.pieces_max));
        let pieces = sender.subscribe();
        self.size.store(heard.len(), Ordering::Release);
        Deltas { pieces }
    }

    /// Tells those who listen to this session.
    pub(crate) fn tell(&self, key: &SessionKey, piece: impl FnOnce() -> TurnUpdate) {
        if self.size.load(Ordering::Acquire) == 0 {
            return;
        }
        if let Some(sender) = lock(&self.heard).get(key) {
            // One that stopped listening misses nothing.
            let _ = sender.send(piece());
        }
    }
}

/// Hears one turn for all who listen to its session.
pub(crate) struct TurnListener {
    pub(crate) listeners: Arc<Listeners>,
    pub(crate) key: SessionKey,
    pub(crate) at: TurnPlace,
    /// Whether the turn is one that is heard.
    pub(crate) open: bool,
}

impl TurnListener {
    /// The turn begins.
    pub(crate) fn begin(&self) {
        if self.open && self.at.attempt > 1 {
            self.listeners.tell(&self.key, || TurnUpdate::Restarted(self.at));
        }
    }
}

impl DeltaSink for TurnListener {
    fn delta(&self, delta: Delta) {
        if self.open {
            self.listeners.tell(&self.key, || TurnUpdate::Delta { at: self.at, delta });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::values::ids::Space;

    fn ear(listeners: &Arc<Listeners>, attempt: u32) -> TurnListener {
        let key = SessionKey::new("r", Space::thread(), "t");
        let at = TurnPlace { run: RunId(1), frame: FrameId(1), turn: 2, attempt, started: 7 };
        TurnListener { listeners: listeners.clone(), key, at, open: true }
    }

    #[tokio::test]
    async fn a_slow_listener_is_notified_of_lost_deltas() {
        let listeners = Arc::new(Listeners::new(2));
        let ear = ear(&listeners, 2);
        ear.delta(Delta::Text("nobody hears this".into()));
        let mut deltas = listeners.listen(&ear.key);
        ear.begin();
        assert_eq!(deltas.next().await, Some(TurnUpdate::Restarted(ear.at)));
        for text in ["a", "b", "c"] {
            ear.delta(Delta::Text(text.into()));
        }
        assert_eq!(deltas.next().await, Some(TurnUpdate::Lost(1)));
        let delta = Delta::Text("b".into());
        assert_eq!(deltas.next().await, Some(TurnUpdate::Delta { at: ear.at, delta }));
        for text in ["d", "e"] {
            ear.delta(Delta::Text(text.into()));
        }
        assert_eq!(deltas.try_next(), Some(TurnUpdate::Lost(1)), "without waiting, too");
        let delta = Delta::Text("d".into());
        assert_eq!(deltas.try_next(), Some(TurnUpdate::Delta { at: ear.at, delta }));
        drop(deltas);
        ear.delta(Delta::Text("nobody hears this either".into()));
    }
}
