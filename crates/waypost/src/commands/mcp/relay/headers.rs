//! What a message of the stateless version repeats in its headers. How that is written is the
//! client's of crate `upstreams`; kept here is which arguments the server wants repeated.

use super::message::{Kind, Message};
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::collections::BTreeMap;
use upstreams::mcp_headers::{MirroredArguments, stateless, stateless_request};

/// Which arguments of which tools are repeated, as far as the server listed its tools.
#[derive(Debug, Default)]
pub(super) struct ListedTools(BTreeMap<String, MirroredArguments>);

impl ListedTools {
    /// Learns from an answer to `tools/list`.
    pub(super) fn learn(&mut self, answer: &str) {
        let answer: Value = serde_json::from_str(answer).unwrap_or_default();
        for tool in answer["result"]["tools"].as_array().into_iter().flatten() {
            if let Some(name) = tool["name"].as_str() {
                let mirrored = MirroredArguments::found(&tool["inputSchema"]);
                self.0.insert(name.to_owned(), mirrored);
            }
        }
    }

    /// The headers of a message that says this version.
    pub(super) fn headers(&self, message: &Message, version: &str) -> HeaderMap {
        let (Kind::Request { method, .. } | Kind::Notification { method }) = &message.kind else {
            return stateless(version, None);
        };
        let subject = message.subject();
        let called = subject.filter(|_| method == "tools/call").and_then(|name| self.0.get(name));
        let mirrored = called.map(|tool| tool.headers(message.arguments())).unwrap_or_default();
        stateless_request(version, method, subject, &mirrored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wire::mcp::{HEADER_METHOD, HEADER_NAME, HEADER_VERSION};

    fn headers(repeated: &ListedTools, message: &Value) -> Vec<(String, String)> {
        let message = Message::read(message.to_string()).unwrap();
        let made = repeated.headers(&message, "2026-07-28");
        let mut all: Vec<(String, String)> = made
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        all.sort();
        all
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn headers_repeat_what_the_message_says() {
        let none = ListedTools::default();
        let list = json!({"id": 1, "method": "tools/list", "params": {"name": "no subject here"}});
        let version = (HEADER_VERSION, "2026-07-28");
        assert_eq!(headers(&none, &list), pairs(&[(HEADER_METHOD, "tools/list"), version]));
        let read = json!({"id": 1, "method": "resources/read", "params": {"uri": "a://ü"}});
        let expected =
            [(HEADER_METHOD, "resources/read"), (HEADER_NAME, "=?base64?YTovL8O8?="), version];
        assert_eq!(headers(&none, &read), pairs(&expected));
    }

    #[test]
    fn annotated_arguments_are_repeated_once_they_are_known() {
        let mut repeated = ListedTools::default();
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "size": {"type": "integer", "x-mcp-header": "Size"},
            "sure": {"type": "boolean", "x-mcp-header": "Sure"},
            "wrong": {"type": "string", "x-mcp-header": "no header"},
            "free": {"type": "string"}}});
        let tools = json!([{"name": "deploy", "inputSchema": schema}]);
        repeated.learn(&json!({"id": 1, "result": {"tools": tools}}).to_string());
        let call = json!({"id": 2, "method": "tools/call", "params": {"name": "deploy",
            "arguments": {"region": "eu", "size": 42, "sure": null, "wrong": "x", "free": "x"}}});
        let expected = [
            (HEADER_METHOD, "tools/call"),
            (HEADER_NAME, "deploy"),
            ("mcp-param-region", "eu"),
            ("mcp-param-size", "42"),
            (HEADER_VERSION, "2026-07-28"),
        ];
        assert_eq!(headers(&repeated, &call), pairs(&expected));
        let plain = json!([{"name": "deploy", "inputSchema": {"type": "object"}}]);
        repeated.learn(&json!({"id": 3, "result": {"tools": plain}}).to_string());
        assert_eq!(headers(&repeated, &call).len(), 3, "the tool was changed");
    }
}
