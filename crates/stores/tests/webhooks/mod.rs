//! Webhooks in the embedded store: a row that cannot be read.

use super::{Scene, open};
use futures::executor::block_on;
use kernel::limits::Limits;
use kernel::values::ids::RunId;
use std::sync::Arc;
use testkit::contract::arms::Threads;
use testkit::contract::driver::{Driver, done, realm};
use testkit::contract::webhooks::webhook;

/// How many webhooks a run may have here.
const MOST: usize = 3;

/// A store with three webhooks of one run.
fn with_three() -> (Scene, RunId) {
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
    (scene, run.id)
}

#[test]
fn a_webhook_that_cannot_be_read_keeps_no_other_from_being_read() {
    // What this release does not understand, and what is no text.
    for body in ["'{}'", "CAST(x'ff' AS TEXT)"] {
        let (scene, run) = with_three();
        let folder = scene.closed();
        let database = rusqlite::Connection::open(folder.path().join("data/waypost.db")).unwrap();
        let broken = format!("UPDATE webhooks SET body = {body} WHERE id = '2';");
        database.execute_batch(&broken).unwrap();
        drop(database);
        let opened = open(&folder, Arc::new(Threads::default()), Limits::default()).unwrap();
        let scene = Scene { opened, folder };
        let live = block_on(scene.opened.webhooks.live_webhooks()).unwrap();
        assert_eq!(live.iter().map(|one| &*one.name.id).collect::<Vec<_>>(), ["1", "3"], "{body}");
        let all = block_on(scene.opened.webhooks.webhooks_of(&realm(), run)).unwrap();
        assert_eq!(all.iter().map(|one| &*one.name.id).collect::<Vec<_>>(), ["1", "3"], "{body}");
    }
}
