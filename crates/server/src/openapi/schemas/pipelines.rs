//! Pipelines, their cases, and which paths these took.

use super::Named;
use serde_json::{Value, json};

pub(super) fn schemas() -> Vec<Named> {
    vec![
        ("PipelineSummary", pipeline_summary()),
        ("PipelineHandler", pipeline_handler()),
        ("PipelinePage", pipeline_page()),
        ("PipelineAnswer", pipeline_answer()),
        ("PipelineAddresses", pipeline_addresses()),
        ("PipelineStats", pipeline_stats()),
        ("HandlerCount", handler_count()),
        ("ReasonCount", reason_count()),
        ("CaseBody", case_body()),
        ("CaseAnswer", case_answer()),
        ("PendingCase", pending_case()),
    ]
}

fn summary_properties() -> Value {
    json!({
        "name": {"type": "string"},
        "description": {"type": "string", "description": "What it is for."},
        "route": {"type": "string", "description": "The path at which cases come in."},
        "caseIdField": {"type": "string", "description": "The field that names the case."},
        "handlers": {
            "type": "array",
            "description": "The reasons that it knows.",
            "items": {"$ref": "#/components/schemas/PipelineHandler"}
        },
        "tools": {
            "type": "array",
            "description": "The tools that its agent may call.",
            "items": {"type": "string"}
        },
        "llm": {"type": "string", "description": "The model of its agent, by name."}
    })
}

fn summary_example() -> Value {
    json!({
        "name": "trade-failures", "description": "Repairs or escalates trades that failed.",
        "route": "/trade/failures", "caseIdField": "tradeId",
        "handlers": [{"reason": "Missing ISIN", "type": "lookup-enrich"}],
        "tools": ["events.publish", "case.raiseTicket"],
        "llm": "pipeline/trade-failures"
    })
}

const SUMMARY_REQUIRED: [&str; 7] =
    ["name", "description", "route", "caseIdField", "handlers", "tools", "llm"];

fn pipeline_summary() -> Value {
    json!({
        "type": "object",
        "description": "A pipeline in a list.",
        "required": SUMMARY_REQUIRED,
        "properties": summary_properties(),
        "examples": [summary_example()]
    })
}

fn pipeline_handler() -> Value {
    json!({
        "type": "object",
        "required": ["reason", "type"],
        "properties": {
            "reason": {"type": "string", "description": "The reason, exactly."},
            "type": {"type": "string", "enum": ["lookup-enrich", "escalate", "plan"]}
        },
        "examples": [{"reason": "Missing ISIN", "type": "lookup-enrich"}]
    })
}

fn pipeline_page() -> Value {
    json!({
        "type": "object",
        "description": "Pipelines, by name.",
        "required": ["items", "nextCursor"],
        "properties": {
            "items": {"type": "array", "items": {"$ref": "#/components/schemas/PipelineSummary"}},
            "nextCursor": {"type": ["string", "null"]}
        },
        "examples": [{"items": [], "nextCursor": null}]
    })
}

fn pipeline_answer() -> Value {
    let mut properties = summary_properties();
    properties["addresses"] = json!({"$ref": "#/components/schemas/PipelineAddresses"});
    properties["port"] = json!({
        "type": "integer",
        "description": "The port of a listener of its own, as its file says it; 0: a free one."
    });
    properties["requestTimeoutMs"] = json!({
        "type": "integer",
        "description": "How long a request is waited for."
    });
    let fields = |about: &str| {
        json!({
            "type": "array", "description": about, "items": {"type": "string"}
        })
    };
    properties["allowedFields"] = fields("The fields that are kept of a body.");
    properties["requiredFields"] = fields("The fields that are required.");
    properties["plan"] = json!({"type": "string", "description": "The plan that a case runs."});
    properties["agent"] = json!({"type": "string", "description": "The agent of that plan."});
    let mut required: Vec<&str> = SUMMARY_REQUIRED.to_vec();
    required.extend(["addresses", "requestTimeoutMs", "allowedFields", "requiredFields"]);
    required.extend(["plan", "agent"]);
    let mut example = summary_example();
    example["addresses"] = addresses_example();
    example["port"] = json!(8080);
    example["requestTimeoutMs"] = json!(10_000);
    example["allowedFields"] = json!(["tradeId", "reason", "altIds"]);
    example["requiredFields"] = json!(["tradeId", "reason"]);
    example["plan"] = json!("pipeline/trade-failures");
    example["agent"] = json!("pipeline/trade-failures");
    json!({
        "type": "object",
        "description": "A pipeline with all that its file says, secrets left out.",
        "required": required,
        "properties": properties,
        "examples": [example]
    })
}

fn addresses_example() -> Value {
    json!({"inbound": "trade.failures", "agent": "agent.required", "events": "events.out"})
}

fn pipeline_addresses() -> Value {
    json!({
        "type": "object",
        "required": ["inbound", "agent", "events"],
        "properties": {
            "inbound": {"type": "string", "description": "Where cases come in."},
            "agent": {"type": "string", "description": "Where the agent is."},
            "events": {"type": "string", "description": "The source of its events."}
        },
        "examples": [addresses_example()]
    })
}

fn pipeline_stats() -> Value {
    json!({
        "type": "object",
        "description": "Which roads a pipeline's cases took.",
        "required": ["pipeline", "total", "deterministic", "agent", "handlers", "unknown"],
        "properties": {
            "pipeline": {"type": "string"},
            "total": {"type": "integer", "description": "How many cases came."},
            "deterministic": {"type": "integer", "description": "How many a handler took."},
            "agent": {"type": "integer", "description": "How many the agent took."},
            "share": {
                "type": "number",
                "description": "The part that took the deterministic path, from 0 to 1; absent \
                                before the first case."
            },
            "handlers": {
                "type": "array",
                "description": "The handlers, the busiest first.",
                "items": {"$ref": "#/components/schemas/HandlerCount"}
            },
            "unknown": {
                "type": "array",
                "description": "The reasons that no handler took, the most frequent first.",
                "items": {"$ref": "#/components/schemas/ReasonCount"}
            }
        },
        "examples": [{
            "pipeline": "trade-failures", "total": 4, "deterministic": 3, "agent": 1,
            "share": 0.75,
            "handlers": [{"reason": "Missing ISIN", "type": "lookup-enrich", "count": 3,
                "lastAt": "2026-11-15T02:17:25.123Z"}],
            "unknown": [{"reason": "LEI not found in registry", "count": 1,
                "lastAt": "2026-11-15T02:18:00.000Z"}]
        }]
    })
}

fn handler_count() -> Value {
    json!({
        "type": "object",
        "required": ["reason", "type", "count"],
        "properties": {
            "reason": {"type": "string"},
            "type": {
                "type": "string",
                "description": "What it does; `removed` if it is not there any more."
            },
            "count": {"type": "integer"},
            "lastAt": {"type": "string", "format": "date-time"}
        },
        "examples": [{"reason": "Missing ISIN", "type": "lookup-enrich", "count": 3,
            "lastAt": "2026-11-15T02:17:25.123Z"}]
    })
}

fn reason_count() -> Value {
    json!({
        "type": "object",
        "required": ["reason", "count", "lastAt"],
        "properties": {
            "reason": {"type": "string", "description": "`(others)`: those that are too many."},
            "count": {"type": "integer"},
            "lastAt": {"type": "string", "format": "date-time"}
        },
        "examples": [{"reason": "LEI not found in registry", "count": 1,
            "lastAt": "2026-11-15T02:18:00.000Z"}]
    })
}

fn case_body() -> Value {
    json!({
        "type": "object",
        "description": "A case. The pipeline says which fields are kept and which are required.",
        "examples": [{"tradeId": "T-100", "reason": "Missing ISIN"}]
    })
}

/// The case's id stands beside these, under the name that the pipeline gives it.
fn case_answer() -> Value {
    json!({
        "type": "object",
        "description": "What came of a case; the agent's answers have the case's id too, under \
                        the name of `caseIdField`.",
        "properties": {
            "status": {"type": "string", "enum": ["ok", "error"]},
            "path": {"type": "string", "enum": ["deterministic", "agent"]},
            "resultEvent": {"description": "The event that a handler published."},
            "result": {"description": "The result of the last tool, or a plan's answer."},
            "reason": {"type": "string", "description": "The limit that stopped the agent."}
        },
        "examples": [
            {"status": "ok", "path": "deterministic", "resultEvent": {"type": "TradeRepaired",
                "tradeId": "T-100", "by": "deterministic-processor",
                "details": {"action": "lookup+enrich ISIN"}}},
            {"status": "error", "path": "agent", "tradeId": "T-200",
                "reason": "Step limit reached (safety stop)"}
        ]
    })
}

fn pending_case() -> Value {
    json!({
        "type": "object",
        "description": "A case that waits for a person's answer, with its id under the name of \
                        `caseIdField`.",
        "required": ["status", "path"],
        "properties": {
            "status": {"const": "pending"},
            "path": {"type": "string", "enum": ["deterministic", "agent"]},
            "ask": {"$ref": "#/components/schemas/Ask"}
        },
        "examples": [{"status": "pending", "path": "agent", "tradeId": "T-200"}]
    })
}
