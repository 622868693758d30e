//! Names of methods at an open server. Nobody lists them, so policy has only the name to go by: one
//! method has one name for it, and what is no tool is not sent.

use super::super::config::UpstreamConfig;

/// Methods of the protocols themselves.
const PROTOCOL: [&str; 3] = ["initialize", "initialized", "ping"];

/// The beginnings of others: what they do is not in their names, as the tool of `tools/call`.
const FAMILIES: [&str; 13] = [
    "rpc.", "tools/", "notifications/", "resources/", "prompts/", "completion/", "logging/",
    "sampling/", "roots/", "elicitation/", "tasks/", "server/", "subscriptions/",
];

/// A method without the server's own name before it, once; nothing where it has none there.
pub(super) fn bare<'m>(config: &UpstreamConfig, method: &'m str) -> Option<&'m str> {
    let named = method.strip_prefix(config.name.as_str());
    let named = named.and_then(|rest| rest.strip_prefix('.'));
    let prefixed = method.strip_prefix(config.prefix.as_str());
    let prefixed = prefixed.filter(|_| !config.prefix.is_empty());
    named.or(prefixed).filter(|rest| !rest.is_empty())
}

/// Why no such method of an open server is sent, if so.
pub fn refused(config: &UpstreamConfig, method: &str) -> Option<&'static str> {
    if method.chars().any(|char| char.is_whitespace() || char.is_control()) {
        return Some("it has a blank or a control character");
    }
    let is_protocol = |method: &str| {
        let method = method.to_ascii_lowercase();
        PROTOCOL.contains(&method.as_str())
            || FAMILIES.iter().any(|family| method.starts_with(family))
    };
    let is_one = is_protocol(method) || bare(config, method).is_some_and(is_protocol);
    is_one.then_some("it is a method of the protocol")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EraSetting, UpstreamKind};

    fn config(name: &str, prefix: &str) -> UpstreamConfig {
        UpstreamConfig {
            name: name.to_owned(),
            prefix: prefix.to_owned(),
            kind: UpstreamKind::Rpc {
                url: "http://127.0.0.1:1/rpc".to_owned(),
                headers: Vec::new(),
                tools: Vec::new(),
                open: true,
            },
            trusted: false,
            journal: true,
            timeout_ms: None,
            era: EraSetting::Auto,
            roots: Vec::new(),
            origin: "waypost.toml:3".to_owned(),
        }
    }

    #[test]
    fn the_upstream_prefix_is_stripped_once() {
        let fs = config("fs", "fs.");
        for (method, rest) in [
            ("fs.write", Some("write")),
            ("fs.fs.write", Some("fs.write")),
            ("write", None),
            ("fs.", None),
            ("fsx.write", None),
        ] {
            assert_eq!(bare(&fs, method), rest, "{method}");
        }
        let other = config("fs", "files::");
        assert_eq!(bare(&other, "fs.write"), Some("write"));
        assert_eq!(bare(&other, "files::write"), Some("write"));
    }

    #[test]
    fn protocol_methods_and_names_with_blanks_are_not_tools() {
        let fs = config("fs", "fs.");
        for method in [
            "initialize",
            "Initialize",
            "fs.initialize",
            "tools/call",
            "tools/list",
            "notifications/initialized",
            "resources/read",
            "prompts/get",
            "rpc.discover",
            "ping",
            " write",
            "write ",
            "wri\u{a0}te",
            "write\0",
            "write\n",
        ] {
            assert!(refused(&fs, method).is_some(), "{method:?}");
        }
        for method in ["write", "fs.write", "toolset", "initializer", "rpcs", "a/b"] {
            assert_eq!(refused(&fs, method), None, "{method}");
        }
    }
}
