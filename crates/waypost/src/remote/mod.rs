//! Access to a running server: its address, requests, event streams, long documents. What a command
//! requests is in `commands`.

mod hints;
pub(crate) mod unproven;
pub(crate) mod credentials;
pub(crate) mod client;
pub(crate) mod sse;
pub(crate) mod download;
pub(crate) mod address;
pub(crate) mod suggestions;
pub(crate) mod id_lookup;
pub(crate) mod tail;
