//! The contract of a dialect: it renders a request from a prompt and parses the response, event by
//! event or as a whole. Transport is not its concern.

use crate::config::ModelConfig;
use crate::provider_error::ProviderError;
use kernel::conversation::llm::{DeltaSink, Prompt, Turn};
use outbound::sse::Event;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// A provider's way of speaking.
pub(crate) trait Dialect: Send + Sync {
    /// Reads its answers.
    type Reply: Reply;

    fn request(&self, prompt: &Prompt) -> Request;

    /// A reader of the answer to this prompt.
    fn reply(&self, prompt: &Prompt) -> Self::Reply;

    /// Classifies an unsuccessful response. A body that is not JSON comes as its text.
    fn classify_error(&self, status: u16, body: &Value) -> ProviderError;
}

/// Settings of a model that are the same for every turn.
#[derive(Default)]
pub(crate) struct Settings {
    /// The provider's name for the model.
    pub(crate) model: String,
    /// How many tokens an answer may have, its thoughts included.
    pub(crate) max_tokens: Option<u32>,
    /// How freely it answers.
    pub(crate) temperature: Option<f64>,
}

impl Settings {
    /// The settings of a model that its provider calls so.
    pub(crate) fn new(config: &ModelConfig, model: &str) -> Self {
        let ModelConfig { max_tokens, temperature, .. } = *config;
        Self { model: model.to_owned(), max_tokens, temperature }
    }
}

pub(crate) struct Request {
    pub(crate) body: Value,
    /// Headers beside those that go with every request.
    pub(crate) headers: HeaderMap,
}

impl Request {
    /// A request with nothing but a body.
    pub(crate) fn new(body: Value) -> Self {
        Self { body, headers: HeaderMap::new() }
    }
}

pub(crate) type Result<T, E = Fault> = std::result::Result<T, E>;

/// Reads one answer.
pub(crate) trait Reply: Send {
    /// Takes the next event of a stream.
    fn event(&mut self, event: &Event, sink: &dyn DeltaSink) -> Result<Flow>;

    /// Takes an answer that came as a whole.
    fn whole(&mut self, body: &Value, sink: &dyn DeltaSink) -> Result<()>;

    /// The turn; an error if its end has not come.
    fn finish(self) -> Result<Turn>;
}

/// Whether more events are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The end has not come.
    More,
    /// That was the end marker.
    Done,
}

/// Why an answer is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The provider reported an error in the middle of its answer.
    Provider(ProviderError),
    /// It cannot be read, and why.
    Unreadable(String),
    /// It ended before it was whole.
    Cut,
}

impl Fault {
    /// It cannot be read.
    pub(crate) fn unreadable(why: impl Into<String>) -> Self {
        Fault::Unreadable(why.into())
    }
}

pub(crate) fn read_json(event: &Event) -> Result<Value> {
    serde_json::from_str(&event.data)
        .map_err(|error| Fault::unreadable(format!("has an event that is no JSON: {error}")))
}
