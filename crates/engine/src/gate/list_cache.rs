//! Lists as policy judged them for a caller: tools, plans, agents and pipelines. The same list is
//! asked for again and again, by every turn of a model and every client, and changes only with what
//! there is and with the policies. Sessions and asks change all the time: their pages are judged
//! each time.

use crate::catalog::roster::KnownAgent;
use crate::system::locks::lock;
use kernel::definition::pipeline::Pipeline;
use kernel::definition::plan::Plan;
use kernel::tool::call::{Caller, ToolSpec};
use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use std::sync::{Arc, Mutex};

/// How many lists of one kind are cached, and how many entries they have together: hundreds of
/// callers ask for the same long list by turns.
const LISTS_MAX: usize = 4_096;
const ENTRIES_MAX: usize = 1 << 20;

/// Version of everything that a list depends on: with the same version, a caller sees the same
/// list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListVersion {
    /// Grows with every change of what there is.
    pub catalog: u64,
    /// The version of the policies; none where everything is allowed.
    pub policy: Option<Arc<str>>,
}

/// The lists that were judged already.
#[derive(Default)]
pub(crate) struct ListCaches {
    /// The tools that callers see.
    pub(crate) tools: ListCache<Arc<ToolSpec>>,
    /// The plans that they see, as tools.
    pub(crate) plan_tools: ListCache<Arc<ToolSpec>>,
    /// The plans that they may read.
    pub(crate) plans: ListCache<Arc<Plan>>,
    /// The agents that they may read.
    pub(crate) agents: ListCache<KnownAgent>,
    /// The pipelines that they may read.
    pub(crate) pipelines: ListCache<Arc<Pipeline>>,
}

/// Those of one kind, by who asked for them.
pub(crate) struct ListCache<T>(Mutex<Cache<Caller, CachedList<T>, EntryWeighter>>);

struct CachedList<T> {
    version: ListVersion,
    items: Vec<T>,
}

/// A list weighs as much as it has entries, and a short one as much as if all lists were equally
/// long: so both limits hold.
struct EntryWeighter;

impl<T> Weighter<Caller, CachedList<T>> for EntryWeighter {
    fn weight(&self, _caller: &Caller, kept: &CachedList<T>) -> u64 {
        kept.items.len().max(ENTRIES_MAX / LISTS_MAX) as u64
    }
}

impl<T> Default for ListCache<T> {
    fn default() -> Self {
        Self(Mutex::new(Cache::with_weighter(LISTS_MAX, ENTRIES_MAX as u64, EntryWeighter)))
    }
}

impl<T: Clone> ListCache<T> {
    /// The cached list of this caller, if it was judged in this version.
    pub(crate) fn find(&self, caller: &Caller, version: &ListVersion) -> Option<Vec<T>> {
        let lists = lock(&self.0);
        let kept = lists.get(caller)?;
        (kept.version == *version).then(|| kept.items.clone())
    }

    /// Keeps what this caller sees.
    pub(crate) fn keep(&self, caller: &Caller, version: ListVersion, items: &[T]) {
        let kept = CachedList { version, items: items.to_vec() };
        lock(&self.0).insert(caller.clone(), kept);
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
    fn a_cached_list_is_valid_for_its_caller_and_version_only() {
        let judged = ListCache::default();
        let ann = Caller::new("r", "ann");
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
    fn the_list_cache_is_bounded() {
        let judged = ListCache::<u8>::default();
        let caller = |number: usize| Caller::new("r", format!("c{number}"));
        for number in 0..LISTS_MAX + 100 {
            judged.keep(&caller(number), version(1, "a"), &[]);
            assert!(judged.find(&caller(number), &version(1, "a")).is_some());
        }
        assert!(lock(&judged.0).len() <= LISTS_MAX);
    }

    #[test]
    fn the_list_cache_is_bounded_by_total_size_over_callers() {
        let judged = ListCache::<u8>::default();
        let caller = |number: usize| Caller::new("r", format!("c{number}"));
        let long = vec![0; 2_000];
        for number in 0..500 {
            judged.keep(&caller(number), version(1, "a"), &long);
            judged.keep(&caller(number), version(1, "a"), &long);
        }
        assert_eq!(lock(&judged.0).weight(), 500 * 2_000, "a list counts once");
        assert!((0..500).all(|number| judged.find(&caller(number), &version(1, "a")).is_some()));
        for number in 500..600 {
            judged.keep(&caller(number), version(1, "a"), &long);
            assert!(lock(&judged.0).weight() <= ENTRIES_MAX as u64);
        }
        assert!(judged.find(&caller(599), &version(1, "a")).is_some());
    }
}
