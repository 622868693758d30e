//! `/api/v1/realms`: which realms there are and what is set for each. Realms are made and removed
//! here; what is set for them is in the settings alone, and a realm that they name stays.

use super::{maker, note_beyond};
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::auth::Visitor;
use edge::request::body::JsonBody;
use edge::request::cursors::Purpose;
use edge::request::pages::{PageQuery, paged};
use edge::request::params::{Params, PathName, short};
use edge::request::server_state::{Administrator, ServerState};
use engine::refusal::{Refusal, RefusalCode};
use identity::keys::Maker;
use identity::realms::RealmRefusal;
use kernel::contracts::identity::realms::RealmRecord;
use kernel::identity::grants::RealmPattern;
use kernel::identity::realm::RealmSettings;
use kernel::identity::roles::Role;
use kernel::tool::rules::Pattern;
use kernel::values::caller::Act;
use kernel::values::ids::RealmId;
use project::realm::default_realm;
use wire::rest::{Page, Realm, RealmBody, RealmOrigin};

/// `GET /realms`, by name: those that the caller administers.
pub(crate) async fn list(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    Params(query): Params<PageQuery>,
) -> Result<Json<Page<Realm>>> {
    let realms = administered(&server, &maker(&visitor, &caller));
    let of = Purpose::of(&caller, "/api/v1/realms");
    paged(&server, &of, realms, query, |realm| realm.name.as_str(), |realm| realm)
}

/// `GET /realms/{name}`: also one that was removed, for who may make it.
pub(crate) async fn show(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    PathName(name): PathName,
) -> Result<Json<Realm>> {
    let maker = maker(&visitor, &caller);
    let found = administered(&server, &maker).into_iter().find(|realm| realm.name == name);
    let removed = || {
        let record = server.identity.made_realm(&name.as_str().into())?;
        maker.administers_everything().then(|| of_record(&server, &record))
    };
    Ok(Json(found.or_else(removed).ok_or_else(|| missing(&name))?))
}

/// `POST /realms`.
pub(crate) async fn create(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    JsonBody(body): JsonBody<RealmBody>,
) -> Result<Response> {
    let maker = maker(&visitor, &caller);
    let name = body.name;
    let by = maker.subject.clone();
    let made = server.realms.create(maker, name.clone()).await;
    if let Err(refusal @ RealmRefusal::NotAllowed) = &made {
        note_beyond(&server, &caller, refusal);
    }
    let made = made.map_err(|refusal| not_changed(&name, refusal))?;
    tracing::info!(realm = %made.name, %by, "a realm was made");
    let location = [(LOCATION, format!("/api/v1/realms/{}", made.name))];
    Ok((StatusCode::CREATED, location, Json(of_record(&server, &made))).into_response())
}

/// `DELETE /realms/{name}`: also where it was removed before.
pub(crate) async fn remove(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    PathName(name): PathName,
) -> Result<Json<Realm>> {
    let conflict =
        |code: &'static str, message: &str| Failure::new(StatusCode::CONFLICT, code, message);
    if name == default_realm().as_str() {
        let message = "the realm `default` cannot be removed: every server has it";
        return Err(conflict("default_realm", message));
    }
    if name == caller.realm.as_str() {
        // Its own removal would end it before it is answered.
        let message = "a realm is not removed by a request in that realm";
        return Err(conflict("own_realm", message).hint("send `X-Realm: default` with it"));
    }
    let maker = maker(&visitor, &caller);
    let by = maker.subject.clone();
    let removed = server.realms.remove(maker, name.clone()).await;
    if let Err(refusal @ RealmRefusal::NotAllowed) = &removed {
        note_beyond(&server, &caller, refusal);
    }
    let removed = removed.map_err(|refusal| not_changed(&name, refusal))?;
    tracing::info!(realm = %removed.name, %by, "a realm was removed");
    Ok(Json(of_record(&server, &removed)))
}

fn missing(name: &str) -> Failure {
    let hint = "`GET /api/v1/realms` lists the realms that you administer";
    Refusal::not_found("realm", short(name)).hint(hint).into()
}

/// Why the realm of this name was neither made nor removed.
fn not_changed(name: &str, refusal: RealmRefusal) -> Failure {
    let message = refusal.to_string();
    let conflict = |code: &'static str| Failure::new(StatusCode::CONFLICT, code, message.as_str());
    match refusal {
        RealmRefusal::NotAllowed => {
            let code = RefusalCode::Forbidden(Act::Administer);
            Refusal::new(code, message.as_str()).hint("ask an administrator of the server").into()
        }
        RealmRefusal::BadName(_) => Failure::wrong_value("/name", message.as_str()),
        RealmRefusal::Exists(_) => conflict("realm_exists"),
        RealmRefusal::WasRemoved(_) => conflict("realm_removed").hint("use another name"),
        RealmRefusal::Unknown => missing(name),
        RealmRefusal::Configured(_) => conflict("realm_configured")
            .hint("remove it from `[realms]` of `waypost.toml` and from `application.properties`"),
        RealmRefusal::TooMany => conflict("too_many_realms"),
        RealmRefusal::MakerRevoked => {
            Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", message.as_str())
        }
        RealmRefusal::Store(error) => Refusal::from(error).into(),
    }
}

fn administered(server: &ServerState, maker: &Maker) -> Vec<Realm> {
    let directory = server.identity.directory();
    let seen = directory.realms.0.iter().filter(|(name, _)| administers(maker, name));
    let shown = seen.map(|(name, settings)| {
        let made = server.identity.made_realm(name);
        shown(server, name, settings, made.as_ref())
    });
    shown.collect()
}

/// Whether a maker has the role `admin` in a realm: by a pattern that has it as a whole.
fn administers(maker: &Maker, realm: &RealmId) -> bool {
    let fits = |pattern: &RealmPattern| pattern.fits(realm);
    maker.grants.0.iter().any(|(pattern, roles)| fits(pattern) && roles.has(Role::Admin))
}

/// A realm that was made here, also one that was removed.
fn of_record(server: &ServerState, record: &RealmRecord) -> Realm {
    let directory = server.identity.directory();
    let settings = directory.realms.0.get(&record.name).cloned().unwrap_or_default();
    shown(server, &record.name, &settings, Some(record))
}

fn shown(
    server: &ServerState,
    name: &RealmId,
    settings: &RealmSettings,
    made: Option<&RealmRecord>,
) -> Realm {
    let directory = server.identity.directory();
    let RealmSettings { max_find_limit, run_as, default_agent, .. } = settings;
    let removal = made.and_then(|record| record.removed.as_ref());
    let is_configured = server.identity.is_configured(name) && removal.is_none();
    Realm {
        name: name.to_string(),
        origin: if is_configured { RealmOrigin::Settings } else { RealmOrigin::Stored },
        enabled_tools: named(settings.enabled_tools.as_deref()),
        enabled_agents: named(settings.enabled_agents.as_deref()),
        enabled_pipelines: named(settings.enabled_pipelines.as_deref()),
        enabled_models: named(settings.enabled_models.as_deref()),
        max_find_limit: *max_find_limit,
        run_as_user_id: run_as.as_ref().map(ToString::to_string),
        usable: run_as.as_ref().is_none_or(|id| directory.can_run_as(name, id)),
        default_agent: default_agent.as_ref().map(ToString::to_string),
        created_at: made.map(|record| record.created.rfc3339()),
        removed_at: removal.map(|removal| removal.at.rfc3339()),
        purged: removal.map(|removal| removal.purged),
    }
}

/// Patterns as they are written.
fn named(patterns: Option<&[Pattern]>) -> Option<Vec<String>> {
    Some(patterns?.iter().map(|pattern| pattern.as_str().to_owned()).collect())
}
