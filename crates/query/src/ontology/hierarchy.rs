//! What stands above what: the names that are reached from each name, and circles among them.

use std::collections::{BTreeMap, BTreeSet};

/// All that is reached from each key, without the key itself unless a circle leads back to it.
pub(super) fn reached<K: Ord + Clone>(next: &BTreeMap<K, BTreeSet<K>>) -> BTreeMap<K, BTreeSet<K>> {
    let mut all = BTreeMap::new();
    for start in next.keys() {
        let mut found = BTreeSet::new();
        let mut waiting: Vec<&K> = next.get(start).into_iter().flatten().collect();
        while let Some(name) = waiting.pop() {
            if found.insert(name.clone()) {
                waiting.extend(next.get(name).into_iter().flatten());
            }
        }
        all.insert(start.clone(), found);
    }
    all
}

/// For each name the least of those that are the same as it, in whichever direction it is said.
pub(super) fn representatives(names: &[&str], same: &[(&str, &str)]) -> BTreeMap<String, String> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for name in names {
        next.entry(name).or_default().insert(name);
    }
    for (left, right) in same {
        next.entry(left).or_default().insert(right);
        next.entry(right).or_default().insert(left);
    }
    let least = |found: &BTreeSet<&str>| found.first().map(|name| (*name).to_owned());
    let all = reached(&next);
    all.iter().filter_map(|(name, found)| Some(((*name).to_owned(), least(found)?))).collect()
}
