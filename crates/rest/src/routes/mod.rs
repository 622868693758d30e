//! The table of routes: path, method, handler, act and description of each.

mod runs;
mod sessions;
mod sinks;
mod catalog;
mod agents;
mod pipelines;
mod upstreams;
mod records;
mod identity;
mod operations;

use crate::guard::guarded;
use axum::Router;
use edge::acts::{ActTarget, Right};
use edge::openapi::{PLAIN, PROBLEM};
use edge::request::server_state::Shared;
use edge::routes::{Group, group};
use kernel::values::caller::Act;

/// The endpoint asks whether the caller may administer.
const ADMINISTER: Right = Right::Endpoint(Act::Administer, ActTarget::Server);

/// Every route of this crate.
pub const TABLE: &[Group<Shared>] = &[
    group(runs::RUNS, PROBLEM),
    group(sessions::SESSIONS, PROBLEM),
    group(sinks::SINKS, PROBLEM),
    group(runs::ASKS, PROBLEM),
    group(catalog::PLANS, PROBLEM),
    group(agents::AGENTS, PROBLEM),
    group(pipelines::PIPELINES, PROBLEM),
    group(pipelines::CASES, PLAIN),
    group(catalog::TOOLS, PROBLEM),
    group(upstreams::UPSTREAMS, PROBLEM),
    group(records::RECORDS, PROBLEM),
    group(identity::KEYS, PROBLEM),
    group(identity::PRINCIPALS, PROBLEM),
    group(identity::REALMS, PROBLEM),
    group(identity::POLICIES, PROBLEM),
    group(identity::AUDIT, PROBLEM),
    group(identity::OAUTH, PROBLEM),
    group(operations::STORED, PROBLEM),
    group(operations::OPERATIONS, PROBLEM),
];

/// The router of the table, behind what the endpoint itself asks policy about.
pub fn router(server: &Shared) -> Router<Shared> {
    edge::routes::router(TABLE, |right, handler| guarded(server, right, handler))
}
