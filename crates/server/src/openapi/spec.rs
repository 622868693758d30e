//! The whole document.

use super::operation::{Operation, PROBLEM, Refusals, SEED, THREAD};
use super::schemas::Shapes;
use super::{agents, parameters, pipelines, rest, seed, sinks, upstreams};
use serde_json::{Map, Value, json};

/// What the doors are, as OpenAPI 3.1.
pub fn document() -> Value {
    let mut shapes = Shapes::default();
    let mut paths: Map<String, Value> = Map::new();
    for (operation, refusals) in table() {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.to_lowercase()] = operation.shown(refusals, &mut shapes);
    }
    let mut responses: Map<String, Value> = Map::new();
    for refusals in [PROBLEM, SEED, THREAD] {
        responses.extend(refusals.responses(&mut shapes));
    }
    json!({
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
    })
}

/// Method and path of every operation that is described.
#[cfg(test)]
pub(crate) fn operations() -> impl Iterator<Item = (&'static str, &'static str)> {
    table().map(|(operation, _)| (operation.method, operation.path))
}

fn table() -> impl Iterator<Item = (&'static Operation, Refusals)> {
    let rest = rest::RUNS.iter().chain(rest::SESSIONS).chain(rest::CATALOG).chain(rest::OPERATIONS);
    let rest = rest.chain(upstreams::UPSTREAMS).chain(agents::AGENTS).chain(pipelines::PIPELINES);
    let rest = rest.chain(sinks::SINKS);
    let seeds = seed::SESSIONS.iter().chain(agents::ENTITIES).chain(pipelines::CASE_DOORS);
    let rest = rest.map(|operation| (operation, PROBLEM));
    let rest = rest.chain(seeds.map(|operation| (operation, SEED)));
    rest.chain(seed::THREADS.iter().map(|operation| (operation, THREAD)))
}

fn headers() -> Value {
    let text = |about: &str| json!({"description": about, "schema": {"type": "string"}});
    json!({
        "Location": text("Where the run can be looked at."),
        "ETag": text("The version, in quotes: send it in `If-Match`."),
        "Idempotency-Replayed": text("`true` if an earlier request with this key did it."),
        "Retry-After": text("Seconds after which to send it again."),
        "WWW-Authenticate": text("`Bearer`: send the admin key."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(reference)) = map.get("$ref") {
                    found.insert(reference.clone());
                }
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_nothing_is_left_over() {
        let document = document();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for reference in &found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "`{reference}` leads nowhere");
        }
        // Schemas of events stand for themselves: they are the data inside of streams.
        let alone = [
            "StreamEnd",
            "FeedSnapshot",
            "FeedEvent",
            "ThreadDelta",
            "ThreadRestart",
            "ToolResult",
        ];
        for group in ["schemas", "parameters", "headers"] {
            for name in document["components"][group].as_object().unwrap().keys() {
                let reference = format!("#/components/{group}/{name}");
                let used = found.contains(&reference) || alone.contains(&name.as_str());
                assert!(used, "nobody refers to `{reference}`");
            }
        }
    }

    #[test]
    fn ids_are_given_once_and_names_in_paths_are_parameters() {
        let parameters = parameters::all();
        let mut ids = BTreeSet::new();
        for (operation, _) in table() {
            assert!(ids.insert(operation.id), "`{}` is there twice", operation.id);
            let of_path = |name: &&str| parameters[*name]["in"] == "path";
            let told: Vec<&str> = operation
                .parameters
                .iter()
                .filter(|name| of_path(name))
                .map(|name| parameters[*name]["name"].as_str().unwrap())
                .collect();
            let parts = operation.path.split('/').filter_map(|part| part.strip_prefix('{'));
            let written: Vec<&str> = parts.filter_map(|part| part.strip_suffix('}')).collect();
            assert_eq!(told, written, "{}", operation.path);
        }
    }
}
