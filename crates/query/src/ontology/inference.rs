//! Which edges follow from others. Inferred edges are kept, each with one reason whose premises
//! were there before it, so that reasons never go in circles: when a premise goes, exactly the
//! edges whose reasons it was in lose their footing, and those that have another reason stay.
//!
//! No edge from a record to itself is inferred, and none whose ends are not of the classes that its
//! predicate asks for.

use super::Ontology;
use super::edges::{Edge, Edges, Node, Reason, Rule};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What a change of stated edges does to inferred ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inferred {
    /// New ones, and others that stay for another reason; each after its premises.
    pub added: Vec<(Edge, Reason)>,
    pub removed: Vec<Edge>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InferenceError<E> {
    #[error("more than {max} edges would change")]
    TooMany { max: usize },
    #[error(transparent)]
    Edges(E),
}

impl<E> From<E> for InferenceError<E> {
    fn from(error: E) -> Self {
        Self::Edges(error)
    }
}

type Answer<T, E> = Result<T, InferenceError<E>>;

/// What follows once these edges are stated. They are among the edges already.
pub fn after_stating<E>(
    ontology: &Ontology,
    edges: &dyn Edges<E>,
    stated: &[Edge],
    max: usize,
) -> Answer<Inferred, E> {
    let mut view = View::new(ontology, edges, max);
    view.spread(stated.to_vec())?;
    Ok(view.inferred())
}

/// What changes once these edges are stated no more. They are still among the edges, and none of
/// them counts as stated.
pub fn after_retracting<E>(
    ontology: &Ontology,
    edges: &dyn Edges<E>,
    retracted: &[Edge],
    max: usize,
) -> Answer<Inferred, E> {
    let mut view = View::new(ontology, edges, max);
    view.take_back(retracted)?;
    view.find_other_reasons()?;
    Ok(view.inferred())
}

/// The edges that are kept, with what changes.
struct View<'v, E> {
    ontology: &'v Ontology,
    kept: &'v dyn Edges<E>,
    max: usize,
    /// In the order in which they were inferred.
    order: Vec<Edge>,
    added: BTreeMap<Edge, Reason>,
    /// The other ends of those that are added, by predicate and one end.
    added_targets: BTreeMap<(Node, Arc<str>), BTreeSet<Node>>,
    added_sources: BTreeMap<(Node, Arc<str>), BTreeSet<Node>>,
    gone: BTreeSet<Edge>,
}

impl<'v, E> View<'v, E> {
    fn new(ontology: &'v Ontology, kept: &'v dyn Edges<E>, max: usize) -> Self {
        Self {
            ontology,
            kept,
            max,
            order: Vec::new(),
            added: BTreeMap::new(),
            added_targets: BTreeMap::new(),
            added_sources: BTreeMap::new(),
            gone: BTreeSet::new(),
        }
    }

    fn inferred(mut self) -> Inferred {
        let removed = self.gone.iter().filter(|edge| !self.added.contains_key(*edge)).cloned();
        let removed = removed.collect();
        let reasoned = |edge: Edge| self.added.remove(&edge).map(|reason| (edge, reason));
        Inferred { added: self.order.into_iter().filter_map(reasoned).collect(), removed }
    }

    /// Takes out what was retracted, and all that stood on it.
    fn take_back(&mut self, retracted: &[Edge]) -> Answer<(), E> {
        let mut waiting = retracted.to_vec();
        while let Some(edge) = waiting.pop() {
            if !self.gone.insert(edge.clone()) {
                continue;
            }
            if self.gone.len() > self.max {
                return Err(InferenceError::TooMany { max: self.max });
            }
            for follower in self.kept.follow_from(&edge)? {
                if !self.kept.is_stated(&follower)? {
                    waiting.push(follower);
                }
            }
        }
        Ok(())
    }

    /// Puts back what follows from what is left.
    fn find_other_reasons(&mut self) -> Answer<(), E> {
        let lost: Vec<Edge> = self.gone.iter().cloned().collect();
        for edge in lost {
            if self.has(&edge)? {
                continue;
            }
            if let Some(reason) = self.reason_for(&edge)? {
                self.add(edge.clone(), reason)?;
                self.spread(vec![edge])?;
            }
        }
        Ok(())
    }

    /// Adds all that follows from these edges, which are there.
    fn spread(&mut self, from: Vec<Edge>) -> Answer<(), E> {
        let mut waiting = VecDeque::from(from);
        while let Some(edge) = waiting.pop_front() {
            for (conclusion, reason) in self.conclusions(&edge)? {
                let is_sound = conclusion.source != conclusion.target
                    && self.ontology.check(&conclusion).is_ok();
                if is_sound && !self.has(&conclusion)? {
                    self.add(conclusion.clone(), reason)?;
                    waiting.push_back(conclusion);
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, edge: Edge, reason: Reason) -> Answer<(), E> {
        let Edge { source, predicate, target } = edge.clone();
        let targets = self.added_targets.entry((source.clone(), predicate.clone()));
        targets.or_default().insert(target.clone());
        self.added_sources.entry((target, predicate)).or_default().insert(source);
        self.order.push(edge.clone());
        self.added.insert(edge, reason);
        if self.added.len() > self.max {
            return Err(InferenceError::TooMany { max: self.max });
        }
        Ok(())
    }

    fn has(&self, edge: &Edge) -> Answer<bool, E> {
        if self.added.contains_key(edge) {
            return Ok(true);
        }
        Ok(!self.gone.contains(edge) && self.kept.has(edge)?)
    }

    fn targets(&self, source: &Node, predicate: &Arc<str>) -> Answer<BTreeSet<Node>, E> {
        let kept = self.kept.targets(source, predicate)?.into_iter();
        let is_left = |target: &Node| !self.gone.contains(&Edge::new(source, predicate, target));
        let mut found: BTreeSet<Node> = kept.filter(is_left).collect();
        let added = self.added_targets.get(&(source.clone(), predicate.clone()));
        found.extend(added.into_iter().flatten().cloned());
        Ok(found)
    }

    fn sources(&self, predicate: &Arc<str>, target: &Node) -> Answer<BTreeSet<Node>, E> {
        let kept = self.kept.sources(predicate, target)?.into_iter();
        let is_left = |source: &Node| !self.gone.contains(&Edge::new(source, predicate, target));
        let mut found: BTreeSet<Node> = kept.filter(is_left).collect();
        let added = self.added_sources.get(&(target.clone(), predicate.clone()));
        found.extend(added.into_iter().flatten().cloned());
        Ok(found)
    }

    /// What this edge, with others that are there, leads to.
    fn conclusions(&self, edge: &Edge) -> Answer<Vec<(Edge, Reason)>, E> {
        let Some(rules) = self.ontology.predicates.get(&edge.predicate) else {
            return Ok(Vec::new());
        };
        let alone = |rule: Rule| Reason { rule, premises: vec![edge.clone()] };
        let mut found = Vec::new();
        for parent in &rules.parents {
            let same = Edge::new(&edge.source, parent, &edge.target);
            found.push((same, alone(Rule::SubProperty)));
        }
        if rules.declared.symmetric {
            let back = Edge::new(&edge.target, &edge.predicate, &edge.source);
            found.push((back, alone(Rule::Symmetric)));
        }
        for inverse in &rules.inverses {
            let back = Edge::new(&edge.target, inverse, &edge.source);
            found.push((back, alone(Rule::Inverse)));
        }
        if rules.declared.transitive {
            self.add_steps(edge, &mut found)?;
        }
        for (chain, place) in &rules.links {
            if let Some((sequence, implied)) = self.ontology.chains.get(*chain) {
                self.add_chained(edge, sequence, *place, implied, &mut found)?;
            }
        }
        Ok(found)
    }

    /// One step further, in both directions.
    fn add_steps(&self, edge: &Edge, found: &mut Vec<(Edge, Reason)>) -> Answer<(), E> {
        let predicate = &edge.predicate;
        for further in self.targets(&edge.target, predicate)? {
            let next = Edge::new(&edge.target, predicate, &further);
            let reason = Reason { rule: Rule::Transitive, premises: vec![edge.clone(), next] };
            found.push((Edge::new(&edge.source, predicate, &further), reason));
        }
        for earlier in self.sources(predicate, &edge.source)? {
            let before = Edge::new(&earlier, predicate, &edge.source);
            let reason = Reason { rule: Rule::Transitive, premises: vec![before, edge.clone()] };
            found.push((Edge::new(&earlier, predicate, &edge.target), reason));
        }
        Ok(())
    }

    /// All chains in which the edge has this place.
    fn add_chained(
        &self,
        edge: &Edge,
        sequence: &[Arc<str>],
        place: usize,
        implied: &Arc<str>,
        found: &mut Vec<(Edge, Reason)>,
    ) -> Answer<(), E> {
        let mut paths = vec![vec![edge.clone()]];
        for predicate in sequence.iter().take(place).rev() {
            let mut longer = Vec::new();
            for path in &paths {
                let Some(first) = path.first() else { continue };
                for source in self.sources(predicate, &first.source)? {
                    let before = Edge::new(&source, predicate, &first.source);
                    longer.push([&[before], path.as_slice()].concat());
                }
                self.bounded(longer.len())?;
            }
            paths = longer;
        }
        for predicate in sequence.iter().skip(place + 1) {
            let mut longer = Vec::new();
            for path in &paths {
                let Some(last) = path.last() else { continue };
                for target in self.targets(&last.target, predicate)? {
                    let next = Edge::new(&last.target, predicate, &target);
                    longer.push([path.as_slice(), &[next]].concat());
                }
                self.bounded(longer.len())?;
            }
            paths = longer;
        }
        for premises in paths {
            if let (Some(first), Some(last)) = (premises.first(), premises.last()) {
                let conclusion = Edge::new(&first.source, implied, &last.target);
                found.push((conclusion, Reason { rule: Rule::Chain, premises }));
            }
        }
        Ok(())
    }

    fn bounded(&self, paths: usize) -> Answer<(), E> {
        if paths > self.max {
            return Err(InferenceError::TooMany { max: self.max });
        }
        Ok(())
    }

    /// Why this edge would hold, if edges that are there lead to it.
    fn reason_for(&self, edge: &Edge) -> Answer<Option<Reason>, E> {
        let Some(rules) = self.ontology.predicates.get(&edge.predicate) else { return Ok(None) };
        if edge.source == edge.target || self.ontology.check(edge).is_err() {
            return Ok(None);
        }
        let of_children = rules.children.iter();
        let mut single: Vec<(Rule, Edge)> = of_children
            .map(|child| (Rule::SubProperty, Edge::new(&edge.source, child, &edge.target)))
            .collect();
        let back = |predicate| Edge::new(&edge.target, predicate, &edge.source);
        if rules.declared.symmetric {
            single.push((Rule::Symmetric, back(&edge.predicate)));
        }
        single.extend(rules.inverses.iter().map(|inverse| (Rule::Inverse, back(inverse))));
        for (rule, premise) in single {
            if self.has(&premise)? {
                return Ok(Some(Reason { rule, premises: vec![premise] }));
            }
        }
        if rules.declared.transitive {
            for middle in self.targets(&edge.source, &edge.predicate)? {
                let second = Edge::new(&middle, &edge.predicate, &edge.target);
                if self.has(&second)? {
                    let first = Edge::new(&edge.source, &edge.predicate, &middle);
                    let premises = vec![first, second];
                    return Ok(Some(Reason { rule: Rule::Transitive, premises }));
                }
            }
        }
        for chain in &rules.implied_by {
            let Some((sequence, _)) = self.ontology.chains.get(*chain) else { continue };
            if let Some(premises) = self.path(&edge.source, sequence, &edge.target)? {
                return Ok(Some(Reason { rule: Rule::Chain, premises }));
            }
        }
        Ok(None)
    }

    /// Edges of these predicates, one after the other, from one record to another.
    fn path(
        &self,
        source: &Node,
        sequence: &[Arc<str>],
        target: &Node,
    ) -> Answer<Option<Vec<Edge>>, E> {
        // What is reached, with the edges that lead there: one way is enough.
        let mut reached = BTreeMap::from([(source.clone(), Vec::new())]);
        for predicate in sequence {
            let mut next: BTreeMap<Node, Vec<Edge>> = BTreeMap::new();
            for (node, way) in &reached {
                for further in self.targets(node, predicate)? {
                    let edge = Edge::new(node, predicate, &further);
                    next.entry(further).or_insert_with(|| [way.as_slice(), &[edge]].concat());
                }
                self.bounded(next.len())?;
            }
            reached = next;
        }
        Ok(reached.remove(target))
    }
}
