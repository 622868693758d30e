//! The routes of the pipelines that a server has.

use kernel::definition::pipeline::Pipeline;
use kernel::values::canonical;
use kernel::values::ids::ContentHash;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Where cases come in under a pipeline's name.
const CASES: &str = "/api/v1/pipelines/{name}/cases";

/// The document with the routes of these pipelines: each does what the route of cases does.
pub fn with_pipelines(mut document: Value, pipelines: &[Arc<Pipeline>]) -> Value {
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
    document.sort_all_objects();
    document
}

/// A hash of what the document says of these pipelines.
pub fn hash_of(pipelines: &[Arc<Pipeline>]) -> ContentHash {
    let said = pipelines.iter().map(|pipeline| {
        let Pipeline { name, description, route, .. } = &**pipeline;
        json!([name.as_str(), description, route, body(pipeline)])
    });
    canonical::digest(&Value::Array(said.collect()))
}

const NAME: &str = "#/components/parameters/pipelineName";

/// What a pipeline's bodies look like. Other fields are dropped, and do no harm.
fn body(pipeline: &Pipeline) -> Value {
    let allowed = pipeline.schema.allowed.iter();
    let properties: Map<String, Value> = allowed.map(|name| (name.clone(), json!({}))).collect();
    json!({"type": "object", "properties": properties, "required": pipeline.schema.required})
}
