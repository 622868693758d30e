//! Evaluation of a query over a value, within a budget. Data is walked with a stack of our own,
//! so that its depth cannot exhaust the thread's.

use super::syntax::{Part, Query, Segment, Selector};
use crate::expression::budget::Budget;
use crate::expression::patterns::Patterns;
use serde_json::Value;

/// One evaluation.
pub(super) struct Evaluation<'b> {
    pub(super) budget: &'b Budget,
    pub(super) patterns: Patterns,
}

/// Copies of the nodes that a query selects from a value, in the order of RFC 9535. The error says
/// why this cannot be done.
pub(super) fn select(query: &Query, value: &Value, budget: &Budget) -> Result<Vec<Value>, String> {
    let mut evaluation = Evaluation { budget, patterns: Patterns::default() };
    let copied = |node: &Value| budget.charge_copy(node).map(|()| node.clone());
    evaluation.nodes(query, value)?.into_iter().map(copied).collect()
}

impl Evaluation<'_> {
    /// The nodes that a query selects from this one.
    pub(super) fn nodes<'v>(
        &mut self,
        query: &Query,
        start: &'v Value,
    ) -> Result<Vec<&'v Value>, String> {
        let mut nodes = vec![start];
        for part in &query.parts {
            let mut found = Vec::new();
            for node in nodes {
                if part.descends {
                    self.descend(part, node, &mut found)?;
                } else {
                    self.select(part, node, &mut found)?;
                }
            }
            nodes = found;
        }
        Ok(nodes)
    }

    /// The node that names and indexes lead to.
    pub(super) fn at<'v>(
        &self,
        path: &[Segment],
        start: &'v Value,
    ) -> Result<Option<&'v Value>, String> {
        let mut node = Some(start);
        for segment in path {
            self.charge_segment(segment)?;
            node = node.and_then(|node| segment.of(node));
        }
        Ok(node)
    }

    fn charge_segment(&self, segment: &Segment) -> Result<(), String> {
        match segment {
            Segment::Name(name) => self.budget.charge_text(name.len()),
            Segment::Index(_) => self.budget.charge(1),
        }
    }

    /// Selects from a node and from all below it, each before its children.
    fn descend<'v>(
        &mut self,
        part: &Part,
        start: &'v Value,
        found: &mut Vec<&'v Value>,
    ) -> Result<(), String> {
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            self.select(part, node, found)?;
            self.budget.charge(width(node))?;
            let parents = open.len();
            open.extend(children(node));
            open[parents..].reverse();
        }
        Ok(())
    }

    fn select<'v>(
        &mut self,
        part: &Part,
        node: &'v Value,
        found: &mut Vec<&'v Value>,
    ) -> Result<(), String> {
        for selector in &part.selectors {
            match selector {
                Selector::One(segment) => {
                    self.charge_segment(segment)?;
                    found.extend(segment.of(node));
                }
                Selector::All => {
                    self.budget.charge(1 + width(node))?;
                    found.extend(children(node));
                }
                Selector::Slice(slice) => {
                    self.budget.charge(1)?;
                    let Value::Array(items) = node else { continue };
                    for index in slice.indexes(items.len()) {
                        self.budget.charge(1)?;
                        found.extend(items.get(index));
                    }
                }
                Selector::Filter(test) => {
                    self.budget.charge(1)?;
                    for child in children(node) {
                        self.budget.charge(1)?;
                        if self.holds(test, child)? {
                            found.push(child);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn children(node: &Value) -> impl Iterator<Item = &Value> {
    let items = node.as_array().into_iter().flatten();
    items.chain(node.as_object().into_iter().flat_map(|fields| fields.values()))
}

fn width(node: &Value) -> usize {
    match node {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
