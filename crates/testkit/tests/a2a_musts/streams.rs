//! Sections 3.1.2, 3.1.6, 3.5.2 and 11.7: streams, their first and last events, and several of one
//! task.

use crate::talk::{BINDINGS, Binding, Open, Talk, reply, said, state, words};
use serde_json::{Value, json};

fn sent(text: &str) -> Value {
    json!({"message": said(text)})
}

#[test]
fn a_stream_of_a_message_is_that_message() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let params = sent("tck-message-response");
        let events = talk.events(binding, "SendStreamingMessage", &params).unwrap();
        assert_eq!(words(&events), ["message"]);
        assert!(events[0]["message"]["contextId"].is_string(), "{events:?}");
    }
}

#[test]
fn a_stream_begins_with_its_task_and_ends_with_its_end() {
    let talk = Talk::start();
    for binding in BINDINGS {
        for (text, end) in [
            ("tck-stream-basic", "COMPLETED"),
            ("tck-reject-task", "REJECTED"),
            ("tck-task-failure", "FAILED"),
        ] {
            let events = talk.events(binding, "SendStreamingMessage", &sent(text)).unwrap();
            let told = words(&events);
            assert_eq!(told[0], "task SUBMITTED", "{told:?}");
            assert_eq!(told.last().unwrap(), end, "{told:?}");
            let tasks = told.iter().filter(|word| word.starts_with("task"));
            assert_eq!(tasks.count(), 1, "{told:?}");
            let (task, context) = (&events[0]["task"]["id"], &events[0]["task"]["contextId"]);
            for event in &events[1..] {
                let update = event.as_object().unwrap().values().next().unwrap();
                assert_eq!((&update["taskId"], &update["contextId"]), (task, context));
            }
        }
    }
}

#[test]
fn what_is_made_is_told_before_the_end() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let params = sent("tck-stream-basic");
        let told = words(&talk.events(binding, "SendStreamingMessage", &params).unwrap());
        let wanted = ["task SUBMITTED", "WORKING", "artifact Generated text content", "COMPLETED"];
        assert_eq!(told, wanted);
    }
}

#[test]
fn a_subscriber_gets_the_task_first_and_its_end_last() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let task = talk.task(binding, "tck-input-required");
        let stream = talk.open(binding, "SubscribeToTask", &json!({"id": task["id"]}));
        talk.send(binding, reply(&task, "this")).unwrap();
        let events = stream.events();
        let told = words(&events);
        assert_eq!(told[0], "task INPUT_REQUIRED", "{told:?}");
        assert_eq!(events[0]["task"], task, "the first is the task as it was");
        assert_eq!(told.last().unwrap(), "COMPLETED", "{told:?}");
    }
}

#[test]
fn all_streams_tell_the_same_in_the_same_order() {
    let talk = Talk::start();
    let task = talk.task(Binding::Rpc, "tck-multi-turn");
    let params = json!({"id": task["id"]});
    let streams = BINDINGS.map(|binding| talk.open(binding, "SubscribeToTask", &params));
    talk.send(Binding::Grpc, reply(&task, "more")).unwrap();
    let lates = BINDINGS.map(|binding| talk.open(binding, "SubscribeToTask", &params));
    talk.send(Binding::Rest, reply(&task, "done")).unwrap();
    let [one, other, third] = streams.map(Open::events);
    assert!(one == other && one == third, "{one:?} {other:?} {third:?}");
    let told = words(&one);
    let wanted = ["task INPUT_REQUIRED", "WORKING", "INPUT_REQUIRED", "WORKING"];
    assert_eq!(told[..4], wanted, "{told:?}");
    assert_eq!(told.last().unwrap(), "COMPLETED", "{told:?}");
    for late in lates {
        assert_eq!(late.events()[1..], one[3..], "a late one gets the rest");
    }
}

#[test]
fn closing_one_stream_leaves_the_others_and_the_task() {
    let talk = Talk::start();
    for closed in BINDINGS {
        // One that does not end by itself before it has all streams.
        let task = talk.begun(Binding::Rpc, "tck-cancel");
        let params = json!({"id": task["id"]});
        let stays = BINDINGS.map(|binding| talk.open(binding, "SubscribeToTask", &params));
        drop(talk.open(closed, "SubscribeToTask", &params));
        let got = talk.call(closed, "GetTask", &params).unwrap();
        assert!(["SUBMITTED", "WORKING"].contains(&state(&got)), "{got}");
        talk.cancel(&task);
        for stream in stays {
            let told = words(&stream.events());
            assert_eq!(told.last().unwrap(), "CANCELED", "{closed:?}: {told:?}");
        }
    }
}

#[test]
fn a_task_that_is_over_cannot_be_subscribed_to() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let task = talk.task(binding, "tck-complete-task");
        let params = json!({"id": task["id"]});
        let fault = talk.events(binding, "SubscribeToTask", &params).unwrap_err();
        assert_eq!(fault.reason(), "UNSUPPORTED_OPERATION", "{fault:?}");
        let missing = json!({"id": "no-such-task"});
        let fault = talk.events(binding, "SubscribeToTask", &missing).unwrap_err();
        assert_eq!(fault.reason(), "TASK_NOT_FOUND", "{fault:?}");
    }
}

#[test]
fn a_cancelled_task_ends_its_streams() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let task = talk.begun(binding, "tck-cancel");
        let stream = talk.open(binding, "SubscribeToTask", &json!({"id": task["id"]}));
        talk.cancel(&task);
        let told = words(&stream.events());
        assert_eq!(told.last().unwrap(), "CANCELED", "{told:?}");
    }
}
