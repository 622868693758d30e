//! The outbox: from rows of the journal to events that someone has. Each sink reads the feed, and
//! each webhook the journal of its run, by itself. It keeps its place in the store, so that a crash
//! loses nothing: what is behind the place is sent again.

mod window;
mod attempt;
mod send;
mod resend;
pub(crate) mod heads;
mod webhooks;

use crate::handles::Feed;
use crate::observe::sinks::{Outbox, SinkRules, SinkState, consumer};
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::shared::stopping;
use kernel::contracts::policy::Resource;
use kernel::contracts::sink::{DeliveryFilter, DeliveryRow, DeliveryStatus, EventSink};
use kernel::contracts::{FeedStart, ListPage, PageRequest, SINKS};
use kernel::tool::call::Caller;
use kernel::values::caller::Act;
use kernel::values::ids::RealmId;
use send::Sender;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The rows ahead of a sink are counted up to this: of one that is far behind more need not be
/// known, and they are counted whenever someone looks.
const LAG_MAX: usize = 10_000;

impl Feed<'_> {
    /// Sends a realm's events to a sink until the engine stops. Its place is in the store when this
    /// returns: whatever is recorded from then on gets there.
    pub async fn keep_sending(
        self,
        realm: &RealmId,
        name: &str,
        sink: Arc<dyn EventSink>,
        rules: SinkRules,
    ) -> Result<()> {
        let shared = self.shared;
        if shared.stopping.load(Ordering::Acquire) {
            return Err(stopping());
        }
        let start = if rules.from_start { FeedStart::Oldest } else { FeedStart::Newest };
        let outbox = Arc::new(Outbox::new(realm, name, sink, rules));
        if !shared.outboxes.insert(outbox.clone()) {
            let message = format!("realm `{realm}` has a sink `{name}` already");
            return Err(Refusal::new(RefusalCode::SinkExists, message)
                .hint("give one of them another name"));
        }
        let (position, left) = match self.begin(&outbox, start).await {
            Ok(began) => began,
            Err(refusal) => {
                shared.outboxes.remove(realm, name);
                return Err(refusal);
            }
        };
        outbox.progress().position = position;
        let sending = shared.outboxes.begin();
        let sender = Sender::new(shared.clone(), outbox, position, left);
        let task = async move {
            sender.run().await;
            drop(sending);
        };
        shared.spawn.critical_task("outbox", Box::pin(task));
        Ok(())
    }

    /// Notes a sink of a realm that is configured and that nothing is sent to by this process: it
    /// keeps its place and cannot be forgotten.
    pub fn rest_sink(self, realm: &RealmId, name: &str) {
        self.shared.outboxes.rest(realm, name);
    }

    /// How the sinks of the caller's realm stand, by name; those that are not configured any more
    /// too.
    pub async fn sinks(self, caller: &Caller) -> Result<Vec<SinkState>> {
        let mut states = self.unconfigured_sinks(&caller.realm).await?;
        let mut all = self.shared.outboxes.list();
        all.retain(|outbox| outbox.realm == caller.realm);
        for outbox in all {
            states.push(self.state(&outbox).await?);
        }
        states.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(self.shared.gate.readable(caller, states, |state| Resource::Sink(&state.name)))
    }

    /// The sinks of a realm that have a place and are not configured, by name.
    pub async fn unconfigured_sinks(self, realm: &RealmId) -> Result<Vec<SinkState>> {
        let mut states = Vec::new();
        for (consumer, position) in self.shared.store.consumers(realm, SINKS).await? {
            let name = consumer.strip_prefix(SINKS).unwrap_or(&consumer);
            if !self.shared.outboxes.is_configured(realm, name) {
                let lag = self.lag(realm, position).await?;
                states.push(SinkState::unconfigured(name, position, lag));
            }
        }
        Ok(states)
    }

    /// How a sink stands.
    async fn state(self, outbox: &Outbox) -> Result<SinkState> {
        let progress = outbox.progress().clone();
        let lag = self.lag(&outbox.realm, progress.position).await?;
        Ok(outbox.state(progress, lag))
    }

    /// How many rows are ahead of who is at this place: those of its own realm alone, since no one
    /// is to learn from it how much other realms do.
    async fn lag(self, realm: &RealmId, position: u64) -> Result<u64> {
        Ok(self.shared.store.feed_ahead(realm, position, LAG_MAX).await?)
    }

    /// Forgets a sink of the caller's realm that is not configured any more: its place and its log
    /// of deliveries. Retention no longer waits for it, and a sink of this name begins again.
    /// Durable on return.
    pub async fn forget_sink(self, caller: &Caller, sink: &str) -> Result<()> {
        let shared = self.shared;
        let realm = &caller.realm;
        self.may_operate(caller, sink)?;
        if shared.outboxes.is_configured(realm, sink) {
            let message = format!("sink `{sink}` is configured: only one that is not is forgotten");
            return Err(Refusal::new(RefusalCode::SinkConfigured, message).hint(format!(
                "remove `[events.sinks.{sink}]` from the settings, then start again"
            )));
        }
        if !shared.store.forget_consumer(realm, &consumer(sink)).await? {
            return Err(unknown(sink));
        }
        tracing::info!(sink, "a sink is forgotten: retention no longer waits for it");
        Ok(())
    }

    /// Resumes a sink of the caller's realm that rests because its receiver said that it is
    /// gone. One that does not rest continues as it did. Gives how it stands.
    pub async fn resume_sink(self, caller: &Caller, sink: &str) -> Result<SinkState> {
        self.may_operate(caller, sink)?;
        let outbox = self.outbox(caller, sink)?;
        outbox.resume();
        self.state(&outbox).await
    }

    /// The log of deliveries of the caller's realm, newest first.
    pub async fn deliveries(
        self,
        caller: &Caller,
        filter: &DeliveryFilter,
        page: &PageRequest,
    ) -> Result<ListPage<DeliveryRow>> {
        let log = &self.shared.deliveries;
        let realm = &caller.realm;
        let read =
            move |page: PageRequest| async move { log.deliveries(realm, filter, &page).await };
        self.shared.gate.fill_page(caller, page, read, sink_of).await
    }

    /// Refuses to operate a sink that this caller may not operate; one that it may not read is like
    /// one that is not there.
    fn may_operate(self, caller: &Caller, sink: &str) -> Result<()> {
        let gate = &self.shared.gate;
        let resource = Resource::Sink(sink);
        gate.permit(caller, Act::Operate, resource).map_err(|refusal| {
            match gate.could_read(caller, resource) {
                true => refusal,
                false => unknown(sink),
            }
        })
    }

    fn outbox(self, caller: &Caller, sink: &str) -> Result<Arc<Outbox>> {
        self.shared.outboxes.get(&caller.realm, sink).ok_or_else(|| unknown(sink))
    }

    /// A sink's place, and the deliveries that another process left to be tried again, by event.
    async fn begin(
        self,
        outbox: &Outbox,
        start: FeedStart,
    ) -> Result<(u64, BTreeMap<String, DeliveryRow>)> {
        let shared = self.shared;
        let realm = &outbox.realm;
        let position = shared.store.begin_consumer(realm, &outbox.consumer, start).await?;
        let status = Some(DeliveryStatus::Retrying);
        let filter = DeliveryFilter { sink: Some(outbox.name.clone()), status };
        let mut page = PageRequest { cursor: None, limit: shared.limits.page_items_max };
        let mut left = BTreeMap::new();
        loop {
            let paged = shared.deliveries.deliveries(realm, &filter, &page).await?;
            left.extend(paged.items.into_iter().map(|row| (row.event.clone(), row)));
            match paged.next_cursor {
                Some(cursor) => page.cursor = Some(cursor),
                None => return Ok((position, left)),
            }
        }
    }
}

fn unknown(sink: &str) -> Refusal {
    Refusal::not_found("sink", sink).hint("`waypost events sinks` lists the sinks")
}

/// The sink of a delivery as policy knows it.
fn sink_of(row: &DeliveryRow) -> Resource<'_> {
    Resource::Sink(&row.sink)
}
