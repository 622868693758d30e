//! Bodies that cross the wire, as serde types with JSON Schemas: the server writes them, clients
//! read them, `/openapi.json` describes them, and nobody has a second opinion about their shape.
//! Their doc comments are the descriptions in that document. Nothing here knows the kernel.

pub mod jsonrpc;
pub mod mcp;
pub mod a2a;
pub mod thread;
pub mod rest;
pub mod agent_config;
pub mod conversations;
pub mod plan_sessions;
pub mod permissions;
pub mod query_gateway;
