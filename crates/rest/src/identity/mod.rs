//! Who calls, API keys, principals, realms, policies, the tokens that keys are exchanged for, what
//! OAuth clients read about this server, and the audit. Credentials of requests are checked in
//! `request`; which act a role permits, policy decides.

pub(crate) mod whoami;
pub(crate) mod keys;
pub(crate) mod principals;
pub(crate) mod realms;
pub(crate) mod policies;
pub(crate) mod token;
pub(crate) mod metadata;
pub(crate) mod audit;

use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::Response;
use edge::request::auth::Visitor;
use edge::request::server_state::ServerState;
use identity::keys::Maker;
use kernel::identity::grants::{Grants, RealmPattern};
use kernel::identity::roles::{Role, Roles};
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use std::collections::BTreeMap;

/// Who changes keys and principals: with a credential within what that administers, in local mode
/// everywhere.
fn maker(visitor: &Visitor, caller: &Caller) -> Maker {
    let grants = match &visitor.verified {
        Some(verified) => Grants::clone(&verified.realms),
        None => {
            let everywhere = RealmPattern::parse("*");
            let grants = everywhere.map(|every| Grants::one(every, Roles::of(&[Role::Admin])));
            // The pattern is good; without it nothing could be seen or made.
            grants.unwrap_or_default()
        }
    };
    let key = visitor.verified.as_ref().and_then(|verified| verified.key.clone());
    let Caller { subject, actor, makers, via, .. } = caller.clone();
    Maker { subject, actor, key, makers, grants, via }
}

/// Keeps in the audit that who administers a realm asked for more than that.
fn note_beyond(server: &ServerState, caller: &Caller, refusal: &impl ToString) {
    server.engine.audits().note_beyond(caller, Act::Administer, refusal.to_string());
}

/// The roles in each realm, as they are shown.
fn realms_of(grants: &Grants) -> BTreeMap<String, Vec<String>> {
    let realms = grants
        .0
        .iter()
        .map(|(realm, roles)| (realm.to_string(), roles.iter().map(ToString::to_string).collect()));
    realms.collect()
}

/// The answer, which no one keeps on its way: it has a secret in it.
fn not_stored(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
