//! The types of a whole server: those of all realms, and those of realms that have types of their
//! own.

use super::TypeSet;
use kernel::values::ids::RealmId;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct RealmTypes {
    /// Those of every realm without types of its own.
    pub common: Arc<TypeSet>,
    /// All types of a realm that has some of its own, also those that it shares.
    pub own: BTreeMap<RealmId, Arc<TypeSet>>,
}

impl RealmTypes {
    /// The same types in every realm.
    pub fn common(types: TypeSet) -> Self {
        Self { common: Arc::new(types), own: BTreeMap::new() }
    }

    /// The types of this realm.
    pub fn of(&self, realm: &RealmId) -> &Arc<TypeSet> {
        self.own.get(realm).unwrap_or(&self.common)
    }

    /// Whether no realm has a type.
    pub fn is_empty(&self) -> bool {
        let mut sets = self.own.values().chain([&self.common]);
        sets.all(|types| types.all().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::RecordType;

    #[test]
    fn a_realm_has_its_own_types_or_the_common_ones() {
        let set = |name: &str| TypeSet::new(vec![RecordType::new("", name, name, Vec::new())]);
        let mut types = RealmTypes::default();
        assert!(types.is_empty());
        types.own.insert("acme".into(), Arc::new(set("Order")));
        assert!(!types.is_empty());
        assert!(types.of(&"acme".into()).find("Order").is_ok());
        assert!(types.of(&"other".into()).find("Order").is_err());
        assert!(RealmTypes::common(set("Order")).of(&"other".into()).find("Order").is_ok());
    }
}
