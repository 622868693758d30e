//! Renders a prompt as a chat completion request.

use super::PROVIDER;
use crate::dialect::Settings;
use crate::shape;
use crate::transcript::{Entry, GAP, ModelMessage, Transcript, TranscriptCall};
use kernel::conversation::llm::{Prompt, ToolCard, ToolChoice};
use serde_json::{Map, Value, json};

/// A model that completes chats.
pub(super) struct Chat {
    pub(super) settings: Settings,
    /// Whether it is OpenAI itself.
    pub(super) own: bool,
}

/// Models that call tools in chat completions only while they do not think.
const THOUGHTLESS_WITH_TOOLS: &[&str] = &["gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6"];
/// Those of them that cannot stop thinking: they are sent no such word, and say themselves what
/// they do not do.
const ALWAYS_THINKING: &[&str] = &["gpt-6-astra", "gpt-6.1-sol"];
/// Fields in which a model's thoughts come, and in which some servers want them back.
pub(super) const THOUGHTS: &[&str] = &["reasoning_content", "reasoning"];
/// A member that gateways add to a call and require back.
pub(super) const EXTRA: &str = "extra_content";

/// The request's body.
pub(super) fn body(Chat { settings, own }: &Chat, prompt: &Prompt) -> Value {
    let mut messages = messages(&settings.model, &Transcript::read(&prompt.messages));
    if let (Some(latest), Some(last)) = (&prompt.latest, messages.last_mut()) {
        behind(last, latest);
    }
    let mut body = json!({
        "model": settings.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let Some(max) = settings.max_tokens {
        let name = if *own { "max_completion_tokens" } else { "max_tokens" };
        body[name] = json!(max);
    }
    if let Some(temperature) = settings.temperature {
        body["temperature"] = json!(temperature);
    }
    if !prompt.tools.is_empty() {
        body["tools"] = prompt.tools.iter().map(tool).collect();
        match prompt.choice {
            // What it is where nothing is said; some servers know no `tool_choice`.
            ToolChoice::Auto => {}
            ToolChoice::None => body["tool_choice"] = json!("none"),
            ToolChoice::Required => body["tool_choice"] = json!("required"),
        }
        if is_thoughtless(&settings.model) {
            body["reasoning_effort"] = json!("none");
        }
    }
    if let Some(form) = &prompt.answer {
        let schema = json!({"name": form.name, "strict": true, "schema": form.schema});
        body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    }
    body
}

/// Ends the last message with what changes from turn to turn: servers keep in their caches what a
/// request begins with. A message of its own would break the order of roles that open models want.
fn behind(last: &mut Value, latest: &str) {
    let ended = last["content"].as_str().map(|content| format!("{content}{GAP}{latest}"));
    if let Some(ended) = ended {
        last["content"] = json!(ended);
    }
}

fn is_thoughtless(model: &str) -> bool {
    let is_one_of = |names: &[&str]| names.iter().any(|name| model.starts_with(name));
    is_one_of(THOUGHTLESS_WITH_TOOLS) && !is_one_of(ALWAYS_THINKING)
}

fn tool(card: &ToolCard) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": card.name,
            "description": card.description,
            "parameters": shape::parameters(card),
        },
    })
}

fn messages(model: &str, transcript: &Transcript<'_>) -> Vec<Value> {
    let mut messages = Vec::new();
    if !transcript.system.is_empty() {
        messages.push(json!({"role": "system", "content": transcript.system}));
    }
    for entry in &transcript.entries {
        match entry {
            Entry::User(text) => messages.push(json!({"role": "user", "content": text})),
            Entry::Model(said) => {
                let spoken = spoken(model, said);
                match messages.last_mut() {
                    // Templates of open models want the roles to alternate.
                    Some(before) if before["role"] == "assistant" => merge(before, spoken),
                    _ => messages.push(Value::Object(spoken)),
                }
                messages.extend(said.calls.iter().map(result));
            }
        }
    }
    messages
}

/// What the model said, with what the server wants back of its thoughts.
fn spoken(model: &str, said: &ModelMessage<'_>) -> Map<String, Value> {
    let native = said.native(PROVIDER, model);
    let content = if said.text.is_empty() { Value::Null } else { json!(said.text) };
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), content);
    if let Some(native) = native {
        for name in THOUGHTS {
            if let Some(thoughts) = native.get(name) {
                message.insert((*name).to_owned(), thoughts.clone());
            }
        }
    }
    if !said.calls.is_empty() {
        let extras = native.and_then(|native| native["extras"].as_array());
        let extra = |index: usize| extras.and_then(|extras| extras.get(index));
        let calls = said.calls.iter().enumerate();
        let calls = calls.map(|(index, called)| call(called, extra(index))).collect();
        message.insert("tool_calls".to_owned(), calls);
    }
    message
}

fn call(called: &TranscriptCall<'_>, extra: Option<&Value>) -> Value {
    let function = json!({"name": called.tool, "arguments": called.arguments.to_string()});
    let mut call = json!({"id": called.id, "type": "function", "function": function});
    if let Some(extra) = extra.filter(|extra| !extra.is_null()) {
        call[EXTRA] = extra.clone();
    }
    call
}

fn result(called: &TranscriptCall<'_>) -> Value {
    let outcome = called.outcome();
    // The dialect has no word for a failure.
    let content =
        if outcome.failed { format!("Error: {}", outcome.text) } else { outcome.text.to_owned() };
    json!({"role": "tool", "tool_call_id": called.id, "content": content})
}

/// Two messages of the model in a row become one. The first has no calls: results would follow it.
fn merge(before: &mut Value, spoken: Map<String, Value>) {
    for (name, value) in spoken {
        let known = before[name.as_str()].as_str().filter(|known| !known.is_empty());
        let value = match (name.as_str(), known, value.as_str()) {
            ("content", Some(known), Some(more)) => json!(format!("{known}{GAP}{more}")),
            ("content", Some(_), None) => continue,
            _ => value,
        };
        before[name.as_str()] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversations::{
        assistant, call, card, prompt, random, result, route, signed, system, user,
    };
    use crate::transcript::ID_CHARS_MAX;
    use std::collections::HashSet;

    fn chat(model: &str, own: bool) -> Chat {
        Chat { settings: Settings { model: model.to_owned(), ..Settings::default() }, own }
    }

    #[test]
    fn changing_parts_come_last_in_a_request() {
        let mut said = vec![system("Be brief."), user("Hi")];
        let messages = |said: &[kernel::conversation::llm::Message], time: &str| {
            let mut prompt = prompt(said, &[card("t")]);
            prompt.latest = Some(time.to_owned());
            body(&chat("m", false), &prompt)["messages"].clone()
        };
        let first = messages(&said, "It is noon.");
        assert_eq!(first[1], json!({"role": "user", "content": "Hi\n\nIt is noon."}));
        said.extend([assistant("", &[call("a", "t")]), result("a", "t", "ok", false)]);
        let second = messages(&said, "It is one.");
        assert_eq!((&second[0], &second[1]["content"]), (&first[0], &json!("Hi")));
        assert_eq!(second[3]["content"], "ok\n\nIt is one.");
    }

    #[test]
    fn a_prompt_becomes_a_request() {
        let messages = [
            system("Be brief."),
            user("Hi"),
            assistant("", &[call("a", "create"), call("b", "list")]),
            result("a", "create", "no room", true),
            result("b", "list", "none", false),
        ];
        let mut prompt = prompt(&messages, &[card("create")]);
        prompt.choice = ToolChoice::Required;
        let mut chat = chat("m", false);
        chat.settings.max_tokens = Some(9);
        chat.settings.temperature = Some(0.5);
        let function = |id: &str, name: &str| {
            let arguments = format!("{{\"id\":\"{id}\"}}");
            let function = json!({"name": name, "arguments": arguments});
            json!({"id": id, "type": "function", "function": function})
        };
        let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}});
        let expected = json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
                {
                    "role": "assistant",
                    "content": null,
                    "tool_calls": [function("a", "create"), function("b", "list")],
                },
                {"role": "tool", "tool_call_id": "a", "content": "Error: no room"},
                {"role": "tool", "tool_call_id": "b", "content": "none"},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 9,
            "temperature": 0.5,
            "tools": [{
                "type": "function",
                "function": {
                    "name": "create",
                    "description": "Does create.",
                    "parameters": schema,
                },
            }],
            "tool_choice": "required",
        });
        assert_eq!(body(&chat, &prompt), expected);
    }

    #[test]
    fn a_response_form_is_sent_as_a_strict_schema() {
        let mut prompt = prompt(&[user("Hi")], &[]);
        prompt.answer = Some(route());
        let mut chat = chat("gpt-6.1-terra", true);
        chat.settings.max_tokens = Some(9);
        let body = body(&chat, &prompt);
        let schema = json!({"name": "route", "strict": true, "schema": route().schema});
        let format = json!({"type": "json_schema", "json_schema": schema});
        assert_eq!(body["response_format"], format);
        assert_eq!(body["max_completion_tokens"], 9);
        assert_eq!(body.get("max_tokens"), None);
        assert_eq!(body.get("reasoning_effort"), None, "it may think about a form");
    }

    #[test]
    fn reasoning_is_off_for_models_that_cannot_combine_it_with_calls() {
        let prompt = prompt(&[user("Hi")], &[card("t")]);
        let effort = |model: &str| body(&chat(model, true), &prompt)["reasoning_effort"].take();
        for model in ["gpt-6.1-terra", "gpt-6-luna", "gpt-5.6-sol-2026-07-09", "gpt-5.4"] {
            assert_eq!(effort(model), "none", "{model}");
        }
        for model in ["gpt-4.1", "gpt-6-astra", "gpt-6.1-sol", "llama3.3", "o4-mini"] {
            assert_eq!(effort(model), Value::Null, "{model}");
        }
    }

    #[test]
    fn provider_specific_members_are_returned_to_their_server() {
        let native = json!({
            "model": "m",
            "reasoning_content": "Hm.",
            "extras": [null, {"google": {"thought_signature": "s"}}],
        });
        let calls = [call("a", "t"), call("b", "t")];
        let messages = [user("x"), signed("", &calls, PROVIDER, native)];
        let prompt = prompt(&messages, &[]);
        let said = body(&chat("m", false), &prompt)["messages"][1].take();
        assert_eq!(said["reasoning_content"], "Hm.");
        assert_eq!(said["tool_calls"][0].get(EXTRA), None);
        assert_eq!(said["tool_calls"][1][EXTRA]["google"]["thought_signature"], "s");
        let other = body(&chat("n", false), &prompt)["messages"][1].take();
        assert_eq!(other.get("reasoning_content"), None);
    }

    #[test]
    fn consecutive_texts_are_merged_into_one_message() {
        let messages = [
            user("x"),
            assistant("One.", &[]),
            assistant("Two.", &[]),
            assistant("", &[call("a", "t")]),
            result("a", "t", "ok", false),
        ];
        let body = body(&chat("m", false), &prompt(&messages, &[]));
        let roles: Vec<&str> = roles(&body);
        assert_eq!(roles, ["user", "assistant", "tool"]);
        assert_eq!(body["messages"][1]["content"], "One.\n\nTwo.");
        assert_eq!(body["messages"][1]["tool_calls"][0]["id"], "a");
    }

    fn roles(body: &Value) -> Vec<&str> {
        let messages = body["messages"].as_array().unwrap();
        messages.iter().map(|message| message["role"].as_str().unwrap()).collect()
    }

    /// The rules that the API holds against a conversation.
    fn check(body: &Value) {
        let mut seen = HashSet::new();
        let mut open: Vec<&str> = Vec::new();
        let mut before = "";
        for (index, message) in body["messages"].as_array().unwrap().iter().enumerate() {
            let role = message["role"].as_str().unwrap();
            match role {
                "system" => assert_eq!(index, 0),
                "tool" => {
                    let id = message["tool_call_id"].as_str().unwrap();
                    let at = open.iter().position(|known| *known == id);
                    open.remove(at.expect("a result without a call"));
                    assert!(message["content"].is_string());
                }
                _ => {
                    assert_ne!(role, before, "roles alternate");
                    assert!(open.is_empty(), "a call without a result: {open:?}");
                }
            }
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let id = call["id"].as_str().unwrap();
                assert!(!id.is_empty() && id.len() <= ID_CHARS_MAX, "{id}");
                assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
                assert!(seen.insert(id), "`{id}` twice");
                let arguments = call["function"]["arguments"].as_str().unwrap();
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                assert!(arguments.is_object());
                open.push(id);
            }
            before = role;
        }
        assert!(open.is_empty(), "a call without a result: {open:?}");
        assert_ne!(before, "assistant", "it does not end with the model");
    }

    #[test]
    fn random_conversations_satisfy_the_providers_rules() {
        for (seed, messages) in random(2_000) {
            let body = body(&chat("m", false), &prompt(&messages, &[]));
            let checked = std::panic::catch_unwind(|| check(&body));
            assert!(checked.is_ok(), "seed {seed}: {messages:#?}\n{body:#}");
        }
    }
}
