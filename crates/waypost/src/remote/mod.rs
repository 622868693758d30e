//! The way to a running server: where it listens, requests, event streams.

pub(crate) mod client;
pub(crate) mod sse;
pub(crate) mod address;
pub(crate) mod near;
pub(crate) mod tail;
