//! Direct calls of tools: those that need no session, those that have a run of their own, and what
//! their clients and observers see of them.

mod attended;
mod observed;
mod direct;
