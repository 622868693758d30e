//! What went wrong.

use super::Named;
use serde_json::json;

pub(super) fn schemas() -> Vec<Named> {
    vec![
        (
            "Problem",
            json!({
                "type": "object",
                "description": "An error as RFC 9457 says; a conflict carries more members, such \
                    as `state` and `decision`.",
                "required": ["type", "title", "status", "detail", "code", "traceId"],
                "properties": {
                    "type": {"type": "string", "description": "The kind of problem, as a URI."},
                    "title": {"type": "string"},
                    "status": {"type": "integer", "description": "The HTTP status."},
                    "detail": {"type": "string", "description": "Who failed and why."},
                    "code": {"type": "string", "description": "A stable word for programs."},
                    "hint": {"type": "string", "description": "What to do."},
                    "errors": {
                        "type": "array",
                        "items": {"$ref": "#/components/schemas/FaultyValue"}
                    },
                    "traceId": {"type": "string", "description": "Stands in the server's log."}
                },
                "examples": [{
                    "type": "urn:waypost:problem:not_found", "title": "Not Found", "status": 404,
                    "detail": "there is no plan `math::ad`", "code": "not_found",
                    "hint": "did you mean `math::add`?",
                    "errors": [{"pointer": "/planId", "detail": "there is no such plan"}],
                    "traceId": "15932a01d2f63342e822c8effbc15cb1"
                }]
            }),
        ),
        (
            "FaultyValue",
            json!({
                "type": "object",
                "description": "One faulty value of a request.",
                "required": ["pointer", "detail"],
                "properties": {
                    "pointer": {"type": "string", "description": "JSON Pointer; empty: the whole."},
                    "detail": {"type": "string"}
                },
                "examples": [{"pointer": "/input/a", "detail": "\"x\" is not of type \"number\""}]
            }),
        ),
        (
            "Fault",
            json!({
                "type": "object",
                "description": "What went wrong in a run.",
                "required": ["name", "message"],
                "properties": {
                    "name": {"type": "string", "description": "A stable word for programs."},
                    "message": {"type": "string", "description": "Who failed and why."},
                    "hint": {"type": "string", "description": "What to do."}
                },
                "examples": [{
                    "name": "ToolFailedError", "message": "this tool always fails",
                    "hint": "skip the step"
                }]
            }),
        ),
    ]
}
