//! The examples of the A2A specification: each is read as its type, and written as it was, but for
//! what the specification itself says of defaults, required members, numbers and timestamps.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wire::a2a::card::AgentCard;
use wire::a2a::error::{A2aError, ErrorKind};
use wire::a2a::message::Message;
use wire::a2a::request::SendMessageRequest;
use wire::a2a::task::StreamResponse;

const EXAMPLES: &str = include_str!("a2a/examples.json");

fn examples(kind: &str) -> Vec<(String, Value)> {
    let all: Vec<Value> = serde_json::from_str(EXAMPLES).unwrap();
    let of_kind = all.into_iter().filter(|example| example["type"] == kind);
    let found: Vec<_> = of_kind
        .map(|example| (example["section"].as_str().unwrap().to_owned(), example["value"].clone()))
        .collect();
    assert!(!found.is_empty(), "no example of {kind}");
    found
}

/// What is written has every member of the example, as it was, and beside them only those that are
/// required.
fn covers(written: &Value, example: &Value, path: &str) {
    match (written, example) {
        (Value::Object(written), Value::Object(example)) => {
            for (key, value) in example {
                let path = format!("{path}.{key}");
                match written.get(key) {
                    Some(found) => covers(found, value, &path),
                    None => assert_eq!(value, &json!(false), "{path} is lost"),
                }
            }
            for (key, value) in written.iter().filter(|(key, _)| !example.contains_key(*key)) {
                let is_empty = matches!(value.as_str(), Some(""))
                    || value.as_array().is_some_and(Vec::is_empty)
                    || value.as_object().is_some_and(serde_json::Map::is_empty);
                assert!(is_empty, "{path}.{key} came from nowhere: {value}");
            }
        }
        (Value::Array(written), Value::Array(example)) => {
            assert_eq!(written.len(), example.len(), "{path}");
            for (index, (written, example)) in written.iter().zip(example).enumerate() {
                covers(written, example, &format!("{path}[{index}]"));
            }
        }
        (written, example) if path.ends_with("status.timestamp") => {
            let seconds = |text: &Value| text.as_str().unwrap()[..19].to_owned();
            assert_eq!(seconds(written), seconds(example), "{path}");
        }
        (Value::Number(written), Value::Number(example)) => {
            assert_eq!(written.as_f64(), example.as_f64(), "{path}");
        }
        (written, example) => assert_eq!(written, example, "{path}"),
    }
}

fn round<T: DeserializeOwned + Serialize>(kind: &str, leave_out: &[&str]) {
    for (section, mut example) in examples(kind) {
        for member in leave_out {
            example.as_object_mut().unwrap().remove(*member);
        }
        let read: T = serde_json::from_value(example.clone())
            .unwrap_or_else(|error| panic!("{section}: {error}"));
        covers(&serde_json::to_value(read).unwrap(), &example, &section);
    }
}

#[test]
fn messages_and_requests_round_trip() {
    round::<Message>("Message", &[]);
    round::<SendMessageRequest>("SendMessageRequest", &[]);
    round::<StreamResponse>("StreamResponse", &[]);
}

#[test]
fn cards_round_trip() {
    // `security` is left over from 0.3.
    round::<AgentCard>("AgentCard", &["security"]);
}

#[test]
fn errors_are_known_by_their_names() {
    let known: Vec<ErrorKind> = examples("JsonRpcError")
        .iter()
        .map(|(_, error)| {
            let read = A2aError::of_rpc(error);
            assert_eq!(read.to_rpc().to_value(), *error);
            read.kind
        })
        .collect();
    assert_eq!(known, [ErrorKind::InvalidParams, ErrorKind::TaskNotFound]);
    for (_, body) in examples("HttpError") {
        let read = A2aError::of_rest(404, &body);
        assert_eq!((read.kind, read.to_rest()), (ErrorKind::TaskNotFound, body));
    }
}

#[test]
fn the_signed_form_of_a_card_has_required_members_and_no_defaults() {
    let card: AgentCard = serde_json::from_value(json!({"name": "Example Agent",
        "description": "", "capabilities": {"streaming": false, "pushNotifications": false,
        "extensions": []}, "skills": [], "signatures": [{"protected": "a", "signature": "b"}],
        "url": "https://old.test", "iconUrl": "", "securitySchemes": {}}))
    .unwrap();
    let signed = card.signed_content();
    let expected = json!({"name": "Example Agent", "description": "",
        "capabilities": {"streaming": false, "pushNotifications": false}, "skills": [],
        "supportedInterfaces": [], "version": "", "defaultInputModes": [],
        "defaultOutputModes": [], "iconUrl": ""});
    assert_eq!(signed, expected);
}
