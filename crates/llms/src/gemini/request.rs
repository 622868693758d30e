//! Renders a prompt as a `generateContent` request.

use super::PROVIDER;
use crate::dialect::Settings;
use crate::shape;
use crate::transcript::{ModelMessage, Pieces, Transcript, TranscriptCall};
use kernel::conversation::llm::{Prompt, ToolCard, ToolChoice};
use serde_json::{Map, Value, json};

/// The field of a signature.
pub(super) const SIGNATURE: &str = "thoughtSignature";
/// The provider's own word for a call that has no signature of its model: one that another model
/// made, or that was put together again.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";
/// From this generation on a call without a signature is refused.
const SIGNING_GENERATION: u32 = 3;

/// The request's body.
pub(super) fn body(settings: &Settings, prompt: &Prompt) -> Value {
    let transcript = Transcript::read(&prompt.messages);
    let mut contents = contents(&settings.model, &transcript);
    // What changes from turn to turn stands behind all that its cache may know.
    if let (Some(latest), Some(last)) = (&prompt.latest, contents.last_mut())
        && let Some(parts) = last["parts"].as_array_mut()
    {
        parts.push(text_part(latest));
    }
    let mut body = json!({"contents": contents});
    if !transcript.system.is_empty() {
        body["systemInstruction"] = json!({"parts": [{"text": transcript.system}]});
    }
    if !prompt.tools.is_empty() {
        let declared: Vec<Value> = prompt.tools.iter().map(tool).collect();
        body["tools"] = json!([{"functionDeclarations": declared}]);
        let mode = match prompt.choice {
            ToolChoice::Auto => "AUTO",
            ToolChoice::None => "NONE",
            ToolChoice::Required => "ANY",
        };
        body["toolConfig"] = json!({"functionCallingConfig": {"mode": mode}});
    }
    let mut generation = Map::new();
    if let Some(max) = settings.max_tokens {
        generation.insert("maxOutputTokens".to_owned(), json!(max));
    }
    if let Some(temperature) = settings.temperature {
        generation.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(form) = &prompt.answer {
        generation.insert("responseMimeType".to_owned(), json!("application/json"));
        generation.insert("responseJsonSchema".to_owned(), json!(form.schema));
    }
    if !generation.is_empty() {
        body["generationConfig"] = Value::Object(generation);
    }
    body
}

fn tool(card: &ToolCard) -> Value {
    json!({
        "name": card.name,
        "description": card.description,
        "parametersJsonSchema": shape::parameters(card),
    })
}

fn contents(model: &str, transcript: &Transcript<'_>) -> Vec<Value> {
    transcript.alternating(&Pieces {
        model: "model",
        key: "parts",
        text: text_part,
        spoken: &|said| spoken(model, said),
        result,
    })
}

fn spoken(model: &str, said: &ModelMessage<'_>) -> Vec<Value> {
    let native = said.native(PROVIDER, model).and_then(|native| native["parts"].as_array());
    if let Some(parts) = native.and_then(|parts| as_it_was(parts, said)) {
        return parts;
    }
    let mut parts = Vec::new();
    if !said.text.trim().is_empty() {
        parts.push(text_part(said.text));
    }
    for (index, called) in said.calls.iter().enumerate() {
        let mut part = call(called);
        // Of calls that are made together, the first one is signed.
        if index == 0 && signs(model) {
            part[SIGNATURE] = json!(NO_SIGNATURE);
        }
        parts.push(part);
    }
    parts
}

/// What the model said in the order in which it said it, with its signatures. None if the message
/// has other calls or words by now: then they do not belong to it any more.
fn as_it_was(parts: &[Value], said: &ModelMessage<'_>) -> Option<Vec<Value>> {
    let mut calls = said.calls.iter();
    let mut text = String::new();
    let mut written = Vec::new();
    for part in parts {
        let mut back = match (part["text"].as_str(), part["functionCall"].as_str()) {
            (Some(said), None) => {
                text.push_str(said);
                text_part(said)
            }
            (None, Some(tool)) => call(calls.next().filter(|called| called.tool == tool)?),
            _ => return None,
        };
        if let Some(signature) = part.get(SIGNATURE) {
            back[SIGNATURE] = signature.clone();
        }
        written.push(back);
    }
    (calls.next().is_none() && text == said.text).then_some(written)
}

fn text_part(text: &str) -> Value {
    json!({"text": text})
}

fn call(called: &TranscriptCall<'_>) -> Value {
    let call = json!({"id": called.id, "name": called.tool, "args": called.arguments});
    json!({"functionCall": call})
}

fn result(called: &TranscriptCall<'_>) -> Value {
    let outcome = called.outcome();
    let name = if outcome.failed { "error" } else { "output" };
    let response = json!({ name: outcome.text });
    let result = json!({"id": called.id, "name": called.tool, "response": response});
    json!({"functionResponse": result})
}

/// Whether a model signs its calls: the 3 of `gemini-3.8-flash`, or a name without a number, which
/// is that of the newest.
fn signs(model: &str) -> bool {
    let Some(rest) = model.strip_prefix("gemini-") else {
        return false;
    };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<u32>().map_or(true, |generation| generation >= SIGNING_GENERATION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversations::{
        assistant, call, card, prompt, random, result, route, signed, system, user,
    };

    fn settings(model: &str) -> Settings {
        Settings { model: model.to_owned(), ..Settings::default() }
    }

    #[test]
    fn changing_parts_come_last_in_a_request() {
        let mut prompt = prompt(&[user("Hi")], &[]);
        prompt.latest = Some("It is noon.".to_owned());
        let settings = Settings { model: "gemini-3.8-flash".to_owned(), ..Settings::default() };
        let parts = json!([{"text": "Hi"}, {"text": "It is noon."}]);
        assert_eq!(body(&settings, &prompt)["contents"], json!([{"role": "user", "parts": parts}]));
    }

    #[test]
    fn a_prompt_becomes_a_request() {
        let messages = [
            system("Be brief."),
            user("Hi"),
            assistant("", &[call("a", "create"), call("b", "list")]),
            result("b", "list", "none", false),
            result("a", "create", "no room", true),
            user("And now?"),
        ];
        let mut prompt = prompt(&messages, &[card("create")]);
        prompt.choice = ToolChoice::Required;
        prompt.answer = Some(route());
        let settings =
            Settings { max_tokens: Some(9), temperature: Some(0.5), ..settings("gemini-2.5-pro") };
        let called = |id: &str, name: &str| {
            let call = json!({"id": id, "name": name, "args": {"id": id}});
            json!({"functionCall": call})
        };
        let answered = |id: &str, name: &str, response: Value| {
            let result = json!({"id": id, "name": name, "response": response});
            json!({"functionResponse": result})
        };
        let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}});
        let declared = json!({"name": "create", "description": "Does create.",
            "parametersJsonSchema": schema});
        let expected = json!({
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Hi"}]},
                {"role": "model", "parts": [called("a", "create"), called("b", "list")]},
                {
                    "role": "user",
                    "parts": [
                        answered("a", "create", json!({"error": "no room"})),
                        answered("b", "list", json!({"output": "none"})),
                        {"text": "And now?"},
                    ],
                },
            ],
            "tools": [{"functionDeclarations": [declared]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
            "generationConfig": {
                "maxOutputTokens": 9,
                "temperature": 0.5,
                "responseMimeType": "application/json",
                "responseJsonSchema": route().schema,
            },
        });
        assert_eq!(body(&settings, &prompt), expected);
    }

    #[test]
    fn thought_signatures_are_returned_in_place() {
        let model = "gemini-3.8-flash";
        let parts = json!([
            {"text": "Well."},
            {"functionCall": "t", "thoughtSignature": "s1"},
            {"functionCall": "u"},
            {"text": "", "thoughtSignature": "s2"},
        ]);
        let native = json!({"model": model, "parts": parts});
        let calls = [call("a", "t"), call("b", "u")];
        let messages = |calls: &[kernel::conversation::llm::ModelCall]| {
            vec![user("x"), signed("Well.", calls, PROVIDER, native.clone())]
        };
        let said = |model: &str, calls: &[kernel::conversation::llm::ModelCall]| {
            let prompt = prompt(&messages(calls), &[]);
            body(&settings(model), &prompt)["contents"][1]["parts"].take()
        };
        let called = |id: &str, name: &str| json!({"id": id, "name": name, "args": {"id": id}});
        let expected = json!([
            {"text": "Well."},
            {"functionCall": called("a", "t"), "thoughtSignature": "s1"},
            {"functionCall": called("b", "u")},
            {"text": "", "thoughtSignature": "s2"},
        ]);
        assert_eq!(said(model, &calls), expected);
        // Another model's, or with another set of calls: no one's signature.
        let anew = said("gemini-4-argon", &calls);
        assert_eq!(anew[1][SIGNATURE], NO_SIGNATURE);
        assert_eq!(anew[2].get(SIGNATURE), None);
        let fewer = said(model, &calls[1..]);
        assert_eq!(fewer[1][SIGNATURE], NO_SIGNATURE);
        let older = said("gemini-2.5-flash", &calls);
        assert_eq!(older[1].get(SIGNATURE), None);
    }

    #[test]
    fn signing_models_are_recognised_by_name() {
        for model in ["gemini-3.8-flash", "gemini-4-argon", "gemini-flash-latest", "gemini-10-x"] {
            assert!(signs(model), "{model}");
        }
        for model in ["gemini-2.5-pro", "gemma-4-31b-it"] {
            assert!(!signs(model), "{model}");
        }
    }

    /// The rules that the API holds against a conversation.
    fn check(body: &Value) {
        let contents = body["contents"].as_array().unwrap();
        let mut open: Vec<(&str, &str)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (index, content) in contents.iter().enumerate() {
            let role = if index % 2 == 0 { "user" } else { "model" };
            assert_eq!(content["role"], role, "roles alternate, a person begins");
            let parts = content["parts"].as_array().unwrap();
            assert!(!parts.is_empty());
            let results = parts.iter().filter(|part| part.get("functionResponse").is_some());
            assert_eq!(results.count(), if role == "user" { open.len() } else { 0 });
            let mut text_before = false;
            for part in parts {
                let named = |value: &'static str| {
                    let value = &part[value];
                    Some((value["id"].as_str()?, value["name"].as_str()?))
                };
                if let Some(call) = named("functionCall") {
                    assert!(seen.insert(call.0), "`{}` twice", call.0);
                    assert!(part["functionCall"]["args"].is_object());
                    open.push(call);
                } else if let Some(result) = named("functionResponse") {
                    assert!(!text_before, "results stand first");
                    assert_eq!(open.remove(0), result, "in the order of the calls");
                    assert!(part["functionResponse"]["response"].is_object());
                } else {
                    text_before = true;
                    assert!(!part["text"].as_str().unwrap().trim().is_empty());
                }
            }
        }
        assert!(open.is_empty() && contents.len() % 2 == 1);
    }

    #[test]
    fn random_conversations_satisfy_the_providers_rules() {
        for (seed, messages) in random(2_000) {
            let body = body(&settings("gemini-3.8-flash"), &prompt(&messages, &[]));
            let checked = std::panic::catch_unwind(|| check(&body));
            assert!(checked.is_ok(), "seed {seed}: {messages:#?}\n{body:#}");
        }
    }
}
