//! Runs one life to its end: waits for all clients and follows the feed; in the last life, brings
//! everything to an end and lets the oracle judge.

use super::people::clients::{Clients, locked};
use crate::sim::judge::truth::Truth;
use crate::sim::outside::receiver::Receiver;
use kernel::contracts::{RETENTION, Store};
use kernel::journal::projection::SessionRow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How long a feed's reader waits when there is nothing.
const FEED_LOOK_MS: u64 = 700;
/// How many rows of the feed are read at once.
const FEED_ROWS: usize = 7;
/// How often the last life looks whether all events are out.
const SENT_LOOKS_MAX: u64 = 600;
/// How many of its last events are shown of a session that does not end.
const LAST_EVENTS: u64 = 12;
/// How often we check whether all clients were answered: they wait for minutes at most.
const BUSY_LOOKS_MAX: u64 = 1_200;
const BUSY_LOOK_MS: u64 = 500;

/// Follows the feed for as long as the process lives.
pub async fn follow(clients: Arc<Clients>, store: Arc<dyn Store>) {
    let realm = &clients.realm;
    loop {
        let after = locked(&clients.oracle).cursor();
        let rows = store.feed(realm, after, FEED_ROWS).await;
        rows.iter().flatten().for_each(|row| clients.check_row(&row.key));
        // After the rows: what was not there to be read any more is known to be gone by now.
        let gone = store.consumer(realm, RETENTION).await;
        match (rows, gone) {
            (_, Ok(gone)) if gone > after => locked(&clients.oracle).missed(gone),
            (Ok(rows), Ok(_)) if !rows.is_empty() => locked(&clients.oracle).feed(&rows),
            _ => clients.sleep(FEED_LOOK_MS).await,
        }
    }
}

/// What cannot be read can be read again after a while.
pub async fn heal(clients: Arc<Clients>, ms: u64) {
    clients.sleep(ms).await;
    clients.troubles.damage.heal();
}

/// Waits until every client was answered; no one may wait for ever.
pub async fn wait_for_all(clients: &Clients) {
    let busy = || clients.busy.load(Ordering::SeqCst);
    for _ in 0..BUSY_LOOKS_MAX {
        if busy() == 0 {
            return;
        }
        clients.sleep(BUSY_LOOK_MS).await;
    }
    locked(&clients.oracle).accuse(format!("{} clients were never answered", busy()));
}

/// Brings everything to an end and judges it.
pub async fn judge(
    clients: &Clients,
    store: &Arc<dyn Store>,
    truth: &Truth<'_>,
    receiver: Option<&Receiver>,
) {
    let damage = &clients.troubles.damage;
    if damage.is_there() {
        // What cannot be read keeps nothing else from its end.
        end_all(clients, store, "does not end beside one that cannot be read").await;
        clients.check_hidden().await;
        damage.heal();
    }
    end_all(clients, store, "does not end").await;
    // The feed is a moment behind.
    clients.sleep(20 * FEED_LOOK_MS).await;
    let sessions = clients.sessions().await;
    if let Some(receiver) = receiver {
        clients.wait_until_sent(SENT_LOOKS_MAX).await;
        let judged = receiver.judge(store.as_ref(), &clients.realm, &sessions, truth.archive).await;
        let wrong = judged.unwrap_or_else(|error| vec![format!("no journal: {error}")]);
        wrong.into_iter().for_each(|wrong| locked(&clients.oracle).accuse(wrong));
    }
    let mut oracle = std::mem::take(&mut *locked(&clients.oracle));
    let judged = oracle.judge(store.as_ref(), &clients.realm, &sessions, truth).await;
    if let Err(error) = judged {
        oracle.accuse(format!("the store cannot be read: {error}"));
    }
    *locked(&clients.oracle) = oracle;
}

/// Brings to an end what can be read, and tells of what does not end.
async fn end_all(clients: &Clients, store: &Arc<dyn Store>, what: &str) {
    for row in clients.bring_to_an_end().await {
        let name = &row.key.id;
        let status = row.status.name();
        let last = last_of(store, &row).await;
        let what = format!("session {name} {what}: {status}\n      {last}");
        locked(&clients.oracle).accuse(what);
    }
}

/// The last events of a session.
async fn last_of(store: &Arc<dyn Store>, row: &SessionRow) -> String {
    // Without a place if that one is not kept any more.
    let last = match store.events(&row.key, row.seq.saturating_sub(LAST_EVENTS), 100).await {
        Err(_) => store.events(&row.key, 0, 100).await,
        last => last,
    };
    let last: Vec<String> = last.unwrap_or_default().into_iter().map(|(_, text)| text).collect();
    last.join("\n      ")
}
