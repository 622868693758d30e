//! Why a server could not be built.

use crate::secrets::secret::SecretError;
use a2a::CardKeyError;
use engine::refusal::Refusal;
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::exposure::StartRefusal;
use project::folder::mistake_lines;
use stores::{Holder, OpenError};

/// Why a server could not be built.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The secret key cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A key that signs agent cards cannot be used.
    #[error(transparent)]
    CardKeys(#[from] CardKeyError),
    /// A part of the project cannot be used.
    #[error("{}", mistake_lines(.mistakes))]
    Mistakes {
        part: ProjectPart,
        /// What is wrong with it.
        mistakes: Vec<Mistake>,
    },
    /// Others could reach the server, and it could not tell them apart.
    #[error(transparent)]
    Start(#[from] StartRefusal),
    /// What is stored cannot be used.
    #[error("{0}")]
    Stored(String),
}

/// A part of a project in which mistakes keep a server from being built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectPart {
    /// What is said of upstreams.
    Upstreams,
    Models,
    /// The sinks of events.
    Sinks,
    /// The tools: two have one name, or one cannot be used.
    Tools,
    Agents,
    Plans,
    Pipelines,
    Principals,
    Policies,
    /// The types of records, their first records, and what is stored of them.
    Types,
    /// The files of single realms.
    Realms,
}

impl AssembleError {
    /// Who holds the data folder, where that is why.
    pub fn holder(&self) -> Option<&Holder> {
        let AssembleError::Store(OpenError::Held { holder, .. }) = self else { return None };
        Some(holder)
    }

    /// Whether the reason is that the store lost acknowledged writes.
    pub fn went_back(&self) -> bool {
        matches!(self, AssembleError::Store(OpenError::WentBack { .. }))
    }

    /// The mistakes, each where it stands; one without a place where there are none.
    pub(crate) fn into_mistakes(self) -> Vec<Mistake> {
        match self {
            AssembleError::Mistakes { mistakes, .. } => mistakes,
            AssembleError::Start(refusal) => {
                vec![Mistake::error(refusal.message).hint(refusal.hint)]
            }
            AssembleError::Store(_)
            | AssembleError::Secret(_)
            | AssembleError::CardKeys(_)
            | AssembleError::Stored(_) => vec![Mistake::error(self.to_string())],
        }
    }
}

pub(super) fn wrong(part: ProjectPart) -> impl Fn(Vec<Mistake>) -> AssembleError {
    move |mistakes| AssembleError::Mistakes { part, mistakes }
}

/// What is stored cannot be used, for this reason.
pub(super) fn stored(refusal: Refusal) -> AssembleError {
    let hint = refusal.hint.map(|hint| format!("; hint: {hint}")).unwrap_or_default();
    AssembleError::Stored(format!("{}{hint}", refusal.message))
}
