//! The way to a running server: where it listens, requests, event streams, long documents. What a
//! command asks for is in `commands`.

mod hints;
pub(crate) mod unproven;
pub(crate) mod credentials;
pub(crate) mod client;
pub(crate) mod sse;
pub(crate) mod download;
pub(crate) mod address;
pub(crate) mod near;
pub(crate) mod chosen;
pub(crate) mod tail;
