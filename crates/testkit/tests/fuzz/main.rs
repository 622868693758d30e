//! Hostile texts and messages for everything that reads them first; `docs/reference/fuzzing.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests may panic, and wait by the clock"
)]

mod messages;
mod queries;
mod texts;
