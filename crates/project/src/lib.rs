//! A project folder as data: its settings and where each comes from, its plans, agents, pipelines,
//! policies, upstreams, models and sinks. Reading it starts nothing; mistakes come with file, line
//! and hint. Files that other crates keep are replaced as a whole here, too.
//!
//! The order of the modules below is the order of reading and of import: a module uses only those
//! above it.

pub mod atomic_file;
pub mod realm;
pub mod layer;
mod settings;
pub mod a2a_limits;
pub mod limits;
pub mod upstream_entries;
pub mod a2a_serving;
pub mod tables;
pub mod realms;
pub mod models;
pub mod event_sinks;
pub mod config;
pub mod agents;
pub mod entities;
pub mod policies;
pub mod rules;
pub mod folder;
pub mod two_teams;
pub mod records_example;
