//! What the engine takes of the real system: time, tasks, time zones and locks, and how a panic
//! of called code is contained.

pub mod clock;
pub(crate) mod panics;
pub mod zones;
pub(crate) mod locks;
