//! Content of spans for observers that asked for it: messages, arguments and outputs as JSON in the
//! shape of the GenAI conventions, truncated where they are long.

use kernel::conversation::llm::{Message, ModelCall, Prompt, Stop};
use kernel::event::{CallMade, TurnEnd};
use serde_json::{Value, json};

/// Contents by attribute name.
pub(crate) type Contents = Vec<(&'static str, String)>;

const SYSTEM: &str = "gen_ai.system_instructions";
const INPUT: &str = "gen_ai.input.messages";
const OUTPUT: &str = "gen_ai.output.messages";
const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
const RESULT: &str = "gen_ai.tool.call.result";

pub(crate) fn asked(prompt: &Prompt, bytes_max: usize) -> Contents {
    let mut system = Vec::new();
    let mut messages = Vec::new();
    for message in &prompt.messages {
        match message {
            Message::System { text } => system.push(json!({"type": "text", "content": text})),
            other => messages.push(said(other)),
        }
    }
    messages.extend(prompt.latest.iter().map(|text| said(&Message::User { text: text.clone() })));
    let mut contents = vec![(INPUT, cut(&Value::Array(messages), bytes_max))];
    if !system.is_empty() {
        contents.push((SYSTEM, cut(&Value::Array(system), bytes_max)));
    }
    contents
}

pub(crate) fn answered(end: &TurnEnd, bytes_max: usize) -> Contents {
    let call = |made: &CallMade| tool_call(json!(made.call), &made.said, &made.arguments);
    let mut parts = words(&end.text);
    parts.extend(end.calls.iter().map(call));
    let finish_reason = stop_word(end.stop, !end.calls.is_empty());
    let message = json!({"role": "assistant", "parts": parts, "finish_reason": finish_reason});
    vec![(OUTPUT, cut(&json!([message]), bytes_max))]
}

pub(crate) fn called(arguments: &Value, output: Option<&Value>, bytes_max: usize) -> Contents {
    let mut contents = vec![(ARGUMENTS, cut(arguments, bytes_max))];
    contents.extend(output.map(|output| (RESULT, cut(output, bytes_max))));
    contents
}

/// Why a model stopped, in the words of the conventions.
pub(crate) fn stop_word(stop: Stop, calls: bool) -> &'static str {
    match (stop, calls) {
        (Stop::Length, _) => "length",
        (Stop::Refused, _) => "content_filter",
        (Stop::Done, true) => "tool_calls",
        (Stop::Done, false) => "stop",
    }
}

fn said(message: &Message) -> Value {
    match message {
        Message::System { text } => json!({"role": "system", "parts": words(text)}),
        Message::User { text } => json!({"role": "user", "parts": words(text)}),
        Message::Assistant { text, calls, .. } => {
            let call = |call: &ModelCall| tool_call(json!(call.id), &call.tool, &call.arguments);
            let mut parts = words(text);
            parts.extend(calls.iter().map(call));
            json!({"role": "assistant", "parts": parts})
        }
        Message::Result { id, text, .. } => {
            let part = json!({"type": "tool_call_response", "id": id, "response": text});
            json!({"role": "tool", "parts": [part]})
        }
    }
}

fn tool_call(id: Value, name: &str, arguments: &Value) -> Value {
    json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments})
}

fn words(text: &str) -> Vec<Value> {
    match text {
        "" => Vec::new(),
        text => vec![json!({"type": "text", "content": text})],
    }
}

/// The value as text, at most so long.
fn cut(value: &Value, bytes_max: usize) -> String {
    let mut text = value.to_string();
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_cut_at_character_boundaries() {
        assert_eq!(cut(&json!("aöb"), 100), "\"aöb\"");
        assert_eq!(cut(&json!("aöb"), 3), "\"a", "half a letter is none");
        let contents = called(&json!({"a": 1}), Some(&json!([2])), 4);
        assert_eq!(contents, [(ARGUMENTS, "{\"a\"".to_owned()), (RESULT, "[2]".to_owned())]);
    }

    #[test]
    fn a_conversation_has_the_shape_of_the_genai_conventions() {
        let call =
            ModelCall { id: "c1".into(), tool: "add".into(), arguments: json!({"a": 1}).into() };
        let result = Message::Result {
            id: "c1".into(),
            tool: "add".into(),
            text: "3".into(),
            failed: false,
        };
        let prompt = Prompt {
            messages: vec![
                Message::System { text: "be brief".into() },
                Message::User { text: "1 and 2?".into() },
                Message::Assistant { text: String::new(), calls: vec![call], native: None },
                result,
            ],
            tools: Vec::new(),
            choice: Default::default(),
            answer: None,
            latest: Some("it is noon".into()),
            now: kernel::values::ids::Millis(0),
            zone: "UTC".into(),
            trace: None,
        };
        let contents = asked(&prompt, 10_000);
        let read = |index: usize| serde_json::from_str::<Value>(&contents[index].1).unwrap();
        assert_eq!((contents[0].0, contents[1].0), (INPUT, SYSTEM));
        let parts =
            json!([{"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1}}]);
        let response = json!([{"type": "tool_call_response", "id": "c1", "response": "3"}]);
        let expected = json!([
            {"role": "user", "parts": [{"type": "text", "content": "1 and 2?"}]},
            {"role": "assistant", "parts": parts},
            {"role": "tool", "parts": response},
            {"role": "user", "parts": [{"type": "text", "content": "it is noon"}]},
        ]);
        assert_eq!(read(0), expected);
        assert_eq!(read(1), json!([{"type": "text", "content": "be brief"}]));
    }
}
