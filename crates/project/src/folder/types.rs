//! The types of all realms of a project, with those that every server has beside them.

use super::EntityFiles;
use crate::entities::{EntityTypes, built_in, read};
use kernel::definition::plan::mistake::CheckResult;
use kernel::limits::Limits;
use kernel::values::ids::RealmId;
use query::types::{RealmTypes, TypeSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a project's files say of types.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProjectTypes {
    /// Those of every realm without types of its own.
    pub common: EntityTypes,
    /// All types of a realm that has some of its own, also those that it shares.
    pub own: BTreeMap<RealmId, EntityTypes>,
}

impl ProjectTypes {
    /// The types of these files, with warnings. A mistake in what every realm has is told once.
    pub fn read(files: &EntityFiles, limits: &Limits) -> CheckResult<Self> {
        let (common, mut warnings) = read(&files.all, &EntityTypes::default(), limits)?;
        let mut own = BTreeMap::new();
        let mut mistakes = Vec::new();
        for (realm, files) in &files.own {
            match read(files, &common, limits) {
                Ok((types, found)) => {
                    own.insert(realm.clone(), types);
                    warnings.extend(found);
                }
                Err(found) => mistakes.extend(found),
            }
        }
        if mistakes.is_empty() { Ok((Self { common, own }, warnings)) } else { Err(mistakes) }
    }

    /// Those of one realm.
    pub fn of(&self, realm: &RealmId) -> &EntityTypes {
        self.own.get(realm).unwrap_or(&self.common)
    }

    /// Whether no realm has a type.
    pub fn is_empty(&self) -> bool {
        let mut all = self.own.values().chain([&self.common]);
        all.all(|declared| declared.types.all().is_empty())
    }

    /// What is declared: the types whose records are stored.
    pub fn declared(&self) -> RealmTypes {
        self.each(TypeSet::clone)
    }

    /// What callers know: the same, and the built-in types. Where nothing is declared there are
    /// none.
    pub fn known(&self) -> RealmTypes {
        if self.is_empty() {
            return RealmTypes::default();
        }
        self.each(built_in::beside)
    }

    /// How many types are declared, each counted once where it is declared.
    pub fn count(&self) -> usize {
        let shared = self.common.types.all();
        let is_own = |declared: &EntityTypes| {
            declared.types.all().iter().filter(|known| !shared.contains(known)).count()
        };
        shared.len() + self.own.values().map(is_own).sum::<usize>()
    }

    fn each(&self, made: impl Fn(&TypeSet) -> TypeSet) -> RealmTypes {
        let set = |declared: &EntityTypes| Arc::new(made(&declared.types));
        RealmTypes {
            common: set(&self.common),
            own: self.own.iter().map(|(realm, own)| (realm.clone(), set(own))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::EntityFile;

    fn file(path: &str, text: &str) -> EntityFile {
        let stem = path.rsplit('/').next().unwrap().trim_end_matches(".yaml");
        EntityFile { file: path.to_owned(), name: stem.to_owned(), text: text.to_owned() }
    }

    fn names(types: &TypeSet) -> Vec<String> {
        types.all().iter().map(query::types::RecordType::full_name).collect()
    }

    #[test]
    fn a_realm_has_common_types_beside_its_own_and_the_built_in_ones() {
        let town = file("entities/Town.yaml", "fields: {a: {type: integer}}\n");
        let port = file("realms/acme/entities/Port.yaml", "fields: {b: {type: string}}\n");
        let own = BTreeMap::from([("acme".into(), vec![port])]);
        let files = EntityFiles { all: vec![town], own };
        let (types, warnings) = ProjectTypes::read(&files, &Limits::default()).unwrap();
        assert_eq!((warnings.len(), types.count(), types.is_empty()), (0, 2, false));
        let declared = types.declared();
        assert_eq!(names(declared.of(&"acme".into())), ["Town", "Port"]);
        assert_eq!(names(declared.of(&"other".into())), ["Town"]);
        let known = types.known();
        let built_in = ["waypost.Agent", "waypost.ToolProviderConfig"];
        assert_eq!(names(known.of(&"acme".into()))[2..], built_in);
        assert_eq!(names(known.of(&"other".into()))[1..], built_in);
    }

    #[test]
    fn without_types_there_are_no_built_in_ones() {
        let (types, _) = ProjectTypes::read(&EntityFiles::default(), &Limits::default()).unwrap();
        assert!(types.is_empty() && types.known().is_empty());
    }

    #[test]
    fn a_mistake_of_all_realms_is_told_once() {
        let wrong = file("entities/Town.yaml", "fields: {a: {type: nonsense}}\n");
        let own = file("realms/acme/entities/Port.yaml", "fields: {b: {type: string}}\n");
        let own = BTreeMap::from([("acme".into(), vec![own])]);
        let files = EntityFiles { all: vec![wrong], own };
        let mistakes = ProjectTypes::read(&files, &Limits::default()).unwrap_err();
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    }
}
