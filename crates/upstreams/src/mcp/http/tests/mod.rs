//! The line against a peer of our own: a listener that answers what the test says, and a clock that
//! the test moves.
#![allow(clippy::disallowed_methods, reason = "the peer runs beside the test")]

mod stage;
mod connections;
mod stateless;
mod session;
mod refusals;
mod secrets;
mod sse_legacy;
