//! `/api/v1/realms`: which realms there are and what is set for each. The settings make them, so
//! that they are only read here.

use super::maker;
use crate::http::tools::{PageQuery, paged};
use crate::problem::Result;
use crate::request::auth::Visitor;
use crate::request::cursors::Purpose;
use crate::request::doors::{Administrator, Doors};
use crate::request::params::{Named, Params, short};
use axum::Json;
use engine::refusal::Refusal;
use identity::keys::Maker;
use kernel::identity::directory::Directory;
use kernel::identity::grants::RealmPattern;
use kernel::identity::realm::RealmSettings;
use kernel::identity::roles::Role;
use kernel::tool::rules::Pattern;
use kernel::values::ids::RealmId;
use wire::rest::{Page, Realm};

/// `GET /realms`, by name: those that the caller administers.
pub(crate) async fn list(
    Administrator { doors, caller }: Administrator,
    visitor: Visitor,
    Params(query): Params<PageQuery>,
) -> Result<Json<Page<Realm>>> {
    let realms = administered(&doors, &maker(&visitor, &caller));
    let of = Purpose::of(&caller, "/api/v1/realms");
    paged(&doors, &of, realms, query, |realm| realm.name.as_str(), |realm| realm)
}

/// `GET /realms/{name}`.
pub(crate) async fn show(
    Administrator { doors, caller }: Administrator,
    visitor: Visitor,
    Named(name): Named,
) -> Result<Json<Realm>> {
    let realms = administered(&doors, &maker(&visitor, &caller));
    let found = realms.into_iter().find(|realm| realm.name == name);
    let hint = "`GET /api/v1/realms` lists the realms that you administer";
    let missing = || Refusal::not_found("realm", short(&name)).hint(hint);
    Ok(Json(found.ok_or_else(missing)?))
}

fn administered(doors: &Doors, maker: &Maker) -> Vec<Realm> {
    let directory = doors.identity.directory();
    let seen = directory.realms.0.iter().filter(|(name, _)| administers(maker, name));
    seen.map(|(name, settings)| shown(name, settings, &directory)).collect()
}

/// Whether a maker has the role `admin` in a realm: by a pattern that has it as a whole.
fn administers(maker: &Maker, realm: &RealmId) -> bool {
    let fits = |pattern: &RealmPattern| pattern.fits(realm);
    maker.grants.0.iter().any(|(pattern, roles)| fits(pattern) && roles.has(Role::Admin))
}

fn shown(name: &RealmId, settings: &RealmSettings, directory: &Directory) -> Realm {
    let RealmSettings { enabled_tools, max_find_limit, run_as, default_agent } = settings;
    let named = |tools: &Vec<Pattern>| tools.iter().map(|tool| tool.as_str().to_owned()).collect();
    Realm {
        name: name.to_string(),
        enabled_tools: enabled_tools.as_ref().map(named),
        max_find_limit: *max_find_limit,
        run_as_user_id: run_as.as_ref().map(ToString::to_string),
        usable: run_as.as_ref().is_none_or(|id| directory.can_run_as(name, id)),
        default_agent: default_agent.as_ref().map(ToString::to_string),
    }
}
