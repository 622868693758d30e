//! A2A 1.0 over both bindings: tasks are sent, read, listed, answered, repeated and cancelled.

use crate::house::{Answer, House, approval, demo_with, question, read, request};
use crate::talk::{office, text as says};
use axum::body::Body;
use axum::http::Method;
use engine::PlanFile;
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};
use wire::a2a::{ASKS_EXTENSION, HOPS, SKILLS_EXTENSION};

pub const SETTINGS: &str = "[a2a]\nexpose = [\"it/*\", \"math::*\"]\n";
pub const ADD: &str = "math::conditional_add";

/// The demo with a plan that asks and one that wants an approval, and these settings.
pub async fn house(settings: &str) -> House {
    House::build(project(settings), None).await
}

/// What that is built from.
pub fn project(settings: &str) -> Project {
    let mut project = demo_with("plans/it/question.yaml", "it/question", &question().to_string());
    project.plans.push(PlanFile {
        file: "plans/it/approval.yaml".to_owned(),
        text: approval().to_string(),
        default_id: "it/approval".into(),
    });
    let config = Config::parse("waypost.toml", settings).unwrap();
    Project { config, ..project }
}

pub fn message(id: &str, skill: &str, part: Value) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": [part],
        "metadata": {SKILLS_EXTENSION: {"skill": skill}}})
}

/// A message to a task.
pub fn reply(id: &str, task: &Value, part: Value) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": [part], "taskId": task["id"]})
}

pub async fn open(house: &House, method: Method, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let mut request = request(method, path, body);
    request.headers_mut().insert("a2a-version", "1.0".parse().unwrap());
    read(house.open(request).await).await
}

/// The answer to a method of JSON-RPC.
pub async fn rpc(house: &House, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = open(house, Method::POST, "/a2a/v1", &body).await;
    assert_eq!((answer.status, &answer.body["id"]), (200, &json!(1)), "{answer:?}");
    answer.body
}

/// The task that a message leads to.
pub async fn send(house: &House, message: Value) -> Value {
    let answer = rpc(house, "SendMessage", json!({"message": message})).await;
    let task = answer["result"]["task"].clone();
    assert!(task.is_object(), "{answer}");
    task
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap().strip_prefix("TASK_STATE_").unwrap()
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test]
async fn a_skill_runs_and_both_bindings_tell_the_same() {
    let house = house(SETTINGS).await;
    let mut sent = message("m1", ADD, json!({"data": {"a": 1, "b": 2}}));
    sent["contextId"] = json!("my-context");
    let task = send(&house, sent.clone()).await;
    assert_eq!((state(&task), task["contextId"].as_str()), ("COMPLETED", Some("my-context")));
    assert_eq!(task["artifacts"][0]["artifactId"], "answer", "{task}");
    assert_eq!(task["history"][0]["messageId"], "m1");
    assert_eq!(task["history"][0]["parts"], sent["parts"]);
    let got = rpc(&house, "GetTask", json!({"id": task["id"]})).await;
    assert_eq!(got["result"], task);
    let path = format!("/a2a/v1/tasks/{}", task["id"].as_str().unwrap());
    let rest = open(&house, Method::GET, &path, &Value::Null).await;
    assert_eq!((rest.status, &rest.body), (200, &task));
    let short = open(&house, Method::GET, &format!("{path}?historyLength=0"), &Value::Null).await;
    assert!(short.body.get("history").is_none(), "{short:?}");
    sent["messageId"] = json!("m2");
    let body = json!({"message": sent});
    let rest = open(&house, Method::POST, "/a2a/v1/message:send", &body).await;
    assert_eq!((rest.status, state(&rest.body["task"])), (200, "COMPLETED"), "{rest:?}");
    assert_eq!(rest.body["task"]["artifacts"], task["artifacts"]);
}

#[tokio::test]
async fn a_text_goes_to_the_only_agent_and_may_be_answered_by_a_message() {
    let (house, _office) = office([says("hello there"), says("again")]).await;
    let said = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]});
    let task = send(&house, said).await;
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "hello there", "{task}");
    let mut wanted = message("m2", "agent/assistant", json!({"text": "hello"}));
    wanted["contextId"] = task["contextId"].clone();
    wanted["metadata"][SKILLS_EXTENSION]["reply"] = json!("message");
    let answer = rpc(&house, "SendMessage", json!({"message": wanted})).await;
    let message = &answer["result"]["message"];
    assert_eq!(message["parts"][0]["text"], "again", "{answer}");
    assert_eq!(message["contextId"], task["contextId"]);
}

#[tokio::test]
async fn a_text_starts_a_plan_without_input_and_no_plan_that_needs_data() {
    let house = house(SETTINGS).await;
    let task = send(&house, message("m1", "it/question", json!({"text": "go"}))).await;
    assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
    let params = json!({"message": message("m2", ADD, json!({"text": "1 and 2"}))});
    let refused = rpc(&house, "SendMessage", params).await;
    assert_eq!(code(&refused), -32602, "{refused}");
    let card = open(&house, Method::GET, "/.well-known/agent-card.json", &Value::Null).await.body;
    let modes = |id: &str| {
        let mut skills = card["skills"].as_array().unwrap().iter();
        skills.find(|skill| skill["id"] == id).unwrap()["inputModes"].clone()
    };
    assert_eq!((modes("it/question"), modes(ADD)), (Value::Null, json!(["application/json"])));
}

#[tokio::test]
async fn a_message_that_finds_no_skill_learns_why() {
    let (house, _office) = office([]).await;
    let refused = async |sent: Value| {
        let answer = rpc(&house, "SendMessage", json!({"message": sent})).await;
        assert_eq!(code(&answer), -32602, "{answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    };
    let said = |part: Value| json!({"messageId": "m", "role": "ROLE_USER", "parts": [part]});
    let mut misspelt = said(json!({"text": "hello"}));
    misspelt["metadata"] = json!({"skillId": "agent/asistant"});
    let why = refused(misspelt).await;
    assert!(why.contains("no skill `agent/asistant`"), "{why}");
    assert!(why.contains("agent/assistant"), "the right ones are listed: {why}");
    let why = refused(said(json!({"data": {"a": 1}}))).await;
    assert!(why.contains("only a text goes to the default agent"), "{why}");
    let bare = crate::a2a::house(SETTINGS).await;
    let sent = json!({"message": said(json!({"text": "hello"}))});
    let answer = rpc(&bare, "SendMessage", sent).await;
    assert!(answer.to_string().contains("no agent is the default"), "{answer}");
}

#[tokio::test]
async fn a_question_is_answered_by_a_message_to_its_task() {
    let house = house(SETTINGS).await;
    let task = send(&house, message("m1", "it/question", json!({"data": {}}))).await;
    assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
    let asks = &task["status"]["message"];
    assert_eq!(asks["parts"][0]["text"], "go on?");
    assert_eq!(asks["extensions"], json!([ASKS_EXTENSION]));
    let done = send(&house, reply("m2", &task, json!({"text": "yes"}))).await;
    assert_eq!((state(&done), &done["id"]), ("COMPLETED", &task["id"]));
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "yes", "{done}");
    let ids: Vec<&Value> =
        done["history"].as_array().unwrap().iter().map(|line| &line["messageId"]).collect();
    assert_eq!(ids, [&json!("m1"), &asks["messageId"], &json!("m2")]);
    let late = reply("m3", &task, json!({"text": "more"}));
    assert_eq!(code(&rpc(&house, "SendMessage", json!({"message": late})).await), -32004);
}

#[tokio::test]
async fn recorded_results_are_answered_although_the_wait_is_over() {
    let house = house(&format!("{SETTINGS}[limits]\na2a_wait_ms_max = 1\n")).await;
    for round in 0..5 {
        // What a run does without waiting for anyone is recorded with its start, or with the answer
        // that lets it continue.
        let sum = message(&format!("a{round}"), ADD, json!({"data": {"a": 1, "b": 2}}));
        assert_eq!(state(&send(&house, sum).await), "COMPLETED");
        let asked = message(&format!("b{round}"), "it/question", json!({"data": {}}));
        let task = send(&house, asked).await;
        assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
        let done = send(&house, reply(&format!("c{round}"), &task, json!({"text": "yes"}))).await;
        assert_eq!(state(&done), "COMPLETED", "{done}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again() {
    let house = house(SETTINGS).await;
    let task = send(&house, message("m1", "it/approval", json!({"data": {}}))).await;
    assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
    let asked = &task["status"]["message"]["parts"][1]["data"];
    assert_eq!(asked["calls"][0]["arguments"], json!({"a": 1, "b": 2}), "{task}");
    let again = send(&house, reply("m2", &task, json!({"text": "perhaps"}))).await;
    assert_eq!(state(&again), "INPUT_REQUIRED");
    let words = again["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(words.contains("not an answer"), "{words}");
    let decision = json!({"askId": asked["askId"], "approve": true, "digest": asked["digest"]});
    let done = send(&house, reply("m3", &task, json!({"data": decision}))).await;
    assert_eq!((state(&done), &done["artifacts"][0]["parts"][0]["data"]), ("COMPLETED", &json!(3)));
}

#[tokio::test]
async fn a_refused_approval_rejects_and_the_inbox_settles_the_same_ask() {
    let house = house(SETTINGS).await;
    let task = send(&house, message("m1", "it/approval", json!({"data": {}}))).await;
    let denied = send(&house, reply("m2", &task, json!({"text": "no"}))).await;
    assert_eq!(state(&denied), "REJECTED", "{denied}");
    let task = send(&house, message("m3", "it/question", json!({"data": {}}))).await;
    let ask = task["status"]["message"]["parts"][1]["data"]["askId"].as_str().unwrap();
    let path = format!("/api/v1/asks/{ask}");
    let settled = house.post(&path, json!({"answer": "from the inbox"})).await;
    assert_eq!(settled.status, 200, "{settled:?}");
    let late = reply("m4", &task, json!({"text": "from A2A"}));
    assert_eq!(code(&rpc(&house, "SendMessage", json!({"message": late})).await), -32004);
    let got = rpc(&house, "GetTask", json!({"id": task["id"]})).await;
    assert_eq!(got["result"]["artifacts"][0]["parts"][0]["text"], "from the inbox");
}

#[tokio::test]
async fn a_repeated_message_gets_the_first_task() {
    let house = house(SETTINGS).await;
    let add = |a: u32| message("m1", ADD, json!({"data": {"a": a, "b": 2}}));
    let first = send(&house, add(1)).await;
    assert_eq!(send(&house, add(1)).await, first);
    assert_ne!(send(&house, add(5)).await["id"], first["id"], "another message is a new one");
    // What calls nothing is found by its commit, however it is waited for.
    let ask = || message("m9", "it/question", json!({"data": {}}));
    let asking = send(&house, ask()).await;
    assert_eq!(send(&house, ask()).await, asking);
    let at_once = json!({"message": ask(), "configuration": {"returnImmediately": true}});
    let at_once = rpc(&house, "SendMessage", at_once).await;
    assert_eq!(at_once["result"]["task"], asking);
    let task = send(&house, message("m2", "it/question", json!({"data": {}}))).await;
    let yes = reply("m3", &task, json!({"text": "yes"}));
    let done = send(&house, yes.clone()).await;
    assert_eq!(send(&house, yes).await, done, "an answer is repeated too");
    let other = crate::a2a::house(&format!("{SETTINGS}repeat_window = 0\n")).await;
    assert_ne!(send(&other, add(1)).await["id"], send(&other, add(1)).await["id"]);
}

#[tokio::test]
async fn a_repeat_gets_the_first_task_also_where_it_could_not_begin_any_more() {
    let house = house(SETTINGS).await;
    let path = "/api/v1/plans/it%2Fchanged";
    let mut plan = question();
    plan["planId"] = json!("it/changed");
    assert_eq!(house.put(path, &[], plan.clone()).await.status, 201);
    let ask = |id: &str| message(id, "it/changed", json!({"data": {}}));
    let first = send(&house, ask("m1")).await;
    plan["parameters"] = json!({"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}}});
    assert_eq!(house.put(path, &[], plan).await.status, 200);
    let another = rpc(&house, "SendMessage", json!({"message": ask("m2")})).await;
    assert_eq!(code(&another), -32602, "{another}");
    assert_eq!(send(&house, ask("m1")).await, first);
}

#[tokio::test]
async fn files_come_back_as_they_were_sent_and_addresses_are_not_fetched() {
    let (house, _office) = office([says("seen")]).await;
    let parts = json!([{"text": "look"}, {"raw": "dGNr", "filename": "a.txt"},
        {"url": "http://127.0.0.1:1/never"}]);
    let said = json!({"messageId": "m1", "role": "ROLE_USER", "parts": parts});
    let task = send(&house, said).await;
    assert_eq!(task["history"][0]["parts"], parts, "{task}");
}

#[tokio::test]
async fn an_answer_names_the_extensions_that_are_known_here() {
    let house = house(SETTINGS).await;
    let named = format!("https://example.com/none/v1, {ASKS_EXTENSION}");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}});
    for (method, path, body) in
        [(Method::POST, "/a2a/v1", list.to_string()), (Method::GET, "/a2a/v1/tasks", String::new())]
    {
        let mut asked = request(method, path, Body::from(body));
        asked.headers_mut().insert("a2a-version", "1.0".parse().unwrap());
        asked.headers_mut().insert("a2a-extensions", named.parse().unwrap());
        let answer = read(house.open(asked).await).await;
        assert_eq!((answer.status, answer.header("a2a-extensions")), (200, ASKS_EXTENSION));
    }
    let plain = open(&house, Method::GET, "/a2a/v1/tasks", &Value::Null).await;
    assert_eq!(plain.header("a2a-extensions"), "", "none was named");
}

#[tokio::test]
async fn parts_have_the_media_types_that_the_card_declares() {
    let settings = format!("{SETTINGS}input_modes = [\"application/json\", \"image/gif\"]\n");
    let house = house(&settings).await;
    let card = open(&house, Method::GET, "/.well-known/agent-card.json", &Value::Null).await.body;
    assert_eq!(card["defaultInputModes"], json!(["application/json", "image/gif"]), "{card}");
    let picture = json!({"raw": "dGNr", "mediaType": "image/gif"});
    for (part, number) in [(picture, -32602), (json!({"text": "a"}), -32005)] {
        let params = json!({"message": message("m1", ADD, part)});
        let answer = rpc(&house, "SendMessage", params).await;
        assert_eq!(code(&answer), number, "{answer}");
    }
    let value = json!({"data": {"a": 1, "b": 2}, "mediaType": "application/json"});
    let task = send(&house, message("m2", ADD, value)).await;
    assert_eq!(state(&task), "COMPLETED", "{task}");
}

#[tokio::test]
async fn a_waiting_task_is_cancelled_once() {
    let house = house(SETTINGS).await;
    let task = send(&house, message("m1", "it/question", json!({"data": {}}))).await;
    let params = json!({"id": task["id"]});
    let answer = rpc(&house, "CancelTask", params.clone()).await;
    assert_eq!(state(&answer["result"]), "CANCELED", "{answer}");
    assert_eq!(code(&rpc(&house, "CancelTask", params).await), -32002);
    let path = format!("/a2a/v1/tasks/{}:cancel", task["id"].as_str().unwrap());
    let rest = open(&house, Method::POST, &path, &Value::Null).await;
    let reason = &rest.body["error"]["details"][0]["reason"];
    assert_eq!((rest.status, reason), (400, &json!("TASK_NOT_CANCELABLE")), "{rest:?}");
}

#[tokio::test]
async fn tasks_are_listed_page_by_page() {
    let house = house(SETTINGS).await;
    let empty = rpc(&house, "ListTasks", json!({})).await;
    let nothing = json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0});
    assert_eq!(empty["result"], nothing);
    for index in 0..3 {
        let mut add = message(&format!("m{index}"), ADD, json!({"data": {"a": 1, "b": 2}}));
        add["contextId"] = json!(if index == 0 { "one" } else { "two" });
        send(&house, add).await;
    }
    let waits = send(&house, message("m9", "it/question", json!({"data": {}}))).await;
    let page = rpc(&house, "ListTasks", json!({"pageSize": 3})).await["result"].clone();
    let tasks = page["tasks"].as_array().unwrap();
    assert_eq!((tasks.len(), &page["totalSize"]), (3, &json!(4)), "{page}");
    assert_eq!(tasks[0]["id"], waits["id"], "the one that changed last is the first");
    assert!(tasks[0].get("history").is_none() && tasks[0].get("artifacts").is_none());
    let token = &page["nextPageToken"];
    let rest = rpc(&house, "ListTasks", json!({"pageSize": 3, "pageToken": token})).await;
    assert_eq!(rest["result"]["tasks"].as_array().unwrap().len(), 1, "{rest}");
    assert_eq!(rest["result"]["nextPageToken"], "");
    let other = rpc(&house, "ListTasks", json!({"contextId": "two", "pageToken": token})).await;
    assert_eq!(code(&other), -32602, "a token is good for its filter");
    assert_eq!(code(&rpc(&house, "ListTasks", json!({"pageToken": "x"})).await), -32602);
    assert_eq!(code(&rpc(&house, "ListTasks", json!({"pageSize": 0})).await), -32602);
    for (filter, total) in [
        ("contextId=two", 2),
        ("status=TASK_STATE_COMPLETED", 3),
        ("status=TASK_STATE_INPUT_REQUIRED", 1),
        ("status=TASK_STATE_FAILED", 0),
    ] {
        let path = format!("/a2a/v1/tasks?{filter}&includeArtifacts=true");
        let listed = open(&house, Method::GET, &path, &Value::Null).await;
        assert_eq!(listed.body["totalSize"], total, "{filter}: {listed:?}");
        let has_artifacts = |task: &Value| task["artifacts"].is_array();
        assert!(listed.body["tasks"].as_array().unwrap().iter().all(has_artifacts));
    }
}

#[tokio::test]
async fn errors_follow_the_table_in_both_bindings() {
    let house = house(SETTINGS).await;
    let missing = json!({"id": format!("run_{:032x}", 1)});
    let bad = |part: Value| json!({"message": message("m1", ADD, part)});
    for (method, params, number) in [
        ("GetTask", missing.clone(), -32001),
        ("GetTask", json!({"id": "x"}), -32001),
        ("GetTask", json!({}), -32602),
        ("CancelTask", missing.clone(), -32001),
        ("SubscribeToTask", missing, -32001),
        ("SendMessage", json!({}), -32602),
        ("SendMessage", json!({"message": {"messageId": "m", "role": "ROLE_USER"}}), -32602),
        ("SendMessage", bad(json!({})), -32602),
        ("SendMessage", bad(json!({"data": {"a": "x"}})), -32602),
        ("SendMessage", bad(json!({"text": "a", "mediaType": "image/png"})), -32005),
        ("SendMessage", bad(json!({"raw": "dGNr", "mediaType": "image/gif"})), -32005),
        ("SendMessage", json!({"message": message("m", "none", json!({"data": {}}))}), -32602),
        ("CreateTaskPushNotificationConfig", json!({}), -32602),
        ("NoSuchMethod", json!({}), -32601),
        ("message/send", json!({}), -32009),
        ("GetTask", json!({"id": "x", "historyLength": -1}), -32602),
    ] {
        let answer = rpc(&house, method, params.clone()).await;
        assert_eq!(code(&answer), number, "{method} {params}: {answer}");
    }
    let misfit = rpc(&house, "SendMessage", bad(json!({"data": {"a": "x"}}))).await;
    let field = &misfit["error"]["data"][0]["fieldViolations"][0]["field"];
    assert!(field.as_str().unwrap().starts_with("message.parts"), "{misfit}");
    for (method, path, status, reason) in [
        (Method::GET, "/a2a/v1/tasks/x", 404, Some("TASK_NOT_FOUND")),
        (Method::GET, "/a2a/v1/nothing/here", 404, None),
        (Method::DELETE, "/a2a/v1/tasks/x", 405, None),
        (Method::GET, "/a2a/v1/tasks?pageSize=many", 400, None),
        (Method::GET, "/a2a/v1/tasks/x/pushNotificationConfigs", 404, Some("TASK_NOT_FOUND")),
        (Method::PUT, "/a2a/v1/tasks/x/pushNotificationConfigs/y", 405, None),
    ] {
        let answer = open(&house, method, path, &Value::Null).await;
        let told = answer.body["error"]["details"][0]["reason"].as_str();
        assert_eq!((answer.status, told), (status, reason), "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn requests_of_other_versions_are_refused() {
    let house = house(SETTINGS).await;
    let get = json!({"jsonrpc": "2.0", "id": "a", "method": "GetTask", "params": {"id": "x"}});
    for (version, number) in
        [(None, -32009), (Some("0.3"), -32009), (Some("1.1"), -32009), (Some("1.0.1"), -32001)]
    {
        let mut request = request(Method::POST, "/a2a/v1/", Body::from(get.to_string()));
        if let Some(version) = version {
            request.headers_mut().insert("a2a-version", version.parse().unwrap());
        }
        let answer = read(house.open(request).await).await;
        assert_eq!((code(&answer.body), &answer.body["id"]), (number, &json!("a")), "{version:?}");
    }
    for (body, number) in [("[]", -32600), ("nonsense", -32700), ("{\"jsonrpc\":\"2.0\"}", -32600)]
    {
        let mut request = request(Method::POST, "/a2a/v1", Body::from(body));
        request.headers_mut().insert("a2a-version", "1.0".parse().unwrap());
        let answer = read(house.open(request).await).await;
        assert_eq!((code(&answer.body), &answer.body["id"]), (number, &Value::Null), "{body}");
    }
}

#[tokio::test]
async fn the_card_offers_the_bindings_that_are_set_in_their_order() {
    for (bindings, expected) in [
        (
            "\"rest\", \"jsonrpc\"",
            vec!["HTTP+JSON 1.0", "JSONRPC 1.0", "HTTP+JSON 0.3", "JSONRPC 0.3"],
        ),
        ("\"grpc\"", vec!["GRPC 1.0"]),
    ] {
        let house = house(&format!("{SETTINGS}bindings = [{bindings}]\n")).await;
        let path = "/.well-known/agent-card.json";
        let card = open(&house, Method::GET, path, &Value::Null).await.body;
        let named = |one: &Value, member: &str| one[member].as_str().unwrap().to_owned();
        let offered: Vec<String> = card["supportedInterfaces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| [named(one, "protocolBinding"), named(one, "protocolVersion")].join(" "))
            .collect();
        assert_eq!(offered, expected, "{card}");
        let is_old = card.get("additionalInterfaces").is_some();
        assert_eq!(is_old, bindings != "\"grpc\"", "{card}");
    }
}

#[tokio::test]
async fn the_card_shows_what_can_be_called_and_is_kept() {
    let house = house(SETTINGS).await;
    let answer = open(&house, Method::GET, "/.well-known/agent-card.json", &Value::Null).await;
    assert_eq!(answer.status, 200);
    let card = &answer.body;
    let addresses: Vec<&Value> =
        card["supportedInterfaces"].as_array().unwrap().iter().map(|one| &one["url"]).collect();
    let http = "http://localhost:8420/a2a/v1";
    let grpc = "localhost:8420";
    assert_eq!(addresses, [http, http, grpc, http, http], "three bindings of 1.0, two of 0.3");
    let skills = card["skills"].as_array().unwrap();
    assert!(skills.iter().any(|skill| skill["id"] == ADD), "{card}");
    let schemas = &card["capabilities"]["extensions"][0]["params"]["skills"][ADD]["input"];
    let schema: Value = serde_json::from_str(schemas.as_str().unwrap()).unwrap();
    assert!(schema["properties"].is_object());
    assert!(answer.header("cache-control").contains("max-age="));
    assert!(answer.header("last-modified").ends_with(" GMT"));
    let tag = answer.header("etag");
    let mut again = request(Method::GET, "/.well-known/agent-card.json", Body::empty());
    again.headers_mut().insert("if-none-match", tag.parse().unwrap());
    assert_eq!(house.open(again).await.status().as_u16(), 304);
    let extended = rpc(&house, "GetExtendedAgentCard", json!({})).await;
    assert_eq!(extended["result"]["skills"], card["skills"]);
    let rest = open(&house, Method::GET, "/a2a/v1/extendedAgentCard", &Value::Null).await;
    assert_eq!(rest.body, extended["result"]);
}

#[tokio::test]
async fn a_circle_of_agents_ends() {
    let house = house(&format!("{SETTINGS}[limits]\na2a_hops_max = 3\n")).await;
    let sent = |id: &str, hops: Value| {
        let mut sent = message(id, ADD, json!({"data": {"a": 1, "b": 2}}));
        sent["metadata"][HOPS] = hops;
        json!({"message": sent})
    };
    let taken = rpc(&house, "SendMessage", sent("m1", json!(3))).await;
    assert_eq!(state(&taken["result"]["task"]), "COMPLETED");
    let refused = rpc(&house, "SendMessage", sent("m2", json!(4))).await;
    assert_eq!(code(&refused), -32004, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("a2a_hops_max"), "{refused}");
    assert_eq!(code(&rpc(&house, "SendMessage", sent("m3", json!("many"))).await), -32602);
}
