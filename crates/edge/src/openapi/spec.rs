//! The OpenAPI document of a set of routes, with the schemas and answers that they share.

use super::operation::{NAMED, Operation, PLAIN, PROBLEM, Refusals, THREAD};
use super::parameters;
use super::schemas::Shapes;
use crate::acts::Right;
use serde_json::{Map, Value, json};

/// One route of the document.
pub struct RouteSpec {
    pub method: &'static str,
    pub path: &'static str,
    /// Who asks policy about it.
    pub right: Right,
    pub operation: Operation,
    /// How it tells its errors.
    pub errors: Refusals,
}

/// These routes as OpenAPI 3.1, with all members by name: a comparison of two releases shows what
/// changed, and not in which order the tables of routes stand.
pub fn document(routes: impl Iterator<Item = RouteSpec>) -> Value {
    let mut shapes = Shapes::default();
    let mut paths: Map<String, Value> = Map::new();
    for RouteSpec { method, path, operation, errors, .. } in routes {
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[method.to_lowercase()] = operation.shown(errors, &mut shapes);
    }
    let mut responses: Map<String, Value> = Map::new();
    for refusals in [PROBLEM, PLAIN, NAMED, THREAD] {
        responses.extend(refusals.responses(&mut shapes));
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Waypost",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions that run plans, ask people and survive crashes.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": shapes.into_schemas(),
            "parameters": parameters::all(),
            "responses": responses,
            "headers": headers(),
        }
    });
    document.sort_all_objects();
    document
}

fn headers() -> Value {
    let text = |about: &str| json!({"description": about, "schema": {"type": "string"}});
    json!({
        "Location": text("Where what was made can be looked at."),
        "ETag": text("The version, in quotes, for `If-Match`, or `If-None-Match` of a document."),
        "Idempotency-Replayed": text("`true` if an earlier request with this key did it."),
        "Retry-After": text("Seconds after which to send it again."),
        "WWW-Authenticate": text("The scheme of the credential that is needed."),
    })
}
