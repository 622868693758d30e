//! What the engine reports of its work: counters, spans for observers, their content where that is
//! wanted, and the state of event sinks and webhooks. Metrics and exports are made of it in crate
//! `telemetry`; events are sent in `outbox`.

pub mod counts;
pub(crate) mod sinks;
pub(crate) mod webhooks;
pub(crate) mod observers;
pub(crate) mod content;
