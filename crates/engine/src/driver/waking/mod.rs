//! How a driver gets its session: loaded, created as a fork, or parked because it cannot be driven
//! for now.

mod wake;
pub(super) mod parked;
mod adopt;
