//! The types that are served now. They change as a whole while the server runs.

use kernel::values::ids::RealmId;
use project::folder::ProjectTypes;
use query::types::{RealmTypes, TypeSet};
use std::sync::{Arc, PoisonError, RwLock};

pub(crate) struct ServedTypes(RwLock<Served>);

struct Served {
    declared: Arc<ProjectTypes>,
    /// As callers know them: with the built-in ones.
    known: RealmTypes,
}

impl ServedTypes {
    pub(crate) fn new(declared: ProjectTypes) -> Self {
        let known = declared.known();
        Self(RwLock::new(Served { declared: Arc::new(declared), known }))
    }

    #[cfg(test)]
    pub(super) fn knowing(known: RealmTypes) -> Self {
        Self(RwLock::new(Served { declared: Arc::default(), known }))
    }

    /// Those that a realm knows.
    pub(crate) fn of(&self, realm: &RealmId) -> Arc<TypeSet> {
        let served = self.0.read().unwrap_or_else(PoisonError::into_inner);
        served.known.of(realm).clone()
    }

    /// What the files say that were taken last.
    pub(super) fn declared(&self) -> Arc<ProjectTypes> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).declared.clone()
    }

    /// Serves these from now on.
    pub(super) fn replace(&self, declared: ProjectTypes) {
        let known = declared.known();
        let served = Served { declared: Arc::new(declared), known };
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = served;
    }
}
