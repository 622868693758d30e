//! Servers that speak JSON-RPC 2.0 at one address, without MCP's handshake: `POST <url>` with a
//! tool's name as the method and its arguments as the parameters, or, where the server answers
//! `tools/list`, with `tools/call {name, arguments}`. For a server that cannot list its tools,
//! the operator says which ones it has, or that any method may be called.

mod server;
mod answer;
mod listing;
mod names;
mod tool;
mod open;
#[cfg(test)]
mod tests;

use super::RemoteParts;
use super::config::{Secret, UpstreamConfig, UpstreamKind};
use kernel::contracts::Tool;
use kernel::values::fault::Fault;
use listing::{ListedTool, Lists};
pub use names::refused as refused_method;
use open::AnyMethod;
use server::RpcServer;
use std::sync::Arc;
use tool::{Dialect, RpcTool};

/// The tools of a server: those that it lists, else those that the operator names. Asks the server
/// once for each page of its list.
pub(crate) async fn load(
    config: &UpstreamConfig,
    url: &str,
    headers: &[(String, Secret)],
    wanted: &[String],
    parts: &RemoteParts,
) -> Result<Vec<Arc<dyn Tool>>, Fault> {
    let server = Arc::new(RpcServer::new(config, url, headers, parts)?);
    let (dialect, listed) = match listing::ask(&server, parts).await? {
        // Who is open and lists nothing may have methods all the same.
        Lists::Tools(listed) if listed.is_empty() && is_open(config) => {
            (Dialect::Method, named(config, wanted, "its list is empty")?)
        }
        Lists::Tools(listed) => (Dialect::Tools, narrowed(config, listed, wanted)?),
        Lists::Not(why) => (Dialect::Method, named(config, wanted, &why)?),
    };
    let any = (dialect == Dialect::Method && is_open(config))
        .then(|| Arc::new(AnyMethod::new(config, server.clone(), parts.clone())) as Arc<dyn Tool>);
    let is_any = any.is_some();
    let tool = |listed| {
        let tool = RpcTool::new(config, listed, dialect, server.clone(), parts.clone());
        if is_any { tool.of_open(config) } else { tool }
    };
    let named = listed.into_iter().map(|listed| Arc::new(tool(listed)) as Arc<dyn Tool>);
    Ok(named.chain(any).collect())
}

/// A tool that stands for all methods of a server that is open and cannot be asked for a list now:
/// calls say themselves that it is away.
pub(crate) fn any_method(config: &UpstreamConfig, parts: &RemoteParts) -> Option<Arc<dyn Tool>> {
    let UpstreamKind::Rpc { url, headers, open: true, .. } = &config.kind else { return None };
    let server = Arc::new(RpcServer::new(config, url, headers, parts).ok()?);
    Some(Arc::new(AnyMethod::new(config, server, parts.clone())))
}

/// Whether the operator lets any method be called.
fn is_open(config: &UpstreamConfig) -> bool {
    matches!(config.kind, UpstreamKind::Rpc { open: true, .. })
}

/// Of what the server lists, what the operator wants: everything where he names nothing.
fn narrowed(
    config: &UpstreamConfig,
    listed: Vec<ListedTool>,
    wanted: &[String],
) -> Result<Vec<ListedTool>, Fault> {
    let missing = wanted.iter().find(|name| !listed.iter().any(|tool| tool.name == **name));
    if let Some(missing) = missing {
        let message = format!("`{}` lists no tool `{missing}`", config.name);
        return Err(Fault::new("ToolNotFound", message)
            .hint(format!("correct `tools` in {}, or leave it out to take all", config.origin)));
    }
    let is_wanted = |tool: &ListedTool| wanted.is_empty() || wanted.contains(&tool.name);
    Ok(listed.into_iter().filter(is_wanted).collect())
}

/// The configured tools of a server without a list.
fn named(config: &UpstreamConfig, wanted: &[String], why: &str) -> Result<Vec<ListedTool>, Fault> {
    if wanted.is_empty() && !is_open(config) {
        let message = format!("`{}` does not list its tools ({why})", config.name);
        return Err(Fault::new("ToolsUnknown", message).hint(format!(
            "name them in {}: `tools = [\"filesystem.readFile\"]`, or `open = true` for any method",
            config.origin
        )));
    }
    Ok(wanted.iter().map(|name| ListedTool::undescribed(name)).collect())
}
