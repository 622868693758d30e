//! The MCP tool proxy: every row of its table, produced by servers that really answer so.

use crate::credentials::{ADMIN_KEY, Guarded, OPEN};
use crate::house::{ADDRESS, Answer, House, read, request, setup, wait_for};
use axum::body::{Body, Bytes};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures::future::BoxFuture;
use identity::keys::Expiry;
use kernel::contracts::policy::{Decision, Request, Resource};
use kernel::contracts::{Policy, Tool};
use kernel::identity::roles::Role;
use kernel::tool::call::{Call, Caller, Reach, ToolError, ToolOutput, ToolSpec, Verdict};
use kernel::values::caller::{Act, Scope};
use project::config::Config;
use project::folder::Project;
use project::realm::local_caller;
use serde_json::{Value, json};
use server::{Extra, Setup};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use wire::a2a::SKILLS_EXTENSION;

const SKILL: &str = "mcp.execute_tool";
/// How long a call may take: longer than any that is answered, on a busy machine.
const CALL_SECONDS: &str = "10";

/// A server of plain JSON-RPC that lists nothing: the method says how it answers.
async fn bare(Json(asked): Json<Value>) -> Response {
    let id = &asked["id"];
    let with = |members: Value| {
        let mut body = json!({"jsonrpc": "2.0", "id": id});
        for (name, value) in members.as_object().unwrap() {
            body[name] = value.clone();
        }
        Json(body)
    };
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let error = json!({"code": -32011, "message": "no", "data": {"why": "disk"}});
    match asked["method"].as_str().unwrap() {
        "fs.readFile" => {
            let said = format!("read {}", asked["params"]["path"].as_str().unwrap());
            with(json!({"result": text(&said)})).into_response()
        }
        "large" => with(json!({"result": text(&"x".repeat(100_000))})).into_response(),
        "plain" => with(json!({"result": {"stdout": "hi"}})).into_response(),
        "tool_error" => {
            let content = text("no such file")["content"].clone();
            with(json!({"result": {"isError": true, "content": content}})).into_response()
        }
        "protocol" => with(json!({"error": error})).into_response(),
        "codeless" => with(json!({"error": {"message": "no"}})).into_response(),
        "both" => with(json!({"error": error, "result": {}})).into_response(),
        "server_error" => {
            (StatusCode::INTERNAL_SERVER_ERROR, with(json!({"error": error}))).into_response()
        }
        "not_json" => "<html>".into_response(),
        "no_object" => Json(json!([1])).into_response(),
        "neither" => with(json!({})).into_response(),
        "result_text" => with(json!({"result": "text"})).into_response(),
        "gone" => (StatusCode::NOT_FOUND, with(json!({"error": error}))).into_response(),
        "slow" => {
            std::future::pending::<()>().await;
            with(json!({"result": {}})).into_response()
        }
        "lost" => {
            let broken = Err::<Bytes, io::Error>(io::Error::other("cut"));
            Body::from_stream(futures::stream::iter([broken])).into_response()
        }
        _ => {
            let unknown = json!({"code": -32601, "message": "no such method"});
            with(json!({"error": unknown})).into_response()
        }
    }
}

/// An MCP server with a handshake.
async fn real(Json(asked): Json<Value>) -> Response {
    let id = &asked["id"];
    let answer =
        |result: Value| Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response();
    let tool = |name: &str| {
        json!({"name": name, "inputSchema": {"type": "object",
        "properties": {"n": {"type": "integer"}}, "required": ["n"]}})
    };
    match asked["method"].as_str().unwrap() {
        "initialize" => answer(json!({"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}}, "serverInfo": {"name": "real", "version": "1"}})),
        "notifications/initialized" => StatusCode::ACCEPTED.into_response(),
        "tools/list" => answer(json!({"tools": [tool("twice"), tool("fail"), tool("refuse")]})),
        "tools/call" => {
            let n = asked["params"]["arguments"]["n"].as_i64().unwrap();
            let content = json!([{"type": "text", "text": (2 * n).to_string()}]);
            match asked["params"]["name"].as_str().unwrap() {
                "twice" => answer(json!({"content": content})),
                "fail" => answer(json!({"content": content, "isError": true})),
                _ => Json(json!({"jsonrpc": "2.0", "id": id,
                    "error": {"code": -32099, "message": "not today"}}))
                .into_response(),
            }
        }
        _ => Json(json!({"jsonrpc": "2.0", "id": id,
            "error": {"code": -32601, "message": "no such method"}}))
        .into_response(),
    }
}

/// The same, but nobody is answered at once.
async fn slow(asked: Json<Value>) -> Response {
    tokio::time::sleep(Duration::from_millis(50)).await;
    real(asked).await
}

async fn started(path: &str, router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}{path}")
}

fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// A server whose environment maps a plain server, a real one, and one that is away.
async fn house() -> House {
    let plain = started("", Router::new().route("/rpc", post(bare))).await;
    let mcp = started("/mcp", Router::new().route("/mcp", post(real))).await;
    let map = json!({"fs": plain, "real": mcp, "away": "http://127.0.0.1:1"}).to_string();
    let variables = [("MCP_SERVER_MAP", kept(map)), ("MCP_CALL_TIMEOUT", CALL_SECONDS)];
    let house = House::with_variables(Project::demo(), Vec::leak(variables.to_vec())).await;
    for tool in ["fs.any", "away.any", "real.twice"] {
        until_seen(&house, tool).await;
    }
    house
}

async fn until_seen(house: &House, tool: &str) {
    let look = async || house.engine.tools().get(&local_caller(), tool).is_some();
    wait_for(&format!("the tool `{tool}`"), look, |is_listed: &bool| *is_listed).await;
}

fn instruction(server: &str, tool: &str, arguments: Value) -> Value {
    json!({"target_mcp_server_id": server, "tool_name": tool, "arguments": arguments})
}

async fn rpc(house: &House, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = house.open(request(Method::POST, "/a2a", Body::from(body.to_string()))).await;
    let Answer { status, body, .. } = read(answer).await;
    assert_eq!(status, 200, "{body}");
    body
}

/// The task of an instruction once it is over.
async fn executed(house: &House, part: Value) -> Value {
    let message = json!({"role": "user", "parts": [part]});
    let sent = rpc(house, "tasks/send", json!({"message": message})).await;
    let id = &sent["result"]["id"];
    assert!(id.is_string(), "{sent}");
    let look = async || rpc(house, "tasks/get", json!({"id": id})).await["result"].clone();
    let is_over = |task: &Value| task["state"] == "COMPLETED" || task["state"] == "FAILED";
    wait_for("the call to end", look, is_over).await
}

/// The output of a task: the one data part of its last message.
fn output(task: &Value) -> &Value {
    let last = task["messages"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["role"], &last["parts"][0]["type"]), (&json!("assistant"), &json!("data")));
    &last["parts"][0]["content"]
}

async fn called(house: &House, server: &str, tool: &str, arguments: Value) -> Value {
    let content = instruction(server, tool, arguments);
    executed(house, json!({"type": "data", "content": content})).await
}

#[tokio::test]
async fn a_tool_is_found_by_its_server_its_name_and_what_stands_before_it() {
    let house = house().await;
    let path = json!({"path": "a.txt"});
    for (server, tool) in [("fs", "fs.readFile"), ("other", "fs.readFile")] {
        let task = called(&house, server, tool, path.clone()).await;
        assert_eq!(task["state"], "COMPLETED", "{task}");
        let result = json!({"content": [{"type": "text", "text": "read a.txt"}]});
        assert_eq!(output(&task), &json!({"success": true, "mcp_result": result}), "{tool}");
    }
    let plain = called(&house, "fs", "plain", json!({})).await;
    let whole = json!({"success": true, "mcp_result": {"stdout": "hi"}});
    assert_eq!(output(&plain), &whole, "the whole result as it came");
    let large = called(&house, "fs", "large", json!({})).await;
    let text = output(&large)["mcp_result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert_eq!(text.len(), 100_000, "a large result is whole");
    for (server, tool) in [("real", "twice"), ("real", "real.twice"), ("x", "real.twice")] {
        let task = called(&house, server, tool, json!({"n": 4})).await;
        let text = &output(&task)["mcp_result"]["content"][0]["text"];
        assert_eq!(text, "8", "{server} {tool}: {task}");
    }
}

#[tokio::test]
async fn an_instruction_without_a_server_is_routed_by_its_tool() {
    let mcp = started("/mcp", Router::new().route("/mcp", post(real))).await;
    let map = json!({"real": mcp, "twin": mcp}).to_string();
    let house = house().await;
    let unnamed = async |house: &House, tool: &str, arguments: Value| {
        let content = json!({"tool_name": tool, "arguments": arguments});
        executed(house, json!({"type": "data", "content": content})).await
    };
    for tool in ["twice", "real.twice"] {
        let task = unnamed(&house, tool, json!({"n": 4})).await;
        assert_eq!(output(&task)["mcp_result"]["content"][0]["text"], "8", "{tool}: {task}");
    }
    let read = unnamed(&house, "fs.readFile", json!({"path": "a.txt"})).await;
    assert_eq!(read["state"], "COMPLETED", "{read}");
    let variables = vec![("MCP_SERVER_MAP", kept(map))];
    let house = House::with_variables(Project::demo(), Vec::leak(variables)).await;
    for tool in ["real.twice", "twin.twice"] {
        until_seen(&house, tool).await;
    }
    let error = output(&unnamed(&house, "twice", json!({"n": 4})).await)["error"].clone();
    assert_eq!(error["code"], "NO_ROUTE", "two servers have it: {error}");
    let task = unnamed(&house, "twin.twice", json!({"n": 4})).await;
    assert_eq!(output(&task)["mcp_result"]["content"][0]["text"], "8", "{task}");
}

#[tokio::test]
async fn a_server_that_is_being_connected_to_is_waited_for_until_its_tools_can_be_called() {
    let mcp = started("/mcp", Router::new().route("/mcp", post(slow))).await;
    let variables = [("MCP_SERVER_MAP", kept(json!({"real": mcp}).to_string()))];
    let house = House::with_variables(Project::demo(), Vec::leak(variables.to_vec())).await;
    let task = called(&house, "real", "twice", json!({"n": 4})).await;
    assert_eq!(output(&task)["mcp_result"]["content"][0]["text"], "8", "{task}");
}

#[tokio::test]
async fn an_instruction_comes_as_a_value_or_as_text_in_both_protocols() {
    let house = house().await;
    let sent = instruction("fs", "fs.readFile", json!({"path": "a"}));
    let text = json!({"type": "text", "content": sent.to_string()});
    assert_eq!(executed(&house, text).await["state"], "COMPLETED");
    let parts = json!([{"text": "please"}, {"data": sent}]);
    // What AgentVault's command line says beside the message does not count.
    let context = json!({"mcp_context": instruction("nowhere", "no.tool", json!({"path": "b"}))});
    for metadata in [json!({}), json!({SKILLS_EXTENSION: {"skill": SKILL}}), context] {
        let message = json!({"messageId": metadata.to_string(), "role": "ROLE_USER",
            "parts": parts, "metadata": metadata});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage",
            "params": {"message": message}});
        let mut asked = request(Method::POST, "/a2a/v1", Body::from(body.to_string()));
        asked.headers_mut().insert("a2a-version", "1.0".parse().unwrap());
        let task = read(house.open(asked).await).await.body["result"]["task"].clone();
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
        let output = &task["artifacts"][0]["parts"][0]["data"];
        assert_eq!(output["success"], true, "{task}");
        assert_eq!(output["mcp_result"]["content"][0]["text"], "read a", "{task}");
    }
    let card =
        read(house.open(request(Method::GET, "/agent-card.json", Body::empty())).await).await;
    let skills = card.body["skills"].as_array().unwrap();
    let skill = skills.iter().find(|skill| skill["id"] == SKILL).unwrap();
    assert_eq!(skill["input_schema"]["required"], json!(["tool_name", "arguments"]), "{skill}");
    assert!(skill["output_schema"].is_object());
}

#[tokio::test]
async fn every_failure_has_its_source_its_code_and_an_output() {
    let house = house().await;
    let data = json!({"mcp_protocol_error_data": {"why": "disk"}});
    for (server, tool, arguments, told, details) in [
        ("away", "x", json!({}), "A2A_PROXY/MCP_CONNECTION_ERROR", json!(null)),
        ("fs", "slow", json!({}), "A2A_PROXY/MCP_TIMEOUT", json!({"outcome": "unknown"})),
        ("fs", "lost", json!({}), "A2A_PROXY/MCP_CONNECTION_ERROR", json!({"outcome": "unknown"})),
        (
            "fs",
            "not_json",
            json!({}),
            "A2A_PROXY/MCP_INVALID_RESPONSE",
            json!({"http_status": 200, "response_body": "<html>"}),
        ),
        (
            "fs",
            "no_object",
            json!({}),
            "A2A_PROXY/MCP_INVALID_RESPONSE",
            json!({"http_status": 200, "response_body": "[1]"}),
        ),
        ("fs", "neither", json!({}), "A2A_PROXY/MCP_INVALID_RESPONSE", json!(null)),
        (
            "fs",
            "result_text",
            json!({}),
            "A2A_PROXY/MCP_INVALID_RESULT",
            json!({"http_status": 200, "mcp_result_type": "string"}),
        ),
        ("fs", "gone", json!({}), "MCP_PROTOCOL/-32601", json!(null)),
        ("fs", "protocol", json!({}), "MCP_PROTOCOL/-32011", data.clone()),
        ("fs", "both", json!({}), "MCP_PROTOCOL/-32011", data.clone()),
        ("fs", "server_error", json!({}), "MCP_PROTOCOL/-32011", data),
        ("fs", "codeless", json!({}), "MCP_PROTOCOL/MCP_UNKNOWN_PROTOCOL_ERROR", json!(null)),
        (
            "fs",
            "tool_error",
            json!({}),
            "MCP_TOOL/TOOL_EXECUTION_FAILED",
            json!({"mcp_tool_error_content": [{"type": "text", "text": "no such file"}]}),
        ),
        ("real", "fail", json!({"n": 1}), "MCP_TOOL/TOOL_EXECUTION_FAILED", json!(null)),
        ("real", "refuse", json!({"n": 1}), "MCP_PROTOCOL/-32099", json!(null)),
        ("real", "twice", json!({"n": "x"}), "A2A_PROXY/INVALID_INPUT", json!(null)),
        ("real", "nothing", json!({}), "A2A_PROXY/NO_ROUTE", json!(null)),
        ("nowhere", "no.tool", json!({}), "A2A_PROXY/NO_ROUTE", json!(null)),
    ] {
        let task = called(&house, server, tool, arguments).await;
        assert_eq!(task["state"], "FAILED", "{tool}: {task}");
        let error = &output(&task)["error"];
        let source = error["source"].as_str().unwrap();
        let code = error["code"].as_str().unwrap();
        assert_eq!(format!("{source}/{code}"), told, "{tool}: {task}");
        assert_eq!(output(&task)["success"], false);
        if !details.is_null() {
            assert_eq!(error["details"], details, "{tool}: {task}");
        }
    }
    // Nothing is asked of anyone: the proxy never repeats a call.
    let asks = house.get("/api/v1/asks?status=open").await;
    assert_eq!(asks.body["items"], json!([]), "{asks:?}");
}

/// A tool of the host program that has a bug, under the name of a server.
struct Broken(Arc<ToolSpec>);

impl Broken {
    fn new(name: &str) -> Self {
        Self(Arc::new(ToolSpec {
            description: "has a bug".to_owned(),
            reach: Reach::Writes,
            ..testkit::specs::tool(name)
        }))
    }
}

fn fails() -> Result<ToolOutput, ToolError> {
    panic!("this is the bug")
}

impl Tool for Broken {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        _call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { fails() })
    }
}

#[tokio::test]
async fn a_fault_of_our_own_is_one_of_the_proxy() {
    let mcp = started("/mcp", Router::new().route("/mcp", post(real))).await;
    let settings = format!("[mcp.servers.real]\nurl = \"{mcp}\"\n[a2a]\nproxy = true\n");
    let config = Config::parse("waypost.toml", &settings).unwrap();
    let extra = Extra { tools: vec![Arc::new(Broken::new("real.broken"))], ..Extra::default() };
    let house = House::furnished(Project { config, ..Project::demo() }, extra).await;
    until_seen(&house, "real.twice").await;
    let task = called(&house, "real", "broken", json!({})).await;
    assert_eq!(task["state"], "FAILED", "{task}");
    let error = &output(&task)["error"];
    let told = (&error["source"], &error["code"]);
    assert_eq!(told, (&json!("A2A_PROXY"), &json!("PROXY_INTERNAL_ERROR")), "{task}");
}

#[tokio::test]
async fn an_instruction_that_does_not_fit_gets_an_output_with_the_places() {
    let house = house().await;
    let content = json!({"target_mcp_server_id": "fs", "tool_name": 7});
    let task = executed(&house, json!({"type": "data", "content": content})).await;
    let error = &output(&task)["error"];
    assert_eq!((&error["code"], &task["state"]), (&json!("INVALID_INPUT"), &json!("FAILED")));
    let places: Vec<&Value> = error["details"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|wrong| &wrong["pointer"])
        .collect();
    assert_eq!(places, ["/tool_name", "/arguments"], "{error}");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/sendSubscribe",
        "params": {"id": task["id"]}});
    let stream = house.open(request(Method::POST, "/a2a", Body::from(body.to_string()))).await;
    let told = read(stream).await.text;
    let at = |text: &str| told.find(text).unwrap_or_else(|| panic!("no {text}: {told}"));
    assert!(at("event: task_message") < at("\"state\":\"FAILED\""), "{told}");
    at("[A2A_PROXY/INVALID_INPUT] ");
    let words = json!({"message": {"role": "user", "parts": [{"type": "text", "content": "hi"}]}});
    let other = rpc(&house, "tasks/send", words).await;
    assert_eq!(other["error"]["code"], -32602, "no instruction is not for this skill: {other}");
}

#[tokio::test]
async fn policy_judges_each_method_by_its_name_and_people_are_asked_first() {
    let plain = started("/rpc", Router::new().route("/rpc", post(bare))).await;
    let settings =
        format!("{OPEN}[providers.fs]\ntype = \"rpc\"\nbase_url = \"{plain}\"\nopen = true\n");
    let policies = "forbid (principal, action == Action::\"call\", \
         resource == Tool::\"fs.readFile\");\n\
         @ask(\"it writes\") forbid (principal, action == Action::\"call\", \
         resource == Tool::\"fs.plain\");\n";
    let guarded = Guarded::with_policies(&settings, Some(policies)).await;
    let key = guarded.key(Role::Member).await;
    let call = async |method: &str, params: Value| -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        guarded.post_as(&key, "/a2a", body).await.body
    };
    let in_state = async |id: &Value, states: &[&str]| -> Value {
        let look = async || call("tasks/get", json!({"id": id})).await["result"].clone();
        let is_so = |task: &Value| states.iter().any(|state| task["state"] == *state);
        wait_for(&format!("task {id} to be one of {states:?}"), look, is_so).await
    };
    let send = async |tool: &str| -> Value {
        let content = instruction("fs", tool, json!({"path": "a"}));
        let message = json!({"role": "user", "parts": [{"type": "data", "content": content}]});
        let sent = call("tasks/send", json!({"message": message})).await;
        in_state(&sent["result"]["id"], &["FAILED", "COMPLETED", "INPUT_REQUIRED"]).await
    };
    let codeless = async || {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "fs.codeless", "params": {}});
        guarded.post_as(&key, "/rpc", body).await
    };
    let is_called = |answer: &Answer| answer.body["error"].is_null();
    wait_for("the tools of `fs`", codeless, is_called).await;
    // One method has one name for policy, with the server's name before it and without.
    for written in ["fs.readFile", "readFile"] {
        let denied = send(written).await;
        assert_eq!(output(&denied)["error"]["code"], "DENIED", "{written}: {denied}");
    }
    // It is the same at every other way to such a tool.
    for name in ["fs.fs.readFile", "fs.readFile"] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": name, "params": {"path": "a"}});
        let refused = guarded.post_as(&key, "/rpc", body).await;
        assert!(refused.body["error"].is_object(), "{name}: {refused:?}");
        let path = format!("/api/v1/tools/{name}/call");
        let refused = guarded.post_as(&key, &path, json!({"arguments": {"path": "a"}})).await;
        assert_eq!(refused.status, 404, "{name}: {refused:?}");
    }
    let asked = send("plain").await;
    assert_eq!(asked["state"], "INPUT_REQUIRED", "{asked}");
    let answer = async |id: &Value, words: &str| {
        let message = json!({"role": "user", "parts": [{"type": "text", "content": words}]});
        call("tasks/send", json!({"id": id, "message": message})).await;
    };
    answer(&asked["id"], "approve").await;
    let done = in_state(&asked["id"], &["COMPLETED", "FAILED"]).await;
    assert_eq!(output(&done)["mcp_result"], json!({"stdout": "hi"}), "{done}");
    let asked = send("plain").await;
    answer(&asked["id"], "deny").await;
    let refused = in_state(&asked["id"], &["COMPLETED", "FAILED"]).await;
    let error = &output(&refused)["error"];
    assert_eq!((&error["source"], &error["code"]), (&json!("A2A_PROXY"), &json!("DENIED")));
}

#[tokio::test]
async fn protocol_methods_and_malformed_names_are_not_sent_to_an_open_server() {
    let plain = started("/rpc", Router::new().route("/rpc", post(bare))).await;
    let settings = format!("[providers.fs]\ntype = \"rpc\"\nbase_url = \"{plain}\"\nopen = true\n");
    let config = Config::parse("waypost.toml", &settings).unwrap();
    let project = Project { config, ..Project::demo() };
    let house = House::furnished(project, Extra::default()).await;
    until_seen(&house, "fs.plain").await;
    for tool in ["initialize", "tools/call", "notifications/x", " plain", "plain ", "pl\0ain"] {
        let task = called(&house, "fs", tool, json!({})).await;
        let error = &output(&task)["error"];
        let told = (&error["source"], &error["code"]);
        assert_eq!(told, (&json!("A2A_PROXY"), &json!("INVALID_INPUT")), "{tool:?}: {task}");
        assert_eq!(error["details"]["errors"][0]["pointer"], "/tool_name", "{tool:?}: {task}");
    }
    for tool in ["initialize", "rpc.discover"] {
        let path = format!("/api/v1/tools/fs.{tool}/call");
        let refused = house.post(&path, json!({"arguments": {}})).await;
        assert_eq!(refused.status, 422, "{tool}: {refused:?}");
        assert!(refused.text.contains("is no tool of `fs`"), "{tool}: {refused:?}");
    }
}

#[tokio::test]
async fn an_instruction_for_a_tool_that_is_not_seen_is_kept_as_a_denied_call() {
    let plain = started("/rpc", Router::new().route("/rpc", post(bare))).await;
    let mcp = started("/mcp", Router::new().route("/mcp", post(real))).await;
    let settings = format!(
        "{OPEN}[providers.fs]\ntype = \"rpc\"\nbase_url = \"{plain}\"\nopen = true\n\
         [mcp.servers.real]\nurl = \"{mcp}\"\n"
    );
    let policies = "forbid (principal, action == Action::\"call\", \
         resource == Tool::\"real.twice\");\n\
         forbid (principal, action == Action::\"run\", \
         resource == Plan::\"math::conditional_add\");\n";
    let guarded = Guarded::with_policies(&settings, Some(policies)).await;
    let viewer = guarded.key(Role::Viewer).await;
    let member = guarded.key(Role::Member).await;
    for (tool, arguments) in [("fs.plain", json!({})), ("real.fail", json!({"n": 1}))] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": tool, "params": arguments});
        let call = async || guarded.post_as(&member, "/rpc", body.clone()).await;
        let is_called = |answer: &Answer| answer.body["error"].is_null();
        wait_for(&format!("the tool `{tool}`"), call, is_called).await;
    }
    let send = async |key: &str, server: &str, tool: &str| {
        let content = instruction(server, tool, json!({"n": 1}));
        let message = json!({"role": "user", "parts": [{"type": "data", "content": content}]});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/send",
            "params": {"message": message}});
        guarded.post_as(key, "/a2a", body).await;
    };
    let denied = async |act: &str, name: &str| -> Option<Value> {
        let page = guarded.get_as(ADMIN_KEY, &format!("/api/v1/audit?act={act}")).await;
        let items = page.body["items"].as_array().cloned().unwrap_or_default();
        items.into_iter().find(|item| item["object"]["id"] == name && item["verdict"] == "deny")
    };
    let plan = "math::conditional_add";
    // A member sees other tools of the server, a viewer none: that is refused in other places.
    for (key, server, tool) in [(&member, "real", "twice"), (&viewer, "fs", "plain")] {
        send(key, "nowhere", plan).await;
        send(key, server, tool).await;
        let name = format!("{server}.{tool}");
        let look = async || denied("call", &name).await;
        let kept = |entry: &Option<Value>| entry.is_some();
        let entry = wait_for(&format!("the denied call of `{name}`"), look, kept).await.unwrap();
        assert_eq!(entry["door"], format!("a2a {SKILL}"), "{entry}");
        // What came before it is kept by now.
        let run = denied("run", plan).await;
        assert_eq!(run, None, "a plan is nothing that the proxy calls");
    }
}

#[tokio::test]
async fn a_caller_without_a_callable_tool_is_refused_before_anything_is_stored() {
    let guarded = Guarded::start(&format!("{OPEN}[a2a]\nproxy = true\n")).await;
    let viewer = guarded.key(Role::Viewer).await;
    let member = guarded.key(Role::Member).await;
    let reads = guarded.made(Role::Member, &[Scope::Read], Expiry::Usual).await;
    let content = instruction("fs", "fs.readFile", json!({}));
    let message = json!({"role": "user", "parts": [{"type": "data", "content": content}]});
    let send = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/send",
        "params": {"message": message}});
    let stored = async || guarded.get_as(ADMIN_KEY, "/api/v1/sessions").await.body["items"].clone();
    let before = stored().await;
    for key in [viewer.as_str(), reads.text.expose()] {
        let refused = guarded.post_as(key, "/a2a", send.clone()).await;
        let told = (refused.status, &refused.body["error"]["code"]);
        assert_eq!(told, (200, &json!(-32602)), "{refused:?}");
        let headers = [("a2a-version", "1.0"), ("x-api-key", key)];
        let card = guarded.get("/a2a/v1/extendedAgentCard", &headers).await;
        assert!(card.status == 200 && !card.text.contains(SKILL), "{card:?}");
    }
    assert_eq!(stored().await, before, "nothing is stored");
    let sent = guarded.post_as(&member, "/a2a", send).await;
    assert!(sent.body["result"]["id"].is_string(), "{sent:?}");
    assert_ne!(stored().await, before);
}

/// Allows everything, but calls only of tools whose names begin so.
struct Only(&'static str);

impl Policy for Only {
    fn decide(&self, asked: &Request<'_>) -> Decision {
        match &asked.resource {
            Resource::Tool(spec)
                if asked.act == Act::Call && !spec.name.as_str().starts_with(self.0) =>
            {
                Verdict::Deny("it is another tool".to_owned()).into()
            }
            _ => Decision::allow(),
        }
    }
}

#[tokio::test]
async fn a_caller_of_any_tool_of_an_open_server_may_use_the_proxy() {
    let plain = started("", Router::new().route("/rpc", post(bare))).await;
    let map = kept(json!({"fs": plain}).to_string());
    // All tools of the server, one of them, and none.
    for (allowed, is_taken) in [("fs.", true), ("fs.readFile", true), ("other", false)] {
        let data = tempfile::tempdir().unwrap();
        let (house, stopper) = House::of(|| {
            let lookup = move |name: &str| (name == "MCP_SERVER_MAP").then(|| map.to_owned());
            let extra = Extra { policy: Some(Arc::new(Only(allowed))), ..Extra::default() };
            let variables = Arc::new(lookup);
            Setup { extra, variables, ..setup(Project::demo(), &data, ADDRESS.parse().unwrap()) }
        })
        .await;
        if is_taken {
            until_seen(&house, "fs.fs.readFile").await;
            let task = called(&house, "fs", "fs.readFile", json!({"path": "a"})).await;
            assert_eq!(task["state"], "COMPLETED", "{allowed}: {task}");
        }
        let content = instruction("fs", "plain", json!({}));
        let message = json!({"role": "user", "parts": [{"type": "data", "content": content}]});
        let sent = rpc(&house, "tasks/send", json!({"message": message})).await;
        let is_refused = sent["error"]["code"] == json!(-32602);
        assert_eq!(is_refused, allowed != "fs.", "{allowed}: {sent}");
        stopper.stop().await;
    }
}

#[tokio::test]
async fn a_map_that_cannot_be_read_is_empty_and_a_card_of_a_file_is_shown() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let card = json!({"name": "Mine", "humanReadableId": "mine/proxy", "iconUrl": "https://i.test",
        "url": "http://elsewhere.test", "authSchemes": []});
    std::fs::write(file.path(), card.to_string()).unwrap();
    let path = kept(file.path().to_str().unwrap().to_owned());
    let variables = [("MCP_SERVER_MAP", "nope"), ("AGENT_CARD_PATH", path)];
    let config = Config::parse("waypost.toml", "").unwrap();
    let project = Project { config, ..Project::demo() };
    let house = House::with_variables(project, Vec::leak(variables.to_vec())).await;
    let shown = read(house.open(request(Method::GET, "/agent-card.json", Body::empty())).await);
    let shown = shown.await.body;
    assert_eq!((&shown["name"], &shown["iconUrl"]), (&json!("Mine"), &json!("https://i.test")));
    assert_eq!(shown["humanReadableId"], "mine/proxy");
    assert_eq!(shown["url"], "http://localhost:8420/a2a", "where it is the server knows");
    assert_eq!(shown["authSchemes"], json!([{"scheme": "none"}]));
    let task = called(&house, "fs", "fs.readFile", json!({})).await;
    assert_eq!(output(&task)["error"]["code"], "NO_ROUTE", "{task}");
}
