//! Backups of the data folder.

use super::Named;
use serde_json::{Value, json};

pub(super) fn schemas() -> Vec<Named> {
    vec![("BackupBody", backup_body()), ("BackupAnswer", backup_answer())]
}

fn backup_body() -> Value {
    json!({
        "type": "object",
        "description": "Where the backup is written.",
        "additionalProperties": false,
        "required": ["dir"],
        "properties": {
            "dir": {
                "type": "string",
                "description": "A folder of the server's machine, as an absolute path: absent or \
                    empty, and its parent is there."
            }
        },
        "examples": [{"dir": "/mnt/backups/waypost-2026-11-15"}]
    })
}

fn backup_answer() -> Value {
    let names =
        |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
    json!({
        "type": "object",
        "description": "What is in a backup.",
        "required": ["dir", "takenAt", "files", "bytes", "beside", "leftOut"],
        "properties": {
            "dir": {"type": "string", "description": "Its folder."},
            "takenAt": {
                "type": "string",
                "format": "date-time",
                "description": "When it began: all that was acknowledged before is inside."
            },
            "files": {
                "type": "integer",
                "minimum": 0,
                "description": "How many files it has, beside the one that says so."
            },
            "bytes": {"type": "integer", "minimum": 0, "description": "How many bytes they have."},
            "beside": names(
                "What is inside beside the database and the blobs: `secret.key`, `vault`."
            ),
            "leftOut": names(
                "What lay in the data folder and is not inside, because other programs write it."
            )
        },
        "examples": [{
            "dir": "/mnt/backups/waypost-2026-11-15", "takenAt": "2026-11-15T04:09:04.123Z",
            "files": 14, "bytes": 1_572_864, "beside": ["secret.key", "vault"],
            "leftOut": ["calendar"]
        }]
    })
}
