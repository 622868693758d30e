//! The world around the simulated server: tools, policy, a receiver of events, and panics in all of
//! them. It survives every crash. Models are in `model`, people and programs in `clients`.

pub mod panicking;
pub mod changes;
pub mod policy;
pub mod tools;
pub mod receiver;
