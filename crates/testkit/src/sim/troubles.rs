//! Additional faults of a rough seed: panics, marks of deaths, unreadable sessions. They are
//! outside the process and survive its crashes.

use super::faults::Planted;
use super::faults::damage::{Damage, Harm};
use super::knobs::Knobs;
use super::rng::Rng;
use crate::sim::machine::marks::Marks;
use crate::sim::machine::power::Power;
use crate::sim::outside::panicking::Panics;
use kernel::contracts::Clock;
use kernel::journal::projection::SessionRow;
use std::sync::{Arc, Mutex, PoisonError};

/// Which of the seed's streams are the troubles'.
const PANICS_STREAM: u64 = 9;
const HARM_STREAM: u64 = 10;
/// In so many lives of a hundred something cannot be read.
const HARMS: u64 = 60;
/// How long it stays so, at least and at most.
const HARM_MS: (u64, u64) = (2_000, 30_000);

/// The troubles of one machine.
pub struct Troubles {
    /// Whether the seed is a rough one.
    pub rough: bool,
    pub panics: Arc<Panics>,
    /// What processes died of.
    pub marks: Arc<Marks>,
    /// What cannot be read.
    pub damage: Arc<Damage>,
    rng: Mutex<Rng>,
}

impl Troubles {
    /// The troubles of a seed; those that are not rough have marks alone.
    pub fn new(knobs: Knobs, power: &Arc<Power>, clock: &Arc<dyn Clock>) -> Self {
        let Knobs { seed, rough, planted, .. } = knobs;
        let rng = Rng::stream(seed, PANICS_STREAM);
        let blurred = planted == Some(Planted::DeathsForgotten);
        Self {
            rough,
            panics: Arc::new(Panics::new(rng, rough, power.clone())),
            marks: Arc::new(Marks::new(power.clone(), clock.clone(), blurred)),
            damage: Arc::default(),
            rng: Mutex::new(Rng::stream(seed, HARM_STREAM)),
        }
    }

    /// Makes something of these sessions unreadable, in some lives of a rough seed; for how many
    /// milliseconds.
    pub fn harm(&self, rows: &[SessionRow]) -> Option<u64> {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.rough || !rng.chance(HARMS) {
            return None;
        }
        let active = |row: &&SessionRow| row.run.is_some() && !row.status.is_over();
        let active: Vec<&SessionRow> = rows.iter().filter(active).collect();
        let row = rng.pick(&active).copied()?;
        let harm = match (&row.plan, rng.chance(40)) {
            (Some(plan), true) => Harm::Plan(plan.clone()),
            _ => Harm::Journal(row.key.clone()),
        };
        self.damage.harm(harm);
        let (least, most) = HARM_MS;
        Some(least + rng.below(most - least))
    }
}
