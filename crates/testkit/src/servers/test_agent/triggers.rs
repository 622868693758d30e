//! Which plan a message starts: by the first words of its first part, else by the beginning of its
//! id. What begins with another row's words stands before it.

use serde_json::json;
use server::SkillChoice;
use wire::a2a::message::{Message, Part};

/// What is done if no row fits.
const USUAL: &str = "complete";
/// What is answered by a message, without a task.
const MESSAGE: &str = "message";

/// By the text, whatever the id.
const BY_TEXT: [(&str, &str); 14] = [
    ("tck-complete-task", "complete"),
    ("tck-input-required", "input-required"),
    ("tck-reject-task", "reject"),
    ("tck-message-response", MESSAGE),
    ("tck-artifact-text", "artifact-text"),
    ("tck-artifact-file-url", "artifact-file-url"),
    ("tck-artifact-file", "artifact-file"),
    ("tck-artifact-data", "artifact-data"),
    ("tck-long-running", "long"),
    ("tck-multi-turn", "multi-turn"),
    ("tck-cancel", "endless"),
    ("tck-stream-basic", "artifact-text"),
    ("tck-stream-chunked", "chunked"),
    ("tck-task-failure", "fail"),
];

/// By the id.
const BY_ID: [(&str, &str); 15] = [
    ("tck-complete-task", "complete"),
    ("tck-artifact-text", "artifact-text"),
    ("tck-artifact-file-url", "artifact-file-url"),
    ("tck-artifact-file", "artifact-file"),
    ("tck-artifact-data", "artifact-data"),
    ("tck-message-response", MESSAGE),
    ("tck-input-required", "input-required"),
    ("tck-reject-task", "reject"),
    ("tck-stream-artifact-chunked", "chunked-appended"),
    ("tck-stream-artifact-file", "artifact-file"),
    ("tck-stream-artifact-text", "artifact-text"),
    ("tck-stream-ordering-001", "artifact-text"),
    ("tck-stream-001", "artifact-text"),
    ("tck-stream-002", "quiet"),
    ("tck-stream-003", "artifact-text"),
];

/// Callers of 0.3 use this whole id.
const RESUBSCRIBE: (&str, &str) = ("test-resubscribe-message-id", "long");

/// The skill of a message.
pub(super) fn chosen(message: &Message) -> Option<SkillChoice> {
    let does = behaviour(message);
    Some(SkillChoice {
        skill: format!("tck/{}", if does == MESSAGE { USUAL } else { does }),
        input: json!({}),
        reply_message: does == MESSAGE,
    })
}

fn behaviour(message: &Message) -> &'static str {
    let text = message.parts.first().and_then(Part::as_text).unwrap_or_default().trim_start();
    let id = message.message_id.as_str();
    let row = |rows: &[(&str, &'static str)], begins: &str| {
        let found = rows.iter().find(|(words, _)| begins.starts_with(words));
        found.map(|(_, does)| *does)
    };
    row(&BY_TEXT, text)
        .or_else(|| row(&BY_ID, id))
        .or_else(|| row(&[RESUBSCRIBE], id))
        .unwrap_or(USUAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::test_agent::plans;

    fn message(id: &str, text: &str) -> Message {
        let parts = vec![Part::text(text)];
        Message { message_id: id.to_owned(), parts, ..Message::default() }
    }

    #[test]
    fn the_text_is_read_before_the_id_and_longer_words_before_shorter_ones() {
        for (id, text, does) in [
            ("tck-input-required-1", "hello", "input-required"),
            ("tck-input-required-1", "tck-cancel now", "endless"),
            ("m", "tck-artifact-file-url", "artifact-file-url"),
            ("tck-artifact-file-7", "", "artifact-file"),
            ("tck-stream-artifact-chunked", "", "chunked-appended"),
            ("tck-cancel-1", "no words for it", "complete"),
            ("test-resubscribe-message-id", "hello", "long"),
            ("m", "hello tck-cancel", "complete"),
        ] {
            assert_eq!(behaviour(&message(id, text)), does, "{id} {text}");
        }
        let lone = chosen(&message("m", "tck-message-response")).unwrap();
        assert_eq!((lone.skill.as_str(), lone.reply_message), ("tck/complete", true));
    }

    #[test]
    fn every_row_leads_to_a_plan() {
        let ids: Vec<String> =
            plans::all().iter().map(|plan| plan.default_id.to_string()).collect();
        for (_, does) in BY_TEXT.into_iter().chain(BY_ID).chain([RESUBSCRIBE]) {
            let plan = format!("tck/{}", if does == MESSAGE { USUAL } else { does });
            assert!(ids.contains(&plan), "{plan}: {ids:?}");
        }
    }
}
