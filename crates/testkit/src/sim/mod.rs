//! A seeded simulation of the whole engine: the real loop, the real kernel and the real SQLite
//! store on an executor, a clock, a disk and tools that obey one seed. Processes die at chosen
//! points, unsynced writes are lost or torn, and an oracle outside judges what comes of it. Rough
//! seeds add panics, limits that change at a restart, deaths during a recovery, and sessions that
//! cannot be read for a while.

pub mod rng;
pub mod power;
pub mod executor;
pub mod clock;
pub mod limits;
pub mod panicking;
pub mod marks;
pub mod damage;
pub mod troubles;
pub mod vfs;
pub mod blobs;
pub mod place;
pub mod plans;
pub mod source;
pub mod held;
pub mod wants;
pub mod reference;
pub mod policy;
pub mod tools;
pub mod archive;
pub mod receiver;
pub mod elsewhere;
pub mod faults;
mod store;
pub mod coverage;
pub mod knobs;
pub mod tally;
pub mod turns;
pub mod recovery;
pub mod journal;
pub mod values;
pub mod oracle;
pub mod model;
pub mod clients;
pub mod judging;
pub mod world;
pub mod shrink;
