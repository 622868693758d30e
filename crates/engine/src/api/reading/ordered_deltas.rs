//! Text deltas of a run's turns, ordered with its journal. A delta is delivered after the event
//! that began its turn and before the one that ended it. One that arrives early, as it may from
//! another machine, is held back; one that arrives late is dropped, because its text is in the
//! event. No event waits for a delta.

use crate::waiting::deltas::{Deltas, TurnUpdate};
use kernel::event::{self, Fact};
use kernel::values::ids::{FrameId, RunId};
use std::collections::BTreeMap;
use std::future::pending;

/// Deltas of one run's turns, for a follower of its journal.
#[derive(Debug)]
pub(in crate::api) struct OrderedDeltas {
    run: RunId,
    deltas: Deltas,
    /// The next delta that is held back.
    held: Option<TurnUpdate>,
    /// For each agent's frame the last event that began or ended a turn, of those that were given.
    turns: BTreeMap<FrameId, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeltaTiming {
    Now,
    /// After more events were delivered.
    Later,
    /// It belongs to another run, or to a turn that has ended.
    Never,
}

impl OrderedDeltas {
    pub(in crate::api) fn new(run: RunId, deltas: Deltas) -> Self {
        Self { run, deltas, held: None, turns: BTreeMap::new() }
    }

    /// Notes an event of the run that is delivered now.
    pub(in crate::api) fn pass(&mut self, seq: u64, body: &str) {
        if let Some(frame) = turned(body) {
            self.turns.insert(frame, seq);
        }
    }

    /// The next delta for a follower that has all events up to this one.
    pub(in crate::api) fn take(&mut self, after: u64) -> Option<TurnUpdate> {
        loop {
            let heard = self.held.take().or_else(|| self.deltas.try_next())?;
            match self.due(&heard, after) {
                DeltaTiming::Now => return Some(heard),
                DeltaTiming::Later => {
                    self.held = Some(heard);
                    return None;
                }
                DeltaTiming::Never => {}
            }
        }
    }

    /// Waits for the next delta. While one is held back there is no next one: only an event can
    /// change that.
    pub(in crate::api) async fn come(&mut self) {
        if self.held.is_none() {
            self.held = self.deltas.next().await;
            if self.held.is_some() {
                return;
            }
        }
        pending::<()>().await;
    }

    fn due(&self, heard: &TurnUpdate, after: u64) -> DeltaTiming {
        let at = match heard {
            TurnUpdate::Delta { at, .. } | TurnUpdate::Restarted(at) => at,
            // Of no turn in particular.
            TurnUpdate::Lost(_) => return DeltaTiming::Now,
        };
        let is_over = self.turns.get(&at.frame).is_some_and(|last| *last > at.started);
        if at.run != self.run || is_over {
            DeltaTiming::Never
        } else if at.started > after {
            DeltaTiming::Later
        } else {
            DeltaTiming::Now
        }
    }
}

/// The frame of the turn that an event begins or ends.
fn turned(body: &str) -> Option<FrameId> {
    // Few events do; the others need not be read.
    if !body.contains("\"turn.") {
        return None;
    }
    let events = event::read(&format!("[{body}]")).ok()?;
    events.into_iter().find_map(|event| match event.fact {
        Fact::TurnStarted(start) => Some(start.frame),
        Fact::TurnFinished(end) => Some(end.frame),
        Fact::TurnFailed { frame, .. } => Some(frame),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting::deltas::{Listeners, TurnListener, TurnPlace};
    use futures::FutureExt;
    use kernel::conversation::llm::{Delta, DeltaSink};
    use kernel::event::{Event, VERSION};
    use kernel::values::fault::Fault;
    use kernel::values::ids::{Millis, SessionKey, Space};
    use std::sync::Arc;

    const RUN: RunId = RunId(1);

    /// A session in which turns are made, and a follower of one of its runs.
    struct Scene {
        listeners: Arc<Listeners>,
        pieces: OrderedDeltas,
    }

    impl Scene {
        fn new() -> Self {
            let listeners = Arc::new(Listeners::new(8));
            let pieces = OrderedDeltas::new(RUN, listeners.listen(&key()));
            Self { listeners, pieces }
        }

        /// A model says this in a turn that this event began.
        fn says(&self, run: RunId, frame: u32, started: u64, text: &str) {
            let at = TurnPlace { run, frame: FrameId(frame), turn: 1, attempt: 1, started };
            let ear =
                TurnListener { listeners: self.listeners.clone(), key: key(), at, open: true };
            ear.delta(Delta::Text(text.to_owned()));
        }

        /// What a follower gets who has all events up to this one.
        fn given(&mut self, after: u64) -> Vec<String> {
            let mut given = Vec::new();
            while let Some(heard) = self.pieces.take(after) {
                match heard {
                    TurnUpdate::Delta { delta: Delta::Text(text), .. } => given.push(text),
                    other => panic!("{other:?}"),
                }
            }
            given
        }

        /// A turn of this frame fails.
        fn fails(&mut self, frame: u32, seq: u64) {
            let fault = Fault::new("Boom", "as the test wants");
            let frame = FrameId(frame);
            let fact = Fact::TurnFailed { frame, turn: 1, attempt: 1, fault, again_at: None };
            let event = Event { seq, at: Millis(1), v: VERSION, fact };
            self.pieces.pass(seq, &serde_json::to_string(&event).unwrap());
        }
    }

    fn key() -> SessionKey {
        SessionKey::new("r", Space::thread(), "t")
    }

    #[test]
    fn a_delta_waits_for_the_events_before_its_turn() {
        let mut scene = Scene::new();
        scene.says(RUN, 1, 5, "a");
        scene.says(RUN, 1, 5, "b");
        assert_eq!(scene.given(3), [""; 0], "its row is not there yet");
        assert_eq!(scene.pieces.come().now_or_never(), None, "only an event can change that");
        assert_eq!(scene.given(4), [""; 0]);
        assert_eq!(scene.given(5), ["a", "b"]);
        // Nothing is outstanding: it is given at once.
        scene.says(RUN, 1, 5, "c");
        assert_eq!(scene.pieces.come().now_or_never(), Some(()));
        assert_eq!(scene.given(5), ["c"]);
        // A follower who began later has no event of that turn.
        scene.says(RUN, 1, 5, "d");
        assert_eq!(scene.given(1_000_000), ["d"]);
    }

    #[test]
    fn deltas_of_an_ended_turn_are_dropped() {
        let mut scene = Scene::new();
        scene.says(RUN, 1, 5, "a");
        scene.says(RUN, 2, 6, "of another frame");
        scene.fails(1, 7);
        scene.says(RUN, 1, 5, "b");
        scene.says(RUN, 1, 8, "again");
        assert_eq!(scene.given(7), ["of another frame"]);
        assert_eq!(scene.given(8), ["again"]);
    }

    #[test]
    fn deltas_of_other_runs_delay_nothing() {
        let mut scene = Scene::new();
        scene.says(RunId(2), 1, 9, "of another run");
        scene.says(RUN, 2, 3, "a");
        assert_eq!(scene.given(3), ["a"]);
    }
}
