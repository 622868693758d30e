//! `/api/v1/plans`: the plans of the catalog, and whether another one would be taken.

use super::tools::{PageQuery, paged};
use crate::body::Posted;
use crate::doors::Shared;
use crate::error::Failure;
use crate::params::{Named, Params, short};
use crate::shown;
use axum::Json;
use axum::extract::State;
use engine::refusal::Refusal;
use kernel::ids::PlanId;
use kernel::plan::mistake::{Mistake, meant};
use serde_json::Value;
use wire::rest::{Page, PlanAnswer, PlanCheck, PlanSummary};

/// `GET /plans`, by id.
pub(crate) async fn list(
    State(doors): State<Shared>,
    Params(query): Params<PageQuery>,
) -> Json<Page<PlanSummary>> {
    let plans = doors.engine.plans_for(doors.caller());
    let page = paged(plans, query, doors.limits(), |plan| plan.id.as_str());
    Json(Page {
        items: page.items.iter().map(|plan| shown::plan_summary(plan)).collect(),
        next_cursor: page.next_cursor,
    })
}

/// `GET /plans/{id}`.
pub(crate) async fn show(
    State(doors): State<Shared>,
    Named(name): Named,
) -> Result<Json<PlanAnswer>, Failure> {
    let id = PlanId::from(name.as_str());
    match doors.engine.plan_for(doors.caller(), &id) {
        Some(plan) => Ok(Json(PlanAnswer {
            summary: shown::plan_summary(&plan),
            plan: (*plan.source).clone(),
        })),
        None => {
            let plans = doors.engine.plans_for(doors.caller());
            let hint = meant(&name, plans.iter().map(|plan| plan.id.as_str()))
                .unwrap_or_else(|| "`GET /api/v1/plans` lists the plans".to_owned());
            Err(Refusal::not_found("plan", short(&name)).hint(hint).into())
        }
    }
}

/// `POST /plans/validate`: the body is the plan.
pub(crate) async fn validate(
    State(doors): State<Shared>,
    Posted(plan): Posted<Value>,
) -> Json<PlanCheck> {
    let (valid, mistakes) = match doors.engine.validate_plan(doors.caller(), &plan) {
        Ok(warnings) => (true, warnings),
        Err(mistakes) => (false, mistakes),
    };
    let (errors, warnings): (Vec<Mistake>, Vec<Mistake>) =
        mistakes.into_iter().partition(Mistake::is_error);
    Json(PlanCheck {
        valid,
        errors: errors.into_iter().map(shown::plan_mistake).collect(),
        warnings: warnings.into_iter().map(shown::plan_mistake).collect(),
    })
}
