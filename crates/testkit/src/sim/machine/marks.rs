//! Marks of what a process works on, which outlive it. A mark that was set when the power went off
//! is never removed by the process that set it, whatever that process still does in its last step;
//! the next one finds it. What was found is kept for the oracle.

use super::power::{Point, Power};
use kernel::contracts::{Clock, CrashMarks, Suspect};
use kernel::values::ids::{Millis, SessionId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The marks of one machine.
pub struct Marks {
    power: Arc<Power>,
    clock: Arc<dyn Clock>,
    /// Whether the next process does not recognise what it finds: a fault on purpose.
    blurred: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    made: usize,
    /// What this process works on.
    open: BTreeMap<usize, Suspect>,
    /// What processes before it worked on when they died, until that is on record.
    left: Vec<Left>,
    /// How many processes died of each session. One that dies before it has settled the death
    /// before has not died of it again.
    deaths: BTreeMap<SessionId, u64>,
    settled: Vec<Settled>,
}

/// A mark of a process that died.
struct Left {
    mark: Suspect,
    /// When the first process began that found it.
    since: Millis,
}

/// A death that the engine called settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    pub session: SessionId,
    /// When the first process began that found it.
    pub since: Millis,
    /// When it was settled, by that process or a later one.
    pub at: Millis,
}

impl Marks {
    /// No marks yet.
    pub fn new(power: Arc<Power>, clock: Arc<dyn Clock>, blurred: bool) -> Self {
        Self { power, clock, blurred, state: Mutex::default() }
    }

    /// Another process begins: it finds what the one before left.
    pub fn begin_process(&self) {
        let now = self.clock.now();
        let mut state = self.state();
        let open = std::mem::take(&mut state.open);
        state.left.extend(open.values().map(|mark| Left { mark: *mark, since: now }));
        for session in open.values().map(|mark| mark.session).collect::<BTreeSet<_>>() {
            *state.deaths.entry(session).or_default() += 1;
        }
    }

    /// How often a process died of this session, as far as marks tell.
    pub fn deaths(&self, session: SessionId) -> u64 {
        self.state().deaths.get(&session).copied().unwrap_or_default()
    }

    /// The deaths that were settled.
    pub fn settled(&self) -> Vec<Settled> {
        self.state().settled.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CrashMarks for Marks {
    fn begin(&self, session: SessionId, claims: u32) -> Option<usize> {
        let mark = {
            let mut state = self.state();
            state.made += 1;
            let mark = state.made;
            state.open.insert(mark, Suspect { session, claims: Some(claims) });
            mark
        };
        // Here a recovery dies; what the step still does has no effect any more.
        self.power.passes(Point::Stretch);
        Some(mark)
    }

    fn end(&self, mark: usize) {
        if self.power.is_on() {
            self.state().open.remove(&mark);
        }
    }

    fn suspects(&self) -> Vec<Suspect> {
        let claims = |mark: Suspect| if self.blurred { Some(u32::MAX) } else { mark.claims };
        let found = |left: &Left| Suspect { claims: claims(left.mark), ..left.mark };
        self.state().left.iter().map(found).collect()
    }

    fn settle(&self, session: SessionId) {
        if !self.power.is_on() {
            return;
        }
        let at = self.clock.now();
        let mut state = self.state();
        let is_its = |left: &mut Left| left.mark.session == session;
        let left: Vec<Left> = state.left.extract_if(.., is_its).collect();
        let settled = left.iter().map(|left| Settled { session, since: left.since, at });
        state.settled.extend(settled);
        if left.is_empty() {
            state.open.retain(|_, open| open.session != session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::machine::clock::SimClock;
    use crate::sim::machine::executor::Executor;

    #[test]
    fn a_mark_is_left_only_by_a_process_that_dies_in_between() {
        let power = Arc::new(Power::default());
        let executor = Executor::new(1, power.clone());
        let marks = Marks::new(power.clone(), Arc::new(SimClock(executor)), false);
        let one = SessionId(1);
        let two = SessionId(2);
        power.switch_on(Some((Point::Stretch, 2)));
        marks.begin_process();
        let first = marks.begin(one, 1);
        first.into_iter().for_each(|mark| marks.end(mark));
        let second = marks.begin(two, 1);
        assert!(!power.is_on(), "the power goes off at the second mark");
        second.into_iter().for_each(|mark| marks.end(mark));
        for _ in 0..2 {
            power.switch_on(None);
            marks.begin_process();
            assert_eq!(marks.suspects(), [Suspect { session: two, claims: Some(1) }]);
            assert_eq!((marks.deaths(one), marks.deaths(two)), (0, 1), "it died of it once");
        }
        marks.settle(two);
        assert_eq!((marks.suspects().len(), marks.settled().len()), (0, 1));
    }
}
