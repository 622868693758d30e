//! Recording: a fact becomes an event, is applied, and is queued with others in one append.

use super::state::Driver;
use crate::counts::count;
use crate::refusal::{Refusal, RefusalKind};
use crate::shared::lock;
use futures::FutureExt;
use futures::future::BoxFuture;
use kernel::event::{Event, Fact, VERSION};
use kernel::projection::{Append, StoredClosure};
use std::sync::Arc;

/// How many events one journal row holds at most.
const EVENTS_PER_APPEND: usize = 128;

impl Driver {
    /// Records a fact and performs the effect that it names. Boxed: an effect may record again.
    pub(super) fn record(&mut self, fact: Fact) -> BoxFuture<'_, Result<(), Refusal>> {
        async move {
            let fact = self.spilled(fact).await?;
            let Some(session) = &mut self.session else {
                return Err(no_session());
            };
            let event =
                Event { seq: session.seq + 1, at: self.shared.clock.now(), v: VERSION, fact };
            self.history.extend(session.apply(&event));
            let fact = event.fact.clone();
            self.pending.push(event);
            if self.pending.len() >= EVENTS_PER_APPEND {
                self.flush();
            }
            self.perform(fact).await
        }
        .boxed()
    }

    /// A large value goes to a blob, synced before the row that names it is queued.
    async fn spilled(&mut self, mut fact: Fact) -> Result<Fact, Refusal> {
        let bytes_max = self.shared.limits.context_inline_bytes_max;
        let Some(datum) = fact.data_mut() else {
            return Ok(fact);
        };
        if let Some(bytes) = Arc::make_mut(datum).spill(bytes_max) {
            self.shared.blobs.put(&self.key.realm, bytes).await?;
        }
        Ok(fact)
    }

    /// Queues what is pending as one append.
    pub(super) fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let Some(session) = &self.session else { return };
        let events = std::mem::take(&mut self.pending);
        let history = std::mem::take(&mut self.history);
        let now = self.shared.clock.now();
        let append = match Append::new(session, &events, history, now) {
            Ok(append) => append,
            Err(error) => {
                tracing::error!(session = %self.key.id, %error, "events cannot be written as JSON");
                return;
            }
        };
        let append = self.with_closure(append);
        self.tail_bytes += append.body.len();
        count(&self.shared.counters.appends);
        self.ticket = Some(self.shared.store.append(append).shared());
        self.keep_snapshot();
    }

    fn with_closure(&mut self, mut append: Append) -> Append {
        let Some(closure) = self.new_closure.take() else {
            return append;
        };
        let known = (self.key.realm.clone(), closure.hash.clone());
        if !lock(&self.shared.stored_closures).contains(&known) {
            append.closure = Some(Arc::new(StoredClosure {
                hash: closure.hash.clone(),
                body: serde_json::to_string(&closure.text()).unwrap_or_default(),
            }));
        }
        append
    }

    /// Amortised constant: written when the tail outgrew both the last snapshot and a floor.
    fn keep_snapshot(&mut self) {
        let floor = self.shared.limits.snapshot_floor_bytes;
        if self.tail_bytes <= self.snapshot_bytes.max(floor) {
            return;
        }
        let Some(session) = &self.session else { return };
        if let Ok(body) = serde_json::to_string(session) {
            self.snapshot_bytes = body.len();
            self.tail_bytes = 0;
            self.shared.store.keep_snapshot(&self.key, session.seq, body);
        }
    }
}

/// A fact without a session is our own mistake.
pub(super) fn no_session() -> Refusal {
    Refusal::new(RefusalKind::Failed, "no_session", "the session is not loaded")
}
