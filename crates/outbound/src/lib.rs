//! What every request to another server needs, written once. It knows nothing of runs, tools or
//! models.

pub mod percent;
pub mod redaction;
pub mod words;
pub mod retry_after;
pub mod addresses;
pub mod redirects;
pub mod client;
pub mod plain;
pub mod sse;
pub mod seal;
