//! Tool calls as values: specs, the gate's judgement, outputs, errors, and how far a call got.

mod abilities;
mod blobs;
mod judgement;

pub use abilities::Abilities;
pub use blobs::{BlobError, CallBlobs, KeepBlobs, Pieces};
pub use judgement::{Judgement, Verdict};

use crate::values::canonical;
use crate::values::datum::BlobRef;
use crate::values::fault::Fault;
use crate::values::ids::{CallId, ContentHash, RunId, SessionKey, ToolName};
use crate::values::is_default;
use crate::values::named_enum::named;
use crate::values::trace::TraceParent;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

pub use crate::tool::reporter::{CallReporter, CallUpdate, Listener, LogLevel};
pub use crate::values::caller::{Answerers, Caller, Scopes};

named! {
    /// The effect of a tool. Declared, or assumed to be the worst.
    Reach {
        /// Changes nothing: may be repeated at will.
        Reads = "reads",
        /// Changes something: never repeated when its outcome is unknown, unless idempotent.
        Writes = "writes",
        /// Runs code: follows the rule for writes.
        Runs = "runs",
    }
}

named! {
    /// How long a tool takes, as far as it knows. A slow one is a run that a caller can come back
    /// to.
    #[derive(Default)]
    Pace {
        /// The caller waits for it.
        #[default]
        Quick = "quick",
        /// A caller that takes tasks gets one at once; others wait.
        Slow = "slow",
        /// Only callers that take tasks can call it.
        Task = "task",
    }
}

impl Pace {
    /// All of them, by name.
    pub const NAMES: [(&'static str, Pace); 3] =
        [("quick", Pace::Quick), ("slow", Pace::Slow), ("task", Pace::Task)];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputKind {
    /// Any value; its schema, if there is one, describes it.
    #[default]
    Value,
    /// Blocks of content: `{content: [..], structuredContent?, isError?}` in MCP's shape, so that
    /// nothing is lost on the way. The output schema describes `structuredContent`.
    Content,
}

/// The spec of a tool, which every endpoint shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// Its stable name.
    pub name: ToolName,
    /// A short title for people.
    pub title: String,
    /// Shown to people and models.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Arc<Value>,
    /// JSON Schema of its output, if it promises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<Value>>,
    pub reach: Reach,
    /// Whether a repeat with the same key has no further effect.
    pub idempotent: bool,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How long it takes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pace: Pace,
    #[serde(default, skip_serializing_if = "is_default")]
    pub yields: OutputKind,
    /// A direct call of it is never kept as a run, whatever it does to the world. Only a call that
    /// a person must approve is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unrecorded: bool,
    /// The listing as its server wrote it, for endpoints that pass it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<Arc<Value>>,
}

/// The server that a tool is of, where it is not ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// Its name in this project.
    pub name: Arc<str>,
    pub speaks: UpstreamProtocol,
}

/// What is spoken with an upstream, as far as observers are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamProtocol {
    Mcp {
        /// Its version, once that is agreed on.
        version: Option<Arc<str>>,
    },
    Other,
}

/// Our own tools on records: those that only read, and those that write.
const RECORD_READERS: [&str; 4] = ["query_rootTypes", "query_plan", "query_find", "query_count"];
const RECORD_WRITERS: [&str; 3] = ["query_save", "query_delete", "query_deleteMany"];

impl ToolSpec {
    /// Whether it is one of our own tools that only read records.
    pub fn only_reads_records(&self) -> bool {
        let is_own = self.listed.is_none() && self.unrecorded && self.reach == Reach::Reads;
        is_own && RECORD_READERS.contains(&self.name.as_str())
    }

    /// Whether it is one of our own tools that store the outcome of a call under its id, with what
    /// the call asked for.
    pub fn writes_records(&self) -> bool {
        let is_own = self.listed.is_none() && self.unrecorded && self.idempotent;
        is_own && RECORD_WRITERS.contains(&self.name.as_str())
    }

    /// The hash that a started call pins.
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(self.pinned_text().as_bytes())
    }

    /// The text that the hash is made of, and that is kept of what a call pins. Keys are sorted: a
    /// server that lists the same in another order is pinned the same.
    pub fn pinned_text(&self) -> String {
        let sorted = |schema: &Arc<Value>| Arc::new(canonical::sorted(schema));
        let spec = Self {
            input_schema: sorted(&self.input_schema),
            output_schema: self.output_schema.as_ref().map(sorted),
            listed: self.listed.as_ref().map(sorted),
            ..self.clone()
        };
        // These are plain data; writing them as JSON cannot fail.
        serde_json::to_string(&spec).unwrap_or_default()
    }

    /// The reach of one call: `http::request` with GET reads, with POST writes.
    pub fn pins(&self) -> Pins {
        Pins { spec: self.hash(), reach: self.reach, idempotent: self.idempotent }
    }
}

/// What a started call pins of its tool; recovery uses this, not the tool of the day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    /// Hash of the tool's spec.
    pub spec: ContentHash,
    /// Effect of this call.
    pub reach: Reach,
    /// Whether it may be repeated under its key.
    pub idempotent: bool,
}

impl Pins {
    /// Whether a call whose outcome is unknown may be sent again without asking.
    pub fn repeatable(&self) -> bool {
        self.reach == Reach::Reads || self.idempotent
    }
}

/// One call as a tool sees it.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its id, and the idempotency key to send.
    pub id: CallId,
    pub tool: ToolName,
    /// The resolved arguments.
    pub arguments: Arc<Value>,
    /// How long it may take.
    pub timeout_ms: u64,
    /// How many bytes its output may have.
    pub output_bytes_max: usize,
    /// The answers to what it wanted when it was called before.
    pub given: Arc<InputResponses>,
    pub can: Abilities,
    /// Whom it may tell how far it is.
    pub teller: CallReporter,
    pub context: CallContext,
}

/// Where a call runs and what it may use.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// The session, where it is part of a run.
    pub session: Option<SessionKey>,
    pub run: Option<RunId>,
    /// The call's own span, for the next call.
    pub trace: Option<TraceParent>,
    /// Through how many agents its run came.
    pub hops: u32,
    /// Where the events go that it publishes.
    pub publisher: Publisher,
    /// Storage for large outputs.
    pub blobs: CallBlobs,
    /// The principal that the realm acts as, where it acts as one.
    pub acts_as: Option<Arc<str>>,
}

/// Takes what a call publishes. It counts once the call's result is recorded, and not before.
#[derive(Debug, Clone, Default)]
pub struct Publisher(Option<Arc<Mutex<Vec<Value>>>>);

impl Publisher {
    /// One for a call whose result is recorded.
    pub fn recorded() -> Self {
        Self(Some(Arc::default()))
    }

    /// Publishes an event with the call's result: an object whose `type` is a text. A call that is
    /// not recorded cannot.
    pub fn publish(&self, event: Value) -> Result<(), ToolError> {
        let Some(events) = &self.0 else {
            let message = "a call that is not recorded cannot publish";
            return Err(ToolError::not_sent("NotRecorded", message));
        };
        events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        Ok(())
    }

    /// Takes the events published so far.
    pub fn take(&self) -> Vec<Value> {
        let take = |events: &Arc<Mutex<Vec<Value>>>| {
            std::mem::take(&mut *events.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.0.as_ref().map(take).unwrap_or_default()
    }
}

named! {
    /// How far a failed call got.
    CallProgress {
        NotSent = "not_sent",
        /// The tool said that it failed.
        Failed = "failed",
        /// No one knows: timeout, connection lost after sending, crash.
        Unknown = "unknown",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ToolOutput {
    Value(Value),
    /// Its output, as the JSON text in a blob that it put: `CallContext::blobs`.
    Blob(BlobRef),
    /// It needs something of its caller first. Nothing happened yet: it is called again with the
    /// outcome, and may want more.
    Wants(Box<InputRequired>),
}

/// What a tool needs before it can continue. One that needs nothing has begun, and continues
/// elsewhere under its state: it is called again to learn the outcome, and however often it is
/// called with that state, nothing happens twice. Only a caller that can come back learns so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequired {
    /// By the tool's own keys.
    pub inputs: BTreeMap<String, InputRequest>,
    /// State to be returned with the input. Whoever carries it can read it but not change it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub state: Value,
}

/// One thing that a tool needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum InputRequest {
    /// A form that a person fills in.
    Form {
        message: String,
        /// JSON Schema of the answer: an object of plain fields.
        schema: Arc<Value>,
    },
    /// A page that a person opens.
    Url {
        message: String,
        /// The page.
        url: String,
    },
    /// A turn of the caller's model.
    Sample {
        /// The request, in MCP's shape.
        request: Arc<Value>,
    },
    /// The folders that the caller works in.
    Roots,
}

impl InputRequest {
    /// Whether a program of the caller answers it, and no person.
    pub fn is_for_a_program(&self) -> bool {
        matches!(self, InputRequest::Sample { .. } | InputRequest::Roots)
    }
}

/// The answer to what a tool wanted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InputResponses {
    /// The answers so far, by the tool's keys: for a form or a page `{action, content?}`, else what
    /// the caller's side answered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Value>,
    /// The errors of JSON-RPC with which the caller's side answered instead, by the tool's keys:
    /// `{code, message, data?}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, Value>,
    /// The state that it handed out.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub state: Value,
}

/// The server's own error, verbatim, for endpoints that pass it on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RawFailure {
    /// A result that says so: `{content: [..], isError: true}` in MCP's shape.
    Result(Value),
    /// An error of its protocol: `{code, message, data?}`.
    Error(Value),
    /// That it asked for what its caller lacks, which each protocol has its own words for.
    Lacks(Abilities),
    /// How a server of plain JSON-RPC answered: `{httpStatus, body, error?, resultType?}`. Only a
    /// proxy passes that on.
    Reply(Value),
}

/// Why a tool call failed, and how far it got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    /// How far it got.
    pub how: CallProgress,
    pub fault: Fault,
    /// The server's own error, if it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Box<RawFailure>>,
    /// Abilities that the caller lacks, if that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<Abilities>,
}

impl ToolError {
    pub fn new(how: CallProgress, fault: Fault) -> Self {
        Self { how, fault, said: None, lacks: None }
    }
    /// Nothing was sent.
    pub fn not_sent(name: &str, message: impl Into<String>) -> Self {
        Self::new(CallProgress::NotSent, Fault::new(name, message))
    }
    /// The tool said that it failed.
    pub fn failed(name: &str, message: impl Into<String>) -> Self {
        Self::new(CallProgress::Failed, Fault::new(name, message))
    }
    /// No one knows whether it happened.
    pub fn unknown(name: &str, message: impl Into<String>) -> Self {
        Self::new(CallProgress::Unknown, Fault::new(name, message))
    }
    /// The same error with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.fault.hint = Some(hint.into());
        self
    }
    /// The same error with more for programs.
    #[must_use]
    pub fn detail(mut self, detail: Map<String, Value>) -> Self {
        self.fault = self.fault.detail(detail);
        self
    }
    /// The same error, as one that may be over a little later.
    #[must_use]
    pub fn passing(mut self) -> Self {
        self.fault.passing = true;
        self
    }
    /// The same error of a call whose caller lacks these.
    #[must_use]
    pub fn lacks(mut self, lacks: Abilities) -> Self {
        self.lacks = Some(lacks);
        self
    }
    /// Takes out what is kept of it for who called directly: what the other side said, else what
    /// its caller lacks.
    pub fn take_own_words(&mut self) -> Option<RawFailure> {
        let said = self.said.take().map(|said| *said);
        said.or(self.lacks.map(RawFailure::Lacks))
    }
    /// The same error with the result in which the tool said so.
    #[must_use]
    pub fn content(mut self, result: Value) -> Self {
        self.said = Some(Box::new(RawFailure::Result(result)));
        self
    }
    /// The same error with how a server of plain JSON-RPC answered, unless more is known.
    #[must_use]
    pub fn replied(mut self, reply: Value) -> Self {
        self.said = self.said.or_else(|| Some(Box::new(RawFailure::Reply(reply))));
        self
    }
    /// The same error with the error of its protocol by which the other side said so.
    #[must_use]
    pub fn answered(mut self, error: Value) -> Self {
        self.said = Some(Box::new(RawFailure::Error(error)));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_does_not_depend_on_the_order_of_keys() {
        let written = concat!(
            r#"{"name":"a","title":"","description":"","#,
            r#""inputSchema":{"type":"object","properties":{"b":{},"a":{}}},"#,
            r#""reach":"reads","idempotent":true,"listed":{"y":1,"x":2}}"#,
        );
        let hashed = concat!(
            r#"{"name":"a","title":"","description":"","#,
            r#""inputSchema":{"properties":{"a":{},"b":{}},"type":"object"},"#,
            r#""reach":"reads","idempotent":true,"listed":{"x":2,"y":1}}"#,
        );
        let spec: ToolSpec = serde_json::from_str(written).unwrap();
        assert_eq!(spec.pinned_text(), hashed);
        assert_eq!(spec.hash(), ContentHash::of(hashed.as_bytes()));
    }
}
