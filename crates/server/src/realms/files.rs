//! A project's files in the realms beside the one that every server has. The files are theirs too,
//! as far as they fit there: the files are right once they fit where the servers behind this one
//! are, so what does not fit elsewhere is left out there and told, and keeps nothing from being
//! served.

use crate::gateway::left_out;
use engine::refusal::Refusal;
use engine::{Engine, ProjectFiles};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::realm::Realms;
use kernel::values::ids::RealmId;
use project::realm::default_realm;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The names of these realms.
pub(crate) fn names(realms: &Realms) -> impl Iterator<Item = &RealmId> {
    let usual = default_realm();
    realms.0.keys().filter(move |realm| **realm != usual)
}

/// The files that are served now. A realm that is made while the server runs gets them as well.
pub(crate) struct ServedFiles(Mutex<ProjectFiles>);

impl ServedFiles {
    /// Serves these first.
    pub(crate) fn new(files: ProjectFiles) -> Self {
        Self(Mutex::new(files))
    }

    /// Locked as long as realms get them, so that none is left with what was served before.
    fn held(&self) -> MutexGuard<'_, ProjectFiles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves these from now on, to all these realms. Gives warnings of files that are left out.
    pub(crate) fn replace(
        &self,
        engine: &Engine,
        realms: &Realms,
        files: ProjectFiles,
    ) -> Vec<Mistake> {
        let mut held = self.held();
        *held = files;
        names(realms).flat_map(|realm| take_files(engine, realm, &held)).collect()
    }

    /// Gives a realm that was made just now what the files bring and what is stored for it: a realm
    /// of that name may have been configured before.
    pub(crate) async fn bring(
        &self,
        engine: &Engine,
        realm: &RealmId,
    ) -> Result<Vec<Mistake>, Refusal> {
        // Twice: what is stored may name what the files bring, and the other way round.
        take_files(engine, realm, &self.held());
        engine.catalog().load_stored_agents(realm).await?;
        engine.catalog().load_stored_plans(realm).await?;
        Ok(take_files(engine, realm, &self.held()))
    }
}

/// A realm has these files from now on, in place of those before. Gives warnings of the files that
/// are left out; what is stored stays.
pub(crate) fn take_files(engine: &Engine, realm: &RealmId, files: &ProjectFiles) -> Vec<Mistake> {
    let (filed, wrong) = engine.catalog().read_fitting_files(realm, files);
    engine.catalog().set_files(realm, filed);
    let left = |mistake: Mistake| left_out(said_of(realm, "left out in", mistake));
    wrong.into_iter().map(left).collect()
}

/// The same mistake, with the realm that it is made in.
pub(crate) fn said_of(realm: &RealmId, how: &str, mistake: Mistake) -> Mistake {
    let message = format!("{how} the realm `{realm}`: {}", mistake.message);
    Mistake { message, ..mistake }
}
