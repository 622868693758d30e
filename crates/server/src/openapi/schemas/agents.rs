//! Agents.

use super::Named;
use serde_json::{Value, json};

pub(super) fn schemas() -> Vec<Named> {
    vec![
        ("Agent", agent()),
        ("AgentList", agent_list()),
        ("AgentSummary", agent_summary()),
        ("AgentPage", agent_page()),
        ("AgentAnswer", agent_answer()),
        ("AgentDeleted", agent_deleted()),
    ]
}

/// Only what is required has a type: what else is said is checked when it is stored, and what
/// others keep beside it is given back as it came.
fn agent() -> Value {
    json!({
        "type": "object",
        "description": "An agent as JSON; keys that are not listed are kept and given back.",
        "required": ["refName", "llmConfigRef"],
        "properties": {
            "id": {"description": "Its id at `/api/agent/config`; made if absent."},
            "refName": {"type": "string", "description": "Letters, digits, `_`, `.` and `-`."},
            "name": {"description": "Its name for people."},
            "description": {"description": "What it is for, for people and for the router."},
            "llmConfigRef": {"type": "string", "description": "The model that acts."},
            "routerLlmConfigRef": {"description": "The model that routes; the same if absent."},
            "router": {"description": "Whether requests are routed first; if it has types."},
            "promptSteps": {
                "description": "The model's instructions: `[{order?, role?, content}]`, where a \
                    text may use {{ now }}, {{ zone }}, {{ agent }} and {{ tools }}."
            },
            "context": {"description": "Another word for `promptSteps`."},
            "enabledTools": {"description": "Patterns of the tools it may see; all if absent."},
            "tool_types": {
                "description": "Types of tools: `{type: [patterns]}` or `{type: {description, \
                    tools}}`; with types a tool of no type is invisible."
            },
            "approve": {"description": "Patterns of the tools that a person approves."},
            "limits": {
                "description": "What one run may take: steps, tokens, money, time, repeats, \
                    compact_tokens, keep_turns."
            },
            "zone": {"description": "The time zone of its users, an IANA name."}
        },
        "examples": [
            example(),
            {"refName": "helper", "llmConfigRef": "openai", "enabledTools": ["query_find"],
             "context": [{"order": 1, "role": "system", "content": "Be brief."}]}
        ]
    })
}

fn example() -> Value {
    json!({
        "refName": "diary", "name": "Diary",
        "description": "Looks after a calendar", "llmConfigRef": "openai",
        "promptSteps": [{"order": 1, "role": "system", "content": "It is {{ now }}."}],
        "tool_types": {"calendar": ["list_events", "create_event"]},
        "approve": ["create_event"],
        "limits": {"steps": 8, "money": 0.25, "time": "5m"}
    })
}

fn agent_list() -> Value {
    json!({
        "type": "array",
        "description": "Agents, by name.",
        "items": {"$ref": "#/components/schemas/Agent"},
        "examples": [[example()]]
    })
}

fn summary_properties() -> Value {
    json!({
        "refName": {"type": "string"},
        "name": {"type": "string", "description": "Its name for people."},
        "description": {"type": "string"},
        "llmConfigRef": {"type": "string", "description": "The model that acts."},
        "toolTypes": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The types that its tools come in."
        },
        "fromFile": {
            "type": "boolean",
            "description": "Whether a file of the project brings it; then it is changed there."
        },
        "version": {"type": "integer", "minimum": 1, "description": "Where it is stored."},
        "default": {
            "type": "boolean",
            "description": "Whether requests that name no agent are for this one."
        },
        "hash": {"type": "string"}
    })
}

const REQUIRED: [&str; 8] =
    ["refName", "name", "description", "llmConfigRef", "toolTypes", "fromFile", "default", "hash"];

fn summary_example() -> Value {
    json!({
        "refName": "diary", "name": "Diary",
        "description": "Looks after a calendar", "llmConfigRef": "openai",
        "toolTypes": ["calendar"], "fromFile": false, "version": 3, "default": true,
        "hash": "c19f0695b711e8d46015f7e3cc9b92dd804cc0c604c51db44b4574da2b8a1125"
    })
}

fn agent_summary() -> Value {
    json!({
        "type": "object",
        "description": "An agent in a list.",
        "required": REQUIRED,
        "properties": summary_properties(),
        "examples": [summary_example()]
    })
}

fn agent_page() -> Value {
    json!({
        "type": "object",
        "description": "Agents, by name.",
        "required": ["items", "nextCursor"],
        "properties": {
            "items": {"type": "array", "items": {"$ref": "#/components/schemas/AgentSummary"}},
            "nextCursor": {"type": ["string", "null"]}
        },
        "examples": [{"items": [], "nextCursor": null}]
    })
}

fn agent_answer() -> Value {
    let mut properties = summary_properties();
    properties["agent"] = json!({"$ref": "#/components/schemas/Agent"});
    let mut shown = summary_example();
    shown["agent"] = example();
    json!({
        "type": "object",
        "description": "An agent with its JSON.",
        "required": REQUIRED,
        "properties": properties,
        "examples": [shown]
    })
}

fn agent_deleted() -> Value {
    json!({
        "type": "object",
        "description": "What was removed, by the name that the path gave.",
        "required": ["deleted"],
        "properties": {
            "deleted": {"type": "boolean"},
            "refName": {"type": "string"},
            "id": {"type": "string"}
        },
        "examples": [
            {"deleted": true, "refName": "diary"},
            {"deleted": true, "id": "6571a1f0c2a4d5e6f7081920"}
        ]
    })
}
