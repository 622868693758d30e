//! Webhooks in the embedded store: a row that cannot be read.

use super::{Scene, open};
use futures::executor::block_on;
use kernel::contracts::webhooks::{PutOutcome, Webhook, WebhookFilter};
use kernel::limits::Limits;
use kernel::values::ids::RunId;
use std::sync::Arc;
use testkit::contract::arms::Threads;
use testkit::contract::driver::{Driver, done, page, realm};
use testkit::contract::webhooks::webhook;

/// How many webhooks a run may have here.
const MOST: usize = 3;
/// Bodies that this release does not understand, and that are no text.
const UNREADABLE: [&str; 2] = ["'{}'", "CAST(x'ff' AS TEXT)"];

/// A store with three webhooks of one run, of which the second cannot be read.
struct Damaged {
    scene: Scene,
    driver: Driver,
    run: RunId,
}

impl Damaged {
    /// One that has this body.
    fn with(body: &str) -> Self {
        let scene = Scene::new();
        let mut driver = Driver::new("r", "a");
        let run = driver.run_row(1);
        driver.row.run = Some(run.id);
        let mut created = driver.created();
        created.runs = vec![run.clone()];
        done(scene.store().append(created));
        for (id, stamp) in [("1", 7), ("2", 8), ("3", 9)] {
            let one = webhook(&driver, run.id, id, stamp);
            block_on(scene.opened.webhooks.put_webhook(&one, MOST)).unwrap();
        }
        let folder = scene.closed();
        let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
        let broken = format!("UPDATE webhooks SET body = {body} WHERE id = '2';");
        database.execute_batch(&broken).unwrap();
        drop(database);
        let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
        Self { scene: Scene { opened, folder }, driver, run: run.id }
    }

    fn webhook(&self, id: &str) -> Webhook {
        webhook(&self.driver, self.run, id, 10)
    }

    fn put(&self, id: &str) -> PutOutcome {
        block_on(self.scene.opened.webhooks.put_webhook(&self.webhook(id), MOST)).unwrap()
    }

    /// Whether it was there and could not be read.
    fn removed(&self, id: &str) -> bool {
        let name = self.webhook(id).name;
        block_on(self.scene.opened.webhooks.remove_unreadable_webhook(&name)).unwrap()
    }

    fn ids(&self) -> Vec<String> {
        let all = block_on(self.scene.opened.webhooks.webhooks_of(&realm(), self.run)).unwrap();
        all.iter().map(|one| one.name.id.to_string()).collect()
    }
}

#[test]
fn an_unreadable_webhook_does_not_hide_others() {
    for body in UNREADABLE {
        let damaged = Damaged::with(body);
        let live = block_on(damaged.scene.opened.webhooks.live_webhooks()).unwrap();
        assert_eq!(live.iter().map(|one| &*one.name.id).collect::<Vec<_>>(), ["1", "3"], "{body}");
        assert_eq!(damaged.ids(), ["1", "3"], "{body}");
    }
}

#[test]
fn a_list_of_webhooks_continues_after_an_unreadable_one() {
    for body in UNREADABLE {
        let damaged = Damaged::with(body);
        let webhooks = &damaged.scene.opened.webhooks;
        let listed = |cursor: Option<String>| {
            let realm = realm();
            let filter = WebhookFilter::default();
            let page = page(1, cursor);
            block_on(webhooks.list_webhooks(&realm, &filter, &page)).unwrap()
        };
        let first = listed(None);
        assert_eq!(first.items.iter().map(|one| &*one.name.id).collect::<Vec<_>>(), ["3"]);
        let second = listed(first.next_cursor);
        assert_eq!(second.items.iter().map(|one| &*one.name.id).collect::<Vec<_>>(), ["1"]);
        assert_eq!(second.next_cursor, None, "{body}");
    }
}

#[test]
fn an_unreadable_webhook_does_not_count_and_can_be_removed() {
    for body in UNREADABLE {
        let damaged = Damaged::with(body);
        assert_eq!(damaged.put("4"), PutOutcome::Stored, "{body}");
        assert_eq!(damaged.put("5"), PutOutcome::Full, "{body}");
        assert_eq!(damaged.put("4"), PutOutcome::Stored, "its own place is no other's: {body}");
        assert!(!damaged.removed("1"), "it can be read: {body}");
        assert!(damaged.removed("2"), "{body}");
        assert!(!damaged.removed("2"), "it is gone: {body}");
        assert_eq!(damaged.ids(), ["1", "3", "4"], "{body}");
    }
}

#[test]
fn a_webhook_can_replace_an_unreadable_one() {
    for body in UNREADABLE {
        let damaged = Damaged::with(body);
        assert_eq!(damaged.put("2"), PutOutcome::Stored, "{body}");
        assert_eq!(damaged.ids(), ["1", "2", "3"], "{body}");
        assert!(!damaged.removed("2"), "it can be read: {body}");
    }
}
