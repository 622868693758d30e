//! The table of all routes: each is described, has its act, and no pipeline hides it.

mod schemas;

use super::*;
use std::collections::BTreeSet;

#[test]
fn a_mistyped_path_is_recognised() {
    let given = "/api/v1/seesions/a/history";
    let candidates: Vec<String> = routes().filter_map(|(_, path)| like(path, given)).collect();
    let hint = meant(given, candidates.iter().map(String::as_str));
    assert_eq!(hint.unwrap(), "did you mean `/api/v1/sessions/a/history`?");
}

#[test]
fn no_pipeline_hides_a_route_of_the_server() {
    for (path, told) in [
        ("/run", Some("it is `POST /run`")),
        ("/run/", Some("it is `POST /run`")),
        ("/sessions/x", Some("it is `GET /sessions/{id}`")),
        ("/mcp", Some("it is `POST /mcp`")),
        ("/health", Some("it is `GET /health`")),
        ("/api/v1/trades", Some("what is under `/api/` is the server's own")),
        ("/ui/x", Some("what is under `/ui` is the server's own")),
        ("/trade/failures", None),
        ("/uid", None),
        ("/runs", None),
        ("/", None),
    ] {
        assert_eq!(taken_by(path).as_deref(), told, "{path}");
    }
}

#[test]
fn every_route_says_which_act_it_is_and_nothing_else_does() {
    let mut served: Vec<_> = routes().chain([("POST", "/mcp"), ("POST", "/rpc")]).collect();
    let mut named: Vec<_> = rights().map(|(method, path, _)| (method, path)).collect();
    served.sort_unstable();
    named.sort_unstable();
    assert_eq!(served, named);
}

#[test]
fn every_route_is_described_once_with_its_parameters() {
    let parameters = edge::openapi::parameters();
    let mut ids = BTreeSet::new();
    for RouteSpec { path, operation, .. } in table() {
        assert!(ids.insert(operation.id), "`{}` is there twice", operation.id);
        let words = [operation.id, operation.summary];
        assert!(words.iter().all(|word| !word.is_empty()), "{path} says nothing");
        assert!(!operation.answers.is_empty(), "{path} answers nothing");
        let of_path = |name: &&&str| parameters[**name]["in"] == "path";
        let told: Vec<&str> = operation
            .parameters
            .iter()
            .filter(of_path)
            .map(|name| parameters[*name]["name"].as_str().unwrap())
            .collect();
        let parts = path.split('/').filter_map(|part| part.strip_prefix('{'));
        let written: Vec<&str> = parts.filter_map(|part| part.strip_suffix('}')).collect();
        assert_eq!(told, written, "{path}");
    }
}

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
    let alone =
        ["StreamEnd", "FeedSnapshot", "FeedEvent", "ThreadDelta", "ThreadRestart", "ToolResult"];
    for group in ["schemas", "parameters", "headers"] {
        for name in document["components"][group].as_object().unwrap().keys() {
            let reference = format!("#/components/{group}/{name}");
            let used = found.contains(&reference) || alone.contains(&name.as_str());
            assert!(used, "nobody refers to `{reference}`");
        }
    }
}

#[test]
fn every_route_is_in_the_table_once() {
    let mut lines: Vec<_> = routes().collect();
    lines.sort_unstable();
    let count = lines.len();
    lines.dedup();
    assert_eq!(lines.len(), count);
}
