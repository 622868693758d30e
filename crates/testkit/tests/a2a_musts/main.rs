//! What the specification of A2A says that a server must do, held against the test agent over real
//! HTTP, in each binding. The table in `docs/reference/a2a-requirements.md` names the tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests may panic, and wait by the clock"
)]

mod talk;
mod triggers;
mod sending;
mod streams;
mod listing;
mod errors;
mod versions;
mod shapes;
mod cards;
mod push;
