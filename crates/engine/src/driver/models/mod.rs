//! What a driver asks of models: the turns of agents, and other arguments for steps that failed.

mod turns;
mod proposals;
