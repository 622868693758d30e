//! What operators and their tools ask a server: its health, its metrics, a backup. What the figures
//! count is kept in the engine (`observe`), in `counters` and in crate `telemetry`.

pub(crate) mod backup;
pub(crate) mod readings;
pub mod health;
