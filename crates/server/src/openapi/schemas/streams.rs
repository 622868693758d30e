//! The data of server-sent events.

use super::Named;
use crate::realm::DEFAULT_REALM;
use serde_json::{Value, json};

pub(super) fn schemas() -> Vec<Named> {
    vec![
        ("StreamEnd", stream_end()),
        ("FeedSnapshot", feed_snapshot()),
        ("FeedEvent", feed_event()),
        ("JournalEvent", journal_event()),
    ]
}

fn stream_end() -> Value {
    json!({
        "type": "object",
        "description": "The data of `end`, the last event of a session's stream.",
        "required": ["status"],
        "properties": {"status": {"$ref": "#/components/schemas/Status"}},
        "examples": [{"status": "completed"}]
    })
}

fn feed_snapshot() -> Value {
    json!({
        "type": "object",
        "description": "The data of `snapshot`, the first event of the feed over all sessions.",
        "required": ["realm", "cursor", "asks"],
        "properties": {
            "realm": {"type": "string"},
            "cursor": {
                "type": "string",
                "description": "Where the feed ended then, opaque: `after` for what is new."
            },
            "asks": {
                "type": "array",
                "description": "The ids of the oldest open asks.",
                "items": {"type": "string"}
            }
        },
        "examples": [{
            "realm": DEFAULT_REALM, "cursor": "wAym_7Vj3evPdSe8yBe85VxYWIZdsvEgQjUU8baB2",
            "asks": ["ask_befb4088acd7c34cfd5df5df63e5663c"]
        }]
    })
}

fn feed_event() -> Value {
    json!({
        "type": "object",
        "description": "The data of an event of the feed over all sessions.",
        "required": ["session", "event"],
        "properties": {
            "session": {"type": "string", "description": "`ses_..`."},
            "event": {"$ref": "#/components/schemas/JournalEvent"}
        },
        "examples": [{
            "session": "ses_01a1dd49285d71d2a6fbc5ee6e127904",
            "event": {
                "seq": 5, "at": 1794713921629u64, "v": 1, "type": "call.started",
                "data": {"call": "call_c78b337fc55638a66b0b057b287e7d5b"}
            }
        }]
    })
}

fn journal_event() -> Value {
    json!({
        "type": "object",
        "description": "One event of a session's journal.",
        "required": ["seq", "at", "v", "type", "data"],
        "properties": {
            "seq": {"type": "integer", "description": "Its place in the session's journal."},
            "at": {"type": "integer", "description": "Milliseconds since 1970."},
            "v": {"type": "integer", "description": "The version of its shape."},
            "type": {"type": "string", "description": "`run.started`, `call.finished`, .."},
            "data": {}
        },
        "examples": [{
            "seq": 5, "at": 1794713921629u64, "v": 1, "type": "call.started",
            "data": {"call": "call_c78b337fc55638a66b0b057b287e7d5b"}
        }]
    })
}
