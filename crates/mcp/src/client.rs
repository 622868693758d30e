//! The client that sends a request to our MCP server: the version of the protocol that it speaks,
//! and its capabilities, as it named them in the handshake or in this request. Waypost's own MCP
//! client is in crate `upstreams`.

use kernel::tool::call::LogLevel;
use serde_json::Value;
use wire::mcp::TASKS;

/// Versions of MCP, each with what it brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    /// 2025-03-26: no structured output, no elicitation.
    March2025,
    /// 2025-06-18: structured output, forms.
    June2025,
    /// 2025-11-25: pages to open, schemas of any dialect.
    November2025,
    /// 2026-07-28: stateless.
    July2026,
}

impl Version {
    /// All, newest first.
    pub(crate) const ALL: [Version; 4] =
        [Version::July2026, Version::November2025, Version::June2025, Version::March2025];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Version::March2025 => "2025-03-26",
            Version::June2025 => "2025-06-18",
            Version::November2025 => "2025-11-25",
            Version::July2026 => wire::mcp::MODERN,
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// Whether every request stands for itself.
    pub(crate) fn is_modern(self) -> bool {
        self == Version::July2026
    }
}

/// What a client can do for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ClientCapabilities {
    /// Show a form.
    pub(crate) form: bool,
    /// Open a page.
    pub(crate) page: bool,
    /// Ask its model.
    pub(crate) sample: bool,
    /// List the folders it works in.
    pub(crate) roots: bool,
    /// Take a task for an answer.
    pub(crate) tasks: bool,
}

impl ClientCapabilities {
    /// What these `ClientCapabilities` say.
    pub(crate) fn read(capabilities: &Value) -> Self {
        let has = |value: &Value, key: &str| value.get(key).is_some_and(Value::is_object);
        let elicitation = &capabilities["elicitation"];
        let page = has(elicitation, "url");
        Self {
            // An empty object means forms, as before there were pages.
            form: has(elicitation, "form") || (elicitation.is_object() && !page),
            page,
            sample: has(capabilities, "sampling"),
            roots: has(capabilities, "roots"),
            tasks: has(&capabilities["extensions"], TASKS),
        }
    }
}

/// The client of one request.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// The version that it speaks.
    pub(crate) version: Version,
    pub(crate) can: ClientCapabilities,
    /// From which level on it wants to hear the log.
    pub(crate) log: Option<LogLevel>,
    /// Under which token it wants to hear of progress: a string or a number, as JSON.
    pub(crate) progress: Option<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn capabilities_are_read_in_all_their_shapes() {
        assert_eq!(ClientCapabilities::read(&json!({})), ClientCapabilities::default());
        let form = ClientCapabilities { form: true, ..ClientCapabilities::default() };
        assert_eq!(ClientCapabilities::read(&json!({"elicitation": {}})), form);
        assert_eq!(ClientCapabilities::read(&json!({"elicitation": {"form": {}}})), form);
        let page = ClientCapabilities { page: true, ..ClientCapabilities::default() };
        assert_eq!(ClientCapabilities::read(&json!({"elicitation": {"url": {}}})), page);
        let all = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}}});
        let can =
            ClientCapabilities { form: true, page: true, sample: true, roots: true, tasks: true };
        assert_eq!(ClientCapabilities::read(&all), can);
        assert_eq!(
            ClientCapabilities::read(&json!({"elicitation": true, "sampling": null})),
            ClientCapabilities::default()
        );
    }

    #[test]
    fn versions_have_names() {
        for version in Version::ALL {
            assert_eq!(Version::named(version.name()), Some(version));
        }
        assert!(Version::July2026.is_modern() && !Version::November2025.is_modern());
    }
}
