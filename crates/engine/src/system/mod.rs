//! What the engine takes of the real system: time, randomness, tasks, a zone for local time and
//! locks, how a panic of called code is contained, and where work is done that takes long. No other
//! module of the engine reads a clock or starts a task.

pub mod clock;
pub(crate) mod panics;
pub mod zones;
pub(crate) mod locks;
pub(crate) mod heavy;
