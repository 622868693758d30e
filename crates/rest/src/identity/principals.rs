//! `/api/v1/principals`: people and programs that are known by name. Those of `principals.yaml` are
//! changed in that file alone, so that a reader of the project sees who may do what; disabling one
//! is for all of them, and stays.

use super::{maker, note_beyond, realms_of};
use crate::condition::{Condition, stale, tagged};
use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::auth::Visitor;
use edge::request::body::JsonBody;
use edge::request::cursors::Purpose;
use edge::request::pages::{PageQuery, paged};
use edge::request::params::{Params, PathName, short};
use edge::request::server_state::{Administrator, ServerState};
use engine::refusal::Refusal;
use identity::principals::{PrincipalRefusal, SeenPrincipal};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::audit::Object;
use kernel::identity::principal::{self, Origin};
use kernel::identity::principal_reader::{KnownNames, read_value};
use kernel::tool::call::Caller;
use kernel::tool::schema::Misfit;
use kernel::values::fault::Fault;
use serde_json::{Map, Value};
use std::future::ready;
use wire::rest::{DataDomain, Page, Principal, PrincipalBody, PrincipalKind, PrincipalOrigin};

/// `GET /principals`, by id: those that the caller administers.
pub(crate) async fn list(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    Params(query): Params<PageQuery>,
) -> Result<Json<Page<Principal>>> {
    let seen = server.identity.list_principals(&maker(&visitor, &caller));
    let of = Purpose::of(&caller, "/api/v1/principals");
    let show = |seen: SeenPrincipal| shown(&seen);
    paged(&server, &of, seen, query, |seen| &*seen.known.principal.id, show)
}

/// `GET /principals/{id}`.
pub(crate) async fn show(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    PathName(name): PathName,
) -> Result<Response> {
    let seen = server.identity.principal(&maker(&visitor, &caller), &name);
    seen.map(|seen| answer(&seen)).ok_or_else(|| missing(&name))
}

/// `PUT /principals/{id}`: 201 for the first version, 200 for the next ones.
pub(crate) async fn store(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    PathName(name): PathName,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<(StatusCode, Response)> {
    let condition = Condition::of(&headers)?;
    let issuers = server.identity.issuer_names();
    let has_policies = server.policies.as_ref().is_some_and(|served| !served.policies().is_empty());
    let names = KnownNames { issuers: Some(&issuers), has_policies };
    let read = read_value(&name, &Value::Object(body), names);
    let (principal, _) = read.map_err(|mistakes| invalid(&mistakes))?;
    let maker = maker(&visitor, &caller);
    let version = server.identity.principal(&maker, &name).and_then(|seen| seen.version());
    let version = ready(Ok::<_, Failure>(version));
    let expected = condition.expected("principal", &name, version).await.inspect_err(|_| {
        note_refusal(&server, &caller, &name, &PrincipalRefusal::Stale);
    })?;
    let stored = server.identity.put_principal(&maker, principal, expected).await;
    if let Err(refusal) = &stored {
        note_refusal(&server, &caller, &name, refusal);
    }
    let stored = stored.map_err(|refusal| not_changed(&name, refusal))?;
    tracing::info!(principal = %name, by = %maker.subject, "a principal was stored");
    let status = if stored.version() == Some(1) { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, answer(&stored)))
}

/// Keeps in the audit what tells about principals that the caller may not see, and what it may not
/// do. Ids are one namespace for all realms, so a refusal says that one is taken.
fn note_refusal(server: &ServerState, caller: &Caller, name: &str, refusal: &PrincipalRefusal) {
    match refusal {
        PrincipalRefusal::Exceeds(_) => note_beyond(server, caller, refusal),
        PrincipalRefusal::Taken | PrincipalRefusal::Clash(_) | PrincipalRefusal::Stale => {
            let object = Object::new("principal", name);
            server.engine.audits().note_refused(caller, object, refusal.to_string());
        }
        _ => {}
    }
}

/// `POST /principals/{id}/disable`: also where it is disabled already.
pub(crate) async fn disable(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    PathName(name): PathName,
) -> Result<Response> {
    let maker = maker(&visitor, &caller);
    let disabled = server.identity.disable_principal(&maker, &name).await;
    let disabled = disabled.map_err(|refusal| not_changed(&name, refusal))?;
    // Durable before it is answered; a second request tries again what failed.
    server.gateway.forget_subject(&name).await.map_err(not_forgotten)?;
    tracing::info!(principal = %name, by = %maker.subject, "a principal was disabled");
    Ok(answer(&disabled))
}

/// `POST /principals/{id}/enable`: also where it is not disabled.
pub(crate) async fn enable(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    PathName(name): PathName,
) -> Result<Response> {
    let maker = maker(&visitor, &caller);
    let enabled = server.identity.enable_principal(&maker, &name).await;
    let enabled = enabled.map_err(|refusal| not_changed(&name, refusal))?;
    tracing::info!(principal = %name, by = %maker.subject, "a principal was enabled");
    Ok(answer(&enabled))
}

/// The principal is disabled, but what its logins at upstreams brought is not removed.
fn not_forgotten(fault: Fault) -> Failure {
    let message = format!("the principal is disabled, but not its logins: {}", fault.message);
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "logins_not_removed", message)
        .hint("send it again")
}

fn missing(name: &str) -> Failure {
    let hint = "`waypost principal ls` lists the principals that you administer";
    Refusal::not_found("principal", short(name)).hint(hint).into()
}

/// What is wrong with a principal, each at its place.
fn invalid(mistakes: &[Mistake]) -> Failure {
    let errors = mistakes.iter().filter(|mistake| mistake.is_error());
    let misfit = |mistake: &Mistake| {
        let pointer = mistake.pointer.clone();
        let message = mistake.message.clone();
        let message = match &mistake.hint {
            Some(hint) => format!("{message} ({hint})"),
            None => message,
        };
        Misfit { pointer, message }
    };
    let errors: Vec<Misfit> = errors.map(misfit).collect();
    Failure::wrong_shape("the principal is invalid").errors(errors)
}

/// Why the principal of this id was not changed.
fn not_changed(name: &str, refusal: PrincipalRefusal) -> Failure {
    let message = refusal.to_string();
    let conflict = |code: &'static str| Failure::new(StatusCode::CONFLICT, code, message.as_str());
    match refusal {
        PrincipalRefusal::Exceeds(_) => {
            Failure::new(StatusCode::FORBIDDEN, "grant_exceeds", message.as_str())
                .hint("a principal has at most what the credential has that stores it")
        }
        PrincipalRefusal::Unknown => missing(name),
        PrincipalRefusal::InFile => {
            conflict("principal_in_file").hint("change the file; disabling it works here too")
        }
        PrincipalRefusal::Taken => {
            conflict("principal_taken").hint("use another id, or leave the identity out")
        }
        PrincipalRefusal::Clash(_) => {
            conflict("principal_clash").hint("an identity belongs to one principal")
        }
        PrincipalRefusal::TooMany => conflict("too_many_principals"),
        PrincipalRefusal::Stale => stale(message.clone()),
        PrincipalRefusal::MakerRevoked => {
            Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", message.as_str())
        }
        PrincipalRefusal::Store(error) => Refusal::from(error).into(),
    }
}

fn answer(seen: &SeenPrincipal) -> Response {
    tagged(Json(shown(seen)).into_response(), seen.version())
}

fn shown(seen: &SeenPrincipal) -> Principal {
    let SeenPrincipal { known, stored } = seen;
    let record = stored.as_ref().map(|stored| &stored.record);
    Principal {
        id: known.principal.id.to_string(),
        origin: match known.origin {
            Origin::File => PrincipalOrigin::File,
            Origin::Stored => PrincipalOrigin::Stored,
        },
        definition: definition(&known.principal),
        disabled_at: known.disabled.map(|at| at.rfc3339()),
        by: record.map(|record| record.by.to_string()),
        changed_at: record.map(|record| record.changed.rfc3339()),
    }
}

fn definition(principal: &principal::Principal) -> PrincipalBody {
    let overrides = principal.realm_overrides.iter();
    PrincipalBody {
        kind: match principal.kind {
            principal::PrincipalKind::User => PrincipalKind::User,
            principal::PrincipalKind::Service => PrincipalKind::Service,
        },
        name: principal.name.clone(),
        realms: realms_of(&principal.realms),
        default_realm: principal.default_realm.as_ref().map(ToString::to_string),
        realm_overrides: overrides.map(|(area, realm)| (area.clone(), realm.to_string())).collect(),
        data_domain: principal.data_domain.clone().map(|domain| DataDomain {
            org_ref_name: domain.org_ref_name,
            account_num: domain.account_num,
            tenant_id: domain.tenant_id,
            data_segment: domain.data_segment,
            owner_id: domain.owner_id,
        }),
        properties: principal.properties.clone(),
        identities: principal.identities.iter().map(ToString::to_string).collect(),
    }
}
