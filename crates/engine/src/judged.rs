//! Lists of tools as policy judged them for a caller. The same list is asked for again and again,
//! by every turn of a model and every client, and changes only with the catalog and the policies.

use crate::locks::lock;
use kernel::call::{Caller, ToolSpec};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// How many lists are remembered.
const LISTS_MAX: usize = 256;

/// What a list of tools follows from: as long as this stays, the same caller sees the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListVersion {
    /// Grows with every change of what there is.
    pub catalog: u64,
    /// The version of the policies; none where everything is allowed.
    pub policy: Option<Arc<str>>,
}

/// Which list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Listing {
    /// The tools.
    Tools,
    /// The plans as tools.
    Plans,
}

/// The lists that were judged already.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    lists: Mutex<HashMap<(Caller, Listing), Kept>>,
}

#[derive(Debug)]
struct Kept {
    version: ListVersion,
    specs: Vec<Arc<ToolSpec>>,
}

impl Judged {
    /// What this caller saw, if that was judged in this version.
    pub(crate) fn find(
        &self,
        caller: &Caller,
        listing: Listing,
        version: &ListVersion,
    ) -> Option<Vec<Arc<ToolSpec>>> {
        let lists = lock(&self.lists);
        let kept = lists.get(&(caller.clone(), listing))?;
        (kept.version == *version).then(|| kept.specs.clone())
    }

    /// Remembers what this caller sees. Where there is no room, all lists of other versions go, and
    /// if there are none, all: whoever comes next is judged anew.
    pub(crate) fn keep(
        &self,
        caller: &Caller,
        listing: Listing,
        version: ListVersion,
        specs: &[Arc<ToolSpec>],
    ) {
        let mut lists = lock(&self.lists);
        if lists.len() >= LISTS_MAX {
            lists.retain(|_, kept| kept.version == version);
        }
        if lists.len() >= LISTS_MAX {
            lists.clear();
        }
        let kept = Kept { version, specs: specs.to_vec() };
        lists.insert((caller.clone(), listing), kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::caller::{Scope, Scopes};

    fn version(catalog: u64, policy: &str) -> ListVersion {
        ListVersion { catalog, policy: Some(policy.into()) }
    }

    #[test]
    fn a_list_is_good_for_its_caller_and_its_version_alone() {
        let (judged, ann) = (Judged::default(), Caller::new("r", "ann"));
        judged.keep(&ann, Listing::Tools, version(1, "a"), &[]);
        assert_eq!(judged.find(&ann, Listing::Tools, &version(1, "a")), Some(Vec::new()));
        assert_eq!(judged.find(&ann, Listing::Plans, &version(1, "a")), None);
        assert_eq!(judged.find(&ann, Listing::Tools, &version(2, "a")), None);
        assert_eq!(judged.find(&ann, Listing::Tools, &version(1, "b")), None);
        let reads: Scopes = [Scope::Read].into_iter().collect();
        for other in [
            Caller { scopes: Some(reads), ..ann.clone() },
            Caller { actor: Some("bob".into()), ..ann.clone() },
            ann.clone().administering(),
            Caller::new("other", "ann"),
        ] {
            assert_eq!(judged.find(&other, Listing::Tools, &version(1, "a")), None, "{other:?}");
        }
    }

    #[test]
    fn only_so_many_are_remembered_and_old_versions_go_first() {
        let judged = Judged::default();
        let caller = |number: usize| Caller::new("r", format!("c{number}"));
        judged.keep(&caller(0), Listing::Tools, version(1, "a"), &[]);
        for number in 1..LISTS_MAX {
            judged.keep(&caller(number), Listing::Tools, version(2, "a"), &[]);
        }
        judged.keep(&caller(LISTS_MAX), Listing::Tools, version(2, "a"), &[]);
        assert_eq!(lock(&judged.lists).len(), LISTS_MAX);
        assert!(judged.find(&caller(1), Listing::Tools, &version(2, "a")).is_some());
        judged.keep(&caller(LISTS_MAX + 1), Listing::Tools, version(2, "a"), &[]);
        assert_eq!(lock(&judged.lists).len(), 1);
    }
}
