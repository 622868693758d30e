//! The endpoints over HTTP, one file per resource. A handler reads, calls the engine and shows the
//! outcome; it decides nothing. Paths, acts and descriptions are in `routes`; MCP and `/rpc` have
//! modules of their own.

pub(crate) mod runs;
pub(crate) mod sessions;
pub(crate) mod streams;
pub(crate) mod tools;
mod condition;
pub(crate) mod plans;
pub(crate) mod agents;
pub(crate) mod pipelines;
pub(crate) mod upstreams;
pub(crate) mod pages;
pub(crate) mod logins;
pub(crate) mod asks;
pub(crate) mod providers;
pub(crate) mod sinks;
pub(crate) mod blobs;
pub(crate) mod identity;
pub(crate) mod compat;
pub(crate) mod operations;
