//! The contract of models: prompts, turns, failures. One contract for all providers; wire formats
//! are in their adapters.

use crate::values::ids::Millis;
use crate::values::is_default;
use crate::values::named_enum::named;
use crate::values::trace::TraceParent;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A model behind some provider, or a rule-based one.
pub trait Llm: Send + Sync {
    /// One turn: one request, one answer. It is never repeated in here; dropping the future
    /// cancels it. What comes before the answer is whole goes to the sink.
    fn turn<'a>(
        &'a self,
        prompt: &'a Prompt,
        sink: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<Turn, LlmError>>;
}

/// The models that exist as soon as a key is set, and the variable of each key.
pub const MODELS_BY_KEY: [(&str, &str); 3] = [
    ("openai", "OPENAI_API_KEY"),
    ("anthropic", "ANTHROPIC_API_KEY"),
    ("gemini", "GOOGLE_API_KEY"),
];

/// What to do about such a model that does not exist; none for any other.
pub fn missing_key(model: &str) -> Option<String> {
    let (_, variable) = MODELS_BY_KEY.into_iter().find(|(name, _)| *name == model)?;
    Some(format!("set `{variable}` in the environment or in `.env`, and start the server again"))
}

/// Hears a turn while it is made. It must not block.
pub trait DeltaSink: Send + Sync {
    /// This came.
    fn delta(&self, delta: Delta);
}

/// Hears nothing.
pub struct NullDeltaSink;

impl DeltaSink for NullDeltaSink {
    fn delta(&self, _delta: Delta) {}
}

/// A piece of a turn that is being made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// A tool call begins: the tool's name, as the model says it.
    Call(String),
}

/// What a model is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The conversation, what the system says first.
    pub messages: Vec<Message>,
    /// The tools that it may call.
    pub tools: Vec<ToolCard>,
    /// Whether it may call them.
    pub choice: ToolChoice,
    /// The form of its answer, where it must have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerForm>,
    /// What changes from turn to turn, in words. It stands behind everything else, so that all
    /// before it is as it was in the turn before, and a provider can take that from its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<String>,
    /// The moment that it takes for now.
    pub now: Millis,
    /// The time zone of its user: an IANA name.
    pub zone: String,
    /// The turn's own span, for the provider. It is no part of what is asked.
    #[serde(skip)]
    pub trace: Option<TraceParent>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// What the operator says.
    System { text: String },
    /// What a person says.
    User { text: String },
    /// What the model said.
    Assistant {
        /// In words; empty where it only called tools.
        text: String,
        /// The tools that it called. Each has exactly one result in the messages after it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ModelCall>,
        /// Provider-specific members that must be returned to that provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<Arc<Native>>,
    },
    /// The outcome of one call.
    Result {
        /// The call's id.
        id: String,
        /// The tool, by the name that the model called.
        tool: String,
        /// Its instructions.
        text: String,
        /// Whether that is a failure.
        failed: bool,
    },
}

/// A tool call that a model made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// Its id in the conversation: letters, digits, `_` and `-`, at most 40.
    pub id: String,
    /// The tool, by the name that the model said.
    pub tool: String,
    /// The arguments: an object, unless the model wrote something else. A text that cannot
    /// be read as JSON comes as that text.
    pub arguments: Arc<Value>,
}

/// What a provider wants to be given back: signatures of its thoughts and the like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Native {
    /// Whose it is; no one else gets it.
    pub provider: String,
    pub content: Value,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCard {
    /// Its name, in letters that every provider takes: `[A-Za-z0-9_-]`, at most 64.
    pub name: String,
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Arc<Value>,
}

/// Whether a model may call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must call at least one.
    Required,
}

/// The form of an answer: JSON by a schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerForm {
    /// A short name for it: `[A-Za-z0-9_-]`.
    pub name: String,
    /// Its JSON Schema: an object whose fields are all required, with no others.
    pub schema: Arc<Value>,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Turn {
    /// In words; the JSON text where a form was asked for.
    #[serde(default)]
    pub text: String,
    /// The tools that it calls. Their ids are the provider's own; they may repeat.
    #[serde(default)]
    pub calls: Vec<ModelCall>,
    #[serde(default)]
    pub stop: Stop,
    #[serde(default)]
    pub usage: Usage,
    /// Provider-specific members that must be returned.
    pub native: Option<Arc<Native>>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// It is done, or calls tools.
    #[default]
    Done,
    /// Its answer became too long: what there is may be cut off anywhere.
    Length,
    /// It, or its provider, refuses.
    Refused,
}

/// What a turn took, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, including those from a cache.
    pub input: u64,
    /// How much of that came from a cache.
    #[serde(default)]
    pub cached: u64,
    /// How much of it was written to a cache.
    #[serde(default, rename = "cacheWritten", skip_serializing_if = "is_default")]
    pub cache_written: u64,
    /// Tokens written, including thoughts.
    pub output: u64,
}

impl Usage {
    /// The same tokens, had there been no cache. None where there was none.
    pub fn uncached(self) -> Option<Self> {
        let has_cache = self.cached > 0 || self.cache_written > 0;
        has_cache.then_some(Self { cached: 0, cache_written: 0, ..self })
    }
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LlmError {
    /// The kind of failure.
    pub kind: LlmErrorKind,
    /// In words: who failed and why. Never a key.
    pub message: String,
    pub hint: Option<String>,
    /// How long the provider wants us to wait.
    pub retry_after_ms: Option<u64>,
}

named! {
    /// How a turn can fail, by the name of the fault that it is then.
    LlmErrorKind {
        /// No one answers there, or the connection broke before the answer was whole.
        Unreachable = "ModelUnreachable",
        /// It took too long.
        Timeout = "ModelTimeout",
        /// Too many requests.
        RateLimited = "ModelRateLimited",
        /// The provider cannot right now.
        Overloaded = "ModelOverloaded",
        /// The key is missing, wrong, or may not do this.
        Unauthorized = "ModelUnauthorized",
        /// No money is left there.
        Quota = "ModelQuota",
        /// There is no such model.
        NoSuchModel = "NoSuchModel",
        /// The conversation is longer than the model reads.
        TooLong = "PromptTooLong",
        /// The provider will not answer this.
        Refused = "ModelRefused",
        /// The provider did not take the request.
        BadRequest = "ModelBadRequest",
        /// The answer is unreadable.
        Unreadable = "ModelUnreadable",
    }
}

impl LlmErrorKind {
    /// Whether the same turn may do better a moment later.
    pub fn may_pass(self) -> bool {
        match self {
            LlmErrorKind::Unreachable
            | LlmErrorKind::Timeout
            | LlmErrorKind::RateLimited
            | LlmErrorKind::Overloaded
            | LlmErrorKind::Unreadable => true,
            LlmErrorKind::Unauthorized
            | LlmErrorKind::Quota
            | LlmErrorKind::NoSuchModel
            | LlmErrorKind::TooLong
            | LlmErrorKind::Refused
            | LlmErrorKind::BadRequest => false,
        }
    }
}

impl LlmError {
    /// This went wrong.
    pub fn new(kind: LlmErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, retry_after_ms: None }
    }

    /// The same error with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error with the wait that the provider wants.
    #[must_use]
    pub fn retry_after_ms(mut self, ms: Option<u64>) -> Self {
        self.retry_after_ms = ms;
        self
    }
}
