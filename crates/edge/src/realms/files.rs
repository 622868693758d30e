//! A project's files in the realms beside the one that every server has. Files of the project's
//! root are theirs too, as far as they fit there: these are right once they fit where the servers
//! behind this one are, so what does not fit elsewhere is left out there and told, and keeps
//! nothing from being served. A realm's own files must fit into that realm.

use crate::gateway::left_out;
use engine::refusal::Refusal;
use engine::{CheckedFiles, Engine};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::realm::Realms;
use kernel::values::ids::RealmId;
use project::folder::RealmFiles;
use project::realm::default_realm;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The names of these realms.
pub fn names(realms: &Realms) -> impl Iterator<Item = &RealmId> {
    let usual = default_realm();
    realms.0.keys().filter(move |realm| **realm != usual)
}

/// The files that are served now. A realm that is made while the server runs gets them as well.
pub struct ServedFiles(Mutex<RealmFiles>);

impl ServedFiles {
    /// Serves these first.
    pub fn new(files: RealmFiles) -> Self {
        Self(Mutex::new(files))
    }

    /// Locked as long as realms get them, so that none is left with what was served before.
    fn files(&self) -> MutexGuard<'_, RealmFiles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves these from now on, to all these realms but those that keep what they have. Gives
    /// warnings of files that are left out.
    pub fn replace(
        &self,
        engine: &Engine,
        realms: &Realms,
        files: &RealmFiles,
        kept: &BTreeSet<RealmId>,
    ) -> Vec<Mistake> {
        let mut served = self.files();
        *served = files.clone();
        let warnings_of = |realm: &RealmId| {
            let (warnings, wrong) = take(engine, realm, files);
            warnings.into_iter().chain(wrong.into_iter().map(left_out))
        };
        names(realms).filter(|realm| !kept.contains(*realm)).flat_map(warnings_of).collect()
    }

    /// Gives a realm that was made just now what the files bring and what is stored for it: a realm
    /// of that name may have been configured before. Gives warnings of all that does not fit.
    pub async fn bring(&self, engine: &Engine, realm: &RealmId) -> Result<Vec<Mistake>, Refusal> {
        // Twice: what is stored may name what the files bring, and the other way round.
        take(engine, realm, &self.files());
        engine.catalog().load_stored_agents(realm).await?;
        engine.catalog().load_stored_plans(realm).await?;
        let (warnings, wrong) = take(engine, realm, &self.files());
        Ok(warnings.into_iter().chain(wrong.into_iter().map(left_out)).collect())
    }
}

/// What files bring to a realm.
struct RealmDefinitions {
    filed: CheckedFiles,
    /// Warnings of files of the project's root that do not fit there.
    left_out: Vec<Mistake>,
    /// What is wrong with the realm's own files.
    mistakes: Vec<Mistake>,
}

fn fitting(engine: &Engine, realm: &RealmId, files: &RealmFiles) -> RealmDefinitions {
    let (filed, wrong) = engine.catalog().read_fitting_files(realm, &files.of(realm));
    let is_own = |mistake: &Mistake| files.is_own(realm, mistake.file.as_deref());
    let (mistakes, others): (Vec<_>, Vec<_>) = wrong.into_iter().partition(is_own);
    let left = |mistake: Mistake| left_out(said_of(realm, "left out in", mistake));
    RealmDefinitions { filed, left_out: others.into_iter().map(left).collect(), mistakes }
}

/// What is wrong with the own files of these realms.
pub fn check(engine: &Engine, realms: &Realms, files: &RealmFiles) -> Vec<Mistake> {
    let with_own = names(realms).filter(|realm| files.own.contains_key(*realm));
    with_own.flat_map(|realm| fitting(engine, realm, files).mistakes).collect()
}

/// A realm has these files from now on, in place of those before; what is stored stays. Gives
/// warnings of files that are left out, and what is wrong with the realm's own, which are left out
/// too.
pub fn take(engine: &Engine, realm: &RealmId, files: &RealmFiles) -> (Vec<Mistake>, Vec<Mistake>) {
    let RealmDefinitions { filed, left_out, mistakes } = fitting(engine, realm, files);
    engine.catalog().set_files(realm, filed);
    (left_out, mistakes)
}

/// The same mistake, with the realm that it is made in.
pub fn said_of(realm: &RealmId, how: &str, mistake: Mistake) -> Mistake {
    let message = format!("{how} the realm `{realm}`: {}", mistake.message);
    Mistake { message, ..mistake }
}
