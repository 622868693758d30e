//! A session that begins with events that were decided elsewhere: a fork.

use super::effects::unreadable;
use super::record::{EVENTS_PER_APPEND, no_session};
use super::state::Driver;
use crate::refusal::Refusal;
use crate::shared::Shared;
use kernel::event::{Event, Fact};
use kernel::ids::{ContentHash, RealmId, SessionId};
use kernel::projection::{SessionRow, StoredClosure, session_row};
use kernel::session::Session;
use std::sync::Arc;

impl Driver {
    /// Writes the events, in slices, and goes on where they end, as after a restart. Nobody wakes
    /// a session of which only some slices are there.
    pub(super) async fn adopt(
        &mut self,
        id: SessionId,
        events: Vec<Event>,
    ) -> Result<SessionRow, Refusal> {
        let pinned = self.shared.left_pinned(&self.key.realm, &events).await?;
        let mut session = Session::new(id, self.key.clone());
        let last = events.len();
        self.asleep = true;
        for (index, event) in events.into_iter().enumerate() {
            self.history.extend(session.apply(&event));
            // A run's row is taken from the state, so the next run must not hide it.
            let ended = matches!(event.fact, Fact::RunEnded { .. });
            if matches!(event.fact, Fact::RunStarted { .. }) {
                self.new_closure.clone_from(&pinned);
            }
            self.pending.push(event);
            if ended || self.pending.len() >= EVENTS_PER_APPEND || index + 1 == last {
                self.asleep = index + 1 < last;
                self.session = Some(session);
                self.flush();
                session = self.session.take().ok_or_else(no_session)?;
            }
        }
        self.session = Some(session);
        self.durable().await?;
        // From here on as any session that lies in the store: closures, calls under way.
        self.session = None;
        self.load().await?;
        self.durable().await?;
        let session = self.session.as_ref().ok_or_else(no_session)?;
        Ok(session_row(session, session.updated_at))
    }
}

impl Shared {
    /// The closure of the run that these events leave unfinished. It is brought along with the
    /// run's start: the session that both come from may be removed meanwhile.
    async fn left_pinned(
        &self,
        realm: &RealmId,
        events: &[Event],
    ) -> Result<Option<Arc<StoredClosure>>, Refusal> {
        let mut live: Option<&ContentHash> = None;
        for event in events {
            match &event.fact {
                Fact::RunStarted { closure, .. } => live = Some(closure),
                Fact::RunEnded { .. } => live = None,
                _ => {}
            }
        }
        let Some(hash) = live else { return Ok(None) };
        let body = self.store.closure(realm, hash).await?;
        let body = body.ok_or_else(|| unreadable(&format!("pinned plan `{hash}`")))?;
        Ok(Some(Arc::new(StoredClosure { hash: hash.clone(), body })))
    }
}
