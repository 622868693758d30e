//! The world around the simulated server: tools, policy, sinks, and panics in all of them.

pub mod panicking;
pub mod policy;
pub mod tools;
pub mod receiver;
