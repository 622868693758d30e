//! The client of A2A against an agent that was written without it: every dialect, what a task waits
//! for, its end, and everything that may go wrong on the way.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests may panic, and wait by the clock"
)]

mod house;
mod talks;
mod troubles;
mod cards;
mod grpc;
mod endless;
mod fuzz_cards;
