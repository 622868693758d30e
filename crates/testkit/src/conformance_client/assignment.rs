//! What the suite asks the client to do: the scenario, the URL of its server, and its data.

use serde_json::Value;
use std::env;

const SCENARIO: &str = "MCP_CONFORMANCE_SCENARIO";
const CONTEXT: &str = "MCP_CONFORMANCE_CONTEXT";
const VERSION: &str = "MCP_CONFORMANCE_PROTOCOL_VERSION";

/// One scenario to play.
pub(super) struct Assignment {
    pub(super) scenario: String,
    /// Where the suite's server is.
    pub(super) url: String,
    /// What it hands out: credentials, calls to make. Null where it hands out nothing.
    pub(super) context: Value,
    /// The version that it speaks, if it says so. The client does not get it: it has to find out.
    pub(super) version: Option<String>,
}

impl Assignment {
    /// What the environment says of the server at this URL.
    pub(super) fn read(url: String) -> Result<Self, String> {
        let scenario = env::var(SCENARIO).map_err(|_| {
            format!("`{SCENARIO}` is not set; `cargo xtask client-conformance` starts this")
        })?;
        let context = match env::var(CONTEXT) {
            Ok(text) => serde_json::from_str(&text)
                .map_err(|error| format!("`{CONTEXT}` is not JSON: {error}"))?,
            Err(_) => Value::Null,
        };
        Ok(Self { scenario, url, context, version: env::var(VERSION).ok() })
    }

    /// A text of the context.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.context.get(key).and_then(Value::as_str)
    }
}
