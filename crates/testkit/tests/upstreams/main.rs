//! The real server between clients and upstreams that misbehave in every way we could think of:
//! each call has a clear end in time, no list waits for anybody, nothing is left behind, and who
//! behaves well notices nothing. `cargo xtask test` builds the programs first.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests may panic, and process tests live by the clock"
)]

mod house;
mod calls;
mod lists;
mod hostile;
mod providers;
mod traces;
mod leaks;
mod children;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by the test that runs: two at once would measure each other on two cores.
static TURN: Mutex<()> = Mutex::new(());

fn my_turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
