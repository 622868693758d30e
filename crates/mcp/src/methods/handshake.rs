//! Who the client and the server are and which version they speak: `initialize` of the older
//! versions, discovery in the stateless one, and `ping` and the level of logs beside them.

use crate::answer::{AnswerResult, Outcome, server_info};
use crate::client::{Client, ClientCapabilities, Version};
use crate::exchange::Exchange;
use crate::sessions::Session;
use edge::request::params::short;
use kernel::tool::call::LogLevel;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use wire::jsonrpc::RpcError;
use wire::mcp::{MODERN, TASKS};

/// How long a client may keep what we say of ourselves; it changes only with a new release.
const DISCOVER_TTL_MS: u64 = 300_000;

/// What a model should know before it uses us.
const INSTRUCTIONS: &str = "\
Waypost runs tools and plans durably. A plan is listed and called like a tool; its prompt of the \
same name asks for its inputs. A call that changes something, or that takes long, becomes a run: \
it resumes after a crash, is never repeated by accident, and may wait for a person's decision. \
When a result names a run that waits, do not call again: the person answers in the inbox, or \
through the question that this client shows. Arguments that do not fit return an error \
result that says what to correct. Sessions, plans and blobs can be read as resources \
(`waypost://..`).";

/// The versions that can stand in a stateless request.
pub(crate) const SUPPORTED: [&str; 1] = [MODERN];

/// `initialize`: the client, in the version that both of us speak.
pub(crate) fn initialized_client(
    params: Option<&RawValue>,
    lenient: bool,
) -> Result<Client, RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialize {
        protocol_version: String,
        capabilities: Option<Value>,
    }
    let text = params.map_or("{}", RawValue::get);
    let hello: Initialize = serde_json::from_str(text).map_err(|error| {
        RpcError::invalid_params(format!("the parameters of `initialize` do not fit: {error}"))
    })?;
    let capabilities = match hello.capabilities {
        Some(capabilities) if capabilities.is_object() => capabilities,
        None if lenient => json!({}),
        _ => return Err(RpcError::invalid_params("`capabilities` must be an object")),
    };
    let can = ClientCapabilities { tasks: false, ..ClientCapabilities::read(&capabilities) };
    let version = agreed(&hello.protocol_version);
    Ok(Client { version, can, log: None, progress: None })
}

/// The version that was asked for if it has a handshake and we speak it, else our newest with one.
fn agreed(name: &str) -> Version {
    Version::named(name).filter(|version| !version.is_modern()).unwrap_or(Version::November2025)
}

/// What `initialize` answers.
pub(crate) fn greeting(version: Version) -> Outcome {
    Outcome::complete(&json!({
        "protocolVersion": version.name(),
        "capabilities": capabilities(version),
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    }))
}

/// `server/discover`.
pub(crate) async fn discover(exchange: Exchange) -> AnswerResult {
    Ok(Outcome::complete(&json!({
        "supportedVersions": SUPPORTED,
        "capabilities": capabilities(exchange.client.version),
        "instructions": INSTRUCTIONS,
        "ttlMs": DISCOVER_TTL_MS,
        "cacheScope": "public",
    })))
}

pub(crate) async fn ping(_exchange: Exchange) -> AnswerResult {
    Ok(Outcome::empty())
}

/// `logging/setLevel`.
pub(crate) fn set_level(exchange: &Exchange, session: &Session) -> AnswerResult {
    #[derive(Deserialize)]
    struct SetLevel {
        level: LogLevel,
    }
    let SetLevel { level } = exchange.params()?;
    session.set_log(level);
    Ok(Outcome::empty())
}

/// The version of a stateless request, if it is one of ours.
pub(crate) fn supported(name: &str) -> Result<Version, RpcError> {
    match Version::named(name) {
        Some(version) if version.is_modern() => Ok(version),
        _ => Err(unsupported(name)),
    }
}

/// The version is none of ours.
pub(crate) fn unsupported(name: &str) -> RpcError {
    let name = short(name);
    let message = format!(
        "version `{name}` is not supported; use `{MODERN}`, or begin with `initialize` for an \
         older one"
    );
    RpcError::new(wire::mcp::UNSUPPORTED_VERSION, message)
        .data(json!({"supported": SUPPORTED, "requested": name}))
}

fn capabilities(version: Version) -> Value {
    let mut capabilities = json!({
        "tools": {"listChanged": true},
        "prompts": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "completions": {},
        "logging": {},
    });
    if version.is_modern() {
        capabilities["extensions"] = json!({TASKS: {}});
    }
    capabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    fn initialized_with(params: &Value, lenient: bool) -> Result<Client, RpcError> {
        initialized_client(Some(&serde_json::value::to_raw_value(params).unwrap()), lenient)
    }

    #[test]
    fn the_version_is_one_with_a_handshake() {
        for (asked, agreed) in [
            ("2025-03-26", Version::March2025),
            ("2025-06-18", Version::June2025),
            ("2025-11-25", Version::November2025),
            ("2024-11-05", Version::November2025),
            ("2026-07-28", Version::November2025),
            ("", Version::November2025),
        ] {
            let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {}});
            assert_eq!(initialized_with(&params, false).unwrap().version, agreed, "{asked}");
        }
    }

    #[test]
    fn missing_members_are_refused_unless_lenient() {
        let bare = json!({"protocolVersion": "2025-06-18"});
        assert_eq!(initialized_with(&bare, false).unwrap_err().code, -32602);
        assert_eq!(initialized_with(&bare, true).unwrap().can, ClientCapabilities::default());
        for params in [json!({}), json!({"protocolVersion": 7}), json!([])] {
            assert_eq!(initialized_with(&params, true).unwrap_err().code, -32602, "{params}");
        }
        assert_eq!(initialized_client(None, true).unwrap_err().code, -32602);
    }

    #[test]
    fn tasks_are_for_the_stateless_version() {
        let params = json!({"protocolVersion": "2025-11-25",
            "capabilities": {"roots": {}, "extensions": {TASKS: {}}}});
        let can = initialized_with(&params, false).unwrap().can;
        assert_eq!(can, ClientCapabilities { roots: true, ..ClientCapabilities::default() });
        assert!(capabilities(Version::July2026)["extensions"][TASKS].is_object());
        assert!(capabilities(Version::June2025).get("extensions").is_none());
    }

    #[test]
    fn an_unknown_version_is_answered_with_the_supported_ones() {
        assert_eq!(supported("2026-07-28"), Ok(Version::July2026));
        for name in ["2025-11-25", "v999.0.0"] {
            let error = supported(name).unwrap_err();
            assert_eq!(error.code, -32022);
            let data = json!({"supported": ["2026-07-28"], "requested": name});
            assert_eq!(error.data, Some(data));
        }
    }
}
