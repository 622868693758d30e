//! Cards of calls, questions and forms that a person decides about.

use crate::asking;
use crate::outcome;
use crate::terminal::output::printable;
use kernel::values::visible::exposed;
use serde_json::Value;
use wire::conversations::{ClarificationInfo, ToolCallInfo};
use wire::rest::Ask;

/// What a person says to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CardAnswer {
    /// It may run.
    Yes,
    /// It and all that follow may run.
    All,
    /// It may not.
    No,
    /// It may, with other arguments.
    Edit,
}

impl CardAnswer {
    /// What these words mean, if they mean something.
    pub(super) fn read(words: &str) -> Option<Self> {
        match words.trim().to_lowercase().as_str() {
            "y" | "yes" => Some(CardAnswer::Yes),
            "a" | "all" => Some(CardAnswer::All),
            "n" | "no" => Some(CardAnswer::No),
            "e" | "edit" => Some(CardAnswer::Edit),
            _ => None,
        }
    }
}

/// A call as a card: which of how many, the tool, exactly what would be sent, and what its ask says
/// of it, where that is known.
pub(super) fn call(call: &ToolCallInfo, index: usize, count: usize, asks: &[Ask]) -> String {
    let place = if count > 1 { format!(" {} of {count}", index + 1) } else { String::new() };
    let arguments = indented(&outcome::pretty(&call.arguments));
    let mut lines = vec![format!("[approve{place}] {}", exposed(&call.tool_name)), arguments];
    let mut asked = asks.iter().flat_map(|ask| ask.calls.iter().map(move |call| (ask, call)));
    if let Some((ask, asked)) = asked.find(|(_, asked)| asked.call_id == call.call_id) {
        lines.extend(asking::reason_line(asked));
        lines.extend(asking::consequence_lines(ask));
    }
    lines.join("\n")
}

pub(super) fn question(asked: &ClarificationInfo, asks: &[Ask]) -> String {
    let question = match asked.context.trim() {
        "" => format!("[question] {}", printable(&asked.question)),
        context => format!("[question] {} ({})", printable(&asked.question), printable(context)),
    };
    // A question of a plan is asked by no call: its ask stands for one.
    let is_its = |ask: &&Ask| {
        ask.id == asked.call_id || ask.questions.iter().any(|one| one.call_id == asked.call_id)
    };
    with_follows(question, asks.iter().find(is_its))
}

/// The form of this ask: what it is for, and its fields.
pub(super) fn form(id: &str, message: &str, schema: &Value, asks: &[Ask]) -> String {
    let mut card = format!("[form] {}", printable(message));
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let kind = field["type"].as_str().unwrap_or("any");
        let about = field["description"].as_str().or(field["title"].as_str()).unwrap_or_default();
        let must = if required.contains(&name.as_str()) { ", needed" } else { "" };
        card.push_str(&printable(&format!("\n  {name} ({kind}{must}) {about}")));
    }
    with_follows(card.trim_end().to_owned(), asks.iter().find(|ask| ask.id == id))
}

/// A card and what follows each answer.
fn with_follows(card: String, ask: Option<&Ask>) -> String {
    let follows = ask.into_iter().flat_map(asking::consequence_lines);
    std::iter::once(card).chain(follows).collect::<Vec<_>>().join("\n")
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = printable(text).lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_card_shows_exactly_what_would_be_sent() {
        let shown = ToolCallInfo {
            call_id: "call_1".to_owned(),
            tool_name: "create_event".to_owned(),
            arguments: json!({"name": "Stand\u{1b}[2Jup"}),
        };
        let card = call(&shown, 1, 2, &[]);
        assert_eq!(
            card,
            "[approve 2 of 2] create_event\n  {\n    \"name\": \"Stand\\u001b[2Jup\"\n  }"
        );
        assert!(call(&shown, 0, 1, &[]).starts_with("[approve] create_event\n"));
        let hiding = ToolCallInfo {
            tool_name: "send\u{200b}mail".to_owned(),
            arguments: json!({"to": "alice\u{202e}moc.live@bob\u{e0041}\u{200d}"}),
            ..shown
        };
        assert_eq!(
            call(&hiding, 0, 1, &[]),
            "[approve] send\\u{200b}mail\n  {\n    \
             \"to\": \"alice\\u202emoc.live@bob\\udb40\\udc41\\u200d\"\n  }"
        );
    }

    #[test]
    fn a_form_lists_its_fields() {
        let schema = json!({"properties": {"name": {"type": "string", "title": "Your name"},
            "age": {"type": "integer"}}, "required": ["name"]});
        let card = form("ask_1", "Who comes?", &schema, &[]);
        assert!(card.contains("\n  name (string, needed) Your name"), "{card}");
        assert!(card.contains("\n  age (integer)"), "{card}");
    }

    #[test]
    fn short_and_long_answers_are_understood() {
        assert_eq!(CardAnswer::read(" Y "), Some(CardAnswer::Yes));
        assert_eq!(CardAnswer::read("all"), Some(CardAnswer::All));
        assert_eq!(CardAnswer::read("no"), Some(CardAnswer::No));
        assert_eq!(CardAnswer::read("e"), Some(CardAnswer::Edit));
        assert_eq!(CardAnswer::read("perhaps"), None);
    }
}
