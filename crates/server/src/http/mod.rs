//! The doors, one file per surface. A handler reads, calls the engine and shows the outcome;
//! it decides nothing.

pub(crate) mod runs;
pub(crate) mod sessions;
pub(crate) mod asks;
pub(crate) mod tools;
mod condition;
pub(crate) mod plans;
pub(crate) mod agents;
pub(crate) mod pipelines;
pub(crate) mod seed002;
pub(crate) mod upstreams;
mod page;
pub(crate) mod logins;
pub(crate) mod providers;
mod stream;
pub(crate) mod events;
pub(crate) mod feed;
pub(crate) mod sinks;
pub(crate) mod blobs;
pub(crate) mod backup;
pub(crate) mod seed001;
pub(crate) mod seed004;
mod readings;
pub(crate) mod ops;
