//! Upstreams and stored providers.

use super::Named;
use serde_json::{Value, json};

pub(super) fn schemas() -> Vec<Named> {
    vec![
        ("Upstream", upstream()),
        ("UpstreamServer", upstream_server()),
        ("UpstreamLogin", upstream_login()),
        ("UpstreamPage", upstream_page()),
        ("Provider", provider()),
        ("ProviderOauth", provider_oauth()),
    ]
}

fn upstream() -> Value {
    json!({
        "type": "object",
        "description": "A server whose tools, prompts and resources are ours too.",
        "required": [
            "name", "prefix", "kind", "target", "origin", "trusted", "journal", "headers", "env",
            "state", "tools", "prompts", "resources", "restarts"
        ],
        "properties": upstream_properties(),
        "examples": [
            {
                "name": "github", "prefix": "github.", "kind": "http",
                "target": "https://mcp.example.com/mcp", "origin": ".mcp.json:3",
                "trusted": false, "journal": true, "timeoutMs": 60000,
                "headers": ["Authorization"], "env": [], "state": "ready",
                "since": "2026-11-15T04:09:04.123Z", "version": "2026-07-28", "era": "modern",
                "server": {"name": "github", "version": "1.2.0"},
                "tools": 24, "prompts": 0, "resources": 3, "restarts": 0
            },
            {
                "name": "files", "prefix": "files.", "kind": "stdio", "target": "npx",
                "origin": "waypost.toml:12", "trusted": true, "journal": false,
                "headers": [], "env": ["ROOT"], "state": "failing",
                "since": "2026-11-15T04:09:04.123Z",
                "tools": 0, "prompts": 0, "resources": 0, "restarts": 2,
                "lastError": {"name": "UpstreamUnreachable", "message": "it ended with code 1"}
            },
            {
                "name": "hub", "prefix": "hub.", "kind": "http",
                "target": "https://hub.example.com/mcp", "origin": "waypost.toml:20",
                "trusted": false, "journal": true, "headers": [], "env": [], "state": "login",
                "loginUrl": "https://login.example.com/authorize?client_id=waypost&state=..",
                "since": "2026-11-15T04:09:04.123Z",
                "tools": 0, "prompts": 0, "resources": 0, "restarts": 0
            }
        ]
    })
}

fn upstream_properties() -> Value {
    let names =
        |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
    let count = json!({"type": "integer", "minimum": 0});
    json!({
        "name": {"type": "string"},
        "prefix": {
            "type": "string",
            "description": "What stands before the names of its tools and prompts."
        },
        "kind": {"type": "string", "enum": ["http", "stdio", "rest", "rpc"]},
        "target": {
            "type": "string",
            "description": "Its program, or its address without query and password."
        },
        "origin": {"type": "string", "description": "Where it is configured."},
        "trusted": {
            "type": "boolean",
            "description": "Whether what it says of its tools' effects is taken as it is."
        },
        "journal": {
            "type": "boolean",
            "description": "Whether its calls are recorded as runs."
        },
        "timeoutMs": {"type": "integer", "minimum": 1},
        "headers": names("The names of the headers that go with every request."),
        "env": names("The names of the variables that it is given."),
        "state": {
            "type": "string",
            "description": "`login`: a user must log in at it first.",
            "enum": ["connecting", "ready", "failing", "login", "disabled"]
        },
        "loginUrl": {
            "type": "string",
            "description": "The page where a user logs in, while a login is under way; for \
                            administrators only."
        },
        "since": {"type": "string", "format": "date-time"},
        "version": {"type": "string", "description": "The version of MCP that is spoken with it."},
        "era": {
            "type": "string",
            "description": "Whether that version has a handshake.",
            "enum": ["modern", "legacy"]
        },
        "server": {"$ref": "#/components/schemas/UpstreamServer"},
        "tools": count.clone(),
        "prompts": count.clone(),
        "resources": count.clone(),
        "restarts": count,
        "lastError": {"$ref": "#/components/schemas/Fault"}
    })
}

fn upstream_server() -> Value {
    json!({
        "type": "object",
        "description": "What a server says of itself.",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "version": {"type": "string"}},
        "examples": [{"name": "github", "version": "1.2.0"}]
    })
}

fn upstream_login() -> Value {
    json!({
        "type": "object",
        "description": "A login at an upstream that was begun.",
        "required": ["url"],
        "properties": {
            "url": {"type": "string", "description": "The page where a user logs in."}
        },
        "examples": [{"url": "https://login.example.com/authorize?client_id=waypost&state=.."}]
    })
}

fn provider_oauth() -> Value {
    json!({
        "type": "object",
        "description": "How a login at a stored provider goes.",
        "additionalProperties": false,
        "properties": {
            "clientId": {
                "type": "string",
                "description": "The client that the server's operator registered for us."
            },
            "clientSecret": {
                "type": "string",
                "description": "Its secret: a variable `${WAYPOST_PROVIDER_..}` of the server."
            },
            "scopes": {
                "type": "array",
                "items": {"type": "string"},
                "description": "What is asked for, whatever the server says."
            },
            "grant": {
                "type": "string",
                "description": "Who logs in: a person, if absent, or we with the client's secret.",
                "enum": ["person", "ourselves"]
            }
        },
        "examples": [{
            "clientId": "waypost", "clientSecret": "${WAYPOST_PROVIDER_CRM_SECRET}",
            "scopes": ["read"], "grant": "ourselves"
        }]
    })
}

fn upstream_page() -> Value {
    json!({
        "type": "object",
        "description": "Upstreams, by name.",
        "required": ["items", "nextCursor"],
        "properties": {
            "items": {"type": "array", "items": {"$ref": "#/components/schemas/Upstream"}},
            "nextCursor": {"type": ["string", "null"]}
        },
        "examples": [{"items": [], "nextCursor": null}]
    })
}

fn provider() -> Value {
    let texts =
        |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
    json!({
        "type": "object",
        "description": "An upstream that is stored.",
        "required": ["baseUrl"],
        "additionalProperties": false,
        "properties": {
            "refName": {"type": "string", "description": "Its name, that of the path."},
            "displayName": {"type": "string"},
            "providerType": {
                "type": "string",
                "description": "What it is; REST if absent.",
                "enum": ["REST", "MCP", "RPC"]
            },
            "baseUrl": {"type": "string"},
            "document": {
                "type": "string",
                "description": "The URL of an OpenAPI document; `<baseUrl>/openapi.json` if absent."
            },
            "headers": {
                "type": "object",
                "description": "Each names a variable `${WAYPOST_PROVIDER_..}` of the server.",
                "additionalProperties": {"type": "string"}
            },
            "oauth": {
                "$ref": "#/components/schemas/ProviderOauth"
            },
            "include": texts("Patterns of the operations that become tools; all if empty."),
            "tools": texts("The tools of an RPC server; those that it lists if empty."),
            "prefix": {"type": "string"},
            "trusted": {"type": "boolean"},
            "journal": {"type": "boolean"},
            "timeoutMs": {"type": "integer", "minimum": 1},
            "allowPrivate": {"type": "boolean"},
            "disabled": {"type": "boolean"}
        },
        "examples": [{
            "refName": "crm", "displayName": "Customers", "providerType": "REST",
            "baseUrl": "https://crm.example.com/v1",
            "document": "https://crm.example.com/v1/openapi.json",
            "headers": {"Authorization": "Bearer ${WAYPOST_PROVIDER_CRM_TOKEN}"},
            "include": ["list*"], "tools": [], "prefix": "crm.", "trusted": false,
            "journal": true, "timeoutMs": 30000, "allowPrivate": false, "disabled": false
        }, {
            "refName": "hub", "providerType": "MCP", "baseUrl": "https://hub.example.com/mcp",
            "headers": {}, "oauth": {"clientId": "waypost", "scopes": ["read"]},
            "include": [], "tools": [], "trusted": false, "journal": true,
            "allowPrivate": false, "disabled": false
        }]
    })
}
