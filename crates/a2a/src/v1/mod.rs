//! A2A 1.0: `rpc` is the binding of JSON-RPC, `rest` that of HTTP with JSON. Both take callers of
//! 0.3 in as well, who use the same addresses, and hand them on to `v03`. `grpc` is of 1.0 alone.

pub(super) mod rpc;
pub(super) mod rest;
pub(super) mod grpc;
