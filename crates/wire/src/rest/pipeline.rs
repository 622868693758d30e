//! Pipelines: known reasons go to handlers, all others to an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A pipeline in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineSummary {
    /// Its stable name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The path at which cases come in.
    pub route: String,
    /// The field of a body that names the case.
    pub case_id_field: String,
    /// The reasons that it knows.
    pub handlers: Vec<PipelineHandler>,
    /// The tools that its agent may call.
    pub tools: Vec<String>,
    /// The model of its agent, by name.
    pub llm: String,
}

/// A known reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PipelineHandler {
    /// The reason, exactly.
    pub reason: String,
    /// What is done.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["lookup-enrich", "escalate", "plan"]))]
    pub kind: String,
}

/// A pipeline with all that its file says, secrets left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineAnswer {
    /// What a list shows of it.
    #[serde(flatten)]
    pub summary: PipelineSummary,
    /// The names of its parts.
    pub addresses: PipelineAddresses,
    /// The port of a listener of its own, as its file says it; 0 is a free one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// How long a request is waited for.
    pub request_timeout_ms: u64,
    /// The fields that are kept of a body.
    pub allowed_fields: Vec<String>,
    /// The fields that are required.
    pub required_fields: Vec<String>,
    /// The plan that a case runs.
    pub plan: String,
    /// The agent of that plan.
    pub agent: String,
}

/// The names under which a pipeline's parts are known to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PipelineAddresses {
    /// Where cases come in.
    pub inbound: String,
    /// Where the agent is.
    pub agent: String,
    /// The source of its events.
    pub events: String,
}

/// Which paths a pipeline's cases took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineStats {
    /// The pipeline.
    pub pipeline: String,
    /// How many cases came.
    pub total: u64,
    /// How many of them a handler took.
    pub deterministic: u64,
    /// How many of them the agent took.
    pub agent: u64,
    /// The part that took the deterministic path, from 0 to 1; absent before the first case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The handlers, the busiest first.
    pub handlers: Vec<HandlerCount>,
    /// The reasons that no handler took, the most frequent first.
    pub unknown: Vec<ReasonCount>,
}

/// How often a handler was needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandlerCount {
    /// Its reason.
    pub reason: String,
    /// What it does; `removed` for one that is not there any more.
    #[serde(rename = "type")]
    pub kind: String,
    /// How many cases.
    pub count: u64,
    /// When last; absent where it was never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_at: Option<String>,
}

/// How often a reason came that no handler takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasonCount {
    /// The reason; `(others)`: those that are too many.
    pub reason: String,
    /// How many cases.
    pub count: u64,
    /// When last.
    #[schemars(extend("format" = "date-time"))]
    pub last_at: String,
}

/// A case. The pipeline says which fields are kept and which are required.
#[derive(JsonSchema)]
pub struct CaseBody(pub Map<String, Value>);
