//! Checks a query against the declared types: every name is a field that the caller may see, and
//! every variable has a value. What passes can be evaluated.

use crate::checked::{
    CheckedQuery, Expansion, FieldPath, Relation, Root, Selection, Test, Words, folded,
};
use crate::fault::{FaultKind, Place, QueryFault};
use crate::names::NameSet;
use crate::tree::{
    Comparison, Condition, Edge, Expand, Index, Membership, Operand, Path, Projection, Query, Sign,
};
use crate::types::{RecordType, TypeSet};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

mod fields;
mod values;

use fields::{Fields, Spot};

/// What a query is checked against.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'s> {
    pub types: &'s TypeSet,
    /// The type whose records are asked for.
    pub root: &'s RecordType,
    pub variables: &'s BTreeMap<String, Value>,
    pub hidden: &'s HiddenFields,
}

/// The fields that do not exist for a caller, by the full names of their types.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HiddenFields {
    types: BTreeMap<String, NameSet>,
    /// The full names of types of which no field exists.
    closed: BTreeSet<String>,
}

impl HiddenFields {
    /// Hides a field, such as `address.zip`, and all that is in it.
    pub fn hide(&mut self, record_type: &RecordType, path: &str) {
        let names = self.types.entry(record_type.full_name()).or_default();
        names.insert(path.split('.'));
    }

    /// Hides all fields of a type.
    pub fn close(&mut self, record_type: &RecordType) {
        self.closed.insert(record_type.full_name());
    }

    pub(crate) fn closes(&self, record_type: &RecordType) -> bool {
        self.closed.contains(&record_type.full_name())
    }

    /// What is hidden in records of this type.
    pub(crate) fn of(&self, record_type: &RecordType) -> Option<&NameSet> {
        self.types.get(&record_type.full_name())
    }
}

/// Checks a caller's query.
pub fn check(query: &Query, scope: Scope<'_>) -> Result<CheckedQuery, QueryFault> {
    let checker = Checker { scope, fields: Fields { types: scope.types, hidden: scope.hidden } };
    checker.query(query)
}

/// Checks the filter of a policy. Without a value for one of its variables it takes no record.
pub fn check_row_filter(query: &Query, scope: Scope<'_>) -> Result<CheckedQuery, QueryFault> {
    match check(query, scope) {
        Err(fault) if fault.kind == FaultKind::UnresolvedVariable => Ok(CheckedQuery {
            filter: Some(Test::Never),
            expansions: Vec::new(),
            selection: Selection::default(),
        }),
        checked => checked,
    }
}

/// Checks the path of a field that records are sorted or grouped by.
pub fn check_path(path: &Path, scope: Scope<'_>) -> Result<FieldPath, QueryFault> {
    let fields = Fields { types: scope.types, hidden: scope.hidden };
    let root = fields.record(scope.root);
    fields.find(&root, path, &[]).map(|(path, _)| path)
}

struct Checker<'s> {
    scope: Scope<'s>,
    fields: Fields<'s>,
}

impl<'s> Checker<'s> {
    fn query(&self, query: &Query) -> Result<CheckedQuery, QueryFault> {
        let root = self.fields.record(self.scope.root);
        let filter = query.filter.as_ref().map(|filter| self.test(filter, &root)).transpose()?;
        let mut expansions = Vec::new();
        let mut expanded: Vec<String> = Vec::new();
        for expand in &query.expands {
            let expansion = self.expansion(expand, &root, &expanded)?;
            expanded.push(dotted(&expansion.path));
            expansions.push(expansion);
        }
        let selection = self.selection(query.fields.as_ref(), &root, &expanded)?;
        Ok(CheckedQuery { filter, expansions, selection })
    }

    fn test(&self, condition: &Condition, from: &Spot<'s>) -> Result<Test, QueryFault> {
        let tests = |parts: &[Condition]| -> Result<Vec<Test>, QueryFault> {
            parts.iter().map(|part| self.test(part, from)).collect()
        };
        match condition {
            Condition::All(parts) => tests(parts).map(Test::All),
            Condition::Any(parts) => tests(parts).map(Test::Any),
            Condition::Not(inner) => match edge_in(inner) {
                // There is no ontology yet, and what nothing has must not come to mean everything.
                Some(edge) => {
                    Err(QueryFault::at(edge.predicate.place, "an edge may not stand within `!!`")
                        .hint("no record has edges yet, so every record would be taken"))
                }
                None => self.test(inner, from).map(negated),
            },
            Condition::Compare(comparison) => self.comparison(comparison, from),
            Condition::OneOf(membership) => self.membership(membership, from),
            Condition::Exists(path) => {
                self.fields.find(from, path, &[]).map(|(path, _)| Test::Exists(path))
            }
            Condition::Element(path, inner) => {
                let (path, spot) = self.fields.find(from, path, &[])?;
                let inner = self.test(inner, &spot)?;
                Ok(Test::Element(path, Box::new(inner)))
            }
            Condition::Text(words) => self.words(words),
            Condition::Edge(edge) => {
                self.text_of(&edge.predicate)?;
                self.text_of(&edge.other)?;
                Ok(Test::Never)
            }
        }
    }

    fn comparison(&self, written: &Comparison, from: &Spot<'s>) -> Result<Test, QueryFault> {
        let (path, spot) = self.fields.find(from, &written.path, &[])?;
        let wanted = self.wanted(&written.operand, written.case, &spot)?;
        let relation = match written.sign {
            Sign::Equal | Sign::NotEqual => Relation::Equal,
            Sign::Less => Relation::Less,
            Sign::Greater => Relation::Greater,
            Sign::LessOrEqual => Relation::LessOrEqual,
            Sign::GreaterOrEqual => Relation::GreaterOrEqual,
        };
        let test = Test::Compare(path, relation, wanted);
        Ok(if written.sign == Sign::NotEqual { negated(test) } else { test })
    }

    fn membership(&self, written: &Membership, from: &Spot<'s>) -> Result<Test, QueryFault> {
        let (path, spot) = self.fields.find(from, &written.path, &[])?;
        let test = Test::OneOf(path, self.wanted_list(&written.operands, &spot)?);
        Ok(if written.negated { negated(test) } else { test })
    }

    fn words(&self, operand: &Operand) -> Result<Test, QueryFault> {
        let text = self.text_of(operand)?;
        let words: Vec<String> = text.split_whitespace().map(folded).collect();
        if words.is_empty() {
            return Err(QueryFault::at(operand.place, "`text(..)` has no words to look for"));
        }
        let hidden = self.hidden_in(self.scope.root);
        Ok(Test::Words(Words { words, hidden }))
    }

    fn expansion(
        &self,
        expand: &Expand,
        root: &Spot<'s>,
        expanded: &[String],
    ) -> Result<Expansion, QueryFault> {
        let path = &expand.path;
        let (found, spot) = self.fields.find(root, path, expanded)?;
        let place = path.segments.last().map_or(Place::START, |last| last.place);
        let to = self.fields.target(&spot, path, place)?;
        whole(path)?;
        if found.root != Root::Record || expanded.contains(&dotted(&found)) {
            return Err(QueryFault::at(place, format!("`{path}` cannot be expanded twice")));
        }
        let target = self.fields.record(to);
        let filter = expand.filter.as_ref().map(|filter| self.test(filter, &target)).transpose()?;
        let selection = self.selection(expand.fields.as_ref(), &target, &[])?;
        Ok(Expansion { path: found, to: to.full_name(), filter, selection })
    }

    fn selection(
        &self,
        fields: Option<&Projection>,
        root: &Spot<'s>,
        expanded: &[String],
    ) -> Result<Selection, QueryFault> {
        let names = |paths: &[Path]| -> Result<NameSet, QueryFault> {
            let mut names = NameSet::default();
            for path in paths {
                whole(path)?;
                let (path, _) = self.fields.find(root, path, expanded)?;
                names.insert(path.names());
            }
            Ok(names)
        };
        let mut selection =
            Selection { hidden: root.hidden.cloned().unwrap_or_default(), ..Selection::default() };
        if let Some(fields) = fields {
            selection.exclude = names(&fields.exclude)?;
            if !fields.include.is_empty() {
                let mut include = names(&fields.include)?;
                include.insert(["id"]);
                selection.include = Some(include);
            }
        }
        Ok(selection)
    }

    fn hidden_in(&self, record_type: &RecordType) -> NameSet {
        self.scope.hidden.of(record_type).cloned().unwrap_or_default()
    }
}

fn edge_in(condition: &Condition) -> Option<&Edge> {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => parts.iter().find_map(edge_in),
        Condition::Not(inner) | Condition::Element(_, inner) => edge_in(inner),
        Condition::Edge(edge) => Some(edge),
        Condition::Compare(_) | Condition::OneOf(_) | Condition::Exists(_) | Condition::Text(_) => {
            None
        }
    }
}

fn negated(test: Test) -> Test {
    Test::Not(Box::new(test))
}

fn dotted(path: &FieldPath) -> String {
    let names: Vec<&str> = path.names().collect();
    names.join(".")
}

/// Single elements are neither expanded nor projected.
fn whole(path: &Path) -> Result<(), QueryFault> {
    let single = path.segments.iter().find(|segment| matches!(segment.index, Index::At(_)));
    match single {
        Some(segment) => Err(QueryFault::at(segment.place, "one element cannot be chosen here")
            .hint("leave out the index: all elements are meant")),
        None => Ok(()),
    }
}
