//! Pages that threads wait for, by who brings the tool that wants them and by the tool's own key.
//! Whoever hears that a page was opened finds here whom to wake. It is kept in memory alone: what
//! is not found is looked at when its time comes.

use kernel::ids::{AskId, SessionKey};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many are remembered.
const AWAITED_MAX: usize = 16_384;

/// The pages that are waited for.
#[derive(Default)]
pub(crate) struct Pages {
    awaited: Mutex<Awaited>,
}

#[derive(Default)]
struct Awaited {
    by_page: HashMap<Page, BTreeMap<AskId, SessionKey>>,
    count: usize,
}

/// Whose page, and its key.
type Page = (Arc<str>, String);

impl Pages {
    /// This ask of this session waits for these pages of a source's tool.
    pub(crate) fn await_opening<'k>(
        &self,
        source: &Arc<str>,
        pages: impl Iterator<Item = &'k String>,
        (key, ask): (&SessionKey, AskId),
    ) {
        let mut awaited = self.awaited();
        for page in pages {
            if awaited.count >= AWAITED_MAX {
                // Each comes back with its next look.
                *awaited = Awaited::default();
            }
            let asks = awaited.by_page.entry((source.clone(), page.clone())).or_default();
            if asks.insert(ask, key.clone()).is_none() {
                awaited.count += 1;
            }
        }
    }

    /// Those who wait for this page. They are forgotten: a server that says so again and again has
    /// nobody woken before they have looked in their own time.
    pub(crate) fn opened(&self, source: &str, page: &str) -> BTreeMap<AskId, SessionKey> {
        let mut awaited = self.awaited();
        let page: Page = (source.into(), page.to_owned());
        let asks = awaited.by_page.remove(&page).unwrap_or_default();
        awaited.count -= asks.len();
        asks
    }

    fn awaited(&self) -> MutexGuard<'_, Awaited> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::ids::Space;

    fn session(id: &str) -> SessionKey {
        SessionKey { realm: "r".into(), space: Space::thread(), id: id.into() }
    }

    #[test]
    fn whoever_waits_for_a_page_is_found_once() {
        let (pages, source) = (Pages::default(), Arc::from("upstream `a`"));
        let keys = ["e1".to_owned(), "e2".to_owned()];
        pages.await_opening(&source, keys.iter(), (&session("s"), AskId(1)));
        pages.await_opening(&source, keys.iter(), (&session("s"), AskId(1)));
        pages.await_opening(&source, keys[..1].iter(), (&session("t"), AskId(2)));
        assert!(pages.opened("upstream `b`", "e1").is_empty(), "another server's word");
        let woken = BTreeMap::from([(AskId(1), session("s")), (AskId(2), session("t"))]);
        assert_eq!(pages.opened("upstream `a`", "e1"), woken);
        assert!(pages.opened("upstream `a`", "e1").is_empty());
        assert_eq!(pages.opened("upstream `a`", "e2").len(), 1);
        assert_eq!(pages.awaited().count, 0);
    }

    #[test]
    fn only_so_many_are_remembered() {
        let (pages, source) = (Pages::default(), Arc::from("upstream `a`"));
        for number in 0..AWAITED_MAX * 2 + 1 {
            let page = [format!("e{number}")];
            pages.await_opening(&source, page.iter(), (&session("s"), AskId(1)));
        }
        assert_eq!(pages.awaited().by_page.len(), 1);
    }
}
