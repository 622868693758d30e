//! Answers everything that people were asked before the folder was killed: each run continues from
//! where it was, with the plan that it began with, to its end.

use super::site::Site;
use super::{post, post_nothing};
use crate::api;
use serde_json::{Value, json};
use testkit::http::Client;
use testkit::kill::{Ask, Run, read};

/// Answers all but what waits for a login.
pub(super) fn answer(site: &Site, client: &mut Client) {
    questions(site, client);
    forms(client);
    calls(client);
    large(client);
    threads(client);
}

fn questions(site: &Site, client: &mut Client) {
    let noted = &site.noted;
    post_nothing(client, 200, &format!("/api/v1/runs/{}/continue", noted.session("paused").run));
    let blue = json!({"answer": "blue"});
    // A fork has no key but its id.
    let mut keys = noted.asks.iter().map(|ask| ask.session.as_str());
    let fork = keys.find(|key| key.starts_with("ses_")).unwrap();
    for (key, expected) in [
        ("clarify", "heard blue"),
        (fork, "heard blue"),
        ("far", "heard blue"),
        ("paused", "heard blue"),
        ("trimmed", "heard blue"),
        // The plan has another version by now.
        ("stored", "first blue"),
        ("inline", "inline blue"),
        ("branches", "one and blue, 3"),
        ("long", "blue 41"),
    ] {
        assert_eq!(reply(client, key, &blue), json!(expected), "`{key}`");
    }
    let asks = api::open_asks(client, Some("outer"));
    assert_eq!(asks.len(), 2, "{asks:?}");
    for (ask, word) in asks.iter().zip(["red", "blue"]) {
        decide(client, ask, &json!({"answer": word}));
    }
    let run = api::run(client, &noted.session("outer").run);
    assert_eq!(run.answer, Some(json!("heard red, heard blue")), "{run:?}");
}

fn forms(client: &mut Client) {
    let ada = json!({"action": "accept", "content": {"name": "Ada"}});
    assert_eq!(reply(client, "fill", &ada), json!("hello Ada"));
    // The tool that wants it is called again, with the state that it handed out.
    assert_eq!(reply(client, "wants", &ada), json!("it said: Hello, Ada!"));
    post(client, 202, "/sessions/door/resume", &json!({"input": {"name": "Ada"}}));
    let door = api::get(client, "/sessions/door");
    assert_eq!(door["core"]["status"], "completed", "{door}");
    assert_eq!(door["context"]["finalResponse"], "hello Ada", "{door}");
}

fn calls(client: &mut Client) {
    let ask = only(client, "approve");
    let decision = json!({"callId": ask.calls[0].call_id, "approve": true});
    let run = decide(client, &ask, &json!({"decisions": [decision]}));
    assert_eq!(run.answer, Some(json!("ordered: True")), "{run:?}");
    let settled = json!({"action": "settle", "output": {"ok": true}});
    assert_eq!(reply(client, "order", &settled), json!("order: True"));
    let skip = json!({"action": "skip"});
    assert_eq!(reply(client, "write", &skip), json!("wrote"));
    assert_eq!(reply(client, "fix", &skip), json!("went on"));
}

/// An answer that is made of two blobs of the folder, and is one itself.
fn large(client: &mut Client) {
    let answer = reply(client, "large", &json!({"answer": "yes"}));
    let hash = answer.as_str().and_then(|uri| uri.strip_prefix("blob://"));
    let hash = hash.unwrap_or_else(|| panic!("`{answer}` is no blob"));
    let whole = api::get(client, &format!("/api/v1/blobs/{hash}"));
    assert_eq!(whole["note"], "n".repeat(20_000));
    assert_eq!(whole["read"], "a large value, line by line\n".repeat(1_000));
}

fn threads(client: &mut Client) {
    let question = only(client, "talk-question");
    let ask = api::get(client, &format!("/api/v1/asks/{}", question.id));
    let call = &ask["questions"][0]["callId"];
    let words = json!([{"call_id": call, "response": "that"}]);
    let body = json!({"thread_id": "talk-question", "clarification_responses": words});
    assert_eq!(post(client, 200, "/resume", &body)["response"], "It is that one.");

    let call = only(client, "talk-approval").calls[0].call_id.clone();
    let approval = json!([{"call_id": call, "approved": true}]);
    let body = json!({"thread_id": "talk-approval", "approvals": approval});
    let told = post(client, 200, "/resume", &body);
    assert!(told["response"].as_str().is_some_and(|words| words.starts_with("Done: ")), "{told}");

    let body = json!({"thread_id": "talk", "user_request": "add 3"});
    assert_eq!(post(client, 200, "/run", &body)["response"], "Done: 4");
    let thread = api::get(client, "/api/v1/sessions/talk?space=thread");
    let messages = thread["requestState"]["messages"].as_array().unwrap();
    let said = messages.iter().filter(|message| message["type"] == "human");
    let said: Vec<&Value> = said.map(|message| &message["content"]).collect();
    assert_eq!(said, ["add 1", "add 2", "add 3"]);
}

/// Answers the one ask of a session; what its run answers then.
pub(super) fn reply(client: &mut Client, key: &str, reply: &Value) -> Value {
    let ask = only(client, key);
    let run = decide(client, &ask, reply);
    assert_eq!(run.status, "completed", "`{key}`: {run:?}");
    run.answer.unwrap_or_default()
}

fn only(client: &mut Client, key: &str) -> Ask {
    let mut asks = api::open_asks(client, Some(key));
    assert_eq!(asks.len(), 1, "`{key}`: {asks:?}");
    asks.remove(0)
}

fn decide(client: &mut Client, ask: &Ask, reply: &Value) -> Run {
    read(&post(client, 200, &format!("/api/v1/asks/{}", ask.id), reply)["run"])
}
