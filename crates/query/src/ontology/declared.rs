//! A declaration, checked: every name is known and means one thing, nothing stands above itself,
//! and no class is below two that are disjoint.

use super::hierarchy::{reached, representatives};
use super::{Chain, Class, Declaration, Ontology, Predicate, Rules};
use crate::types::TypeSet;
use kernel::definition::plan::mistake::meant;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How much a declaration can have: what follows from it is computed with every edge.
const CLASSES_MAX: usize = 1_000;
const PREDICATES_MAX: usize = 200;
const CHAINS_MAX: usize = 100;
const CHAIN_LENGTH_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OntologyMistake {
    /// What is wrong, as a JSON pointer into the declaration.
    pub pointer: String,
    pub message: String,
    pub hint: Option<String>,
}

/// What a declaration means for these types, or everything that is wrong with it.
pub fn read(declaration: &Declaration, types: &TypeSet) -> Result<Ontology, Vec<OntologyMistake>> {
    let mut checker = Checker { mistakes: Vec::new() };
    checker.sizes(declaration);
    let (classes, above) = checker.classes(&declaration.classes, types);
    let names = checker.predicate_names(&declaration.predicates);
    checker.ends(&declaration.predicates, &classes);
    let predicates = checker.rules(&declaration.predicates, &names);
    let chains = checker.chains(&declaration.chains, &names);
    if !checker.mistakes.is_empty() {
        return Err(checker.mistakes);
    }
    let mut ontology = Ontology { predicates, names, classes, above, chains };
    ontology.link_chains();
    Ok(ontology)
}

impl Ontology {
    fn link_chains(&mut self) {
        for (index, (sequence, implied)) in self.chains.iter().enumerate() {
            for (place, name) in sequence.iter().enumerate() {
                if let Some(rules) = self.predicates.get_mut(name) {
                    rules.links.push((index, place));
                }
            }
            if let Some(rules) = self.predicates.get_mut(implied) {
                rules.implied_by.push(index);
            }
        }
    }
}

type Classes = (BTreeMap<String, String>, BTreeMap<String, BTreeSet<String>>);

struct Checker {
    mistakes: Vec<OntologyMistake>,
}

impl Checker {
    fn note(&mut self, pointer: String, message: String, hint: Option<String>) {
        self.mistakes.push(OntologyMistake { pointer, message, hint });
    }

    fn sizes(&mut self, declaration: &Declaration) {
        let counts = [
            ("classes", declaration.classes.len(), CLASSES_MAX),
            ("properties", declaration.predicates.len(), PREDICATES_MAX),
            ("chains", declaration.chains.len(), CHAINS_MAX),
        ];
        for (what, count, max) in counts {
            if count > max {
                let message = format!("there are {count} {what}, more than {max}");
                self.note(format!("/{what}"), message, None);
            }
        }
    }

    fn unknown(&mut self, pointer: String, what: &str, name: &str, known: &[&str]) {
        let hint = meant(name, known.iter().copied());
        self.note(pointer, format!("`{name}` is no {what}"), hint);
    }

    fn classes(&mut self, declared: &[Class], types: &TypeSet) -> Classes {
        let mut names = class_names(declared, types);
        for (index, class) in declared.iter().enumerate() {
            for (place, alias) in class.aliases.iter().enumerate() {
                let pointer = format!("/classes/{index}/aliases/{place}");
                if names.get(alias).is_some_and(|known| *known != class.name) {
                    self.note(pointer, format!("`{alias}` is another class, too"), None);
                } else {
                    names.insert(alias.clone(), class.name.clone());
                }
            }
            let is_repeated = declared.iter().take(index).any(|other| other.name == class.name);
            if is_repeated {
                let message = format!("the class `{}` is declared twice", class.name);
                self.note(format!("/classes/{index}"), message, None);
            }
        }
        let known: Vec<&str> = names.keys().map(String::as_str).collect();
        let mut same = Vec::new();
        for (index, class) in declared.iter().enumerate() {
            let lists = [
                ("parents", &class.parents),
                ("disjointWith", &class.disjoint_with),
                ("sameAs", &class.same_as),
            ];
            for (key, list) in lists {
                for (place, name) in list.iter().enumerate() {
                    if !names.contains_key(name) {
                        let pointer = format!("/classes/{index}/{key}/{place}");
                        self.unknown(pointer, "class", name, &known);
                    }
                }
            }
            let others = class.same_as.iter().filter_map(|other| names.get(other));
            same.extend(others.map(|other| (class.name.as_str(), other.as_str())));
        }
        let canonical: Vec<&str> = names.values().map(String::as_str).collect();
        let one = representatives(&canonical, &same);
        let class_of = |name: &String| names.get(name).and_then(|name| one.get(name)).cloned();
        let mut next: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for name in one.values() {
            next.entry(name.clone()).or_default();
        }
        for class in declared {
            let Some(own) = class_of(&class.name) else { continue };
            next.entry(own).or_default().extend(class.parents.iter().filter_map(class_of));
        }
        let mut above = reached(&next);
        self.circles(declared, &above, &class_of);
        for (name, all) in &mut above {
            all.insert(name.clone());
        }
        self.disjoint(declared, &above, &class_of);
        let classes = names.keys().filter_map(|name| Some((name.clone(), class_of(name)?)));
        (classes.collect(), above)
    }

    fn circles(
        &mut self,
        declared: &[Class],
        above: &BTreeMap<String, BTreeSet<String>>,
        class_of: &dyn Fn(&String) -> Option<String>,
    ) {
        for (index, class) in declared.iter().enumerate() {
            let is_above_itself = class_of(&class.name)
                .and_then(|own| Some(above.get(&own)?.contains(&own)))
                .unwrap_or_default();
            if is_above_itself {
                let message = format!("the class `{}` is above itself", class.name);
                let hint = "for two names of one class write `sameAs`".to_owned();
                self.note(format!("/classes/{index}/parents"), message, Some(hint));
            }
        }
    }

    fn disjoint(
        &mut self,
        declared: &[Class],
        above: &BTreeMap<String, BTreeSet<String>>,
        class_of: &dyn Fn(&String) -> Option<String>,
    ) {
        for (index, class) in declared.iter().enumerate() {
            for (place, other) in class.disjoint_with.iter().enumerate() {
                let (Some(own), Some(disjoint)) = (class_of(&class.name), class_of(other)) else {
                    continue;
                };
                let below_both =
                    above.iter().find(|(_, all)| all.contains(&own) && all.contains(&disjoint));
                if let Some((below, _)) = below_both {
                    let message = format!(
                        "`{}` and `{other}` are disjoint, and `{below}` is below both",
                        class.name
                    );
                    self.note(format!("/classes/{index}/disjointWith/{place}"), message, None);
                }
            }
        }
    }

    fn predicate_names(&mut self, declared: &[Predicate]) -> BTreeMap<String, Arc<str>> {
        let mut names: BTreeMap<String, Arc<str>> = BTreeMap::new();
        let mut taken = |name: &String, of: &str, pointer: String, checker: &mut Self| {
            if names.contains_key(name) {
                checker.note(pointer, format!("`{name}` is another property, too"), None);
            } else {
                names.insert(name.clone(), of.into());
            }
        };
        for (index, predicate) in declared.iter().enumerate() {
            taken(&predicate.name, &predicate.name, format!("/properties/{index}/name"), self);
        }
        for (index, predicate) in declared.iter().enumerate() {
            for (place, alias) in predicate.aliases.iter().enumerate() {
                let pointer = format!("/properties/{index}/aliases/{place}");
                taken(alias, &predicate.name, pointer, self);
            }
        }
        names
    }

    fn ends(&mut self, declared: &[Predicate], classes: &BTreeMap<String, String>) {
        let known: Vec<&str> = classes.keys().map(String::as_str).collect();
        for (index, predicate) in declared.iter().enumerate() {
            let ends = [("domain", &predicate.domain), ("range", &predicate.range)];
            for (key, class) in ends {
                if let Some(class) = class.as_ref().filter(|class| !classes.contains_key(*class)) {
                    self.unknown(format!("/properties/{index}/{key}"), "class", class, &known);
                }
            }
            if predicate.symmetric && predicate.domain != predicate.range {
                let message =
                    format!("`{}` is symmetric, and its domain is not its range", predicate.name);
                self.note(format!("/properties/{index}/symmetric"), message, None);
            }
        }
    }

    fn rules(
        &mut self,
        declared: &[Predicate],
        names: &BTreeMap<String, Arc<str>>,
    ) -> BTreeMap<Arc<str>, Rules> {
        let mut next: BTreeMap<Arc<str>, BTreeSet<Arc<str>>> = BTreeMap::new();
        let mut inverses: Vec<(Arc<str>, Arc<str>)> = Vec::new();
        for (index, predicate) in declared.iter().enumerate() {
            let own: Arc<str> = predicate.name.as_str().into();
            let parents = next.entry(own.clone()).or_default();
            for (place, parent) in predicate.sub_property_of.iter().enumerate() {
                match names.get(parent) {
                    Some(parent) => {
                        parents.insert(parent.clone());
                    }
                    None => {
                        let pointer = format!("/properties/{index}/subPropertyOf/{place}");
                        self.unknown(pointer, "property", parent, &known(names));
                    }
                }
            }
            if let Some(inverse) = &predicate.inverse_of {
                match names.get(inverse) {
                    Some(inverse) => inverses.push((own, inverse.clone())),
                    None => {
                        let pointer = format!("/properties/{index}/inverseOf");
                        self.unknown(pointer, "property", inverse, &known(names));
                    }
                }
            }
        }
        let above = reached(&next);
        let mut rules = BTreeMap::new();
        for (index, predicate) in declared.iter().enumerate() {
            let own: Arc<str> = predicate.name.as_str().into();
            let parents = above.get(&own).cloned().unwrap_or_default();
            if parents.contains(&own) {
                let message = format!("the property `{own}` is above itself");
                self.note(format!("/properties/{index}/subPropertyOf"), message, None);
            }
            let below = above.iter().filter(|(_, parents)| parents.contains(&own));
            let of_own = |pair: &(Arc<str>, Arc<str>)| match pair {
                (left, right) if *left == own => Some(right.clone()),
                (left, right) if *right == own => Some(left.clone()),
                _ => None,
            };
            let entailed = Rules {
                declared: predicate.clone(),
                children: below.map(|(name, _)| name.clone()).collect(),
                parents,
                inverses: inverses.iter().filter_map(of_own).collect(),
                links: Vec::new(),
                implied_by: Vec::new(),
            };
            rules.insert(own, entailed);
        }
        rules
    }

    fn chains(
        &mut self,
        declared: &[Chain],
        names: &BTreeMap<String, Arc<str>>,
    ) -> Vec<(Vec<Arc<str>>, Arc<str>)> {
        let mut chains = Vec::new();
        for (index, chain) in declared.iter().enumerate() {
            let length = chain.sequence.len();
            if !(2..=CHAIN_LENGTH_MAX).contains(&length) {
                let message = format!("a chain has 2 to {CHAIN_LENGTH_MAX} properties");
                self.note(format!("/chains/{index}/sequence"), message, None);
            }
            for (place, name) in chain.sequence.iter().enumerate() {
                if !names.contains_key(name) {
                    let pointer = format!("/chains/{index}/sequence/{place}");
                    self.unknown(pointer, "property", name, &known(names));
                }
            }
            let Some(implied) = names.get(&chain.implies) else {
                let pointer = format!("/chains/{index}/implies");
                self.unknown(pointer, "property", &chain.implies, &known(names));
                continue;
            };
            let sequence = chain.sequence.iter().filter_map(|name| names.get(name).cloned());
            chains.push((sequence.collect(), implied.clone()));
        }
        chains
    }
}

fn known(names: &BTreeMap<String, Arc<str>>) -> Vec<&str> {
    names.keys().map(String::as_str).collect()
}

/// The classes that are declared, and the types, which are classes by both of their names.
fn class_names(declared: &[Class], types: &TypeSet) -> BTreeMap<String, String> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for record_type in types.all() {
        let full = record_type.full_name();
        // A name alone means the type that has it, unless several have.
        if types.find(&record_type.name).is_ok() {
            names.insert(record_type.name.clone(), full.clone());
        }
        names.insert(full.clone(), full);
    }
    for class in declared {
        names.entry(class.name.clone()).or_insert_with(|| class.name.clone());
    }
    names
}
