//! The story `waypost demo tools`, tools and plans for MCP clients: one endpoint, no handshake in
//! the newest version.

use super::stage::{Stage, StoryRequest};
use crate::exit::Result;
use serde_json::{Value, json};

const VERSION: &str = "2026-07-28";
const JSON: (&str, &str) = ("Content-Type", "application/json");
const BOTH: (&str, &str) = ("Accept", "application/json, text/event-stream");
const NEWEST: (&str, &str) = ("MCP-Protocol-Version", VERSION);

pub(super) async fn tell(stage: &Stage) -> Result<()> {
    let text = "All tools and plans are MCP tools as well. A client lists them: calendar tools of \
                a server behind this one, and our own.";
    let headers = [JSON, BOTH, NEWEST, ("Mcp-Method", "tools/list")];
    let list = StoryRequest::post("/mcp", request(1, "tools/list", json!({}))).with(&headers);
    stage.tell(text, list.showing(&["/result/tools/*/name"])).await?;

    let text = "It calls one.";
    let headers = [JSON, BOTH, NEWEST, ("Mcp-Method", "tools/call"), ("Mcp-Name", "math__add")];
    let call = json!({"name": "math__add", "arguments": {"a": 2, "b": 3}});
    let call = StoryRequest::post("/mcp", request(2, "tools/call", call)).with(&headers);
    stage.tell(text, call.showing(&["/result/content", "/result/structuredContent"])).await?;

    let text = "A plan that asks a person asks the one before the client, where the client can \
                show forms. This client says that it can, and is asked.";
    let name = "interaction__greeting";
    let headers = [JSON, BOTH, NEWEST, ("Mcp-Method", "tools/call"), ("Mcp-Name", name)];
    let mut call = request(3, "tools/call", json!({"name": name, "arguments": {}}));
    call["params"]["_meta"][CAPABILITIES] = json!({"elicitation": {"form": {}}});
    let call = StoryRequest::post("/mcp", call).with(&headers);
    stage.tell(text, call.showing(&["/result/resultType", "/result/inputRequests"])).await?;
    Ok(())
}

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn request(id: u32, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        CAPABILITIES: {},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}
