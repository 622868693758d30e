//! Bodies of drafts: plans that a model writes for a goal.

use super::catalog::{PlanMistake, PlanSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a plan is wanted for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DraftBody {
    /// What the plan is for, in words.
    pub goal: String,
    /// The model that writes it; the one called `default`, or the only one, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Patterns of the tools that it may use, such as `crm.*`; all that the caller sees if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Whether a plan is written even if one fits the goal already.
    #[serde(default)]
    pub fresh: bool,
}

/// Plans for a goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DraftAnswer {
    /// Plans that fit the goal already, best first; where there are some, none was written.
    pub existing: Vec<PlanSummary>,
    /// What the model wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<PlanDraft>,
}

/// A plan that a model wrote. It is not kept and does not run by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanDraft {
    /// Whether it can be run.
    pub valid: bool,
    /// The plan as JSON; null where the last answer had none.
    pub plan: Value,
    /// What must be mended.
    pub errors: Vec<PlanMistake>,
    /// What has no effect.
    pub warnings: Vec<PlanMistake>,
    /// What it does to the world, if it can be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["reads", "writes", "runs"]))]
    pub reach: Option<String>,
    /// The steps in it that may change something, and the rules that may.
    #[serde(default)]
    pub writes: Vec<DraftWrite>,
    /// The plan as a Mermaid flowchart, if it can be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// Hash of what it does, if it can be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The model that wrote it.
    pub model: String,
    /// How many turns of the model that took.
    pub turns: u32,
    /// How many tokens the model read.
    pub input_tokens: u64,
    /// How many tokens the model wrote.
    pub output_tokens: u64,
    /// What it cost in millionths of a dollar, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

/// A step that may change something, by itself or by a plan that corrects it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DraftWrite {
    /// The step; the plan's first one for a rule of the whole plan.
    pub step: String,
    /// The tool, plan or agent that it calls; `publish_event` where it publishes an event.
    pub calls: String,
    /// What that does to the world.
    #[schemars(extend("enum" = ["reads", "writes", "runs"]))]
    pub reach: String,
    /// Whether a person is asked first, each time.
    pub approve: bool,
}
