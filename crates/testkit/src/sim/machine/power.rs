//! The power switch: one flag that the executor, the disk, the store and the tools look at, and
//! the plan by which it goes off. Once it is off nothing happens any more: no write, no effect, no
//! answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where a process can die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// Between any two steps of any two tasks.
    Step,
    /// Before a tool is sent anything.
    BeforeSend,
    /// Right before the effect happens on the other side.
    BeforeEffect,
    /// The effect happened, the answer has not been given.
    AfterEffect,
    /// The answer is about to be taken in.
    BeforeAnswer,
    /// An append is queued and not written.
    Queued,
    /// An append is durable and no one knows it yet.
    Durable,
    /// In the middle of writing to a file.
    DiskWrite,
    /// Before a sync took hold.
    DiskSync,
    /// A blob is written and not durable.
    BlobSync,
    /// During the work on a session that was recovered and made no progress yet.
    Stretch,
}

impl Point {
    /// All of them.
    pub const ALL: [Point; 11] = [
        Point::Step,
        Point::BeforeSend,
        Point::BeforeEffect,
        Point::AfterEffect,
        Point::BeforeAnswer,
        Point::Queued,
        Point::Durable,
        Point::DiskWrite,
        Point::DiskSync,
        Point::BlobSync,
        Point::Stretch,
    ];

    /// Those that every process reaches, whether it recovers anything or not.
    pub fn usual() -> Vec<Point> {
        Point::ALL.into_iter().filter(|point| *point != Point::Stretch).collect()
    }

    /// How often it is passed at most before a process dies there.
    pub fn passed_max(self) -> u64 {
        match self {
            Point::Step => 1_500,
            Point::DiskWrite => 400,
            Point::DiskSync | Point::Queued | Point::Durable => 80,
            Point::BeforeSend | Point::BeforeEffect | Point::AfterEffect | Point::BeforeAnswer => {
                40
            }
            Point::BlobSync => 4,
            Point::Stretch => 2,
        }
    }

    /// Its name in the coverage table.
    pub fn name(self) -> &'static str {
        match self {
            Point::Step => "any step",
            Point::BeforeSend => "before send",
            Point::BeforeEffect => "before effect",
            Point::AfterEffect => "after effect",
            Point::BeforeAnswer => "before answer",
            Point::Queued => "append queued",
            Point::Durable => "append durable",
            Point::DiskWrite => "disk write",
            Point::DiskSync => "disk sync",
            Point::BlobSync => "blob sync",
            Point::Stretch => "recovery",
        }
    }
}

#[derive(Debug)]
pub struct Power {
    on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// At which hit of which point it goes off.
    plan: Option<(Point, u64)>,
    /// Where it went off.
    cut: Option<Point>,
    /// How often each point was passed.
    hits: BTreeMap<Point, u64>,
}

impl Default for Power {
    fn default() -> Self {
        Self { on: AtomicBool::new(true), state: Mutex::default() }
    }
}

impl Power {
    /// Switches on, to go off at the so-manieth hit of a point, or not at all.
    pub fn switch_on(&self, plan: Option<(Point, u64)>) {
        let mut state = self.state();
        state.plan = plan;
        state.cut = None;
        self.on.store(true, Ordering::SeqCst);
    }

    /// Switches off, whatever the plan says.
    pub fn switch_off(&self) {
        let mut state = self.state();
        state.cut.get_or_insert(Point::Step);
        self.on.store(false, Ordering::SeqCst);
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::SeqCst)
    }

    /// Passes a point; whether the power is on behind it.
    pub fn passes(&self, point: Point) -> bool {
        if !self.is_on() {
            return false;
        }
        let mut state = self.state();
        *state.hits.entry(point).or_default() += 1;
        let Some((planned, left)) = state.plan else { return true };
        if planned != point {
            return true;
        }
        if left > 1 {
            state.plan = Some((planned, left - 1));
            return true;
        }
        state.plan = None;
        state.cut = Some(point);
        self.on.store(false, Ordering::SeqCst);
        false
    }

    /// Where it went off.
    pub fn cut(&self) -> Option<Point> {
        self.state().cut
    }

    /// How often each point was passed.
    pub fn hits(&self) -> BTreeMap<Point, u64> {
        self.state().hits.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_power_goes_off_at_the_planned_hit_and_stays_off() {
        let power = Power::default();
        power.switch_on(Some((Point::Queued, 2)));
        assert!(power.passes(Point::Step) && power.passes(Point::Queued));
        assert!(!power.passes(Point::Queued));
        assert!(!power.passes(Point::Step) && !power.is_on());
        assert_eq!(power.cut(), Some(Point::Queued));
    }
}
