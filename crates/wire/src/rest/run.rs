//! Runs, sessions and what lists of them look like.

use super::ask::Ask;
use super::problem::Fault;
use crate::thread::RequestState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A run to start: one of `planId`, `plan` and `agent`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunBody {
    /// A plan that comes with the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object"))]
    pub plan: Option<Value>,
    /// A plan of the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// An agent to talk to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The run's input, `{}` if absent; for an agent a text, or `{user_request}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The session: `ses_..`, or the client's own key, made if there is none; a new one if absent.
    /// For an agent, the thread that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Something moves.
    Running,
    /// A person is asked.
    Waiting,
    /// A step failed and a person is asked.
    Stuck,
    /// Someone paused it.
    Paused,
    /// Over, with an answer.
    Completed,
    /// Over, without.
    Failed,
    /// Over, because someone said so.
    Cancelled,
}

impl Status {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Waiting => "waiting",
            Status::Stuck => "stuck",
            Status::Paused => "paused",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }

    /// Whether the run is over for good.
    pub fn is_over(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Cancelled)
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// `run_..`.
    pub id: String,
    /// Its session, `ses_..`.
    pub session: String,
    /// Its plan.
    pub plan: String,
    /// Where it stands.
    pub status: Status,
    /// The step it is at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Its answer, once completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Fault>,
    /// Its open asks.
    pub asks: Vec<Ask>,
    /// When it began.
    #[schemars(extend("format" = "date-time"))]
    pub started_at: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub ended_at: Option<String>,
    /// The limit that stopped its agent, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// What it cost.
    pub cost: Cost,
}

/// What a run cost; empty where no model was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Turns of models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub turns: Option<u32>,
    /// Tokens that they read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Those of them that came from a provider's cache, where any did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub cached_tokens: Option<u64>,
    /// Those of them that a provider wrote to its cache, where it counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub cache_written_tokens: Option<u64>,
    /// Tokens that they wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Dollars, as far as prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    /// Dollars that caches saved, as far as prices are known; below zero where writing to them cost
    /// more than was saved. Absent where no cache was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_dollars: Option<f64>,
    /// Turns whose price no one knows, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub unpriced_turns: Option<u32>,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// `ses_..`.
    pub id: String,
    /// Whose it is.
    pub realm: String,
    /// The family of endpoints that it belongs to.
    pub space: String,
    /// The client's own key, or its id where the client chose none.
    pub key: String,
    /// The status of its latest run; `running` before the first.
    pub status: Status,
    /// Its latest run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// That run's plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Where that run stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What went wrong there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Fault>,
    /// The ids of its open asks.
    pub asks: Vec<String>,
    /// When it began.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// When its last event was recorded.
    #[schemars(extend("format" = "date-time"))]
    pub updated_at: String,
    /// Why it is not driven for now, if it is parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<Parked>,
    /// Its conversation, where it is a thread and shown by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<RequestState>,
}

/// Why a session is not driven for now: what was recorded of it cannot be read. Only a parked
/// session has it; `status` is the one that was recorded last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parked {
    /// What cannot be read, and why.
    pub reason: String,
    /// When the server tries to read it again.
    #[schemars(extend("format" = "date-time"))]
    pub until: String,
}

/// A run with its session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunAnswer {
    /// The run.
    pub run: Run,
    /// Its session.
    pub session: Session,
}

/// The ask with the decision, and its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyAnswer {
    /// The ask with the decision.
    pub ask: Ask,
    /// The run, once it ended or paused again.
    pub run: Run,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins: opaque; null on the last page.
    pub next_cursor: Option<String>,
}

/// A finished tool call in a session's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// `call_..`.
    pub call: String,
    /// The run that made it.
    pub run: String,
    /// The step that made it.
    pub step: String,
    /// The tool.
    pub tool: String,
    /// What it was given.
    pub arguments: Value,
    /// Its output, if it succeeded; a large one as a blob's URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// When it finished.
    #[schemars(extend("format" = "date-time"))]
    pub finished_at: String,
}

/// A session's context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextAnswer {
    /// Key to value; large values as blob URIs.
    pub context: Map<String, Value>,
}

/// Up to where a session is copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkBody {
    /// The sequence of the last event to copy; the newest if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub at: Option<u64>,
}

/// What goes: sessions that are over, or never had a run; of other sessions runs that are over, the
/// newest excepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PruneBody {
    /// How long no one must have touched a session, or how long a run must be over.
    pub older_than_ms: u64,
}

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PruneAnswer {
    /// Whole sessions.
    pub sessions: u64,
    /// Runs of sessions that stay.
    pub runs: u64,
    /// Rows of the store, those of the sessions and runs included.
    pub rows: u64,
}

/// How the server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Which question it answers, and yes.
    #[schemars(extend("enum" = ["live", "ready", "UP"]))]
    pub status: String,
    /// Which server it is; `/livez` says so to a client that sends a challenge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
    /// Whether what the project's files say now is wrong and not served; `/readyz?verbose` says so
    /// to who reads in all realms.
    #[serde(rename = "reloadRefused", default, skip_serializing_if = "Option::is_none")]
    pub reload_refused: Option<bool>,
    /// What of it is not served: `policies`, `principals`, `files` for plans, agents, pipelines and
    /// rules, or `realms/<name>` for the files of one realm.
    #[serde(rename = "reloadRefusedOf", default, skip_serializing_if = "Vec::is_empty")]
    pub reload_refused_of: Vec<String>,
}

/// Which server answers, for a client that sends a challenge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Instance {
    /// sha256 over the server's token, a space and the challenge; the token is in the file
    /// `address` of the data folder.
    pub proof: String,
    /// Its process, for administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The folder that holds its data, for administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}
