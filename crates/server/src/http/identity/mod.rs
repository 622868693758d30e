//! Who calls, API keys, the tokens that keys are exchanged for, what OAuth clients read about this
//! server, and the audit. Credentials of requests are checked in `request`; which act a role
//! permits, policy decides.

pub(crate) mod whoami;
pub(crate) mod keys;
pub(crate) mod token;
pub(crate) mod metadata;
pub(crate) mod audit;

use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::Response;
use kernel::identity::grants::Grants;
use std::collections::BTreeMap;

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
