//! A JSON-RPC method as a tool.

use super::super::config::UpstreamConfig;
use super::super::{RemoteParts, Result};
use super::answer::{CallSubject, read, replied};
use super::listing::ListedTool;
use super::names::{bare, refused};
use super::server::{Request, RpcServer};
use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::tool::call::{
    Call, Caller, Reach, ToolError, ToolOutput, ToolSpec, Upstream, UpstreamProtocol,
};
use outbound::answer::Effect;
use serde_json::{Value, json};
use std::sync::Arc;

/// How a request says which tool is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The tool's name is the method, its arguments are the parameters.
    Method,
    /// `tools/call` with both.
    Tools,
}

/// The tool.
pub(super) struct RpcTool {
    spec: Arc<ToolSpec>,
    /// The server's name.
    upstream: Arc<str>,
    /// Its name there.
    name: String,
    dialect: Dialect,
    server: Arc<RpcServer>,
    parts: RemoteParts,
    timeout_ms: Option<u64>,
    /// At an open server: what policy judges it by, where that has another name, and why no such
    /// method is sent, if so.
    judged: Option<Arc<ToolSpec>>,
    refused: Option<&'static str>,
}

impl RpcTool {
    /// A tool of this server.
    pub(super) fn new(
        config: &UpstreamConfig,
        listed: ListedTool,
        dialect: Dialect,
        server: Arc<RpcServer>,
        parts: RemoteParts,
    ) -> Self {
        let spec = Arc::new(listed.spec(config));
        let upstream = config.name.as_str().into();
        let timeout_ms = config.timeout_ms;
        let judged = None;
        let refused = None;
        let name = listed.name;
        Self { spec, upstream, name, dialect, server, parts, timeout_ms, judged, refused }
    }

    /// The same, at an open server: the method may be written with the server's own name before it
    /// and without, and is judged without.
    pub(super) fn of_open(self, config: &UpstreamConfig) -> Self {
        let refused = refused(config, &self.name);
        let judged = bare(config, &self.name).map(|bare| {
            let name = format!("{}{bare}", config.prefix).into();
            Arc::new(ToolSpec { name, ..(*self.spec).clone() })
        });
        Self { judged, refused, ..self }
    }

    async fn send(&self, call: &Call) -> Result<ToolOutput> {
        // The engine's own limit is the engine's to keep; only a shorter one is ours.
        match self.timeout_ms.filter(|limit_ms| *limit_ms < call.timeout_ms) {
            None => self.exchange(call).await,
            Some(limit_ms) => {
                let answered = self.parts.within(limit_ms, self.exchange(call)).await;
                answered.unwrap_or_else(|| Err(self.about().late(limit_ms)))
            }
        }
    }

    async fn exchange(&self, call: &Call) -> Result<ToolOutput> {
        let id = call.id.to_string();
        let bytes_max = call.output_bytes_max;
        let wrapped: Value;
        let (method, params) = match self.dialect {
            Dialect::Method => (self.name.as_str(), &*call.arguments),
            Dialect::Tools => {
                wrapped = json!({"name": self.name, "arguments": *call.arguments});
                ("tools/call", &wrapped)
            }
        };
        let about = self.about();
        let request = Request {
            id: &id,
            method,
            params,
            what: "answer",
            effect: about.effect,
            bytes_max,
            once: true,
            trace: call.context.trace,
        };
        let reply = self.server.post(&request).await?;
        let hidden = &self.server.hidden;
        let outcome = about.outcome(read(&reply, &id, hidden));
        outcome.map_err(|error| error.replied(replied(&reply, hidden)))
    }

    fn about(&self) -> CallSubject<'_> {
        let reads = self.spec.reach == Reach::Reads;
        CallSubject {
            server: &self.server.name,
            tool: &self.name,
            effect: if reads { Effect::Reads } else { Effect::Writes },
            hidden: &self.server.hidden,
        }
    }
}

impl Tool for RpcTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn judged(&self) -> &Arc<ToolSpec> {
        self.judged.as_ref().unwrap_or(&self.spec)
    }

    fn check(&self, _: &Caller, _: &Value) -> Result<()> {
        let Some(why) = self.refused else { return Ok(()) };
        let method = self.name.escape_debug();
        let message = format!("`{method}` is no tool of `{}`: {why}", self.upstream);
        let hint = "name a method of the server itself, such as `filesystem.readFile`";
        Err(ToolError::not_sent("InputValidationError", message).hint(hint))
    }

    fn upstream(&self) -> Option<Upstream> {
        Some(Upstream { name: self.upstream.clone(), speaks: UpstreamProtocol::Other })
    }

    fn call<'a>(&'a self, _: &'a Caller, call: &'a Call) -> BoxFuture<'a, Result<ToolOutput>> {
        Box::pin(self.send(call))
    }
}
