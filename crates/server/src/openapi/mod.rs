//! `/openapi.json`: the doors as OpenAPI 3.1. A table says for each route what it takes and what it
//! answers; schemas and parameters are written once and referred to by name. A test in `routes.rs`
//! holds the table against the routes that are served.

mod schemas;
mod parameters;
mod operation;
mod rest;
mod upstreams;
mod agents;
mod pipelines;
mod sinks;
mod seed;
mod spec;

pub(crate) use pipelines::with_pipelines;
pub use spec::document;
#[cfg(test)]
pub(crate) use spec::operations;
