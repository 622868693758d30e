//! The realms beside the one that every server has. A project's files are theirs too, as far as
//! they fit there: the files are right once they fit where the servers behind this one are, so what
//! does not fit elsewhere is left out there and told, and keeps nothing from being served.

use crate::gateway::left_out;
use engine::{Engine, ProjectFiles};
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::realm::Realms;
use kernel::values::ids::RealmId;
use project::realm::default_realm;

/// Their names.
pub(crate) fn names(realms: &Realms) -> impl Iterator<Item = &RealmId> {
    let usual = default_realm();
    realms.0.keys().filter(move |realm| **realm != usual)
}

/// One of them has these files from now on, in place of those before. Gives warnings of the files
/// that are left out; what is stored stays.
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
