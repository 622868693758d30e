//! Which act each endpoint is: what policy is asked before it does anything. The engine asks about
//! what is its own, where it knows the resource. About upstreams and stored providers, which only
//! endpoints know, the endpoint asks. One that nobody asks about says why. Routes name their act in
//! their table, protocols in a list of their methods.

use kernel::values::caller::{Act, Scope};
use serde_json::json;
use wire::jsonrpc::{INVALID_REQUEST, RpcError};

/// Who asks policy, and about which act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    Engine(Act),
    /// The endpoint itself, about this.
    Endpoint(Act, ActTarget),
    /// No one, and why.
    Open(&'static str),
}

/// What an endpoint asks about; its name is in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActTarget {
    /// A stored provider.
    Provider,
    Upstream,
    Server,
}

/// Of endpoints that say whether the server is there.
pub const HEALTH: Right = Right::Open("it says whether the server is there, and nothing else");

/// What JSON-RPC says of it: without it a caller does not learn whether what is asked for exists.
pub fn out_of_scope(scope: Scope) -> RpcError {
    let message = format!("the credential does not have the scope `{}`", scope.name());
    let data = json!({"code": "forbidden", "scope": scope.name()});
    RpcError::new(INVALID_REQUEST, message).data(data)
}
