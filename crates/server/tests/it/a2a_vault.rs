//! AgentVault's profile: its methods, states, events, errors, card and list of cards, as its
//! clients use them.

use crate::a2a::{self, ADD, SETTINGS};
use crate::a2a_push::{Got, OK, PUSH, Receiver};
use crate::credentials::{Guarded, OPEN};
use crate::house::{
    ADDRESS, Answer, House, approval, demo_with, question, read, request, setup, wait_for,
};
use axum::body::Body;
use axum::http::{Method, Response};
use engine::PlanFile;
use kernel::identity::roles::Role;
use project::config::Config;
use project::folder::Project;
use project::realm::local_caller;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::servers::a2a::AgentServer;
use tokio::net::TcpListener;
use tokio::time::timeout;
use wire::a2a::SKILLS_EXTENSION;

/// How long a stream may take to end.
const WAIT: Duration = Duration::from_secs(120);

/// A plan that makes something on the way.
fn making() -> Value {
    json!({
        "planId": "it/making",
        "description": "makes something",
        "startStepId": "make",
        "steps": [
            {"id": "make", "type": "publish_event", "nextStepId": "end", "event": {
                "type": "a2a.artifact", "artifactId": "draft",
                "parts": [{"text": "half"}, {"data": {"n": 1}}]}},
            {"id": "end", "type": "final_response", "message": "done"},
        ],
    })
}

fn project() -> Project {
    project_of(SETTINGS)
}

fn project_of(settings: &str) -> Project {
    let mut project = demo_with("plans/it/question.yaml", "it/question", &question().to_string());
    for (id, plan) in [("it/approval", approval()), ("it/making", making())] {
        project.plans.push(PlanFile {
            file: format!("plans/{id}.yaml"),
            text: plan.to_string(),
            default_id: id.into(),
        });
    }
    let config = Config::parse("waypost.toml", settings).unwrap();
    Project { config, ..project }
}

async fn house() -> House {
    House::build(project(), None).await
}

fn message(skill: &str, content: Value) -> Value {
    json!({"role": "user", "parts": [{"type": "data", "content": content,
        "mediaType": "application/json"}],
        "metadata": {SKILLS_EXTENSION: {"skill": skill}}})
}

fn text(content: &str) -> Value {
    json!({"role": "user", "parts": [{"type": "text", "content": content}]})
}

async fn opened(house: &House, path: &str, method: &str, params: &Value) -> Response<Body> {
    let body = json!({"jsonrpc": "2.0", "id": "req-1", "method": method, "params": params});
    house.open(request(Method::POST, path, Body::from(body.to_string()))).await
}

async fn rpc(house: &House, method: &str, params: Value) -> Value {
    let answer = read(opened(house, "/a2a", method, &params).await).await;
    assert_eq!((answer.status, &answer.body["id"]), (200, &json!("req-1")), "{answer:?}");
    answer.body
}

/// The task that a message leads to.
async fn send(house: &House, params: Value) -> Value {
    let answer = rpc(house, "tasks/send", params).await;
    let id = answer["result"]["id"].clone();
    assert!(id.is_string(), "{answer}");
    id
}

/// A task once it is in this state.
async fn in_state(house: &House, id: &Value, state: &str) -> Value {
    let look = async || rpc(house, "tasks/get", json!({"id": id})).await["result"].clone();
    wait_for(&format!("task {id} to be {state}"), look, |task: &Value| task["state"] == state).await
}

/// All events of a stream, once it has ended: their names and their data.
async fn events(response: Response<Body>) -> Vec<(String, Value)> {
    let answer = timeout(WAIT, read(response)).await.expect("the stream has not ended");
    let mut name = String::new();
    let mut events = Vec::new();
    for line in answer.text.lines() {
        if let Some(said) = line.strip_prefix("event:") {
            name = said.trim().to_owned();
        }
        if let Some(data) = line.strip_prefix("data:") {
            events.push((name.clone(), serde_json::from_str(data.trim()).unwrap()));
        }
    }
    events
}

fn words(events: &[(String, Value)]) -> Vec<&str> {
    let word = |(name, data): &(String, Value)| -> String {
        match name.as_str() {
            "task_status" => data["state"].as_str().unwrap().to_owned(),
            other => other.to_owned(),
        }
    };
    let words: Vec<String> = events.iter().map(word).collect();
    let known = [
        "SUBMITTED", "WORKING", "INPUT_REQUIRED", "COMPLETED", "FAILED", "CANCELED",
        "task_message", "task_artifact",
    ];
    let known = |word: &String| *known.iter().find(|known| *known == word).expect(word);
    words.iter().map(known).collect()
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test]
async fn a_task_is_sent_read_and_told_from_its_start_however_late() {
    let house = house().await;
    let sent = message("it/making", json!({}));
    let id = send(&house, json!({"message": sent})).await;
    let task = in_state(&house, &id, "COMPLETED").await;
    assert_eq!(task["messages"][0], sent, "{task}");
    assert_eq!(task["messages"][1]["role"], "assistant");
    assert_eq!(task["messages"][1]["parts"], json!([{"type": "text", "content": "done"}]));
    let made = &task["artifacts"];
    assert_eq!((&made[0]["id"], &made[0]["content"]), (&json!("draft"), &json!("half")), "{task}");
    assert_eq!((&made[1]["id"], &made[1]["type"]), (&json!("draft.2"), &json!("data")), "{task}");
    assert!(task["createdAt"].as_str().unwrap().ends_with('Z'), "{task}");
    let params = json!({"id": id});
    for path in ["/a2a", "/a2a/"] {
        let told = events(opened(&house, path, "tasks/sendSubscribe", &params).await).await;
        let whole =
            ["SUBMITTED", "WORKING", "task_artifact", "task_artifact", "task_message", "COMPLETED"];
        assert_eq!(words(&told), whole, "{told:?}");
        assert!(told.iter().all(|(_, data)| data["taskId"] == id && data["timestamp"].is_string()));
        assert_eq!(told[4].1["message"], task["messages"][1]);
        assert_eq!(told[5].1["message"], Value::Null);
    }
}

#[tokio::test]
async fn a_question_is_answered_by_a_message_to_its_task_and_by_no_other() {
    let house = house().await;
    let id = send(&house, json!({"message": message("it/question", json!({}))})).await;
    in_state(&house, &id, "INPUT_REQUIRED").await;
    let params = json!({"id": id});
    let stream = opened(&house, "/a2a", "tasks/sendSubscribe", &params).await;
    let again = send(&house, json!({"id": id, "message": text("yes")})).await;
    assert_eq!(again, id, "it is the same task");
    let told = events(stream).await;
    let whole = [
        "SUBMITTED", "WORKING", "task_message", "INPUT_REQUIRED", "WORKING", "task_message",
        "COMPLETED",
    ];
    assert_eq!(words(&told), whole, "{told:?}");
    assert_eq!(told[3].1["message"], "go on?", "a status says it in words");
    let task = in_state(&house, &id, "COMPLETED").await;
    let parts: Vec<&Value> =
        task["messages"].as_array().unwrap().iter().map(|one| &one["parts"][0]).collect();
    assert_eq!(parts[1]["content"], "go on?", "{task}");
    assert_eq!((&parts[2]["content"], &parts[3]["content"]), (&json!("yes"), &json!("yes")));
    let late = json!({"id": id, "message": text("more")});
    let answer = rpc(&house, "tasks/send", late).await;
    assert_eq!(code(&answer), -32000, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("Agent error: "), "{answer}");
}

#[tokio::test]
async fn a_refused_approval_fails_and_a_cancelled_task_is_cancelled_once() {
    let house = house().await;
    let id = send(&house, json!({"message": message("it/approval", json!({}))})).await;
    in_state(&house, &id, "INPUT_REQUIRED").await;
    send(&house, json!({"id": id, "message": text("no")})).await;
    let task = in_state(&house, &id, "FAILED").await;
    let told =
        events(opened(&house, "/a2a", "tasks/sendSubscribe", &json!({"id": id})).await).await;
    let whole = ["SUBMITTED", "WORKING", "task_message", "INPUT_REQUIRED", "WORKING", "FAILED"];
    assert_eq!(words(&told), whole, "{task}");
    assert!(told.last().unwrap().1["message"].as_str().unwrap().contains("no"), "{told:?}");
    let id = send(&house, json!({"message": message("it/question", json!({}))})).await;
    in_state(&house, &id, "INPUT_REQUIRED").await;
    let cancelled = rpc(&house, "tasks/cancel", json!({"id": id})).await;
    assert_eq!(cancelled["result"]["success"], true, "{cancelled}");
    let told =
        events(opened(&house, "/a2a", "tasks/sendSubscribe", &json!({"id": id})).await).await;
    assert_eq!(words(&told).last(), Some(&"CANCELED"), "{told:?}");
    let again = rpc(&house, "tasks/cancel", json!({"id": id})).await;
    assert_eq!(again["result"]["success"], false, "{again}");
    assert!(again["result"]["message"].is_string(), "{again}");
}

#[tokio::test]
async fn errors_have_the_codes_and_texts_of_the_profile() {
    let house = house().await;
    let unknown = format!("run_{:032x}", 1);
    let nothing = json!({"role": "user", "parts": []});
    let agent = json!({"role": "agent", "parts": [{"type": "text", "content": "a"}]});
    for (method, params, number, begins) in [
        ("tasks/get", json!({"id": unknown}), -32001, "Task not found: run_"),
        ("tasks/cancel", json!({"id": "x"}), -32001, "Task not found: x"),
        ("tasks/sendSubscribe", json!({"id": unknown}), -32001, "Task not found: "),
        ("tasks/send", json!({"id": unknown, "message": text("a")}), -32001, "Task not found: "),
        ("tasks/get", json!({}), -32602, "Invalid parameters: "),
        ("tasks/get", json!([1]), -32602, "Invalid parameters: "),
        ("tasks/send", json!({}), -32602, "Invalid parameters: "),
        ("tasks/send", json!({"message": nothing}), -32602, "Invalid parameters: "),
        ("tasks/send", json!({"message": agent}), -32602, "Invalid parameters: "),
        ("tasks/resubscribe", json!({"id": unknown}), -32601, "there is no method"),
        (
            "tasks/send",
            json!({"message": text("a"), "webhookUrl": "http://127.0.0.1:9/hook"}),
            -32602,
            "Invalid parameters: the webhook's address cannot be used",
        ),
    ] {
        let answer = rpc(&house, method, params).await;
        assert_eq!(code(&answer), number, "{method}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(begins), "{method}: {message}");
    }
    for (body, number) in [
        ("{", -32700),
        ("7", -32600),
        ("[]", -32600),
        ("[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tasks/get\"}]", -32600),
        ("{\"jsonrpc\": \"1.0\", \"id\": 1, \"method\": \"tasks/get\"}", -32600),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"\"}", -32600),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1}", -32600),
    ] {
        let answer = read(house.open(request(Method::POST, "/a2a", Body::from(body))).await).await;
        assert_eq!((answer.status, code(&answer.body)), (200, number), "{body}: {answer:?}");
        assert_eq!(answer.body["id"], Value::Null, "{body}");
    }
    let answer = read(house.open(request(Method::GET, "/a2a", Body::empty())).await).await;
    assert_eq!((answer.status, code(&answer.body)), (405, -32600), "{answer:?}");
}

#[tokio::test]
async fn another_method_is_a_tool_that_the_caller_sees() {
    let house = house().await;
    let answer = rpc(&house, "math.add", json!({"a": 1, "b": 2})).await;
    assert_eq!(answer["result"]["structuredContent"], 3, "{answer}");
    let answer = rpc(&house, "math.add", json!({"a": "x"})).await;
    assert_eq!(code(&answer), -32602, "{answer}");
    assert_eq!(code(&rpc(&house, "math.multiply_by_moon", json!({})).await), -32601);
}

#[tokio::test]
async fn a_local_card_asks_for_nothing_and_is_found_by_its_id() {
    let house = house().await;
    let get = async |path: &str| -> Answer {
        read(house.open(request(Method::GET, path, Body::empty())).await).await
    };
    let card = get("/agent-card.json").await;
    assert_eq!(card.status, 200, "{card:?}");
    let shown = &card.body;
    assert_eq!(
        (&shown["schemaVersion"], &shown["capabilities"]["a2aVersion"]),
        (&json!("1.0"), &json!("1.0"))
    );
    assert_eq!(shown["url"], "http://localhost:8420/a2a");
    assert_eq!(shown["humanReadableId"], "waypost/default");
    assert_eq!(shown["authSchemes"], json!([{"scheme": "none"}]));
    let skill = shown["skills"].as_array().unwrap().iter().find(|skill| skill["id"] == ADD);
    assert!(skill.unwrap()["input_schema"]["properties"].is_object(), "{shown}");
    let cards = "/api/v1/agent-cards";
    for path in [cards.to_owned(), format!("{cards}/"), format!("{cards}?offset=0&limit=250")] {
        let list = get(&path).await;
        assert_eq!((list.status, &list.body["pagination"]["total_items"]), (200, &json!(1)));
        let id = list.body["items"][0]["id"].as_str().unwrap();
        for path in [
            format!("{cards}/{id}"),
            format!("{cards}/id/waypost/default"),
            format!("{cards}/id/waypost%2Fdefault/"),
            format!("{cards}/by-hri?hri=waypost/default"),
        ] {
            let found = get(&path).await;
            assert_eq!((found.status, &found.body["card_data"]), (200, shown), "{path}");
            assert_eq!((&found.body["id"], &found.body["developer_id"]), (&json!(id), &json!(0)));
        }
    }
    assert_eq!(get(&format!("{cards}?limit=251")).await.status, 422);
    assert_eq!(get(&format!("{cards}?search=nothing-like-this")).await.body["items"], json!([]));
    let unknown = get(&format!("{cards}/id/other/agent")).await;
    assert!(unknown.status == 404 && unknown.body["detail"].is_string(), "{unknown:?}");
    let written = read(house.open(request(Method::POST, cards, Body::from("{}"))).await).await;
    assert_eq!(written.status, 405, "{written:?}");
}

#[tokio::test]
async fn with_credentials_a_key_or_a_token_is_wanted_and_tasks_are_their_callers() {
    let settings = format!(
        "{OPEN}[a2a]\nexpose = [\"math::*\"]\npublic = [\"{ADD}\"]\n\
        vault_id = \"acme/desk\"\nservice_identifier = \"probe\"\n"
    );
    let guarded = Guarded::start(&settings).await;
    let card = guarded.get("/agent-card.json", &[]).await;
    let schemes = &card.body["authSchemes"];
    assert_eq!(
        (&schemes[0]["scheme"], &schemes[1]["scheme"]),
        (&json!("apiKey"), &json!("oauth2"))
    );
    let token_url = schemes[1]["tokenUrl"].as_str().unwrap();
    assert!(token_url.ends_with("://localhost:8420/oauth/token"), "{token_url}");
    assert_eq!(schemes[0]["service_identifier"], "probe");
    let listed = guarded.get("/api/v1/agent-cards/by-hri?hri=acme/desk", &[]).await;
    assert_eq!(listed.body["card_data"], card.body, "{listed:?}");
    assert_eq!(listed.headers["cache-control"], "no-store", "it may be more than others see");
    assert_eq!(card.body["skills"].as_array().unwrap().len(), 1, "strangers see what is public");
    let call = async |key: Option<&str>, method: &str, params: Value| -> Answer {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers: Vec<(&'static str, &str)> =
            key.map(|key| ("x-api-key", key)).into_iter().collect();
        read(guarded.open(Method::POST, "/a2a", &headers, &body).await).await
    };
    let sent = json!({"message": message(ADD, json!({"a": 1, "b": 2}))});
    for key in [None, Some("wp_wrong")] {
        let answer = call(key, "tasks/send", sent.clone()).await;
        assert_eq!((answer.status, code(&answer.body)), (401, -32000), "{answer:?}");
    }
    let ann = guarded.key(Role::Member).await;
    let bob = guarded.key(Role::Operator).await;
    let viewer = guarded.key(Role::Viewer).await;
    let id = call(Some(&ann), "tasks/send", sent).await.body["result"]["id"].clone();
    assert!(id.is_string());
    for method in ["tasks/get", "tasks/cancel", "tasks/sendSubscribe"] {
        let answer = call(Some(&bob), method, json!({"id": id})).await;
        assert_eq!((answer.status, code(&answer.body)), (200, -32001), "{method}: {answer:?}");
    }
    let answer = call(Some(&viewer), "math.add", json!({"a": 1, "b": 2})).await;
    assert!(answer.body["error"].is_object(), "{answer:?}");
}

#[tokio::test]
async fn a_skill_can_be_named_by_a_plain_word() {
    let house = house().await;
    let mut sent = message("it/making", json!({}));
    sent["metadata"] = json!({"skillId": "it/making"});
    let id = send(&house, json!({"message": sent})).await;
    let task = in_state(&house, &id, "COMPLETED").await;
    assert_eq!(task["messages"][0]["metadata"], sent["metadata"], "{task}");
    sent["metadata"] = json!({"skillId": "it/nothing"});
    let other = rpc(&house, "tasks/send", json!({"message": sent})).await;
    assert_eq!(code(&other), -32602, "{other}");
}

#[tokio::test]
async fn a_server_is_an_agent_of_another_one_by_its_card() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let data = tempfile::tempdir().unwrap();
    let (far, _stopper) = House::of(|| setup(project(), &data, address)).await;
    let router = far.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let card = format!("http://localhost:{}/agent-card.json", address.port());
    let settings = format!("[a2a.agents.far]\ncard = \"{card}\"\nallow_private = true\n");
    let config = Config::parse("waypost.toml", &settings).unwrap();
    let near = House::build(Project { config, ..Project::demo() }, None).await;
    let look = async || near.engine.tools().get(&local_caller(), "far.send").is_some();
    wait_for("the tools of the other server", look, |is_listed: &bool| *is_listed).await;
    let arguments = json!({"data": {}, "metadata": {SKILLS_EXTENSION: {"skill": "it/making"}}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "far.send", "params": arguments});
    let answer = near.open(request(Method::POST, "/rpc", Body::from(body.to_string()))).await;
    let answer = timeout(WAIT, read(answer)).await.expect("the other server has not answered");
    assert!(answer.text.contains("done"), "{answer:?}");
}

#[tokio::test]
async fn an_agent_whose_card_names_this_server_is_not_called() {
    let far = AgentServer::start(Duration::from_secs(1));
    let mut card = far.card();
    card["supportedInterfaces"][0]["url"] = json!(format!("http://{ADDRESS}/a2a/v1"));
    far.serve_card(card);
    let url = far.url();
    let settings = format!("[a2a.agents.far]\ncard = \"{url}\"\nallow_private = true\n");
    let config = Config::parse("waypost.toml", &settings).unwrap();
    let near = House::build(Project { config, ..Project::demo() }, None).await;
    let look = async || near.get("/api/v1/upstreams/far").await.body["lastError"].clone();
    let fault = wait_for("what is wrong with the card", look, Value::is_object).await;
    assert!(fault.to_string().contains("this server itself"), "{fault}");
}

/// What a receiver got, as a stream tells it.
fn notices(got: &[Got]) -> Vec<(String, Value)> {
    let notice = |got: &Got| {
        assert_eq!(got.headers["content-type"], "application/json");
        let event = got.body["event"].as_str().unwrap_or_else(|| panic!("no event: {}", got.body));
        (event.to_owned(), got.body["data"].clone())
    };
    got.iter().map(notice).collect()
}

async fn stream_of(house: &House, id: &Value) -> Vec<(String, Value)> {
    events(opened(house, "/a2a", "tasks/sendSubscribe", &json!({"id": id})).await).await
}

#[tokio::test]
async fn a_webhook_gets_what_a_stream_gets_also_after_a_failure() {
    let house = House::build(project_of(&format!("{SETTINGS}{PUSH}")), None).await;
    for (answers, failures) in [(vec![OK], 0), (vec!["503 Not now", OK], 1)] {
        let receiver = Receiver::new(&answers);
        let sent = json!({"message": message("it/making", json!({})), "webhookUrl": receiver.url});
        let id = send(&house, sent).await;
        let got = notices(&receiver.wait(6 + failures).await);
        assert_eq!(got[failures..], stream_of(&house, &id).await, "{got:?}");
        assert_eq!(got[0], got[failures], "what was not taken is posted again");
    }
    let card =
        read(house.open(request(Method::GET, "/agent-card.json", Body::empty())).await).await;
    assert_eq!(card.body["capabilities"]["supportsPushNotifications"], true, "{card:?}");
}

#[tokio::test]
async fn a_webhook_that_is_named_with_each_message_gets_everything_once() {
    let house = House::build(project_of(&format!("{SETTINGS}{PUSH}")), None).await;
    let receiver = Receiver::new(&[OK]);
    let late = Receiver::new(&[OK]);
    let asks = message("it/question", json!({}));
    let id = send(&house, json!({"message": asks, "webhookUrl": receiver.url})).await;
    let got = notices(&receiver.wait(4).await);
    assert_eq!(words(&got), ["SUBMITTED", "WORKING", "task_message", "INPUT_REQUIRED"]);
    let reply = json!({"id": id, "message": text("yes"), "webhookUrl": receiver.url});
    send(&house, reply).await;
    let got = notices(&receiver.wait(7).await);
    assert_eq!(got, stream_of(&house, &id).await);
    // One that comes with an answer gets what follows the answer.
    let id = send(&house, json!({"message": asks})).await;
    in_state(&house, &id, "INPUT_REQUIRED").await;
    send(&house, json!({"id": id, "message": text("yes"), "webhookUrl": late.url})).await;
    let got = notices(&late.wait(2).await);
    assert_eq!(words(&got), ["task_message", "COMPLETED"]);
    assert_eq!(got, stream_of(&house, &id).await[5..]);
}

#[tokio::test]
async fn a_webhook_is_told_the_rest_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let receiver = Receiver::new(&[OK]);
    let settings = format!("{SETTINGS}{PUSH}");
    let (house, stopper) = House::over(|| project_of(&settings), &data, None).await;
    let asks = json!({"message": message("it/question", json!({})), "webhookUrl": receiver.url});
    let id = send(&house, asks).await;
    let before = receiver.wait(4).await.len();
    stopper.stop().await;
    drop((house, stopper));
    let (house, stopper) = House::over(|| project_of(&settings), &data, None).await;
    send(&house, json!({"id": id, "message": text("yes")})).await;
    let told = stream_of(&house, &id).await;
    // What was posted as the server ended may be posted again.
    let posted = async || notices(&receiver.wait(before).await);
    let is_whole = |got: &Vec<(String, Value)>| got.last() == told.last();
    let got = wait_for("the end of the task to be posted", posted, is_whole).await;
    assert!(got.ends_with(&told[4..]), "{got:?}");
    stopper.stop().await;
}

#[tokio::test]
async fn a_webhook_that_cannot_be_is_refused_before_anything_begins() {
    let sent = |url: &str| json!({"message": message("it/making", json!({})), "webhookUrl": url});
    let house = house().await;
    for url in ["http://localhost:9/hook", "http://10.1.2.3/", "ftp://hooks.example.com/", "hook"] {
        let answer = rpc(&house, "tasks/send", sent(url)).await;
        assert_eq!(code(&answer), -32602, "{url}: {answer}");
    }
    let listed = a2a::rpc(&house, "ListTasks", json!({})).await;
    let tasks = listed["result"]["tasks"].as_array();
    assert!(tasks.is_none_or(Vec::is_empty), "a task began: {listed}");
    let off = format!("{SETTINGS}[a2a.push]\nenabled = false\n");
    let house = House::build(project_of(&off), None).await;
    let answer = rpc(&house, "tasks/send", sent("https://hooks.example.com/")).await;
    assert_eq!(code(&answer), -32000, "{answer}");
    let card =
        read(house.open(request(Method::GET, "/agent-card.json", Body::empty())).await).await;
    assert_eq!(card.body["capabilities"]["supportsPushNotifications"], false, "{card:?}");
}
