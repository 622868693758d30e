//! The outbox: from rows of the journal to events that somebody has. Each sink reads the feed by
//! itself and keeps its place in the store, so that a crash loses nothing: what is behind the place
//! is sent again, under the same ids.

mod window;
mod attempt;
mod send;
mod resend;

use crate::outboxes::{Outbox, SinkRules, SinkState, consumer};
use crate::refusal::{Refusal, RefusalKind};
use crate::shared::{Engine, stopping};
use kernel::call::Caller;
use kernel::contracts::{FeedStart, Page, Paged, SINKS};
use kernel::ids::RealmId;
use kernel::sink::{DeliveryFilter, DeliveryRow, DeliveryStatus, EventSink};
use send::Sender;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Engine {
    /// Sends a realm's events to a sink until the engine stops. Its place is in the store when this
    /// returns: whatever is recorded from then on gets there.
    pub async fn keep_sending(
        &self,
        realm: &RealmId,
        name: &str,
        sink: Arc<dyn EventSink>,
        rules: SinkRules,
    ) -> Result<(), Refusal> {
        let shared = &self.shared;
        if shared.stopping.load(Ordering::Acquire) {
            return Err(stopping());
        }
        let start = if rules.from_start { FeedStart::Oldest } else { FeedStart::Newest };
        let outbox = Arc::new(Outbox::new((realm, name), sink, rules));
        if !shared.outboxes.insert(outbox.clone()) {
            let message = format!("realm `{realm}` has a sink `{name}` already");
            return Err(Refusal::new(RefusalKind::Conflict, "sink_exists", message)
                .hint("give one of them another name"));
        }
        let (place, left) = match self.begin(&outbox, start).await {
            Ok(began) => began,
            Err(refusal) => {
                shared.outboxes.remove(realm, name);
                return Err(refusal);
            }
        };
        outbox.standing().place = place;
        let sending = shared.outboxes.begin();
        let sender = Sender::new(shared.clone(), outbox, place, left);
        let task = async move {
            sender.run().await;
            drop(sending);
        };
        shared.spawn.critical_task("outbox", Box::pin(task));
        Ok(())
    }

    /// Forgets the places of a realm's sinks but these: what only those had not passed may be
    /// removed. One that is named again later begins anew.
    pub async fn forget_sinks(&self, realm: &RealmId, but: &[String]) -> Result<(), Refusal> {
        let but: Vec<String> = but.iter().map(|name| consumer(name)).collect();
        let store = &self.shared.store;
        let forgotten = store.forget_consumers(realm, SINKS, &but).await?;
        let feed_end = store.feed_end().await?;
        for (name, place) in forgotten {
            let (sink, rows) = (name.trim_start_matches(SINKS), feed_end.saturating_sub(place));
            match rows {
                0 => tracing::info!(sink, "a sink is not there any more"),
                _ => tracing::warn!(
                    sink,
                    rows,
                    "a sink is not there any more: rows of the journal that it had not passed \
                     are not sent to it"
                ),
            }
        }
        Ok(())
    }

    /// How the sinks of the caller's realm stand, by name.
    pub async fn sinks(&self, caller: &Caller) -> Result<Vec<SinkState>, Refusal> {
        let feed_end = self.shared.store.feed_end().await?;
        let all = self.shared.outboxes.list();
        let ours = all.iter().filter(|outbox| outbox.realm == caller.realm);
        Ok(ours.map(|outbox| outbox.state(feed_end)).collect())
    }

    /// Lets a sink of the caller's realm go on that rests because its receiver said that it is
    /// gone. One that does not rest goes on as it did. Gives how it stands.
    pub async fn resume_sink(&self, caller: &Caller, sink: &str) -> Result<SinkState, Refusal> {
        let outbox = self.outbox(caller, sink)?;
        let feed_end = self.shared.store.feed_end().await?;
        outbox.resume();
        Ok(outbox.state(feed_end))
    }

    /// The log of deliveries of the caller's realm, newest first.
    pub async fn deliveries(
        &self,
        caller: &Caller,
        filter: &DeliveryFilter,
        page: &Page,
    ) -> Result<Paged<DeliveryRow>, Refusal> {
        Ok(self.shared.deliveries.deliveries(&caller.realm, filter, page).await?)
    }

    fn outbox(&self, caller: &Caller, sink: &str) -> Result<Arc<Outbox>, Refusal> {
        let found = self.shared.outboxes.get(&caller.realm, sink);
        found.ok_or_else(|| {
            Refusal::not_found("sink", sink).hint("`waypost events sinks` lists the sinks")
        })
    }

    /// A sink's place, and the deliveries that another process left to be tried again, by event.
    async fn begin(
        &self,
        outbox: &Outbox,
        start: FeedStart,
    ) -> Result<(u64, BTreeMap<String, DeliveryRow>), Refusal> {
        let (shared, realm) = (&self.shared, &outbox.realm);
        let place = shared.store.begin_consumer(realm, &outbox.consumer, start).await?;
        let status = Some(DeliveryStatus::Retrying);
        let filter = DeliveryFilter { sink: Some(outbox.name.clone()), status };
        let mut page = Page { cursor: None, limit: shared.limits.page_items_max };
        let mut left = BTreeMap::new();
        loop {
            let paged = shared.deliveries.deliveries(realm, &filter, &page).await?;
            left.extend(paged.items.into_iter().map(|row| (row.event.clone(), row)));
            match paged.next_cursor {
                Some(cursor) => page.cursor = Some(cursor),
                None => return Ok((place, left)),
            }
        }
    }
}
