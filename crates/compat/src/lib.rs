//! Endpoints in the shapes of existing services: conversations, agent configurations, sessions of
//! plans, permissions, queries of records, tools for agents, and tools as methods of JSON-RPC. They
//! are thin: the engine's handles do the work.

mod agent_config;
mod threads;
mod plan_sessions;
mod permissions;
mod query_gateway;
mod agent_tools;
mod rpc;
mod routes;

pub use routes::{RPC, TABLE, router};
