//! Sinks of events, and deliveries to them.

use super::Named;
use serde_json::{Value, json};

pub(super) fn schemas() -> Vec<Named> {
    vec![
        ("Sink", sink()),
        ("SinkPage", page("Sink", "Sinks, by name.")),
        ("Delivery", delivery()),
        ("DeliveryStatus", delivery_status()),
        ("DeliveryPage", page("Delivery", "Deliveries, newest first.")),
    ]
}

fn sink() -> Value {
    let count = |about: &str| json!({"type": "integer", "minimum": 0, "description": about});
    json!({
        "type": "object",
        "description": "A place that events go to.",
        "required": [
            "name", "type", "status", "place", "lag", "delivered", "failed", "retrying"
        ],
        "properties": {
            "name": {"type": "string"},
            "type": {
                "type": "string",
                "description": "`unknown` where it is not configured.",
                "enum": ["stdout", "file", "webhook", "unknown"]
            },
            "status": {
                "type": "string",
                "description": "`gone`: its receiver said so, and events wait until it is resumed. \
                    `unconfigured`: the settings do not have it any more, and retention keeps what \
                    it has not passed until it is forgotten.",
                "enum": ["sending", "gone", "unconfigured"]
            },
            "target": {
                "type": "string",
                "description": "A file, or an address without query and password."
            },
            "types": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Patterns of the types that go there; absent where all do."
            },
            "place": {
                "type": "string",
                "description": "How far it came in the feed, opaque: `after` for what is ahead \
                    of it."
            },
            "lag": count("Rows of the feed that are still ahead of it."),
            "delivered": count("Events that it took since the server started."),
            "failed": count("Events that were given up since then."),
            "retrying": count("Events that are tried again."),
            "lastError": {
                "type": "string",
                "description": "What went wrong last since the server started."
            }
        },
        "examples": [
            {
                "name": "events", "type": "file", "status": "sending",
                "target": "/var/lib/waypost/events.jsonl",
                "place": "wAym_7ViDJoFl7a_tOcK2VoDYcKMDR90xNfW5tfb-", "lag": 0,
                "delivered": 42, "failed": 0, "retrying": 0
            },
            {
                "name": "hook", "type": "webhook", "status": "sending",
                "target": "https://hooks.example.com/waypost",
                "types": ["TradeRepaired", "waypost.run.*"],
                "place": "wAym_7Vj3evPdSe8yBe85VxYWIZdsvEgQjUU8baB2", "lag": 1,
                "delivered": 7, "failed": 1, "retrying": 1,
                "lastError": "the receiver answered 500"
            },
            {
                "name": "old-hook", "type": "unknown", "status": "unconfigured",
                "place": "wAym_7VgKLx8KPOkDrTrwK_vmXF07EeJFObRPYavf", "lag": 15,
                "delivered": 0, "failed": 0, "retrying": 0
            }
        ]
    })
}

fn delivery() -> Value {
    let time = json!({"type": "string", "format": "date-time"});
    json!({
        "type": "object",
        "description": "One event's way to one sink.",
        "required": [
            "event", "type", "sink", "session", "seq", "status", "attempts", "firstAt", "lastAt"
        ],
        "properties": {
            "event": {"type": "string", "description": "The event's id."},
            "type": {"type": "string", "description": "The event's type."},
            "sink": {"type": "string"},
            "session": {"type": "string", "description": "`ses_..`."},
            "seq": {"type": "integer", "description": "Its place in the session's journal."},
            "status": {"$ref": "#/components/schemas/DeliveryStatus"},
            "attempts": {"type": "integer", "minimum": 0},
            "firstAt": time.clone(),
            "lastAt": time.clone(),
            "nextAt": time,
            "code": {
                "type": "integer",
                "description": "The HTTP status that the receiver answered with last."
            },
            "error": {"type": "string", "description": "What went wrong last."}
        },
        "examples": [{
            "event": "ses_01a1dd49285d71d2a6fbc5ee6e127904.5", "type": "TradeRepaired",
            "sink": "hook", "session": "ses_01a1dd49285d71d2a6fbc5ee6e127904", "seq": 5,
            "status": "retrying", "attempts": 2, "firstAt": "2026-11-15T04:09:04.123Z",
            "lastAt": "2026-11-15T04:09:05.130Z", "nextAt": "2026-11-15T04:09:07.140Z",
            "code": 500, "error": "the receiver answered 500"
        }]
    })
}

fn delivery_status() -> Value {
    json!({
        "type": "string",
        "description": "`failed`: it is not tried again by itself; it can be sent again by hand.",
        "enum": ["retrying", "delivered", "failed"],
        "examples": ["retrying", "delivered", "failed"]
    })
}

fn page(item: &str, about: &str) -> Value {
    json!({
        "type": "object",
        "description": about,
        "required": ["items", "nextCursor"],
        "properties": {
            "items": {
                "type": "array",
                "items": {"$ref": format!("#/components/schemas/{item}")}
            },
            "nextCursor": {"type": ["string", "null"]}
        },
        "examples": [{"items": [], "nextCursor": null}]
    })
}
