//! The loop of one sink: reads the feed ahead, sends what can go, tries again what failed, and
//! writes down how far it is, in few commits.

use super::attempt::{self, RetryTime, STORE_RETRY_MS};
use super::window::{Attempts, Batch, Window};
use crate::observe::counts::count;
use crate::observe::sinks::Outbox;
use crate::shared::Shared;
use crate::waiting::feed::Watch;
use futures::future::{BoxFuture, FutureExt, poll_fn, ready};
use futures::stream::{FuturesUnordered, StreamExt};
use kernel::contracts::cloud::{CloudEvent, cloud_events};
use kernel::contracts::sink::{DeliveryReceipt, DeliveryRow, DeliveryStatus, SinkError};
use kernel::contracts::{FeedRow, StoreError};
use kernel::values::ids::Millis;
use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch;

/// How many rows of the feed are read at once.
const ROWS_PER_READ: usize = 256;
/// The shortest time between two looks at a feed that had no more: many commits are one look.
const LOOK: Duration = Duration::from_millis(10);
/// Outcomes are written after so many deliveries, or after this time.
const DELIVERIES_PER_WRITE: usize = 64;
const WRITE_AFTER: Duration = Duration::from_millis(200);
/// Attempt of an event at which the server logs a warning. The delivery log has every attempt.
const WARN_AT_ATTEMPT: u32 = 4;
/// Logged for an event that a previous process tried and that does not exist for this sink any
/// more.
const NOT_THERE: &str =
    "is not tried any more: it was removed, or the sink takes no events of its type";

/// Sends to one sink.
pub(super) struct Sender {
    shared: Arc<Shared>,
    outbox: Arc<Outbox>,
    window: Window,
    /// Rows that were read and wait for room in the window.
    rows: VecDeque<FeedRow>,
    /// The feed was read up to this row. Rows after the last of `rows` had no events for the sink.
    read_to: u64,
    /// When to read the feed next, as elapsed time; `None` while there is nothing more in it.
    look_at: Option<Duration>,
    looked_at: Duration,
    flights: FuturesUnordered<BoxFuture<'static, DeliveryResult>>,
    /// Rows of the delivery log for the next write.
    log: Vec<DeliveryRow>,
    /// Deliveries since the last write.
    uncommitted: usize,
    /// When the next write is due.
    commit_at: Option<Duration>,
    writing: Option<BoxFuture<'static, CommitResult>>,
    /// The position in the store.
    written_to: u64,
    /// Attempts of a previous process, by event id, for events that are not read yet.
    left: BTreeMap<String, DeliveryRow>,
    /// The same for events that are read.
    tried: BTreeMap<String, Attempts>,
    /// Events that a person resent while a delivery of them was active here.
    resent: BTreeMap<String, DeliveryRow>,
    /// Time of the last successful delivery.
    taken_at: Option<Millis>,
    /// Whether a warning was logged since the last successful delivery.
    has_warned: bool,
    commits: Watch,
    stop: watch::Receiver<bool>,
    /// The store is closed or refuses the last write.
    is_over: bool,
}

struct DeliveryResult {
    batch: Batch,
    began: Millis,
    result: Result<DeliveryReceipt, SinkError>,
}

struct CommitResult {
    rows: Vec<DeliveryRow>,
    position: u64,
    result: Result<(), StoreError>,
}

/// Why the loop wakes.
enum WakeReason {
    Delivered(Box<DeliveryResult>),
    Written(CommitResult),
    /// The feed may have new rows.
    Commit,
    /// A timer is due, or the sink stops.
    Look,
}

impl Sender {
    pub(super) fn new(
        shared: Arc<Shared>,
        outbox: Arc<Outbox>,
        position: u64,
        left: BTreeMap<String, DeliveryRow>,
    ) -> Self {
        Self {
            window: Window::new(position, outbox.sink.lanes() <= 1),
            rows: VecDeque::new(),
            read_to: position,
            look_at: Some(Duration::ZERO),
            looked_at: Duration::ZERO,
            flights: FuturesUnordered::new(),
            log: Vec::new(),
            uncommitted: 0,
            commit_at: None,
            writing: None,
            written_to: position,
            left,
            tried: BTreeMap::new(),
            resent: BTreeMap::new(),
            taken_at: None,
            has_warned: false,
            commits: shared.watchers.watch_all(),
            stop: shared.outboxes.stopping(),
            is_over: false,
            shared,
            outbox,
        }
    }

    /// Sends until the engine stops. What is under way then may arrive; the rest is sent after the
    /// next start.
    pub(super) async fn run(mut self) {
        // What is left of a realm that was removed goes nowhere.
        while !self.is_over && !self.shared.closed.has(&self.outbox.realm) {
            // Before we look at what was resent: a resume has noted that first.
            let rests = self.rests();
            self.settle_resent();
            let stopping = *self.stop.borrow();
            if !stopping {
                self.fill().await;
                if !rests {
                    self.window.wake(self.shared.clock.elapsed());
                    self.launch();
                }
            }
            // What is under way at a stop may hang: what is known by then is written all the same.
            self.write_progress(stopping);
            if stopping && self.flights.is_empty() && self.writing.is_none() {
                return;
            }
            match self.wait(stopping).await {
                WakeReason::Delivered(landed) => self.land(*landed),
                WakeReason::Written(written) => self.note_written(written, stopping),
                WakeReason::Commit if self.look_at.is_none() => {
                    self.look_at = Some(self.looked_at + LOOK);
                }
                WakeReason::Commit | WakeReason::Look => {}
            }
        }
    }

    /// Whether the receiver is gone: nothing is sent until someone resumes the sink.
    fn rests(&self) -> bool {
        self.outbox.progress().gone
    }

    fn is_full(&self) -> bool {
        let window = &self.window;
        let limits = &self.shared.limits;
        window.unsettled() >= limits.outbox_window_max.max(1)
            || window.bytes() >= limits.outbox_window_bytes_max.max(1)
            || window.ahead() >= limits.outbox_ahead_max.max(1)
    }

    /// Reads ahead, as far as there is room.
    async fn fill(&mut self) {
        self.take_rows();
        let now = self.shared.clock.elapsed();
        let is_due = self.look_at.is_some_and(|then| then <= now);
        if !is_due || !self.rows.is_empty() || self.is_full() {
            return;
        }
        match self.read().await {
            Ok(()) => self.take_rows(),
            Err(StoreError::Closed) => self.is_over = true,
            Err(error) => {
                tracing::warn!(%error, sink = self.outbox.name, "the feed cannot be read");
                self.look_at = Some(now + Duration::from_millis(STORE_RETRY_MS));
            }
        }
    }

    async fn read(&mut self) -> Result<(), StoreError> {
        // The end first: rows that come after it are read now or next time.
        let end = self.shared.store.feed_end().await?;
        let realm = &self.outbox.realm;
        let rows = self.shared.store.feed(realm, self.read_to, ROWS_PER_READ).await?;
        let last = rows.last().map_or(self.read_to, |row| row.cursor);
        // Few rows are no sign of the end: they may be large.
        let is_all = rows.is_empty() || last >= end;
        self.read_to = if is_all { last.max(end) } else { last };
        self.looked_at = self.shared.clock.elapsed();
        self.look_at = if is_all { None } else { Some(self.looked_at) };
        self.rows.extend(rows);
        Ok(())
    }

    /// Makes events of the rows that are read, while there is room for them.
    fn take_rows(&mut self) {
        while !self.is_full() {
            let Some(row) = self.rows.pop_front() else {
                self.window.pass(self.read_to);
                if self.look_at.is_none() {
                    self.give_up_left();
                }
                return;
            };
            let mut events = cloud_events(&row).unwrap_or_else(|error| {
                let sink = &self.outbox.name;
                let session = row.session;
                tracing::warn!(%error, sink, %session, "a row of the feed is passed over");
                Vec::new()
            });
            events.retain(|event| self.outbox.rules.takes(&event.kind));
            for event in &events {
                if let Some(row) = self.left.remove(&event.id) {
                    self.tried.insert(event.id.clone(), attempt::logged(&row));
                }
            }
            self.window.take(row.cursor, events, row.body.len());
        }
    }

    /// All that was there at the start is read: what another process tried and is not among it
    /// would be tried again for ever, by the log.
    fn give_up_left(&mut self) {
        for row in std::mem::take(&mut self.left).into_values() {
            self.outbox.progress().failed += 1;
            let status = DeliveryStatus::Failed;
            let error = Some(NOT_THERE.to_owned());
            self.log.push(DeliveryRow { status, next_at: None, error, ..row });
        }
    }

    /// Settles events that a person has resent.
    fn settle_resent(&mut self) {
        if self.flights.is_empty() {
            self.resent.clear();
        }
        for row in self.outbox.take_resent() {
            if self.window.settle_waiting(&row.event) {
                self.outbox.progress().retrying -= 1;
                self.log.push(row);
            } else {
                self.resent.insert(row.event.clone(), row);
            }
        }
    }

    /// Sends what can go, as much at the same time as the sink likes.
    fn launch(&mut self) {
        let sink = &self.outbox.sink;
        // While the log cannot be written nothing more is sent that would have to be logged.
        let room = self.shared.limits.outbox_window_max.max(DELIVERIES_PER_WRITE);
        while self.flights.len() < sink.lanes().max(1) && self.log.len() < room {
            let Some(batch) = self.window.next(sink.batch_max().max(1)) else { return };
            let shared = self.shared.clone();
            let outbox = self.outbox.clone();
            let began = shared.clock.now();
            self.flights.push(Box::pin(async move {
                let result = attempt::deliver(&shared, &outbox, &batch.events).await;
                DeliveryResult { batch, began, result }
            }));
        }
    }

    fn land(&mut self, landed: DeliveryResult) {
        let DeliveryResult { batch, began, result } = landed;
        self.uncommitted += batch.events.len();
        match result {
            Ok(handed) => self.delivered(batch, began, handed),
            Err(error) => self.failed(batch, began, &error),
        }
    }

    fn delivered(&mut self, batch: Batch, began: Millis, handed: DeliveryReceipt) {
        let now = self.shared.clock.now();
        self.taken_at = Some(now);
        self.has_warned = false;
        let is_logged = self.outbox.sink.is_logged();
        let mut tried = batch.tried;
        for event in &batch.events {
            self.resent.remove(&event.id);
            let before = tried.take().or_else(|| self.tried.remove(&event.id));
            // Who tried it before has told the log of it.
            if is_logged || before.is_some() {
                let once = attempt::once_more(before, began, now);
                self.log.push(attempt::delivered(&self.outbox.name, event, once, handed));
            }
            self.window.settle(event);
        }
        let delivered = batch.events.len() as u64;
        let mut progress = self.outbox.progress();
        progress.delivered += delivered;
        progress.retrying -= u64::from(batch.tried.is_some());
        drop(progress);
        self.window.free(batch.lane, Vec::new());
    }

    /// Of several events only the first counts as tried: no one knows which of them it was.
    fn failed(&mut self, batch: Batch, began: Millis, error: &SinkError) {
        let Batch { lane, mut events, tried } = batch;
        let Some(first) = events.first() else { return };
        let shared = self.shared.clone();
        let outbox = self.outbox.clone();
        let limits = &shared.limits;
        let now = shared.clock.now();
        let before = tried.or_else(|| self.tried.remove(&first.id));
        let once = self.once_more(before, began, now, error);
        let wait = attempt::wait_ms(limits, once.attempts, error, shared.entropy.bits());
        let (again, wait) = match once.against >= limits.delivery_attempts_max {
            _ if error.is_gone => (RetryTime::Resumed, Some(0)),
            true => (RetryTime::Never, None),
            false => (RetryTime::At(now.plus_ms(wait)), Some(wait)),
        };
        let resent = self.resent.remove(&first.id);
        let is_over_there = resent.is_some();
        self.tell(first, once, error);
        let failed = || attempt::failed(&outbox.name, first, once, error, again);
        self.log.push(resent.unwrap_or_else(failed));
        let mut progress = outbox.progress();
        progress.last_error = Some(error.message.clone());
        progress.retrying -= u64::from(tried.is_some());
        if error.is_gone && !std::mem::replace(&mut progress.gone, true) {
            let sink = &outbox.name;
            tracing::warn!(sink, %error, "a sink is gone: deliveries wait until it is resumed");
        }
        match wait.filter(|_| !is_over_there) {
            Some(wait) => {
                count(&shared.counters.deliveries_retried);
                progress.retrying += 1;
                drop(progress);
                let then = shared.clock.elapsed() + Duration::from_millis(wait);
                self.window.wait(lane, events, once, then);
            }
            None => {
                if !is_over_there {
                    progress.failed += 1;
                    let sink = &outbox.name;
                    let event = &first.id;
                    tracing::warn!(sink, event, %error, "an event is not delivered");
                }
                drop(progress);
                self.window.settle(first);
                events.remove(0);
                self.window.free(lane, events);
            }
        }
    }

    /// The tries of an event with one that failed. It speaks against the event if the sink refused
    /// it, or took others since the try before: while a sink takes nothing, or is gone, nothing is
    /// given up.
    fn once_more(
        &self,
        before: Option<Attempts>,
        began: Millis,
        ended: Millis,
        error: &SinkError,
    ) -> Attempts {
        let since = before.map_or(began, |before| before.last_at);
        let takes_others = self.taken_at.is_some_and(|taken_at| taken_at >= since);
        let once = attempt::once_more(before, began, ended);
        let is_against = !error.is_gone && (error.is_refusal || takes_others);
        Attempts { against: once.against.saturating_add(u32::from(is_against)), ..once }
    }

    /// Logs a warning about a failing sink, once until a delivery succeeds again.
    fn tell(&mut self, event: &CloudEvent, tried: Attempts, error: &SinkError) {
        if self.has_warned || tried.attempts < WARN_AT_ATTEMPT {
            return;
        }
        self.has_warned = true;
        let sink = &self.outbox.name;
        let event = &event.id;
        let attempts = tried.attempts;
        tracing::warn!(sink, event, attempts, %error, "a sink does not take an event");
    }

    /// Starts to write the delivery log and the position, if that is due.
    fn write_progress(&mut self, at_once: bool) {
        let position = self.window.position();
        if self.writing.is_some() {
            return;
        }
        if self.log.is_empty() && position == self.written_to {
            self.commit_at = None;
            return;
        }
        let now = self.shared.clock.elapsed();
        let due = *self.commit_at.get_or_insert(now + WRITE_AFTER);
        if !at_once && now < due && self.uncommitted < DELIVERIES_PER_WRITE {
            return;
        }
        self.commit_at = None;
        self.uncommitted = 0;
        let rows = std::mem::take(&mut self.log);
        let shared = self.shared.clone();
        let outbox = self.outbox.clone();
        self.writing = Some(Box::pin(async move {
            let position_of = Some((outbox.consumer.as_str(), position));
            let write = shared.deliveries.keep_deliveries(&outbox.realm, rows.clone(), position_of);
            let result = write.await;
            CommitResult { rows, position, result }
        }));
    }

    fn note_written(&mut self, written: CommitResult, stopping: bool) {
        self.writing = None;
        match written.result {
            Ok(()) => {
                self.written_to = written.position;
                self.outbox.progress().position = written.position;
            }
            Err(StoreError::Closed) => self.is_over = true,
            Err(error) => {
                tracing::warn!(%error, sink = self.outbox.name, "deliveries cannot be written");
                let mut rows = written.rows;
                rows.append(&mut self.log);
                self.log = rows;
                let retry = Duration::from_millis(STORE_RETRY_MS);
                self.commit_at = Some(self.shared.clock.elapsed() + retry);
                self.is_over = stopping;
            }
        }
    }

    /// The next time at which there is something to do.
    fn next_time(&self) -> Option<Duration> {
        let read = self.look_at.filter(|_| self.rows.is_empty() && !self.is_full());
        let write = self.commit_at.filter(|_| self.writing.is_none());
        let again = self.window.next_wake().filter(|_| !self.rests());
        [read, write, again].into_iter().flatten().min()
    }

    async fn wait(&mut self, stopping: bool) -> WakeReason {
        let then = self.next_time().filter(|_| !stopping);
        let clock = &self.shared.clock;
        let mut time = then.map(|then| {
            let left = then.saturating_sub(clock.elapsed());
            // What is due now need not wait for a timer.
            match left.as_micros().div_ceil(1_000) as u64 {
                0 => ready(()).boxed(),
                ms => clock.sleep_ms(ms),
            }
        });
        let Self { flights, writing, commits, stop, outbox, .. } = self;
        let mut nudged = pin!(outbox.nudged());
        let mut commit = pin!(commits.changed());
        let mut stopped = pin!(stop.changed());
        poll_fn(|context| {
            if let Some(writing) = writing.as_mut()
                && let Poll::Ready(written) = writing.poll_unpin(context)
            {
                return Poll::Ready(WakeReason::Written(written));
            }
            if let Poll::Ready(Some(landed)) = flights.poll_next_unpin(context) {
                return Poll::Ready(WakeReason::Delivered(Box::new(landed)));
            }
            if stopping {
                return Poll::Pending;
            }
            if let Some(time) = time.as_mut()
                && time.poll_unpin(context).is_ready()
            {
                return Poll::Ready(WakeReason::Look);
            }
            if stopped.as_mut().poll(context).is_ready() || nudged.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(WakeReason::Look);
            }
            commit.as_mut().poll(context).map(|()| WakeReason::Commit)
        })
        .await
    }
}
