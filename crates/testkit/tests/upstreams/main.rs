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
mod news;
mod hostile;
mod providers;
mod traces;
mod leaks;
mod children;
mod forms;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Held by the tests that run. Those that watch for a time or give up early run alone: two at once
/// would measure each other on two cores. So do those that use a port again, which another test
/// could take meanwhile. The others mostly wait until a call is given up.
static TURN: RwLock<()> = RwLock::new(());

/// For a test that runs alone.
fn my_turn() -> RwLockWriteGuard<'static, ()> {
    TURN.write().unwrap_or_else(PoisonError::into_inner)
}

/// For a test that may run while others of its kind do.
fn our_turn() -> RwLockReadGuard<'static, ()> {
    TURN.read().unwrap_or_else(PoisonError::into_inner)
}
