//! For tests only: specs of tools, scenes, damage to data folders, the process harness, the
//! receivers that serve as oracles, the simulation, stores in memory, the contract suite of
//! stores, servers that behave badly or want a login, an issuer of tokens, the client that the
//! official suite looks at, the fakes of model providers, and a collector of spans. Nothing here
//! imports `server`: what does is in `fixture`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::too_many_lines,
    reason = "for tests only"
)]

pub mod panics;
pub mod specs;
pub mod scene;
pub mod damage;
pub mod leaks;
pub mod http;
pub mod events;
pub mod harness;
pub mod caller;
pub mod kill;
pub mod sim;
pub mod model_store;
pub mod model_records;
pub mod contract;
pub mod fuzz;
pub mod upstream;
pub mod conformance_client;
pub mod llms;
pub mod servers;
