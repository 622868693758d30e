//! What the endpoint itself asks policy about before a handler runs: upstreams, stored providers
//! and the server, which the engine does not know.

use crate::{providers, upstreams};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::MethodRouter;
use edge::acts::{ActTarget, Right};
use edge::problem::{Failure, Result};
use edge::request::auth::Visitor;
use edge::request::server_state::{ServerState, Shared};
use kernel::contracts::StoredBy;
use kernel::contracts::policy::Resource;
use kernel::values::caller::{Act, Caller};
use project::upstream_entries::stored::KIND;

/// What an endpoint asks about.
#[derive(Clone)]
struct ActQuestion {
    server: Shared,
    act: Act,
    of: ActTarget,
}

/// The handler of a route behind what the endpoint asks, if it asks anything.
pub(crate) fn guarded(
    server: &Shared,
    right: Right,
    handler: MethodRouter<Shared>,
) -> MethodRouter<Shared> {
    match right {
        Right::Endpoint(act, of) => {
            let question = ActQuestion { server: server.clone(), act, of };
            handler.route_layer(from_fn_with_state(question, ask))
        }
        Right::Engine(_) | Right::Open(_) => handler,
    }
}

async fn ask(
    State(question): State<ActQuestion>,
    visitor: Visitor,
    params: Result<RawPathParams, RawPathParamsRejection>,
    mut request: Request,
    next: Next,
) -> Result<Response> {
    let ActQuestion { server, act, of } = question;
    let first = params.as_ref().ok().and_then(|params| params.iter().next());
    let name = first.map_or("", |(_, name)| name);
    let caller = visitor.foremost();
    let stored = stored_by(of, &server, caller, act, name).await?;
    let defined_by = stored.as_ref().and_then(|stored| stored.0.as_deref());
    let admin = server.engine.admin();
    let resource = resource(of, name, defined_by);
    if let Err(refusal) = admin.permit(caller, act, resource) {
        let missing = match admin.reads(caller, resource) {
            true => None,
            false => missing(of, &server, caller, name),
        };
        return Err(missing.unwrap_or_else(|| refusal.into()));
    }
    if let Some(judged) = stored {
        // The handler changes it only while it is still so.
        request.extensions_mut().insert(judged);
    }
    Ok(next.run(request).await)
}

fn resource<'a>(of: ActTarget, name: &'a str, defined_by: Option<&'a str>) -> Resource<'a> {
    match of {
        ActTarget::Provider => Resource::Definition { kind: KIND, name, defined_by },
        ActTarget::Upstream => Resource::Upstream(name),
        ActTarget::Server => Resource::Server,
    }
}

/// Who stored it, where it is a definition and that can matter.
async fn stored_by(
    of: ActTarget,
    server: &ServerState,
    caller: &Caller,
    act: Act,
    name: &str,
) -> Result<Option<StoredBy>> {
    match of {
        ActTarget::Provider if server.engine.admin().is_free(caller, act) => Ok(None),
        ActTarget::Provider => {
            let stored = providers::stored(&server.gateway, &caller.realm, name).await?;
            Ok(Some(StoredBy(stored.and_then(|definition| definition.by))))
        }
        ActTarget::Upstream | ActTarget::Server => Ok(None),
    }
}

/// The answer to who may not read it; none where it is no secret that it is there.
fn missing(of: ActTarget, server: &ServerState, caller: &Caller, name: &str) -> Option<Failure> {
    match of {
        ActTarget::Provider => Some(providers::missing(name)),
        ActTarget::Upstream => Some(upstreams::missing(server, caller, name)),
        ActTarget::Server => None,
    }
}
