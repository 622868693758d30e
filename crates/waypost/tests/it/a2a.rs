//! `waypost a2a`: an agent's card is shown, it is sent messages in every version of the protocol,
//! its tasks are listed, and it is written into the settings.

use crate::process::{Server, waypost, waypost_with, write};
use serde_json::json;
use std::fs;
use std::time::Duration;
use testkit::servers::a2a::AgentServer;

const QUICK: Duration = Duration::from_millis(300);
const DIALECTS: [&str; 6] = ["rpc", "rest", "grpc", "old-rpc", "old-rest", "vault"];

#[test]
fn a_card_is_shown_from_its_address_and_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let agent = AgentServer::start(QUICK);
    let place = folder.path();
    let shown = waypost(place, &["a2a", "card", &agent.url()]).code(0);
    for part in ["Test agent", "1.2.3", "JSONRPC 1.0 at http://", "echo: Says it again."] {
        assert!(shown.stdout.contains(part), "{shown:#?}");
    }
    let document = waypost(place, &["--json", "a2a", "card", &agent.url()]).code(0).json();
    assert_eq!(document, agent.card());
    write(place, &[("card.json", &agent.card().to_string()), ("none.json", "[1]")]);
    let from_file = waypost(place, &["a2a", "card", "card.json"]).code(0);
    assert_eq!(from_file.stdout, shown.stdout);
    waypost(place, &["a2a", "card", "none.json"]).code(5).says("is no agent card");
    waypost(place, &["a2a", "card", "missing.json"]).code(5).says("missing.json");
    waypost(place, &["a2a", "card", "http://127.0.0.1:1"]).code(6).says("cannot reach agent");
    let old = waypost(place, &["a2a", "card", &agent.card_url("old-rest")]).code(0);
    assert!(old.stdout.contains("HTTP+JSON 0.3.0 at http://"), "{old:#?}");
}

#[test]
fn a_message_is_answered_in_every_dialect() {
    let folder = tempfile::tempdir().unwrap();
    let agent = AgentServer::start(QUICK);
    let place = folder.path();
    for dialect in DIALECTS {
        let card = agent.card_url(dialect);
        let send = |words: &[&str]| waypost(place, &[&["a2a", "send", &card][..], words].concat());
        let done = send(&["tck-complete-task"]).code(0);
        assert_eq!(done.stdout.trim_end(), "done", "{dialect}: {done:#?}");
        // A task that takes a while is waited for, unless one does not want to.
        let done = send(&["tck-long-running"]).code(0);
        assert_eq!(done.stdout.trim_end(), "done", "{dialect}: {done:#?}");
        send(&["tck-cancel-me", "--wait", "0"]).code(124).says("continues");
        send(&["tck-task-failure"]).code(1).says("it broke");
    }
}

#[test]
fn a_question_ends_with_its_own_code_and_is_answered_by_the_next_message() {
    let folder = tempfile::tempdir().unwrap();
    let agent = AgentServer::start(QUICK);
    let place = folder.path();
    let url = agent.url();
    let asked = waypost(place, &["--json", "a2a", "send", &url, "tck-input-required"]).code(3);
    let task = asked.json()["task"]["id"].as_str().unwrap().to_owned();
    let answered = waypost(place, &["a2a", "send", &url, "more", "--task", &task]).code(0);
    assert_eq!(answered.stdout.trim_end(), "You said: more");
    let said = waypost(place, &["a2a", "send", &url, "tck-input-required"]).code(3);
    assert_eq!(said.stdout.trim_end(), "What else?");
    said.says("answer with").says("--task task-");
    let data = ["a2a", "send", &url, "echo", "--data", "{\"n\":1}", "--skill", "echo"];
    let echoed = waypost(place, &data).code(0);
    assert!(echoed.stdout.contains("\"n\": 1"), "{echoed:#?}");
    let sent = agent.asked().pop().unwrap().body;
    assert_eq!(sent["params"]["message"]["metadata"]["skillId"], "echo", "{sent}");
    waypost(place, &["a2a", "send", &url, "--data", "{"]).code(2);
    waypost(place, &["a2a", "send", &url]).code(2).says("TEXT");
}

#[test]
fn variables_in_headers_are_expanded_and_sent_to_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let agent = AgentServer::start(QUICK);
    let url = agent.url();
    let words = ["a2a", "send", &url, "hi", "--header", "X-Api-Key: ${KEY}"];
    waypost(folder.path(), &words).code(2).says("`KEY` is not set");
    waypost_with(folder.path(), &words, &[("KEY", "k-1")]).code(0);
    assert_eq!(agent.asked().pop().unwrap().header("x-api-key"), Some("k-1"));
}

#[test]
fn the_tasks_of_a_waypost_server_are_listed_and_its_questions_answered() {
    let around = tempfile::tempdir().unwrap();
    let shop = around.path().join("shop");
    waypost(around.path(), &["init", "shop"]).code(0);
    let settings = fs::read_to_string(shop.join("waypost.toml")).unwrap();
    write(&shop, &[("waypost.toml", &format!("{settings}\n[a2a]\nexpose = [\"hello/*\"]\n"))]);
    let server = Server::of_project(&shop);
    let url = server.url.clone();
    let shown = waypost(&shop, &["a2a", "card", &url]).code(0);
    assert!(shown.stdout.contains("hello/greet"), "{shown:#?}");
    assert!(shown.stdout.contains("signed by"), "{shown:#?}");
    let send = ["--json", "a2a", "send", &url, "--skill", "hello/greet", "--data", "{}"];
    let asked = waypost(&shop, &send).code(3).json();
    let task = asked["task"]["id"].as_str().unwrap().to_owned();
    let listed = waypost(&shop, &["--json", "a2a", "tasks", &url]).code(0).json();
    assert_eq!(listed["items"][0]["id"], json!(task), "{listed}");
    let table = waypost(&shop, &["a2a", "tasks", &url]).code(0);
    assert!(table.stdout.contains("input-required"), "{table:#?}");
    waypost(&shop, &["a2a", "send", &url, "Ann", "--task", &task]).code(0);
    let listed = waypost(&shop, &["--json", "a2a", "tasks", &url, "--limit", "1"]).code(0).json();
    assert_eq!(listed["items"][0]["status"]["state"], "TASK_STATE_COMPLETED", "{listed}");
    let other = waypost(&shop, &["--json", "a2a", "tasks", &url, "--context", "none"]).code(0);
    assert_eq!(other.json()["items"], json!([]));
}

#[test]
fn an_agent_that_speaks_only_grpc_is_talked_to_and_its_tasks_are_listed() {
    let around = tempfile::tempdir().unwrap();
    let shop = around.path().join("shop");
    waypost(around.path(), &["init", "shop"]).code(0);
    let settings = fs::read_to_string(shop.join("waypost.toml")).unwrap();
    write(&shop, &[("waypost.toml", &format!("{settings}\n[a2a]\nexpose = [\"hello/*\"]\n"))]);
    let server = Server::of_project(&shop);
    let mut card = waypost(&shop, &["--json", "a2a", "card", &server.url]).code(0).json();
    let interfaces = card["supportedInterfaces"].as_array_mut().unwrap();
    interfaces.retain(|interface| interface["protocolBinding"] == "GRPC");
    write(&shop, &[("grpc.json", &card.to_string())]);
    let a2a = |command: &str, words: &[&str]| {
        let begin = ["--json", "a2a", command, "grpc.json", "--allow-private"];
        waypost(&shop, &[&begin[..], words].concat())
    };
    let asked = a2a("send", &["--skill", "hello/greet", "--data", "{}"]).code(3).json();
    let task = asked["task"]["id"].as_str().unwrap().to_owned();
    let listed = a2a("tasks", &[]).code(0).json();
    assert_eq!(listed["items"][0]["id"], json!(task), "{listed}");
    let done = a2a("send", &["Ann", "--task", &task]).code(0).json();
    assert_eq!(done["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let report = a2a("check", &["--skill", "hello/greet", "--data", "{}"]).json();
    assert!(wrong(&report).is_empty(), "{report}");
    for command in ["tasks", "check"] {
        waypost(&shop, &["a2a", command, "grpc.json"]).code(5).says("allow-private");
    }
    // What cannot be gone to is passed over.
    let interfaces = card["supportedInterfaces"].as_array_mut().unwrap();
    let elsewhere = json!({"url": "ftp://a.test/", "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0"});
    interfaces.insert(0, elsewhere);
    write(&shop, &[("grpc.json", &card.to_string())]);
    // The checks before made tasks, too.
    let listed = a2a("tasks", &[]).code(0).json();
    let mut items = listed["items"].as_array().unwrap().iter();
    assert!(items.any(|one| one["id"] == json!(task)), "{listed}");
    let report = a2a("check", &["--skill", "hello/greet", "--data", "{}"]).code(0).json();
    assert!(report.to_string().contains("http or https"), "{report}");
    assert_eq!(server.stop().0.code, Some(0));
}

#[test]
fn an_agent_is_added_to_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let agent = AgentServer::start(QUICK);
    let place = folder.path();
    write(place, &[("waypost.toml", "# ours\n[server]\nport = 1\n"), ("cards/a.json", "{}")]);
    let url = agent.url();
    let header = ["--header", "X-Key: ${KEY}"];
    waypost(place, &[&["a2a", "add", "trips", &url][..], &header].concat()).code(0);
    waypost(place, &["a2a", "add", "filed", "cards/a.json", "--prefix", ""]).code(0);
    let text = fs::read_to_string(place.join("waypost.toml")).unwrap();
    assert_eq!(
        text,
        format!(
            "# ours\n[server]\nport = 1\n\n[a2a.agents.trips]\ncard = \"{url}\"\n\
             headers = {{ X-Key = \"${{KEY}}\" }}\n\n\
             [a2a.agents.filed]\ncard = \"cards/a.json\"\nprefix = \"\"\n"
        )
    );
    let tested = waypost_with(place, &["mcp", "test", "trips"], &[("KEY", "k")]).code(0);
    assert!(tested.stdout.contains("A2A 1.0, JSON-RPC"), "{tested:#?}");
    waypost(place, &["a2a", "add", "trips", &url]).code(2).says("already");
    waypost(place, &["a2a", "add", "a b", &url]).code(2).says("cannot be the name");
    waypost(place, &["a2a", "add", "other", "nowhere.json"]).code(2).says("there is no card");
    let unknown = waypost(place, &["--json", "a2a", "add", "more", &url]).code(0).json();
    assert_eq!(unknown["name"], "more");
}

/// What is wrong, by its section.
fn wrong(report: &serde_json::Value) -> Vec<&serde_json::Value> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().filter(|finding| finding["result"] == "wrong").collect()
}

#[test]
fn our_own_server_passes_the_check() {
    let around = tempfile::tempdir().unwrap();
    let shop = around.path().join("shop");
    waypost(around.path(), &["init", "shop"]).code(0);
    let settings = fs::read_to_string(shop.join("waypost.toml")).unwrap();
    write(&shop, &[("waypost.toml", &format!("{settings}\n[a2a]\nexpose = [\"*\"]\n"))]);
    let server = Server::of_project(&shop);
    let url = server.url.clone();
    let words = ["--json", "a2a", "check", &url, "--skill", "hello/greet", "--data", "{}"];
    let report = waypost(&shop, &words).json();
    let found = wrong(&report);
    assert!(found.is_empty(), "{found:?}");
    let talked = |binding: &str| {
        let findings = report["findings"].as_array().unwrap().iter();
        findings.filter(|one| one["interface"] == binding && one["result"] == "ok").count()
    };
    for binding in ["JSONRPC 1.0", "HTTP+JSON 1.0", "GRPC 1.0"] {
        assert!(talked(binding) >= 10, "{binding}: {report}");
    }
    assert_eq!(server.stop().0.code, Some(0));
}

#[test]
fn violations_of_an_agent_are_reported_with_their_section() {
    let folder = tempfile::tempdir().unwrap();
    let agent = AgentServer::start(QUICK);
    let place = folder.path();
    let told = waypost(place, &["a2a", "check", &agent.url()]).code(1);
    // The test agent takes every version for one that it knows.
    assert!(told.stdout.contains("3.6.2"), "{told:#?}");
    let report = waypost(place, &["--json", "a2a", "check", &agent.url(), "--card-only"]).code(0);
    assert_eq!(report.json()["wrong"], 0, "the card is as it should be");
    let begun = agent.begun();
    let mut card = agent.card();
    card["skills"] = json!([]);
    write(place, &[("card.json", &card.to_string())]);
    let told = waypost(place, &["a2a", "check", "card.json", "--card-only", "--all"]).code(1);
    assert!(told.stdout.contains("5.7") && told.stdout.contains("4.4.1"), "{told:#?}");
    assert_eq!(agent.begun(), begun, "nothing was sent");
    waypost(place, &["a2a", "check", "http://127.0.0.1:1"]).code(6);
}
