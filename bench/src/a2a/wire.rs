//! The bytes of the requests and the expected answers, the same for the product and for the bare
//! handler.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::Result;
use crate::http::{Answer, Client, post_with};
use crate::load::{Job, unexpected};

/// Where A2A is served.
pub const PATH: &str = "/a2a/v1";
/// How many tasks a page has.
pub const PAGE: usize = 50;

/// Where the number of a message goes: a message under a used id would be a repeat.
const MARK: &str = "0000000000000000";
const VERSION: &str = "a2a-version: 1.0\r\n";
const SKILLS: &str = "https://waypost.dev/a2a/skills/v1";
const ECHO: &str = "bench/echo";
const HELLO: &str = r#"{"text":"hello"}"#;

const ECHO_PLAN: &str = r#"planId: bench/echo
description: gives a text back
parameters: {type: object, properties: {text: {type: string}}, required: [text]}
startStepId: end
steps:
  - {id: end, type: final_response, message: {jsonPath: $.promptInput.text}}
"#;

/// Adds to a project what is measured: the plans as skills, and room for the streams.
pub fn configure(project: &Path, streams: usize) -> Result<()> {
    std::fs::write(project.join("plans/bench/echo.yaml"), ECHO_PLAN)?;
    let path = project.join("waypost.toml");
    let settings = std::fs::read_to_string(&path)?;
    let room = format!("[limits]\na2a_streams_max = {streams}\nstreams_max = {streams}\n");
    let settings = settings.replacen("[limits]\n", &room, 1);
    std::fs::write(path, format!("{settings}\n[a2a]\nexpose = [\"bench/*\"]\n"))?;
    Ok(())
}

/// Messages with a text that comes back, each of which waits for its task.
pub fn sends(address: SocketAddr) -> Result<Arc<Job>> {
    sends_as(address, "")
}

/// The same with a credential, a header line.
pub fn sends_as(address: SocketAddr, credential: &str) -> Result<Arc<Job>> {
    let message = message(&format!("m-{MARK}"), ECHO, HELLO);
    let params = format!(r#"{{"message":{message}}}"#);
    let request = rpc_as(address, credential, "SendMessage", &params);
    Job::numbered(address, request, MARK, completed)
}

/// One such message, under the id of this number.
pub fn send(address: SocketAddr, number: usize) -> Vec<u8> {
    let message = message(&format!("n-{number:016}"), ECHO, HELLO);
    rpc(address, "SendMessage", &format!(r#"{{"message":{message}}}"#))
}

/// The id of the task of one such message.
pub async fn sent(address: SocketAddr) -> Result<String> {
    let mut client = Client::connect(address).await?;
    let answer = client.send(&send(address, 0)).await?;
    completed(&answer)?;
    task_of(&answer)
}

/// Reads of one task, over and over.
pub fn gets(address: SocketAddr, task: &str) -> Arc<Job> {
    let request = rpc(address, "GetTask", &format!(r#"{{"id":"{task}"}}"#));
    Job::of(address, request, completed)
}

/// Calls of a tool of a server behind this one, each a task.
pub fn proxied(address: SocketAddr, server: &str, tool: &str) -> Result<Arc<Job>> {
    let arguments = r#"{"a":20,"b":22}"#;
    let instruction = format!(
        r#"{{"target_mcp_server_id":"{server}","tool_name":"{tool}","arguments":{arguments}}}"#
    );
    let message = message(&format!("p-{MARK}"), "mcp.execute_tool", &instruction);
    let request = rpc(address, "SendMessage", &format!(r#"{{"message":{message}}}"#));
    Job::numbered(address, request, MARK, called)
}

/// The first page of all tasks.
pub fn list(address: SocketAddr) -> Vec<u8> {
    rpc(address, "ListTasks", &format!(r#"{{"pageSize":{PAGE}}}"#))
}

/// A message that begins a task which asks.
pub fn ask(address: SocketAddr, number: usize) -> Vec<u8> {
    let message = message(&format!("ask-{number}"), "bench/ask", "{}");
    rpc(address, "SendMessage", &format!(r#"{{"message":{message}}}"#))
}

/// The message that answers it.
pub fn reply(address: SocketAddr, task: &str, number: usize) -> Vec<u8> {
    let params = format!(
        r#"{{"message":{{"messageId":"reply-{number}","taskId":"{task}","role":"ROLE_USER","parts":[{{"text":"yes"}}]}}}}"#
    );
    rpc(address, "SendMessage", &params)
}

/// A stream of what happens to a task.
pub fn subscribe(address: SocketAddr, task: &str) -> Vec<u8> {
    rpc(address, "SubscribeToTask", &format!(r#"{{"id":"{task}"}}"#))
}

/// The id of the task in an answer to a message.
pub fn task_of(answer: &Answer<'_>) -> Result<String> {
    let body: Value = serde_json::from_slice(answer.body)?;
    match body["result"]["task"]["id"].as_str() {
        Some(id) => Ok(id.to_owned()),
        None => Err(unexpected("a task", answer)),
    }
}

/// A message that begins a task of a skill with this input.
fn message(id: &str, skill: &str, input: &str) -> String {
    format!(
        r#"{{"messageId":"{id}","role":"ROLE_USER","parts":[{{"data":{input}}}],"metadata":{{"{SKILLS}":{{"skill":"{skill}"}}}}}}"#
    )
}

/// A request of JSON-RPC.
fn rpc(address: SocketAddr, method: &str, params: &str) -> Vec<u8> {
    rpc_as(address, "", method, params)
}

fn rpc_as(address: SocketAddr, credential: &str, method: &str, params: &str) -> Vec<u8> {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    post_with(address, PATH, &format!("{VERSION}{credential}"), &body)
}

/// A check: a task that is completed.
pub fn completed(answer: &Answer<'_>) -> Result<()> {
    expect(answer, r#""TASK_STATE_COMPLETED""#)
}

/// A check: the tool was called.
fn called(answer: &Answer<'_>) -> Result<()> {
    expect(answer, r#""success":true"#)
}

fn expect(answer: &Answer<'_>, part: &str) -> Result<()> {
    let text = std::str::from_utf8(answer.body)?;
    if answer.status == 200 && text.contains(part) {
        return Ok(());
    }
    Err(unexpected(&format!("200 with {part}"), answer))
}
