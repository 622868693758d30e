//! `/api/v1/keys`: API keys are created, listed, rotated and revoked. The text of a key is in the
//! answer that creates or rotates it and nowhere else: only its hash is stored. So a repeated
//! request cannot be answered like the first one, and `Idempotency-Key` is not taken here.

use super::{not_stored, realms_of};
use crate::http::tools::{PageQuery, paged};
use crate::problem::{Failure, Result};
use crate::request::auth::Visitor;
use crate::request::body::{Maybe, Posted};
use crate::request::cursors::Purpose;
use crate::request::doors::Administrator;
use crate::request::params::{Named, Params, short};
use axum::Json;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use engine::refusal::Refusal;
use identity::keys::{Expiry, KeyRefusal, Made, Maker, NewKey};
use kernel::contracts::api_keys::StoredKey;
use kernel::definition::plan::mistake::meant;
use kernel::identity::grants::{Grants, RealmPattern};
use kernel::identity::key::{Dead, KeyId, OVERLAP_DEFAULT_MS};
use kernel::identity::roles::{Role, Roles};
use kernel::tool::call::Caller;
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
    Administrator { doors, caller }: Administrator,
    visitor: Visitor,
    Params(query): Params<PageQuery>,
) -> Result<Json<Page<ApiKey>>> {
    let keys = doors.identity.list(&maker(&visitor, &caller));
    let of = Purpose::of(&caller, "/api/v1/keys");
    let now = doors.engine.clock().now();
    let show = |stored: StoredKey| shown(&stored, now);
    paged(&doors, &of, keys, query, |stored| stored.key.id.as_str(), show)
}

/// `GET /keys/{id}`.
pub(crate) async fn show(
    Administrator { doors, caller }: Administrator,
    visitor: Visitor,
    Named(name): Named,
) -> Result<Json<ApiKey>> {
    let keys = doors.identity.list(&maker(&visitor, &caller));
    let found = keys.iter().find(|stored| stored.key.id.as_str() == name);
    let stored = found.ok_or_else(|| missing(&name))?;
    Ok(Json(shown(stored, doors.engine.clock().now())))
}

/// `POST /keys`.
pub(crate) async fn create(
    Administrator { doors, caller }: Administrator,
    visitor: Visitor,
    Posted(body): Posted<KeyBody>,
) -> Result<Response> {
    let now = doors.engine.clock().now();
    let new = NewKey {
        name: body.name,
        realms: grants(&caller.realm, body.realms, body.roles.as_deref())?,
        scopes: body.scopes.as_deref().map(scopes).transpose()?,
        expires: expiry(body.expires_in_days, now)?,
    };
    let maker = maker(&visitor, &caller);
    let made = doors.identity.create(&maker, new).await.map_err(not_made)?;
    let id = made.stored.key.id.clone();
    tracing::info!(key = %id, by = %maker.subject, "an API key was created");
    let location = [(LOCATION, format!("/api/v1/keys/{id}"))];
    Ok((StatusCode::CREATED, location, issued(&made, now)).into_response())
}

/// `POST /keys/{id}/rotate`.
pub(crate) async fn rotate(
    Administrator { doors, caller }: Administrator,
    visitor: Visitor,
    Named(name): Named,
    Maybe(body): Maybe<RotateBody>,
) -> Result<Response> {
    let overlap_ms = body.overlap_ms.unwrap_or(OVERLAP_DEFAULT_MS);
    if overlap_ms > OVERLAP_MS_MAX {
        let message = format!("`overlapMs` is `{overlap_ms}`, and at most `{OVERLAP_MS_MAX}`");
        return Err(Failure::wrong_value("/overlapMs", message));
    }
    let (id, maker) = (key_id(&name)?, maker(&visitor, &caller));
    let made = doors.identity.rotate(&maker, &id, overlap_ms).await;
    let made = made.map_err(|refusal| not_changed(&name, refusal))?;
    tracing::info!(key = %id, by = %maker.subject, "an API key was rotated");
    Ok(issued(&made, doors.engine.clock().now()))
}

/// `DELETE /keys/{id}`: also where it was revoked before.
pub(crate) async fn revoke(
    Administrator { doors, caller }: Administrator,
    visitor: Visitor,
    Named(name): Named,
) -> Result<StatusCode> {
    let (id, maker) = (key_id(&name)?, maker(&visitor, &caller));
    let revoked = doors.identity.revoke(&maker, &id).await;
    revoked.map_err(|refusal| not_changed(&name, refusal))?;
    tracing::info!(key = %id, by = %maker.subject, "an API key was revoked");
    Ok(StatusCode::NO_CONTENT)
}

/// Who changes keys: with a credential within what that administers, in local mode everywhere.
fn maker(visitor: &Visitor, caller: &Caller) -> Maker {
    let grants = match &visitor.verified {
        Some(verified) => verified.realms.clone(),
        None => {
            let everywhere = RealmPattern::parse("*");
            let grants = everywhere.map(|every| Grants::one(every, Roles::of(&[Role::Admin])));
            // The pattern is good; without it no key could be seen or made.
            grants.unwrap_or_default()
        }
    };
    let Caller { subject, actor, via, .. } = caller.clone();
    Maker { subject, actor, grants, via }
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
        let place = format!("/realms/{}", name.replace('~', "~0").replace('/', "~1"));
        grants.insert(pattern(name, &place)?, roles_of(roles, &place)?);
    }
    Ok(Grants(grants))
}

fn pattern(name: &str, place: &str) -> Result<RealmPattern> {
    RealmPattern::parse(name).map_err(|bad| Failure::wrong_value(place, bad.to_string()))
}

fn roles_of(names: &[String], place: &str) -> Result<Roles> {
    let role = |(index, name): (usize, &String)| {
        let all = || Role::ALL.iter().map(|role| role.name());
        let place = format!("{place}/{index}");
        Role::from_name(name).ok_or_else(|| no_such("role", name, all(), &place))
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
        let place = format!("/scopes/{index}");
        Scope::from_name(name).ok_or_else(|| no_such("scope", name, all(), &place))
    };
    names.iter().enumerate().map(scope).collect()
}

fn no_such(
    noun: &str,
    given: &str,
    known: impl Iterator<Item = &'static str>,
    place: &str,
) -> Failure {
    let known: Vec<&str> = known.collect();
    let hint = meant(given, known.iter().copied());
    let hint = hint.unwrap_or_else(|| format!("one of {}", known.join(", ")));
    let message = format!("there is no {noun} `{}`", short(given));
    Failure::wrong_value(place, message).hint(hint)
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
            .hint("a key reaches at most as far as the credential that creates it"),
        KeyRefusal::NoRealm => Failure::wrong_value("/realms", message),
        KeyRefusal::BadName => Failure::wrong_value("/name", message),
        KeyRefusal::BadExpiry => Failure::wrong_value("/expiresInDays", message),
        KeyRefusal::TooMany => Failure::new(StatusCode::CONFLICT, "too_many_keys", message),
        KeyRefusal::MakerRevoked => Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", message),
        KeyRefusal::Dead(Dead::Revoked) => {
            Failure::new(StatusCode::CONFLICT, "key_revoked", message).hint("create another key")
        }
        KeyRefusal::Dead(Dead::Expired) => {
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
fn issued(made: &Made, now: Millis) -> Response {
    let text = made.text.expose().to_owned();
    not_stored(Json(IssuedKey { key: shown(&made.stored, now), text }).into_response())
}

fn shown(stored: &StoredKey, now: Millis) -> ApiKey {
    let StoredKey { key, used, .. } = stored;
    let names = |scope: Scope| scope.name().to_owned();
    let ends = key.secrets.iter().filter_map(|secret| secret.until);
    ApiKey {
        id: key.id.to_string(),
        name: key.name.clone(),
        subject: key.subject().to_string(),
        realms: realms_of(&key.realms),
        scopes: key.scopes.map(|scopes| scopes.iter().map(names).collect()),
        status: match key.check(now) {
            Ok(()) => KeyStatus::Active,
            Err(Dead::Expired) => KeyStatus::Expired,
            Err(Dead::Revoked) => KeyStatus::Revoked,
        },
        by: key.by.to_string(),
        created_at: key.created.rfc3339(),
        expires_at: key.expires.map(|at| at.rfc3339()),
        revoked_at: key.revoked.map(|at| at.rfc3339()),
        used_at: used.map(|at| at.rfc3339()),
        overlap_until: ends.filter(|end| *end > now).max().map(|end| end.rfc3339()),
    }
}
