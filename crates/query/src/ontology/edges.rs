//! Edges between records, and what inference needs to know of those that are kept.

use std::sync::Arc;

/// A record at an end of an edge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// The full name of its type.
    pub record_type: Arc<str>,
    pub id: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    pub source: Node,
    /// Its canonical name.
    pub predicate: Arc<str>,
    pub target: Node,
}

impl Edge {
    pub fn new(source: &Node, predicate: &Arc<str>, target: &Node) -> Self {
        Self { source: source.clone(), predicate: predicate.clone(), target: target.clone() }
    }
}

/// Why an inferred edge holds: the edges that it follows from, each of which was there before it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    pub rule: Rule,
    pub premises: Vec<Edge>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    SubProperty,
    Symmetric,
    Inverse,
    Transitive,
    Chain,
}

impl Rule {
    /// As it is stored and shown.
    pub fn name(self) -> &'static str {
        match self {
            Rule::SubProperty => "subProperty",
            Rule::Symmetric => "symmetric",
            Rule::Inverse => "inverse",
            Rule::Transitive => "transitive",
            Rule::Chain => "chain",
        }
    }
}

/// The edges of one data domain that are kept, those that were stated and those that were inferred.
/// `E` is why they could not be read.
pub trait Edges<E> {
    /// What edges of this predicate lead to from a record.
    fn targets(&self, source: &Node, predicate: &Arc<str>) -> Result<Vec<Node>, E>;

    /// What edges of this predicate begin at that lead to a record.
    fn sources(&self, predicate: &Arc<str>, target: &Node) -> Result<Vec<Node>, E>;

    fn has(&self, edge: &Edge) -> Result<bool, E>;

    /// Whether somebody stated it: then it needs no reason.
    fn is_stated(&self, edge: &Edge) -> Result<bool, E>;

    /// The edges whose kept reason has this edge among its premises.
    fn follow_from(&self, premise: &Edge) -> Result<Vec<Edge>, E>;
}
