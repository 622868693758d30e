//! Runs, sessions and their lists.

use super::Named;
use crate::realm::DEFAULT_REALM;
use serde_json::{Value, json};

pub(super) fn schemas() -> Vec<Named> {
    vec![
        ("RunBody", run_body()),
        ("Status", status()),
        ("Run", run()),
        ("Cost", cost()),
        ("Session", session()),
        ("Parked", parked()),
        ("RunAnswer", run_answer()),
        ("ReplyAnswer", reply_answer()),
        ("SessionPage", session_page()),
        ("HistoryEntry", history_entry()),
        ("HistoryPage", history_page()),
        ("ContextAnswer", context_answer()),
        ("ForkBody", fork_body()),
        ("PruneBody", prune_body()),
        ("PruneAnswer", prune_answer()),
        ("Health", health()),
        ("Instance", instance()),
    ]
}

fn run_body() -> Value {
    json!({
        "type": "object",
        "description": "A run to start: one of `planId`, `plan` and `agent`.",
        "additionalProperties": false,
        "properties": {
            "plan": {"type": "object", "description": "A plan that comes with the request."},
            "planId": {"type": "string", "description": "A plan of the catalog."},
            "agent": {"type": "string", "description": "An agent to talk to."},
            "input": {
                "description": "The run's input, `{}` if absent; for an agent a text, or \
                    `{user_request}`."
            },
            "session": {
                "type": "string",
                "description": "`ses_..`, or the client's own key, made if there is none; a new \
                    session if absent. For an agent, the thread that it continues."
            }
        },
        "examples": [
            {"planId": "math::conditional_add", "input": {"a": 2, "b": 3}},
            {
                "plan": {
                    "planId": "docs/hello", "description": "answers",
                    "steps": [{"id": "end", "type": "final_response", "message": "hello"}]
                },
                "session": "order-7"
            },
            {"agent": "assistant", "input": "what is on my calendar?", "session": "my-thread"}
        ]
    })
}

fn status() -> Value {
    json!({
        "type": "string",
        "description": "Where a run stands.",
        "enum": ["running", "waiting", "stuck", "paused", "completed", "failed", "cancelled"],
        "examples": ["waiting"]
    })
}

fn run() -> Value {
    json!({
        "type": "object",
        "description": "One run.",
        "required": ["id", "session", "plan", "status", "asks", "startedAt", "cost"],
        "properties": {
            "id": {"type": "string", "description": "`run_..`."},
            "session": {"type": "string", "description": "Its session, `ses_..`."},
            "plan": {"type": "string"},
            "status": {"$ref": "#/components/schemas/Status"},
            "step": {"type": "string", "description": "The step it is at."},
            "answer": {"description": "Its answer, once completed."},
            "lastError": {"$ref": "#/components/schemas/Fault"},
            "asks": {
                "type": "array",
                "description": "Its open asks.",
                "items": {"$ref": "#/components/schemas/Ask"}
            },
            "startedAt": {"type": "string", "format": "date-time"},
            "endedAt": {"type": "string", "format": "date-time"},
            "stopped": {
                "type": "string",
                "description": "The limit that stopped its agent, if one did."
            },
            "cost": {"$ref": "#/components/schemas/Cost"}
        },
        "examples": [{
            "id": "run_01a1dd49285d7d15addd8dd2e207b65c",
            "session": "ses_01a1dd49285d71d2a6fbc5ee6e127904",
            "plan": "math::conditional_add", "status": "completed", "step": "positive",
            "answer": "The sum 5 is positive.",
            "lastError": {"name": "ToolFailedError", "message": "retried and mended"},
            "asks": [],
            "startedAt": "2026-11-15T03:38:41.629Z", "endedAt": "2026-11-15T03:38:41.631Z",
            "stopped": "steps",
            "cost": {"turns": 2, "inputTokens": 1204, "outputTokens": 86, "dollars": 0.0031}
        }]
    })
}

fn cost() -> Value {
    json!({
        "type": "object",
        "description": "What a run's models took; empty where none was asked.",
        "properties": {
            "turns": {"type": "integer", "minimum": 1, "description": "Turns of models."},
            "inputTokens": {"type": "integer", "minimum": 0},
            "outputTokens": {"type": "integer", "minimum": 0},
            "dollars": {"type": "number", "description": "As far as prices are known."},
            "unpricedTurns": {
                "type": "integer",
                "minimum": 1,
                "description": "Turns whose price is unknown, if there are any."
            }
        },
        "examples": [
            {},
            {
                "turns": 2, "inputTokens": 1204, "outputTokens": 86, "dollars": 0.0031,
                "unpricedTurns": 1
            }
        ]
    })
}

fn session() -> Value {
    json!({
        "type": "object",
        "description": "One session.",
        "required": ["id", "realm", "space", "key", "status", "asks", "createdAt", "updatedAt"],
        "properties": {
            "id": {"type": "string", "description": "`ses_..`."},
            "realm": {"type": "string", "description": "Whose it is."},
            "space": {"type": "string", "description": "The family of endpoints it belongs to."},
            "key": {"type": "string", "description": "The client's own key, or its id."},
            "status": {"$ref": "#/components/schemas/Status"},
            "run": {"type": "string", "description": "Its latest run."},
            "plan": {"type": "string", "description": "That run's plan."},
            "step": {"type": "string", "description": "Where that run stands."},
            "lastError": {"$ref": "#/components/schemas/Fault"},
            "asks": {
                "type": "array",
                "description": "The ids of its open asks.",
                "items": {"type": "string"}
            },
            "createdAt": {"type": "string", "format": "date-time"},
            "updatedAt": {"type": "string", "format": "date-time"},
            "parked": {"$ref": "#/components/schemas/Parked"},
            "requestState": {"$ref": "#/components/schemas/RequestState"}
        },
        "examples": [
            {
                "id": "ses_01a1dd49284f70738d4494956dc96807",
                "realm": DEFAULT_REALM, "space": "session", "key": "order-7", "status": "stuck",
                "run": "run_01a1dd49284f758f80be22cc92ec88e6",
                "plan": "test::plan_that_fails", "step": "fail",
                "lastError": {"name": "ToolFailedError", "message": "this tool always fails"},
                "asks": ["ask_befb4088acd7c34cfd5df5df63e5663c"],
                "createdAt": "2026-11-15T03:38:41.616Z", "updatedAt": "2026-11-15T03:38:41.616Z",
                "requestState": {
                    "messages": [], "allowed_tool_types": [], "pending_action": null,
                    "final_response": null, "approval_outcome": null, "auth_url": null
                }
            },
            {
                "id": "ses_01a1dd49284f70738d4494956dc96808",
                "realm": DEFAULT_REALM, "space": "session", "key": "order-8", "status": "running",
                "asks": [],
                "createdAt": "2026-11-15T03:38:41.616Z", "updatedAt": "2026-11-15T03:38:41.616Z",
                "parked": {
                    "reason": "pinned plan `7f3a` cannot be read",
                    "until": "2026-11-15T03:38:43.616Z"
                }
            }
        ]
    })
}

fn parked() -> Value {
    json!({
        "type": "object",
        "description": "Why a session is not driven for now: what was recorded of it cannot be \
            read. Only a parked session has it; `status` is the one that was recorded last.",
        "required": ["reason", "until"],
        "properties": {
            "reason": {"type": "string", "description": "What cannot be read, and why."},
            "until": {
                "type": "string",
                "format": "date-time",
                "description": "When the server tries to read it again."
            }
        },
        "examples": [
            {
                "reason": "pinned plan `7f3a` cannot be read",
                "until": "2026-11-15T03:38:43.616Z"
            }
        ]
    })
}

fn run_answer() -> Value {
    json!({
        "type": "object",
        "description": "A run with its session.",
        "required": ["run", "session"],
        "properties": {
            "run": {"$ref": "#/components/schemas/Run"},
            "session": {"$ref": "#/components/schemas/Session"}
        }
    })
}

fn reply_answer() -> Value {
    json!({
        "type": "object",
        "description": "The ask with the decision, and its run, once that ended or paused again.",
        "required": ["ask", "run"],
        "properties": {
            "ask": {"$ref": "#/components/schemas/Ask"},
            "run": {"$ref": "#/components/schemas/Run"}
        }
    })
}

fn session_page() -> Value {
    json!({
        "type": "object",
        "description": "Sessions, newest first.",
        "required": ["items", "nextCursor"],
        "properties": {
            "items": {"type": "array", "items": {"$ref": "#/components/schemas/Session"}},
            "nextCursor": {"type": ["string", "null"]}
        },
        "examples": [{"items": [], "nextCursor": null}]
    })
}

fn history_entry() -> Value {
    json!({
        "type": "object",
        "description": "A finished tool call.",
        "required": ["call", "run", "step", "tool", "arguments", "finishedAt"],
        "properties": {
            "call": {"type": "string", "description": "`call_..`."},
            "run": {"type": "string", "description": "The run that made it."},
            "step": {"type": "string", "description": "The step that made it."},
            "tool": {"type": "string"},
            "arguments": {"description": "What it was given."},
            "output": {"description": "Its output, if it succeeded; a large one as a blob's URI."},
            "error": {"$ref": "#/components/schemas/Fault"},
            "finishedAt": {"type": "string", "format": "date-time"}
        },
        "examples": [
            {
                "call": "call_c78b337fc55638a66b0b057b287e7d5b",
                "run": "run_01a1dd49285d7d15addd8dd2e207b65c", "step": "add",
                "tool": "math::add", "arguments": {"a": 2, "b": 3}, "output": 5,
                "finishedAt": "2026-11-15T03:38:41.630Z"
            },
            {
                "call": "call_c78b337fc55638a66b0b057b287e7d5c",
                "run": "run_01a1dd49285d7d15addd8dd2e207b65c", "step": "fail",
                "tool": "test::always_fail", "arguments": {},
                "error": {"name": "ToolFailedError", "message": "this tool always fails"},
                "finishedAt": "2026-11-15T03:38:41.630Z"
            }
        ]
    })
}

fn history_page() -> Value {
    json!({
        "type": "object",
        "description": "Finished tool calls, newest first.",
        "required": ["items", "nextCursor"],
        "properties": {
            "items": {"type": "array", "items": {"$ref": "#/components/schemas/HistoryEntry"}},
            "nextCursor": {"type": ["string", "null"]}
        },
        "examples": [{"items": [], "nextCursor": "opaque"}]
    })
}

fn context_answer() -> Value {
    json!({
        "type": "object",
        "description": "Key to value; large values as blob URIs.",
        "required": ["context"],
        "properties": {"context": {"type": "object"}},
        "examples": [{"context": {"sum": 5, "finalResponse": "The sum 5 is positive."}}]
    })
}

fn fork_body() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "at": {
                "type": "integer",
                "minimum": 1,
                "description": "The sequence of the last event to copy; the newest if absent."
            }
        },
        "examples": [{"at": 1}]
    })
}

fn prune_body() -> Value {
    json!({
        "type": "object",
        "description": "What goes: sessions that are over, or never had a run; of other sessions \
            runs that are over, the newest excepted.",
        "additionalProperties": false,
        "required": ["olderThanMs"],
        "properties": {
            "olderThanMs": {
                "type": "integer",
                "minimum": 0,
                "description": "How long they must have been unused, or how long they are over."
            }
        },
        "examples": [{"olderThanMs": 2_592_000_000_u64}]
    })
}

fn prune_answer() -> Value {
    json!({
        "type": "object",
        "description": "What was removed.",
        "required": ["sessions", "runs", "rows"],
        "properties": {
            "sessions": {"type": "integer", "minimum": 0, "description": "Whole sessions."},
            "runs": {
                "type": "integer",
                "minimum": 0,
                "description": "Runs of sessions that stay."
            },
            "rows": {
                "type": "integer",
                "minimum": 0,
                "description": "Rows of the store, those of the sessions and runs included."
            }
        },
        "examples": [{"sessions": 2, "runs": 5, "rows": 131}]
    })
}

fn health() -> Value {
    json!({
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": {"type": "string", "enum": ["live", "ready", "UP"]},
            "instance": {"$ref": "#/components/schemas/Instance"}
        },
        "examples": [{"status": "live"}, {"status": "live", "instance": proven()}]
    })
}

fn instance() -> Value {
    json!({
        "type": "object",
        "description": "Which server it is, for a client that sends a challenge.",
        "required": ["proof"],
        "properties": {
            "proof": {
                "type": "string",
                "description": "sha256 over the server's token, a space and the challenge; the \
                    token is in the file `address` of the data folder."
            },
            "pid": {"type": "integer", "description": "Its process, for administrators."},
            "data": {
                "type": "string",
                "description": "The folder that holds its data, for administrators."
            }
        },
        "examples": [proven()]
    })
}

fn proven() -> Value {
    json!({
        "proof": "c19f0695b711e8d46015f7e3cc9b92dd804cc0c604c51db44b4574da2b8a1125",
        "pid": 4711,
        "data": "/srv/shop/.waypost"
    })
}
