//! Every door, with a request that it takes. A route or a method without a row here fails the test:
//! what it answers to whom is then written nowhere.

use kernel::values::caller::Act;
use server::{METHODS, Right, rights};
use std::collections::{BTreeMap, BTreeSet};
use testkit::caller::Era;

/// What a door is about: with the act it decides what is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thing {
    /// Nothing that a stranger could not know.
    Open,
    /// Its caller.
    Oneself,
    /// Whatever its caller may see.
    List,
    /// A plan, agent or pipeline.
    Catalog,
    /// A tool, which is not there for a caller that may not call it.
    Tool,
    /// A session, run, ask or blob of somebody.
    Owned,
    /// A thread, whose id is its owner's.
    Thread,
    /// A stored definition.
    Definition,
    /// An upstream or a sink.
    Neighbour,
    /// The server.
    Server,
}

use Thing::{Catalog, Definition, List, Neighbour, Oneself, Open, Owned, Server, Thread, Tool};

/// How a door is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// As its path says.
    Rest,
    /// By a form that has the credential in it.
    Token,
    /// By JSON-RPC.
    Rpc,
    /// By this method of MCP.
    Mcp(Era, &'static str),
    /// At the port of a pipeline's own.
    OwnPort,
    /// By this method of A2A, as JSON-RPC.
    A2aRpc(&'static str),
    /// By A2A over HTTP.
    A2aHttp,
    /// By this method of A2A, over gRPC.
    A2aGrpc(&'static str),
}

/// One door. In path and body a word in angle brackets stands for an id of something that is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Door {
    pub(super) method: &'static str,
    /// As the table of routes has it.
    pub(super) route: &'static str,
    /// What is asked for.
    pub(super) path: &'static str,
    /// What is sent, empty for nothing; of a method of MCP or A2A the parameters.
    pub(super) body: &'static str,
    pub(super) thing: Thing,
    pub(super) kind: Kind,
    pub(super) right: Right,
}

impl Door {
    /// What policy is asked about, if anything.
    pub(super) fn act(&self) -> Option<Act> {
        match self.right {
            Right::Engine(act) | Right::Door(act, _) => Some(act),
            Right::Open(_) => None,
        }
    }

    /// Whether who is let in gets an answer that does not end.
    pub(super) fn is_stream(&self) -> bool {
        let routes = ["/api/v1/events", "/api/v1/sessions/{id}/events"];
        let by_name = matches!(
            self.kind,
            Kind::Mcp(_, "subscriptions/listen")
                | Kind::A2aRpc("SubscribeToTask" | "tasks/sendSubscribe" | "tasks/resubscribe")
                | Kind::A2aGrpc("SubscribeToTask")
        );
        by_name || routes.contains(&self.route) || self.route.ends_with(":subscribe")
    }

    /// As readers know it.
    pub(super) fn name(&self) -> String {
        let Self { method, route, kind, .. } = self;
        match kind {
            Kind::Mcp(Era::Legacy, method) => format!("`/mcp` `{method}` (2025-11-25)"),
            Kind::Mcp(Era::Modern, method) => format!("`/mcp` `{method}` (2026-07-28)"),
            Kind::OwnPort => format!("`{method} {route}` at a pipeline's own port"),
            Kind::A2aRpc(called) => format!("`{method} {route}` `{called}`"),
            Kind::A2aGrpc(called) => format!("`{method} {route}/{called}`"),
            Kind::Rest | Kind::Token | Kind::Rpc | Kind::A2aHttp => format!("`{method} {route}`"),
        }
    }
}

/// A door of the table of routes; the table says who asks about it.
pub(super) const fn row(
    method: &'static str,
    route: &'static str,
    path: &'static str,
    thing: Thing,
    body: &'static str,
) -> Door {
    let right = Right::Open("");
    Door { method, route, path, body, thing, kind: Kind::Rest, right }
}

pub(super) const fn get(route: &'static str, path: &'static str, thing: Thing) -> Door {
    row("GET", route, path, thing, "")
}

pub(super) const fn post(
    route: &'static str,
    path: &'static str,
    thing: Thing,
    body: &'static str,
) -> Door {
    row("POST", route, path, thing, body)
}

const fn put(route: &'static str, path: &'static str, thing: Thing, body: &'static str) -> Door {
    row("PUT", route, path, thing, body)
}

const fn delete(route: &'static str, path: &'static str, thing: Thing) -> Door {
    row("DELETE", route, path, thing, "")
}

/// A list, whose path is its route.
const fn list(route: &'static str) -> Door {
    get(route, route, List)
}

/// A door that is open, whose path is its route.
const fn open(route: &'static str) -> Door {
    get(route, route, Open)
}

const NAME: &str = r#"{"action": "accept", "content": {"name": "Ann"}}"#;
const AGENT: &str = r#"{"llmConfigRef": "rules", "enabledTools": ["math::add"]}"#;
const SAVED: &str = r#"{"refName": "matrix-saved", "llmConfigRef": "rules",
    "enabledTools": ["math::add"]}"#;
const CASE: &str = r#"{"tradeId": "T-1", "reason": "Missing ISIN"}"#;
const PRINCIPAL: &str = r#"{"realms": {"default": ["member"]}}"#;
const CHECK: &str = r#"{"functionalDomain": "Plan", "action": "run"}"#;
const PROVIDER: &str = r#"{"providerType": "mcp", "baseUrl": "http://127.0.0.1:1/mcp"}"#;
const PLAN: &str = r#"{"description": "ends", "startStepId": "end",
    "steps": [{"id": "end", "type": "final_response", "message": "done"}]}"#;
const REGISTERED: &str = r#"{"type": "plan", "definition": {"planId": "matrix::registered",
    "description": "ends", "startStepId": "end",
    "steps": [{"id": "end", "type": "final_response", "message": "done"}]}}"#;
const RESUME: &str = r#"{"thread_id": "matrix",
    "approvals": [{"call_id": "<call>", "approved": true}]}"#;
const TALK: &str = r#"{"thread_id": "fresh", "user_request": "add it", "agent": "clerk"}"#;
const ADD: &str = r#"{"arguments": {"a": 1, "b": 2}}"#;
const RPC: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
    "params": {"name": "math__add", "arguments": {"a": 1, "b": 2}}}"#;

/// The address of AgentVault's profile, for the skill that calls tools of MCP servers.
pub(super) const PROXY: &str = "/a2a for mcp.execute_tool";

const OWN_LOGIN: &str = "/api/v1/upstreams/shelf/my-login";

/// Every route, in an order in which all of it can be asked for, one after the other.
const ROWS: &[Door] = &[
    list("/api/v1/asks"),
    get("/api/v1/asks/{id}", "/api/v1/asks/<ask>", Owned),
    post("/api/v1/asks/{id}", "/api/v1/asks/<ask>", Owned, NAME),
    post("/api/v1/runs", "/api/v1/runs", Catalog, r#"{"planId": "matrix::echo"}"#),
    get("/api/v1/runs/{id}", "/api/v1/runs/<run>", Owned),
    post("/api/v1/runs/{id}/pause", "/api/v1/runs/<paused>/pause", Owned, "{}"),
    post("/api/v1/runs/{id}/continue", "/api/v1/runs/<paused>/continue", Owned, "{}"),
    post("/api/v1/runs/{id}/cancel", "/api/v1/runs/<paused>/cancel", Owned, "{}"),
    post("/api/v1/runs/{id}/retry", "/api/v1/runs/<stuck>/retry", Owned, "{}"),
    list("/api/v1/sessions"),
    post(
        "/api/v1/sessions/prune",
        "/api/v1/sessions/prune",
        Server,
        r#"{"olderThanMs": 86400000}"#,
    ),
    get("/api/v1/sessions/{id}", "/api/v1/sessions/<session>", Owned),
    get("/api/v1/sessions/{id}/history", "/api/v1/sessions/<session>/history", Owned),
    get("/api/v1/sessions/{id}/context", "/api/v1/sessions/<session>/context", Owned),
    get("/api/v1/sessions/{id}/events", "/api/v1/sessions/<session>/events", Owned),
    get("/api/v1/sessions/{id}/export", "/api/v1/sessions/<session>/export", Owned),
    post("/api/v1/sessions/{id}/fork", "/api/v1/sessions/<session>/fork", Owned, "{}"),
    delete("/api/v1/sessions/{id}", "/api/v1/sessions/matrix-old", Owned),
    list("/api/v1/events"),
    list("/api/v1/sinks"),
    get("/api/v1/sinks/{name}/deliveries", "/api/v1/sinks/file/deliveries", Neighbour),
    post(
        "/api/v1/sinks/{name}/deliveries/{event}/resend",
        "/api/v1/sinks/file/deliveries/<event>/resend",
        Neighbour,
        "",
    ),
    post("/api/v1/sinks/{name}/resume", "/api/v1/sinks/file/resume", Neighbour, ""),
    delete("/api/v1/sinks/{name}", "/api/v1/sinks/file", Neighbour),
    list("/api/v1/webhooks"),
    list("/api/v1/plans"),
    get("/api/v1/plans/{id}", "/api/v1/plans/matrix%3A%3Aecho", Catalog),
    put("/api/v1/plans/{id}", "/api/v1/plans/matrix%3A%3Astored", Definition, PLAN),
    post("/api/v1/plans/validate", "/api/v1/plans/validate", Oneself, PLAN),
    post("/api/v1/plans/draft", "/api/v1/plans/draft", Catalog, r#"{"goal": "matrix::echo"}"#),
    list("/api/v1/tools"),
    get("/api/v1/tools/{name}", "/api/v1/tools/math%3A%3Aadd", Tool),
    post("/api/v1/tools/{name}/call", "/api/v1/tools/math%3A%3Aadd/call", Tool, ADD),
    list("/api/v1/agents"),
    get("/api/v1/agents/{refName}", "/api/v1/agents/clerk", Catalog),
    put("/api/v1/agents/{refName}", "/api/v1/agents/matrix-new", Definition, AGENT),
    delete("/api/v1/agents/{refName}", "/api/v1/agents/matrix-one", Definition),
    get("/api/agent/config/list", "/api/agent/config/list?realm=default", List),
    get("/api/agent/config/{refName}", "/api/agent/config/clerk?realm=default", Catalog),
    get("/api/agent/config/id/{id}", "/api/agent/config/id/<agent>?realm=default", Catalog),
    post("/api/agent/config", "/api/agent/config?realm=default", Definition, SAVED),
    delete("/api/agent/config/{refName}", "/api/agent/config/matrix-two?realm=default", Definition),
    delete("/api/agent/config/id/{id}", "/api/agent/config/id/<agent>?realm=default", Definition),
    list("/api/v1/pipelines"),
    get("/api/v1/pipelines/{name}", "/api/v1/pipelines/desk", Catalog),
    get("/api/v1/pipelines/{name}/stats", "/api/v1/pipelines/desk/stats", Catalog),
    post("/api/v1/pipelines/{name}/cases", "/api/v1/pipelines/desk/cases", Catalog, CASE),
    list("/api/v1/upstreams"),
    get("/api/v1/upstreams/{name}", "/api/v1/upstreams/shelf", Neighbour),
    post("/api/v1/upstreams/{name}/check", "/api/v1/upstreams/shelf/check", Neighbour, ""),
    post("/api/v1/upstreams/{name}/login", "/api/v1/upstreams/shelf/login", Neighbour, ""),
    delete("/api/v1/upstreams/{name}/login", "/api/v1/upstreams/shelf/login", Neighbour),
    post("/api/v1/upstreams/{name}/my-login", OWN_LOGIN, Neighbour, ""),
    put("/api/v1/upstreams/{name}/my-login", OWN_LOGIN, Neighbour, r#"{"code": "none"}"#),
    delete("/api/v1/upstreams/{name}/my-login", OWN_LOGIN, Neighbour),
    get("/api/v1/providers/{refName}", "/api/v1/providers/shelf", Definition),
    put("/api/v1/providers/{refName}", "/api/v1/providers/shelf", Definition, PROVIDER),
    delete("/api/v1/providers/{refName}", "/api/v1/providers/shelf", Definition),
    get("/api/v1/whoami", "/api/v1/whoami", Oneself),
    get("/api/v1/keys", "/api/v1/keys", Server),
    post("/api/v1/keys", "/api/v1/keys", Server, r#"{"name": "one more"}"#),
    get("/api/v1/keys/{id}", "/api/v1/keys/<key>", Server),
    post("/api/v1/keys/{id}/rotate", "/api/v1/keys/<key>/rotate", Server, "{}"),
    delete("/api/v1/keys/{id}", "/api/v1/keys/<key>", Server),
    put("/api/v1/principals/{id}", "/api/v1/principals/ann", Server, PRINCIPAL),
    get("/api/v1/principals", "/api/v1/principals", Server),
    get("/api/v1/principals/{id}", "/api/v1/principals/ann", Server),
    post("/api/v1/principals/{id}/disable", "/api/v1/principals/ann/disable", Server, ""),
    post("/api/v1/principals/{id}/enable", "/api/v1/principals/ann/enable", Server, ""),
    get("/api/v1/realms", "/api/v1/realms", Server),
    post("/api/v1/realms", "/api/v1/realms", Server, r#"{"name": "matrix"}"#),
    get("/api/v1/realms/{name}", "/api/v1/realms/default", Server),
    delete("/api/v1/realms/{name}", "/api/v1/realms/matrix", Server),
    get("/api/v1/policies", "/api/v1/policies", Server),
    post("/system/permissions/check", "/system/permissions/check", Oneself, CHECK),
    post("/system/permissions/evaluate", "/system/permissions/evaluate", Oneself, ""),
    post("/system/permissions/fd/evaluate", "/system/permissions/fd/evaluate", Oneself, ""),
    get("/api/v1/audit", "/api/v1/audit", Server),
    get("/api/v1/audit/head", "/api/v1/audit/head", Server),
    get("/api/v1/audit/verify", "/api/v1/audit/verify", Server),
    get("/api/v1/blobs/{hash}", "/api/v1/blobs/<blob>", Owned),
    post("/api/v1/backup", "/api/v1/backup", Server, r#"{"dir": "<backup>"}"#),
    post("/run", "/run", Catalog, TALK),
    post("/resume", "/resume", Thread, RESUME),
    post("/sessions", "/sessions", Catalog, r#"{"sessionId": "matrix-made"}"#),
    get("/sessions/{id}", "/sessions/matrix-plain", Owned),
    post(
        "/sessions/{id}/execute-plan",
        "/sessions/matrix-plain/execute-plan",
        Owned,
        r#"{"planId": "matrix::echo"}"#,
    ),
    post(
        "/sessions/{id}/resume",
        "/sessions/matrix-asks/resume",
        Owned,
        r#"{"input": {"name": "Ann"}}"#,
    ),
    list("/capabilities"),
    post("/capabilities/discover", "/capabilities/discover", List, r#"{"query": "add"}"#),
    post("/admin/capabilities", "/admin/capabilities", Definition, REGISTERED),
    Door { kind: Kind::Rpc, ..post("/rpc", "/rpc", Tool, RPC) },
    get("/metrics", "/metrics", Server),
    get("/openapi.json", "/openapi.json", Oneself),
    Door { kind: Kind::Token, ..post("/oauth/token", "/oauth/token", Open, "") },
    open("/oauth/callback"),
    open("/oauth/client.json"),
    open("/.well-known/oauth-protected-resource"),
    open("/.well-known/oauth-protected-resource/mcp"),
    open("/.well-known/oauth-authorization-server"),
    open("/livez"),
    open("/readyz"),
    open("/health"),
    open("/health-check"),
];

/// What is in no table of routes: a pipeline's own route, there and at its own port, and a door
/// that is open unless more is asked of it.
const BESIDE: &[Door] = &[
    get("/readyz?verbose", "/readyz?verbose", Oneself),
    post("/desk/cases", "/desk/cases", Catalog, CASE),
    Door { kind: Kind::OwnPort, ..post("/desk/cases", "/desk/cases", Catalog, CASE) },
    Door { kind: Kind::OwnPort, ..open("/health") },
];

/// A method of MCP, with parameters that it takes.
struct Method {
    name: &'static str,
    eras: &'static [Era],
    thing: Thing,
    params: &'static str,
}

const fn method(
    name: &'static str,
    eras: &'static [Era],
    thing: Thing,
    params: &'static str,
) -> Method {
    Method { name, eras, thing, params }
}

const BOTH: &[Era] = &[Era::Legacy, Era::Modern];
const LEGACY: &[Era] = &[Era::Legacy];
const MODERN: &[Era] = &[Era::Modern];

const CALL: &str = r#"{"name": "math__add", "arguments": {"a": 1, "b": 2}}"#;
const URI: &str = r#"{"uri": "waypost://sessions/<session>"}"#;
const TASK: &str = r#"{"taskId": "<run>"}"#;
const UPDATE: &str = r#"{"taskId": "<run>",
    "inputResponses": {"<ask>": {"action": "accept", "content": {"name": "Ann"}}}}"#;
const COMPLETE: &str = r#"{"ref": {"type": "ref/prompt", "name": "matrix::echo"},
    "argument": {"name": "text", "value": ""}}"#;
const LISTEN: &str = r#"{"notifications": {"toolsListChanged": true}}"#;
pub(super) const INITIALIZE: &str = r#"{"protocolVersion": "2025-11-25", "capabilities": {},
    "clientInfo": {"name": "matrix", "version": "1"}}"#;

/// Every method of MCP, in the versions that have it.
const METHOD_ROWS: &[Method] = &[
    method("initialize", LEGACY, Oneself, INITIALIZE),
    method("server/discover", MODERN, Oneself, "{}"),
    method("ping", LEGACY, Oneself, "{}"),
    method("logging/setLevel", LEGACY, Oneself, r#"{"level": "info"}"#),
    method("tools/list", BOTH, List, "{}"),
    method("tools/call", BOTH, Tool, CALL),
    method("prompts/list", BOTH, List, "{}"),
    method("prompts/get", BOTH, Catalog, r#"{"name": "matrix::echo"}"#),
    method("resources/list", BOTH, List, "{}"),
    method("resources/templates/list", BOTH, List, "{}"),
    method("resources/read", BOTH, Owned, URI),
    method("resources/subscribe", LEGACY, Owned, URI),
    method("resources/unsubscribe", LEGACY, Oneself, URI),
    method("subscriptions/listen", MODERN, List, LISTEN),
    method("completion/complete", BOTH, Catalog, COMPLETE),
    method("tasks/get", MODERN, Owned, TASK),
    method("tasks/update", MODERN, Owned, UPDATE),
    method("tasks/cancel", MODERN, Owned, TASK),
];

/// All of them, each with who asks about it.
pub(super) fn all() -> Vec<Door> {
    let rights: BTreeMap<(&str, &str), Right> =
        rights().map(|(method, route, right)| ((method, route), right)).collect();
    let served: BTreeSet<(&str, &str)> =
        rights.keys().copied().filter(|(_, route)| *route != "/mcp").collect();
    let known: BTreeSet<(&str, &str)> = ROWS.iter().map(|row| (row.method, row.route)).collect();
    assert_eq!(known, served, "each route has a row in `ROWS`");
    let routes = ROWS.iter().map(|row| Door { right: rights[&(row.method, row.route)], ..*row });
    let cases = rights[&("POST", "/api/v1/pipelines/{name}/cases")];
    let beside = BESIDE.iter().map(|row| match row.thing {
        Catalog => Door { right: cases, ..*row },
        _ => *row,
    });
    routes.chain(beside).chain(methods()).collect()
}

fn methods() -> impl Iterator<Item = Door> {
    let rights: BTreeMap<&str, Right> = METHODS.iter().copied().collect();
    let served: BTreeSet<&str> = rights.keys().copied().collect();
    let known: BTreeSet<&str> = METHOD_ROWS.iter().map(|row| row.name).collect();
    assert_eq!(known, served, "each method of `/mcp` has a row in `METHOD_ROWS`");
    METHOD_ROWS.iter().flat_map(move |row| {
        let right = rights[row.name];
        row.eras.iter().map(move |era| Door {
            kind: Kind::Mcp(*era, row.name),
            right,
            ..post("/mcp", "/mcp", row.thing, row.params)
        })
    })
}
