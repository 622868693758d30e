//! The proxy example as its users run it: `waypost up` in its folder, without a key, as part of the
//! demo, and its tool server by itself.

use crate::process::{Listening, Server};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use testkit::caller::{Caller, Era};
use testkit::harness::wait_for;
use testkit::http::Client;

const LIMIT: Duration = Duration::from_secs(120);
const BANNER: &str = "filesystem server listening on http://";
const SETTINGS: &str = include_str!("../../../../examples/vault-proxy/waypost.toml");

/// The example in a folder of the test's own.
fn example() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("waypost.toml"), SETTINGS).unwrap();
    folder
}

fn client(server: &Server) -> Client {
    let address: SocketAddr = server.url.trim_start_matches("http://").parse().unwrap();
    Client::new(address).limit(LIMIT)
}

fn rpc(client: &mut Client, method: &str, params: &Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": "req-1", "method": method, "params": params});
    let answer = client.post("/a2a", &body).unwrap_or_else(|error| panic!("{method}: {error}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// The state of the task of an instruction once it is over, and its output.
fn executed(client: &mut Client, part: &Value) -> (String, Value) {
    let message = json!({"role": "user", "parts": [part]});
    let sent = rpc(client, "tasks/send", &json!({"message": message}));
    let params = json!({"id": sent["result"]["id"]});
    let task = wait_for("the task to be over", LIMIT, || {
        let task = rpc(client, "tasks/get", &params)["result"].clone();
        let state = task["state"].as_str().unwrap_or_else(|| panic!("{sent}: {task}"));
        ["COMPLETED", "FAILED"].contains(&state).then_some(task.clone())
    });
    let last = task["messages"].as_array().unwrap().last().unwrap();
    (task["state"].as_str().unwrap().to_owned(), last["parts"][0]["content"].clone())
}

fn instruction(tool: &str, arguments: &Value) -> Value {
    json!({"target_mcp_server_id": "filesystem", "tool_name": tool, "arguments": arguments})
}

fn called(client: &mut Client, tool: &str, arguments: &Value) -> (String, Value) {
    let content = instruction(tool, arguments);
    executed(client, &json!({"type": "data", "content": content}))
}

#[test]
fn the_example_serves_only_its_folder() {
    let folder = example();
    let server = Server::of_project(folder.path());
    let mut client = client(&server);
    let card = client.get("/agent-card.json").unwrap().json();
    assert_eq!(card["humanReadableId"], "local-poc/mcp-tool-proxy", "{card}");
    assert_eq!(card["authSchemes"], json!([{"scheme": "none"}]));
    let url = format!("http://localhost:{}/a2a", server.port());
    assert_eq!(card["url"], url);
    let skills: Vec<&Value> =
        card["skills"].as_array().unwrap().iter().map(|skill| &skill["id"]).collect();
    assert_eq!(skills, ["mcp.execute_tool"]);
    let file = json!({"path": "notes/a.txt", "content": "hello"});
    let (state, wrote) = called(&mut client, "filesystem.writeFile", &file);
    assert_eq!((state.as_str(), &wrote["success"]), ("COMPLETED", &json!(true)), "{wrote}");
    let kept = folder.path().join(".waypost/files/notes/a.txt");
    assert_eq!(fs::read_to_string(kept).unwrap(), "hello");
    let text = instruction("filesystem.readFile", &json!({"path": "notes/a.txt"})).to_string();
    let (_, read) = executed(&mut client, &json!({"type": "text", "content": text}));
    assert_eq!(read["mcp_result"]["content"][0]["text"], "hello", "{read}");
    let (_, listed) = called(&mut client, "listDirectory", &json!({"path": "."}));
    assert_eq!(listed["mcp_result"]["content"][0]["text"], "notes/", "{listed}");
    for path in ["../../waypost.toml", "/etc/hostname", "none.txt"] {
        let (state, refused) = called(&mut client, "filesystem.readFile", &json!({"path": path}));
        assert_eq!(state, "FAILED", "{path}: {refused}");
        let error = &refused["error"];
        assert_eq!(error["source"], "MCP_TOOL", "{path}: {refused}");
        assert_eq!(error["code"], "TOOL_EXECUTION_FAILED", "{path}: {refused}");
    }
}

#[test]
fn the_demo_has_the_proxy_and_removes_its_files() {
    let server = Server::demo();
    let mut client = client(&server);
    let card = client.get("/agent-card.json").unwrap().json();
    let mut skills = card["skills"].as_array().unwrap().iter();
    assert!(skills.any(|skill| skill["id"] == "mcp.execute_tool"), "{card}");
    let file = json!({"path": "a.txt", "content": "hello"});
    let (state, wrote) = called(&mut client, "filesystem.writeFile", &file);
    assert_eq!(state, "COMPLETED", "{wrote}");
    let (_, read) = called(&mut client, "filesystem.readFile", &json!({"path": "a.txt"}));
    assert_eq!(read["mcp_result"]["content"][0]["text"], "hello", "{read}");
    let folders = server.temporary();
    let [data] = folders.as_slice() else { panic!("{folders:?}") };
    assert_eq!(fs::read_to_string(data.join("files/a.txt")).unwrap(), "hello");
    let (ended, left) = server.stop();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(left.is_empty(), "{left:?}");
}

fn tool_server(data: &Path, more: &[&str]) -> Listening {
    let words = ["example", "filesystem-server", "--http", "127.0.0.1:0", "--data"];
    let all = [&words[..], &[data.to_str().unwrap()], more].concat();
    Listening::start(data.parent().unwrap(), &all, BANNER)
}

#[test]
fn the_tool_server_speaks_mcp_of_both_eras_and_plain_json_rpc() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("a.txt"), "hello").unwrap();
    let server = tool_server(&data, &["--read-only"]);
    for era in [Era::Legacy, Era::Modern] {
        let mut caller = Caller::new(server.address, era, json!({})).limit(LIMIT);
        let mut tools = caller.tools();
        tools.sort();
        assert_eq!(tools, ["filesystem.listDirectory", "filesystem.readFile"], "it only reads");
        let read = caller.call("filesystem.readFile", json!({"path": "a.txt"})).unwrap();
        assert!(read.words().contains("hello"), "{read:?}");
    }
    let mut client = Client::new(server.address).limit(LIMIT);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "filesystem.readFile",
        "params": {"path": "a.txt"}});
    let answer = client.post("/rpc", &body).unwrap().json();
    assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
    let write = json!({"jsonrpc": "2.0", "id": 1, "method": "filesystem.writeFile",
        "params": {"path": "a.txt", "content": "x"}});
    let refused = client.post("/rpc", &write).unwrap().json();
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_map_in_the_environment_leads_to_a_tool_server_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("a.txt"), "far").unwrap();
    let tools = tool_server(&data, &[]);
    let example = example();
    let map = json!({"far": format!("http://{}", tools.address)}).to_string();
    let server = Server::of_project_with(example.path(), &[("MCP_SERVER_MAP", map.as_str())]);
    let mut client = client(&server);
    let content = json!({"target_mcp_server_id": "far", "tool_name": "filesystem.readFile",
        "arguments": {"path": "a.txt"}});
    let (state, read) = executed(&mut client, &json!({"type": "data", "content": content}));
    assert_eq!(state, "COMPLETED", "{read}");
    assert_eq!(read["mcp_result"]["content"][0]["text"], "far", "{read}");
}
