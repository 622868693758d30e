//! The names of attributes and operations, in the words of OpenTelemetry's conventions for
//! generative AI where they have one. The crate that publishes them marks these as moved, so they
//! stand here.

/// Names of attributes.
pub(crate) mod key {
    pub(crate) const OPERATION: &str = "gen_ai.operation.name";
    pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
    pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
    pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
    pub(crate) const FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
    pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    pub(crate) const CACHED_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
    pub(crate) const CACHE_WRITTEN_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
    pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
    pub(crate) const AGENT: &str = "gen_ai.agent.name";
    pub(crate) const WORKFLOW: &str = "gen_ai.workflow.name";
    pub(crate) const TOOL: &str = "gen_ai.tool.name";
    pub(crate) const TOOL_CALL: &str = "gen_ai.tool.call.id";
    pub(crate) const ERROR_TYPE: &str = "error.type";
    pub(crate) const MCP_METHOD: &str = "mcp.method.name";
    pub(crate) const MCP_VERSION: &str = "mcp.protocol.version";
    /// Langfuse and others group traces by it.
    pub(crate) const SESSION: &str = "session.id";
    /// What Langfuse calls a trace; else it takes the name of a root that it may never see.
    pub(crate) const LANGFUSE_NAME: &str = "langfuse.trace.name";
    pub(crate) const SERVICE_NAME: &str = "service.name";
    pub(crate) const SERVICE_VERSION: &str = "service.version";
    pub(crate) const SDK_NAME: &str = "telemetry.sdk.name";
    pub(crate) const SDK_LANGUAGE: &str = "telemetry.sdk.language";
    pub(crate) const SDK_VERSION: &str = "telemetry.sdk.version";
    pub(crate) const OUR_REALM: &str = "waypost.realm";
    pub(crate) const OUR_SUBJECT: &str = "waypost.subject";
    pub(crate) const OUR_ACTOR: &str = "waypost.actor";
    pub(crate) const OUR_RUN: &str = "waypost.run";
    pub(crate) const OUR_STATUS: &str = "waypost.run.status";
    pub(crate) const OUR_SESSION: &str = "waypost.session";
    pub(crate) const OUR_SPACE: &str = "waypost.space";
    pub(crate) const OUR_PLAN: &str = "waypost.plan";
    pub(crate) const OUR_STEP: &str = "waypost.step";
    pub(crate) const OUR_UPSTREAM: &str = "waypost.upstream";
    pub(crate) const OUR_COST: &str = "waypost.cost_micros";
    pub(crate) const OUR_REACH: &str = "waypost.reach";
    pub(crate) const OUR_OUTCOME: &str = "waypost.call.outcome";
    pub(crate) const OUR_MODEL: &str = "waypost.model";
    pub(crate) const OUR_TURN: &str = "waypost.turn.kind";
    pub(crate) const OUR_TURNS: &str = "waypost.turns";
    pub(crate) const OUR_CALLS: &str = "waypost.calls";
    pub(crate) const OUR_STOPPED: &str = "waypost.stopped";
    pub(crate) const OUR_ASK: &str = "waypost.ask";
    pub(crate) const OUR_ASK_KIND: &str = "waypost.ask.kind";
    pub(crate) const OUR_ASK_ENDING: &str = "waypost.ask.ending";
}

/// Names of operations; spans are called by them.
pub(crate) mod operation {
    pub(crate) const WORKFLOW: &str = "invoke_workflow";
    pub(crate) const AGENT: &str = "invoke_agent";
    pub(crate) const CHAT: &str = "chat";
    pub(crate) const TOOL: &str = "execute_tool";
    /// The conventions have no word for it.
    pub(crate) const WAIT: &str = "human_wait";
}

pub(crate) const MCP_CALL: &str = "tools/call";

/// Names of errors.
pub(crate) mod error {
    /// Error type of a tool of an upstream that reports a failure.
    pub(crate) const TOOL_FAILED: &str = "ToolFailed";
    /// Its name in the conventions for MCP.
    pub(crate) const MCP_TOOL: &str = "tool_error";
}

/// Name of the instrumentation scope.
pub(crate) const SCOPE: &str = "waypost";
