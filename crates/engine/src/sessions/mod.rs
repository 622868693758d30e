//! What the process knows of sessions beside their drivers: those kept in memory while no one
//! drives them, those that may have ended a process, and the realms in which nothing is driven any
//! more.

pub(crate) mod cache;
pub(crate) mod suspects;
pub(crate) mod closed_realms;
