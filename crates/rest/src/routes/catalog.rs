//! Routes of `/api/v1/plans` and `/api/v1/tools`.

use crate::{plans, tools};
use axum::routing::{delete, get, post, put};
use edge::acts::Right::{Engine, Open};
use edge::openapi::{BODY, Body, Content, READ, WRITE, answer, json_answer, of};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::rest::{
    CallAnswer, CallBody, DraftAnswer, DraftBody, Page, PendingCall, Plan, PlanAnswer, PlanCheck,
    PlanSummary, Tool,
};

/// `/api/v1/plans`.
pub(super) const PLANS: &[Route<Shared>] = &[
    Route::get("/api/v1/plans", || get(plans::list), Engine(Act::Read))
        .says("listPlans", "The plans, by id; with `match` those that fit a text, best first")
        .parameters(&["ofText", "limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<PlanSummary>>, "a page of plans")])
        .refusals(&[&[400]]),
    Route::get("/api/v1/plans/{id}", || get(plans::show), Engine(Act::Read))
        .says("showPlan", "One plan")
        .parameters(&["planId"])
        .answers(&[json_answer(
            200,
            of::<PlanAnswer>,
            "the plan; with an `ETag` if it is a stored one",
        )
        .headers(&["ETag"])])
        .refusals(&[&[400, 404], READ]),
    Route::put("/api/v1/plans/{id}", || put(plans::store), Engine(Act::Define))
        .says("storePlan", "Stores a plan, or its next version")
        .parameters(&["planId", "ifMatch", "ifNoneMatch"])
        .body(Body::Json(of::<Plan>))
        .answers(&[
            json_answer(200, of::<PlanAnswer>, "the next version is stored").headers(&["ETag"]),
            json_answer(201, of::<PlanAnswer>, "the plan is stored for the first time")
                .headers(&["ETag"]),
        ])
        .refusals(&[&[401, 412], BODY, WRITE]),
    Route::delete("/api/v1/plans/{id}", || delete(plans::remove), Engine(Act::Define))
        .says(
            "removePlan",
            "Removes a stored plan; runs that began continue with it; for administrators",
        )
        .parameters(&["planId"])
        .answers(&[answer(204, Content::None, "it is gone; a file's that it overrode is back")])
        .refusals(&[&[400, 401, 404, 409], WRITE]),
    Route::post(
        "/api/v1/plans/validate",
        || post(plans::validate),
        Open("it is checked against what its caller sees"),
    )
    .says("validatePlan", "Whether a plan would be taken: 200 either way")
    .body(Body::Json(of::<Plan>))
    .answers(&[json_answer(200, of::<PlanCheck>, "what is wrong with it, if anything")])
    .refusals(&[BODY]),
    Route::post("/api/v1/plans/draft", || post(plans::draft), Engine(Act::Run))
        .says("draftPlan", "Plans that fit a goal already, or one that a model writes for it")
        .body(Body::Json(of::<DraftBody>))
        .answers(&[json_answer(
            200,
            of::<DraftAnswer>,
            "what was found, or what was written with what is wrong with it",
        )])
        .refusals(&[BODY, &[404, 502], READ]),
];

/// `/api/v1/tools`.
pub(super) const TOOLS: &[Route<Shared>] = &[
    Route::get("/api/v1/tools", || get(tools::list), Engine(Act::Call))
        .says("listTools", "The tools that the caller sees, and the plans as tools, by name")
        .parameters(&["limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<Tool>>, "a page of tools")])
        .refusals(&[&[400]]),
    Route::get("/api/v1/tools/{name}", || get(tools::show), Engine(Act::Call))
        .says("showTool", "One tool")
        .parameters(&["toolName"])
        .answers(&[json_answer(200, of::<Tool>, "the tool")])
        .refusals(&[&[400, 404]]),
    Route::post("/api/v1/tools/{name}/call", || post(tools::call), Engine(Act::Call))
        .says("callTool", "Calls a tool or a plan; what writes is recorded as a run")
        .parameters(&["toolName", "wait", "idempotencyKey"])
        .body(Body::Maybe(of::<CallBody>))
        .answers(&[
            json_answer(200, of::<CallAnswer>, "the call is done"),
            json_answer(202, of::<PendingCall>, "a person is asked, or the call continues")
                .headers(&["Location", "Idempotency-Replayed"]),
        ])
        .refusals(&[BODY, &[404, 409, 410, 502], WRITE]),
];
