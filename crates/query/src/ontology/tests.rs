//! What follows from edges is what trying every rule comes to, also after edges are taken back.

use super::edges::{Edge, Edges, Node, Reason};
use super::inference::{InferenceError, Inferred, after_retracting, after_stating};
use super::*;
use crate::types::{RecordType, TypeSet};
use std::convert::Infallible;

fn types() -> TypeSet {
    let named = |name: &str| RecordType::new("shop", name, name, Vec::new());
    TypeSet::new(vec![named("Order"), named("Customer"), named("Region")])
}

fn predicate(name: &str) -> Predicate {
    Predicate { name: name.to_owned(), ..Predicate::default() }
}

fn between(name: &str, domain: &str, range: &str) -> Predicate {
    let (domain, range) = (Some(domain.to_owned()), Some(range.to_owned()));
    Predicate { domain, range, ..predicate(name) }
}

fn class(name: &str, parents: &[&str]) -> Class {
    let parents = parents.iter().map(|parent| (*parent).to_owned()).collect();
    Class { name: name.to_owned(), parents, ..Class::default() }
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Orders placed by customers in regions within regions.
fn shop() -> Declaration {
    let mut within = between("within", "Region", "Region");
    within.transitive = true;
    let mut placed = between("placedBy", "Order", "Customer");
    placed.aliases = texts(&["orderedBy"]);
    placed.functional = true;
    let mut lives = between("livesIn", "Customer", "Region");
    lives.inverse_of = Some("homeOf".to_owned());
    let mut near = between("near", "Region", "Region");
    near.symmetric = true;
    let mut border = between("borders", "Region", "Region");
    border.sub_property_of = texts(&["near"]);
    let chain = |sequence: &[&str], implies: &str| Chain {
        sequence: texts(sequence),
        implies: implies.to_owned(),
    };
    Declaration {
        classes: vec![class("Place", &[]), class("Region", &["Place"])],
        predicates: vec![
            within,
            placed,
            lives,
            between("homeOf", "Region", "Customer"),
            near,
            border,
            between("orderedFrom", "Order", "Region"),
        ],
        chains: vec![
            chain(&["placedBy", "livesIn"], "orderedFrom"),
            chain(&["orderedFrom", "within"], "orderedFrom"),
        ],
    }
}

fn ontology() -> Ontology {
    read(&shop(), &types()).unwrap()
}

fn node(name: &str) -> Node {
    let record_type = match name.as_bytes()[0] {
        b'o' => "shop.Order",
        b'c' => "shop.Customer",
        _ => "shop.Region",
    };
    Node { record_type: record_type.into(), id: name.into() }
}

/// `o1 placedBy c1`.
fn edge(text: &str) -> Edge {
    let parts: Vec<&str> = text.split(' ').collect();
    Edge { source: node(parts[0]), predicate: parts[1].into(), target: node(parts[2]) }
}

fn shown(edge: &Edge) -> String {
    format!("{} {} {}", edge.source.id, edge.predicate, edge.target.id)
}

/// Edges in memory, changed as a store changes them.
#[derive(Default, Clone)]
struct Memory {
    stated: BTreeSet<Edge>,
    inferred: BTreeMap<Edge, Reason>,
}

impl Edges<Infallible> for Memory {
    fn targets(&self, source: &Node, predicate: &Arc<str>) -> Result<Vec<Node>, Infallible> {
        let all = self.all();
        let fits = |edge: &&Edge| edge.source == *source && edge.predicate == *predicate;
        Ok(all.iter().filter(fits).map(|edge| edge.target.clone()).collect())
    }

    fn sources(&self, predicate: &Arc<str>, target: &Node) -> Result<Vec<Node>, Infallible> {
        let all = self.all();
        let fits = |edge: &&Edge| edge.target == *target && edge.predicate == *predicate;
        Ok(all.iter().filter(fits).map(|edge| edge.source.clone()).collect())
    }

    fn has(&self, edge: &Edge) -> Result<bool, Infallible> {
        Ok(self.stated.contains(edge) || self.inferred.contains_key(edge))
    }

    fn is_stated(&self, edge: &Edge) -> Result<bool, Infallible> {
        Ok(self.stated.contains(edge))
    }

    fn follow_from(&self, premise: &Edge) -> Result<Vec<Edge>, Infallible> {
        let uses = |reason: &Reason| reason.premises.contains(premise);
        let followers = self.inferred.iter().filter(|(_, reason)| uses(reason));
        Ok(followers.map(|(edge, _)| edge.clone()).collect())
    }
}

impl Memory {
    fn all(&self) -> BTreeSet<Edge> {
        self.stated.iter().chain(self.inferred.keys()).cloned().collect()
    }

    fn state(&mut self, ontology: &Ontology, edges: &[Edge]) {
        let new: Vec<Edge> =
            edges.iter().filter(|edge| !self.has(edge).unwrap()).cloned().collect();
        self.stated.extend(edges.iter().cloned());
        // A stated edge needs no reason.
        self.inferred.retain(|edge, _| !edges.contains(edge));
        let follows = after_stating(ontology, self, &new, 10_000).unwrap();
        assert_eq!(follows.removed, Vec::new());
        self.take(follows);
    }

    fn retract(&mut self, ontology: &Ontology, edges: &[Edge]) {
        let kept = self.clone();
        let gone: Vec<Edge> =
            edges.iter().filter(|edge| kept.stated.contains(*edge)).cloned().collect();
        // They are still there, and no more stated: the store asks before it removes them.
        let mut unstated = kept.clone();
        for edge in &gone {
            unstated.stated.remove(edge);
            let reason = Reason { rule: super::edges::Rule::Chain, premises: Vec::new() };
            unstated.inferred.insert(edge.clone(), reason);
        }
        let change = after_retracting(ontology, &unstated, &gone, 10_000).unwrap();
        self.stated.retain(|edge| !gone.contains(edge));
        self.take(change);
    }

    fn take(&mut self, change: Inferred) {
        self.inferred.retain(|edge, _| !change.removed.contains(edge));
        for (edge, reason) in change.added {
            assert!(!self.stated.contains(&edge), "{} is stated", shown(&edge));
            self.inferred.insert(edge, reason);
        }
    }

    fn inferred(&self) -> Vec<String> {
        self.inferred.keys().map(shown).collect()
    }
}

/// Everything that follows, by trying every rule on all edges until nothing is new.
fn closure(ontology: &Ontology, stated: &BTreeSet<Edge>) -> BTreeSet<Edge> {
    let mut all = stated.clone();
    loop {
        let mut new = BTreeSet::new();
        for edge in &all {
            let rules = &ontology.predicates[&edge.predicate];
            new.extend(rules.parents.iter().map(|up| Edge::new(&edge.source, up, &edge.target)));
            let mut turned: Vec<&Arc<str>> = rules.inverses.iter().collect();
            turned.extend(rules.declared.symmetric.then_some(&edge.predicate));
            new.extend(turned.iter().map(|back| Edge::new(&edge.target, back, &edge.source)));
            for next in all.iter().filter(|next| next.source == edge.target) {
                if rules.declared.transitive && next.predicate == edge.predicate {
                    new.insert(Edge::new(&edge.source, &edge.predicate, &next.target));
                }
            }
        }
        for (sequence, implied) in &ontology.chains {
            let mut ends: Vec<(Node, Node)> =
                all.iter().map(|edge| (edge.source.clone(), edge.source.clone())).collect();
            for predicate in sequence {
                let step = |(start, end): &(Node, Node)| -> Vec<(Node, Node)> {
                    let fits = |edge: &&Edge| edge.predicate == *predicate && edge.source == *end;
                    all.iter()
                        .filter(fits)
                        .map(|edge| (start.clone(), edge.target.clone()))
                        .collect()
                };
                ends = ends.iter().flat_map(step).collect();
            }
            new.extend(ends.iter().map(|(start, end)| Edge::new(start, implied, end)));
        }
        new.retain(|edge| edge.source != edge.target && ontology.check(edge).is_ok());
        let before = all.len();
        all.extend(new);
        if all.len() == before {
            return all;
        }
    }
}

#[test]
fn what_follows_is_inferred_and_taken_back_with_its_last_reason() {
    let ontology = ontology();
    let mut edges = Memory::default();
    let stated = ["o1 placedBy c1", "c1 livesIn r1", "r1 within r2", "r2 within r3"].map(edge);
    edges.state(&ontology, &stated);
    let all = [
        "o1 orderedFrom r1", "o1 orderedFrom r2", "o1 orderedFrom r3", "r1 homeOf c1",
        "r1 within r3",
    ];
    let mut inferred = edges.inferred();
    inferred.sort();
    assert_eq!(inferred, all);
    // Another way to the same.
    edges.state(&ontology, &["r1 within r3"].map(edge));
    edges.retract(&ontology, &["r1 within r2"].map(edge));
    let mut left = edges.inferred();
    left.sort();
    assert_eq!(left, ["o1 orderedFrom r1", "o1 orderedFrom r3", "r1 homeOf c1"]);
    edges.retract(&ontology, &["o1 placedBy c1"].map(edge));
    assert_eq!(edges.inferred(), ["r1 homeOf c1"]);
}

#[test]
fn edges_in_a_circle_do_not_hold_each_other() {
    let ontology = ontology();
    let mut edges = Memory::default();
    edges.state(&ontology, &["r1 borders r2", "r1 within r2", "r2 within r1"].map(edge));
    assert_eq!(edges.inferred(), ["r1 near r2", "r2 near r1"]);
    edges.retract(&ontology, &["r1 borders r2"].map(edge));
    assert_eq!(edges.inferred(), Vec::<String>::new());
}

#[test]
fn an_edge_must_fit_its_predicate() {
    let ontology = ontology();
    let refused = |text: &str| ontology.check(&edge(text)).map_err(|mistake| mistake.to_string());
    assert_eq!(refused("o1 placedBy c1"), Ok(()));
    let domain = "edges of `placedBy` begin at a `Order`, and `shop.Customer` is none";
    assert_eq!(refused("c1 placedBy c1"), Err(domain.to_owned()));
    let range = "edges of `placedBy` lead to a `Customer`, and `shop.Order` is none";
    assert_eq!(refused("o1 placedBy o2"), Err(range.to_owned()));
    assert!(refused("o1 orderedBy c1").is_err());
    assert_eq!(ontology.predicate(" orderedBy ").unwrap().name, "placedBy");
}

#[test]
fn a_type_is_of_its_class_and_of_all_above_it() {
    let mut declared = shop();
    declared.classes.push(Class { same_as: texts(&["Place"]), ..class("Location", &["Thing"]) });
    declared.classes.push(Class { aliases: texts(&["Object"]), ..class("Thing", &[]) });
    let ontology = read(&declared, &types()).unwrap();
    for above in ["Region", "shop.Region", "Place", "Location", "Thing", "Object"] {
        assert!(ontology.is_of("shop.Region", above), "{above}");
        assert!(!ontology.is_of("shop.Order", above), "{above}");
    }
    assert!(!ontology.is_of("shop.Region", "Order"));
}

#[test]
fn what_is_wrong_with_a_declaration_is_said_with_its_place() {
    let wrong = |change: &dyn Fn(&mut Declaration)| -> Vec<String> {
        let mut declared = shop();
        change(&mut declared);
        let mistakes = read(&declared, &types()).unwrap_err();
        mistakes.iter().map(|mistake| format!("{}: {}", mistake.pointer, mistake.message)).collect()
    };
    let of = |found: &str| vec![found.to_owned()];
    let told = wrong(&|declared| declared.predicates[0].domain = Some("Regoin".to_owned()));
    assert_eq!(told, of("/properties/0/domain: `Regoin` is no class"));
    let told = wrong(&|declared| declared.classes[0].parents = texts(&["Region"]));
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0], "/classes/0/parents: the class `Place` is above itself");
    let told = wrong(&|declared| {
        declared.classes.push(class("Area", &[]));
        declared.classes[1].parents.push("Area".to_owned());
        declared.classes[0].disjoint_with = texts(&["Area"]);
    });
    let disjoint = "/classes/0/disjointWith/0: `Place` and `Area` are disjoint, and `shop.Region` \
        is below both";
    assert_eq!(told, of(disjoint));
    let told = wrong(&|declared| declared.predicates[1].aliases = texts(&["within"]));
    assert_eq!(told, of("/properties/1/aliases/0: `within` is another property, too"));
    let told = wrong(&|declared| declared.predicates[4].sub_property_of = texts(&["borders"]));
    assert_eq!(told.len(), 2, "{told:?}");
    let told = wrong(&|declared| declared.chains[0].sequence.truncate(1));
    assert_eq!(told, of("/chains/0/sequence: a chain has 2 to 8 properties"));
    let told = wrong(&|declared| declared.chains[1].implies = "from".to_owned());
    assert_eq!(told, of("/chains/1/implies: `from` is no property"));
    let told = wrong(&|declared| declared.predicates[4].range = None);
    assert_eq!(
        told,
        of("/properties/4/symmetric: `near` is symmetric, and its domain is not its range")
    );
}

#[test]
fn no_change_infers_more_than_it_may() {
    let ontology = ontology();
    let mut edges = Memory::default();
    let chain: Vec<Edge> = (0..40).map(|at| edge(&format!("r{at} within r{}", at + 1))).collect();
    edges.stated.extend(chain.iter().cloned());
    let told = after_stating(&ontology, &edges, &chain, 100);
    assert_eq!(told, Err(InferenceError::TooMany { max: 100 }));
    assert!(after_stating(&ontology, &edges, &chain, 1_000).is_ok());
}

/// A generator of its own, so that a failure is repeated by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn one<'o, T>(&mut self, of: &'o [T]) -> &'o T {
        &of[self.below(of.len())]
    }

    fn often(&mut self, of_ten: usize) -> bool {
        self.below(10) < of_ten
    }
}

fn random_ontology(random: &mut Random) -> Ontology {
    let names = ["a", "b", "c", "d", "e"];
    let mut declared = Declaration::default();
    for (index, name) in names.iter().enumerate() {
        let mut one = predicate(name);
        one.transitive = random.often(3);
        one.symmetric = random.often(2);
        if random.often(2) {
            one.inverse_of = Some((*random.one(&names)).to_owned());
        }
        if index > 0 && random.often(3) {
            one.sub_property_of = texts(&[names[random.below(index)]]);
        }
        if !one.symmetric && random.often(2) {
            one.domain = Some("Region".to_owned());
        }
        declared.predicates.push(one);
    }
    for _ in 0..random.below(3) {
        let sequence = (0..2 + random.below(2)).map(|_| (*random.one(&names)).to_owned()).collect();
        declared.chains.push(Chain { sequence, implies: (*random.one(&names)).to_owned() });
    }
    read(&declared, &types()).unwrap()
}

#[test]
fn inference_comes_to_what_trying_every_rule_comes_to() {
    for seed in 0..300 {
        let random = &mut Random(seed);
        let ontology = random_ontology(random);
        let nodes = ["r1", "r2", "r3", "c1", "o1"];
        let mut edges = Memory::default();
        for step in 0..12 {
            let text = format!(
                "{} {} {}",
                random.one(&nodes),
                random.one(&["a", "b", "c", "d", "e"]),
                random.one(&nodes)
            );
            let new = edge(&text);
            if random.often(6) && ontology.check(&new).is_ok() {
                edges.state(&ontology, &[new]);
            } else {
                let stated: Vec<Edge> = edges.stated.iter().cloned().collect();
                let count = stated.len().min(1 + random.below(2));
                let gone: Vec<Edge> = (0..count).map(|_| random.one(&stated).clone()).collect();
                edges.retract(&ontology, &gone);
            }
            let expected = closure(&ontology, &edges.stated);
            let all = edges.all();
            let extra: Vec<String> = all.difference(&expected).map(shown).collect();
            let missing: Vec<String> = expected.difference(&all).map(shown).collect();
            assert_eq!((extra, missing), (vec![], vec![]), "seed {seed}, step {step}");
        }
    }
}
