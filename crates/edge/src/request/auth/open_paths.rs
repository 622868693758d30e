//! The paths that need no credential, on a server that asks for one everywhere else.

use axum::http::{Method, Uri};
use kernel::values::percent::decoded;
use project::tables::public_url::{CALLBACK_PATH, CLIENT_PATH};
use wire::a2a::{KEY_SET, WELL_KNOWN};

/// Where a key is exchanged for a token. It reads the credential itself.
pub const TOKEN_PATH: &str = "/oauth/token";
/// Where a client reads which credentials `/mcp` takes.
pub const MCP_METADATA_PATH: &str = "/.well-known/oauth-protected-resource/mcp";
pub const MCP_PATH: &str = "/mcp";
const READY_PATH: &str = "/readyz";
pub const HEALTH_PATH: &str = "/health";
/// Paths that need no credential: what they tell is public anyway.
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
/// The agent card of a realm: its path begins with the first and ends with the second.
const CARDS: (&str, &str) = ("/a2a/v1/", "/agent-card.json");
/// Where clients of AgentVault look cards up.
const CARD_LIST: &str = "/api/v1/agent-cards";

/// The start page, which anybody may read. Other methods are not open: a pipeline may have this
/// route.
const ROOT: &str = "/";

/// Whether this method of this path needs no credential.
pub(super) fn is_open(method: &Method, uri: &Uri) -> bool {
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
