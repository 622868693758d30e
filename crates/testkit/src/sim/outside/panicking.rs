//! Panics of a rough seed: tools, models, the policy and an observer panic now and then, each with
//! a message that distinguishes a planned panic from a defect.

use crate::sim::machine::power::Power;
use crate::sim::rng::Rng;
use kernel::contracts::observe::{Observation, Observer};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How the message of every planned panic begins.
pub const PLANNED: &str = "a panic of the simulation";

/// In how many cases of a thousand something panics: never, seldom, often.
const PER_THOUSAND: [u64; 3] = [0, 8, 25];

/// Who panics, and how often that happened.
pub struct Panics {
    rng: Mutex<Rng>,
    per_thousand: u64,
    power: Arc<Power>,
    /// Nothing panics any more.
    calm: AtomicBool,
    /// How many panics met the driver of a session, and not only one of its calls.
    in_drivers: AtomicU64,
}

impl Panics {
    /// Panics of a rough seed; none for the others.
    pub fn new(mut rng: Rng, rough: bool, power: Arc<Power>) -> Self {
        let per_thousand = rng.pick(&PER_THOUSAND).copied().unwrap_or_default();
        Self {
            rng: Mutex::new(rng),
            per_thousand: if rough { per_thousand } else { 0 },
            power,
            calm: AtomicBool::new(false),
            in_drivers: AtomicU64::new(0),
        }
    }

    /// From now on nothing panics.
    pub fn calm_down(&self) {
        self.calm.store(true, Ordering::SeqCst);
    }

    /// How many panics met the driver of a session.
    pub fn in_drivers(&self) -> u64 {
        self.in_drivers.load(Ordering::SeqCst)
    }

    /// A tool panics here, now and then: that costs its call.
    pub fn in_tool(&self, tool: &str) {
        if self.strikes() {
            panic!("{PLANNED} in `{tool}`");
        }
    }

    /// Someone whom a driver asks panics here, now and then: that costs all that the driver holds.
    pub fn in_driver(&self, who: &str) {
        if self.strikes() {
            self.in_drivers.fetch_add(1, Ordering::SeqCst);
            panic!("{PLANNED} in {who}");
        }
    }

    fn strikes(&self) -> bool {
        // A process without power does nothing, and no one hears what it says.
        if self.per_thousand == 0 || self.calm.load(Ordering::SeqCst) || !self.power.is_on() {
            return false;
        }
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        rng.below(1_000) < self.per_thousand
    }
}

impl Observer for Panics {
    fn saw(&self, _seen: &Observation) {
        self.in_driver("an observer");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panics::during;

    #[test]
    fn only_rough_seeds_panic_and_only_until_they_are_calm() {
        let panics = |rough: bool| {
            let panics = Panics::new(Rng::new(1), rough, Arc::default());
            Panics { per_thousand: if rough { 1_000 } else { panics.per_thousand }, ..panics }
        };
        let calm = panics(false);
        assert_eq!(during(|| calm.in_driver("anyone")), (Some(()), Vec::new()));
        let rough = panics(true);
        let (done, heard) = during(|| rough.in_driver("anyone"));
        assert!(done.is_none() && heard[0].contains(PLANNED), "{heard:?}");
        assert_eq!(rough.in_drivers(), 1);
        rough.calm_down();
        assert_eq!(during(|| rough.in_tool("any")), (Some(()), Vec::new()));
    }
}
