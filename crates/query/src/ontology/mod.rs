//! How records are related: classes and predicates as a project declares them, the edges that
//! follow from others, and why. Plain values and pure functions: where edges are kept is a store's
//! own.
//!
//! A type of records is a class of its own, by its name; declared classes stand above types and
//! each other. Names have aliases, and are canonical in everything below.

mod hierarchy;
mod declared;
pub mod edges;
pub mod inference;
#[cfg(test)]
mod tests;

use crate::types::RecordType;
use edges::Edge;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use declared::{OntologyMistake, read};

/// As a project declares it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declaration {
    pub classes: Vec<Class>,
    pub predicates: Vec<Predicate>,
    pub chains: Vec<Chain>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Class {
    pub name: String,
    pub parents: Vec<String>,
    pub aliases: Vec<String>,
    /// No type can be of both.
    pub disjoint_with: Vec<String>,
    /// Other names of classes that are the same.
    pub same_as: Vec<String>,
}

/// What an edge can say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Predicate {
    pub name: String,
    /// The class of what edges begin at; any, if there is none.
    pub domain: Option<String>,
    /// The class of what edges lead to.
    pub range: Option<String>,
    pub transitive: bool,
    pub symmetric: bool,
    /// A record has at most one such edge.
    pub functional: bool,
    pub inverse_of: Option<String>,
    pub sub_property_of: Vec<String>,
    pub aliases: Vec<String>,
    /// A record to which such an edge leads cannot be deleted.
    pub block_delete: bool,
}

/// Edges one after the other that make another one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chain {
    pub sequence: Vec<String>,
    pub implies: String,
}

/// A declaration that is sound, with what follows from it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ontology {
    predicates: BTreeMap<Arc<str>, Rules>,
    /// The canonical names of predicates, by their names and aliases.
    names: BTreeMap<String, Arc<str>>,
    /// One name for all classes that are the same, by their names and aliases.
    classes: BTreeMap<String, String>,
    /// By that name: itself and all above it.
    above: BTreeMap<String, BTreeSet<String>>,
    chains: Vec<(Vec<Arc<str>>, Arc<str>)>,
}

/// A predicate with all that it entails.
#[derive(Debug, Clone, PartialEq)]
struct Rules {
    declared: Predicate,
    /// Those that hold wherever it holds.
    parents: BTreeSet<Arc<str>>,
    /// Those that hold only if it holds, too: it is among their parents.
    children: BTreeSet<Arc<str>>,
    inverses: BTreeSet<Arc<str>>,
    /// Places in chains: which one, and where in its sequence.
    links: Vec<(usize, usize)>,
    /// The chains that imply it.
    implied_by: Vec<usize>,
}

/// Why an edge cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EdgeMistake {
    #[error("`{0}` is no predicate of the ontology")]
    UnknownPredicate(String),
    #[error("edges of `{predicate}` begin at a `{domain}`, and `{record_type}` is none")]
    Domain { predicate: String, domain: String, record_type: String },
    #[error("edges of `{predicate}` lead to a `{range}`, and `{record_type}` is none")]
    Range { predicate: String, range: String, record_type: String },
}

impl Ontology {
    /// The predicate of this name or alias.
    pub fn predicate(&self, name: &str) -> Option<&Predicate> {
        let name = self.names.get(name.trim())?;
        self.predicates.get(name).map(|rules| &rules.declared)
    }

    /// All predicates, by name.
    pub fn predicates(&self) -> impl Iterator<Item = &Predicate> {
        self.predicates.values().map(|rules| &rules.declared)
    }

    /// Whether some rule can make edges of this predicate.
    pub fn is_inferred(&self, predicate: &Predicate) -> bool {
        let rules = self.predicates.get(predicate.name.as_str());
        rules.is_some_and(|rules| {
            predicate.transitive
                || predicate.symmetric
                || !rules.children.is_empty()
                || !rules.inverses.is_empty()
                || !rules.implied_by.is_empty()
        })
    }

    /// Whether a type is of a class.
    pub fn is_of(&self, record_type: &str, class: &str) -> bool {
        if same_type(record_type, class) {
            return true;
        }
        let class_of = |name: &str| self.classes.get(name);
        let own = class_of(record_type).or_else(|| class_of(simple_name(record_type)));
        match (own, class_of(class)) {
            (Some(own), Some(class)) => {
                self.above.get(own).is_some_and(|above| above.contains(class))
            }
            _ => false,
        }
    }

    /// Whether edges of this predicate can begin at records of this type.
    pub fn can_begin(&self, predicate: &Predicate, record_type: &RecordType) -> bool {
        let domain = predicate.domain.as_deref();
        domain.is_none_or(|domain| self.is_of(&record_type.full_name(), domain))
    }

    /// Whether edges of this predicate can lead to records of this type.
    pub fn can_end(&self, predicate: &Predicate, record_type: &RecordType) -> bool {
        let range = predicate.range.as_deref();
        range.is_none_or(|range| self.is_of(&record_type.full_name(), range))
    }

    /// Whether an edge can be: its predicate is known, and its ends are of the right classes.
    pub fn check(&self, edge: &Edge) -> Result<(), EdgeMistake> {
        let Some(rules) = self.predicates.get(&edge.predicate) else {
            return Err(EdgeMistake::UnknownPredicate(edge.predicate.to_string()));
        };
        let declared = &rules.declared;
        let misses = |class: &Option<String>, record_type: &str| {
            class.clone().filter(|class| !self.is_of(record_type, class))
        };
        if let Some(domain) = misses(&declared.domain, &edge.source.record_type) {
            let record_type = edge.source.record_type.to_string();
            let predicate = declared.name.clone();
            return Err(EdgeMistake::Domain { predicate, domain, record_type });
        }
        if let Some(range) = misses(&declared.range, &edge.target.record_type) {
            let record_type = edge.target.record_type.to_string();
            let predicate = declared.name.clone();
            return Err(EdgeMistake::Range { predicate, range, record_type });
        }
        Ok(())
    }
}

fn simple_name(record_type: &str) -> &str {
    record_type.rsplit('.').next().unwrap_or(record_type)
}

/// A class can be a type, with or without its namespace.
fn same_type(record_type: &str, class: &str) -> bool {
    record_type == class || (!class.contains('.') && simple_name(record_type) == class)
}
