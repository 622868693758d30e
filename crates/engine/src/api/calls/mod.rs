//! Calls of tools for clients: those that need no session, those that have a run of their own,
//! those that their run reports, and what clients and observers see of them.

mod attended;
mod observed;
mod direct;
mod reported;
