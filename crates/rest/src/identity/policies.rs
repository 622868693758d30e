//! `/api/v1/policies`: what the files of the project say about who may do what. They are changed in
//! their files alone, so that they are only read here.

use axum::Json;
use edge::problem::Result;
use edge::request::auth::Visitor;
use edge::request::cursors::Purpose;
use edge::request::pages::{PageQuery, paged};
use edge::request::params::Params;
use edge::request::server_state::{Administrator, for_whole_server};
use policy::decide::ListedPolicy;
use wire::rest::{Page, Policies, Policy};

/// `GET /policies`, by id. They are of all realms, and may name what is in them.
pub(crate) async fn list(
    Administrator { server, caller }: Administrator,
    visitor: Visitor,
    Params(query): Params<PageQuery>,
) -> Result<Json<Policies>> {
    for_whole_server(&server, &visitor, "the list of policies")?;
    let files = server.policies.as_ref();
    let read = files.map(|files| files.policies());
    let listed = read.as_ref().map(|read| read.listed()).unwrap_or_default();
    let of = Purpose::of(&caller, "/api/v1/policies");
    let Json(Page { items, next_cursor }) =
        paged(&server, &of, listed, query, |policy| &*policy.id, shown)?;
    Ok(Json(Policies {
        version: read.map(|read| read.version().to_string()),
        builtin: files.is_none_or(|files| files.builtin()),
        deciding: visitor.verified.is_some(),
        items,
        next_cursor,
    }))
}

fn shown(policy: ListedPolicy) -> Policy {
    let ListedPolicy { id, file, line, effect, why, rows, hide, tools } = policy;
    Policy {
        id: id.to_string(),
        file: file.to_string(),
        line,
        effect: effect.to_owned(),
        why,
        rows: rows.map(|query| query.to_string()),
        hide: hide.iter().map(ToString::to_string).collect(),
        tools: tools.into_iter().collect(),
    }
}
