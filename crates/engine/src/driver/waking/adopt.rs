//! Starts a session from events that were written elsewhere: a fork.

use crate::command::{Slice, Slices};
use crate::driver::record::{EVENTS_PER_APPEND, no_session};
use crate::driver::state::Driver;
use crate::refusal::{Refusal, RefusalCode, Result};
use kernel::event::{Event, Fact};
use kernel::journal::projection::{SessionRow, StoredClosure, session_row};
use kernel::session::Session;
use kernel::tool::call::Caller;
use kernel::values::ids::{Fence, SessionId, SessionVersion};
use std::sync::Arc;

impl Driver {
    /// Writes the events as they come and continues where they end, as after a restart. No one
    /// wakes a session of which only some slices are there.
    pub(in crate::driver) async fn adopt(
        &mut self,
        id: SessionId,
        mut slices: Slices,
        by: &Caller,
    ) -> Result<SessionRow> {
        self.session = Some(Session::new(id, self.key.clone()));
        self.asleep = true;
        loop {
            let Slice { events, is_last } = match slices.recv().await {
                Some(Ok(slice)) => slice,
                Some(Err(refusal)) => return self.abandon(id, refusal).await,
                None => return self.abandon(id, cut_short()).await,
            };
            let count = events.len();
            for (index, event) in events.into_iter().enumerate() {
                self.bring_closure(&event).await?;
                let Some(session) = &mut self.session else { return Err(no_session()) };
                // All else was decided before, and is kept in the audit already.
                if matches!(event.fact, Fact::SessionForked { .. }) {
                    self.new_audit.extend(self.shared.gate.journaled(session, &event, Some(by)));
                }
                self.history.extend(session.apply(&event));
                // A run's row is taken from the state, so the next run must not hide it.
                let ended = matches!(event.fact, Fact::RunEnded { .. });
                let ends = is_last && index + 1 == count;
                self.pending.push(event);
                if ended || ends || self.pending.len() >= EVENTS_PER_APPEND {
                    self.asleep = !ends;
                    self.flush();
                }
            }
            // No more than one slice waits in the store's queue.
            self.durable().await?;
            if is_last {
                break;
            }
        }
        // From here on as any session that lies in the store: closures, calls under way.
        self.session = None;
        self.load().await?;
        self.durable().await?;
        let session = self.session.as_ref().ok_or_else(no_session)?;
        Ok(session_row(session, session.updated_at))
    }

    /// A run's closure is brought along with its start: the session that both come from may be
    /// removed meanwhile.
    async fn bring_closure(&mut self, event: &Event) -> Result<()> {
        if let Fact::RunStarted { closure, .. } = &event.fact {
            // None where the last run that pinned it is gone.
            let body = self.shared.store.closure(&self.key.realm, closure).await?;
            let stored = |body| Arc::new(StoredClosure { hash: closure.clone(), body });
            self.new_closure = body.map(stored);
        }
        Ok(())
    }

    /// The rest does not come: what was written is removed, for no one has learned of it.
    async fn abandon(&mut self, id: SessionId, refusal: Refusal) -> Result<SessionRow> {
        let known = SessionVersion { id, fence: self.fence };
        if known.fence == Fence::NONE {
            return Err(refusal);
        }
        if let Err(error) = self.shared.store.remove(&self.key, known).await {
            tracing::warn!(session = %self.key.id, %error, "a part of a copy stays in the store");
        }
        Err(refusal)
    }
}

fn cut_short() -> Refusal {
    Refusal::new(RefusalCode::Closing, "the copy was cut short by a stop").hint("send it again")
}
