//! Converts the input that a task requires into an ask for our caller, and the answer into a
//! message for the agent. A Waypost agent describes its input as a form; other agents describe it
//! in text.

use crate::mcp::{ELICIT, read_question};
use kernel::tool::call::InputRequest;
use kernel::values::ids::ContentHash;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use wire::a2a::message::{Content, Message, Part};
use wire::a2a::task::{TaskState, TaskStatus};

/// How the answer to a question is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Style {
    /// As a text.
    Words,
    /// As the agent's own form wants it.
    Form,
    /// Not at all: someone opened a page, and the agent sees that itself.
    Page,
    /// Not at all, unless there is something to say: someone did what the agent waits for.
    Note,
}

/// A question that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenQuestion {
    /// Our key for it.
    pub(super) key: String,
    pub(super) style: Style,
    /// The agent's own key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) theirs: Option<String>,
    pub(super) status: String,
    pub(super) said: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reply {
    /// This is sent.
    Parts(Vec<Part>),
    /// No reply: the agent continues by itself.
    Nothing,
    /// The task is given up.
    Declined,
}

/// The question of a task with this status, as number `number`.
pub(super) fn question(status: &TaskStatus, number: u32) -> (OpenQuestion, InputRequest) {
    let none = Message::default();
    let message = status.message.as_ref().unwrap_or(&none);
    let is_auth = status.state == TaskState::AuthRequired;
    let words = match message.words() {
        words if !words.trim().is_empty() => words,
        _ if is_auth => "The agent waits for an authorization.".to_owned(),
        _ => "The agent waits for an answer.".to_owned(),
    };
    let ours = message.parts.iter().filter_map(Part::as_data).find_map(|data| form(data, &words));
    let (want, style, theirs) = match (ours, is_auth) {
        (Some((want @ InputRequest::Url { .. }, key)), _) => (want, Style::Page, Some(key)),
        (Some((want, key)), _) => (want, Style::Form, Some(key)),
        (None, true) => match page(message) {
            Some(url) => (InputRequest::Url { message: words, url }, Style::Page, None),
            None => (note(words), Style::Note, None),
        },
        (None, false) => (in_words(words), Style::Words, None),
    };
    let key = format!("question-{number}");
    (OpenQuestion { key, style, theirs, status: mark(status), said: said(status) }, want)
}

/// Whether a task that asked this shows with this status that it went on. Some agents give the same
/// message another id each time: what it says counts.
pub(super) fn has_moved(asked: &OpenQuestion, status: &TaskStatus) -> bool {
    !status.state.is_interrupted() || asked.said != said(status)
}

/// State and text of a status.
fn said(status: &TaskStatus) -> String {
    let words = status.message.as_ref().map(Message::words).unwrap_or_default();
    let text = format!("{}\n{words}", status.state.word());
    ContentHash::of(text.as_bytes()).as_str().to_owned()
}

/// Identifies a status that asks.
pub(super) fn mark(status: &TaskStatus) -> String {
    let said = status.message.as_ref();
    let id = said.map(|message| message.message_id.as_str()).unwrap_or_default();
    let words = said.map(Message::words).unwrap_or_default();
    let text = format!("{}\n{id}\n{words}", status.state.word());
    ContentHash::of(text.as_bytes()).as_str().to_owned()
}

/// The reply to this answer.
pub(super) fn reply(asked: &OpenQuestion, answer: &Value) -> Reply {
    let accepted = answer["action"] == "accept";
    let said = |field: &str| {
        let text = answer["content"][field].as_str();
        text.filter(|text| !text.trim().is_empty()).map(|text| vec![Part::text(text)])
    };
    match (asked.style, &asked.theirs) {
        (Style::Page, _) if accepted => Reply::Nothing,
        (Style::Form | Style::Page, Some(key)) => {
            let mut data = json!({"key": key, "action": answer["action"]});
            if let Some(content) = answer.get("content") {
                data["content"] = content.clone();
            }
            Reply::Parts(vec![Part::data(data)])
        }
        (Style::Words, _) if accepted => said("reply").map_or(Reply::Declined, Reply::Parts),
        (Style::Note, _) if accepted => said("note").map_or(Reply::Nothing, Reply::Parts),
        (Style::Words | Style::Note | Style::Form | Style::Page, _) => Reply::Declined,
    }
}

/// The form of a Waypost agent, and its key.
fn form(data: &Value, words: &str) -> Option<(InputRequest, String)> {
    let key = data["key"].as_str()?.to_owned();
    let mut params = data.clone();
    params["message"] = json!(words);
    read_question(ELICIT, &params).ok().map(|want| (want, key))
}

fn in_words(message: String) -> InputRequest {
    let schema = json!({"type": "object", "required": ["reply"],
        "properties": {"reply": {"type": "string", "title": "Reply", "minLength": 1}}});
    InputRequest::Form { message, schema: Arc::new(schema) }
}

fn note(message: String) -> InputRequest {
    let schema = json!({"type": "object",
        "properties": {"note": {"type": "string", "title": "Note to the agent"}}});
    InputRequest::Form { message, schema: Arc::new(schema) }
}

/// The page that a message names.
fn page(message: &Message) -> Option<String> {
    let is_page =
        |text: &str| Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    let listed = message.parts.iter().find_map(|part| match &part.content {
        Content::Url(url) => Some(url.clone()),
        Content::Data(data) => data["url"].as_str().map(str::to_owned),
        Content::Text(_) | Content::Raw(_) => None,
    });
    let words = message.words();
    let written = || {
        let word = words.split_whitespace().find(|word| word.contains("://"))?;
        Some(word.trim_matches(|c: char| "<>()[]\"'.,;".contains(c)).to_owned())
    };
    listed.or_else(written).filter(|url| is_page(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: TaskState, parts: Value) -> TaskStatus {
        let message = json!({"messageId": "m", "role": 2, "parts": parts});
        serde_json::from_value(json!({"state": state, "message": message})).unwrap()
    }

    fn accept(content: Value) -> Value {
        json!({"action": "accept", "content": content})
    }

    #[test]
    fn a_plain_agent_is_answered_in_text() {
        let (asked, want) =
            question(&status(TaskState::InputRequired, json!([{"text": "Where to?"}])), 3);
        assert_eq!((asked.key.as_str(), asked.style), ("question-3", Style::Words));
        let InputRequest::Form { message, schema } = want else { panic!("{want:?}") };
        assert_eq!((message.as_str(), &schema["required"]), ("Where to?", &json!(["reply"])));
        let parts = reply(&asked, &accept(json!({"reply": "Rome"})));
        assert_eq!(parts, Reply::Parts(vec![Part::text("Rome")]));
        for answer in [json!({"action": "decline"}), accept(json!({})), json!({})] {
            assert_eq!(reply(&asked, &answer), Reply::Declined);
        }
        let (_, want) = question(&status(TaskState::InputRequired, json!([])), 1);
        assert!(matches!(want, InputRequest::Form { message, .. } if message.contains("waits")));
    }

    #[test]
    fn a_waypost_agent_asks_with_its_own_form() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let data = json!({"kind": "elicitation", "key": "k", "mode": "form",
            "requestedSchema": schema});
        let parts = json!([{"text": "How many?"}, {"data": data}]);
        let (asked, want) = question(&status(TaskState::InputRequired, parts), 1);
        assert_eq!((asked.style, asked.theirs.as_deref()), (Style::Form, Some("k")));
        assert_eq!(
            want,
            InputRequest::Form { message: "How many?".to_owned(), schema: Arc::new(schema) }
        );
        let answered = |answer: Value| match reply(&asked, &answer) {
            Reply::Parts(parts) => parts[0].as_data().unwrap().clone(),
            other => panic!("{other:?}"),
        };
        let content = json!({"key": "k", "action": "accept", "content": {"n": 1}});
        assert_eq!(answered(accept(json!({"n": 1}))), content);
        let declined = json!({"key": "k", "action": "decline"});
        assert_eq!(answered(json!({"action": "decline"})), declined);
    }

    #[test]
    fn an_authorization_is_a_page_or_something_to_be_done() {
        for parts in [
            json!([{"text": "Log in."}, {"url": "https://a.test/login"}]),
            json!([{"text": "Log in at <https://a.test/login>."}]),
            json!([{"data": {"url": "https://a.test/login"}}]),
        ] {
            let (asked, want) = question(&status(TaskState::AuthRequired, parts), 1);
            assert!(matches!(want, InputRequest::Url { url, .. } if url == "https://a.test/login"));
            assert_eq!(reply(&asked, &json!({"action": "accept"})), Reply::Nothing);
            assert_eq!(reply(&asked, &json!({"action": "decline"})), Reply::Declined);
        }
        let approval = status(TaskState::AuthRequired, json!([{"text": "Ask the boss."}]));
        let (asked, _) = question(&approval, 1);
        assert_eq!(asked.style, Style::Note);
        assert_eq!(reply(&asked, &accept(json!({}))), Reply::Nothing);
        let note = reply(&asked, &accept(json!({"note": "she said yes"})));
        assert_eq!(note, Reply::Parts(vec![Part::text("she said yes")]));
        let bad = status(TaskState::AuthRequired, json!([{"url": "javascript:alert(1)"}]));
        assert_eq!(question(&bad, 1).0.style, Style::Note);
    }

    #[test]
    fn a_task_moved_on_if_it_waits_no_more_or_asks_something_else() {
        let waiting = status(TaskState::AuthRequired, json!([{"text": "a"}]));
        let (asked, _) = question(&waiting, 1);
        let mut again = waiting.clone();
        again.message.as_mut().unwrap().message_id = "another".to_owned();
        assert!(!has_moved(&asked, &waiting) && !has_moved(&asked, &again));
        for other in [
            status(TaskState::Working, json!([{"text": "a"}])),
            status(TaskState::Canceled, json!([])),
            status(TaskState::InputRequired, json!([{"text": "a"}])),
            status(TaskState::AuthRequired, json!([{"text": "b"}])),
        ] {
            assert!(has_moved(&asked, &other), "{other:?}");
        }
    }

    #[test]
    fn a_status_is_identified_by_its_content() {
        let one = status(TaskState::AuthRequired, json!([{"text": "a"}]));
        let other = status(TaskState::AuthRequired, json!([{"text": "b"}]));
        assert_eq!(mark(&one), mark(&one.clone()));
        assert_ne!(mark(&one), mark(&other));
    }
}
