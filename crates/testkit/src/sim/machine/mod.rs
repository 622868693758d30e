//! The simulated machine: time, tasks, a disk that forgets, and the power switch.

pub mod power;
pub mod executor;
pub mod clock;
pub mod marks;
pub mod vfs;
pub mod blobs;
pub mod place;
pub mod archive;
