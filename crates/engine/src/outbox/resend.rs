//! Sends one event again at a person's request: rebuilt from the journal, tried at once, and
//! logged.

use super::attempt::{self, RetryTime};
use crate::handles::Feed;
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::shared::stopping;
use kernel::contracts::cloud::{CloudEvent, cloud_events};
use kernel::contracts::sink::{DeliveryRow, DeliveryStatus};
use kernel::contracts::{FeedRow, SessionRef, StoreError};
use kernel::journal::projection::SessionRow;
use kernel::tool::call::Caller;
use kernel::values::ids::SessionId;
use std::sync::atomic::Ordering;

impl Feed<'_> {
    /// Sends an event to a sink of the caller's realm once more, whatever became of it before and
    /// whatever types the sink takes. One that is tried again need not be after that: its session
    /// continues. What the receiver says is in the row; only an event or a sink that is not there
    /// is refused.
    pub async fn resend(self, caller: &Caller, sink: &str, event: &str) -> Result<DeliveryRow> {
        let shared = self.shared;
        if shared.stopping.load(Ordering::Acquire) {
            return Err(stopping());
        }
        self.may_operate(caller, sink)?;
        let outbox = self.outbox(caller, sink)?;
        let known = shared.deliveries.delivery(&caller.realm, sink, event).await?;
        let events = [self.made_again(caller, event, known.is_some()).await?];
        let began = shared.clock.now();
        let result = attempt::deliver(shared, &outbox, &events).await;
        let tried = known.as_ref().map(attempt::logged);
        let tried = attempt::once_more(tried, began, shared.clock.now());
        let retrying = known.filter(|row| row.status == DeliveryStatus::Retrying);
        let row = match result {
            Ok(handed) => {
                outbox.progress().delivered += 1;
                attempt::delivered(sink, &events[0], tried, handed)
            }
            Err(error) => {
                outbox.progress().last_error = Some(error.message.clone());
                let again = match &retrying {
                    Some(row) => row.next_at.map_or(RetryTime::Resumed, RetryTime::At),
                    None => RetryTime::Never,
                };
                let row = attempt::failed(sink, &events[0], tried, &error, again);
                // The one that tries it again by itself writes the log: what we know may be old by
                // now.
                if retrying.is_some() {
                    return Ok(row);
                }
                row
            }
        };
        shared.deliveries.keep_deliveries(&caller.realm, vec![row.clone()], None).await?;
        if retrying.is_some() {
            outbox.note_resent(row.clone());
        }
        // A receiver that takes an event is not gone. After the note: the same event need not go
        // twice.
        if row.status == DeliveryStatus::Delivered {
            outbox.resume();
        }
        Ok(row)
    }

    /// The event of this id, out of the journal. Whether the log knows it tells what was removed
    /// from what never was.
    async fn made_again(self, caller: &Caller, id: &str, is_known: bool) -> Result<CloudEvent> {
        let never = || {
            Refusal::not_found("event", id).hint("`waypost events deliveries` lists what went out")
        };
        let gone = || {
            let message = format!("the journal does not have event `{id}` any more");
            Refusal::new(RefusalCode::EventGone, message)
                .hint("keep sessions for longer: `session_ttl_ms` in [limits]")
        };
        let missing = || if is_known { gone() } else { never() };
        let (session, seq) = named(id).ok_or_else(never)?;
        let store = &self.shared.store;
        let found = store.session(&caller.realm, &SessionRef::Id(session)).await?;
        let SessionRow { key, owner, plan, .. } = found.ok_or_else(missing)?;
        let read = match store.events(&key, seq - 1, 1).await {
            Ok(read) => read,
            Err(StoreError::Gone(_)) => return Err(gone()),
            Err(error) => return Err(error.into()),
        };
        let (oldest, text) = read.into_iter().next().ok_or_else(missing)?;
        if oldest != seq {
            return Err(gone());
        }
        let row = FeedRow { cursor: 0, session, key, owner, plan, body: format!("[{text}]") };
        let made = cloud_events(&row).unwrap_or_default();
        made.into_iter().find(|event| event.id == id).ok_or_else(missing)
    }
}

/// The session and the sequence that an event's id names.
fn named(id: &str) -> Option<(SessionId, u64)> {
    let (session, rest) = id.split_once('.')?;
    let seq = rest.split('.').next()?.parse().ok().filter(|seq| *seq > 0)?;
    Some((session.parse().ok()?, seq))
}
