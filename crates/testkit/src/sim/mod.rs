//! A seeded simulation of the whole engine: the real loop, the real kernel and the real SQLite
//! store on an executor, a clock, a disk and tools that obey one seed. Processes die at chosen
//! points, unsynced writes are lost or torn, and an oracle outside judges what comes of it.

pub mod rng;
pub mod power;
pub mod executor;
pub mod clock;
pub mod vfs;
pub mod blobs;
pub mod plans;
pub mod source;
pub mod held;
pub mod wants;
pub mod reference;
pub mod policy;
pub mod tools;
pub mod archive;
pub mod receiver;
pub mod faults;
pub mod coverage;
pub mod knobs;
pub mod tally;
pub mod turns;
pub mod journal;
pub mod oracle;
pub mod model;
pub mod clients;
pub mod world;
pub mod shrink;
