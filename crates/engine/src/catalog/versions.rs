//! Version counters of the catalog: one over all realms, by which cached lists are invalidated, and
//! for each realm one of all changes and one per list, for clients that wait. A change that is not
//! visible in a realm does not change its counters.

use super::{Catalog, ListChanges, RealmPlans};
use crate::catalog::registry::ToolSource;
use kernel::definition::plan::mistake::Mistake;
use kernel::values::ids::RealmId;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use tokio::sync::watch;

impl Catalog {
    /// A number that grows with every change of what is there for a realm.
    pub(crate) fn version(&self, realm: &RealmId) -> watch::Receiver<u64> {
        self.change(realm, |known| known.listed.subscribe())
    }

    /// A number that grows with every change in any realm.
    pub(crate) fn version_now(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// How often each list of a realm changed.
    pub(crate) fn list_changes(&self, realm: &RealmId) -> watch::Receiver<ListChanges> {
        self.change(realm, |known| known.lists.subscribe())
    }

    /// Wakes those who wait for a change of what is there for a realm, and of these lists.
    pub(super) fn tell(&self, realm: &RealmId, changes: ListChanges) {
        // First: who is woken must not get a list that was judged before.
        self.version.fetch_add(1, Ordering::AcqRel);
        self.known(realm, |known| known.tell(changes));
    }

    /// Wakes those who wait for a change of these lists where this server behind this one is, if
    /// there is one: in this realm alone, if the realm has it for itself.
    pub(crate) fn tell_lists(&self, own: Option<&RealmId>, upstream: &str, changes: ListChanges) {
        let realms = self.realms.read().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |realm: &RealmId| match own {
            Some(own) => own == realm,
            None => self.shares_upstream(realm, upstream),
        };
        for (_, known) in realms.iter().filter(|(realm, _)| is_meant(realm)) {
            known.tell_lists(changes);
        }
    }

    /// What a source brings now, in place of what it brought before; what of it is left out.
    pub(crate) fn replace_tools(&self, source: ToolSource) -> Vec<Mistake> {
        let name = source.name.clone();
        let upstream = source.upstream.clone().unwrap_or_default();
        let own = source.realm.clone();
        let had_own = self.registry.brings_own(&name);
        let first = |tool: &str| self.shared_source(own.as_ref()?, tool);
        let mistakes = self.registry.replace(source, self.schemas.as_ref(), first);
        // A server behind this one changes nothing for the realms that it is not there for.
        let is_for_all = had_own || self.registry.brings_own(&name);
        let mut realms = self.realms.write().unwrap_or_else(PoisonError::into_inner);
        self.version.fetch_add(1, Ordering::AcqRel);
        let is_meant = |realm: &RealmId| match &own {
            Some(own) => own == realm,
            None => is_for_all || self.shares_upstream(realm, &upstream),
        };
        for (realm, known) in realms.iter_mut() {
            if is_meant(realm) {
                // A plan reaches as far as its tools do.
                known.specs = self.as_tools(realm, &known.plans);
                known.tell(ListChanges::TOOLS);
            }
        }
        mistakes
    }
}

impl RealmPlans {
    /// Wakes those who wait for a change of what is listed here, and of these lists.
    fn tell(&self, changes: ListChanges) {
        self.listed.send_modify(|version| *version += 1);
        self.tell_lists(changes);
    }

    /// Wakes those who wait for a change of these lists, if there is one.
    fn tell_lists(&self, changes: ListChanges) {
        self.lists.send_if_modified(|lists| {
            let before = *lists;
            lists.tools += changes.tools;
            lists.prompts += changes.prompts;
            lists.resources += changes.resources;
            *lists != before
        });
    }
}
