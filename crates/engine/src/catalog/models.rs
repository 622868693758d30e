//! The models of this project, by the names that agents know them by. They can be replaced while
//! turns are under way: those end with the model that they began with.

use kernel::conversation::llm::{Llm, Usage};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What a turn cost, in millionths of a dollar; none where the price is not known.
pub type Price = Arc<dyn Fn(&Usage) -> Option<u64> + Send + Sync>;

/// One model.
#[derive(Clone)]
pub struct Model {
    pub llm: Arc<dyn Llm>,
    /// How long one turn may take, where that is not `turn_timeout_ms`.
    pub timeout_ms: Option<u64>,
    /// `None` if the price is unknown.
    pub price: Option<Price>,
    /// Provider by the GenAI conventions: `openai`, `anthropic`.
    pub provider: Option<Arc<str>>,
    /// The model, by the name that its provider knows.
    pub provider_model: Option<Arc<str>>,
}

/// All models, by name: an agent's `llmConfigRef`.
#[derive(Clone, Default)]
pub struct Models {
    by_name: BTreeMap<Arc<str>, Model>,
}

impl Model {
    /// A model with the usual timeout and no known price.
    pub fn new(llm: Arc<dyn Llm>) -> Self {
        Self { llm, timeout_ms: None, price: None, provider: None, provider_model: None }
    }
}

impl Models {
    /// The same models with one more, or with another one of that name.
    #[must_use]
    pub fn with(mut self, name: impl Into<Arc<str>>, model: Model) -> Self {
        self.by_name.insert(name.into(), model);
        self
    }

    pub fn get(&self, name: &str) -> Option<&Model> {
        self.by_name.get(name)
    }

    /// Those of them that have a name which passes.
    #[must_use]
    pub(crate) fn only(&self, passes: impl Fn(&str) -> bool) -> Self {
        let models = self.by_name.iter().filter(|(name, _)| passes(name));
        models.map(|(name, model)| (name.clone(), model.clone())).collect()
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(|name| &**name)
    }
}

impl FromIterator<(Arc<str>, Model)> for Models {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Model)>>(models: I) -> Self {
        Self { by_name: models.into_iter().collect() }
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}
