//! Recording: a fact becomes an event, is applied, and is queued with others in one append. The key
//! of a request is written in the append of what it does. What time decides is recorded here too: a
//! session that no one drives is woken by recovery when its time comes; one that is being driven
//! looks at the clock itself.

use super::state::{Alarm, Completion, Driver, Effect};
use crate::driver::talk_content::{KEPT_BYTES_MAX, is_said};
use crate::observe::counts::count;
use crate::refusal::{Refusal, RefusalCode, Result};
use crate::system::heavy;
use crate::waiting::idempotency::Claim;
use futures::FutureExt;
use futures::future::ready;
use kernel::contracts::StoreError;
use kernel::event::{Event, Fact, VERSION};
use kernel::journal::projection::Append;
use kernel::session::{FrameState, Phase};
use kernel::tool::call::Caller;
use kernel::values::datum::{BlobRef, Datum, DatumValue, Origin, larger_than};
use kernel::values::ids::{AskId, FrameId, Millis, RunId};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many events one journal row holds at most.
pub(super) const EVENTS_PER_APPEND: usize = 128;

/// How many times as large as the last snapshot the tail may get while a run moves.
const MOVING_TAILS: usize = 8;
/// But not larger than this, unless the snapshot is: a reader of the session reads all of it.
const MOVING_TAIL_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Whether it is counted, of what a run does that calls nothing.
fn is_counted(fact: &Fact) -> bool {
    matches!(fact, Fact::RunStarted { .. } | Fact::RunEnded { .. } | Fact::AskOpened(_))
}

impl Driver {
    /// Records a fact and performs the effect that it names.
    pub(super) async fn record(&mut self, mut fact: Fact) -> Result<()> {
        let bytes_max = self.shared.limits.context_inline_bytes_max;
        if may_spill(&mut fact, bytes_max) {
            Box::pin(self.spill(&mut fact, bytes_max)).await?;
        }
        let seq = self.session.as_ref().ok_or_else(no_session)?.seq + 1;
        let event = Event { seq, at: self.shared.clock.now(), v: VERSION, fact };
        let observations = self.ended_spans(&event);
        self.forget_wants(&event.fact);
        let Some(session) = &mut self.session else { return Err(no_session()) };
        self.new_audit.extend(self.shared.gate.journaled(session, &event, self.doer.as_ref()));
        // Before it is applied: an agent's call that finished is gone after that.
        let said = is_said(session, &event.fact).then(|| event.fact.clone());
        self.history.extend(session.apply(&event));
        if let Some(fact) = said {
            self.talk_content.note(event.seq, fact, KEPT_BYTES_MAX);
        }
        if self.is_unsure {
            self.unnoted.extend(is_counted(&event.fact).then(|| event.fact.clone()));
            self.held_observations.extend(observations);
        } else {
            self.note(&event.fact);
            observations.iter().for_each(|observation| self.shared.observers.see(observation));
        }
        self.shared.suspects.review(&self.probation, self.session.as_ref());
        let effect = Effect::of(&event.fact);
        self.run_ended |= matches!(effect, Effect::EndRun);
        self.pending.push(event);
        if self.pending.len() >= EVENTS_PER_APPEND {
            self.flush();
        }
        self.perform(effect);
        Ok(())
    }

    /// Records what a caller does: the audit learns who really called, and where.
    pub(super) async fn record_by(&mut self, caller: Caller, fact: Fact) -> Result<()> {
        self.doer = Some(caller);
        let recorded = self.record(fact).await;
        self.doer = None;
        recorded
    }

    /// A large value goes to a blob, synced before the row that names it is queued.
    async fn spill(&mut self, fact: &mut Fact, bytes_max: usize) -> Result<()> {
        if let Fact::FramesJoined { frame, blob, .. } = fact {
            *blob = self.spill_join(*frame, bytes_max).await?;
            return Ok(());
        }
        let Some(datum) = fact.data_mut() else { return Ok(()) };
        if let Some(bytes) = Arc::make_mut(datum).spill(bytes_max) {
            self.shared.blobs.put(&self.key.realm, bytes).await?;
        }
        Ok(())
    }

    /// A large joined value goes to a blob of its own, so that the state stays small.
    async fn spill_join(&mut self, frame: FrameId, bytes_max: usize) -> Result<Option<BlobRef>> {
        let frames = self.session.as_ref().map(|session| &session.frames);
        let state = frames.and_then(|frames| frames.get(&frame)).map(|frame| &frame.state);
        let Some(FrameState::Joining(join)) = state else { return Ok(None) };
        let joined = Datum::joined(join.value());
        if joined.holds_blob() {
            return Ok(None);
        }
        match Datum::inline(joined.to_value(), Origin::Join).spill(bytes_max) {
            Some(bytes) => Ok(Some(self.shared.blobs.put(&self.key.realm, bytes).await?)),
            None => Ok(None),
        }
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
        self.shared.storage.add(&self.key.realm, session.owner.as_ref(), &events);
        let mut append = match Append::new(session, self.fence, &events, history, now) {
            Ok(append) => append,
            Err(error) => {
                tracing::error!(session = %self.key.id, %error, "events cannot be written as JSON");
                // What is applied and cannot be kept is void, like an append that failed.
                let lost = StoreError::Failed("events cannot be written as JSON".to_owned());
                self.ticket = Some(ready(Err(lost)).boxed().shared());
                return;
            }
        };
        append.closure = self.new_closure.take();
        append.specs = std::mem::take(&mut self.new_specs);
        let claim = self.new_key.take().map(|(row, claim)| {
            claim.write(row, &mut append);
            claim
        });
        append.tally = self.new_tally.take();
        append.audit = std::mem::take(&mut self.new_audit);
        if self.shared.watchers.has(&self.key) {
            append.events = events.into_iter().map(Arc::new).collect();
        }
        if self.asleep {
            append.session.wake_at = None;
            append.owned = true;
        }
        self.tail_bytes += append.body.len();
        append.snapshot = self.snapshot();
        self.appends_ahead += 1;
        count(&self.shared.counters.appends);
        self.ticket = Some(self.shared.store.append(append).shared());
        // It will have moved by one when the next append's turn comes.
        self.fence = self.fence.next();
        if let Some(claim) = claim {
            self.let_key_go(claim);
        }
    }

    /// The next append writes this key down; call it right before what the key stands for is
    /// recorded.
    pub(super) fn keep_key(&mut self, claim: Option<Claim>, run: RunId, ask: Option<AskId>) {
        let Some(claim) = claim else { return };
        // One append holds one key.
        if self.new_key.is_some() {
            self.flush();
        }
        self.is_unsure |= claim.is_unsure();
        self.new_key = Some((claim.row(run, ask, self.shared.clock.now()), claim));
    }

    /// A key was written down: what was done under it is no repeat, and is counted and seen.
    pub(super) fn key_kept(&mut self) {
        self.is_unsure = false;
        let unnoted = std::mem::take(&mut self.unnoted);
        unnoted.iter().for_each(|fact| self.note(fact));
        let observations = std::mem::take(&mut self.held_observations);
        observations.iter().for_each(|observation| self.shared.observers.see(observation));
    }

    /// Holds the key until the append that was queued last is durable or refused.
    fn let_key_go(&mut self, claim: Claim) {
        let Some(ticket) = self.ticket.clone() else { return };
        let kept = async move {
            let result = ticket.await;
            drop(claim);
            Completion::Kept(result)
        };
        self.in_flight.push(kept.boxed());
    }

    /// Records all that time has decided by now. An alarm that rang at `rang` did so after all of
    /// its wait: a clock that was set back meanwhile does not make anyone wait for longer.
    pub(super) async fn keep_time(&mut self, rang: Option<Millis>) -> Result<()> {
        // The next process finds what is due: one that stops could not bring it to its end.
        if self.is_stopping() {
            return Ok(());
        }
        let now = self.shared.clock.now();
        let mut now = rang.map_or(now, |rang| rang.max(now));
        let mut has_looked = false;
        while let Some(fact) = self.session.as_ref().and_then(|session| session.due(now)) {
            if let Some(looked_at) = self.look_again(&fact) {
                now = looked_at;
                has_looked = true;
                continue;
            }
            self.log_act(&fact);
            self.record(fact).await?;
        }
        match has_looked {
            true => self.keep_next_look(now).await,
            false => Ok(()),
        }
    }

    fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Acquire)
    }

    /// Sets the alarm to the session's next deadline.
    pub(super) fn set_alarm(&mut self) {
        let session = self.session.as_ref().filter(|_| !self.is_stopping());
        let next = session.and_then(|session| session.next_deadline());
        if self.alarm.as_ref().map(|alarm| alarm.at) != next {
            let clock = &self.shared.clock;
            self.alarm = next.map(|at| Alarm { at, rings: clock.sleep_until(at) });
        }
    }

    /// A snapshot, if it is time for one. Amortised constant: the tail has outgrown both the last
    /// snapshot and a floor. While a run moves fast, it may outgrow it several times: others wait
    /// while a large snapshot is written. Or a run ended, and may have left a state far smaller
    /// than that snapshot: the next reader should not have to read it.
    fn snapshot(&mut self) -> Option<String> {
        let run_ended = std::mem::take(&mut self.run_ended);
        let session = self.session.as_ref()?;
        let last = self.snapshot_bytes;
        let floor = self.shared.limits.snapshot_floor_bytes;
        let tail_max = match session.phase() {
            Phase::Moving => (last * MOVING_TAILS).min(MOVING_TAIL_BYTES_MAX).max(last),
            Phase::Waiting | Phase::Stuck | Phase::Done => last,
        };
        let bytes_max = if self.tail_bytes > tail_max.max(floor) {
            usize::MAX
        } else if run_ended && last > floor {
            last / 2
        } else {
            return None;
        };
        let body = heavy::sized(self.tail_bytes.max(last), || session.to_snapshot().ok())?;
        if body.len() > bytes_max {
            return None;
        }
        self.snapshot_bytes = body.len();
        self.tail_bytes = 0;
        Some(body)
    }
}

/// Whether a value of this fact may have to go to a blob. Most are small, and stay shared with the
/// session as they are.
fn may_spill(fact: &mut Fact, bytes_max: usize) -> bool {
    if matches!(fact, Fact::FramesJoined { .. }) {
        return true;
    }
    fact.data_mut().is_some_and(|datum| match &datum.held {
        DatumValue::Value(value) => larger_than(value, bytes_max),
        DatumValue::Blob(_) | DatumValue::Object(_) | DatumValue::Array(_) => false,
    })
}

/// A fact without a session is our own mistake.
pub(super) fn no_session() -> Refusal {
    Refusal::new(RefusalCode::NoSession, "the session is not loaded")
}
