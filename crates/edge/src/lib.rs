//! What every endpoint stands on: connections, the frame of a request, who calls, problems, pages,
//! cursors, streams, the description of routes, and the upstreams that are served. An endpoint
//! hands in its routes, each with its act (`routes`, `acts`), and has `request::server_state` at
//! hand.
//!
//! The order of the modules below is the order of reading and of import: a module uses only those
//! above it.

pub mod problem;
pub mod instance;
pub mod backup;
pub mod counters;
pub mod connections;
pub mod gateway;
pub mod realms;
pub mod record_source;
pub mod request;
pub mod views;
pub mod stream;
pub mod direct_call;
mod record_tools;
pub mod tool_answer;
pub mod record_calls;
pub mod record_hints;
pub mod acts;
pub mod openapi;
pub mod routes;
