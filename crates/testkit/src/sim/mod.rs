//! A seeded simulation of the whole engine: the real loop, the real kernel and the real SQLite
//! store on an executor, a clock, a disk and tools that obey one seed. Processes die at chosen
//! points, unsynced writes are lost or torn, and an oracle outside judges what comes of it. Rough
//! seeds add panics, limits that change at a restart, deaths during a recovery, and sessions that
//! cannot be read for a while. Shared machines have two realms with the same names, a policy that
//! changes and subjects that vanish. Some seeds have two engines over one store.

pub mod rng;
pub mod realms;
pub mod limits;
pub mod machine;
pub mod faults;
mod store;
pub mod coverage;
pub mod knobs;
pub mod programs;
pub mod outside;
pub mod troubles;
pub mod judge;
pub mod model;
pub mod people;
pub mod judging;
pub mod sides;
pub mod world;
pub mod shrink;
