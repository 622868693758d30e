//! Endpoints that are open to strangers, on a server that asks everybody else for a credential.

use axum::http::{Method, Uri};
use kernel::values::percent::decoded;
use project::tables::public_url::{CALLBACK_PATH, CLIENT_PATH};
use wire::a2a::{KEY_SET, WELL_KNOWN};

/// Where a key is exchanged for a token: the credential is its own concern.
pub const TOKEN_PATH: &str = "/oauth/token";
/// Where a client reads which credentials `/mcp` takes.
pub const MCP_METADATA_PATH: &str = "/.well-known/oauth-protected-resource/mcp";
pub const MCP_PATH: &str = "/mcp";
const READY_PATH: &str = "/readyz";
pub const HEALTH_PATH: &str = "/health";
/// Endpoints that are open to strangers, and tell nothing that they could not know.
pub const OPEN_PATHS: [&str; 13] = [
    "/livez",
    READY_PATH,
    HEALTH_PATH,
    "/health-check",
    TOKEN_PATH,
    CALLBACK_PATH,
    CLIENT_PATH,
    "/.well-known/oauth-protected-resource",
    MCP_METADATA_PATH,
    "/.well-known/oauth-authorization-server",
    WELL_KNOWN,
    KEY_SET,
    "/agent-card.json",
];
/// Where realms have their cards: below the first, and with the second at the end.
const CARDS: (&str, &str) = ("/a2a/v1/", "/agent-card.json");
/// Where clients of AgentVault look cards up.
const CARD_LIST: &str = "/api/v1/agent-cards";

/// What is here and where to go, for everybody who reads it; others may have a pipeline there.
const ROOT: &str = "/";

/// Whether strangers may come to this address with this method.
pub(super) fn has(method: &Method, uri: &Uri) -> bool {
    let path = uri.path();
    if path == ROOT {
        return [Method::GET, Method::HEAD].contains(method);
    }
    let listed = path.strip_prefix(CARD_LIST);
    let is_listed = listed.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_card = is_listed || path.starts_with(CARDS.0) && path.ends_with(CARDS.1);
    is_card || OPEN_PATHS.contains(&path) && !(path == READY_PATH && asks_for_more(uri))
}

/// `?verbose`, in whatever form.
pub fn asks_for_more(uri: &Uri) -> bool {
    let mut parts = uri.query().unwrap_or_default().split('&');
    parts.any(|part| decoded(part.split('=').next().unwrap_or_default()) == "verbose")
}
