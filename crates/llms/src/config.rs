//! Configuration of a model as plain data. Crate `project` parses it from files.

use kernel::values::secret::Secret;
use std::path::PathBuf;

/// One model, by the name that agents use for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Its name in this project: an agent's `llmConfigRef`.
    pub name: String,
    pub kind: ModelKind,
    /// How many tokens one answer may have; the provider's own bound where this is none.
    pub max_tokens: Option<u32>,
    /// How freely it answers.
    pub temperature: Option<f64>,
    /// How long one turn may take.
    pub timeout_ms: Option<u64>,
    /// `None` for the built-in list price.
    pub price: Option<Price>,
    /// Where it is configured, for messages: `waypost.toml:12`.
    pub origin: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ModelKind {
    /// Rule-based, with the rules in a file.
    Rules {
        text: String,
        /// For messages.
        file: PathBuf,
    },
    /// Chat completions as OpenAI has them; many servers speak that.
    OpenAi(Remote),
    /// Messages as Anthropic has them.
    Anthropic(Remote),
    /// `generateContent` as Gemini has it.
    Gemini(Remote),
}

/// A model behind a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Remote {
    /// The provider's name for it.
    pub model: String,
    /// Where the provider is; its own address where this is none.
    pub base_url: Option<String>,
    /// The key, where one is needed.
    pub key: Option<Secret>,
    /// Headers that go with every request.
    pub headers: Vec<(String, Secret)>,
}

/// What a model costs, in millionths of a dollar per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Per million tokens read.
    pub input: u64,
    /// Per million tokens read from a cache.
    pub cached: u64,
    /// Per million tokens read and written to a cache.
    pub cache_written: u64,
    /// Per million tokens written.
    pub output: u64,
}
