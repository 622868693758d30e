//! `/api/v1/whoami`: who sends this request, as the server sees it.

use super::realms_of;
use axum::Json;
use axum::extract::State;
use edge::request::auth::Visitor;
use edge::request::server_state::Shared;
use identity::VerifiedCaller;
use kernel::identity::directory::Directory;
use kernel::identity::roles::{Role, Roles};
use kernel::values::caller::Scope;
use wire::rest::{AccessMode, OwnKey, WhoAmI};

/// `GET /whoami`.
pub(crate) async fn show(State(server): State<Shared>, visitor: Visitor) -> Json<WhoAmI> {
    Json(match &visitor.verified {
        Some(verified) => with_credential(&visitor, verified, &server.identity.directory()),
        None => local(&visitor),
    })
}

fn with_credential(visitor: &Visitor, verified: &VerifiedCaller, directory: &Directory) -> WhoAmI {
    let key = verified.key.as_ref().and_then(|id| directory.keys.get(id));
    let key = key.map(|key| OwnKey {
        id: key.id.to_string(),
        name: key.name.clone(),
        expires_at: key.expires.map(|expires| expires.rfc3339()),
    });
    let roles = directory.roles(&visitor.caller.realm, &visitor.caller.subject);
    let realms = Some(realms_of(&verified.realms));
    WhoAmI { realms, key, mode: AccessMode::Credentials, ..who_am_i(visitor, &roles) }
}

/// This machine has no roles; these come closest to what it may do.
fn local(visitor: &Visitor) -> WhoAmI {
    let role = if visitor.administers() { Role::Admin } else { Role::Member };
    who_am_i(visitor, &Roles::of(&[role]))
}

fn who_am_i(visitor: &Visitor, roles: &Roles) -> WhoAmI {
    let caller = &visitor.caller;
    let names = |scope: Scope| scope.name().to_owned();
    WhoAmI {
        realm: caller.realm.to_string(),
        subject: caller.subject.to_string(),
        actor: caller.actor.as_ref().map(ToString::to_string),
        roles: roles.iter().map(ToString::to_string).collect(),
        realms: None,
        scopes: caller.scopes.map(|scopes| scopes.iter().map(names).collect()),
        key: None,
        mode: AccessMode::Local,
    }
}
