//! `/api/v1/keys`: API keys are created, listed, rotated and revoked. The text of a key is in the
//! answer that creates or rotates it and nowhere else: only its hash is stored. So a repeated
//! request cannot be answered like the first one, and `Idempotency-Key` is not taken here.

use super::{maker, not_stored, note_beyond, realms_of};
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::auth::Visitor;
use edge::request::body::{JsonBody, OptionalBody};
use edge::request::cursors::Purpose;
use edge::request::pages::{PageQuery, paged};
use edge::request::params::{Params, PathName, short};
use edge::request::server_state::Administrator;
use engine::refusal::Refusal;
use identity::keys::{Expiry, KeyRefusal, KeyWithText, NewKey};
use kernel::contracts::identity::api_keys::StoredKey;
use kernel::definition::plan::mistake::meant;
use kernel::definition::plan::source::child_pointer;
use kernel::identity::directory::Directory;
use kernel::identity::grants::{Grants, RealmPattern};
use kernel::identity::key::{KeyId, KeyRejection, OVERLAP_DEFAULT_MS};
use kernel::identity::roles::{Role, Roles};
use kernel::values::caller::{Scope, Scopes};
use kernel::values::ids::{Millis, RealmId};
use std::collections::BTreeMap;
use wire::rest::{ApiKey, IssuedKey, KeyBody, KeyStatus, Page, RotateBody};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// After how many days a key expires at most, if it does: a hundred years.
const EXPIRES_DAYS_MAX: u32 = 36_500;
/// How long two texts of a key are valid at most.
const OVERLAP_MS_MAX: u64 = 30 * DAY_MS;

/// `GET /keys`, by id: those that the caller administers, revoked ones included.
pub(crate) async fn list(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    Params(query): Params<PageQuery>,
) -> Result<Json<Page<ApiKey>>> {
    let keys = server.identity.list(&maker(&visitor, &caller));
    let of = Purpose::of(&caller, "/api/v1/keys");
    let now = server.engine.clock().now();
    let directory = server.identity.directory();
    let show = |stored: StoredKey| shown(&stored, now, &directory);
    paged(&server, &of, keys, query, |stored| stored.key.id.as_str(), show)
}

/// `GET /keys/{id}`.
pub(crate) async fn show(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    PathName(name): PathName,
) -> Result<Json<ApiKey>> {
    let keys = server.identity.list(&maker(&visitor, &caller));
    let found = keys.iter().find(|stored| stored.key.id.as_str() == name);
    let stored = found.ok_or_else(|| missing(&name))?;
    Ok(Json(shown(stored, server.engine.clock().now(), &server.identity.directory())))
}

/// `POST /keys`.
pub(crate) async fn create(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    JsonBody(body): JsonBody<KeyBody>,
) -> Result<Response> {
    let now = server.engine.clock().now();
    let realms = match body.of {
        Some(_) => entered(body.realms, body.roles.as_deref())?,
        None => grants(&caller.realm, body.realms, body.roles.as_deref())?,
    };
    let new = NewKey {
        name: body.name,
        of: body.of.map(Into::into),
        realms,
        scopes: body.scopes.as_deref().map(scopes).transpose()?,
        expires: expiry(body.expires_in_days, now)?,
    };
    let maker = maker(&visitor, &caller);
    let made = server.identity.create(&maker, new).await;
    if let Err(refusal @ KeyRefusal::Exceeds(_)) = &made {
        note_beyond(&server, &caller, refusal);
    }
    let made = made.map_err(not_made)?;
    let id = made.stored.key.id.clone();
    tracing::info!(key = %id, by = %maker.subject, "an API key was created");
    let location = [(LOCATION, format!("/api/v1/keys/{id}"))];
    let issued = issued(&made, now, &server.identity.directory());
    Ok((StatusCode::CREATED, location, issued).into_response())
}

/// `POST /keys/{id}/rotate`.
pub(crate) async fn rotate(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    PathName(name): PathName,
    OptionalBody(body): OptionalBody<RotateBody>,
) -> Result<Response> {
    let overlap_ms = body.overlap_ms.unwrap_or(OVERLAP_DEFAULT_MS);
    if overlap_ms > OVERLAP_MS_MAX {
        let message = format!("`overlapMs` is `{overlap_ms}`, and at most `{OVERLAP_MS_MAX}`");
        return Err(Failure::wrong_value("/overlapMs", message));
    }
    let id = key_id(&name)?;
    let maker = maker(&visitor, &caller);
    let made = server.identity.rotate(&maker, &id, overlap_ms).await;
    if let Err(refusal @ KeyRefusal::Exceeds(_)) = &made {
        note_beyond(&server, &caller, refusal);
    }
    let made = made.map_err(|refusal| not_changed(&name, refusal))?;
    tracing::info!(key = %id, by = %maker.subject, "an API key was rotated");
    Ok(issued(&made, server.engine.clock().now(), &server.identity.directory()))
}

/// `DELETE /keys/{id}`: also where it was revoked before.
pub(crate) async fn revoke(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    PathName(name): PathName,
) -> Result<StatusCode> {
    let id = key_id(&name)?;
    let maker = maker(&visitor, &caller);
    let revoked = server.identity.revoke(&maker, &id).await;
    revoked.map_err(|refusal| not_changed(&name, refusal))?;
    tracing::info!(key = %id, by = %maker.subject, "an API key was revoked");
    Ok(StatusCode::NO_CONTENT)
}

/// What a new key may enter; with nothing said it is a member of its maker's realm.
fn grants(
    realm: &RealmId,
    realms: Option<BTreeMap<String, Vec<String>>>,
    roles: Option<&[String]>,
) -> Result<Grants> {
    let Some(realms) = realms else {
        let pattern = pattern(realm.as_str(), "/roles")?;
        let roles = roles.map(|names| roles_of(names, "/roles")).transpose()?;
        return Ok(Grants::one(pattern, roles.unwrap_or_else(|| Roles::of(&[Role::Member]))));
    };
    if roles.is_some() {
        return Err(Failure::wrong_value("/roles", "`roles` cannot be given beside `realms`")
            .hint("list the roles in `realms`, under the name of the realm"));
    }
    let mut grants = BTreeMap::new();
    for (name, roles) in &realms {
        let pointer = pointer_of(name);
        grants.insert(pattern(name, &pointer)?, roles_of(roles, &pointer)?);
    }
    Ok(Grants(grants))
}

/// The realms that a key of a principal may enter; all of the principal's with nothing said.
fn entered(
    realms: Option<BTreeMap<String, Vec<String>>>,
    roles: Option<&[String]>,
) -> Result<Grants> {
    let hint = "leave them out: such a key has the roles of its principal";
    if roles.is_some() {
        let message = "`roles` cannot be given beside `of`";
        return Err(Failure::wrong_value("/roles", message).hint(hint));
    }
    let mut entered = Grants::default();
    for (name, roles) in &realms.unwrap_or_default() {
        let pointer = pointer_of(name);
        if !roles.is_empty() {
            let message = "roles cannot be given beside `of`";
            return Err(Failure::wrong_value(&pointer, message).hint(hint));
        }
        entered.give(pattern(name, &pointer)?, &Roles::default());
    }
    Ok(entered)
}

/// Where a realm stands in a body.
fn pointer_of(realm: &str) -> String {
    child_pointer("/realms", realm)
}

fn pattern(name: &str, pointer: &str) -> Result<RealmPattern> {
    RealmPattern::parse(name).map_err(|bad| Failure::wrong_value(pointer, bad.to_string()))
}

fn roles_of(names: &[String], pointer: &str) -> Result<Roles> {
    let role = |(index, name): (usize, &String)| {
        let all = || Role::ALL.iter().map(|role| role.name());
        let pointer = format!("{pointer}/{index}");
        Role::from_name(name).ok_or_else(|| no_such("role", name, all(), &pointer))
    };
    names.iter().enumerate().map(role).collect()
}

fn scopes(names: &[String]) -> Result<Scopes> {
    if names.is_empty() {
        return Err(Failure::wrong_value("/scopes", "a key without a scope allows nothing")
            .hint("leave `scopes` out for a key that only its roles limit"));
    }
    let scope = |(index, name): (usize, &String)| {
        let all = || Scope::ALL.iter().map(|scope| scope.name());
        let pointer = format!("/scopes/{index}");
        Scope::from_name(name).ok_or_else(|| no_such("scope", name, all(), &pointer))
    };
    names.iter().enumerate().map(scope).collect()
}

fn no_such(
    noun: &str,
    given: &str,
    known: impl Iterator<Item = &'static str>,
    pointer: &str,
) -> Failure {
    let known: Vec<&str> = known.collect();
    let hint = meant(given, known.iter().copied());
    let hint = hint.unwrap_or_else(|| format!("one of {}", known.join(", ")));
    let message = format!("there is no {noun} `{}`", short(given));
    Failure::wrong_value(pointer, message).hint(hint)
}

fn expiry(days: Option<u32>, now: Millis) -> Result<Expiry> {
    match days {
        None => Ok(Expiry::Never),
        Some(days) if (1..=EXPIRES_DAYS_MAX).contains(&days) => {
            Ok(Expiry::At(now.plus_ms(u64::from(days) * DAY_MS)))
        }
        Some(days) => {
            let message =
                format!("`expiresInDays` is `{days}`, and must be 1 to {EXPIRES_DAYS_MAX}");
            Err(Failure::wrong_value("/expiresInDays", message)
                .hint("null is a key that does not expire"))
        }
    }
}

/// The id in a path; a name that is no id is one that does not exist.
fn key_id(name: &str) -> Result<KeyId> {
    KeyId::parse(name).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Failure {
    Refusal::not_found("key", short(name)).hint("`GET /api/v1/keys` lists the keys").into()
}

/// Why a key was not made.
fn not_made(refusal: KeyRefusal) -> Failure {
    let message = refusal.to_string();
    match refusal {
        KeyRefusal::Exceeds(_) => Failure::new(StatusCode::FORBIDDEN, "grant_exceeds", message)
            .hint("a key has at most what the credential has that creates or rotates it"),
        KeyRefusal::NoRealm => Failure::wrong_value("/realms", message),
        KeyRefusal::NoPrincipal => Failure::wrong_value("/of", message)
            .hint("`waypost principal ls` lists the principals that you administer"),
        KeyRefusal::BadName => Failure::wrong_value("/name", message),
        KeyRefusal::BadExpiry => Failure::wrong_value("/expiresInDays", message),
        KeyRefusal::TooMany => Failure::new(StatusCode::CONFLICT, "too_many_keys", message),
        KeyRefusal::MakerRevoked => Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", message),
        KeyRefusal::Dead(KeyRejection::Revoked) => {
            Failure::new(StatusCode::CONFLICT, "key_revoked", message).hint("create another key")
        }
        KeyRefusal::Dead(KeyRejection::Expired) => {
            Failure::new(StatusCode::CONFLICT, "key_expired", message).hint("create another key")
        }
        KeyRefusal::Unknown => Failure::new(StatusCode::NOT_FOUND, "not_found", message),
        KeyRefusal::Store(error) => Refusal::from(error).into(),
    }
}

/// Why the key of this name was not changed.
fn not_changed(name: &str, refusal: KeyRefusal) -> Failure {
    match refusal {
        KeyRefusal::Unknown => missing(name),
        other => not_made(other),
    }
}

/// A key with its text.
fn issued(made: &KeyWithText, now: Millis, directory: &Directory) -> Response {
    let key = shown(&made.stored, now, directory);
    let text = made.text.expose().to_owned();
    not_stored(Json(IssuedKey { key, text }).into_response())
}

fn shown(stored: &StoredKey, now: Millis, directory: &Directory) -> ApiKey {
    let StoredKey { key, used, .. } = stored;
    let realms = match &key.of {
        Some(of) => realms_of(&directory.all_grants(of).limited_to(key.realms.0.keys())),
        None => realms_of(&key.realms),
    };
    let names = |scope: Scope| scope.name().to_owned();
    let ends = key.secrets.iter().filter_map(|secret| secret.until);
    ApiKey {
        id: key.id.to_string(),
        name: key.name.clone(),
        subject: key.subject().to_string(),
        of: key.of.as_ref().map(ToString::to_string),
        realms,
        scopes: key.scopes.map(|scopes| scopes.iter().map(names).collect()),
        status: match key.check(now) {
            Ok(()) => KeyStatus::Active,
            Err(KeyRejection::Expired) => KeyStatus::Expired,
            Err(KeyRejection::Revoked) => KeyStatus::Revoked,
        },
        by: key.by.to_string(),
        created_at: key.created.rfc3339(),
        expires_at: key.expires.map(|at| at.rfc3339()),
        revoked_at: key.revoked.map(|at| at.rfc3339()),
        used_at: used.map(|at| at.rfc3339()),
        overlap_until: ends.filter(|end| *end > now).max().map(|end| end.rfc3339()),
    }
}
