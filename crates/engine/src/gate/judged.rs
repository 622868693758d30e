//! Lists as policy judged them for a caller: tools, plans, agents and pipelines. The same list is
//! asked for again and again, by every turn of a model and every client, and changes only with what
//! there is and with the policies. Sessions and asks change all the time: their pages are judged
//! each time.

use crate::catalog::roster::KnownAgent;
use crate::system::locks::lock;
use kernel::definition::pipeline::Pipeline;
use kernel::definition::plan::Plan;
use kernel::tool::call::{Caller, ToolSpec};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// How many lists of one kind are remembered, and how many entries they have together: hundreds of
/// callers ask for the same long list by turns.
const LISTS_MAX: usize = 4_096;
const ENTRIES_MAX: usize = 1 << 20;

/// What a list follows from: as long as this stays, the same caller sees the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListVersion {
    /// Grows with every change of what there is.
    pub catalog: u64,
    /// The version of the policies; none where everything is allowed.
    pub policy: Option<Arc<str>>,
}

/// The lists that were judged already.
#[derive(Default)]
pub(crate) struct JudgedLists {
    /// The tools that callers see.
    pub(crate) tools: Judged<Arc<ToolSpec>>,
    /// The plans that they see, as tools.
    pub(crate) plan_tools: Judged<Arc<ToolSpec>>,
    /// The plans that they may read.
    pub(crate) plans: Judged<Arc<Plan>>,
    /// The agents that they may read.
    pub(crate) agents: Judged<KnownAgent>,
    /// The pipelines that they may read.
    pub(crate) pipelines: Judged<Arc<Pipeline>>,
}

/// Those of one kind, by who asked for them.
pub(crate) struct Judged<T> {
    lists: Mutex<Lists<T>>,
}

struct Lists<T> {
    by_caller: HashMap<Caller, Kept<T>>,
    /// How many entries all of them have.
    entries: usize,
}

struct Kept<T> {
    version: ListVersion,
    items: Vec<T>,
}

impl<T> Default for Judged<T> {
    fn default() -> Self {
        Self { lists: Mutex::new(Lists { by_caller: HashMap::new(), entries: 0 }) }
    }
}

impl<T: Clone> Judged<T> {
    /// What this caller saw, if that was judged in this version.
    pub(crate) fn find(&self, caller: &Caller, version: &ListVersion) -> Option<Vec<T>> {
        let lists = lock(&self.lists);
        let kept = lists.by_caller.get(caller)?;
        (kept.version == *version).then(|| kept.items.clone())
    }

    /// Remembers what this caller sees. Where there is no room, all lists of other versions go, and
    /// if that is not enough, all: the next one is judged again.
    pub(crate) fn keep(&self, caller: &Caller, version: ListVersion, items: &[T]) {
        let kept = Kept { version, items: items.to_vec() };
        let mut lists = lock(&self.lists);
        if let Some(before) = lists.by_caller.remove(caller) {
            lists.entries -= before.items.len();
        }
        if !lists.has_room(items.len()) {
            lists.retain(|other| other.version == kept.version);
        }
        if !lists.has_room(items.len()) {
            lists.retain(|_| false);
        }
        lists.entries += items.len();
        lists.by_caller.insert(caller.clone(), kept);
    }
}

impl<T> Lists<T> {
    fn has_room(&self, entries: usize) -> bool {
        self.by_caller.len() < LISTS_MAX && self.entries.saturating_add(entries) <= ENTRIES_MAX
    }

    fn retain(&mut self, stays: impl Fn(&Kept<T>) -> bool) {
        self.by_caller.retain(|_, kept| stays(kept));
        self.entries = self.by_caller.values().map(|kept| kept.items.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::values::caller::{Scope, Scopes};

    fn version(catalog: u64, policy: &str) -> ListVersion {
        ListVersion { catalog, policy: Some(policy.into()) }
    }

    #[test]
    fn a_list_is_good_for_its_caller_and_its_version_alone() {
        let (judged, ann) = (Judged::default(), Caller::new("r", "ann"));
        judged.keep(&ann, version(1, "a"), &["x"]);
        assert_eq!(judged.find(&ann, &version(1, "a")), Some(vec!["x"]));
        assert_eq!(judged.find(&ann, &version(2, "a")), None);
        assert_eq!(judged.find(&ann, &version(1, "b")), None);
        let reads: Scopes = [Scope::Read].into_iter().collect();
        for other in [
            Caller { scopes: Some(reads), ..ann.clone() },
            Caller { actor: Some("bob".into()), ..ann.clone() },
            ann.clone().administering(),
            Caller::new("other", "ann"),
        ] {
            assert_eq!(judged.find(&other, &version(1, "a")), None, "{other:?}");
        }
    }

    #[test]
    fn only_so_many_are_remembered_and_old_versions_go_first() {
        let judged = Judged::<u8>::default();
        let caller = |number: usize| Caller::new("r", format!("c{number}"));
        judged.keep(&caller(0), version(1, "a"), &[]);
        for number in 1..LISTS_MAX {
            judged.keep(&caller(number), version(2, "a"), &[]);
        }
        judged.keep(&caller(LISTS_MAX), version(2, "a"), &[]);
        assert_eq!(lock(&judged.lists).by_caller.len(), LISTS_MAX);
        assert!(judged.find(&caller(1), &version(2, "a")).is_some());
        judged.keep(&caller(LISTS_MAX + 1), version(2, "a"), &[]);
        assert_eq!(lock(&judged.lists).by_caller.len(), 1);
    }

    #[test]
    fn hundreds_of_callers_take_turns_and_long_lists_are_bounded_together() {
        let judged = Judged::<u8>::default();
        let caller = |number: usize| Caller::new("r", format!("c{number}"));
        let long = vec![0; 2_000];
        for number in 0..500 {
            judged.keep(&caller(number), version(1, "a"), &long);
            judged.keep(&caller(number), version(1, "a"), &long);
        }
        assert_eq!(lock(&judged.lists).entries, 500 * 2_000, "a list counts once");
        assert!((0..500).all(|number| judged.find(&caller(number), &version(1, "a")).is_some()));
        for number in 500..600 {
            judged.keep(&caller(number), version(1, "a"), &long);
            assert!(lock(&judged.lists).entries <= ENTRIES_MAX);
        }
        assert!(judged.find(&caller(599), &version(1, "a")).is_some());
    }
}
