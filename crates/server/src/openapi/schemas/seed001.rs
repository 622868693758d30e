//! The bodies of the doors of conversations: `/run` and `/resume`, and the state of a request.

use super::Named;
use serde_json::{Value, json};

pub(super) fn schemas() -> Vec<Named> {
    vec![
        ("RunThread", run_thread()),
        ("ResumeThread", resume_thread()),
        ("ClarificationResponse", clarification_response()),
        ("Approval", approval()),
        ("ElicitationResponse", elicitation_response()),
        ("ThreadAnswer", thread_answer()),
        ("ThreadStatus", thread_status()),
        ("PendingAction", pending_action()),
        ("PendingClarification", pending_clarification()),
        ("PendingConfirmation", pending_confirmation()),
        ("PendingForm", pending_form()),
        ("PendingPage", pending_page()),
        ("ClarificationInfo", clarification_info()),
        ("ToolCallInfo", tool_call_info()),
        ("ThreadError", thread_error()),
        ("RequestState", request_state()),
        ("ApprovalOutcome", approval_outcome()),
        ("RejectedToolFeedback", rejected_tool_feedback()),
        ("ThreadDelta", thread_delta()),
        ("ThreadRestart", thread_restart()),
        ("ToolResult", tool_result()),
    ]
}

const CALL: &str = "call_c78b337fc55638a66b0b057b287e7d5b";
const ASK: &str = "ask_befb4088acd7c34cfd5df5df63e5663c";

fn run_thread() -> Value {
    json!({
        "type": "object",
        "description": "What is said to an agent.",
        "additionalProperties": false,
        "required": ["thread_id", "user_request"],
        "properties": {
            "thread_id": {"type": "string", "description": "The conversation: any text."},
            "user_request": {"type": "string", "description": "What is wanted, in words."},
            "agent": {"type": "string", "description": "The agent; the default one if absent."}
        },
        "examples": [{
            "thread_id": "any-string", "user_request": "show me what is on my calendar",
            "agent": "assistant"
        }]
    })
}

fn resume_thread() -> Value {
    json!({
        "type": "object",
        "description": "Answers to what a thread waits for: one of the three lists, which covers \
            one or more whole asks. All of them count, or none.",
        "additionalProperties": false,
        "required": ["thread_id"],
        "properties": {
            "thread_id": {"type": "string"},
            "clarification_responses": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/ClarificationResponse"}
            },
            "approvals": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/Approval"}
            },
            "elicitation_responses": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/ElicitationResponse"}
            }
        },
        "examples": [
            {
                "thread_id": "any-string",
                "clarification_responses": [
                    {"call_id": CALL, "response": "a meeting tomorrow at 3pm"}
                ]
            },
            {"thread_id": "any-string", "approvals": [{"call_id": CALL, "approved": true}]},
            {
                "thread_id": "any-string",
                "elicitation_responses": [{"elicitation_id": ASK, "action": "decline"}]
            }
        ]
    })
}

fn clarification_response() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["call_id", "response"],
        "properties": {"call_id": {"type": "string"}, "response": {"type": "string"}},
        "examples": [{"call_id": CALL, "response": "a meeting tomorrow at 3pm"}]
    })
}

fn approval() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["call_id", "approved"],
        "properties": {
            "call_id": {"type": "string"},
            "approved": {"type": "boolean"},
            "feedback": {"type": "string", "description": "Why not; needed where rejected."},
            "arguments": {"description": "The whole edited arguments, where approved with others."}
        },
        "examples": [
            {"call_id": CALL, "approved": false, "feedback": "Wrong time, should be 10am"},
            {"call_id": CALL, "approved": true, "arguments": {"start": "2026-01-16T10:00:00"}}
        ]
    })
}

fn elicitation_response() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["elicitation_id", "action"],
        "properties": {
            "elicitation_id": {"type": "string"},
            "action": {"type": "string", "enum": ["accept", "decline", "cancel"]},
            "content": {"description": "The form's content, for `accept`."}
        },
        "examples": [{"elicitation_id": ASK, "action": "accept", "content": {"name": "Ann"}}]
    })
}

fn thread_status() -> Value {
    json!({
        "type": "string",
        "enum": [
            "success", "clarification_required", "confirmation_required", "form_required",
            "oauth_required", "running", "error"
        ],
        "examples": ["success"]
    })
}

fn thread_answer() -> Value {
    json!({
        "type": "object",
        "description": "The outcome of a request: always all keys, null where one does not apply.",
        "required": ["status", "response", "thread_id", "pending_action", "url", "message"],
        "properties": {
            "status": {"$ref": "#/components/schemas/ThreadStatus"},
            "response": {"type": ["string", "null"], "description": "The answer in words."},
            "thread_id": {"type": ["string", "null"], "description": "While it continues."},
            "pending_action": {
                "anyOf": [{"$ref": "#/components/schemas/PendingAction"}, {"type": "null"}]
            },
            "url": {"type": ["string", "null"], "description": "The page to open."},
            "message": {"type": ["string", "null"], "description": "What it is about."}
        },
        "examples": [
            {
                "status": "success", "response": "Team Meeting has been created.",
                "thread_id": null, "pending_action": null, "url": null, "message": null
            },
            {
                "status": "oauth_required", "response": "Log in first.", "thread_id": "any-string",
                "pending_action": {
                    "kind": "oauth_url", "elicitation_id": ASK,
                    "url": "https://example.com/sign-in", "message": "Log in first."
                },
                "url": "https://example.com/sign-in", "message": "Log in first."
            }
        ]
    })
}

fn pending_action() -> Value {
    json!({
        "description": "What a person has to do.",
        "oneOf": [
            {"$ref": "#/components/schemas/PendingClarification"},
            {"$ref": "#/components/schemas/PendingConfirmation"},
            {"$ref": "#/components/schemas/PendingForm"},
            {"$ref": "#/components/schemas/PendingPage"}
        ],
        "examples": [{
            "kind": "confirmation",
            "tool_calls": [{"call_id": CALL, "tool_name": "create_event", "arguments": {}}]
        }]
    })
}

fn pending_clarification() -> Value {
    json!({
        "type": "object",
        "required": ["kind", "clarifications"],
        "properties": {
            "kind": {"type": "string", "enum": ["clarification"]},
            "clarifications": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/ClarificationInfo"}
            }
        },
        "examples": [{
            "kind": "clarification",
            "clarifications": [
                {"call_id": CALL, "question": "What would you like to schedule?", "context": ""}
            ]
        }]
    })
}

fn pending_confirmation() -> Value {
    json!({
        "type": "object",
        "required": ["kind", "tool_calls"],
        "properties": {
            "kind": {"type": "string", "enum": ["confirmation"]},
            "tool_calls": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/ToolCallInfo"}
            }
        },
        "examples": [{
            "kind": "confirmation",
            "tool_calls": [
                {"call_id": CALL, "tool_name": "create_event", "arguments": {"name": "Standup"}}
            ]
        }]
    })
}

fn pending_form() -> Value {
    json!({
        "type": "object",
        "required": ["kind", "elicitation_id", "schema", "message"],
        "properties": {
            "kind": {"type": "string", "enum": ["form_elicitation"]},
            "elicitation_id": {"type": "string", "description": "The ask: `ask_..`."},
            "schema": {"description": "JSON Schema of the answer."},
            "message": {"type": "string", "description": "What it is for."}
        },
        "examples": [{
            "kind": "form_elicitation", "elicitation_id": ASK,
            "schema": {"type": "object", "required": ["name"]}, "message": "Who comes?"
        }]
    })
}

fn pending_page() -> Value {
    json!({
        "type": "object",
        "required": ["kind", "elicitation_id", "url", "message"],
        "properties": {
            "kind": {"type": "string", "enum": ["oauth_url"]},
            "elicitation_id": {"type": "string", "description": "The ask: `ask_..`."},
            "url": {"type": "string"},
            "message": {"type": "string", "description": "What it is for."}
        },
        "examples": [{
            "kind": "oauth_url", "elicitation_id": ASK, "url": "https://example.com/sign-in",
            "message": "Log in first."
        }]
    })
}

fn clarification_info() -> Value {
    json!({
        "type": "object",
        "required": ["call_id", "question", "context"],
        "properties": {
            "call_id": {
                "type": "string",
                "description": "The call that asks; for a question of a plan the ask."
            },
            "question": {"type": "string"},
            "context": {"type": "string"}
        },
        "examples": [{"call_id": CALL, "question": "When?", "context": "the primary calendar"}]
    })
}

fn tool_call_info() -> Value {
    json!({
        "type": "object",
        "required": ["call_id", "tool_name", "arguments"],
        "properties": {
            "call_id": {"type": "string"},
            "tool_name": {"type": "string"},
            "arguments": {"description": "Exactly what would be sent."}
        },
        "examples": [
            {"call_id": CALL, "tool_name": "create_event", "arguments": {"name": "Standup"}}
        ]
    })
}

fn thread_error() -> Value {
    let nothing = || json!({"type": "null"});
    json!({
        "type": "object",
        "description": "An error of `/run` and `/resume`: the keys of an answer, and more; a \
            conflict carries more members.",
        "required": [
            "status", "response", "thread_id", "pending_action", "url", "message", "code", "hint",
            "trace_id"
        ],
        "properties": {
            "status": {"$ref": "#/components/schemas/ThreadStatus"},
            "response": nothing(), "thread_id": nothing(), "pending_action": nothing(),
            "url": nothing(),
            "message": {"type": "string", "description": "Who failed and why."},
            "code": {"type": "string", "description": "A stable word for programs."},
            "hint": {"type": ["string", "null"], "description": "What to do."},
            "errors": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/FaultyValue"}
            },
            "trace_id": {"type": "string", "description": "Stands in the server's log."}
        },
        "examples": [{
            "status": "error", "response": null, "thread_id": null, "pending_action": null,
            "url": null, "message": "nothing in this thread asks about `call_1`",
            "code": "unknown_call", "hint": "nothing was done",
            "errors": [{"pointer": "/approvals/0", "detail": "nothing asks about `call_1`"}],
            "trace_id": "15932a01d2f63342e822c8effbc15cb1"
        }]
    })
}

fn request_state() -> Value {
    let nullable = |name: &str| {
        let shown = format!("#/components/schemas/{name}");
        json!({"anyOf": [{"$ref": shown}, {"type": "null"}]})
    };
    json!({
        "type": "object",
        "description": "A conversation, to be looked at.",
        "required": [
            "messages", "allowed_tool_types", "pending_action", "final_response",
            "approval_outcome", "auth_url"
        ],
        "properties": {
            "messages": {
                "type": "array",
                "description": "As a model reads them: `{type, content, ..}`, where `type` is \
                    `human`, `ai`, `tool` or `system`.",
                "items": {"type": "object"}
            },
            "allowed_tool_types": {
                "type": "array",
                "description": "What the router allowed last.",
                "items": {"type": "string"}
            },
            "pending_action": nullable("PendingAction"),
            "final_response": {"type": ["string", "null"]},
            "approval_outcome": nullable("ApprovalOutcome"),
            "auth_url": {"type": ["string", "null"]}
        },
        "examples": [{
            "messages": [{"type": "human", "content": "schedule something"}],
            "allowed_tool_types": ["calendar"], "pending_action": null, "final_response": null,
            "approval_outcome": null, "auth_url": null
        }]
    })
}

fn approval_outcome() -> Value {
    json!({
        "type": "object",
        "required": ["all_approved", "approved_call_ids", "rejected_feedback"],
        "properties": {
            "all_approved": {"type": "boolean"},
            "approved_call_ids": {"type": "array", "items": {"type": "string"}},
            "rejected_feedback": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/RejectedToolFeedback"}
            }
        },
        "examples": [{
            "all_approved": false, "approved_call_ids": [],
            "rejected_feedback": [
                {"call_id": CALL, "tool_name": "create_event", "feedback": "not on Monday"}
            ]
        }]
    })
}

fn rejected_tool_feedback() -> Value {
    json!({
        "type": "object",
        "required": ["call_id", "tool_name", "feedback"],
        "properties": {
            "call_id": {"type": "string"},
            "tool_name": {"type": "string"},
            "feedback": {"type": "string"}
        },
        "examples": [{"call_id": CALL, "tool_name": "create_event", "feedback": "not on Monday"}]
    })
}

fn thread_delta() -> Value {
    json!({
        "type": "object",
        "description": "The data of `delta`: more text of a turn that is being made.",
        "required": ["turn", "attempt", "text"],
        "properties": {
            "turn": {"type": "integer", "minimum": 1},
            "attempt": {"type": "integer", "minimum": 1},
            "text": {"type": "string"}
        },
        "examples": [{"turn": 2, "attempt": 1, "text": "Team Mee"}]
    })
}

fn thread_restart() -> Value {
    json!({
        "type": "object",
        "description": "The data of `restarted`: what was heard of this turn is void.",
        "required": ["turn", "attempt"],
        "properties": {
            "turn": {"type": "integer", "minimum": 1},
            "attempt": {"type": "integer", "minimum": 2}
        },
        "examples": [{"turn": 2, "attempt": 2}]
    })
}

fn tool_result() -> Value {
    json!({
        "type": "object",
        "description": "The data of `tool_result`; that of `tool_call` is a `ToolCallInfo`.",
        "required": ["call_id"],
        "properties": {
            "call_id": {"type": "string"},
            "output": {"description": "Its output, or what a person said to it."},
            "error": {"type": "string", "description": "Why it has none."}
        },
        "examples": [
            {"call_id": CALL, "output": {"id": "e1"}},
            {"call_id": CALL, "error": "not on Monday"}
        ]
    })
}
