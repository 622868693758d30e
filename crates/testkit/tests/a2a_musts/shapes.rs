//! Sections 4 and 5: what is written has one form, the same in each binding.

use crate::talk::{BINDINGS, Binding, INVALID, Talk, reply, said, state};
use serde_json::{Value, json};
use wire::a2a::card::AgentCard;

/// Members whose insides are the client's, or of an extension.
const FREE: [&str; 3] = ["data", "metadata", "params"];

/// Everything that the agent tells about one conversation.
fn told(talk: &Talk, binding: Binding) -> Vec<Value> {
    let task = talk.task(binding, "tck-input-required");
    let done = talk.send(binding, reply(&task, "this")).unwrap();
    let artifact = talk.task(binding, "tck-artifact-data");
    let params = json!({"message": said("tck-stream-basic")});
    let events = talk.events(binding, "SendStreamingMessage", &params).unwrap();
    let list = talk.call(binding, "ListTasks", &json!({"includeArtifacts": true})).unwrap();
    let card = talk.call(binding, "GetExtendedAgentCard", &json!({})).unwrap();
    [vec![task, done, artifact, list, card], events].concat()
}

fn each_member(value: &Value, look: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                look(name, value);
                if !FREE.contains(&name.as_str()) {
                    each_member(value, look);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| each_member(value, look)),
        _ => {}
    }
}

#[test]
fn names_are_in_camel_case_and_words_are_those_of_the_proto() {
    let talk = Talk::start();
    for binding in BINDINGS {
        for value in told(&talk, binding) {
            each_member(&value, &mut |name: &str, value: &Value| {
                assert!(!name.contains('_'), "{name}: {value}");
                let text = value.as_str().unwrap_or_default();
                match name {
                    "state" => assert!(text.starts_with("TASK_STATE_"), "{value}"),
                    "role" => assert!(["ROLE_USER", "ROLE_AGENT"].contains(&text), "{value}"),
                    _ => {}
                }
            });
        }
    }
}

#[test]
fn timestamps_are_utc_with_milliseconds() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let mut seen = 0;
        for value in told(&talk, binding) {
            each_member(&value, &mut |name: &str, value: &Value| {
                if name != "timestamp" {
                    return;
                }
                seen += 1;
                let digits: String = value
                    .as_str()
                    .unwrap()
                    .chars()
                    .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
                    .collect();
                assert_eq!(digits, "0000-00-00T00:00:00.000Z", "{value}");
            });
        }
        assert!(seen > 0, "there are timestamps");
    }
}

#[test]
fn timestamps_are_read_as_they_are_written() {
    let talk = Talk::start();
    let task = talk.task(Binding::Rpc, "hello");
    for binding in BINDINGS {
        let at = &task["status"]["timestamp"];
        for (after, total) in
            [(at, 1), (&json!("2001-01-01T00:00:00Z"), 1), (&json!("2999-01-01T00:00:00.000Z"), 0)]
        {
            let params = json!({"statusTimestampAfter": after});
            let list = talk.call(binding, "ListTasks", &params).unwrap();
            assert_eq!(list["totalSize"], total, "{after}: {list}");
        }
        // In a message of gRPC a moment is a number.
        if binding == Binding::Grpc {
            continue;
        }
        let params = json!({"statusTimestampAfter": "yesterday"});
        let fault = talk.call(binding, "ListTasks", &params).unwrap_err();
        assert!(INVALID.contains(&fault.number), "{fault:?}");
    }
}

#[test]
fn required_members_are_there() {
    let talk = Talk::start();
    for binding in BINDINGS {
        for value in told(&talk, binding) {
            let has = |value: &Value, names: &[&str]| {
                for name in names {
                    let member = &value[*name];
                    let is_there = match member {
                        Value::Null => false,
                        Value::Array(values) => !values.is_empty(),
                        _ => true,
                    };
                    assert!(is_there, "{name} in {value}");
                }
            };
            each_member(&json!({"whole": value}), &mut |name: &str, value: &Value| match name {
                "task" => has(value, &["id", "status"]),
                "status" if value.is_object() => has(value, &["state"]),
                "message" if value.is_object() => has(value, &["messageId", "role", "parts"]),
                "artifact" => has(value, &["artifactId", "parts"]),
                "statusUpdate" => has(value, &["taskId", "contextId", "status"]),
                "artifactUpdate" => has(value, &["taskId", "contextId", "artifact"]),
                _ => {}
            });
        }
    }
}

/// The same without what differs from task to task.
fn alike(value: &Value) -> Value {
    const OWN: [&str; 11] = [
        "id", "taskId", "contextId", "messageId", "timestamp", "askId", "key", "digest",
        "expiresAt", "nextPageToken", "signatures",
    ];
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
            kept.map(|(name, value)| (name.clone(), alike(value))).collect()
        }
        Value::Array(values) => values.iter().map(alike).collect(),
        value => value.clone(),
    }
}

/// A card without the members of 0.3, which gRPC does not have; anything else as it is.
fn of_1_0(value: Value) -> Value {
    match value.get("skills") {
        Some(_) => serde_json::from_value::<AgentCard>(value).unwrap().signed_content(),
        None => value,
    }
}

#[test]
fn the_same_conversation_is_the_same_in_each_binding() {
    let [rpc, rest, grpc] = BINDINGS.map(|binding| {
        let talk = Talk::start();
        let whole: Value = told(&talk, binding).into_iter().map(of_1_0).collect();
        let address = talk.base();
        // By gRPC it has no scheme.
        let host = address.trim_start_matches("http://");
        let text = alike(&whole).to_string().replace(host, "HOST");
        serde_json::from_str::<Value>(&text).unwrap()
    });
    assert_eq!(rpc, rest);
    assert_eq!(rpc, grpc);
}

#[test]
fn a_task_is_the_same_whatever_binding_reads_it() {
    let talk = Talk::start();
    let task = talk.task(Binding::Rpc, "tck-artifact-file");
    assert_eq!(state(&task), "COMPLETED");
    for binding in BINDINGS {
        let got = talk.call(binding, "GetTask", &json!({"id": task["id"]})).unwrap();
        assert_eq!(got, task);
        let params = json!({"id": task["id"], "historyLength": 0});
        let short = talk.call(binding, "GetTask", &params).unwrap();
        assert!(short.get("history").is_none(), "{short}");
    }
}

/// A text to a new task, or to this one; the task that is answered.
type Way = fn(&Talk, &str, &Value) -> Value;

/// 1.0 over each binding, and 0.3 over JSON-RPC and HTTP.
const WAYS: [Way; 5] = [
    |talk, text, task| new(talk, Binding::Rpc, text, task),
    |talk, text, task| new(talk, Binding::Rest, text, task),
    |talk, text, task| new(talk, Binding::Grpc, text, task),
    |talk, text, task| {
        let parts = json!([{"kind": "text", "text": text}]);
        let mut message = json!({"kind": "message", "messageId": "m-1", "role": "user",
            "parts": parts});
        message.as_object_mut().unwrap().extend(ids_of(task));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send",
            "params": {"message": message}});
        old(talk, "/a2a/v1", &body)["result"].clone()
    },
    |talk, text, task| {
        let content = json!([{"text": text}]);
        let mut message = json!({"messageId": "m-1", "role": "ROLE_USER", "content": content});
        message.as_object_mut().unwrap().extend(ids_of(task));
        old(talk, "/a2a/v1/v1/message:send", &json!({"message": message}))["task"].clone()
    },
];

fn ids_of(task: &Value) -> serde_json::Map<String, Value> {
    let id = task.get("id").cloned();
    id.map(|id| ("taskId".to_owned(), id)).into_iter().collect()
}

fn new(talk: &Talk, binding: Binding, text: &str, task: &Value) -> Value {
    let mut message = said(text);
    message.as_object_mut().unwrap().extend(ids_of(task));
    talk.send(binding, message).unwrap()["task"].clone()
}

/// A request without a version, which is one of 0.3.
fn old(talk: &Talk, path: &str, body: &Value) -> Value {
    let answer = talk.http("POST", path, &[], Some(&body.to_string()));
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.json()
}

#[test]
fn the_same_conversation_is_the_same_task_in_each_version() {
    let tasks = WAYS.map(|way| {
        let talk = Talk::start();
        let mut task = Value::Null;
        for text in ["tck-multi-turn", "more", "done"] {
            task = way(&talk, text, &task);
            assert!(task["id"].is_string(), "{text}: {task}");
        }
        let params = json!({"id": task["id"]});
        let read = talk.call(Binding::Rpc, "GetTask", &params).unwrap();
        assert_eq!(state(&read), "COMPLETED", "{read}");
        alike(&read)
    });
    assert!(tasks.iter().all(|task| *task == tasks[0]), "{tasks:#?}");
}
