//! Pipelines: the deterministic path with a model where it ends. A case comes in with a reason; a
//! known one goes to its handler, an unknown one to an agent that writes commands. A pipeline is
//! read from a file and compiled to a plan and an agent, so that a case runs like anything else.

use crate::definition::reasons::Reasons;
use crate::values::canonical;
use crate::values::ids::{AgentName, Millis, PipelineName, PlanId, SessionId};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// What the names begin with of all that a pipeline brings: its plan, its agent, its own model. No
/// other plan or agent has such a name.
pub const PIPELINES: &str = "pipeline/";

/// The reason under which cases are counted whose own would be one too many.
pub const OTHER_REASONS: &str = "(others)";

/// A checked pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// Its name: its file's, unless it says another one.
    pub name: PipelineName,
    /// Shown to people.
    pub description: String,
    pub addresses: Addresses,
    /// The path of its HTTP route.
    pub route: String,
    /// The port of a listener of its own, where it has one; 0 lets the system choose.
    pub port: Option<u16>,
    /// How long a request is waited for.
    pub request_timeout_ms: u64,
    pub schema: CaseSchema,
    /// The reasons that it knows, each with what is done then.
    pub handlers: Vec<Handler>,
    /// The tools that its agent may call, by their names in the catalog: that is consent.
    pub tools: Vec<String>,
    /// Decides cases that no handler takes.
    pub llm: PipelineLlm,
    /// The plan that it comes down to.
    pub plan: PlanId,
    pub plan_source: Arc<Value>,
    /// The agent of that plan.
    pub agent: AgentName,
    pub agent_source: Arc<Value>,
}

/// The names under which a pipeline's parts are known to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// Where cases come in.
    pub inbound: String,
    pub agent: String,
    /// The source of its events.
    pub events: String,
}

/// What a case's body looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseSchema {
    /// The field that names the case.
    pub case_id_field: String,
    /// The field that says why it came; `reason`.
    pub reason_field: String,
    /// The fields that are kept; all others are dropped.
    pub allowed: Vec<String>,
    /// The fields that are required and must not be null.
    pub required: Vec<String>,
    /// How many characters a case's id may have.
    pub id_chars_max: usize,
}

/// Known reasons and what is done then.
#[derive(Debug, Clone, PartialEq)]
pub struct Handler {
    pub reasons: Reasons,
    pub kind: HandlerKind,
    /// The type of the event that it publishes, where the file names one.
    pub event: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandlerKind {
    /// Publishes that the case is repaired by this identifier. It looks nothing up itself.
    LookupEnrich { identifier: String },
    /// Publishes that the case is escalated.
    Escalate,
    /// Runs a plan with the case's body.
    Plan(PlanId),
}

impl HandlerKind {
    /// Its type, as a pipeline's file names it.
    pub fn name(&self) -> &'static str {
        match self {
            HandlerKind::LookupEnrich { .. } => "lookup-enrich",
            HandlerKind::Escalate => "escalate",
            HandlerKind::Plan(_) => "plan",
        }
    }
}

/// Decides cases that no handler takes.
#[derive(Clone, PartialEq)]
pub enum PipelineLlm {
    /// A model of the project, by its name.
    Named(Arc<str>),
    /// A model of its own, under this name: what the file says of it, to be opened where
    /// models are opened. `type` is `stub`, `rules`, `openai`, `anthropic` or `gemini`.
    Own {
        /// The name that the agent knows it by.
        name: Arc<str>,
        kind: String,
        params: Map<String, Value>,
    },
}

impl PipelineLlm {
    /// The name that the agent knows it by.
    pub fn name(&self) -> &Arc<str> {
        match self {
            PipelineLlm::Named(name) | PipelineLlm::Own { name, .. } => name,
        }
    }
}

/// What a model is opened with may be a secret: it is not shown.
impl fmt::Debug for PipelineLlm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PipelineLlm::Named(name) => f.debug_tuple("Named").field(name).finish(),
            PipelineLlm::Own { name, kind, params: _ } => f
                .debug_struct("Own")
                .field("name", name)
                .field("kind", kind)
                .finish_non_exhaustive(),
        }
    }
}

/// A case that a pipeline takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub id: String,
    /// Its body, with the allowed fields only.
    pub input: Value,
    /// The reason, as a text.
    pub reason: String,
    /// The handler that takes it, by its place among the pipeline's; an agent does where there is
    /// none.
    pub handler: Option<usize>,
}

/// Why a body is not taken, in the words that clients of such pipelines know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCase {
    /// It is no JSON object.
    #[error("Expected JSON body")]
    NoObject,
    /// These required fields are not there, or null.
    #[error("Missing required field(s): {}", .0.join(", "))]
    Missing(Vec<String>),
    /// This field cannot name the case: it is empty, too long, has control characters, begins as
    /// our own ids do, is a number that is not whole or has too many digits, a list or an object.
    #[error("`{0}` cannot name a case: write a short text that does not begin with `ses_`")]
    BadId(String),
}

/// Which path a case took: for counting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    pub pipeline: PipelineName,
    /// Whether a handler took it.
    pub deterministic: bool,
    /// The reason; a long one is cut.
    pub reason: Arc<str>,
}

/// How often a path was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TallyRow {
    /// Whether a handler took it.
    pub deterministic: bool,
    pub reason: String,
    /// How many cases.
    pub count: u64,
    pub last_at: Millis,
}

impl Pipeline {
    /// The case that a body is, if it can be taken. What is not allowed in it is dropped.
    pub fn admit(&self, body: &Value) -> Result<Case, BadCase> {
        let schema = &self.schema;
        let fields = body.as_object().ok_or(BadCase::NoObject)?;
        let is_missing = |name: &&String| fields.get(*name).is_none_or(Value::is_null);
        let missing: Vec<String> = schema.required.iter().filter(is_missing).cloned().collect();
        if !missing.is_empty() {
            return Err(BadCase::Missing(missing));
        }
        let kept = |name: &String| Some((name.clone(), fields.get(name)?.clone()));
        let input: Map<String, Value> = schema.allowed.iter().filter_map(kept).collect();
        let id = fields.get(&schema.case_id_field).and_then(as_word);
        let id = id.filter(|id| is_id(id, schema.id_chars_max));
        let id = id.ok_or_else(|| BadCase::BadId(schema.case_id_field.clone()))?;
        let reason = fields.get(&schema.reason_field).unwrap_or(&Value::Null);
        // As the plan decides it: only a text can be a handler's reason.
        let said = reason.as_str();
        let takes = |handler: &Handler| said.is_some_and(|reason| handler.reasons.take(reason));
        let handler = self.handlers.iter().position(takes);
        // What is counted under it must not depend on the order of its members.
        let written = || canonical::sorted(reason).to_string();
        let reason = said.map_or_else(written, str::to_owned);
        Ok(Case { id, input: Value::Object(input), reason, handler })
    }
}

impl Tally {
    /// The path that a case takes; its reason has so many characters at most.
    pub fn of(pipeline: &Pipeline, case: &Case, reason_chars_max: usize) -> Self {
        let reason: String = case.reason.chars().take(reason_chars_max).collect();
        Self {
            pipeline: pipeline.name.clone(),
            deterministic: case.handler.is_some(),
            reason: reason.into(),
        }
    }
}

/// A text, or what is written like one.
fn as_word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        // Of any other number digits were lost when it was read: two cases would be one.
        Value::Number(number) if number.is_u64() || number.is_i64() => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether a session can have this key.
fn is_id(text: &str, chars_max: usize) -> bool {
    let fits = !text.is_empty() && text.chars().count() <= chars_max;
    fits && !text.chars().any(char::is_control) && !text.starts_with(SessionId::PREFIX)
}
