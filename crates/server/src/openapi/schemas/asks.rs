//! Asks and the replies to them, by kind.

use super::Named;
use serde_json::{Value, json};

pub(super) fn schemas() -> Vec<Named> {
    vec![
        ("AskKind", ask_kind()),
        ("AskStatus", ask_status()),
        ("FixAction", fix_action()),
        ("Ask", ask()),
        ("AskSession", ask_session()),
        ("AskedCall", asked_call()),
        ("AskedQuestion", asked_question()),
        ("Decision", decision()),
        ("AskPage", ask_page()),
        ("AskReply", ask_reply()),
        ("ClarifyReply", clarify_reply()),
        ("ApproveReply", approve_reply()),
        ("CallDecision", call_decision()),
        ("FillReply", fill_reply()),
        ("AuthorizeReply", authorize_reply()),
        ("FixReply", fix_reply()),
    ]
}

fn ask_kind() -> Value {
    json!({
        "type": "string",
        "enum": ["clarify", "approve", "fill", "authorize", "fix"],
        "examples": ["fill"]
    })
}

fn ask_status() -> Value {
    json!({
        "type": "string",
        "enum": ["open", "decided", "expired", "withdrawn"],
        "examples": ["open"]
    })
}

fn fix_action() -> Value {
    json!({
        "type": "string",
        "description": "What can be done about a failed step.",
        "enum": ["retry", "edit", "skip", "abort", "settle"],
        "examples": ["retry"]
    })
}

fn ask() -> Value {
    json!({
        "type": "object",
        "description": "One question to a person.",
        "required": [
            "id", "kind", "session", "run", "step", "title", "body", "digest", "mayAnswer",
            "createdAt", "expiresAt", "status"
        ],
        "properties": {
            "id": {"type": "string", "description": "`ask_..`."},
            "kind": {"$ref": "#/components/schemas/AskKind"},
            "session": {"$ref": "#/components/schemas/AskSession"},
            "run": {"type": "string"},
            "step": {"type": "string"},
            "title": {"type": "string", "description": "One line for an inbox."},
            "body": {"type": "string", "description": "What is asked, in words."},
            "calls": {
                "type": "array",
                "description": "Approve: the calls. Fix: the call that failed. Fill, authorize: \
                    the call that wants it, where it is a tool that asks.",
                "items": {"$ref": "#/components/schemas/AskedCall"}
            },
            "questions": {
                "type": "array",
                "description": "Clarify: the questions of an agent, each answered by its call. \
                    Absent where `body` is the one question.",
                "items": {"$ref": "#/components/schemas/AskedQuestion"}
            },
            "schema": {"description": "Fill: JSON Schema of the answer."},
            "url": {"type": "string", "description": "Authorize: the URL to open."},
            "fault": {"$ref": "#/components/schemas/Fault"},
            "how": {
                "type": "string",
                "description": "Fix: how far the call got.",
                "enum": ["not_sent", "failed", "unknown"]
            },
            "actions": {
                "type": "array",
                "description": "Fix: what can be done.",
                "items": {"$ref": "#/components/schemas/FixAction"}
            },
            "digest": {"type": "string", "description": "sha256 over exactly what is asked."},
            "mayAnswer": {
                "type": "array",
                "description": "Who may answer; `*` is everyone who sees it.",
                "items": {"type": "string"}
            },
            "other": {
                "type": "boolean",
                "description": "Whether it must be another person than who started the run or \
                    changed what it does. Absent for no."
            },
            "subject": {
                "type": "string",
                "description": "For whom the run acts. Absent in local mode."
            },
            "createdAt": {"type": "string", "format": "date-time"},
            "expiresAt": {"type": ["string", "null"], "format": "date-time"},
            "status": {"$ref": "#/components/schemas/AskStatus"},
            "decision": {"$ref": "#/components/schemas/Decision"}
        },
        "examples": [ask_to_fill(), ask_to_fix(), ask_to_authorize(), ask_to_clarify()]
    })
}

fn ask_to_fill() -> Value {
    json!({
        "id": "ask_befb4088acd7c34cfd5df5df63e5663c", "kind": "fill",
        "session": {
            "id": "ses_01a1dd49284f70738d4494956dc96807", "space": "session", "key": "order-7"
        },
        "run": "run_01a1dd49284f758f80be22cc92ec88e6", "step": "ask_name",
        "title": "What is your name?", "body": "What is your name?",
        "schema": {"type": "object", "required": ["name"]},
        "digest": "aaeb0e2d3b9f505958da6b797b8d509ee45c269e3126aa10915a8eb62698bc42",
        "mayAnswer": ["*"],
        "createdAt": "2026-11-15T03:38:41.616Z", "expiresAt": null, "status": "decided",
        "decision": {
            "by": "local", "at": "2026-11-15T03:39:00.000Z",
            "reply": {"kind": "fill", "content": {"name": "Ann"}}
        }
    })
}

fn ask_to_fix() -> Value {
    json!({
        "id": "ask_befb4088acd7c34cfd5df5df63e5663d", "kind": "fix",
        "session": {
            "id": "ses_01a1dd49284f70738d4494956dc96807", "space": "session", "key": "order-7"
        },
        "run": "run_01a1dd49284f758f80be22cc92ec88e6", "step": "fix",
        "title": "step `fix` failed", "body": "this tool always fails",
        "calls": [{
            "callId": "call_c78b337fc55638a66b0b057b287e7d5b", "tool": "test::always_fail",
            "arguments": {}
        }],
        "fault": {"name": "ToolFailedError", "message": "this tool always fails"},
        "how": "failed", "actions": ["retry", "edit", "skip", "abort"],
        "digest": "aaeb0e2d3b9f505958da6b797b8d509ee45c269e3126aa10915a8eb62698bc42",
        "mayAnswer": ["role:lead"], "other": true, "subject": "ann",
        "createdAt": "2026-11-15T03:38:41.616Z", "expiresAt": "2026-11-16T03:38:41.616Z",
        "status": "open"
    })
}

fn ask_to_authorize() -> Value {
    json!({
        "id": "ask_befb4088acd7c34cfd5df5df63e5663d", "kind": "authorize",
        "session": {
            "id": "ses_01a1dd49284f70738d4494956dc96807", "space": "session", "key": "order-7"
        },
        "run": "run_01a1dd49284f758f80be22cc92ec88e6", "step": "authorize",
        "title": "sign in", "body": "sign in and come back",
        "url": "https://example.com/sign-in",
        "digest": "aaeb0e2d3b9f505958da6b797b8d509ee45c269e3126aa10915a8eb62698bc42",
        "mayAnswer": ["*"],
        "createdAt": "2026-11-15T03:38:41.616Z", "expiresAt": "2026-11-16T03:38:41.616Z",
        "status": "open"
    })
}

fn ask_to_clarify() -> Value {
    json!({
        "id": "ask_befb4088acd7c34cfd5df5df63e5663e", "kind": "clarify",
        "session": {
            "id": "ses_01a1dd49284f70738d4494956dc96807", "space": "thread", "key": "my-thread"
        },
        "run": "run_01a1dd49284f758f80be22cc92ec88e6", "step": "work",
        "title": "What would you like to schedule?",
        "body": "What would you like to schedule?",
        "questions": [{
            "callId": "call_c78b337fc55638a66b0b057b287e7d5b",
            "question": "What would you like to schedule?", "context": "the primary calendar"
        }],
        "digest": "aaeb0e2d3b9f505958da6b797b8d509ee45c269e3126aa10915a8eb62698bc42",
        "mayAnswer": ["*"],
        "createdAt": "2026-11-15T03:38:41.616Z", "expiresAt": null, "status": "open"
    })
}

fn asked_question() -> Value {
    json!({
        "type": "object",
        "description": "One question of an agent.",
        "required": ["callId", "question"],
        "properties": {
            "callId": {
                "type": "string",
                "description": "`call_..`: the key of its answer, where there are several."
            },
            "question": {"type": "string"},
            "context": {"type": "string", "description": "What it is about."}
        },
        "examples": [{
            "callId": "call_c78b337fc55638a66b0b057b287e7d5b",
            "question": "What would you like to schedule?", "context": "the primary calendar"
        }]
    })
}

fn ask_session() -> Value {
    json!({
        "type": "object",
        "required": ["id", "space", "key"],
        "properties": {
            "id": {"type": "string"},
            "space": {"type": "string"},
            "key": {"type": "string"}
        },
        "examples": [{
            "id": "ses_01a1dd49284f70738d4494956dc96807", "space": "session", "key": "order-7"
        }]
    })
}

fn asked_call() -> Value {
    json!({
        "type": "object",
        "required": ["callId", "tool", "arguments"],
        "properties": {
            "callId": {"type": "string", "description": "`call_..`."},
            "tool": {"type": "string"},
            "arguments": {"description": "Exactly what would be, or was, sent."}
        },
        "examples": [{
            "callId": "call_c78b337fc55638a66b0b057b287e7d5b", "tool": "math::add",
            "arguments": {"a": 1, "b": 2}
        }]
    })
}

fn decision() -> Value {
    json!({
        "type": "object",
        "description": "The reply that won.",
        "required": ["by", "at", "reply"],
        "properties": {
            "by": {"type": "string"},
            "at": {"type": "string", "format": "date-time"},
            "reply": {"description": "What was answered, with its `kind`."}
        },
        "examples": [{
            "by": "local", "at": "2026-11-15T03:39:00.000Z",
            "reply": {"kind": "clarify", "answer": "yes"}
        }]
    })
}

fn ask_page() -> Value {
    json!({
        "type": "object",
        "description": "Asks, oldest first.",
        "required": ["items", "nextCursor"],
        "properties": {
            "items": {"type": "array", "items": {"$ref": "#/components/schemas/Ask"}},
            "nextCursor": {"type": ["string", "null"]}
        },
        "examples": [{"items": [], "nextCursor": null}]
    })
}

fn ask_reply() -> Value {
    json!({
        "description": "The reply, by kind of ask.",
        "anyOf": [
            {"$ref": "#/components/schemas/ClarifyReply"},
            {"$ref": "#/components/schemas/ApproveReply"},
            {"$ref": "#/components/schemas/FillReply"},
            {"$ref": "#/components/schemas/AuthorizeReply"},
            {"$ref": "#/components/schemas/FixReply"}
        ],
        "examples": [{"action": "accept", "content": {"name": "Ann"}}]
    })
}

fn clarify_reply() -> Value {
    json!({
        "type": "object",
        "description": "To a question; `decline` gives no answer.",
        "additionalProperties": false,
        "properties": {
            "action": {"type": "string", "enum": ["accept", "decline"]},
            "answer": {
                "description": "The answer; for several questions of an agent an object of texts \
                    by call id."
            }
        },
        "examples": [{"answer": "yes"}, {"action": "decline"}]
    })
}

fn approve_reply() -> Value {
    json!({
        "type": "object",
        "description": "To an approval: one decision for each call.",
        "additionalProperties": false,
        "required": ["decisions"],
        "properties": {
            "decisions": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/CallDecision"}
            }
        },
        "examples": [{
            "decisions": [{"callId": "call_c78b337fc55638a66b0b057b287e7d5b", "approve": true}]
        }]
    })
}

fn call_decision() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["callId", "approve"],
        "properties": {
            "callId": {"type": "string"},
            "approve": {"type": "boolean"},
            "feedback": {"type": "string", "description": "The person's words."},
            "arguments": {"description": "The whole edited arguments, if they were changed."}
        },
        "examples": [{
            "callId": "call_c78b337fc55638a66b0b057b287e7d5b", "approve": false,
            "feedback": "the sum is wrong", "arguments": {"a": 1, "b": 3}
        }]
    })
}

fn fill_reply() -> Value {
    json!({
        "type": "object",
        "description": "To a form.",
        "additionalProperties": false,
        "required": ["action"],
        "properties": {
            "action": {"type": "string", "enum": ["accept", "decline"]},
            "content": {"description": "The answer, by the ask's schema."}
        },
        "examples": [{"action": "accept", "content": {"name": "Ann"}}]
    })
}

fn authorize_reply() -> Value {
    json!({
        "type": "object",
        "description": "To a URL to open.",
        "additionalProperties": false,
        "required": ["action"],
        "properties": {"action": {"type": "string", "enum": ["done", "decline"]}},
        "examples": [{"action": "done"}]
    })
}

fn fix_reply() -> Value {
    json!({
        "type": "object",
        "description": "To a failed step.",
        "additionalProperties": false,
        "required": ["action"],
        "properties": {
            "action": {"$ref": "#/components/schemas/FixAction"},
            "arguments": {"description": "The whole edited arguments, for `edit`."},
            "output": {"description": "The output, for `skip` and `settle`."}
        },
        "examples": [{"action": "edit", "arguments": {"a": 1}}, {"action": "skip", "output": 0}]
    })
}
