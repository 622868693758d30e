//! Sections 5.2 and 8: the card, and what it says of how the agent is reached.

use crate::talk::{BINDINGS, Binding, Talk, said};
use serde_json::{Value, json};

fn card(talk: &Talk) -> Value {
    let answer = talk.http("GET", "/.well-known/agent-card.json", &[], None);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let kind = answer.header("content-type").unwrap_or_default();
    assert!(kind.starts_with("application/json"), "{kind}");
    assert!(answer.header("cache-control").is_some_and(|value| value.contains("max-age=")));
    assert!(answer.header("etag").is_some());
    answer.json()
}

#[test]
fn the_card_is_where_clients_look_and_has_all_that_is_required() {
    let talk = Talk::start();
    let card = card(&talk);
    for name in ["name", "description", "version"] {
        assert!(card[name].as_str().is_some_and(|text| !text.is_empty()), "{name}: {card}");
    }
    assert!(card["capabilities"].is_object(), "{card}");
    for name in ["supportedInterfaces", "defaultInputModes", "defaultOutputModes", "skills"] {
        assert!(card[name].as_array().is_some_and(|list| !list.is_empty()), "{name}: {card}");
    }
    assert_eq!(card["defaultInputModes"], json!(["*/*"]));
    for skill in card["skills"].as_array().unwrap() {
        for name in ["id", "name", "description"] {
            assert!(skill[name].as_str().is_some_and(|text| !text.is_empty()), "{skill}");
        }
        assert!(skill["tags"].as_array().is_some_and(|tags| !tags.is_empty()), "{skill}");
    }
}

#[test]
fn every_interface_of_the_card_is_as_it_says() {
    let talk = Talk::start();
    let card = card(&talk);
    let base = talk.base();
    let mut spoken = Vec::new();
    for interface in card["supportedInterfaces"].as_array().unwrap() {
        let version = interface["protocolVersion"].as_str().unwrap();
        let binding = interface["protocolBinding"].as_str().unwrap();
        if version != "1.0" {
            continue;
        }
        spoken.push(binding);
        let url = interface["url"].as_str().unwrap();
        if binding == "GRPC" {
            // Its clients take a host and a port.
            assert_eq!(format!("http://{url}"), base, "{interface}");
            let task = talk.task(Binding::Grpc, "tck-complete-task");
            assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
            continue;
        }
        let path = url.strip_prefix(&base).unwrap_or_else(|| panic!("{url} is not at {base}"));
        let headers = [("a2a-version", version)];
        let params = json!({"message": said("tck-complete-task")});
        let task = match binding {
            "JSONRPC" => {
                let body =
                    json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
                let answer = talk.http("POST", path, &headers, Some(&body.to_string()));
                answer.json()["result"]["task"].clone()
            }
            _ => {
                let path = format!("{path}/message:send");
                let answer = talk.http("POST", &path, &headers, Some(&params.to_string()));
                answer.json()["task"].clone()
            }
        };
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{interface}: {task}");
    }
    assert_eq!(spoken, ["JSONRPC", "HTTP+JSON", "GRPC"], "{card}");
}

#[test]
fn the_extended_card_is_there_for_who_may_call() {
    let talk = Talk::start();
    let card = card(&talk);
    assert_eq!(card["capabilities"]["extendedAgentCard"], true, "{card}");
    for binding in BINDINGS {
        let extended = talk.call(binding, "GetExtendedAgentCard", &json!({})).unwrap();
        assert_eq!(extended["skills"], card["skills"], "{binding:?}");
    }
}
