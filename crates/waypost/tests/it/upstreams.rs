//! `waypost mcp add|import|ls|test`: servers behind this one, with and without a server that runs.

use crate::process::{Server, waypost, waypost_with, write};
use crate::rest::{self, Rest};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use testkit::harness::wait_for;

const CONNECT_LIMIT: Duration = Duration::from_secs(120);
/// Nobody listens on port 1.
const NOBODY: &str = "[server]\nport = 1\n";

#[test]
fn a_server_is_added_to_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    write(place, &[("waypost.toml", "# ours\n[server]\nport = 1")]);
    let web = ["mcp", "add", "web", "https://a.example/mcp", "--header", "X-Key: ${KEY}"];
    waypost(place, &[&web[..], &["--prefix", "", "--trusted"]].concat()).code(0);
    let ended = waypost(place, &["mcp", "add", "files", "--env", "A=b", "--", "npx", "-y", "x"]);
    ended.code(0).says("holds what `A` are set to");
    assert_eq!(
        fs::read_to_string(place.join("waypost.toml")).unwrap(),
        "# ours\n[server]\nport = 1\n\n\
         [mcp.servers.web]\nurl = \"https://a.example/mcp\"\nheaders = { X-Key = \"${KEY}\" }\n\
         prefix = \"\"\ntrusted = true\n\n\
         [mcp.servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"x\"]\nenv = { A = \"b\" }\n"
    );
    let listed = waypost(place, &["mcp", "ls"]).code(0).says("this is what is configured");
    assert!(listed.stdout.contains("\nfiles  stdio  stopped"), "{listed:#?}");
    let items = waypost(place, &["--json", "mcp", "ls"]).code(0).json()["items"].clone();
    assert_eq!(items[1]["headers"], json!(["X-Key"]));
    assert_eq!((&items[1]["prefix"], &items[1]["trusted"]), (&json!(""), &json!(true)));
    waypost(place, &["mcp", "add", "web", "--", "x"]).code(2).says("waypost.toml:5 already");
    let shown = waypost(place, &["config", "show"]).code(0);
    assert!(shown.stdout.contains("mcp.servers.files.env.A"), "{shown:#?}");
    assert!(!shown.stdout.contains("\"b\""), "{shown:#?}");
}

#[test]
fn servers_of_other_clients_are_found_and_imported() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let code = r#"{
        // what VS Code writes
        "inputs": [{"id": "git-token", "type": "promptString"}],
        "servers": {
            "My Git": {"command": "git-mcp", "env": {"TOKEN": "${input:git-token}"}},
            "known": {"url": "https://a.example/mcp"},
            "waypost": {"type": "http", "url": "http://127.0.0.1:1/mcp"},
        }
    }"#;
    let known = "[server]\nport = 1\n[mcp.servers.known]\ncommand = \"x\"\n";
    let codex = "[mcp_servers.docs]\nurl = \"https://d.example/mcp\"\n\
                 bearer_token_env_var = \"DOCS\"\n";
    let files =
        [("waypost.toml", known), (".vscode/mcp.json", code), ("home/.codex/config.toml", codex)];
    write(place, &files);
    let home = place.join("home");
    let variables = [("HOME", home.to_str().unwrap())];
    let import = |arguments: &[&str]| waypost_with(place, arguments, &variables).code(0);

    let found = import(&["mcp", "import", "vscode"]).says("nothing was written");
    assert!(found.stdout.contains("\nMy-Git   stdio"), "{found:#?}");
    assert!(found.stdout.contains("`known` is in waypost.toml:3 already"), "{found:#?}");
    assert!(found.stdout.contains("it is this project's own server"), "{found:#?}");
    assert_eq!(fs::read_to_string(place.join("waypost.toml")).unwrap(), known);

    import(&["mcp", "import", "vscode", "--write"]).says("`GIT_TOKEN`");
    let report = import(&["--json", "mcp", "import", "codex", "--write"]).json();
    assert_eq!(report["written"], "waypost.toml");
    assert_eq!(report["servers"][0]["headers"], json!(["Authorization"]));
    let text = fs::read_to_string(place.join("waypost.toml")).unwrap();
    assert!(text.starts_with(known), "{text}");
    assert!(text.contains("env = { TOKEN = \"${GIT_TOKEN}\" }"), "{text}");
    assert!(text.contains("headers = { Authorization = \"Bearer ${DOCS}\" }"), "{text}");
    assert_eq!(fs::read_to_string(place.join(".vscode/mcp.json")).unwrap(), code);
    waypost_with(place, &["mcp", "import", "cursor"], &variables).code(2).says(".cursor/mcp.json");
}

#[test]
fn entries_that_cannot_be_imported_are_left_out_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let json = r#"{"mcpServers": {
        "My Git": {"command": "one"}, "My-Git": {"command": "two"}, "": {"command": "three"},
        "bad": {"url": "https://a.example/mcp", "headers": {"A B": "hunter2"}},
        "good": {"url": "https://a.example", "headers": {"X": "${input:key}"}, "envFile": ".env"}
    }}"#;
    write(place, &[("waypost.toml", NOBODY), ("mcp.json", json)]);
    let report = waypost(place, &["--json", "mcp", "import", "mcp.json", "--write"]).code(0).json();
    let why: Vec<&Value> =
        report["servers"].as_array().unwrap().iter().map(|server| &server["leftOut"]).collect();
    assert_eq!(why[0], &Value::Null);
    assert_eq!(why[1], "`My-Git` is in mcp.json:2 already");
    assert_eq!(why[2], "it has no name");
    assert_eq!(why[3], "the header `A B` cannot be sent");
    assert_eq!(why[4], &Value::Null);
    assert_eq!(report["servers"][4]["asked"], json!(["KEY"]));
    let warning = report["warnings"][0].as_str().unwrap();
    assert!(warning.contains("`envFile` of `mcpServers.good` is not followed"), "{report}");
    let text = fs::read_to_string(place.join("waypost.toml")).unwrap();
    assert_eq!(text.matches("[mcp.servers.").count(), 2, "{text}");
    assert!(text.contains("command = \"one\"") && text.contains("[mcp.servers.good]"), "{text}");
}

#[test]
fn concurrent_adds_of_one_name_succeed_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    write(place, &[("waypost.toml", NOBODY)]);
    let add = || waypost(place, &["mcp", "add", "web", "https://a.example/mcp"]);
    let codes: Vec<Option<i32>> = thread::scope(|scope| {
        let adding: Vec<_> = (0..4).map(|_| scope.spawn(add)).collect();
        adding.into_iter().map(|added| added.join().unwrap().code).collect()
    });
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
    let text = fs::read_to_string(place.join("waypost.toml")).unwrap();
    assert_eq!(text.matches("[mcp.servers.web]").count(), 1, "{text}");
}

/// The upstream of this name, once it is in this state.
fn upstream(server: &Server, name: &str, state: &str) -> Value {
    wait_for(&format!("`{name}` to be {state}"), CONNECT_LIMIT, || {
        let items = server.json(&["mcp", "ls"]).code(0).json()["items"].clone();
        let items = items.as_array().cloned().unwrap_or_default();
        items.into_iter().find(|item| item["name"] == name && item["state"] == state)
    })
}

#[test]
fn tools_of_an_upstream_are_listed_and_called() {
    let behind = Server::demo();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let json = json!({"mcpServers": {
        "demo": {"type": "http", "url": format!("{}/mcp", behind.url)},
        "off": {"command": "x", "disabled": true},
    }});
    write(place, &[("waypost.toml", NOBODY), (".mcp.json", &json.to_string())]);
    let tested = waypost(place, &["mcp", "test", "demo"]).code(0);
    assert!(tested.stdout.contains("state      ready"), "{tested:#?}");

    let server = Server::of_project(place);
    let ready = upstream(&server, "demo", "ready");
    assert!(ready["tools"].as_u64().unwrap() > 0, "{ready}");
    assert_eq!(ready["origin"], ".mcp.json:1");
    upstream(&server, "off", "disabled");
    // They are taken into the catalog a moment after the upstream is ready.
    wait_for("tools of `demo` in the catalog", CONNECT_LIMIT, || {
        let tools = server.json(&["tool", "ls"]).code(0).json()["items"].clone();
        let is_theirs = |tool: &Value| tool["name"].as_str().unwrap().starts_with("demo.");
        tools.as_array().unwrap().iter().any(is_theirs).then_some(())
    });

    let call = "math__add={\"a\": 1, \"b\": 2}";
    let here = place.to_str().unwrap();
    let checked = |report: &Value, name: &str| {
        let checks = report["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["check"] == name);
        found.cloned().unwrap_or_else(|| panic!("no `{name}` in {report}"))
    };
    // The demo has servers behind it, too: their tools are there a moment later.
    let report = wait_for("the tools to be the same", CONNECT_LIMIT, || {
        let report = server.json(&["mcp", "doctor", "demo", here, "--call", call]).json();
        (checked(&report, "tools")["same"] == true).then_some(report)
    });
    let check = |name: &str| checked(&report, name);
    assert_eq!(check("connect")["same"], true, "{report}");
    assert_eq!(check("connect")["handshake"], "2025-11-25", "{report}");
    assert!(check("call math__add")["direct"].as_str().unwrap().contains('3'), "{report}");
    server.run(&["mcp", "doctor", "dmeo", here]).code(2).says("did you mean `demo`?");
    let wrong = server.run(&["mcp", "doctor", "demo", here, "--call", "a=1"]);
    wrong.code(2).says("not a JSON object");

    behind.stop();
    let failed = server.run(&["mcp", "test", "demo"]).code(6);
    assert!(failed.stderr.contains("upstream `demo` (.mcp.json:1) cannot be used"), "{failed:#?}");
    server.run(&["mcp", "test", "dmeo"]).code(1).says("did you mean `demo`?");
    server.run(&["mcp", "test", "off"]).code(1).says("disabled");
}

#[test]
fn doctor_calls_no_tool_but_those_that_are_named() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let bank = Rest::start(Arc::new(move |_: &str| {
        counted.fetch_add(1, Ordering::SeqCst);
        Some((200, "{\"rate\": 7}".to_owned()))
    }));
    // Each call of one of its tools is a request that the bank counts.
    let far = tempfile::tempdir().unwrap();
    let near = tempfile::tempdir().unwrap();
    let settings = bank.settings();
    write(far.path(), &[("waypost.toml", settings.as_str()), ("bank.yaml", rest::DOCUMENT)]);
    let behind = Server::of_project(far.path());
    rest::await_tool(&behind, "bank.rate");
    let json = json!({"mcpServers": {"far": {"url": format!("{}/mcp", behind.url)}}});
    write(near.path(), &[("waypost.toml", NOBODY), (".mcp.json", &json.to_string())]);
    let server = Server::of_project(near.path());
    rest::await_tool(&server, "far.bank.rate");
    let here = near.path().to_str().unwrap();
    let names = |report: &Value| -> Vec<String> {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().map(|check| check["check"].as_str().unwrap().to_owned()).collect()
    };

    let report = server.json(&["mcp", "doctor", "far", here]).json();
    let looked_at = names(&report);
    assert!(looked_at.contains(&"tools".to_owned()), "it did not look: {report}");
    assert!(!looked_at.iter().any(|name| name.starts_with("call ")), "{report}");
    assert_eq!(calls.load(Ordering::SeqCst), 0, "{report}");

    // Directly, and through the gateway in both eras.
    let report = server.json(&["mcp", "doctor", "far", here, "--call", "bank.rate"]).json();
    assert!(names(&report).contains(&"call bank.rate".to_owned()), "{report}");
    assert_eq!(calls.load(Ordering::SeqCst), 3, "{report}");
}

#[test]
fn doctor_ends_with_8_where_clients_of_the_gateway_see_something_else() {
    let behind = Server::demo();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let settings = format!(
        "{NOBODY}[tools]\ndeny = [\"demo.math__add\"]\n[mcp.servers.demo]\nurl = \"{}/mcp\"\n",
        behind.url
    );
    write(place, &[("waypost.toml", &settings)]);
    let server = Server::of_project(place);
    upstream(&server, "demo", "ready");
    let here = place.to_str().unwrap();
    // The demo has servers behind it, too: their tools are there a moment later.
    wait_for("the tools to differ in the one that is denied", CONNECT_LIMIT, || {
        let looked = server.run(&["mcp", "doctor", "demo", here]).code(8);
        let denied = looked.stdout.contains("; missing: math__add ");
        (denied && looked.stdout.contains("differs")).then_some(())
    });
}

#[test]
fn doctor_ends_with_4_where_the_server_wants_a_login() {
    let closed = Rest::start(Arc::new(|_: &str| Some((401, "{}".to_owned()))));
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let settings = format!("{NOBODY}[mcp.servers.closed]\nurl = \"{}/mcp\"\n", closed.url());
    write(place, &[("waypost.toml", &settings)]);
    let server = Server::of_project(place);
    let looked = server.run(&["mcp", "doctor", "closed", place.to_str().unwrap()]).code(4);
    looked.says("cannot be looked at directly").says("`waypost mcp test closed`");
}

#[test]
fn an_upstream_added_since_the_start_can_be_tested() {
    let behind = Server::demo();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let port = behind.url.rsplit(':').next().unwrap();
    let settings =
        format!("[server]\nport = {port}\n[mcp.servers.new]\nurl = \"{}/mcp\"\n", behind.url);
    write(place, &[("waypost.toml", &settings)]);
    let tested = waypost(place, &["mcp", "test", "new"]).code(0);
    let tested = tested.says("does not have it yet");
    assert!(tested.stdout.contains("state      ready"), "{tested:#?}");
    waypost(place, &["mcp", "test", "nwe"]).code(1).says("there is no upstream `nwe`");
}

/// A server that lists one tool more each time, up to four: its own servers come up meanwhile.
const GROWING: &str = r#"
import json, sys
looks = 0
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        server = {"name": "grows", "version": "1"}
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                            "serverInfo": server}
    elif asked["method"] == "tools/list":
        looks += 1
        tools = [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(min(looks, 4))]
        answer["result"] = {"tools": tools}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"#;

#[test]
fn a_test_waits_for_tools_that_are_listed_late() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let servers = "[mcp.servers.grows]\ncommand = \"python3\"\nargs = [\"grows.py\"]\n";
    write(place, &[("waypost.toml", &format!("{NOBODY}{servers}")), ("grows.py", GROWING)]);
    let tested = waypost(place, &["--json", "mcp", "test", "grows"]).code(0).json();
    assert_eq!(tested["tools"], 4, "{tested}");
}

#[test]
fn a_test_that_fails_says_what_the_program_wrote_and_does_not_name_itself() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let servers =
        "[mcp.servers.dies]\ncommand = \"sh\"\nargs = [\"-c\", \"echo boom >&2; exit 3\"]\n";
    write(place, &[("waypost.toml", &format!("{NOBODY}{servers}"))]);
    let failed = waypost(place, &["mcp", "test", "dies"]).code(6);
    let failed = failed.says("cannot be used: its process ended with exit code 3\n");
    let failed = failed.says("\nhint: it wrote last: boom; our log has all of it at level debug\n");
    assert!(!failed.stderr.contains("mcp test"), "{failed:#?}");
}

#[test]
fn not_every_server_has_logins() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let servers = "[mcp.servers.fixed]\nurl = \"http://127.0.0.1:1/mcp\"\n\
                   headers = { Authorization = \"Bearer x\" }\n";
    write(place, &[("waypost.toml", servers)]);
    let server = Server::of_project(place);
    let fixed = "a fixed `Authorization` header";
    server.run(&["mcp", "login", "fixed"]).code(1).says(fixed).says("waypost.toml:1");
    server.run(&["mcp", "logout", "fixed"]).code(1).says(fixed);
    let tried = server.run(&["mcp", "logout", "fixed", "--dry-run"]).code(0).stdout;
    assert!(
        tried.contains("nothing would be forgotten: there are no logins at `fixed`"),
        "{tried}"
    );
    server.run(&["mcp", "login", "fxied"]).code(1).says("did you mean `fixed`?");
}

#[test]
fn a_test_leaves_logins_to_the_holder_of_the_data_folder() {
    let behind = Server::demo();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let servers = format!("{NOBODY}[mcp.servers.demo]\nurl = \"{}/mcp\"\n", behind.url);
    write(place, &[("waypost.toml", &servers)]);
    Server::of_project(place).stop();
    // As if somebody had logged in once.
    fs::create_dir_all(place.join(".waypost/vault")).unwrap();
    waypost(place, &["mcp", "test", "demo"]).code(0);
    // It is not where the settings say, and found by its data.
    let server = Server::of_project(place);
    let tested = waypost(place, &["--json", "mcp", "test", "demo"]).code(0).json();
    assert_eq!(tested["state"], "ready", "{tested}");
    server.stop();
    waypost(place, &["mcp", "test", "demo"]).code(0);
}
