//! Which act each door is: what policy is asked before it does anything. The engine asks about what
//! is its own, where it knows the resource; what only the doors know, upstreams and stored
//! providers, is asked about here. A door that nobody asks about says why. Routes name their act in
//! the table of routes, the methods of `/mcp` here.

use crate::http::{providers, upstreams};
use crate::problem::{Failure, Result};
use crate::request::auth::Visitor;
use crate::request::doors::{Doors, Shared};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::MethodRouter;
use kernel::contracts::StoredBy;
use kernel::contracts::policy::Resource;
use kernel::values::caller::{Act, Caller, Scope};
use project::upstream_entries::stored::KIND;
use serde_json::json;
use wire::jsonrpc::{INVALID_REQUEST, RpcError};

/// Who asks policy, and about which act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    Engine(Act),
    /// The door itself, about this.
    Door(Act, ActTarget),
    /// No one, and why.
    Open(&'static str),
}

/// What a door asks about; its name is in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActTarget {
    /// A stored provider.
    Provider,
    Upstream,
    Server,
}

impl ActTarget {
    fn resource<'a>(self, name: &'a str, defined_by: Option<&'a str>) -> Resource<'a> {
        match self {
            Self::Provider => Resource::Definition { kind: KIND, name, defined_by },
            Self::Upstream => Resource::Upstream(name),
            Self::Server => Resource::Server,
        }
    }

    /// Who stored it, where it is a definition and that can matter.
    async fn stored_by(
        self,
        doors: &Doors,
        caller: &Caller,
        act: Act,
        name: &str,
    ) -> Result<Option<StoredBy>> {
        match self {
            Self::Provider if doors.engine.admin().is_free(caller, act) => Ok(None),
            Self::Provider => {
                let stored = providers::stored(&doors.gateway, &caller.realm, name).await?;
                Ok(Some(StoredBy(stored.and_then(|definition| definition.by))))
            }
            Self::Upstream | Self::Server => Ok(None),
        }
    }

    /// The answer to who may not read it; none where it is no secret that it is there.
    fn missing(self, doors: &Doors, caller: &Caller, name: &str) -> Option<Failure> {
        match self {
            Self::Provider => Some(providers::missing(name)),
            Self::Upstream => Some(upstreams::missing(doors, caller, name)),
            Self::Server => None,
        }
    }
}

/// Of doors that say whether the server is there.
pub(crate) const HEALTH: Right =
    Right::Open("it says whether the server is there, and nothing else");

/// Every method of `/mcp` and who asks about it, whatever version it is of. Prompts and resources
/// of an upstream are there for who may read the upstream: the code that gathers the shelves asks.
pub const METHODS: &[(&str, Right)] = &[
    ("initialize", Right::Open("it says who the server is")),
    ("server/discover", Right::Open("it says who the server is")),
    ("ping", HEALTH),
    ("logging/setLevel", Right::Open("it is about one's own session")),
    ("tools/list", Right::Engine(Act::Call)),
    ("tools/call", Right::Engine(Act::Call)),
    ("prompts/list", Right::Engine(Act::Read)),
    ("prompts/get", Right::Engine(Act::Read)),
    ("resources/list", Right::Engine(Act::Read)),
    ("resources/templates/list", Right::Engine(Act::Read)),
    ("resources/read", Right::Engine(Act::Read)),
    ("resources/subscribe", Right::Engine(Act::Read)),
    ("resources/unsubscribe", Right::Open("it is about one's own session")),
    ("subscriptions/listen", Right::Engine(Act::Read)),
    ("completion/complete", Right::Engine(Act::Read)),
    ("tasks/get", Right::Engine(Act::Read)),
    ("tasks/update", Right::Engine(Act::Answer)),
    ("tasks/cancel", Right::Engine(Act::Cancel)),
];

/// The act of a method of `/mcp` that is done to one thing. Lists are there for everyone: they show
/// what may be used.
pub(crate) fn act_of(method: &str) -> Option<Act> {
    let is_named = |(name, _): &&(&str, Right)| *name == method && method != "tools/list";
    match METHODS.iter().find(is_named)?.1 {
        Right::Engine(act) | Right::Door(act, _) => Some(act),
        Right::Open(_) => None,
    }
}

/// What JSON-RPC says of it: without it a caller does not learn whether what is asked for exists.
pub(crate) fn out_of_scope(scope: Scope) -> RpcError {
    let message = format!("the credential does not have the scope `{}`", scope.name());
    let data = json!({"code": "forbidden", "scope": scope.name()});
    RpcError::new(INVALID_REQUEST, message).data(data)
}

/// What a door asks about.
#[derive(Clone)]
struct ActQuestion {
    doors: Shared,
    act: Act,
    of: ActTarget,
}

/// The handler of a route behind what the door asks, if it asks anything.
pub(crate) fn guarded(
    doors: &Shared,
    right: Right,
    handler: MethodRouter<Shared>,
) -> MethodRouter<Shared> {
    match right {
        Right::Door(act, of) => {
            let asked = ActQuestion { doors: doors.clone(), act, of };
            handler.route_layer(from_fn_with_state(asked, ask))
        }
        Right::Engine(_) | Right::Open(_) => handler,
    }
}

async fn ask(
    State(asked): State<ActQuestion>,
    visitor: Visitor,
    params: Result<RawPathParams, RawPathParamsRejection>,
    mut request: Request,
    next: Next,
) -> Result<Response> {
    let ActQuestion { doors, act, of } = asked;
    let first = params.as_ref().ok().and_then(|params| params.iter().next());
    let name = first.map_or("", |(_, name)| name);
    let caller = visitor.foremost();
    let stored = of.stored_by(&doors, caller, act, name).await?;
    let defined_by = stored.as_ref().and_then(|stored| stored.0.as_deref());
    let admin = doors.engine.admin();
    let resource = of.resource(name, defined_by);
    if let Err(refusal) = admin.permit(caller, act, resource) {
        let missing = match admin.reads(caller, resource) {
            true => None,
            false => of.missing(&doors, caller, name),
        };
        return Err(missing.unwrap_or_else(|| refusal.into()));
    }
    if let Some(judged) = stored {
        // The handler changes it only while it is still so.
        request.extensions_mut().insert(judged);
    }
    Ok(next.run(request).await)
}
