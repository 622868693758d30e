//! Tools and plans, and direct calls.

use super::Named;
use serde_json::{Value, json};

pub(super) fn schemas() -> Vec<Named> {
    vec![
        ("Tool", tool()),
        ("ToolPage", tool_page()),
        ("CallBody", call_body()),
        ("CallAnswer", call_answer()),
        ("PendingCall", pending_call()),
        ("Plan", plan()),
        ("PlanSummary", plan_summary()),
        ("PlanPage", plan_page()),
        ("PlanAnswer", plan_answer()),
        ("PlanCheck", plan_check()),
        ("PlanMistake", plan_mistake()),
    ]
}

fn tool() -> Value {
    json!({
        "type": "object",
        "description": "A tool of the catalog, or a plan that is called like one.",
        "required": [
            "name", "title", "description", "inputSchema", "reach", "idempotent", "tags", "kind",
            "pace"
        ],
        "properties": {
            "name": {"type": "string"},
            "title": {"type": "string"},
            "description": {"type": "string"},
            "inputSchema": {"description": "JSON Schema of its arguments."},
            "outputSchema": {"description": "JSON Schema of its output, if it promises one."},
            "reach": {
                "type": "string",
                "description": "What it does to the world.",
                "enum": ["reads", "writes", "runs"]
            },
            "idempotent": {
                "type": "boolean",
                "description": "Whether a repeat with the same key has no further effect."
            },
            "tags": {"type": "array", "items": {"type": "string"}},
            "kind": {
                "type": "string",
                "description": "What it is.",
                "enum": ["tool", "plan"]
            },
            "pace": {
                "type": "string",
                "description": "How long it takes; `task` is for callers that come back.",
                "enum": ["quick", "slow", "task"]
            },
            "journal": {
                "type": "boolean",
                "description": "Whether direct calls that change something are kept as runs; \
                                absent where they are.",
                "default": true
            }
        },
        "examples": [{
            "name": "math::add", "title": "Add", "description": "adds two numbers",
            "inputSchema": {"type": "object", "required": ["a", "b"]},
            "outputSchema": {"type": "number"},
            "reach": "reads", "idempotent": true, "tags": ["math"], "kind": "tool", "pace": "quick"
        }, {
            "name": "notes.add", "title": "Add a note", "description": "keeps a note",
            "inputSchema": {"type": "object"},
            "reach": "writes", "idempotent": false, "tags": ["notes"], "kind": "tool",
            "pace": "quick", "journal": false
        }]
    })
}

fn tool_page() -> Value {
    json!({
        "type": "object",
        "description": "Tools, by name.",
        "required": ["items", "nextCursor"],
        "properties": {
            "items": {"type": "array", "items": {"$ref": "#/components/schemas/Tool"}},
            "nextCursor": {"type": ["string", "null"]}
        },
        "examples": [{"items": [], "nextCursor": null}]
    })
}

fn call_body() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {"arguments": {"description": "The arguments, `{}` if absent."}},
        "examples": [{"arguments": {"a": 2, "b": 3}}]
    })
}

fn call_answer() -> Value {
    json!({
        "type": "object",
        "required": ["result"],
        "properties": {"result": {"description": "The tool's output."}},
        "examples": [{"result": 5}]
    })
}

fn pending_call() -> Value {
    json!({
        "type": "object",
        "description": "A call that waits for a person or continues, as a run of one step.",
        "required": ["run", "session"],
        "properties": {
            "run": {"$ref": "#/components/schemas/Run"},
            "session": {"$ref": "#/components/schemas/Session"},
            "ask": {"$ref": "#/components/schemas/Ask"}
        }
    })
}

fn plan() -> Value {
    json!({
        "type": "object",
        "description": "A plan as JSON.",
        "examples": [{
            "planId": "docs/hello", "description": "answers",
            "steps": [{"id": "end", "type": "final_response", "message": "hello"}]
        }]
    })
}

fn plan_summary() -> Value {
    json!({
        "type": "object",
        "description": "A plan in a list.",
        "required": ["id", "description", "hash"],
        "properties": {
            "id": {"type": "string"},
            "description": {"type": "string"},
            "parameters": {"description": "JSON Schema of its input, if it has one."},
            "outputSchema": {"description": "JSON Schema of its answer, if it promises one."},
            "hash": {"type": "string", "description": "Hash of what it does."}
        },
        "examples": [{
            "id": "docs/hello", "description": "answers", "parameters": {"type": "object"},
            "outputSchema": {"type": "string"},
            "hash": "c19f0695b711e8d46015f7e3cc9b92dd804cc0c604c51db44b4574da2b8a1125"
        }]
    })
}

fn plan_page() -> Value {
    json!({
        "type": "object",
        "description": "Plans, by id.",
        "required": ["items", "nextCursor"],
        "properties": {
            "items": {"type": "array", "items": {"$ref": "#/components/schemas/PlanSummary"}},
            "nextCursor": {"type": ["string", "null"]}
        },
        "examples": [{"items": [], "nextCursor": null}]
    })
}

fn plan_answer() -> Value {
    json!({
        "type": "object",
        "description": "A plan with its JSON.",
        "required": ["id", "description", "hash", "plan"],
        "properties": {
            "id": {"type": "string"},
            "description": {"type": "string"},
            "parameters": {},
            "outputSchema": {},
            "hash": {"type": "string"},
            "plan": {"$ref": "#/components/schemas/Plan"}
        },
        "examples": [{
            "id": "docs/hello", "description": "answers", "parameters": {"type": "object"},
            "outputSchema": {"type": "string"},
            "hash": "c19f0695b711e8d46015f7e3cc9b92dd804cc0c604c51db44b4574da2b8a1125",
            "plan": {
                "planId": "docs/hello", "description": "answers",
                "steps": [{"id": "end", "type": "final_response", "message": "hello"}]
            }
        }]
    })
}

fn plan_check() -> Value {
    json!({
        "type": "object",
        "description": "Whether a plan would be taken.",
        "required": ["valid", "errors", "warnings"],
        "properties": {
            "valid": {"type": "boolean"},
            "errors": {
                "type": "array",
                "description": "What must be mended.",
                "items": {"$ref": "#/components/schemas/PlanMistake"}
            },
            "warnings": {
                "type": "array",
                "description": "What has no effect.",
                "items": {"$ref": "#/components/schemas/PlanMistake"}
            }
        },
        "examples": [{"valid": true, "errors": [], "warnings": []}]
    })
}

fn plan_mistake() -> Value {
    json!({
        "type": "object",
        "required": ["pointer", "detail"],
        "properties": {
            "pointer": {"type": "string", "description": "JSON Pointer; empty: the whole."},
            "detail": {"type": "string"},
            "hint": {"type": "string"}
        },
        "examples": [{
            "pointer": "/steps/0/toolId", "detail": "there is no tool `math::ad`",
            "hint": "did you mean `math::add`?"
        }]
    })
}
