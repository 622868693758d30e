//! Endpoints in the shapes of existing services: conversations, agent configurations, sessions of
//! plans, permissions, and tools as methods of JSON-RPC. They are thin: the engine's handles do the
//! work.

mod agent_config;
mod threads;
mod plan_sessions;
mod permissions;
mod rpc;
mod routes;

pub use routes::{RPC, TABLE, router};
