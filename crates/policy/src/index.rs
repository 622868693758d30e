//! Which policies could apply to an act on a resource, by their heads alone. Only these are
//! evaluated: a policy about another tool costs nothing.

use crate::files::{FilePolicy, Resources};
use crate::schema::Kind;
use kernel::values::caller::Act;
use std::collections::HashMap;

/// Policies by act, and by tool where they name the tool's own action.
#[derive(Debug, Default)]
pub(crate) struct Index {
    acts: HashMap<Act, Bucket>,
    tools: HashMap<String, Bucket>,
}

/// Policies by resource, as places in the list of all.
#[derive(Debug, Default)]
struct Bucket {
    any: Vec<usize>,
    kinds: HashMap<String, Vec<usize>>,
    /// By the name of the type, then by name.
    ones: HashMap<String, HashMap<String, Vec<usize>>>,
}

impl Index {
    pub(crate) fn new(policies: &[FilePolicy]) -> Self {
        let mut index = Self::default();
        for (place, policy) in policies.iter().enumerate() {
            for act in Act::ALL.iter().filter(|act| policy.actions.cover(**act)) {
                index.acts.entry(*act).or_default().insert(place, &policy.resources);
            }
            if policy.actions.cover(Act::Call) {
                // It is found by the act already.
                continue;
            }
            for tool in &policy.actions.tools {
                let bucket = index.tools.entry(tool.clone()).or_default();
                bucket.insert(place, &policy.resources);
            }
        }
        index
    }

    /// The policies that could apply, in their order.
    pub(crate) fn candidates(&self, act: Act, kind: Kind, name: &str) -> Vec<usize> {
        let is_call = act == Act::Call && kind == Kind::Tool;
        let of_tool = if is_call { self.tools.get(name) } else { None };
        let mut found = Vec::new();
        for bucket in self.acts.get(&act).into_iter().chain(of_tool) {
            bucket.find(kind.name(), name, &mut found);
        }
        found.sort_unstable();
        found
    }
}

impl Bucket {
    fn insert(&mut self, place: usize, resources: &Resources) {
        match resources {
            Resources::Any => self.any.push(place),
            Resources::Kind(kind) => self.kinds.entry(kind.clone()).or_default().push(place),
            Resources::One { kind, id } => {
                let of_kind = self.ones.entry(kind.clone()).or_default();
                of_kind.entry(id.clone()).or_default().push(place);
            }
        }
    }

    fn find(&self, kind: &str, name: &str, found: &mut Vec<usize>) {
        found.extend(&self.any);
        found.extend(self.kinds.get(kind).into_iter().flatten());
        let one = self.ones.get(kind).and_then(|of_kind| of_kind.get(name));
        found.extend(one.into_iter().flatten());
    }
}
