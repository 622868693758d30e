//! The way to a running server: where it listens, requests, event streams.

pub(crate) mod sse;
pub(crate) mod client;
pub(crate) mod address;
pub(crate) mod stream;
pub(crate) mod near;
pub(crate) mod tail;
