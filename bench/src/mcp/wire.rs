//! The bytes of the requests and the expected answers, the same for the product and for the bare
//! handlers.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use crate::Result;
use crate::http::{Answer, post_with};
use crate::load::Job;

/// Where MCP is served.
pub const PATH: &str = "/mcp";

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The name of the tool that is called.
pub const TOOL: &str = "math__add";

/// A call of a tool that reads.
pub fn call(address: SocketAddr) -> Vec<u8> {
    call_of(address, TOOL)
}

/// The same where the tool has another name.
pub fn call_of(address: SocketAddr, tool: &str) -> Vec<u8> {
    calling(address, tool, "")
}

/// The same by someone with this credential, which is a header line.
pub fn call_as(address: SocketAddr, credential: &str) -> Vec<u8> {
    calling(address, TOOL, credential)
}

fn calling(address: SocketAddr, tool: &str, credential: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"a":20,"b":22}},{META}}}}}"#
    );
    let headers = format!("{}{credential}", headers("tools/call", Some(tool)));
    post_with(address, PATH, &headers, &body)
}

/// The list of tools.
pub fn list(address: SocketAddr) -> Vec<u8> {
    list_as(address, "", None)
}

/// The same by someone with this credential, which is a header line, from this place on.
pub fn list_as(address: SocketAddr, credential: &str, cursor: Option<&str>) -> Vec<u8> {
    let cursor = cursor.map(|cursor| format!(r#""cursor":"{cursor}","#)).unwrap_or_default();
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{cursor}{META}}}}}"#);
    let headers = format!("{}{credential}", headers("tools/list", None));
    post_with(address, PATH, &headers, &body)
}

/// Calls of the tool that reads, over and over.
pub fn calls(address: SocketAddr) -> Arc<Job> {
    Job::of(address, call(address), called)
}

/// The list of tools, over and over.
pub fn lists(address: SocketAddr) -> Arc<Job> {
    Job::of(address, list(address), listed)
}

fn headers(method: &str, name: Option<&str>) -> String {
    let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
    format!(
        "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: {method}\r\n{name}"
    )
}

/// A check: the sum came back.
pub fn called(answer: &Answer<'_>) -> Result<()> {
    expect(answer, r#""text":"42""#)
}

/// A check: a list came back.
pub fn listed(answer: &Answer<'_>) -> Result<()> {
    expect(answer, r#""tools":["#)
}

fn expect(answer: &Answer<'_>, part: &str) -> Result<()> {
    let head = answer.body.get(..400).unwrap_or(answer.body);
    let text = String::from_utf8_lossy(head);
    if answer.status == 200 && text.contains(part) {
        return Ok(());
    }
    Err(format!("expected 200 with {part}, got {}: {text}", answer.status).into())
}

/// Writes this many plans, each of which is a tool.
pub fn write_plans(project: &Path, count: usize) -> Result<()> {
    let folder = project.join("plans/many");
    std::fs::create_dir_all(&folder)?;
    for number in 0..count {
        let text = format!(
            "planId: many/plan-{number:04}\n\
             description: plan number {number}, which adds one to what it is given\n\
             parameters:\n  type: object\n  properties:\n    n: {{type: integer, description: any number}}\n  required: [n]\n\
             steps:\n  - {{id: add, type: tool_call, toolId: \"math::add\", arguments: {{a: {{jsonPath: $.promptInput.n}}, b: 1}}, saveAs: sum, nextStepId: end}}\n  - {{id: end, type: final_response, message: {{jsonPath: $.context.sum}}}}\n"
        );
        std::fs::write(folder.join(format!("plan-{number:04}.yaml")), text)?;
    }
    Ok(())
}
