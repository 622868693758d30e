//! A2A 0.3, for clients that send no version: the same operations under other names and in other
//! shapes. `rpc` is the binding of JSON-RPC, `rest` that of HTTP, which has the JSON of a proto.
//! The shapes are in `wire`; the address names the realm.

pub(super) mod rpc;
pub(super) mod rest;
