//! Bodies that cross the wire, as serde types only: the server writes them, clients read them, and
//! neither side has a second opinion about their shape. Nothing here knows the kernel.

pub mod jsonrpc;
pub mod mcp;
pub mod thread;
pub mod rest;
pub mod seed002;
pub mod seed001;
pub mod seed004;
