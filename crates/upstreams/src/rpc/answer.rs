//! Classifies a JSON-RPC response: a result, a server error, or garbage. Each failure has an error
//! name and says how far the call got.

use super::server::Reply;
use kernel::tool::call::{ToolError, ToolOutput};
use outbound::answer::{Effect, is_passing};
use outbound::redaction::Redactor;
use serde_json::{Value, json};
use std::fmt;
use wire::jsonrpc::{INVALID_PARAMS, METHOD_NOT_FOUND};

/// In `_meta` of an output: the server's result was what is now `structuredContent`, alone.
const PLAIN: &str = "waypost.dev/plain";

/// How much of what the other side said is quoted.
const TOLD_CHARS_MAX: usize = 500;

#[derive(Debug, PartialEq)]
pub(super) enum RpcOutcome {
    Result(Value),
    /// That it did not do it.
    Error {
        /// JSON-RPC's number.
        code: i64,
        message: String,
        /// More, if there is more.
        data: String,
    },
}

#[derive(Debug, PartialEq)]
pub(super) enum InvalidAnswer {
    /// A status of failure, and what stood below it.
    Status(u16, String),
    /// The reason, and the beginning of the text.
    Invalid(&'static str, String),
}

impl fmt::Display for InvalidAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidAnswer::Status(status, told) if told.is_empty() => write!(f, "HTTP {status}"),
            InvalidAnswer::Status(status, told) => write!(f, "HTTP {status}: {told}"),
            InvalidAnswer::Invalid(why, told) => write!(f, "{why}: `{told}`"),
        }
    }
}

/// Reads an answer to the request of this id; no part of it has a credential of ours, and the words
/// of its errors have nothing that is hidden. A JSON-RPC error counts whatever the status is; an
/// address that is not there is a method that is not there.
pub(super) fn read(
    reply: &Reply,
    id: &str,
    hidden: &Redactor,
) -> Result<RpcOutcome, InvalidAnswer> {
    let told = || short(hidden.told(&String::from_utf8_lossy(&reply.body)).trim());
    let text = std::str::from_utf8(&reply.body).unwrap_or_default();
    let body = hidden.json(text);
    // A gateway has words of its own for an answer that did not come, also in JSON.
    let is_gateways = matches!(reply.status, 502 | 504) && body.get("jsonrpc").is_none();
    if let Some(error) = body.get("error").filter(|error| error.is_object() && !is_gateways) {
        return Ok(refused(error, hidden));
    }
    if reply.status == 404 {
        let message = "HTTP 404: nothing answers at this address".to_owned();
        return Ok(RpcOutcome::Error { code: METHOD_NOT_FOUND, message, data: String::new() });
    }
    if !(200..300).contains(&reply.status) {
        return Err(InvalidAnswer::Status(reply.status, told()));
    }
    let Value::Object(mut body) = body else {
        return Err(InvalidAnswer::Invalid("the answer is no JSON object", told()));
    };
    let answers_us = body.get("id").and_then(Value::as_str) == Some(id);
    match body.remove("result") {
        None => Err(InvalidAnswer::Invalid("the answer has neither result nor error", told())),
        Some(_) if !answers_us => {
            Err(InvalidAnswer::Invalid("the answer belongs to another request", told()))
        }
        Some(result) => Ok(RpcOutcome::Result(result)),
    }
}

fn refused(error: &Value, hidden: &Redactor) -> RpcOutcome {
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    let message = error.get("message").and_then(Value::as_str).unwrap_or("no reason is given");
    let data = error.get("data").filter(|data| !data.is_null());
    let data = data.map(|data| hidden.told(&data.to_string())).unwrap_or_default();
    RpcOutcome::Error { code, message: hidden.told(message), data }
}

/// How a server answered, for a proxy that passes failures on: nothing that is hidden is in it.
pub(super) fn replied(reply: &Reply, hidden: &Redactor) -> Value {
    let text = String::from_utf8_lossy(&reply.body);
    let body = hidden.json(&text);
    let told = short(hidden.told(&text).trim());
    let mut replied = json!({"httpStatus": reply.status, "body": told});
    let kind = body.get("result").and_then(plain_kind);
    if let Some(error) = body.get("error").filter(|error| error.is_object()) {
        replied["error"] = error.clone();
    } else if let Some(kind) = kind {
        replied["resultType"] = Value::from(kind);
    }
    replied
}

fn plain_kind(value: &Value) -> Option<&'static str> {
    match value {
        Value::Object(_) => None,
        Value::Array(_) => Some("array"),
        Value::String(_) => Some("string"),
        Value::Number(_) => Some("number"),
        Value::Bool(_) => Some("boolean"),
        Value::Null => Some("null"),
    }
}

/// Which call an outcome is about.
pub(super) struct CallSubject<'a> {
    /// The server.
    pub(super) server: &'a str,
    /// The tool, as the server names it.
    pub(super) tool: &'a str,
    pub(super) effect: Effect,
    /// Redacts the server's texts.
    pub(super) hidden: &'a Redactor,
}

impl CallSubject<'_> {
    /// The output of a call, or why there is none.
    pub(super) fn outcome(
        &self,
        said: Result<RpcOutcome, InvalidAnswer>,
    ) -> Result<ToolOutput, ToolError> {
        match said {
            Ok(RpcOutcome::Result(result)) => self.output(result),
            Ok(RpcOutcome::Error { code, message, data }) => Err(self.error(code, &message, &data)),
            Err(InvalidAnswer::Status(status, told)) => Err(self.status(status, &told)),
            Err(unread) => {
                let message = format!("`{}`: {unread}", self.server);
                Err(self.effect.lost("InvalidResponse", message))
            }
        }
    }

    /// The error of a call that took longer than this server's calls may take.
    pub(super) fn late(&self, timeout_ms: u64) -> ToolError {
        let Self { server, tool, .. } = self;
        let message = format!("`{server}` did not answer `{tool}` within {timeout_ms} ms");
        self.effect.lost("Timeout", message).passing()
    }

    /// Blocks of content as they came; any other object as JSON.
    fn output(&self, result: Value) -> Result<ToolOutput, ToolError> {
        if !result.is_object() {
            let told = short(&self.hidden.told(&result.to_string()));
            let message = format!("`{}`: the result is no object: `{told}`", self.server);
            return Err(self.effect.lost("InvalidResult", message));
        }
        if result.get("isError").and_then(Value::as_bool) == Some(true) {
            let message = match words(&result) {
                words if words.is_empty() => format!("`{}` failed without a reason", self.tool),
                words => words,
            };
            return Err(ToolError::failed("ToolFailed", message).content(result));
        }
        if result.get("content").is_some_and(Value::is_array) {
            return Ok(ToolOutput::Value(result));
        }
        let text = result.to_string();
        let content = json!([{"type": "text", "text": text}]);
        let meta = json!({PLAIN: true});
        Ok(ToolOutput::Value(
            json!({"content": content, "structuredContent": result, "_meta": meta}),
        ))
    }

    fn error(&self, code: i64, message: &str, data: &str) -> ToolError {
        let Self { server, tool, .. } = self;
        let message = short(message);
        let more = match data {
            "" => String::new(),
            data => format!(" ({})", short(data)),
        };
        let told = format!("`{server}` refused `{tool}` with {code}: {message}{more}");
        match code {
            METHOD_NOT_FOUND => ToolError::failed("MethodNotFound", told)
                .hint("the server has no such tool (any more); look at its `tools` and its `url`"),
            INVALID_PARAMS => ToolError::failed("InvalidParams", told),
            _ => ToolError::failed("RpcError", told),
        }
    }

    /// A gateway that got no answer knows as little as we do; any other refusal is a plain failure.
    fn status(&self, status: u16, told: &str) -> ToolError {
        let unread = InvalidAnswer::Status(status, told.to_owned());
        let message = format!("`{}` answered {unread}", self.server);
        let error = match status {
            401 | 403 => ToolError::failed("Unauthorized", message)
                .hint("check the `headers` of this server in the settings"),
            502 | 504 => self.effect.lost("HttpStatus", message),
            _ => ToolError::failed("HttpStatus", message),
        };
        if is_passing(status) { error.passing() } else { error }
    }
}

/// The texts of a result, one below the other.
fn words(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array);
    let texts = blocks.into_iter().flatten().filter_map(|block| block.get("text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// The beginning of what the other side said.
pub(super) fn short(text: &str) -> String {
    text.chars().take(TOLD_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::tool::call::{CallProgress, RawFailure};

    fn outcome(effect: Effect, status: u16, body: &str) -> Result<ToolOutput, ToolError> {
        let hidden = Redactor::default().credentials(["s3cret"]);
        let said = read(&Reply { status, body: body.as_bytes().to_vec() }, "call_1", &hidden);
        CallSubject { server: "files", tool: "filesystem.readFile", effect, hidden: &hidden }
            .outcome(said)
    }

    fn result(result: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": "call_1", "result": result}).to_string()
    }

    #[test]
    fn content_blocks_are_kept_and_other_results_become_blocks() {
        let content = json!({"content": [{"type": "text", "text": "file data"}], "more": 1});
        let output = outcome(Effect::Reads, 200, &result(&content));
        assert_eq!(output, Ok(ToolOutput::Value(content)));
        let plain = json!({"stdout": "", "code": 0});
        let expected = json!({
            "content": [{"type": "text", "text": plain.to_string()}],
            "structuredContent": plain,
            "_meta": {"waypost.dev/plain": true},
        });
        let output = outcome(Effect::Reads, 200, &result(&plain));
        assert_eq!(output, Ok(ToolOutput::Value(expected)));
    }

    #[test]
    fn is_error_results_are_tool_failures() {
        let failed =
            json!({"isError": true, "content": [{"type": "text", "text": "no such file"}]});
        let error = outcome(Effect::Writes, 200, &result(&failed)).unwrap_err();
        assert_eq!((error.how, error.fault.name.as_str()), (CallProgress::Failed, "ToolFailed"));
        assert_eq!(error.fault.message, "no such file");
        assert_eq!(error.said.as_deref(), Some(&RawFailure::Result(failed)));
    }

    #[test]
    fn every_json_rpc_failure_has_its_own_error_name() {
        let error = |code: i64| json!({"error": {"code": code, "message": "no"}}).to_string();
        let other = json!({"jsonrpc": "2.0", "id": "call_2", "result": {}}).to_string();
        let gateways = json!({"error": {"code": 502, "message": "no answer"}}).to_string();
        let servers = json!({"jsonrpc": "2.0", "error": {"code": 1, "message": "no"}}).to_string();
        let table: [(u16, String, &str, CallProgress); 15] = [
            (200, error(-32601), "MethodNotFound", CallProgress::Failed),
            (404, error(-32601), "MethodNotFound", CallProgress::Failed),
            (404, "Not Found".to_owned(), "MethodNotFound", CallProgress::Failed),
            (400, error(-32602), "InvalidParams", CallProgress::Failed),
            (500, error(-32000), "RpcError", CallProgress::Failed),
            (401, String::new(), "Unauthorized", CallProgress::Failed),
            (500, "oops".to_owned(), "HttpStatus", CallProgress::Failed),
            (504, "no answer".to_owned(), "HttpStatus", CallProgress::Unknown),
            (502, gateways, "HttpStatus", CallProgress::Unknown),
            (502, servers, "RpcError", CallProgress::Failed),
            (200, "<html>".to_owned(), "InvalidResponse", CallProgress::Unknown),
            (200, "[]".to_owned(), "InvalidResponse", CallProgress::Unknown),
            (200, "{\"id\":\"call_1\"}".to_owned(), "InvalidResponse", CallProgress::Unknown),
            (200, other, "InvalidResponse", CallProgress::Unknown),
            (200, result(&json!("text")), "InvalidResult", CallProgress::Unknown),
        ];
        for (status, body, name, how) in table {
            let error = outcome(Effect::Writes, status, &body).unwrap_err();
            assert_eq!((error.fault.name.as_str(), error.how), (name, how), "{status} {body}");
            let error = outcome(Effect::Reads, status, &body).unwrap_err();
            assert_eq!(error.how, CallProgress::Failed, "{status} {body}");
        }
    }

    #[test]
    fn raw_replies_are_kept_for_a_proxy() {
        let hidden = Redactor::default().credentials(["s3cret"]);
        let of = |status: u16, body: &str| {
            replied(&Reply { status, body: body.as_bytes().to_vec() }, &hidden)
        };
        let error = json!({"error": {"code": 7, "message": "bad key s3cret"}});
        let told = of(500, &error.to_string());
        assert_eq!((&told["httpStatus"], &told["error"]["code"]), (&json!(500), &json!(7)));
        assert!(!told.to_string().contains("s3cret"), "{told}");
        let odd = of(200, "{\"result\": [1]}");
        assert_eq!(
            (&odd["resultType"], &odd["body"]),
            (&json!("array"), &json!("{\"result\": [1]}"))
        );
        let html = of(200, "<html>");
        assert_eq!(html, json!({"httpStatus": 200, "body": "<html>"}));
        assert_eq!(of(200, &"x".repeat(900))["body"].as_str().unwrap().len(), TOLD_CHARS_MAX);
    }

    #[test]
    fn only_server_errors_are_transient() {
        for (status, passing) in [
            (400, false),
            (401, false),
            (404, false),
            (408, true),
            (429, true),
            (500, true),
            (501, false),
            (502, true),
            (503, true),
            (529, true),
        ] {
            let error = outcome(Effect::Writes, status, "no").unwrap_err();
            assert_eq!(error.fault.passing, passing, "{status}");
        }
        // What a server says in an answer of its own it means, whatever the status is.
        let said = json!({"error": {"code": -32000, "message": "no"}}).to_string();
        assert!(!outcome(Effect::Writes, 500, &said).unwrap_err().fault.passing);
    }

    #[test]
    fn credentials_are_in_no_error() {
        let error = json!({"error": {"code": -32001, "message": "bad key s3cret",
            "data": {"key": "s3cret"}}});
        // Cut after the secret is hidden, so that no half of it is left.
        let long = format!("{}s3cret", "x".repeat(TOLD_CHARS_MAX - 3));
        for (status, body) in [
            (200, error.to_string()),
            (200, result(&json!("s3cret"))),
            (401, "s3cret".to_owned()),
            (500, long),
        ] {
            let error = outcome(Effect::Reads, status, &body).unwrap_err();
            let message = error.fault.message;
            assert!(message.contains("***") && !message.contains("s3c"), "{message}");
        }
    }

    #[test]
    fn credentials_are_redacted_from_every_result() {
        let echo = json!({"content": [{"type": "text", "text": "you are s3cret"}],
            "structuredContent": {"s3cret": ["s3cret"]}});
        let masked = json!({"content": [{"type": "text", "text": "you are ***"}],
            "structuredContent": {"***": ["***"]}});
        let escaped = result(&echo).replace("s3cret", r"s\u0033cret");
        for body in [result(&echo), escaped] {
            let output = outcome(Effect::Reads, 200, &body);
            assert_eq!(output, Ok(ToolOutput::Value(masked.clone())), "{body}");
        }
        let failed = json!({"isError": true, "content": [{"type": "text", "text": "no s3cret"}]});
        let error = outcome(Effect::Writes, 200, &result(&failed)).unwrap_err();
        assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
        assert_eq!(error.fault.message, "no ***");
    }

    #[test]
    fn server_texts_are_truncated_in_errors() {
        let body = "x".repeat(10_000);
        let error = outcome(Effect::Reads, 200, &body).unwrap_err();
        assert!(error.fault.message.len() < 600, "{}", error.fault.message);
        let long = json!({"error": {"code": -1, "message": body, "data": {"why": "disk"}}});
        let error = outcome(Effect::Reads, 200, &long.to_string()).unwrap_err();
        assert!(error.fault.message.len() < 1_200 && error.fault.message.contains("disk"));
    }
}
