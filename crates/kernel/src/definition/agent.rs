//! Agents: stored configuration. A model with a task, the tools that it may see, and what it may
//! spend. A run pins the version that it began with.

use crate::tool::rules::Pattern;
use crate::values::ids::{AgentName, ContentHash, PlanId, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tool that every agent has: it asks the person who talks to it.
pub const CLARIFY: &str = "request_clarification";

/// What the ids of plans begin with by which agents are talked to. No other plan has such an id.
pub const TALKS: &str = "agent/";

pub fn talk_id(agent: &AgentName) -> PlanId {
    PlanId::from(format!("{TALKS}{agent}"))
}

/// A checked agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Its stable name: `refName`.
    pub name: AgentName,
    /// Its name for people.
    pub title: String,
    /// Shown to people and to the router.
    pub description: String,
    /// The model that acts: `llmConfigRef`.
    pub model: Arc<str>,
    /// The model that routes, where it is another one.
    pub router_model: Option<Arc<str>>,
    /// Whether its model speaks in commands, and the output of a call is its answer: `mode`.
    pub commands: bool,
    /// Whether requests are routed first: where it has types of tools, unless told otherwise.
    pub routed: bool,
    /// The model's instructions, in order.
    pub prompt: Vec<PromptStep>,
    /// The tools that it may see; all where this is none. `enabledTools`.
    pub enabled: Option<Vec<Pattern>>,
    /// The types that its tools come in; a tool of no type is invisible, where there are types.
    pub types: BTreeMap<String, ToolType>,
    /// The tools that a person approves, whatever policy says.
    pub approve: Vec<Pattern>,
    /// Limits per run.
    pub limits: AgentLimits,
    /// The time zone of its users, where it is not the server's.
    pub zone: Option<String>,
    /// The agent as JSON: what a run pins and what is shown.
    pub source: Arc<Value>,
    /// Hash of `source`.
    pub hash: ContentHash,
}

/// One piece of a model's instructions, which stand before the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptStep {
    pub role: PromptRole,
    /// A text with `{{ placeholders }}`.
    pub content: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptRole {
    /// The operator.
    #[default]
    System,
    /// As if a person said it.
    User,
    /// As if the model said it.
    Assistant,
}

/// A type of tools, which the router allows or not.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolType {
    /// What such tools are for, for the router.
    pub description: String,
    pub tools: Vec<Pattern>,
}

/// What an agent may spend in one run. A limit reached is an honest answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// How many turns of its model; commands, where it speaks in them.
    pub steps: u32,
    /// How many tokens, read and written.
    pub tokens: Option<u64>,
    /// How much money, in millionths of a dollar. Where the price is not known nothing is counted.
    pub cost_micros: Option<u64>,
    /// How long, waits for people not counted.
    pub time_ms: Option<u64>,
    /// How often it may make the very same call.
    pub repeats: u32,
    /// From how many tokens on a conversation is compacted.
    pub compact_tokens: Option<u64>,
    /// How many of the newest turns compaction leaves as they are.
    pub keep_turns: u32,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            steps: 20,
            tokens: None,
            cost_micros: None,
            time_ms: None,
            repeats: 3,
            compact_tokens: None,
            keep_turns: 4,
        }
    }
}

impl AgentLimits {
    /// What holds for an agent that speaks in commands: no one but `steps` ends what goes in
    /// circles.
    pub fn of_commands() -> Self {
        Self { repeats: u32::MAX, ..Self::default() }
    }
}

impl Agent {
    /// Whether it sees this tool, where the router allowed these types.
    pub fn sees(&self, tool: &ToolName, allowed: Option<&[String]>) -> bool {
        let within =
            |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.fits(tool.as_str()));
        if self.enabled.as_deref().is_some_and(|enabled| !within(enabled)) {
            return false;
        }
        if self.types.is_empty() {
            return true;
        }
        let mut types = self.types.iter();
        types.any(|(name, kind)| {
            within(&kind.tools) && allowed.is_none_or(|allowed| allowed.contains(name))
        })
    }

    /// Whether a person approves this tool's calls.
    pub fn asks_before(&self, tool: &ToolName) -> bool {
        self.approve.iter().any(|pattern| pattern.fits(tool.as_str()))
    }
}
