//! What a server offers: its agents and its tools.

pub(crate) mod agent;
pub(crate) mod tool;
