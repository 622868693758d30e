//! A server without a tool list, of which any method can be called. Nothing is known of a method,
//! so it counts as one that writes.

use super::super::config::UpstreamConfig;
use super::super::{RemoteParts, Result};
use super::listing::ListedTool;
use super::server::RpcServer;
use super::tool::{Dialect, RpcTool};
use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::tool::call::{
    Call, Caller, ToolError, ToolOutput, ToolSpec, Upstream, UpstreamProtocol,
};
use std::sync::Arc;

/// Stands for all methods of a server.
pub(super) struct AnyMethod {
    spec: Arc<ToolSpec>,
    config: UpstreamConfig,
    server: Arc<RpcServer>,
    parts: RemoteParts,
}

impl AnyMethod {
    /// Of this server.
    pub(super) fn new(config: &UpstreamConfig, server: Arc<RpcServer>, parts: RemoteParts) -> Self {
        let description = format!(
            "Any method of `{}`, which does not list its tools: call it by its own name.",
            config.name
        );
        let spec = ToolSpec { description, ..ListedTool::undescribed("*").spec(config) };
        Self { spec: Arc::new(spec), config: config.clone(), server, parts }
    }
}

impl Tool for AnyMethod {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn upstream(&self) -> Option<Upstream> {
        Some(Upstream { name: self.config.name.as_str().into(), speaks: UpstreamProtocol::Other })
    }

    fn is_open(&self) -> bool {
        true
    }

    fn opened(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let method = name.strip_prefix(&*self.config.prefix).filter(|method| !method.is_empty())?;
        let listed = ListedTool::undescribed(method);
        let dialect = Dialect::Method;
        let server = self.server.clone();
        let parts = self.parts.clone();
        let tool = RpcTool::new(&self.config, listed, dialect, server, parts);
        Some(Arc::new(tool.of_open(&self.config)))
    }

    fn call<'a>(&'a self, _: &'a Caller, _: &'a Call) -> BoxFuture<'a, Result<ToolOutput>> {
        let message = format!("`{}` is no method", self.spec.name);
        let error = ToolError::not_sent("MethodNotFound", message).hint("name a method instead");
        Box::pin(std::future::ready(Err(error)))
    }
}
