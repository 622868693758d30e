//! Sections 3.1.1, 3.2.2 and 3.4: messages, what is answered to them and when, and the ids of tasks
//! and contexts.

use crate::talk::{BINDINGS, INVALID, Talk, reply, said, state};
use serde_json::{Value, json};
use std::thread;
use std::time::Instant;

/// How long a task of `tck-long-running` takes at least.
const LONG_S: u64 = 4;
/// What is answered at once takes less, on a busy machine too; the task itself takes an hour.
const AT_ONCE_S: u64 = 180;

#[test]
fn a_message_is_answered_by_a_task_or_a_message() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let told = talk.send(binding, said("tck-complete-task")).unwrap();
        assert_eq!(told.as_object().unwrap().len(), 1, "{told}");
        assert_eq!(state(&told["task"]), "COMPLETED", "{told}");
        let told = talk.send(binding, said("tck-message-response")).unwrap();
        assert_eq!(told.as_object().unwrap().len(), 1, "{told}");
        let message = &told["message"];
        assert_eq!(message["role"], "ROLE_AGENT", "{told}");
        assert!(!message["parts"].as_array().unwrap().is_empty(), "{told}");
        assert!(message["messageId"].is_string() && message["contextId"].is_string(), "{told}");
    }
}

#[test]
fn an_answer_waits_for_the_end_of_the_task() {
    let talk = Talk::start();
    thread::scope(|scope| {
        for binding in BINDINGS {
            let talk = &talk;
            scope.spawn(move || {
                let begun = Instant::now();
                let task = talk.task(binding, "tck-long-running");
                assert_eq!(state(&task), "COMPLETED", "{task}");
                assert!(begun.elapsed().as_secs() >= LONG_S, "{:?}", begun.elapsed());
                assert!(task["artifacts"][0]["parts"][0]["text"].is_string(), "{task}");
            });
        }
    });
}

#[test]
fn an_answer_waits_for_a_question_and_has_it() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let task = talk.task(binding, "tck-input-required");
        assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
        let asked = &task["status"]["message"];
        assert_eq!(asked["role"], "ROLE_AGENT", "{task}");
        assert!(asked["parts"][0]["text"].is_string(), "{task}");
        let done = talk.send(binding, reply(&task, "this")).unwrap();
        assert_eq!(state(&done["task"]), "COMPLETED", "{done}");
    }
}

#[test]
fn who_does_not_want_to_wait_does_not() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let begun = Instant::now();
        let task = talk.begun(binding, "tck-cancel");
        assert!(begun.elapsed().as_secs() < AT_ONCE_S, "{:?}", begun.elapsed());
        assert!(["SUBMITTED", "WORKING"].contains(&state(&task)), "{task}");
        talk.cancel(&task);
    }
}

#[test]
fn every_task_has_an_id_and_a_context_of_its_own() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let (one, other) = (talk.task(binding, "one"), talk.task(binding, "other"));
        for name in ["id", "contextId"] {
            let (one, other) = (one[name].as_str().unwrap(), other[name].as_str().unwrap());
            assert!(!one.is_empty() && one != other, "{name}: {one} {other}");
        }
    }
}

#[test]
fn a_context_of_the_client_is_kept_or_refused() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let mut message = said("hello");
        message["contextId"] = json!("a context of mine");
        let task = talk.send(binding, message.clone()).unwrap()["task"].clone();
        assert_eq!(task["contextId"], "a context of mine", "{task}");
        let before = talk.call(binding, "ListTasks", &json!({})).unwrap()["totalSize"].clone();
        message["contextId"] = json!("x".repeat(5_000));
        let fault = talk.send(binding, message).unwrap_err();
        assert!(INVALID.contains(&fault.number), "{fault:?}");
        let after = talk.call(binding, "ListTasks", &json!({})).unwrap()["totalSize"].clone();
        assert_eq!(before, after, "no task was made in another context");
    }
}

#[test]
fn a_message_to_a_task_that_is_not_there_is_refused() {
    let talk = Talk::start();
    for binding in BINDINGS {
        for id in ["no-such-task".to_owned(), format!("run_{:032x}", 9)] {
            let fault = talk.send(binding, reply(&json!({"id": id}), "hello")).unwrap_err();
            assert_eq!(fault.reason(), "TASK_NOT_FOUND", "{fault:?}");
        }
    }
}

#[test]
fn the_context_of_a_reply_is_that_of_its_task() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let task = talk.task(binding, "tck-input-required");
        let mut wrong = reply(&task, "this");
        wrong["contextId"] = json!("another");
        let fault = talk.send(binding, wrong).unwrap_err();
        assert!(INVALID.contains(&fault.number), "{fault:?}");
        let got = talk.call(binding, "GetTask", &json!({"id": task["id"]})).unwrap();
        assert_eq!(state(&got), "INPUT_REQUIRED", "it was not answered: {got}");
        let done = talk.send(binding, reply(&task, "this")).unwrap()["task"].clone();
        assert_eq!((&done["id"], &done["contextId"]), (&task["id"], &task["contextId"]));
        let of_reply = |line: &&Value| line["role"] == "ROLE_USER" && line["taskId"] == done["id"];
        let lines = done["history"].as_array().unwrap().iter().filter(of_reply);
        assert_eq!(lines.count(), 2, "{done}");
    }
}

#[test]
fn a_task_that_is_over_takes_no_message() {
    let talk = Talk::start();
    for binding in BINDINGS {
        for text in ["tck-complete-task", "tck-reject-task", "tck-task-failure"] {
            let task = talk.task(binding, text);
            let fault = talk.send(binding, reply(&task, "more")).unwrap_err();
            assert_eq!(fault.reason(), "UNSUPPORTED_OPERATION", "{text}: {fault:?}");
        }
    }
}
