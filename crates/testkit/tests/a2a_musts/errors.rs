//! Sections 3.3.2, 3.3.4, 5.4, 9.3, 9.5 and 11.6: what is refused, and how that is reported.

use crate::talk::{BINDINGS, Binding, Fault, INVALID, Talk, reply, said};
use serde_json::{Value, json};

/// The methods about webhooks.
const PUSH: [&str; 4] = [
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
];

/// An error of A2A, as the table of section 5.4 has it.
struct Row {
    reason: &'static str,
    code: i64,
    http: i64,
    grpc: i64,
}

const NOT_FOUND: Row = Row { reason: "TASK_NOT_FOUND", code: -32001, http: 404, grpc: 5 };
const NOT_CANCELABLE: Row = Row { reason: "TASK_NOT_CANCELABLE", code: -32002, http: 400, grpc: 9 };
const NO_PUSH: Row =
    Row { reason: "PUSH_NOTIFICATION_NOT_SUPPORTED", code: -32003, http: 400, grpc: 9 };
const UNSUPPORTED: Row = Row { reason: "UNSUPPORTED_OPERATION", code: -32004, http: 400, grpc: 9 };

fn is_row(binding: Binding, fault: &Fault, row: &Row) {
    let number = match binding {
        Binding::Rpc => row.code,
        Binding::Rest => row.http,
        Binding::Grpc => row.grpc,
    };
    assert_eq!((fault.reason(), fault.number), (row.reason, number), "{binding:?}: {fault:?}");
    is_whole(fault);
}

/// Every error has a number, words, and details that say what they are.
fn is_whole(fault: &Fault) {
    assert!(!fault.message.is_empty(), "{fault:?}");
    for detail in &fault.details {
        let kind = detail["@type"].as_str().unwrap_or_default();
        assert!(kind.starts_with("type.googleapis.com/google.rpc."), "{fault:?}");
    }
}

#[test]
fn errors_are_those_of_the_table_in_each_binding() {
    let talk = Talk::start();
    let missing = json!({"id": "no-such-task"});
    for binding in BINDINGS {
        for method in ["GetTask", "CancelTask"] {
            let fault = talk.call(binding, method, &missing).unwrap_err();
            is_row(binding, &fault, &NOT_FOUND);
        }
        let fault = talk.events(binding, "SubscribeToTask", &missing).unwrap_err();
        is_row(binding, &fault, &NOT_FOUND);
        let done = talk.task(binding, "tck-complete-task");
        let fault = talk.call(binding, "CancelTask", &json!({"id": done["id"]})).unwrap_err();
        is_row(binding, &fault, &NOT_CANCELABLE);
        let fault = talk.send(binding, reply(&done, "more")).unwrap_err();
        is_row(binding, &fault, &UNSUPPORTED);
        let params = json!({"message": reply(&done, "more")});
        let fault = talk.events(binding, "SendStreamingMessage", &params).unwrap_err();
        is_row(binding, &fault, &UNSUPPORTED);
    }
}

#[test]
fn errors_of_http_have_the_form_of_google() {
    let talk = Talk::start();
    let fault = talk.call(Binding::Rest, "GetTask", &json!({"id": "none"})).unwrap_err();
    let whole = &fault.whole;
    assert_eq!((&whole["code"], &whole["status"]), (&json!(404), &json!("NOT_FOUND")), "{whole}");
    assert!(whole["details"].is_array() && whole["message"].is_string(), "{whole}");
    for (path, verb, status) in
        [("/a2a/v1/tasks", "DELETE", 405), ("/a2a/v1/message:send", "GET", 405)]
    {
        let answer = talk.http(verb, path, &[("a2a-version", "1.0")], None);
        assert_eq!(answer.status, status, "{verb} {path}: {}", answer.body);
        assert!(answer.json()["error"]["message"].is_string(), "{}", answer.body);
    }
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_done() {
    let talk = Talk::start();
    let without = |name: &str| {
        let mut message = said("hello");
        message.as_object_mut().unwrap().remove(name);
        json!({"message": message})
    };
    let with = |name: &str, value: Value| {
        let mut message = said("hello");
        message[name] = value;
        json!({"message": message})
    };
    let ambiguous = with("parts", json!([{"text": "a", "url": "https://example.com"}]));
    for (binding, number) in BINDINGS.into_iter().zip(INVALID) {
        for params in [
            json!({}),
            without("messageId"),
            without("parts"),
            without("role"),
            with("parts", json!([])),
            with("parts", json!([{}])),
            ambiguous.clone(),
            with("parts", json!("hello")),
            with("role", json!("ROLE_AGENT")),
            with("role", json!("ROLE_NOBODY")),
            json!({"message": said("hello"), "configuration": {"historyLength": -1}}),
        ] {
            // Of several that exclude each other, the last one in a message of gRPC counts.
            if binding == Binding::Grpc && params == ambiguous {
                continue;
            }
            let fault = talk.call(binding, "SendMessage", &params);
            let fault = fault.expect_err(&format!("{binding:?} took {params}"));
            assert_eq!(fault.number, number, "{params}: {fault:?}");
            is_whole(&fault);
            let streamed = talk.events(binding, "SendStreamingMessage", &params).unwrap_err();
            assert_eq!(streamed.number, number, "{params}: {streamed:?}");
        }
        let list = talk.call(binding, "ListTasks", &json!({})).unwrap();
        assert_eq!(list["totalSize"], 0, "nothing was begun: {list}");
    }
}

#[test]
fn capabilities_that_are_off_are_errors() {
    let talk = Talk::bare();
    let card = talk.http("GET", "/.well-known/agent-card.json", &[], None).json();
    for name in ["streaming", "pushNotifications", "extendedAgentCard"] {
        let is_on = card["capabilities"][name].as_bool().unwrap_or_default();
        assert!(!is_on, "{name}: {}", card["capabilities"]);
    }
    for binding in BINDINGS {
        let waits = talk.task(binding, "tck-input-required");
        let params = json!({"message": said("tck-stream-basic")});
        let fault = talk.events(binding, "SendStreamingMessage", &params).unwrap_err();
        is_row(binding, &fault, &UNSUPPORTED);
        for id in [&waits["id"], &json!("no-such-task")] {
            let fault = talk.events(binding, "SubscribeToTask", &json!({"id": id})).unwrap_err();
            is_row(binding, &fault, &UNSUPPORTED);
            for method in PUSH {
                let params = json!({"taskId": id, "id": "c", "url": "https://example.com/hook"});
                let fault = talk.call(binding, method, &params).unwrap_err();
                is_row(binding, &fault, &NO_PUSH);
            }
        }
        let fault = talk.call(binding, "GetExtendedAgentCard", &json!({})).unwrap_err();
        is_row(binding, &fault, &UNSUPPORTED);
        let config = json!({"taskPushNotificationConfig": {"url": "https://example.com/hook"}});
        let params = json!({"message": said("hello"), "configuration": config});
        let fault = talk.call(binding, "SendMessage", &params).unwrap_err();
        is_row(binding, &fault, &NO_PUSH);
    }
}

#[test]
fn requests_of_json_rpc_have_its_form() {
    let talk = Talk::start();
    for (body, code) in [
        ("no JSON at all", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc": "2.0", "method": "ListTasks"}"#, -32600),
        (r#"{"jsonrpc": "1.0", "id": 1, "method": "ListTasks"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "NoSuchMethod"}"#, -32601),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": 7}"#, -32602),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {}}"#, -32602),
    ] {
        let answer = talk.post(body);
        assert_eq!(answer["error"]["code"], code, "{body}: {answer}");
        assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
        assert!(answer["error"]["message"].is_string(), "{answer}");
    }
    let answer = talk.post(r#"{"jsonrpc": "2.0", "id": "text", "method": "ListTasks"}"#);
    assert_eq!((&answer["id"], &answer["result"]["totalSize"]), (&json!("text"), &json!(0)));
}
