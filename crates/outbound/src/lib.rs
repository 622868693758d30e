//! What every request to another server needs, written once: HTTP clients, allowed addresses,
//! notices, redirects, plain connections, calls of gRPC, SSE, redaction, sealing, documents that
//! are believed, and how an answer becomes the output of a call. It knows no runs, no models and no
//! kind of upstream.

pub mod percent;
pub mod redaction;
pub mod words;
pub mod retry_after;
pub mod addresses;
pub mod redirects;
pub mod client;
pub mod notices;
pub mod plain;
pub mod grpc;
pub mod sse;
pub mod seal;
pub mod trace;
pub mod spool;
pub mod answer;
pub mod documents;

/// Headers that make some servers do something else than the method says. No call may set them: one
/// that reads would write, and would be neither asked about nor recorded before it is sent.
pub const METHOD_OVERRIDES: [&str; 3] =
    ["x-http-method", "x-http-method-override", "x-method-override"];
