//! Servers behind this one, and providers that are stored.

use super::problem::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A server whose tools, prompts and resources are ours too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upstream {
    /// Its stable name.
    pub name: String,
    /// Prefix of the names of its tools and prompts.
    pub prefix: String,
    /// What it is.
    #[schemars(extend("enum" = ["http", "stdio", "rest", "rpc", "a2a"]))]
    pub kind: String,
    /// Where it is: its program, or its address without query and password.
    pub target: String,
    /// Where it is configured.
    pub origin: String,
    /// Whether what it says of its tools' effects is taken as it is.
    pub trusted: bool,
    /// Whether its calls are recorded as runs.
    pub journal: bool,
    /// How long one call of it may take, where it has a limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// The names of the headers that go with every request.
    #[serde(default)]
    pub headers: Vec<String>,
    /// The names of the variables that it is given.
    #[serde(default)]
    pub env: Vec<String>,
    /// How it is. `login`: a user must log in at it first; `disabled`: it is not used.
    #[schemars(extend("enum" = ["connecting", "ready", "failing", "login", "disabled"]))]
    pub state: String,
    /// The page where someone logs in, while a login is under way; for administrators only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_url: Option<String>,
    /// How the login of the caller is, where each caller logs in for themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub your_login: Option<OwnLogin>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub since: Option<String>,
    /// The version of MCP that is spoken with it, or the version and the binding of A2A, once it
    /// was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether that version has a handshake (`legacy`) or not (`modern`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["modern", "legacy"]))]
    pub era: Option<String>,
    /// In which era it is spoken to, where it speaks MCP: `auto` as the server can and each caller
    /// would, `2025` with a handshake for everyone, `2026` without one for everyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["auto", "2025", "2026"]))]
    pub era_setting: Option<String>,
    /// What it says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<UpstreamServer>,
    /// What its card says, where it is an agent that speaks A2A and its card was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<UpstreamAgent>,
    /// How many tools it has.
    pub tools: u64,
    /// How many prompts it has.
    pub prompts: u64,
    /// How many resources it lists.
    pub resources: u64,
    /// How often it was reconnected.
    pub restarts: u64,
    /// What went wrong last, if nothing went well since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Fault>,
    /// Calls of it that failed in a row in this realm, if the last one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<UpstreamBreaker>,
}

/// The card of an agent that speaks A2A.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamAgent {
    /// The digest of the card that is in use: sha256 over its canonical form.
    pub card_digest: String,
    /// Whether one of the pinned keys signed it.
    pub signed: bool,
    /// Where the agent is spoken to, without a query.
    pub address: String,
    /// How often the card changed since it was first read.
    pub card_changes: u64,
}

/// How the caller's own login at an upstream is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnLogin {
    /// Whether the caller is logged in there.
    pub done: bool,
    /// The page of the caller's login that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What proves that a login is of who began it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoginProof {
    /// The code that the page showed at the end of the login.
    pub code: String,
}

/// Calls of an upstream that failed in a row, for passing reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamBreaker {
    /// How many failed.
    pub failures: u32,
    /// Until when calls are refused, if they are. After that one call tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub open_until: Option<String>,
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpstreamServer {
    /// Its name.
    pub name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A login at an upstream that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamLogin {
    /// The page where someone logs in.
    pub url: String,
}

/// A provider that is stored: an address whose tools are ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Provider {
    /// Its name, that of its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_name: Option<String>,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What it is; REST if absent.
    #[serde(default = "rest")]
    #[schemars(extend("enum" = ["REST", "MCP", "RPC", "A2A"]))]
    pub provider_type: String,
    /// Where it is; of an A2A agent, its address or that of its card.
    pub base_url: String,
    /// The URL of a REST server's OpenAPI document; `<baseUrl>/openapi.json` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// Headers that go with every request; each names a variable that the realm may use.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// How a login at an MCP server goes; all is found out from the server if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<ProviderOauth>,
    /// Whose the login at an MCP server is: everybody's, if absent, or each caller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["shared", "user"]))]
    pub login: Option<String>,
    /// Patterns of the operations of a REST server that become tools; all if empty.
    #[serde(default)]
    pub include: Vec<String>,
    /// The tools of an RPC server; those that it lists if empty.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Prefix of the names of its tools; `<refName>.` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Whether what it says of its tools' effects is taken as it is.
    #[serde(default)]
    pub trusted: bool,
    /// Whether its calls are recorded as runs.
    #[serde(default = "yes")]
    pub journal: bool,
    /// How long one call of it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// In which era an MCP server is spoken to; `auto` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["auto", "2025", "2026"]))]
    pub era: Option<String>,
    /// Whether it may be at an address that is not public.
    #[serde(default)]
    pub allow_private: bool,
    /// Whether it is left alone.
    #[serde(default)]
    pub disabled: bool,
}

/// A provider in a list, whether it is stored or configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderSummary {
    /// Its name.
    pub ref_name: String,
    /// What it is.
    #[schemars(extend("enum" = ["REST", "MCP", "RPC", "A2A"]))]
    pub provider_type: String,
    /// Where it is: its program, or its address without query and password.
    pub target: String,
    /// Where it comes from: the store, or the file that configures it.
    pub origin: String,
    /// Prefix of the names of its tools.
    pub prefix: String,
    /// How it is; `/api/v1/upstreams` says more.
    #[schemars(extend("enum" = ["connecting", "ready", "failing", "login", "disabled"]))]
    pub state: String,
    /// How many tools it has.
    pub tools: u64,
}

/// How a login at a stored provider goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderOauth {
    /// The client that the server's operator registered for us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Its secret: a variable `${WAYPOST_PROVIDER_..}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// What is asked for, whatever the server says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Who logs in: a person, if absent, or we with the client's secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["person", "ourselves"]))]
    pub grant: Option<String>,
}

fn rest() -> String {
    "REST".to_owned()
}

fn yes() -> bool {
    true
}
