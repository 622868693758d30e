//! Model calls of a driver: turns of agents, and proposals for failed steps.

mod turns;
mod proposals;
