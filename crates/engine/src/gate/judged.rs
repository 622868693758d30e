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

/// How many lists of one kind are remembered.
const LISTS_MAX: usize = 256;

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
    lists: Mutex<HashMap<Caller, Kept<T>>>,
}

struct Kept<T> {
    version: ListVersion,
    items: Vec<T>,
}

impl<T> Default for Judged<T> {
    fn default() -> Self {
        Self { lists: Mutex::default() }
    }
}

impl<T: Clone> Judged<T> {
    /// What this caller saw, if that was judged in this version.
    pub(crate) fn find(&self, caller: &Caller, version: &ListVersion) -> Option<Vec<T>> {
        let lists = lock(&self.lists);
        let kept = lists.get(caller)?;
        (kept.version == *version).then(|| kept.items.clone())
    }

    /// Remembers what this caller sees. Where there is no room, all lists of other versions go, and
    /// if there are none, all: the next one is judged again.
    pub(crate) fn keep(&self, caller: &Caller, version: ListVersion, items: &[T]) {
        let mut lists = lock(&self.lists);
        if lists.len() >= LISTS_MAX {
            lists.retain(|_, kept| kept.version == version);
        }
        if lists.len() >= LISTS_MAX {
            lists.clear();
        }
        lists.insert(caller.clone(), Kept { version, items: items.to_vec() });
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
        assert_eq!(lock(&judged.lists).len(), LISTS_MAX);
        assert!(judged.find(&caller(1), &version(2, "a")).is_some());
        judged.keep(&caller(LISTS_MAX + 1), version(2, "a"), &[]);
        assert_eq!(lock(&judged.lists).len(), 1);
    }
}
