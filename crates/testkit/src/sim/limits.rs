//! Limits of a seed before and after a restart: those of its operator, and fixed ones as another
//! release may have them.

use super::rng::Rng;
use kernel::limits::Limits;

/// What may be the largest value that is not a blob: the usual, or so little that most are blobs.
const INLINE_BYTES: [Option<usize>; 5] = [None, None, Some(20), Some(64), Some(256)];

/// The limits of a seed.
pub fn of_seed(rng: &mut Rng) -> Limits {
    let usual = Limits::default();
    let inline_bytes = rng.pick(&INLINE_BYTES).copied().flatten();
    Limits {
        call_timeout_ms: 5_000,
        recover_interval_ms: 2_000,
        snapshot_floor_bytes: 4_096,
        context_inline_bytes_max: inline_bytes.unwrap_or(usual.context_inline_bytes_max),
        // Longer than any put waits for its append, and short enough to be over in a life.
        blob_grace_ms: 20_000,
        ..usual
    }
}

/// The same for a rough seed: one death or two are enough to give a run up.
pub fn of_rough_seed(limits: Limits, rng: &mut Rng) -> Limits {
    Limits { recover_attempts_max: 1 + u32::from(rng.chance(50)), ..limits }
}

/// The limits after a restart: some of them are lower or higher than before. What decides how a
/// value is kept stays as it is, because the reference gives the answers of the whole seed.
pub fn redrawn(usual: &Limits, rng: &mut Rng) -> Limits {
    let mut limits = usual.clone();
    if rng.chance(30) {
        // No plan of the simulation is admitted under these.
        limits.plan_steps_max = 1;
        limits.branches_max = 1;
        limits.loop_concurrency_max = 1;
    }
    if rng.chance(35) {
        limits.run_calls_max = 3 + rng.below(10);
    }
    if rng.chance(35) {
        limits.run_events_max = 60 + rng.below(100);
    }
    if rng.chance(35) {
        // More often than any step of the simulation is entered.
        limits.step_visits_max = 10;
    }
    let batch = rng.pick(&[1, 2, usual.recover_batch_max]).copied();
    limits.recover_batch_max = batch.unwrap_or(usual.recover_batch_max);
    limits
}

/// Whether these admit plans of the simulation.
pub fn admit_plans(limits: &Limits) -> bool {
    limits.plan_steps_max > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_after_a_restart_are_in_their_ranges() {
        let usual = of_seed(&mut Rng::new(1));
        let drawn: Vec<Limits> = (0..50).map(|seed| redrawn(&usual, &mut Rng::new(seed))).collect();
        for limits in &drawn {
            assert_eq!(limits.check(), usual.check());
        }
        assert!(drawn.iter().any(admit_plans) && !drawn.iter().all(admit_plans));
    }
}
