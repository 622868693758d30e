//! The endpoints at `/api/v1` and what stands beside them: logins, pages, the routes of pipelines,
//! health and metrics; one file per resource. A handler reads, calls the engine and shows the outcome;
//! it decides nothing. Paths, acts and descriptions are in `routes`.

mod condition;
pub mod pages;
mod runs;
mod sessions;
mod streams;
mod tools;
mod plans;
mod agents;
pub mod pipelines;
mod upstreams;
mod logins;
mod asks;
mod providers;
mod records;
mod sinks;
mod blobs;
mod identity;
pub mod operations;
mod guard;
mod routes;

pub use routes::{TABLE, router};
