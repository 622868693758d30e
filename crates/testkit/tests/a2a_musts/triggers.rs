//! The agent itself: what each of its words leads to.

use crate::talk::{BINDINGS, Binding, Talk, reply, said, state, words};
use serde_json::{Value, json};

fn part(task: &Value) -> &Value {
    &task["artifacts"][0]["parts"][0]
}

#[test]
fn artifacts_are_what_their_words_say() {
    let talk = Talk::start();
    for binding in BINDINGS {
        for (words, wanted) in [
            ("tck-artifact-text", json!({"text": "Generated text content"})),
            (
                "tck-artifact-file",
                json!({"raw": "dGNr", "mediaType": "text/plain", "filename": "output.txt"}),
            ),
            (
                "tck-artifact-file-url",
                json!({"url": "https://example.com/output.txt", "mediaType": "text/plain",
                    "filename": "output.txt"}),
            ),
            (
                "tck-artifact-data",
                json!({"data": {"key": "value", "count": 42}, "mediaType": "application/json"}),
            ),
        ] {
            let task = talk.task(binding, words);
            assert_eq!((state(&task), part(&task)), ("COMPLETED", &wanted), "{words}: {task}");
            assert_eq!(task["artifacts"].as_array().unwrap().len(), 1, "{task}");
        }
    }
}

#[test]
fn an_id_says_what_a_text_does_not() {
    let talk = Talk::start();
    for (id, told) in [
        ("tck-input-required-1", "INPUT_REQUIRED"),
        ("tck-reject-task-1", "REJECTED"),
        ("tck-artifact-data-1", "COMPLETED"),
        ("no-such-words", "COMPLETED"),
    ] {
        let mut message = said("hello");
        message["messageId"] = json!(id);
        let task = talk.send(Binding::Rest, message).unwrap()["task"].clone();
        assert_eq!(state(&task), told, "{id}: {task}");
    }
    let mut message = said("tck-task-failure");
    message["messageId"] = json!("tck-input-required-2");
    let task = talk.send(Binding::Rpc, message).unwrap()["task"].clone();
    assert_eq!(state(&task), "FAILED", "the text counts first: {task}");
}

#[test]
fn a_rejected_task_says_why() {
    let talk = Talk::start();
    let task = talk.task(Binding::Rpc, "tck-reject-task");
    assert_eq!(state(&task), "REJECTED", "{task}");
    let why = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(why.contains("rejected"), "{task}");
    let rejected = json!({"status": "TASK_STATE_REJECTED"});
    let list = talk.call(Binding::Rest, "ListTasks", &rejected).unwrap();
    assert_eq!(list["tasks"][0]["id"], task["id"], "{list}");
}

#[test]
fn a_conversation_lasts_until_it_is_done() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let mut task = talk.task(binding, "tck-multi-turn");
        for text in ["first", "tck-complete-task"] {
            assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
            task = talk.send(binding, reply(&task, text)).unwrap()["task"].clone();
        }
        assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
        task = talk.send(binding, reply(&task, "done")).unwrap()["task"].clone();
        assert_eq!(state(&task), "COMPLETED", "{task}");
    }
}

#[test]
fn chunks_come_one_after_the_other() {
    let talk = Talk::start();
    for binding in BINDINGS {
        for (id, text, first) in
            [("m-1", "tck-stream-chunked", false), ("tck-stream-artifact-chunked", "x", true)]
        {
            let mut message = said(text);
            message["messageId"] = json!(id);
            let params = json!({"message": message});
            let events = talk.events(binding, "SendStreamingMessage", &params).unwrap();
            let told = words(&events);
            let wanted =
                ["task SUBMITTED", "WORKING", "artifact chunk-1", "artifact chunk-2", "COMPLETED"];
            assert_eq!(told, wanted, "{id}");
            let flag = |index: usize, name: &str| {
                events[index]["artifactUpdate"][name].as_bool().unwrap_or_default()
            };
            assert_eq!((flag(2, "append"), flag(2, "lastChunk")), (first, false));
            assert_eq!((flag(3, "append"), flag(3, "lastChunk")), (true, true));
        }
    }
}
