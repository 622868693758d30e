//! Webhooks of tasks: one for each name, noted against a stamp, gone with its run.

use super::driver::{Driver, done, got, page, realm, three_runs, trim_at};
use super::scene::Scene;
use futures::executor::block_on;
use kernel::contracts::identity::realms::{LostEntries, RealmRecord, Removal};
use kernel::contracts::webhooks::{
    LiveWebhook, PutOutcome, Webhook, WebhookBody, WebhookFilter, WebhookMaker, WebhookName,
    WebhookProgress,
};
use kernel::contracts::{ListPage, StoreError};
use kernel::identity::audit::Entries;
use kernel::tool::call::Caller;
use kernel::values::ids::{Millis, RunId};

/// How many webhooks a run may have here.
const MOST: usize = 2;

pub fn webhook(driver: &Driver, run: RunId, id: &str, stamp: u64) -> Webhook {
    let realm = driver.key().realm.clone();
    let body = WebhookBody {
        by: Caller::new(realm.clone(), "ann"),
        impersonated: true,
        session: driver.row.id,
        dialect: "1.0".to_owned(),
        sealed: format!("sealed {stamp}"),
        made_at: Millis(12),
    };
    let standing = WebhookProgress { place: 3, is_live: true, ..WebhookProgress::default() };
    Webhook { name: WebhookName { realm, run, id: id.into() }, stamp, body, standing }
}

/// A session with one run.
fn begun(scene: &Scene, realm: &str, id: &str) -> (Driver, RunId) {
    let mut driver = Driver::new(realm, id);
    let run = driver.run_row(1);
    driver.row.run = Some(run.id);
    let mut created = driver.created();
    created.runs = vec![run.clone()];
    done(scene.store().append(created));
    (driver, run.id)
}

fn live(webhook: &Webhook) -> LiveWebhook {
    LiveWebhook { name: webhook.name.clone(), next_at: webhook.standing.next_at }
}

pub fn a_webhook_is_there_after_a_restart_until_it_is_removed(scene: Scene) {
    let (a, run) = begun(&scene, "r", "a");
    let one = webhook(&a, run, "1", 7);
    let two = webhook(&a, run, "2", 8);
    assert_eq!(got(scene.webhooks().live_webhooks()), []);
    assert_eq!(got(scene.webhooks().put_webhook(&two, MOST)), PutOutcome::Stored);
    assert_eq!(got(scene.webhooks().put_webhook(&one, MOST)), PutOutcome::Stored);
    let scene = scene.reopened();
    let found = got(scene.webhooks().webhooks_of(&realm(), run));
    assert_eq!(found, [one.clone(), two.clone()]);
    assert_eq!(got(scene.webhooks().live_webhooks()), [live(&one), live(&two)]);
    assert_eq!(got(scene.webhooks().webhooks_of(&"other".into(), run)), [], "of another realm");
    assert!(!got(scene.webhooks().remove_unreadable_webhook(&one.name)), "it can be read");
    assert!(got(scene.webhooks().remove_webhook(&one.name)));
    assert!(!got(scene.webhooks().remove_webhook(&one.name)), "it is gone");
    assert_eq!(got(scene.reopened().webhooks().webhooks_of(&realm(), run)), [two]);
}

pub fn a_webhook_takes_the_place_of_one_with_its_name_and_each_run_has_so_many(scene: Scene) {
    let (a, run) = begun(&scene, "r", "a");
    let put = |webhook: &Webhook| got(scene.webhooks().put_webhook(webhook, MOST));
    assert_eq!(put(&webhook(&a, run, "1", 7)), PutOutcome::Stored);
    assert_eq!(put(&webhook(&a, run, "2", 8)), PutOutcome::Stored);
    assert_eq!(put(&webhook(&a, run, "3", 9)), PutOutcome::Full);
    let again = webhook(&a, run, "2", 10);
    assert_eq!(put(&again), PutOutcome::Stored);
    assert_eq!(got(scene.webhooks().webhooks_of(&realm(), run))[1], again);
    let unknown = RunId::of(&[b"unknown"]);
    assert_eq!(put(&webhook(&a, unknown, "1", 11)), PutOutcome::NoRun);
    let mut elsewhere = webhook(&a, run, "1", 12);
    elsewhere.name.realm = "other".into();
    assert_eq!(put(&elsewhere), PutOutcome::NoRun, "the run is another realm's");
}

pub fn how_far_a_webhook_has_got_is_noted_of_that_webhook_alone(scene: Scene) {
    let (a, run) = begun(&scene, "r", "a");
    let one = webhook(&a, run, "1", 7);
    let two = webhook(&a, run, "2", 8);
    got(scene.webhooks().put_webhook(&one, MOST));
    got(scene.webhooks().put_webhook(&two, MOST));
    let tried = WebhookProgress {
        place: 5,
        attempts: 3,
        next_at: Some(Millis(99)),
        is_live: true,
        error: Some("no".to_owned()),
    };
    let note = |stamp: u64, standing: &WebhookProgress| {
        got(scene.webhooks().note_webhook(&one.name, stamp, standing))
    };
    assert!(note(7, &tried));
    assert!(!note(6, &WebhookProgress::default()), "it is another one");
    let found = got(scene.webhooks().webhooks_of(&realm(), run));
    let noted = Webhook { standing: tried, ..one.clone() };
    assert_eq!(found, [noted.clone(), two.clone()]);
    assert_eq!(got(scene.webhooks().live_webhooks()), [live(&noted), live(&two)]);
    assert!(note(7, &WebhookProgress::default()));
    assert_eq!(got(scene.webhooks().live_webhooks()), [live(&two)], "the other has ended");
    got(scene.webhooks().remove_webhook(&one.name));
    assert!(!note(7, &WebhookProgress::default()), "it is gone");
}

/// All pages of the list of the realm.
fn listed(scene: &Scene, filter: &WebhookFilter, limit: usize) -> Vec<Webhook> {
    let mut found = Vec::new();
    let mut cursor = None;
    let mut pages = 0;
    loop {
        let page = page(limit, cursor);
        let listed = got(scene.webhooks().list_webhooks(&realm(), filter, &page));
        let ListPage { items, next_cursor } = listed;
        assert!(items.len() <= limit, "a page of {limit} has {}", items.len());
        found.extend(items);
        if next_cursor.is_none() {
            return found;
        }
        cursor = next_cursor;
        pages += 1;
        assert!(pages < 100, "the list does not end: {found:?}");
    }
}

pub fn webhooks_of_a_realm_are_listed_in_pages_also_those_that_ended(scene: Scene) {
    let (a, run) = begun(&scene, "r", "a");
    let (b, other) = begun(&scene, "r", "b");
    let (c, foreign) = begun(&scene, "other", "c");
    let mut ended = webhook(&a, run, "2", 8);
    let error = Some("no".to_owned());
    ended.standing = WebhookProgress { attempts: 3, error, ..WebhookProgress::default() };
    let mut bobs = webhook(&b, other, "1", 9);
    bobs.body.by = Caller::new(realm(), "bob");
    let mut by_bot = webhook(&b, other, "2/x", 10);
    by_bot.body.by.actor = Some("bot".into());
    let elsewhere = webhook(&c, foreign, "1", 11);
    let anns = webhook(&a, run, "1", 7);
    for one in [&anns, &ended, &bobs, &by_bot, &elsewhere] {
        assert_eq!(got(scene.webhooks().put_webhook(one, MOST)), PutOutcome::Stored);
    }
    let mut all = vec![anns.clone(), ended.clone(), bobs.clone(), by_bot.clone()];
    all.sort_by(|one, next| next.name.cmp(&one.name));
    let maker = |subject: &str, actor: Option<&str>| {
        let maker = WebhookMaker { subject: subject.into(), actor: actor.map(Into::into) };
        WebhookFilter { maker: Some(maker), ..WebhookFilter::default() }
    };
    let of_run = WebhookFilter { run: Some(run), ..WebhookFilter::default() };
    let is_live = |live: bool| WebhookFilter { live: Some(live), ..WebhookFilter::default() };
    let live: Vec<Webhook> = all.iter().filter(|one| **one != ended).cloned().collect();
    for limit in 1..6 {
        assert_eq!(listed(&scene, &WebhookFilter::default(), limit), all, "pages of {limit}");
        assert_eq!(listed(&scene, &of_run, limit), [ended.clone(), anns.clone()]);
        assert_eq!(listed(&scene, &is_live(true), limit), live);
        assert_eq!(listed(&scene, &is_live(false), limit), [ended.clone()]);
        assert_eq!(listed(&scene, &maker("bob", None), limit), [bobs.clone()]);
        assert_eq!(listed(&scene, &maker("ann", Some("bot")), limit), [by_bot.clone()]);
        assert_eq!(listed(&scene, &maker("bot", None), limit), []);
    }
    let unknown = WebhookFilter { run: Some(foreign), ..WebhookFilter::default() };
    assert_eq!(listed(&scene, &unknown, 9), [], "the run is another realm's");
    let filter = WebhookFilter::default();
    let page = page(1, Some("made up".to_owned()));
    let refused = block_on(scene.webhooks().list_webhooks(&realm(), &filter, &page));
    assert!(matches!(refused, Err(StoreError::BadCursor(_))), "{refused:?}");
}

pub fn a_webhook_goes_with_its_run(scene: Scene) {
    let (a, run) = begun(&scene, "r", "a");
    let (b, kept) = begun(&scene, "r", "b");
    got(scene.webhooks().put_webhook(&webhook(&a, run, "1", 7), MOST));
    got(scene.webhooks().put_webhook(&webhook(&b, kept, "1", 8), MOST));
    got(scene.store().remove(a.key(), a.row.known()));
    assert_eq!(got(scene.webhooks().webhooks_of(&realm(), run)), []);
    assert_eq!(got(scene.webhooks().live_webhooks()), [live(&webhook(&b, kept, "1", 8))]);
    got(scene.webhooks().remove_webhook(&webhook(&b, kept, "1", 8).name));
    // Of a session that stays the old runs go.
    let c = three_runs(scene.store());
    let first = c.run_row(1).id;
    let last = c.run_row(3).id;
    got(scene.webhooks().put_webhook(&webhook(&c, first, "1", 9), MOST));
    got(scene.webhooks().put_webhook(&webhook(&c, last, "1", 10), MOST));
    assert!(got(scene.store().trim(trim_at(&c, 6, 2))).is_some());
    assert_eq!(got(scene.webhooks().live_webhooks()), [live(&webhook(&c, last, "1", 10))]);
}

pub fn a_removed_realm_takes_no_webhook_and_keeps_none(scene: Scene) {
    let record =
        RealmRecord { name: realm(), by: "boss".into(), created: Millis(1), removed: None };
    got(scene.realms().create_realm(&record, Entries::new()));
    let (a, run) = begun(&scene, "r", "a");
    let one = webhook(&a, run, "1", 7);
    got(scene.webhooks().put_webhook(&one, MOST));
    let removal = Removal { by: "boss".into(), at: Millis(9), purged: false };
    got(scene.realms().remove_realm(&realm(), &removal, LostEntries::default(), Vec::new()));
    let refused = block_on(scene.webhooks().put_webhook(&one, MOST));
    assert_eq!(refused, Err(StoreError::RealmRemoved("r".to_owned())));
    for _ in 0..100 {
        if !got(scene.realms().purge_realm(&realm())) {
            break;
        }
    }
    assert_eq!(got(scene.webhooks().live_webhooks()), []);
}
