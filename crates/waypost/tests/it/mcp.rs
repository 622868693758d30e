//! `waypost mcp`: a client over standard input and output, with a server of its own or through one
//! that runs, in both eras; and what to write into a client's settings.

use crate::peer::{MODERN, Peer};
use crate::process::{Server, waypost, waypost_with, write};
use serde_json::{Value, json};
use std::path::Path;

/// What a client can that shows forms.
fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// What every client does, in a version with a handshake.
fn older_era(peer: &mut Peer) {
    let hello = peer.greet("2025-06-18");
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18", "{hello}");
    assert_eq!(hello["result"]["serverInfo"]["name"], "waypost");
    let listed = peer.ask("tools/list", &json!({}));
    for name in ["math__add", "math__conditional_add", "interaction__greeting"] {
        assert!(names(&listed).contains(&name), "no `{name}`: {listed}");
    }
    let call = json!({"name": "math__add", "arguments": {"a": 1, "b": 2}});
    let called = peer.ask("tools/call", &call);
    assert_eq!(called["result"]["content"][0]["text"], "3", "{called}");
    let unknown = peer.ask("tools/call", &json!({"name": "math__ad", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(peer.ask("ping", &json!({}))["result"], json!({}));
}

/// The same in the stateless version, and a question that the client's person answers.
fn stateless_era(peer: &mut Peer) {
    let none = json!({});
    let found = peer.ask_stateless("server/discover", &none, &none);
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(MODERN)), "{found}");
    let listed = peer.ask_stateless("tools/list", &none, &none);
    assert_eq!(listed["result"]["resultType"], "complete");
    assert!(names(&listed).contains(&"math__add"), "{listed}");
    let call = json!({"name": "math__add", "arguments": {"a": 1, "b": 2}});
    let called = peer.ask_stateless("tools/call", &call, &none);
    assert_eq!(called["result"]["content"][0]["text"], "3", "{called}");

    let greeting = json!({"name": "interaction__greeting", "arguments": {}});
    let asked = peer.ask_stateless("tools/call", &greeting, &forms());
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let key = requests.keys().next().unwrap();
    assert_eq!(requests[key]["method"], "elicitation/create");
    let mut again = greeting;
    again["requestState"] = asked["result"]["requestState"].clone();
    again["inputResponses"] = json!({key: {"action": "accept", "content": {"name": "Ada"}}});
    let answered = peer.ask_stateless("tools/call", &again, &forms());
    assert_eq!(answered["result"]["content"][0]["text"], "Hello, Ada!", "{answered}");
}

#[test]
fn a_client_starts_a_server_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for era in [older_era, stateless_era] {
        let mut peer = Peer::start(folder.path(), &["--demo"]);
        era(&mut peer);
        let ended = peer.end().code(0);
        // On a busy machine the calendar may need longer to end than it is waited for.
        let is_other = |line: &&str| !line.contains("its process does not end upstream=calendar");
        let others: Vec<&str> = ended.stderr.lines().filter(is_other).collect();
        assert_eq!((ended.stdout.as_str(), others), ("", Vec::new()), "nothing else");
    }
}

#[test]
fn a_client_comes_through_to_a_server_that_is_named() {
    let server = Server::demo();
    let folder = tempfile::tempdir().unwrap();
    for era in [older_era, stateless_era] {
        let mut peer = Peer::start(folder.path(), &["--server", server.url.as_str()]);
        era(&mut peer);
        peer.end().code(0);
    }
    // It was that server: it has the run of the question.
    let sessions = server.json(&["session", "ls"]).code(0).json();
    let plans: Vec<&Value> =
        sessions["items"].as_array().unwrap().iter().map(|session| &session["plan"]).collect();
    assert!(plans.contains(&&json!("interaction::greeting")), "{sessions}");
}

fn project(folder: &Path) -> std::path::PathBuf {
    waypost(folder, &["init", "shop"]).code(0);
    folder.join("shop")
}

#[test]
fn a_folder_that_a_server_holds_is_reached_through_it() {
    let folder = tempfile::tempdir().unwrap();
    let shop = project(folder.path());
    let server = Server::of_project(&shop);
    let mut peer = Peer::start(folder.path(), &["shop"]);
    peer.greet("2025-11-25");
    let listed = peer.ask("tools/list", &json!({}));
    assert!(names(&listed).contains(&"hello--greet"), "{listed}");
    let started = json!({"name": "hello--greet", "arguments": {}});
    peer.ask("tools/call", &started);
    let asks = server.json(&["inbox", "ls"]).code(0).json();
    assert_eq!(asks["items"].as_array().map(Vec::len), Some(1), "{asks}");

    assert_eq!(server.stop().0.code, Some(0));
    let lost = peer.ask("tools/list", &json!({}));
    let message = lost["error"]["message"].as_str().unwrap_or_else(|| panic!("{lost}"));
    assert!(message.contains("waypost up"), "{message}");
    peer.end().code(0);
}

#[test]
fn a_folder_held_by_another_client_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let shop = project(folder.path());
    // What an earlier server left is not taken for the holder's.
    Server::of_project(&shop).stop();
    let mut first = Peer::start(&shop, &[]);
    first.greet("2025-06-18");
    let second = Peer::start(&shop, &[]).ended().code(2);
    assert_eq!(second.stdout, "");
    let _ = second.says("is held by process").says("hint: it serves no HTTP");
    first.end().code(0);
    // The holder let go of it.
    let mut third = Peer::start(&shop, &[]);
    third.greet("2025-06-18");
    third.end().code(0);
}

#[test]
fn a_signal_ends_the_bridge_while_its_client_listens() {
    let server = Server::demo();
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["--demo"][..], &["--server", server.url.as_str()]] {
        let mut peer = Peer::start(folder.path(), arguments);
        peer.greet("2025-06-18");
        peer.terminate().code(0);
    }
}

#[test]
fn http_is_not_served_here() {
    let folder = tempfile::tempdir().unwrap();
    waypost(folder.path(), &["mcp", "serve"]).code(2).says("--stdio").says("waypost up");
}

#[test]
fn up_says_where_mcp_clients_connect() {
    let server = Server::demo();
    let line = format!("MCP clients connect to {}/mcp\n", server.url);
    server.stop().0.says(&line);
}

#[test]
fn a_snippet_names_the_server_that_is_meant() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("waypost.toml", "[server]\nport = 9000\n")]);
    let url = |arguments: &[&str], variables: &[(&str, &str)]| {
        let all = [&["mcp", "snippet", "cursor"][..], arguments].concat();
        let snippet = waypost_with(folder.path(), &all, variables).code(0).json();
        snippet["mcpServers"]["waypost"]["url"].as_str().unwrap().to_owned()
    };
    let named = ["--server", "https://wp.example.com"];
    let variable = [("WAYPOST_SERVER", "http://127.0.0.1:7000")];
    assert_eq!(url(&[], &[]), "http://127.0.0.1:9000/mcp");
    assert_eq!(url(&[], &[("WAYPOST_PORT", "9001")]), "http://127.0.0.1:9001/mcp");
    assert_eq!(url(&[], &variable), "http://127.0.0.1:7000/mcp");
    assert_eq!(url(&named, &variable), "https://wp.example.com/mcp");
    let port = [("WAYPOST_PORT", "0")];
    waypost_with(folder.path(), &["mcp", "snippet", "cursor"], &port).code(2).says("--server");
}

#[test]
fn a_snippet_says_what_the_client_starts() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    write(&place, &[("shop/waypost.toml", "")]);
    let snippet = |arguments: &[&str]| {
        let all = [&["mcp", "snippet"][..], arguments].concat();
        waypost(&place, &all).code(0)
    };
    let desktop = snippet(&["claude-desktop", "shop"]);
    let shop = place.join("shop");
    let started = json!(["mcp", "serve", "--stdio", shop]);
    assert_eq!(desktop.json()["mcpServers"]["waypost"]["args"], started);
    assert_eq!(desktop.json()["mcpServers"]["waypost"]["command"], "waypost");
    desktop.says("claude_desktop_config.json").says("if the client does not find `waypost`");
    let bridge = snippet(&["claude-desktop", "--server", "http://127.0.0.1:8420"]).json();
    let started = json!(["mcp", "serve", "--stdio", "--server", "http://127.0.0.1:8420"]);
    assert_eq!(bridge["mcpServers"]["waypost"]["args"], started);
    for client in ["claude-code", "cursor", "vscode", "codex"] {
        let forced = snippet(&[client, "shop", "--stdio"]).stdout;
        assert!(forced.contains("--stdio") && !forced.contains("http"), "{forced}");
    }
}

#[test]
fn a_snippet_is_data_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let formats = [
        ("claude-code", ".mcp.json", "json"),
        ("claude-desktop", "claude_desktop_config.json", "json"),
        ("cursor", ".cursor/mcp.json", "json"),
        ("vscode", ".vscode/mcp.json", "json"),
        ("codex", "~/.codex/config.toml", "toml"),
    ];
    for (client, file, format) in formats {
        let told = waypost(folder.path(), &["--json", "mcp", "snippet", client]).code(0);
        assert_eq!(told.stderr, "");
        let told = told.json();
        assert_eq!((&told["client"], &told["file"]), (&json!(client), &json!(file)));
        assert_eq!(told["format"], format);
        let plain = waypost(folder.path(), &["mcp", "snippet", client]).code(0).stdout;
        assert_eq!(told["snippet"].as_str().unwrap(), plain.trim_end());
    }
    waypost(folder.path(), &["mcp", "snippet", "cursr"]).code(2).says("cursor");
}
