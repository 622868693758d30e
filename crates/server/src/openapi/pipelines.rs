//! The table of `/api/v1/pipelines`, and the routes of the pipelines that a server has.

use super::operation::{Answer, BODY, Body, Content, Operation, READ, WRITE, json_answer};
use super::schemas::{case_answer, of, pending_case};
use kernel::pipeline::Pipeline;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wire::rest::{CaseBody, Page, PipelineAnswer, PipelineStats, PipelineSummary};

/// Where cases come in under a pipeline's name.
const CASES: &str = "/api/v1/pipelines/{name}/cases";

/// Reads of pipelines.
pub(super) const PIPELINES: &[Operation] = &[
    Operation {
        method: "GET",
        path: "/api/v1/pipelines",
        id: "listPipelines",
        summary: "The pipelines, by name",
        parameters: &["limit", "cursor"],
        body: Body::None,
        answers: &[json_answer(200, of::<Page<PipelineSummary>>, "a page of pipelines")],
        refusals: &[&[400]],
    },
    Operation {
        method: "GET",
        path: "/api/v1/pipelines/{name}",
        id: "showPipeline",
        summary: "One pipeline",
        parameters: &["pipelineName"],
        body: Body::None,
        answers: &[json_answer(200, of::<PipelineAnswer>, "the pipeline")],
        refusals: &[&[400, 404]],
    },
    Operation {
        method: "GET",
        path: "/api/v1/pipelines/{name}/stats",
        id: "pipelineStats",
        summary: "Which roads its cases took: by handler, and by unknown reason",
        parameters: &["pipelineName"],
        body: Body::None,
        answers: &[json_answer(200, of::<PipelineStats>, "the counts")],
        refusals: &[&[400, 404], READ],
    },
];

/// The door of cases, with errors in the words of a pipeline's own route.
pub(super) const CASE_DOORS: &[Operation] = &[Operation {
    method: "POST",
    path: CASES,
    id: "submitCase",
    summary: "Takes a case in, as the pipeline's own route does, and answers with the outcome",
    parameters: &["pipelineName", "idempotencyKey"],
    body: Body::Json(of::<CaseBody>),
    answers: &[
        Answer {
            status: 200,
            about: "it is done; `status` is `error` where a limit stopped the agent",
            content: Content::Json(case_answer),
            headers: &["Idempotency-Replayed"],
        },
        Answer {
            status: 202,
            about: "somebody has to answer `ask` first",
            content: Content::Json(pending_case),
            headers: &["Location", "Idempotency-Replayed"],
        },
    ],
    refusals: &[BODY, &[404, 409, 410, 504], WRITE],
}];

/// The document with the routes of these pipelines: each does what the door of cases does.
pub(crate) fn with_pipelines(mut document: Value, pipelines: &[Arc<Pipeline>]) -> Value {
    let described = document["paths"][CASES]["post"].clone();
    for pipeline in pipelines {
        let mut operation = described.clone();
        operation["operationId"] = json!(format!("submit:{}", pipeline.name));
        operation["summary"] = json!(pipeline.description);
        if let Value::Array(parameters) = &mut operation["parameters"] {
            // The name is in no path here.
            parameters.retain(|parameter| parameter["$ref"] != NAME);
        }
        operation["requestBody"]["content"]["application/json"]["schema"] = body(pipeline);
        document["paths"][&pipeline.route] = json!({"post": operation});
    }
    document
}

const NAME: &str = "#/components/parameters/pipelineName";

/// What a pipeline's bodies look like. Other fields are dropped, and do no harm.
fn body(pipeline: &Pipeline) -> Value {
    let allowed = pipeline.schema.allowed.iter();
    let properties: Map<String, Value> = allowed.map(|name| (name.clone(), json!({}))).collect();
    json!({"type": "object", "properties": properties, "required": pipeline.schema.required})
}
