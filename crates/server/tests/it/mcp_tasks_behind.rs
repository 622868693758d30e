//! Tasks of a server behind ours, whose calls are recorded: a client sees what it would see without
//! us, with what its server asks for under that server's keys.

use crate::house::{House, text, wait_for};
use crate::mcp_place::{Place, accept, forms, message, modern, said, tasks};
use crate::transparent::{before, listening};
use project::config::Config;
use project::folder::Project;
use serde_json::{Value, json};

/// A server with tasks, and one that has it behind it under the same names.
struct Pair {
    direct: Place,
    through: House,
}

impl Pair {
    /// With what the settings of the one say of the other.
    async fn set(setting: &str) -> Self {
        let direct = Place::new("").await;
        let entry = format!("prefix = \"\"\n{setting}\n");
        let through = before(direct.router(), &entry, "it__broken").await;
        Self { direct, through }
    }

    /// The response through us to a client that can this.
    async fn ask(&self, method: &str, can: &Value, params: Value) -> Value {
        message(&self.through.send(modern(method, can, params)).await)
    }

    /// The result through us to a client that takes tasks.
    async fn result(&self, method: &str, params: Value) -> Value {
        let response = self.ask(method, &tasks(), params).await;
        assert!(response["error"].is_null(), "{response}");
        response["result"].clone()
    }

    /// The task once it asks for so much, or is over.
    async fn asking(&self, id: &Value, count: usize) -> Value {
        let look = async || self.result("tasks/get", json!({"taskId": id})).await;
        let asks = |task: &Value| match task["status"].as_str() {
            Some("working") => false,
            Some("input_required") => keys(task).len() == count,
            _ => true,
        };
        wait_for(&format!("the task to ask for {count}"), look, asks).await
    }

    /// The task of the plan that asks for two things at once, when it does.
    async fn two(&self) -> Value {
        self.begun("it--two", 2).await
    }

    /// The task of this plan, once it asks for so much.
    async fn begun(&self, plan: &str, count: usize) -> Value {
        let created = self.result("tools/call", json!({"name": plan, "arguments": {}})).await;
        assert_eq!(created["resultType"], "task", "{created}");
        let task = self.asking(&created["taskId"], count).await;
        assert_eq!(task["status"], "input_required", "{task}");
        task
    }

    async fn update(&self, task: &Value, responses: Value) {
        let params = json!({"taskId": task["taskId"], "inputResponses": responses});
        let ack = self.result("tasks/update", params).await;
        assert!(ack["resultType"] == "complete" && ack.get("taskId").is_none(), "{ack}");
    }
}

/// What a task asks for, by key.
fn keys(task: &Value) -> Vec<String> {
    let requests = task["inputRequests"].as_object().unwrap_or_else(|| panic!("{task}"));
    let mut keys: Vec<String> = requests.keys().cloned().collect();
    keys.sort();
    keys
}

/// The open asks of a server, by id.
fn open(asks: &Value) -> Vec<String> {
    let items = asks["items"].as_array().unwrap_or_else(|| panic!("{asks}"));
    let mut ids: Vec<String> = items.iter().map(|ask| text(&ask["id"])).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn a_tool_for_tasks_alone_is_refused_as_without_us() {
    let broken = json!({"name": "it__broken", "arguments": {}});
    for setting in ["", "trusted = true", "journal = false"] {
        let pair = Pair::set(setting).await;
        let direct = pair.direct.ask("tools/call", &forms(), broken.clone()).await;
        assert_eq!(direct["error"]["code"], -32021, "{direct}");
        let through = pair.ask("tools/call", &forms(), broken.clone()).await;
        assert_eq!(through["error"], direct["error"], "`{setting}`");
        // Who cannot declare tasks has them followed: the tool is called, and fails.
        let called =
            pair.through.post("/api/v1/tools/it__broken/call", json!({"arguments": {}})).await;
        assert!(called.text.contains("it is broken"), "`{setting}`: {called:?}");
    }
}

#[tokio::test]
async fn a_task_shows_all_that_it_asks_for_and_takes_each_answer_by_itself() {
    let pair = Pair::set("").await;
    let task = pair.two().await;
    let there = open(&pair.direct.get("/api/v1/asks?status=open").await);
    assert_eq!(keys(&task), there, "the keys are those of the server behind");
    let answer = |key: &str| {
        let asked = text(&task["inputRequests"][key]["params"]["message"]);
        let words = if asked.starts_with("left?") { "L" } else { "{\"a\": [1]}" };
        accept(json!({"answer": words}))
    };
    // The one that is open in the inbox here comes last.
    let first = &there[1];
    let last = &there[0];
    pair.update(&task, json!({first: answer(first), "unknown": {"action": "cancel"}})).await;
    let rest = pair.asking(&task["taskId"], 1).await;
    assert_eq!(keys(&rest), there[..1], "{rest}");
    let left_there = open(&pair.direct.get("/api/v1/asks?status=open").await);
    assert_eq!(left_there, there[..1], "the first answer is there already");
    pair.update(&task, json!({last: answer(last)})).await;
    let done = pair.asking(&task["taskId"], 0).await;
    assert_eq!(said(&done["result"]), r#"{"left":"L","right":{"a":[1]}}"#, "{done}");
}

#[tokio::test]
async fn an_ask_answered_in_the_inbox_is_no_longer_asked_of_the_client() {
    let pair = Pair::set("").await;
    let task = pair.two().await;
    let both = keys(&task);
    let content = json!({"answer": "{\"a\": [1]}"});
    let here = pair.through.get("/api/v1/asks?status=open").await.body;
    let ask = open(&here).remove(0);
    let reply = json!({"action": "accept", "content": content});
    let answered = pair.through.post(&format!("/api/v1/asks/{ask}"), reply).await;
    assert!(answered.status < 300, "{answered:?}");
    let rest = pair.asking(&task["taskId"], 1).await;
    assert_eq!(keys(&rest), both[1..], "people are asked in the order of the keys");
    let there = open(&pair.direct.get("/api/v1/asks?status=open").await);
    assert_eq!(there, both, "nobody has all the answers yet");
    let misfit = json!({"taskId": task["taskId"], "inputResponses": {&both[1]: {"action": "?"}}});
    let refused = pair.ask("tasks/update", &tasks(), misfit).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    pair.update(&task, json!({&both[1]: accept(content)})).await;
    let done = pair.asking(&task["taskId"], 0).await;
    assert_eq!(done["status"], "completed", "{done}");
}

#[tokio::test]
async fn an_answer_that_comes_while_the_task_moves_is_not_acknowledged() {
    let pair = Pair::set("").await;
    let task = pair.begun("it--then", 1).await;
    let first = keys(&task).remove(0);
    let answer = accept(json!({"answer": "yes"}));
    pair.update(&task, json!({&first: answer})).await;
    // What it will ask for next is not known yet.
    let next = json!({"taskId": task["taskId"], "inputResponses": {"next": answer}});
    let refused = pair.ask("tasks/update", &tasks(), next).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    assert!(refused["error"]["data"]["retryAfterMs"].is_u64(), "{refused}");
    // The task has this one already.
    pair.update(&task, json!({&first: answer})).await;
    pair.direct.release.notify_one();
    let done = pair.asking(&task["taskId"], 0).await;
    assert_eq!(done["status"], "completed", "{done}");
    pair.update(&task, json!({"next": answer})).await;
}

#[tokio::test]
async fn an_answer_under_the_id_of_the_ask_goes_along_with_one_under_a_key() {
    let pair = Pair::set("").await;
    let task = pair.two().await;
    let ask = open(&pair.through.get("/api/v1/asks?status=open").await.body).remove(0);
    let answer = accept(json!({"answer": "{\"a\": [1]}"}));
    let last = keys(&task).remove(1);
    pair.update(&task, json!({ask: answer, last: answer})).await;
    let done = pair.asking(&task["taskId"], 0).await;
    assert_eq!(done["status"], "completed", "{done}");
}

#[tokio::test]
async fn right_after_a_restart_a_task_asks_under_the_same_keys() {
    let direct = Place::new("").await;
    let url = listening(direct.router()).await;
    let project = || {
        let settings = format!("[mcp.servers.far]\nurl = \"{url}\"\nprefix = \"\"\n");
        let config = Config::parse("waypost.toml", &settings).unwrap();
        Project { config, ..Project::demo() }
    };
    let data = tempfile::tempdir().unwrap();
    let (through, stopper) = House::over(project, &data, None).await;
    let listed = async || through.get("/api/v1/tools/it__broken").await.status;
    wait_for("the tools of the server behind", listed, |status| *status == 200).await;
    let pair = Pair { direct, through };
    let task = pair.two().await;
    stopper.stop().await;
    let Pair { direct, through } = pair;
    drop(through);

    // Its tools are not listed again yet.
    let (through, _stopper) = House::over(project, &data, None).await;
    let pair = Pair { direct, through };
    let again = pair.result("tasks/get", json!({"taskId": task["taskId"]})).await;
    assert_eq!(keys(&again), keys(&task), "{again}");
}
