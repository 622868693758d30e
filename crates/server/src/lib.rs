//! The server: a project folder, the doors before the engine, and how both are put together. A
//! door translates; the engine decides.
//!
//! The order of the modules below is the order of reading and of import: a module uses only those
//! above it.

pub mod realm;
pub mod layer;
mod settings;
pub mod upstreams;
mod public_url;
pub mod models;
pub mod event_sinks;
pub mod config;
mod agents;
pub mod project;
mod error;
mod auth;
mod secret;
mod vault;
mod backup;
mod cursors;
mod rate;
mod zones;
pub mod instance;
mod gateway;
mod counted;
mod connections;
mod doors;
mod sending;
mod trace;
mod frame;
mod body;
mod params;
mod once;
mod shown;
mod threads;
mod openapi;
mod content;
mod http;
mod acts;
mod rpc;
mod mcp;
mod routes;
mod ports;
mod pipelines;
mod assemble;
mod reload;
mod watch;
mod socket;
mod serve;

pub use acts::{METHODS, Of, Right};
pub use assemble::{
    AssembleError, Assembled, Checked, Extra, HeldVault, Setup, Stopper, ToCheck, assemble,
    check_project,
};
pub use backup::{HeldBackup, restore};
pub use gateway::Lookup;
pub use pipelines::check_pipeline;
pub use ports::{OwnPort, PortError};
pub use routes::{document as openapi, rights, routes};
pub use serve::{serve, serve_stdio};
pub use watch::{Watch, Watching};
