//! Which act each door is: what policy is asked before it does anything. The engine asks about what
//! is its own, where it knows the resource; what only the doors know, upstreams and stored
//! providers, is asked about here. A door that no one asks about says why.

use crate::auth::Visitor;
use crate::doors::{Doors, Shared};
use crate::error::Failure;
use crate::http::{providers, upstreams};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::MethodRouter;
use kernel::caller::{Act, Caller};
use kernel::policy::Resource;

/// Who asks policy, and about which act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// The engine.
    Engine(Act),
    /// The door itself, about this.
    Door(Act, Of),
    /// No one, and why.
    Open(&'static str),
}

/// What a door asks about; its name is in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// A stored provider.
    Provider,
    /// An upstream.
    Upstream,
    /// The server.
    Server,
}

impl Of {
    fn resource(self, name: &str) -> Resource<'_> {
        match self {
            Self::Provider => Resource::Definition { kind: "provider", name },
            Self::Upstream => Resource::Upstream(name),
            Self::Server => Resource::Server,
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

const HEALTH: Right = Right::Open("it says whether the server is there, and nothing else");

/// Every route and who asks about it, as the table of routes lists them. Pipelines' own routes are
/// beside it, as they are beside that one: the engine asks about each case.
pub const DOORS: &[(&str, &str, Right)] = &[
    ("POST", "/api/v1/runs", Right::Engine(Act::Run)),
    ("GET", "/api/v1/runs/{id}", Right::Engine(Act::Read)),
    ("POST", "/api/v1/runs/{id}/cancel", Right::Engine(Act::Cancel)),
    ("POST", "/api/v1/runs/{id}/pause", Right::Engine(Act::Cancel)),
    ("POST", "/api/v1/runs/{id}/continue", Right::Engine(Act::Answer)),
    ("POST", "/api/v1/runs/{id}/retry", Right::Engine(Act::Answer)),
    ("GET", "/api/v1/sessions", Right::Engine(Act::Read)),
    ("POST", "/api/v1/sessions/prune", Right::Engine(Act::Operate)),
    ("GET", "/api/v1/sessions/{id}", Right::Engine(Act::Read)),
    ("DELETE", "/api/v1/sessions/{id}", Right::Engine(Act::Remove)),
    ("GET", "/api/v1/sessions/{id}/history", Right::Engine(Act::Read)),
    ("GET", "/api/v1/sessions/{id}/context", Right::Engine(Act::Read)),
    ("GET", "/api/v1/sessions/{id}/events", Right::Engine(Act::Read)),
    ("POST", "/api/v1/sessions/{id}/fork", Right::Engine(Act::Fork)),
    ("GET", "/api/v1/sessions/{id}/export", Right::Engine(Act::Export)),
    ("GET", "/api/v1/events", Right::Engine(Act::Read)),
    ("GET", "/api/v1/sinks", Right::Engine(Act::Read)),
    ("DELETE", "/api/v1/sinks/{name}", Right::Engine(Act::Operate)),
    ("GET", "/api/v1/sinks/{name}/deliveries", Right::Engine(Act::Read)),
    ("POST", "/api/v1/sinks/{name}/deliveries/{event}/resend", Right::Engine(Act::Operate)),
    ("POST", "/api/v1/sinks/{name}/resume", Right::Engine(Act::Operate)),
    ("GET", "/api/v1/asks", Right::Engine(Act::Read)),
    ("GET", "/api/v1/asks/{id}", Right::Engine(Act::Read)),
    ("POST", "/api/v1/asks/{id}", Right::Engine(Act::Answer)),
    ("GET", "/api/v1/plans", Right::Engine(Act::Read)),
    ("GET", "/api/v1/plans/{id}", Right::Engine(Act::Read)),
    ("PUT", "/api/v1/plans/{id}", Right::Engine(Act::Define)),
    ("POST", "/api/v1/plans/validate", Right::Open("it is checked against what its caller sees")),
    ("GET", "/api/v1/agents", Right::Engine(Act::Read)),
    ("GET", "/api/v1/agents/{refName}", Right::Engine(Act::Read)),
    ("PUT", "/api/v1/agents/{refName}", Right::Engine(Act::Define)),
    ("DELETE", "/api/v1/agents/{refName}", Right::Engine(Act::Define)),
    ("GET", "/api/v1/pipelines", Right::Engine(Act::Read)),
    ("GET", "/api/v1/pipelines/{name}", Right::Engine(Act::Read)),
    ("GET", "/api/v1/pipelines/{name}/stats", Right::Engine(Act::Read)),
    ("POST", "/api/v1/pipelines/{name}/cases", Right::Engine(Act::Submit)),
    ("GET", "/api/v1/tools", Right::Engine(Act::Call)),
    ("GET", "/api/v1/tools/{name}", Right::Engine(Act::Call)),
    ("POST", "/api/v1/tools/{name}/call", Right::Engine(Act::Call)),
    ("GET", "/api/v1/upstreams", Right::Engine(Act::Read)),
    ("GET", "/api/v1/upstreams/{name}", Right::Door(Act::Read, Of::Upstream)),
    ("POST", "/api/v1/upstreams/{name}/check", Right::Door(Act::Operate, Of::Upstream)),
    ("POST", "/api/v1/upstreams/{name}/login", Right::Door(Act::LogIn, Of::Upstream)),
    ("DELETE", "/api/v1/upstreams/{name}/login", Right::Door(Act::LogIn, Of::Upstream)),
    ("GET", "/oauth/callback", Right::Open("a browser returns from a login with a proof of it")),
    ("GET", "/oauth/client.json", Right::Open("authorization servers read it; it has no secret")),
    ("GET", "/api/v1/providers/{refName}", Right::Door(Act::Read, Of::Provider)),
    ("PUT", "/api/v1/providers/{refName}", Right::Door(Act::Define, Of::Provider)),
    ("DELETE", "/api/v1/providers/{refName}", Right::Door(Act::Define, Of::Provider)),
    ("GET", "/api/v1/blobs/{hash}", Right::Engine(Act::Read)),
    ("POST", "/api/v1/backup", Right::Door(Act::Administer, Of::Server)),
    ("GET", "/api/agent/config/list", Right::Engine(Act::Read)),
    ("GET", "/api/agent/config/{refName}", Right::Engine(Act::Read)),
    ("GET", "/api/agent/config/id/{id}", Right::Engine(Act::Read)),
    ("POST", "/api/agent/config", Right::Engine(Act::Define)),
    ("DELETE", "/api/agent/config/{refName}", Right::Engine(Act::Define)),
    ("DELETE", "/api/agent/config/id/{id}", Right::Engine(Act::Define)),
    ("POST", "/run", Right::Engine(Act::Talk)),
    ("POST", "/resume", Right::Engine(Act::Answer)),
    ("GET", "/health-check", HEALTH),
    ("POST", "/sessions", Right::Engine(Act::Run)),
    ("GET", "/sessions/{id}", Right::Engine(Act::Read)),
    ("POST", "/sessions/{id}/execute-plan", Right::Engine(Act::Run)),
    ("POST", "/sessions/{id}/resume", Right::Engine(Act::Answer)),
    ("GET", "/capabilities", Right::Engine(Act::Read)),
    ("POST", "/capabilities/discover", Right::Engine(Act::Read)),
    ("POST", "/admin/capabilities", Right::Engine(Act::Define)),
    ("GET", "/livez", HEALTH),
    ("GET", "/readyz", HEALTH),
    ("GET", "/health", HEALTH),
    ("GET", "/metrics", Right::Door(Act::Read, Of::Server)),
    ("GET", "/openapi.json", Right::Open("endpoints, and the pipelines that its caller may read")),
    ("POST", "/mcp", Right::Open("each of its methods is an act of its own")),
    ("POST", "/rpc", Right::Engine(Act::Call)),
];

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

/// What a door asks about.
#[derive(Clone)]
struct Asked {
    doors: Shared,
    act: Act,
    of: Of,
}

/// The handler of a route behind what the door asks, if it asks anything.
pub(crate) fn guarded(
    doors: &Shared,
    method: &str,
    path: &str,
    handler: MethodRouter<Shared>,
) -> MethodRouter<Shared> {
    let row = DOORS.iter().find(|(known, at, _)| (*known, *at) == (method, path));
    match row {
        Some((_, _, Right::Door(act, of))) => {
            let asked = Asked { doors: doors.clone(), act: *act, of: *of };
            handler.route_layer(from_fn_with_state(asked, ask))
        }
        _ => handler,
    }
}

async fn ask(
    State(asked): State<Asked>,
    visitor: Visitor,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let Asked { doors, act, of } = asked;
    let first = params.as_ref().ok().and_then(|params| params.iter().next());
    let name = first.map_or("", |(_, name)| name);
    let caller = visitor.foremost();
    let (admin, resource) = (doors.engine.admin(), of.resource(name));
    match admin.permit(caller, act, resource) {
        Ok(()) => Ok(next.run(request).await),
        Err(refusal) => {
            let missing = match admin.reads(caller, resource) {
                true => None,
                false => of.missing(&doors, caller, name),
            };
            Err(missing.unwrap_or_else(|| refusal.into()))
        }
    }
}
