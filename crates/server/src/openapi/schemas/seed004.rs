//! The bodies of the session doors: `/sessions`, `/capabilities`, `/admin/capabilities`.

use super::Named;
use serde_json::{Value, json};

pub(super) fn schemas() -> Vec<Named> {
    vec![
        ("SeedError", seed_error()),
        ("CreateSession", create_session()),
        ("SeedStatus", seed_status()),
        ("SessionCore", session_core()),
        ("SessionView", session_view()),
        ("SeedHistoryEntry", seed_history_entry()),
        ("ExecutePlan", execute_plan()),
        ("ResumeBody", resume_body()),
        ("SessionStatus", session_status()),
        ("Capability", capability()),
        ("Capabilities", capabilities()),
        ("Discover", discover()),
        ("Register", register()),
        ("Registered", registered()),
    ]
}

fn seed_error() -> Value {
    json!({
        "type": "object",
        "description": "An error of the session endpoints; a conflict carries more members.",
        "required": ["error", "code", "trace_id"],
        "properties": {
            "error": {"type": "string", "description": "Who failed and why."},
            "code": {"type": "string", "description": "A stable word for programs."},
            "hint": {"type": "string", "description": "What to do."},
            "errors": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/FaultyValue"}
            },
            "trace_id": {"type": "string", "description": "Stands in the server's log."}
        },
        "examples": [{
            "error": "there is no session `a`", "code": "not_found", "hint": "create it",
            "errors": [{"pointer": "/sessionId", "detail": "there is none"}],
            "trace_id": "15932a01d2f63342e822c8effbc15cb1"
        }]
    })
}

fn create_session() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "sessionId": {
                "type": "string",
                "description": "The client's own id; the server makes one if absent."
            }
        },
        "examples": [{"sessionId": "order-7"}]
    })
}

fn seed_status() -> Value {
    json!({
        "type": "string",
        "enum": ["running", "paused", "completed", "failed", "paused_on_error", "paused_on_human"]
    })
}

fn session_core() -> Value {
    json!({
        "type": "object",
        "required": ["sessionId", "status", "createdAt", "updatedAt"],
        "properties": {
            "sessionId": {"type": "string"},
            "status": {"$ref": "#/components/schemas/SeedStatus"},
            "createdAt": {"type": "string", "format": "date-time"},
            "updatedAt": {"type": "string", "format": "date-time"},
            "currentPlanId": {"type": "string"},
            "currentStepId": {"type": "string"},
            "lastError": {"$ref": "#/components/schemas/Fault"}
        },
        "examples": [{
            "sessionId": "order-7", "status": "paused_on_error",
            "createdAt": "2026-11-15T03:38:41.616Z", "updatedAt": "2026-11-15T03:38:41.616Z",
            "currentPlanId": "test::plan_that_fails", "currentStepId": "fail",
            "lastError": {"name": "ToolFailedError", "message": "this tool always fails"}
        }]
    })
}

fn session_view() -> Value {
    json!({
        "type": "object",
        "required": ["core", "context", "history"],
        "properties": {
            "core": {"$ref": "#/components/schemas/SessionCore"},
            "context": {"type": "object", "description": "Large values as blob URIs."},
            "history": {
                "type": "array",
                "description": "Finished tool calls, newest first.",
                "items": {"$ref": "#/components/schemas/SeedHistoryEntry"}
            },
            "nextCursor": {"type": "string"}
        },
        "examples": [{
            "core": {
                "sessionId": "order-7", "status": "running",
                "createdAt": "2026-11-15T03:38:41.616Z", "updatedAt": "2026-11-15T03:38:41.616Z"
            },
            "context": {}, "history": [], "nextCursor": "opaque"
        }]
    })
}

fn seed_history_entry() -> Value {
    json!({
        "type": "object",
        "required": ["timestamp", "toolId", "request", "result"],
        "properties": {
            "timestamp": {"type": "string"},
            "toolId": {"type": "string"},
            "planStepId": {"type": ["string", "null"]},
            "request": {"description": "`{toolId, arguments}`."},
            "result": {"description": "`{status: success, output}` or `{status: error, error}`."}
        },
        "examples": [{
            "timestamp": "2026-11-15T03:38:41.630Z", "toolId": "math::add", "planStepId": "add",
            "request": {"toolId": "math::add", "arguments": {"a": 1, "b": 2}},
            "result": {"status": "success", "output": 3}
        }]
    })
}

fn execute_plan() -> Value {
    json!({
        "type": "object",
        "description": "A run to start: either `planId` or `plan`.",
        "additionalProperties": false,
        "properties": {
            "plan": {"type": "object"},
            "planId": {"type": "string"},
            "initialArgs": {"description": "The run's input, `{}` if absent."}
        },
        "examples": [
            {"planId": "math::conditional_add", "initialArgs": {"a": 2, "b": 3}},
            {
                "plan": {
                    "planId": "docs/hello", "description": "answers",
                    "steps": [{"id": "end", "type": "final_response", "message": "hello"}]
                }
            }
        ]
    })
}

fn resume_body() -> Value {
    json!({
        "type": "object",
        "description": "A reply; an absent body retries a failed step.",
        "additionalProperties": false,
        "properties": {
            "input": {
                "description": "The input, or `{action, arguments?, output?}` for a failed step."
            },
            "askId": {"type": "string", "description": "Needed when several asks are open."},
            "stepId": {"type": "string", "description": "Beside or instead of `askId`."}
        },
        "examples": [
            {"input": {"name": "Ann"}, "stepId": "ask_name"},
            {
                "input": {"action": "skip", "output": 0},
                "askId": "ask_befb4088acd7c34cfd5df5df63e5663c"
            }
        ]
    })
}

fn session_status() -> Value {
    json!({
        "type": "object",
        "required": ["sessionId", "status"],
        "properties": {
            "sessionId": {"type": "string"},
            "status": {"$ref": "#/components/schemas/SeedStatus"}
        },
        "examples": [{"sessionId": "order-7", "status": "completed"}]
    })
}

fn capability() -> Value {
    json!({
        "type": "object",
        "description": "A tool or a plan.",
        "required": ["id", "description", "parameters", "outputSchema"],
        "properties": {
            "id": {"type": "string"},
            "description": {"type": "string"},
            "parameters": {"description": "JSON Schema; `{}` where it takes anything."},
            "outputSchema": {"description": "JSON Schema; `{}` where it promises nothing."}
        },
        "examples": [{
            "id": "math::add", "description": "adds two numbers",
            "parameters": {"type": "object"}, "outputSchema": {}
        }]
    })
}

fn capabilities() -> Value {
    json!({
        "type": "object",
        "required": ["tools", "plans"],
        "properties": {
            "tools": {"type": "array", "items": {"$ref": "#/components/schemas/Capability"}},
            "plans": {"type": "array", "items": {"$ref": "#/components/schemas/Capability"}}
        },
        "examples": [{"tools": [], "plans": []}]
    })
}

fn discover() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["query"],
        "properties": {
            "query": {
                "type": "string",
                "description": "Part of an id or a description, in any case."
            },
            "limit": {
                "type": "integer",
                "minimum": 0,
                "description": "How many tools and plans together, 10 if absent."
            }
        },
        "examples": [{"query": "add", "limit": 3}]
    })
}

fn register() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["type", "definition"],
        "properties": {
            "type": {
                "type": "string",
                "description": "A tool would have no implementation, so it is refused.",
                "enum": ["tool", "plan"]
            },
            "definition": {"description": "The plan."}
        },
        "examples": [{
            "type": "plan",
            "definition": {
                "planId": "docs/hello", "description": "answers",
                "steps": [{"id": "end", "type": "final_response", "message": "hello"}]
            }
        }]
    })
}

fn registered() -> Value {
    json!({
        "type": "object",
        "required": ["id", "status"],
        "properties": {
            "id": {"type": "string"},
            "status": {"type": "string", "enum": ["registered"]}
        },
        "examples": [{"id": "docs/hello", "status": "registered"}]
    })
}
