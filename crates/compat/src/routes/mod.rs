//! The table of routes: path, method, handler, act and description of each, and `/rpc` beside it,
//! which OpenAPI cannot describe.

mod agent_config;
mod threads;
mod plan_sessions;
mod permissions;
mod query_gateway;
mod agent_tools;

use crate::rpc;
use axum::Router;
use axum::routing::post;
use edge::acts::Right;
use edge::openapi::{NAMED, PLAIN, PROBLEM, THREAD};
use edge::request::server_state::Shared;
use edge::routes::{Group, group};
use kernel::values::caller::Act;

/// Every route of this crate but those of protocols.
pub const TABLE: &[Group<Shared>] = &[
    group(agent_config::ENTITIES, PLAIN),
    group(threads::THREADS, THREAD),
    group(plan_sessions::PLAN_SESSIONS, PLAIN),
    group(permissions::PERMISSIONS, PROBLEM),
    group(query_gateway::QUERY_GATEWAY, NAMED),
    group(agent_tools::AGENT_TOOLS, NAMED),
];

/// Method and path of `/rpc`, and who asks policy about it.
pub const RPC: (&str, &str, Right) = ("POST", "/rpc", Right::Engine(Act::Call));

/// The router of all of them.
pub fn router() -> Router<Shared> {
    edge::routes::router(TABLE, |_, handler| handler).route(RPC.1, post(rpc::serve))
}
