//! Webhooks of runs: what each gets, also beside others that hang or panic, and when it gets nothing
//! more.

use crate::world::{WAIT_MS, World, caller, files};
use engine::{NoticeLimits, Notices, Recipient, WebhookTurn};
use futures::future::{BoxFuture, FutureExt, pending, ready};
use kernel::ask::Reply;
use kernel::contracts::sink::SinkError;
use kernel::contracts::webhooks::{
    LiveWebhook, PutOutcome, Webhook, WebhookBody, WebhookFilter, WebhookName, WebhookProgress,
    Webhooks,
};
use kernel::contracts::{ListPage, PageRequest, Read};
use kernel::event::Event;
use kernel::limits::Limits;
use kernel::tool::call::Caller;
use kernel::values::ids::{Millis, RealmId, RunId};
use serde_json::json;
use std::sync::{Arc, Mutex};

const ASK: &str = "planId: ask\nsteps: [{id: ask, type: human_in_the_loop, message: go on?, \
    nextStepIdOnInput: end}, {id: end, type: final_response, message: ok}]";

/// More than have their turn at the same time.
const MANY: usize = 40;

/// Webhooks that are kept in memory.
#[derive(Default)]
struct Book(Mutex<Vec<Webhook>>);

impl Book {
    fn standing(&self, id: &str) -> WebhookProgress {
        let all = self.0.lock().unwrap();
        all.iter().find(|one| &*one.name.id == id).unwrap().standing.clone()
    }
}

impl Webhooks for Book {
    fn webhooks_of<'a>(&'a self, realm: &'a RealmId, run: RunId) -> Read<'a, Vec<Webhook>> {
        let all = self.0.lock().unwrap();
        let own = all.iter().filter(|one| one.name.realm == *realm && one.name.run == run);
        let own: Vec<Webhook> = own.cloned().collect();
        ready(Ok(own)).boxed()
    }

    fn live_webhooks(&self) -> Read<'_, Vec<LiveWebhook>> {
        let all = self.0.lock().unwrap();
        let live = all.iter().filter(|one| one.standing.is_live).map(live);
        let live: Vec<LiveWebhook> = live.collect();
        ready(Ok(live)).boxed()
    }

    fn list_webhooks<'a>(
        &'a self,
        _realm: &'a RealmId,
        _filter: &'a WebhookFilter,
        _page: &'a PageRequest,
    ) -> Read<'a, ListPage<Webhook>> {
        ready(Ok(ListPage { items: Vec::new(), next_cursor: None })).boxed()
    }

    fn put_webhook<'a>(&'a self, webhook: &'a Webhook, _most: usize) -> Read<'a, PutOutcome> {
        self.0.lock().unwrap().push(webhook.clone());
        ready(Ok(PutOutcome::Stored)).boxed()
    }

    fn note_webhook<'a>(
        &'a self,
        name: &'a WebhookName,
        stamp: u64,
        standing: &'a WebhookProgress,
    ) -> Read<'a, bool> {
        let mut all = self.0.lock().unwrap();
        let found = all.iter_mut().find(|one| one.name == *name && one.stamp == stamp);
        let is_there = found.is_some();
        if let Some(one) = found {
            one.standing.clone_from(standing);
        }
        ready(Ok(is_there)).boxed()
    }

    fn remove_webhook<'a>(&'a self, name: &'a WebhookName) -> Read<'a, bool> {
        self.0.lock().unwrap().retain(|one| one.name != *name);
        ready(Ok(true)).boxed()
    }

    fn remove_unreadable_webhook<'a>(&'a self, _name: &'a WebhookName) -> Read<'a, bool> {
        ready(Ok(false)).boxed()
    }
}

/// The ids of those who took something, in order.
#[derive(Default)]
struct Takers(Arc<Mutex<Vec<String>>>);

impl Takers {
    fn have(&self, id: &str) -> bool {
        self.0.lock().unwrap().iter().any(|taker| taker == id)
    }
}

impl Notices for Takers {
    fn limits(&self) -> NoticeLimits {
        NoticeLimits { attempts_max: 24, bytes_max: usize::MAX }
    }

    fn maker(&self, body: &WebhookBody) -> Option<Caller> {
        Some(body.by.clone())
    }

    fn recipient(&self, turn: WebhookTurn<'_>) -> Option<Box<dyn Recipient>> {
        let id = turn.webhook.name.id.to_string();
        Some(Box::new(Taker { id, takers: self.0.clone() }))
    }
}

/// One that does what its id says.
struct Taker {
    id: String,
    takers: Arc<Mutex<Vec<String>>>,
}

impl Recipient for Taker {
    fn pass(&mut self, _event: &Event) {}

    fn notices<'a>(&'a mut self, event: &'a Event) -> BoxFuture<'a, Vec<String>> {
        assert!(self.id != "panics", "as the test wants");
        ready(vec![event.seq.to_string()]).boxed()
    }

    fn post(&mut self, _notice: String) -> BoxFuture<'_, Result<(), SinkError>> {
        self.takers.lock().unwrap().push(self.id.clone());
        match self.id.starts_with("hangs") {
            true => pending().boxed(),
            false => ready(Ok(())).boxed(),
        }
    }
}

/// One that notes what it is given, and takes the second notice of each event at the second try.
#[derive(Default, Clone)]
struct Noter(Arc<Mutex<Vec<String>>>);

impl Notices for Noter {
    fn limits(&self) -> NoticeLimits {
        NoticeLimits { attempts_max: 2, bytes_max: usize::MAX }
    }

    fn maker(&self, body: &WebhookBody) -> Option<Caller> {
        Some(body.by.clone())
    }

    fn recipient(&self, _turn: WebhookTurn<'_>) -> Option<Box<dyn Recipient>> {
        Some(Box::new(self.clone()))
    }
}

impl Recipient for Noter {
    fn pass(&mut self, event: &Event) {
        self.0.lock().unwrap().push(format!("passed {}", event.seq));
    }

    fn notices<'a>(&'a mut self, event: &'a Event) -> BoxFuture<'a, Vec<String>> {
        ready(notices(event.seq).to_vec()).boxed()
    }

    fn post(&mut self, notice: String) -> BoxFuture<'_, Result<(), SinkError>> {
        let mut noted = self.0.lock().unwrap();
        let is_taken = !notice.ends_with(".2") || noted.contains(&notice);
        noted.push(notice);
        let taken = if is_taken { Ok(()) } else { Err(SinkError::new("not yet".to_owned())) };
        ready(taken).boxed()
    }
}

fn notices(seq: u64) -> [String; 2] {
    [format!("{seq}.1"), format!("{seq}.2")]
}

fn live(webhook: &Webhook) -> LiveWebhook {
    LiveWebhook { name: webhook.name.clone(), next_at: webhook.standing.next_at }
}

/// Begins a run that asks, with these webhooks.
async fn begin(world: &World, book: &Book, by: &Caller, ids: &[String]) -> engine::RunReport {
    world.engine.catalog().load_plans(&by.realm, files(&[ASK])).unwrap();
    let request = world.request("ask", json!({}), "s");
    let report = world.engine.runs().start(by, request, WAIT_MS).await.unwrap();
    for id in ids {
        let realm = by.realm.clone();
        let webhook = Webhook {
            name: WebhookName { realm, run: report.run.id, id: id.as_str().into() },
            stamp: 1,
            body: WebhookBody {
                by: by.clone(),
                impersonated: false,
                session: report.session.id,
                dialect: "plain".to_owned(),
                sealed: String::new(),
                made_at: Millis(1),
            },
            standing: WebhookProgress { is_live: true, ..WebhookProgress::default() },
        };
        book.put_webhook(&webhook, MANY).await.unwrap();
    }
    report
}

fn notify(world: &World, book: &Arc<Book>) -> Arc<Takers> {
    let takers = Arc::new(Takers::default());
    let told: Arc<dyn Notices> = takers.clone();
    world.engine.feed().keep_notifying(book.clone(), Box::new(move || Some(told.clone())));
    takers
}

async fn answer(world: &World, asking: &engine::RunReport) {
    let reply = Reply::Clarify { answer: Some(json!("yes")) };
    let ask = asking.asks[0].row.ask.id;
    world.engine.asks().reply(&caller(), ask, reply, None, WAIT_MS).await.unwrap();
}

fn stranger() -> Caller {
    Caller::new("other", "ann")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_behind_the_place_is_told_in_order_and_whole_until_it_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { delivery_backoff_ms: 1, delivery_backoff_ms_max: 1, ..Limits::default() };
    let world = World::with_limits(folder.path(), &[], limits).await;
    let book = Arc::new(Book::default());
    let run = begin(&world, &book, &caller(), &["one".to_owned()]).await;
    answer(&world, &run).await;
    let mut events = Vec::new();
    let mut note = |event: &Event| events.push(event.seq);
    world.engine.runs().replay(&caller(), run.run.id, &mut note).await.unwrap();
    assert!(events.len() > 3, "{events:?}");
    book.0.lock().unwrap()[0].standing.place = events[0];
    let noter = Noter::default();
    let told: Arc<dyn Notices> = Arc::new(noter.clone());
    world.engine.feed().keep_notifying(book.clone(), Box::new(move || Some(told.clone())));
    world.until("the end", |_| !book.standing("one").is_live).await;
    let mut expected = Vec::new();
    for turn in 1..=events.len() {
        // Those before the event that failed in the turn before.
        let (passed, rest) = events.split_at((turn - 1).max(1));
        expected.extend(passed.iter().map(|seq| format!("passed {seq}")));
        let tried = rest.iter().take(turn + 1 - passed.len());
        expected.extend(tried.flat_map(|seq| notices(*seq)));
    }
    assert_eq!(*noter.0.lock().unwrap(), expected);
    let place = events[events.len() - 1];
    assert_eq!(book.standing("one"), WebhookProgress { place, ..WebhookProgress::default() });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_panics_ends_its_turn_alone_and_waits() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[]).await;
    let book = Arc::new(Book::default());
    let ids = ["panics", "well"].map(str::to_owned);
    let asking = begin(&world, &book, &caller(), &ids).await;
    let takers = notify(&world, &book);
    world.until("the first notice", |_| takers.have("well")).await;
    answer(&world, &asking).await;
    world.until("the end of one", |world| world.engine.counts().webhooks_live == 1).await;
    assert!(!book.standing("well").is_live);
    let waits = WebhookProgress { is_live: true, ..WebhookProgress::default() };
    assert_eq!(book.standing("panics"), waits);
    assert!(!takers.have("panics"));
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_that_hang_hold_up_none_of_another_realm() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[]).await;
    let book = Arc::new(Book::default());
    let hanging: Vec<String> = (0..MANY).map(|n| format!("hangs {n}")).collect();
    begin(&world, &book, &caller(), &hanging).await;
    let takers = notify(&world, &book);
    world.until("a post that hangs", |_| !takers.0.lock().unwrap().is_empty()).await;
    let other = begin(&world, &book, &stranger(), &["well".to_owned()]).await;
    let new =
        live(book.webhooks_of(&stranger().realm, other.run.id).await.unwrap().first().unwrap());
    world.engine.feed().notify(new);
    world.until("a notice in the other realm", |_| takers.have("well")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_removed_gets_nothing_more_nor_does_one_of_a_removed_realm() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::open(folder.path(), &[]).await;
    let book = Arc::new(Book::default());
    let here = begin(&world, &book, &caller(), &["here".to_owned()]).await;
    begin(&world, &book, &stranger(), &["there".to_owned()]).await;
    let takers = notify(&world, &book);
    world.until("all", |_| takers.have("here") && takers.have("there")).await;
    let own = book.webhooks_of(&caller().realm, here.run.id).await.unwrap().remove(0);
    book.remove_webhook(&own.name).await.unwrap();
    world.engine.feed().notify(live(&own));
    world.until("one is left", |world| world.engine.counts().webhooks_live == 1).await;
    world.engine.admin().close_realm(&stranger().realm);
    world.until("none is left", |world| world.engine.counts().webhooks_live == 0).await;
}
