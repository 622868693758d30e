//! The simulated machine: time, tasks, a disk that forgets, blobs and marks under the power switch,
//! what retention removed, and two nodes over one store. What is outside of the machine is in
//! `outside`.

pub mod power;
pub mod executor;
pub mod clock;
pub mod marks;
pub mod vfs;
pub mod blobs;
pub mod storage;
pub mod nodes;
pub mod archive;
