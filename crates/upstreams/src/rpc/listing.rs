//! Lists the tools of servers that answer `tools/list`.

use super::super::config::UpstreamConfig;
use super::super::{PAGES_MAX, RemoteParts, TOOLS_MAX};
use super::answer::{InvalidAnswer, RpcOutcome, read, short};
use super::server::{Request, RpcServer};
use kernel::tool::call::{OutputKind, Pace, Reach, ToolSpec};
use kernel::values::fault::Fault;
use outbound::answer::Effect;
use serde_json::{Value, json};
use std::sync::Arc;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ListedTool {
    pub(super) name: String,
    /// Its list item; `None` without a list.
    item: Option<Value>,
}

/// Answer to `tools/list`.
pub(super) enum Lists {
    /// Which ones it has.
    Tools(Vec<ListedTool>),
    /// That it cannot say: why.
    Not(String),
}

/// Asks a server for its tools. A server that is not there, or that fails while it lists, is a
/// fault; one that has no list is not.
pub(super) async fn ask(server: &RpcServer, parts: &RemoteParts) -> Result<Lists, Fault> {
    let timeout_ms = parts.limits.upstream_connect_timeout_ms;
    match parts.within(timeout_ms, pages(server, parts)).await {
        Some(lists) => lists,
        None => {
            let message =
                format!("`{}` did not list its tools within {timeout_ms} ms", server.name);
            Err(Fault::new("Timeout", message))
        }
    }
}

async fn pages(server: &RpcServer, parts: &RemoteParts) -> Result<Lists, Fault> {
    let bytes_max = parts.limits.call_output_bytes_max;
    let mut tools: Vec<ListedTool> = Vec::new();
    let mut cursor: Option<String> = None;
    for number in 0..PAGES_MAX {
        let asked = page(server, number, cursor.as_deref(), bytes_max).await?;
        let page = match asked {
            Ok(page) => page,
            Err(why) if number == 0 => return Ok(Lists::Not(why)),
            // Who can list, but not to the end, has failed.
            Err(why) => return Err(broken(server, &why)),
        };
        tools.extend(page.tools);
        match page.next {
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            _ => break,
        }
        if tools.len() >= TOOLS_MAX {
            break;
        }
    }
    tools.truncate(TOOLS_MAX);
    Ok(Lists::Tools(tools))
}

struct Page {
    tools: Vec<ListedTool>,
    next: Option<String>,
}

/// One page, or why the server has none.
async fn page(
    server: &RpcServer,
    number: usize,
    cursor: Option<&str>,
    bytes_max: usize,
) -> Result<Result<Page, String>, Fault> {
    let id = format!("list-{number}");
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
    let request = Request {
        id: &id,
        method: "tools/list",
        params: &params,
        what: "list",
        effect: Effect::Reads,
        bytes_max,
        once: false,
        trace: None,
    };
    let reply = server.post(&request).await.map_err(|error| error.fault)?;
    let mut result = match read(&reply, &id, &server.hidden) {
        Ok(RpcOutcome::Result(result)) => result,
        Ok(RpcOutcome::Error { code, message, .. }) => {
            return Ok(Err(format!("error {code}: {}", short(&message))));
        }
        // Who is not let in, or comes at a bad time, does not learn whether there is a list.
        Err(unread @ InvalidAnswer::Status(401 | 403 | 429 | 502..=504, _)) => {
            return Err(broken(server, &unread.to_string()));
        }
        Err(unread) => return Ok(Err(unread.to_string())),
    };
    let Some(Value::Array(tools)) = result.get_mut("tools").map(Value::take) else {
        return Ok(Err("its answer to `tools/list` has no `tools`".to_owned()));
    };
    let next = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    Ok(Ok(Page { tools: tools.into_iter().filter_map(ListedTool::read).collect(), next }))
}

fn broken(server: &RpcServer, why: &str) -> Fault {
    Fault::new("InvalidResponse", format!("`{}` does not list its tools well: {why}", server.name))
}

impl ListedTool {
    /// A tool of which nothing but its name is known.
    pub(super) fn undescribed(name: &str) -> Self {
        Self { name: name.to_owned(), item: None }
    }

    /// One item of a list; what has no name is none.
    fn read(item: Value) -> Option<Self> {
        let name = item.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())?;
        Some(Self { name: name.to_owned(), item: Some(item) })
    }

    /// The tool as we list it. What an upstream that is not trusted says of its tools' effects is
    /// not believed.
    pub(super) fn spec(&self, config: &UpstreamConfig) -> ToolSpec {
        let item = self.item.as_ref().unwrap_or(&Value::Null);
        let annotations = &item["annotations"];
        let hint = |name: &str| config.trusted && annotations[name].as_bool() == Some(true);
        let title = item["title"].as_str().or_else(|| annotations["title"].as_str());
        let schema = |key: &str| item.get(key).filter(|schema| schema.is_object()).cloned();
        let described = item["description"].as_str().map(str::to_owned);
        let name = &self.name;
        let server = &config.name;
        let reads = hint("readOnlyHint");
        ToolSpec {
            name: format!("{}{name}", config.prefix).into(),
            title: title.unwrap_or(name).to_owned(),
            description: described.unwrap_or_else(|| {
                format!("`{name}` of `{server}`, which does not describe its tools.")
            }),
            input_schema: Arc::new(schema("inputSchema").unwrap_or(json!({"type": "object"}))),
            output_schema: schema("outputSchema").map(Arc::new),
            reach: if reads { Reach::Reads } else { Reach::Writes },
            idempotent: reads || hint("idempotentHint"),
            tags: vec![server.clone()],
            pace: Pace::Quick,
            yields: OutputKind::Content,
            unrecorded: !config.journal,
            listed: self.item.clone().map(Arc::new),
        }
    }
}
