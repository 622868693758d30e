//! Why a server could not be built.

use crate::secrets::secret::SecretError;
use engine::refusal::Refusal;
use kernel::definition::plan::mistake::Mistake;
use project::folder::told;
use stores::{Holder, OpenError};

/// Why a server could not be built.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// What is said of upstreams is wrong.
    #[error("{}", told(.0))]
    Upstreams(Vec<Mistake>),
    /// A model cannot be used.
    #[error("{}", told(.0))]
    Models(Vec<Mistake>),
    /// A sink cannot be used.
    #[error("{}", told(.0))]
    Sinks(Vec<Mistake>),
    /// Two tools have one name, or one cannot be used.
    #[error("{}", told(.0))]
    Tools(Vec<Mistake>),
    /// The secret key cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The project's agents are wrong.
    #[error("{}", told(.0))]
    Agents(Vec<Mistake>),
    /// The project's plans are wrong.
    #[error("{}", told(.0))]
    Plans(Vec<Mistake>),
    /// The project's pipelines are wrong.
    #[error("{}", told(.0))]
    Pipelines(Vec<Mistake>),
    /// What is stored cannot be used.
    #[error("{0}")]
    Stored(String),
}

impl AssembleError {
    /// Who holds the data folder, where that is why.
    pub fn holder(&self) -> Option<&Holder> {
        let AssembleError::Store(OpenError::Held { holder, .. }) = self else { return None };
        Some(holder)
    }

    /// The mistakes, each where it stands; one without a place where there are none.
    pub(crate) fn into_mistakes(self) -> Vec<Mistake> {
        match self {
            AssembleError::Upstreams(mistakes)
            | AssembleError::Models(mistakes)
            | AssembleError::Sinks(mistakes)
            | AssembleError::Tools(mistakes)
            | AssembleError::Agents(mistakes)
            | AssembleError::Plans(mistakes)
            | AssembleError::Pipelines(mistakes) => mistakes,
            AssembleError::Store(_) | AssembleError::Secret(_) | AssembleError::Stored(_) => {
                vec![Mistake::error(self.to_string())]
            }
        }
    }
}

/// What is stored cannot be used, for this reason.
pub(super) fn stored(refusal: Refusal) -> AssembleError {
    let hint = refusal.hint.map(|hint| format!("; hint: {hint}")).unwrap_or_default();
    AssembleError::Stored(format!("{}{hint}", refusal.message))
}
