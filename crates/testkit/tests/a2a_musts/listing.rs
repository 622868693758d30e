//! Section 3.1.4: lists of tasks.

use crate::talk::{BINDINGS, Binding, INVALID, Talk, reply};
use serde_json::{Value, json};

fn list(talk: &Talk, binding: Binding, params: &Value) -> Value {
    talk.call(binding, "ListTasks", params).unwrap_or_else(|fault| panic!("{params}: {fault:?}"))
}

fn ids(list: &Value) -> Vec<&str> {
    let tasks = list["tasks"].as_array().unwrap_or_else(|| panic!("no tasks: {list}"));
    tasks.iter().map(|task| task["id"].as_str().unwrap()).collect()
}

#[test]
fn a_list_has_all_its_members_and_artifacts_only_if_asked() {
    let talk = Talk::start();
    for binding in BINDINGS {
        let empty = list(&talk, binding, &json!({"contextId": "nobody's"}));
        let wanted = json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0});
        assert_eq!(empty, wanted);
        talk.task(binding, "tck-artifact-text");
        let plain = list(&talk, binding, &json!({}));
        assert!(plain["tasks"][0].get("artifacts").is_none(), "{plain}");
        let whole = list(&talk, binding, &json!({"includeArtifacts": true}));
        let text = &whole["tasks"][0]["artifacts"][0]["parts"][0]["text"];
        assert_eq!(text, "Generated text content", "{whole}");
    }
}

#[test]
fn the_task_that_changed_last_is_first() {
    let talk = Talk::start();
    let waits = talk.task(Binding::Rpc, "tck-multi-turn");
    let done = talk.task(Binding::Rest, "tck-complete-task");
    for binding in BINDINGS {
        let before = list(&talk, binding, &json!({}));
        assert_eq!(ids(&before).len(), 2, "{before}");
        let stamps: Vec<&str> = before["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["status"]["timestamp"].as_str().unwrap())
            .collect();
        assert!(stamps.is_sorted_by(|one, next| one >= next), "{stamps:?}");
    }
    assert_eq!(ids(&list(&talk, Binding::Rpc, &json!({})))[0], done["id"]);
    talk.send(Binding::Rpc, reply(&waits, "more")).unwrap();
    for binding in BINDINGS {
        assert_eq!(ids(&list(&talk, binding, &json!({})))[0], waits["id"], "it changed");
    }
}

#[test]
fn pages_follow_each_other_by_a_cursor() {
    let talk = Talk::start();
    let mut made: Vec<String> = (0..5)
        .map(|index| {
            let task = talk.task(Binding::Rpc, &format!("task {index}"));
            task["id"].as_str().unwrap().to_owned()
        })
        .collect();
    made.reverse();
    for binding in BINDINGS {
        let (mut seen, mut token) = (Vec::new(), String::new());
        for _ in 0..5 {
            let page = list(&talk, binding, &json!({"pageSize": 2, "pageToken": token}));
            assert_eq!((&page["pageSize"], &page["totalSize"]), (&json!(2), &json!(5)), "{page}");
            seen.extend(ids(&page).into_iter().map(str::to_owned));
            // What comes meanwhile is before the first page: the cursor keeps its place.
            token = page["nextPageToken"].as_str().expect("the token is always there").to_owned();
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(token, "", "the last page says that it is the last");
        assert_eq!(seen, made);
        let fault = talk.call(binding, "ListTasks", &json!({"pageToken": "nonsense"})).unwrap_err();
        assert!(INVALID.contains(&fault.number), "{fault:?}");
        for size in [0, 101, -1] {
            let fault = talk.call(binding, "ListTasks", &json!({"pageSize": size})).unwrap_err();
            assert!(INVALID.contains(&fault.number), "{fault:?}");
        }
    }
}

#[test]
fn a_list_is_filtered_by_context_state_and_time() {
    let talk = Talk::start();
    let waits = talk.task(Binding::Rpc, "tck-input-required");
    let done = talk.task(Binding::Rpc, "tck-complete-task");
    let at = &done["status"]["timestamp"];
    for binding in BINDINGS {
        for (filter, wanted) in [
            (json!({"contextId": waits["contextId"]}), &waits),
            (json!({"status": "TASK_STATE_INPUT_REQUIRED"}), &waits),
            (json!({"status": "TASK_STATE_COMPLETED"}), &done),
            (json!({"statusTimestampAfter": at}), &done),
        ] {
            let found = list(&talk, binding, &filter);
            assert_eq!(ids(&found)[0], wanted["id"], "{filter}: {found}");
            assert_eq!(found["totalSize"], 1, "{filter}: {found}");
        }
        // In a message of gRPC a state is a number.
        if binding == Binding::Grpc {
            continue;
        }
        let wrong = json!({"status": "TASK_STATE_RUNNING"});
        let fault = talk.call(binding, "ListTasks", &wrong).unwrap_err();
        assert!(INVALID.contains(&fault.number), "{fault:?}");
    }
}
