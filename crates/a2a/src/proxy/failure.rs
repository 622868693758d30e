//! A tool that is called for an agent of others: how that failed, as a function of the run's events
//! and of nothing else. Sources and codes are those of the MCP tool proxy of AgentVault.

use super::plan::is_proxy;
use kernel::event::Fact;
use kernel::tool::call::{CallProgress, RawFailure};
use kernel::values::datum::{Datum, DatumValue};
use kernel::values::fault::Fault;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The proxy itself could not do it.
const PROXY: &str = "A2A_PROXY";
/// The server refused it in the words of its protocol.
const PROTOCOL: &str = "MCP_PROTOCOL";
/// The tool said that it failed.
const TOOL: &str = "MCP_TOOL";
const SOURCES: [&str; 3] = [PROXY, PROTOCOL, TOOL];

const TIMEOUT: &str = "MCP_TIMEOUT";
const CONNECTION: &str = "MCP_CONNECTION_ERROR";
/// The code of a tool that is not there.
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// The member of a run's input that says why nothing is called: `{code, message, details?}`.
pub(crate) const REFUSED: &str = "refused";

/// The member of a run's input that says that the server lists nothing: a tool of it that is not
/// there is one that its caller may not call.
pub(crate) const OPEN: &str = "open";

/// How a call for an agent of others failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProxyFailure {
    /// Who failed.
    pub(crate) source: &'static str,
    /// Why, for programs.
    pub(crate) code: String,
    /// Why, in words.
    pub(crate) message: String,
    /// More for programs.
    pub(crate) details: Map<String, Value>,
}

impl ProxyFailure {
    fn new(source: &'static str, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { source, code: code.into(), message: message.into(), details: Map::new() }
    }

    #[must_use]
    fn detail(mut self, key: &str, value: Option<Value>) -> Self {
        let value = value.filter(|value| !value.is_null());
        self.details.extend(value.map(|value| (key.to_owned(), value)));
        self
    }

    /// The output of the proxy.
    pub(crate) fn output(&self) -> Value {
        let Self { source, code, message, details } = self;
        let mut error = json!({"source": source, "code": code, "message": message});
        if !details.is_empty() {
            error["details"] = Value::Object(details.clone());
        }
        json!({"success": false, "error": error})
    }

    /// The same as a fault of the task.
    pub(crate) fn fault(&self) -> Fault {
        Fault::new(&format!("{}/{}", self.source, self.code), self.message.clone())
    }
}

/// What the status of a task says about such a fault: `[source/code] message`; none for others.
pub(crate) fn words(fault: &Fault) -> Option<String> {
    let (source, _) = fault.name.split_once('/')?;
    SOURCES.contains(&source).then(|| format!("[{}] {}", fault.name, fault.message))
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq)]
struct FailedCall {
    how: CallProgress,
    fault: Fault,
    said: Option<Arc<Datum>>,
}

/// State of a proxied call, from the events of its run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProxiedCall {
    input: Arc<Datum>,
    failed: Option<FailedCall>,
}

impl ProxiedCall {
    /// Such a run, if this begins one.
    pub(crate) fn begun(fact: &Fact) -> Option<Self> {
        match fact {
            Fact::RunStarted { plan, input, .. } if is_proxy(plan) => {
                Some(Self { input: input.clone(), failed: None })
            }
            _ => None,
        }
    }

    /// Takes in the next event.
    pub(crate) fn note(&mut self, fact: &Fact) {
        if let Fact::CallFailed { how, fault, said, .. } = fact {
            let how = *how;
            let fault = fault.clone();
            let said = said.clone();
            self.failed = Some(FailedCall { how, fault, said });
        }
    }

    /// Why the run failed that ended with this fault.
    pub(crate) fn failure(&self, fault: &Fault) -> ProxyFailure {
        let input = self.input.to_value();
        if let Some(refused) = input.get(REFUSED) {
            return refusal(refused);
        }
        let call = self.failed.as_ref().filter(|call| call.fault.name == fault.name);
        let said = call.and_then(|call| call.said.as_deref()).and_then(own_words);
        let failure = match said {
            Some(RawFailure::Result(result)) => tool_failed(fault, result.get("content").cloned()),
            Some(RawFailure::Error(error)) => protocol(fault, &error),
            Some(RawFailure::Reply(reply)) => replied(fault, &reply),
            Some(RawFailure::Lacks(_)) | None if input[OPEN] == true => of_open(fault),
            Some(RawFailure::Lacks(_)) | None => by_name(fault),
        };
        let is_lost = [TIMEOUT, CONNECTION].contains(&failure.code.as_str());
        let is_unknown = call.is_some_and(|call| call.how == CallProgress::Unknown);
        failure.detail("outcome", (is_lost && is_unknown).then(|| json!("unknown")))
    }
}

/// The server's own words, if they are inline in the journal.
fn own_words(said: &Datum) -> Option<RawFailure> {
    match &said.held {
        DatumValue::Value(value) => serde_json::from_value(Value::clone(value)).ok(),
        DatumValue::Blob(_) | DatumValue::Object(_) | DatumValue::Array(_) => None,
    }
}

/// Nothing was called, for a reason that was known at the start.
fn refusal(refused: &Value) -> ProxyFailure {
    let text = |key: &str| refused[key].as_str().unwrap_or_default();
    let failure = ProxyFailure::new(PROXY, text("code"), text("message"));
    let details = refused["details"].as_object().cloned().unwrap_or_default();
    ProxyFailure { details, ..failure }
}

fn tool_failed(fault: &Fault, content: Option<Value>) -> ProxyFailure {
    ProxyFailure::new(TOOL, "TOOL_EXECUTION_FAILED", fault.message.clone())
        .detail("mcp_tool_error_content", content)
}

/// An error object of JSON-RPC.
fn protocol(fault: &Fault, error: &Value) -> ProxyFailure {
    let code = error["code"].as_i64().map(|code| code.to_string());
    let code = code.unwrap_or_else(|| "MCP_UNKNOWN_PROTOCOL_ERROR".to_owned());
    let message = error["message"].as_str().unwrap_or(&fault.message);
    ProxyFailure::new(PROTOCOL, code, message)
        .detail("mcp_protocol_error_data", error.get("data").cloned())
}

/// An answer of plain JSON-RPC: an address that is not there is judged before its body.
fn replied(fault: &Fault, reply: &Value) -> ProxyFailure {
    let status = || reply.get("httpStatus").cloned();
    let body = || reply.get("body").cloned();
    if reply["httpStatus"] == 404 {
        let code = METHOD_NOT_FOUND.to_string();
        return ProxyFailure::new(PROTOCOL, code, fault.message.clone())
            .detail("http_status", status())
            .detail("response_body", body());
    }
    if let Some(error) = reply.get("error") {
        return protocol(fault, error);
    }
    match reply.get("resultType") {
        Some(kind) => ProxyFailure::new(PROXY, "MCP_INVALID_RESULT", fault.message.clone())
            .detail("http_status", status())
            .detail("mcp_result_type", Some(kind.clone())),
        None => ProxyFailure::new(PROXY, "MCP_INVALID_RESPONSE", fault.message.clone())
            .detail("http_status", status())
            .detail("response_body", body()),
    }
}

/// The same at a server that lists nothing.
fn of_open(fault: &Fault) -> ProxyFailure {
    match fault.name.as_str() {
        "ToolNotFoundError" => {
            ProxyFailure::new(PROXY, "DENIED", "the caller may not call this tool")
        }
        _ => by_name(fault),
    }
}

/// Where the other side said nothing, or nothing that the journal holds itself.
fn by_name(fault: &Fault) -> ProxyFailure {
    let message = fault.message.clone();
    let proxy = |code: &str| ProxyFailure::new(PROXY, code, message.clone());
    match fault.name.as_str() {
        "Timeout" | "UpstreamTimeout" => proxy(TIMEOUT),
        "ConnectFailed"
        | "AnswerLost"
        | "AddressNotAllowed"
        | "CircuitOpen"
        | "UpstreamUnreachable"
        | "UpstreamClosed" => proxy(CONNECTION),
        "InvalidResponse"
        | "HttpStatus"
        | "Unauthorized"
        | "OutputTooLarge"
        | "OutputValidationError"
        | "UpstreamError"
        | "UpstreamRefused"
        | "UpstreamUnauthorized"
        | "UpstreamForbidden" => proxy("MCP_INVALID_RESPONSE"),
        "InvalidResult" => proxy("MCP_INVALID_RESULT"),
        "ToolFailed" => tool_failed(fault, None),
        "MethodNotFound" => ProxyFailure::new(PROTOCOL, METHOD_NOT_FOUND.to_string(), message),
        "InvalidParams" => ProxyFailure::new(PROTOCOL, INVALID_PARAMS.to_string(), message),
        "RpcError" => protocol(fault, &Value::Null),
        "ToolNotFoundError" => proxy("NO_ROUTE"),
        "InputValidationError" => {
            let errors = json!([{"pointer": "/arguments", "detail": message}]);
            proxy("INVALID_INPUT").detail("errors", Some(errors))
        }
        "PolicyDenied"
        | "Rejected"
        | "Declined"
        | "ApprovalNeeded"
        | "ApprovalVoid"
        | "RateLimited"
        | "TooManyCalls"
        | Fault::NOT_PERMITTED => proxy("DENIED"),
        _ => proxy("PROXY_INTERNAL_ERROR"),
    }
}

#[cfg(test)]
mod tests;
