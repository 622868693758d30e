//! `http::request`: one HTTP request to a listed host. GET and HEAD read; all others write and are
//! sent once, with the call's id as their idempotency key.

use super::allow::HttpSettings;
use super::answer::{self, Effect};
use super::client::Outbound;
use super::wanted::{METHODS, Wanted, reads};
use crate::trace::traced;
use futures::future::BoxFuture;
use kernel::call::{Call, Caller, Pace, Reach, ToolError, ToolOutput, ToolSpec, Yields};
use kernel::contracts::Tool;
use serde_json::{Value, json};
use std::sync::Arc;

/// The tool.
pub(super) struct Request {
    spec: Arc<ToolSpec>,
    outbound: Outbound,
}

impl Request {
    /// The tool, for these hosts.
    pub(super) fn new(settings: HttpSettings) -> Self {
        Self { spec: Arc::new(spec()), outbound: Outbound::new(Arc::new(settings)) }
    }

    async fn send(&self, call: &Call) -> Result<ToolOutput, ToolError> {
        let mut wanted = Wanted::read(&call.arguments, self.outbound.settings())?;
        traced(&mut wanted.headers, call.place.trace);
        let body = wanted.body();
        let request = self
            .outbound
            .client()?
            .request(wanted.method, wanted.url)
            .headers(wanted.headers)
            .header("idempotency-key", call.id.to_string());
        let request = match body {
            Some(body) => request.body(body),
            None => request,
        };
        let effect = if reads(&call.arguments) { Effect::Reads } else { Effect::Writes };
        match request.send().await {
            Ok(response) => answer::read(response, effect, call.output_bytes_max).await,
            Err(error) => Err(answer::unanswered(error, effect)),
        }
    }
}

impl Tool for Request {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        Wanted::read(arguments, self.outbound.settings()).map(drop)
    }

    fn reach(&self, arguments: &Value) -> (Reach, bool) {
        if reads(arguments) { (Reach::Reads, true) } else { (Reach::Writes, false) }
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.send(call))
    }
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: "http::request".into(),
        title: "HTTP request".to_owned(),
        description: "Sends one HTTP request to a host listed in `[tools.http] allow`. GET and \
                      HEAD read, other methods write. Redirects are not followed. An answer of \
                      400 or above is an error."
            .to_owned(),
        input_schema: Arc::new(json!({
            "type": "object",
            "properties": {
                "method": {"enum": METHODS, "default": "GET"},
                "url": {"type": "string"},
                "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                "body": {"description": "A string is sent as it is, anything else as JSON."}
            },
            "required": ["url"],
            "additionalProperties": false
        })),
        output_schema: Some(Arc::new(json!({
            "type": "object",
            "properties": {
                "status": {"type": "integer"},
                "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                "body": {"description": "JSON where the answer says so, else text, else null."}
            },
            "required": ["status", "headers", "body"]
        }))),
        reach: Reach::Writes,
        idempotent: false,
        tags: vec!["http".to_owned()],
        pace: Pace::Quick,
        yields: Yields::Value,
        unrecorded: false,
        listed: None,
    }
}
