//! One operation as a tool.

use super::operation::Operation;
use super::output;
use super::parameter::KEY_HEADER;
use super::request::Request;
use super::send::Sender;
use crate::Result;
use crate::config::UpstreamConfig;
use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::tool::call::{
    Call, Caller, OutputKind, Pace, Reach, ToolError, ToolOutput, ToolSpec, Upstream,
    UpstreamProtocol,
};
use outbound::answer::{BodyDestination, Effect};
use outbound::trace::traced;
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde_json::Value;
use std::sync::Arc;

/// The tool.
pub(super) struct RestTool {
    spec: Arc<ToolSpec>,
    /// The server's name.
    upstream: Arc<str>,
    operation: Operation,
    base: Url,
    sender: Arc<Sender>,
}

impl RestTool {
    /// The tool of an operation at this server.
    pub(super) fn new(
        upstream: &UpstreamConfig,
        operation: Operation,
        base: Url,
        sender: Arc<Sender>,
    ) -> Self {
        let spec = ToolSpec {
            name: format!("{}{}", upstream.prefix, operation.name).into(),
            title: operation.title.clone(),
            description: operation.description.clone(),
            input_schema: Arc::new(operation.input_schema.clone()),
            output_schema: None,
            reach: operation.reach,
            idempotent: operation.idempotent,
            tags: operation.tags.clone(),
            pace: Pace::Quick,
            yields: OutputKind::Value,
            unrecorded: !upstream.journal,
            listed: None,
        };
        let spec = Arc::new(spec);
        let upstream = upstream.name.as_str().into();
        Self { spec, upstream, operation, base, sender }
    }

    async fn send(&self, call: &Call) -> Result<ToolOutput> {
        let mut request = Request::new(&self.operation, &self.base, &call.arguments)?;
        if self.operation.keyed {
            let key = HeaderValue::from_str(&call.id.to_string());
            let key =
                key.map_err(|_| ToolError::not_sent("BadKey", "the call's id is no header"))?;
            request.headers.insert(KEY_HEADER, key);
        }
        traced(&mut request.headers, call.context.trace);
        let effect = match self.operation.reach {
            Reach::Reads => Effect::Reads,
            Reach::Writes | Reach::Runs => Effect::Writes,
        };
        let bytes_max = call.output_bytes_max;
        let blobs = Some(&call.context.blobs);
        let destination = BodyDestination { bytes_max, blobs };
        let answer = self.sender.send(request, effect, destination).await?;
        if let Some(blob) = answer.stored {
            return Ok(ToolOutput::Blob(blob));
        }
        let hidden = self.sender.credentials.hidden();
        Ok(ToolOutput::Value(output::value(&answer, &self.operation.method, hidden)))
    }
}

impl Tool for RestTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn upstream(&self) -> Option<Upstream> {
        Some(Upstream { name: self.upstream.clone(), speaks: UpstreamProtocol::Other })
    }

    fn check(&self, _: &Caller, arguments: &Value) -> Result<()> {
        Request::new(&self.operation, &self.base, arguments).map(drop)
    }

    fn call<'a>(&'a self, _: &'a Caller, call: &'a Call) -> BoxFuture<'a, Result<ToolOutput>> {
        Box::pin(self.send(call))
    }
}
