//! What observers see: counters, spans, captured contents, and the state of event sinks.

pub mod counts;
pub(crate) mod sinks;
pub(crate) mod observers;
pub(crate) mod captured;
