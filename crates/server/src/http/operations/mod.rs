//! What operators and their tools ask a server: its health, its metrics, a backup.

pub(crate) mod backup;
pub(crate) mod readings;
pub(crate) mod health;
