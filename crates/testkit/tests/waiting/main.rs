//! Tests of the real program that mostly wait: for rules and asks whose time comes after a restart.
//! They are a test program of their own so that others run meanwhile. `cargo xtask test` builds the
//! programs first.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests may panic, and process tests live by the clock"
)]

#[path = "../process/api.rs"]
#[expect(dead_code, reason = "the tests in `process` use the rest")]
mod api;
mod paused;
mod held;

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by the test that runs: two at once would have to wait longer.
static TURN: Mutex<()> = Mutex::new(());

fn my_turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One line past the test runner's capture: figures belong into every log, not only into a
/// failure's.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The number that this variable asks for, or the usual one; two at least.
fn count_in(variable: &str, usual: usize) -> usize {
    let Ok(text) = std::env::var(variable) else { return usual };
    let count = text.parse::<usize>();
    count.unwrap_or_else(|error| panic!("{variable} is `{text}`: {error}")).max(2)
}
