//! Tests of the real programs as processes: what they promise must hold from outside, over HTTP,
//! signals and restarts. `cargo xtask test` builds the programs first.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests may panic, and process tests live by the clock"
)]

mod api;
mod oracle;
mod budgets;
mod replies;
mod streams;
mod hostile;
mod corpus;
mod connections;
mod documents;
mod matrix;
mod attacks;
mod events_out;
mod kill;
mod guarded;
mod abort;
mod backup;
mod children;
mod releases;
mod readme;

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by the test that runs: two at once would measure each other on two cores.
static TURN: Mutex<()> = Mutex::new(());

fn my_turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One line past the test runner's capture: figures belong into every log, not only into a
/// failure's.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
