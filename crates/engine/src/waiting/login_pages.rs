//! Who waits for which login page, by the tool's source and the page's id there: threads, and
//! clients that were given one. When a page is reported as opened, the waiters are woken. Kept in
//! memory only: a thread that is not found polls at its own interval, and a client that is not
//! called back calls again when its user says so.

use crate::system::locks::lock;
use kernel::values::ids::{AskId, SessionKey};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};

/// How many waits of threads are remembered.
const AWAITED_MAX: usize = 16_384;
/// How many clients' are; the oldest go first.
const HEARERS_MAX: usize = 1_024;

/// The pages that are waited for.
#[derive(Default)]
pub(crate) struct Pages {
    awaited: Mutex<PendingPages>,
    hearers: Mutex<VecDeque<(Page, PageCallback)>>,
}

/// Hears once that a page was opened. It must not wait for anything.
pub type PageCallback = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct PendingPages {
    by_page: HashMap<Page, BTreeMap<AskId, SessionKey>>,
    count: usize,
}

/// Whose page, and its name there.
type Page = (Arc<str>, String);

impl Pages {
    /// This ask of this session waits for these pages of a source's tool.
    pub(crate) fn await_opening<'k>(
        &self,
        source: &Arc<str>,
        pages: impl Iterator<Item = &'k String>,
        key: &SessionKey,
        ask: AskId,
    ) {
        let mut awaited = lock(&self.awaited);
        for page in pages {
            if awaited.count >= AWAITED_MAX {
                // Each comes back with its next look.
                *awaited = PendingPages::default();
            }
            let asks = awaited.by_page.entry((source.clone(), page.clone())).or_default();
            if asks.insert(ask, key.clone()).is_none() {
                awaited.count += 1;
            }
        }
    }

    /// Those who wait for this page. They are forgotten: a server that says so again and again has
    /// no one woken before they have looked in their own time.
    pub(crate) fn opened(&self, source: &str, page: &str) -> BTreeMap<AskId, SessionKey> {
        let mut awaited = lock(&self.awaited);
        let page: Page = (source.into(), page.to_owned());
        let asks = awaited.by_page.remove(&page).unwrap_or_default();
        awaited.count -= asks.len();
        asks
    }

    /// This one hears when a source's page is opened.
    pub(crate) fn hear(&self, source: &Arc<str>, page: &str, hearer: PageCallback) {
        let oldest = {
            let mut hearers = lock(&self.hearers);
            hearers.push_back(((source.clone(), page.to_owned()), hearer));
            if hearers.len() > HEARERS_MAX { hearers.pop_front() } else { None }
        };
        // Outside of the lock: no one knows what it holds.
        drop(oldest);
    }

    /// Those who hear of this page. They are forgotten, as a page is opened once.
    pub(crate) fn hearers_of(&self, source: &str, page: &str) -> Vec<PageCallback> {
        let is_it = |(of, name): &Page| **of == *source && name == page;
        let mut hearers = lock(&self.hearers);
        // A server may say much; most of it is about nothing that anybody was given.
        if !hearers.iter().any(|(page, _)| is_it(page)) {
            return Vec::new();
        }
        let all = std::mem::take(&mut *hearers);
        let (told, others): (VecDeque<_>, VecDeque<_>) =
            all.into_iter().partition(|(page, _)| is_it(page));
        *hearers = others;
        told.into_iter().map(|(_, hearer)| hearer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::values::ids::Space;

    fn session(id: &str) -> SessionKey {
        SessionKey::new("r", Space::thread(), id)
    }

    #[test]
    fn a_waiter_for_a_page_is_found_once() {
        let pages = Pages::default();
        let source = Arc::from("upstream `a`");
        let keys = ["e1".to_owned(), "e2".to_owned()];
        pages.await_opening(&source, keys.iter(), &session("s"), AskId(1));
        pages.await_opening(&source, keys.iter(), &session("s"), AskId(1));
        pages.await_opening(&source, keys[..1].iter(), &session("t"), AskId(2));
        assert!(pages.opened("upstream `b`", "e1").is_empty(), "another server's word");
        let woken = BTreeMap::from([(AskId(1), session("s")), (AskId(2), session("t"))]);
        assert_eq!(pages.opened("upstream `a`", "e1"), woken);
        assert!(pages.opened("upstream `a`", "e1").is_empty());
        assert_eq!(pages.opened("upstream `a`", "e2").len(), 1);
        assert_eq!(lock(&pages.awaited).count, 0);
    }

    #[test]
    fn pending_login_pages_are_bounded() {
        let pages = Pages::default();
        let source = Arc::from("upstream `a`");
        for number in 0..AWAITED_MAX * 2 + 1 {
            let page = [format!("e{number}")];
            pages.await_opening(&source, page.iter(), &session("s"), AskId(1));
        }
        assert_eq!(lock(&pages.awaited).by_page.len(), 1);
    }

    #[test]
    fn a_client_is_called_back_once_and_only_for_its_page() {
        let pages = Pages::default();
        let source = Arc::<str>::from("upstream `a`");
        let told = Arc::new(Mutex::new(Vec::new()));
        let hear = |page: &str, who: usize| {
            let told = told.clone();
            pages.hear(&source, page, Box::new(move || told.lock().unwrap().push(who)));
        };
        let open = |source: &str, page: &str| {
            pages.hearers_of(source, page).into_iter().for_each(|hearer| hearer());
            std::mem::take(&mut *told.lock().unwrap())
        };
        hear("e1", 1);
        hear("e2", 2);
        hear("e1", 3);
        assert!(open("upstream `b`", "e1").is_empty(), "another server's word");
        assert!(open("upstream `a`", "e3").is_empty());
        assert_eq!(open("upstream `a`", "e1"), [1, 3]);
        assert!(open("upstream `a`", "e1").is_empty(), "a page is opened once");
        assert_eq!(open("upstream `a`", "e2"), [2]);
        for number in 0..=HEARERS_MAX {
            hear(&format!("p{number}"), number);
        }
        assert!(open("upstream `a`", "p0").is_empty(), "the oldest goes first");
        assert_eq!(open("upstream `a`", "p1"), [1]);
        assert_eq!(lock(&pages.hearers).len(), HEARERS_MAX - 1);
    }
}
