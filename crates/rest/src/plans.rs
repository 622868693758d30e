//! `/api/v1/plans`: the plans of the catalog, storing and removing one, whether one would be taken,
//! and plans that a model writes.

use super::condition::{Condition, not_stored, tagged};
use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::problem::{Failure, Result};
use edge::request::body::JsonBody;
use edge::request::cursors::Purpose;
use edge::request::pages::{PageQuery, paged};
use edge::request::params::{Params, PathName, not_found, page};
use edge::request::server_state::{Administrator, ServerState, Who};
use edge::views::{drafts, rows};
use engine::DraftRequest;
use engine::refusal::RefusalKind;
use kernel::definition::plan::mistake::Mistake;
use kernel::tool::call::Caller;
use kernel::values::ids::PlanId;
use serde::Deserialize;
use serde_json::{Map, Value};
use wire::rest::{DraftAnswer, DraftBody, Page, PlanAnswer, PlanCheck, PlanSummary};

/// `?match=&limit=&cursor=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ListQuery {
    #[serde(rename = "match")]
    text: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// `GET /plans`, by id; those that fit a text, best first, where one is named.
pub(crate) async fn list(
    Who { server, caller }: Who,
    Params(query): Params<ListQuery>,
) -> Result<Json<Page<PlanSummary>>> {
    let ListQuery { text, limit, cursor } = query;
    if let Some(text) = text {
        if cursor.is_some() {
            let message = "`match` gives one page, which has no `cursor`";
            return Err(Failure::bad_request("bad_query", message).hint("leave one of them out"));
        }
        let most = page(limit, None, server.limits()).limit;
        let found = server.engine.catalog().find_plans(&caller, &text, most);
        let items = found.iter().map(|plan| rows::plan_summary(plan)).collect();
        return Ok(Json(Page { items, next_cursor: None }));
    }
    let query = PageQuery { limit, cursor };
    let plans = server.engine.catalog().plans(&caller);
    let of = Purpose::of(&caller, "/api/v1/plans");
    paged(&server, &of, plans, query, |plan| plan.id.as_str(), |plan| rows::plan_summary(&plan))
}

/// `GET /plans/{id}`.
pub(crate) async fn show(
    Who { server, caller }: Who,
    PathName(name): PathName,
) -> Result<Response> {
    let id = PlanId::from(name.as_str());
    let version = server.engine.catalog().plan_version(&caller, &id).await?;
    shown_plan(&server, &caller, &id, version)
}

/// `PUT /plans/{id}`: the body is the plan. 201 for the first version, 200 for the next ones.
pub(crate) async fn store(
    Administrator { server, caller }: Administrator,
    PathName(name): PathName,
    headers: HeaderMap,
    JsonBody(mut plan): JsonBody<Map<String, Value>>,
) -> Result<(StatusCode, Response)> {
    let id = PlanId::from(name.as_str());
    named_by_path(&mut plan, &name)?;
    let version = server.engine.catalog().plan_version(&caller, &id);
    let expected = Condition::of(&headers)?.expected("plan", &name, version).await?;
    let stored =
        server.engine.catalog().register_plan(&caller, Value::Object(plan), expected).await;
    let stored = stored.map_err(not_stored)?;
    let status = if stored.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, shown_plan(&server, &caller, &id, Some(stored.version))?))
}

/// `DELETE /plans/{id}`.
pub(crate) async fn remove(
    Administrator { server, caller }: Administrator,
    PathName(name): PathName,
) -> Result<StatusCode> {
    let id = PlanId::from(name.as_str());
    match server.engine.catalog().remove_plan(&caller, &id).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(refusal) if refusal.kind() == RefusalKind::NotFound => {
            Err(missing(&server, &caller, &id))
        }
        Err(refusal) => Err(refusal.into()),
    }
}

/// A plan with its version, if it has one.
fn shown_plan(
    server: &ServerState,
    caller: &Caller,
    id: &PlanId,
    version: Option<u64>,
) -> Result<Response> {
    let Some(plan) = server.engine.catalog().plan(caller, id) else {
        return Err(missing(server, caller, id));
    };
    let summary = rows::plan_summary(&plan);
    let plan = (*plan.source).clone();
    Ok(tagged(Json(PlanAnswer { summary, version, plan }).into_response(), version))
}

fn missing(server: &ServerState, caller: &Caller, id: &PlanId) -> Failure {
    let plans = server.engine.catalog().plans(caller);
    let names = plans.iter().map(|plan| plan.id.as_str());
    not_found("plan", id.as_str(), names, "`GET /api/v1/plans` lists the plans")
}

/// A plan is stored under the id in its path; one without an id gets it from there.
fn named_by_path(plan: &mut Map<String, Value>, name: &str) -> Result<()> {
    match plan.get("planId") {
        None => {
            plan.insert("planId".to_owned(), Value::from(name));
            Ok(())
        }
        Some(Value::String(id)) if id == name => Ok(()),
        Some(_) => Err(Failure::wrong_value("/planId", "`planId` is not the id in the path")
            .hint("leave it out, or use the same")),
    }
}

/// `POST /plans/validate`: the body is the plan.
pub(crate) async fn validate(
    Who { server, caller }: Who,
    JsonBody(plan): JsonBody<Value>,
) -> Json<PlanCheck> {
    let (valid, mistakes) = match server.engine.catalog().validate_plan(&caller, &plan) {
        Ok(warnings) => (true, warnings),
        Err(mistakes) => (false, mistakes),
    };
    let (errors, warnings): (Vec<Mistake>, Vec<Mistake>) =
        mistakes.into_iter().partition(Mistake::is_error);
    Json(PlanCheck {
        valid,
        errors: errors.into_iter().map(rows::plan_mistake).collect(),
        warnings: warnings.into_iter().map(rows::plan_mistake).collect(),
    })
}

/// `POST /plans/draft`: 200 also where the last draft is wrong, for the question was answered.
pub(crate) async fn draft(
    Who { server, caller }: Who,
    JsonBody(body): JsonBody<DraftBody>,
) -> Result<Json<DraftAnswer>> {
    let DraftBody { goal, model, tools, fresh } = body;
    let request = DraftRequest { goal, model, tools, fresh };
    let drafted = server.engine.catalog().draft_plan(&caller, request).await?;
    Ok(Json(drafts::drafted(drafted)))
}
