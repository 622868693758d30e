//! Who a request acts as, where its caller acts as another: `X-Impersonate-Subject` or
//! `X-Impersonate-UserId` names a principal. It is an act that policy must allow, and no built-in
//! role does. What others see is the principal's; who really called stays known as the actor.

use crate::problem::{Failure, Result};
use crate::request::auth::Visitor;
use crate::request::server_state::ServerState;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use kernel::contracts::policy::Resource;
use kernel::identity::directory::Directory;
use kernel::tool::call::Caller;
use kernel::values::caller::{Act, Scope, Scopes};
use std::sync::Arc;

/// Both say the same. What is static need not be read letter by letter with each request.
static HEADERS: [HeaderName; 2] = [
    HeaderName::from_static("x-impersonate-subject"),
    HeaderName::from_static("x-impersonate-userid"),
];

/// The most that can be done as another. Who defines, administers or answers does it in its own
/// name.
const SCOPES: [Scope; 3] = [Scope::Read, Scope::Use, Scope::Operate];

/// Who sends a request with these headers: the one that its credential shows, or the principal that
/// this one may act as.
pub fn impersonated(
    server: &ServerState,
    headers: &HeaderMap,
    visitor: Option<Visitor>,
) -> Result<Option<Visitor>> {
    let Some(id) = subject_header(headers)? else { return Ok(visitor) };
    // Without a credential no one is known who could act as another.
    let visitor = visitor.filter(|visitor| visitor.verified.is_some()).ok_or_else(refused)?;
    let admin = server.engine.admin();
    let is_allowed =
        admin.permit(&visitor.caller, Act::Impersonate, Resource::Principal(id)).is_ok();
    let caller = acting_as(&visitor.caller, id, &server.identity.directory());
    // Who may not do it does not learn who there is.
    let caller = caller.filter(|_| is_allowed).ok_or_else(refused)?;
    server.engine.audits().check_room(&caller)?;
    tracing::info!(subject = %caller.subject, actor = %visitor.caller.subject, "acts as another");
    let caller = Arc::new(caller);
    Ok(Some(Visitor { administrator: Some(caller.clone()), caller, ..visitor }))
}

/// The principal that a request names, once.
fn subject_header(headers: &HeaderMap) -> Result<Option<&str>> {
    let mut named = HEADERS.iter().flat_map(|name| headers.get_all(name).iter());
    let first = named.next();
    let second = named.next();
    if second.is_some() {
        let message = "the request names more than one subject to act as";
        return Err(Failure::bad_request("two_subjects", message)
            .hint("send `X-Impersonate-Subject` or `X-Impersonate-UserId`, once"));
    }
    let is_empty = |value: &HeaderValue| value.to_str().unwrap_or_default().trim().is_empty();
    if first.is_some_and(is_empty) {
        let message = "the subject to act as is empty, or no text";
        return Err(Failure::bad_request("bad_subject", message));
    }
    Ok(first.and_then(|value| value.to_str().ok()).map(str::trim))
}

/// The caller as this principal, where that can be: one level, in a realm that the principal enters
/// and does not administer.
fn acting_as(caller: &Caller, id: &str, directory: &Directory) -> Option<Caller> {
    let known = directory.principals.get(id)?;
    let is_first = caller.actor.is_none() && caller.subject != known.principal.id;
    if !is_first || !directory.can_run_as(&caller.realm, id) {
        return None;
    }
    let has = |own: Scopes, scope: Scope| own.has(scope) || own.has(Scope::Admin);
    let within = |scope: &Scope| caller.scopes.is_none_or(|own| has(own, *scope));
    Some(Caller {
        realm: caller.realm.clone(),
        subject: known.principal.id.clone(),
        actor: Some(caller.subject.clone()),
        scopes: Some(SCOPES.into_iter().filter(within).collect()),
        admin: false,
        makers: caller.makers.clone(),
        via: caller.via.clone(),
    })
}

fn refused() -> Failure {
    let message = "the caller may not act as this subject";
    Failure::new(StatusCode::FORBIDDEN, "impersonation_refused", message)
        .hint("a policy must allow `impersonate`; no built-in role does")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::identity::grants::{Grants, RealmPattern};
    use kernel::identity::principal::{Principal, Roster};
    use kernel::identity::roles::{Role, Roles};

    fn told(given: &[(&HeaderName, &'static str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(*name, HeaderValue::from_static(value));
        }
        match subject_header(&headers) {
            Ok(Some(id)) => id.to_owned(),
            Ok(None) => "nobody".to_owned(),
            Err(failure) => format!("{} {}", failure.status().as_u16(), failure.code()),
        }
    }

    #[test]
    fn one_header_names_the_subject_once() {
        let [subject, user] = &HEADERS;
        assert_eq!(told(&[]), "nobody");
        assert_eq!(told(&[(subject, "ann")]), "ann");
        assert_eq!(told(&[(user, " ann ")]), "ann");
        assert_eq!(told(&[(subject, "ann"), (user, "ann")]), "400 two_subjects");
        assert_eq!(told(&[(user, "ann"), (user, "ann")]), "400 two_subjects");
        assert_eq!(told(&[(subject, " ")]), "400 bad_subject");
    }

    #[test]
    fn a_caller_acts_as_a_principal_that_does_not_administer() {
        let of = |id: &str, realm: &str, role: Role| {
            let realm = RealmPattern::parse(realm).unwrap();
            Arc::new(Principal::new(id, Grants::one(realm, Roles::of(&[role]))))
        };
        let file = [
            of("ann", "acme", Role::Operator),
            of("bob", "acme", Role::Admin),
            of("cyn", "other", Role::Member),
        ];
        let (roster, _) = Roster::combine(&file, std::iter::empty());
        let directory = Directory { principals: Arc::new(roster), ..Directory::default() };
        let realm = "acme";
        let root = Caller { admin: true, ..Caller::new(realm, "root") };
        let acting = acting_as(&root, "ann", &directory).unwrap();
        assert_eq!((&*acting.subject, acting.actor.as_deref()), ("ann", Some("root")));
        assert!(!acting.admin);
        let allowed = |act: Act| acting.scopes.is_some_and(|scopes| scopes.allow(act));
        assert!(allowed(Act::Read) && allowed(Act::Call) && allowed(Act::Operate));
        assert!(!allowed(Act::Define) && !allowed(Act::Administer) && !allowed(Act::Answer));
        for nobody in ["bob", "cyn", "zoe", "root", ""] {
            assert_eq!(acting_as(&root, nobody, &directory), None, "{nobody}");
        }
        assert_eq!(acting_as(&acting, "ann", &directory), None, "one level");
        let reads: Option<Scopes> = Some([Scope::Read].into_iter().collect());
        let narrow = Caller { scopes: reads, ..root };
        assert_eq!(acting_as(&narrow, "ann", &directory).unwrap().scopes, reads);
    }
}
