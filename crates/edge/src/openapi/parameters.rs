//! Parameters of paths, queries and headers, each written once.

use project::realm::DEFAULT_REALM;
use serde_json::{Map, Value, json};

/// All of them, by the name that the table calls them by.
pub fn all() -> Map<String, Value> {
    let groups = [
        paths(),
        pages(),
        filters(),
        records(),
        webhooks(),
        audits(),
        streams(),
        logins(),
        headers(),
    ];
    groups.into_iter().flatten().map(|(name, body)| (name.to_owned(), body)).collect()
}

fn paths() -> Vec<(&'static str, Value)> {
    vec![
        ("runId", path("id", "`run_..`.", "run_01a1dd49285d7d15addd8dd2e207b65c")),
        ("askId", path("id", "`ask_..`.", "ask_befb4088acd7c34cfd5df5df63e5663c")),
        ("sessionId", path("id", "`ses_..`, or the client's own key.", "order-7")),
        ("planId", path("id", "The plan's id; `/` in it is `%2F`.", "math::conditional_add")),
        ("toolName", path("name", "The tool's name; `/` in it is `%2F`.", "math::add")),
        ("pipelineName", path("name", "The pipeline's name.", "trade-failures")),
        ("upstreamName", path("name", "The upstream's name.", "github")),
        ("keyId", path("id", "The key's id.", "k7rq2mzc4d")),
        ("principalId", path("id", "The principal's id.", "ann")),
        ("realmName", path("name", "The realm's name.", DEFAULT_REALM)),
        ("sinkName", path("name", "The sink's name.", "events")),
        ("eventId", path("event", "The event's id.", "ses_01a1dd49285d71d2a6fbc5ee6e127904.5")),
        ("refName", path("refName", "The provider's name.", "crm")),
        ("recordType", path("type", "The type's name, with or without namespace.", "Location")),
        ("recordId", path("id", "The record's id.", "65a000000000000000000001")),
        ("agentName", path("refName", "The agent's name.", "diary")),
        ("agentId", path("id", "The agent's id.", "6571a1f0c2a4d5e6f7081920")),
        (
            "blobHash",
            path(
                "hash",
                "The 64 hexadecimal digits after `blob://`.",
                "c19f0695b711e8d46015f7e3cc9b92dd804cc0c604c51db44b4574da2b8a1125",
            ),
        ),
    ]
}

fn pages() -> Vec<(&'static str, Value)> {
    let limit = json!({"type": "integer", "minimum": 0});
    vec![
        ("limit", query("limit", "How many items at most; cut to the server's limit.", limit)),
        (
            "cursor",
            query("cursor", "`nextCursor` of the page before, under the same filter.", text()),
        ),
    ]
}

fn filters() -> Vec<(&'static str, Value)> {
    let session_status = json!({
        "anyOf": [{"$ref": "#/components/schemas/Status"}, {"type": "string", "enum": ["parked"]}]
    });
    let ask_status = json!({
        "type": "string",
        "enum": ["open", "decided", "expired", "withdrawn", "any"],
        "default": "open"
    });
    let seconds = json!({"type": "number", "minimum": 0});
    let mut realm = query("realm", "The caller's realm.", text());
    realm["required"] = json!(true);
    realm["example"] = json!(DEFAULT_REALM);
    vec![
        ("realm", realm),
        ("wait", query("wait", "Seconds to wait for the run, 30 if absent.", seconds)),
        ("space", query("space", "Where several spaces have the same key, which.", text())),
        (
            "unsent",
            query(
                "unsent",
                "`drop` removes events with it that a sink has not passed; else that is waited \
                 for a moment, and then refused.",
                json!({"type": "string", "enum": ["drop"]}),
            ),
        ),
        ("ofSpace", query("space", "Only of this space.", text())),
        (
            "ofStatus",
            query(
                "status",
                "Only of this status; `parked`: only those that cannot be read.",
                session_status,
            ),
        ),
        ("ofPlan", query("plan", "Only whose latest run is of this plan.", text())),
        ("ofAgent", query("agent", "Only whose latest run talks to this agent.", text())),
        ("ofText", query("match", "Only what fits this text, best first, on one page.", text())),
        ("ofSession", query("session", "Only of this session.", text())),
        ("ofRun", query("run", "Only of this run.", text())),
        ("ofStep", query("step", "Only of this step.", text())),
        (
            "ofKind",
            query("kind", "Only of this kind.", json!({"$ref": "#/components/schemas/AskKind"})),
        ),
        ("askStatus", query("status", "Only of this status.", ask_status)),
        (
            "held",
            query(
                "held",
                "Only those that a rule holds, or only those that none holds; of open ones the \
                 latter unless `true` is said.",
                json!({"type": "boolean"}),
            ),
        ),
        (
            "deliveryStatus",
            query(
                "status",
                "Only of this status.",
                json!({"$ref": "#/components/schemas/DeliveryStatus"}),
            ),
        ),
    ]
}

fn records() -> Vec<(&'static str, Value)> {
    let count = json!({"type": "integer", "minimum": 0});
    let flag = |default: bool| json!({"type": "boolean", "default": default});
    vec![
        ("recordQuery", query("query", "Only records that this query takes.", text())),
        ("recordSort", query("sort", "Fields in this order, `-` before one that falls.", text())),
        ("skip", query("skip", "How many records are left out at the beginning.", count)),
        ("withTotal", query("total", "Whether all records are counted.", flag(true))),
        ("allTools", query("all", "Also tools that are not of records.", flag(false))),
    ]
}

fn webhooks() -> Vec<(&'static str, Value)> {
    let is_live = json!({"type": "boolean"});
    vec![
        ("ofTask", query("task", "Only of this task, `run_..`.", text())),
        (
            "isLive",
            query("live", "Only those that there may be more for, or only the others.", is_live),
        ),
    ]
}

fn audits() -> Vec<(&'static str, Value)> {
    let chains = "^(realm|server|realm:.+)$";
    let own = "realm";
    vec![
        (
            "auditChain",
            query(
                "chain",
                "Whose audit: `realm` is that of the request's realm. `server` and `realm:<name>`, \
                 also of a realm that was removed, need the role `admin` in `*`.",
                json!({"type": "string", "pattern": chains, "default": own}),
            ),
        ),
        ("ofAct", query("act", "Only of this act.", text())),
        ("ofSubject", query("subject", "Only for or by this subject.", text())),
        (
            "since",
            query("since", "Only from then on.", json!({"type": "string", "format": "date-time"})),
        ),
        (
            "auditHead",
            query("head", "`head` as it once was: the audit must still have that row.", text()),
        ),
        (
            "uncheckedUntil",
            query(
                "uncheckedUntil",
                "The last row of a secret key that is lost: rows up to it need not be checked.",
                json!({"type": "integer", "minimum": 0}),
            ),
        ),
    ]
}

fn streams() -> Vec<(&'static str, Value)> {
    let seq = json!({"type": "integer", "minimum": 0});
    vec![
        ("after", query("after", "Only events after this sequence.", seq)),
        ("afterCursor", query("after", "Only events after this one: its `id`, opaque.", text())),
        (
            "lastEventId",
            header("Last-Event-ID", "The `id` of the last event; overrides `after`.", text()),
        ),
    ]
}

fn logins() -> Vec<(&'static str, Value)> {
    vec![
        ("loginState", query("state", "Which login it is.", text())),
        ("loginCode", query("code", "What a token is given for.", text())),
        ("loginIssuer", query("iss", "Who says so.", text())),
        ("loginError", query("error", "Why there is no code.", text())),
        ("loginErrorDescription", query("error_description", "The same in words.", text())),
    ]
}

fn headers() -> Vec<(&'static str, Value)> {
    let key = json!({"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"});
    vec![
        (
            "idempotencyKey",
            header(
                "Idempotency-Key",
                "A repeat with the same key and body gets what came of the first.",
                key,
            ),
        ),
        (
            "ifMatch",
            header(
                "If-Match",
                "The `ETag` of the version that this one replaces; `*`: any.",
                json!({"type": "string", "pattern": "^(\\*|\"[0-9]{1,18}\")$"}),
            ),
        ),
        (
            "ifNoneMatch",
            header(
                "If-None-Match",
                "`*`: only if nothing is stored under this id.",
                json!({"type": "string", "enum": ["*"]}),
            ),
        ),
        (
            "challenge",
            header(
                "Waypost-Challenge",
                "A text of at most 64 characters, for which the server proves that it knows the \
                 token of its data folder.",
                text(),
            ),
        ),
    ]
}

fn path(name: &str, about: &str, example: &str) -> Value {
    json!({
        "name": name, "in": "path", "required": true, "description": about,
        "schema": {"type": "string", "minLength": 1}, "example": example
    })
}

fn query(name: &str, about: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": about, "schema": schema})
}

fn header(name: &str, about: &str, schema: Value) -> Value {
    json!({"name": name, "in": "header", "description": about, "schema": schema})
}

fn text() -> Value {
    json!({"type": "string"})
}
