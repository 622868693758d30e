//! Routes of `/api/v1/pipelines`.

use crate::pipelines;
use axum::routing::{get, post};
use edge::acts::Right::Engine;
use edge::openapi::{BODY, Body, READ, WRITE, case_answer, json_answer, of, pending_case};
use edge::request::server_state::Shared;
use edge::routes::Route;
use kernel::values::caller::Act;
use wire::rest::{CaseBody, Page, PipelineAnswer, PipelineStats, PipelineSummary};

/// Reads of pipelines.
pub(super) const PIPELINES: &[Route<Shared>] = &[
    Route::get("/api/v1/pipelines", || get(pipelines::list), Engine(Act::Read))
        .says("listPipelines", "The pipelines, by name")
        .parameters(&["limit", "cursor"])
        .answers(&[json_answer(200, of::<Page<PipelineSummary>>, "a page of pipelines")])
        .refusals(&[&[400]]),
    Route::get("/api/v1/pipelines/{name}", || get(pipelines::show), Engine(Act::Read))
        .says("showPipeline", "One pipeline")
        .parameters(&["pipelineName"])
        .answers(&[json_answer(200, of::<PipelineAnswer>, "the pipeline")])
        .refusals(&[&[400, 404]]),
    Route::get("/api/v1/pipelines/{name}/stats", || get(pipelines::stats), Engine(Act::Read))
        .says("pipelineStats", "Which roads its cases took: by handler, and by unknown reason")
        .parameters(&["pipelineName"])
        .answers(&[json_answer(200, of::<PipelineStats>, "the counts")])
        .refusals(&[&[400, 404], READ]),
];

/// The route of cases, with errors in the words of a pipeline's own route.
pub(super) const CASES: &[Route<Shared>] = &[Route::post(
    "/api/v1/pipelines/{name}/cases",
    || post(pipelines::submit),
    Engine(Act::Submit),
)
.says("submitCase", "Takes a case in, as the pipeline's own route does, and returns the outcome")
.parameters(&["pipelineName", "idempotencyKey"])
.body(Body::Json(of::<CaseBody>))
.answers(&[
    json_answer(
        200,
        case_answer,
        "it is done; `status` is `error` where a limit stopped the agent",
    )
    .headers(&["Idempotency-Replayed"]),
    json_answer(202, pending_case, "a user has to answer `ask` first")
        .headers(&["Location", "Idempotency-Replayed"]),
])
.refusals(&[BODY, &[404, 409, 410, 504], WRITE])];
