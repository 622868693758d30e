//! What of the records of a realm a caller may reach: which types, which rows of them, and which
//! fields do not exist for it. A type that is not admitted has no rows.

use crate::check::HiddenFields;
use crate::checked::{CheckedQuery, Test};
use crate::evaluate::{Row, passes};
use crate::names::NameSet;
use crate::types::{RecordType, TypeSet};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallerScope {
    /// The full names of types.
    admitted: BTreeSet<String>,
    /// By the full names of types; a row must pass all.
    rows: BTreeMap<String, Vec<Test>>,
    hidden: HiddenFields,
}

impl CallerScope {
    /// Every row and every field.
    pub fn unlimited(types: &TypeSet) -> Self {
        let mut scope = Self::default();
        types.all().iter().for_each(|record_type| scope.admit(record_type));
        scope
    }

    /// All rows of a type, as far as nothing restricts them.
    pub fn admit(&mut self, record_type: &RecordType) {
        self.admitted.insert(record_type.full_name());
    }

    /// What is not admitted by now has no fields either: queries cannot find out what they are.
    pub fn close_others(&mut self, types: &TypeSet) {
        let others = types.all().iter().filter(|it| !self.admitted.contains(&it.full_name()));
        others.for_each(|other| self.hidden.close(other));
    }

    /// Only rows that this filter takes, too. It does not admit the type.
    pub fn restrict(&mut self, record_type: &RecordType, filter: &CheckedQuery) {
        self.rows.entry(record_type.full_name()).or_default().extend(filter.filter.clone());
    }

    /// Hides a field. A hidden name of a record is hidden in references to it, too.
    pub fn hide(&mut self, types: &TypeSet, record_type: &RecordType, path: &str) {
        self.hidden.hide(record_type, path);
        let member = match path {
            "refName" => "entityRefName",
            "displayName" => "entityDisplayName",
            _ => return,
        };
        for referrer in types.all() {
            for (field, to) in referrer.references() {
                if types.find(to).is_ok_and(|to| to.full_name() == record_type.full_name()) {
                    self.hidden.hide(referrer, &format!("{field}.{member}"));
                }
            }
        }
    }

    /// What queries of this caller are checked with.
    pub fn hidden(&self) -> &HiddenFields {
        &self.hidden
    }

    /// What is hidden in records of this type.
    pub fn hidden_in(&self, record_type: &RecordType) -> NameSet {
        self.hidden.of(record_type).cloned().unwrap_or_default()
    }

    /// Whether this field does not exist for the caller.
    pub fn hides(&self, record_type: &RecordType, path: &str) -> bool {
        self.hidden.of(record_type).is_some_and(|hidden| is_hidden(hidden, path))
    }

    /// What a row must pass that the caller asks for in this way; none if every row does.
    pub fn filter(&self, record_type: &RecordType, asked: Option<&Test>) -> Option<Test> {
        let name = record_type.full_name();
        if !self.admitted.contains(&name) {
            return Some(Test::Never);
        }
        let rows = self.rows.get(&name).into_iter().flatten();
        let mut tests: Vec<Test> = rows.chain(asked).cloned().collect();
        if tests.len() > 1 {
            return Some(Test::All(tests));
        }
        tests.pop()
    }

    /// Whether the caller may see this row.
    pub fn admits(&self, record_type: &RecordType, row: Row<'_>) -> bool {
        let name = record_type.full_name();
        let mut rows = self.rows.get(&name).into_iter().flatten();
        self.admitted.contains(&name) && rows.all(|test| passes(test, row))
    }

    /// Takes out what the caller may not see.
    pub fn mask(&self, record_type: &RecordType, record: &mut Value) {
        if let Some(hidden) = self.hidden.of(record_type) {
            hidden.drop_from(record);
        }
    }
}

/// Whether a field of this path, such as `lines[2].sku`, is hidden or lies in one that is.
pub(super) fn is_hidden(hidden: &NameSet, path: &str) -> bool {
    let mut set = hidden;
    for name in path.split('.') {
        let name = name.split('[').next().unwrap_or_default();
        match set.within(name) {
            Some(inner) if inner.is_whole() => return true,
            Some(inner) => set = inner,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Scope, check_row_filter};
    use crate::parser::parse;
    use crate::types::{Field, Kind};
    use serde_json::json;

    fn types() -> TypeSet {
        TypeSet::new(vec![RecordType::new("", "t", "Town", vec![Field::new("a", Kind::Integer)])])
    }

    fn filter(types: &TypeSet, text: &str) -> CheckedQuery {
        let variables = BTreeMap::new();
        let hidden = HiddenFields::default();
        let root = types.find("Town").unwrap();
        let scope = Scope { types, root, variables: &variables, hidden: &hidden };
        check_row_filter(&parse(text).unwrap(), scope).unwrap()
    }

    #[test]
    fn a_row_passes_every_filter_of_a_type_that_is_admitted() {
        let types = types();
        let town = types.find("Town").unwrap();
        let asked = filter(&types, "a:#2");
        let mut scope = CallerScope::default();
        scope.restrict(town, &filter(&types, "a:>#1"));
        scope.restrict(town, &filter(&types, "a:<#3"));
        let records = [1, 2, 3].map(|number| json!({"a": number}));
        let seen = |scope: &CallerScope| {
            records.clone().map(|record| scope.admits(town, Row { realm: "r", record: &record }))
        };
        assert_eq!(seen(&scope), [false; 3]);
        assert_eq!(scope.filter(town, asked.filter.as_ref()), Some(Test::Never));
        scope.admit(town);
        assert_eq!(seen(&scope), [false, true, false]);
        let Some(Test::All(tests)) = scope.filter(town, asked.filter.as_ref()) else {
            panic!("all of them hold");
        };
        assert_eq!((tests.len(), tests.last()), (3, asked.filter.as_ref()));
        let all = CallerScope::unlimited(&types);
        assert_eq!(seen(&all), [true; 3]);
        assert_eq!(all.filter(town, None), None);
        assert_eq!(all.filter(town, asked.filter.as_ref()), asked.filter);
    }

    #[test]
    fn a_field_is_hidden_with_all_that_is_in_it() {
        let mut hidden = NameSet::default();
        hidden.insert(["lines", "margin"]);
        for path in ["lines.margin", "lines[2].margin", "lines[2].margin.net"] {
            assert!(is_hidden(&hidden, path), "{path}");
        }
        for path in ["", "lines", "lines[2].sku", "margin"] {
            assert!(!is_hidden(&hidden, path), "{path}");
        }
    }
}
