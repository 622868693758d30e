//! Exports spans to one endpoint, in batches, from a task of its own. Offering a span never waits:
//! when the queue is full the newest span is dropped and counted. An unreachable endpoint costs
//! spans and nothing else.

use crate::config::Batch;
use crate::otlp::{Request, Resource, ResourceSpans, Scope, ScopeSpans, Span};
use crate::wire::Wire;
use futures::future::{BoxFuture, Either, poll_fn, select};
use kernel::contracts::Clock;
use kernel::values::ids::Millis;
use prost::Message;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use tokio::sync::{mpsc, oneshot};

/// The first wait before spans are sent again; it doubles with every failure.
const WAIT_MS: u64 = 1_000;
/// The longest of these waits.
const WAIT_MS_MAX: u64 = 10_000;
/// How long to be quiet about lost spans once they were reported.
const QUIET_MS: u64 = 300_000;

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) exported: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) failed: AtomicU64,
}

pub(crate) struct SpanSender {
    pub(crate) name: &'static str,
    pub(crate) wire: Box<dyn Wire>,
    pub(crate) resource: Resource,
    pub(crate) scope: Scope,
    pub(crate) batch: Batch,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Where spans are offered.
pub(crate) struct Exporter {
    pub(crate) name: &'static str,
    pub(crate) counts: Arc<Counts>,
    spans: mpsc::Sender<Arc<Span>>,
    /// Ends the task; it answers when the last spans are sent.
    stop: Mutex<Option<oneshot::Sender<oneshot::Sender<()>>>>,
    clock: Arc<dyn Clock>,
}

impl Exporter {
    /// An exporter, and the task that sends what it is offered.
    pub(crate) fn new(sending: SpanSender) -> (Self, BoxFuture<'static, ()>) {
        let (spans, offered) = mpsc::channel(sending.batch.queue_max);
        let (stop, stopped) = oneshot::channel();
        let counts = Arc::new(Counts::default());
        let exporter = Self {
            name: sending.name,
            counts: counts.clone(),
            spans,
            stop: Mutex::new(Some(stop)),
            clock: sending.clock.clone(),
        };
        let task = Task { sending, counts, told: LossReport::default() };
        (exporter, Box::pin(task.run(offered, stopped)))
    }

    /// Takes a span, if there is room.
    pub(crate) fn offer(&self, span: Arc<Span>) {
        if self.spans.try_send(span).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends what waits, at most so long, and ends.
    pub(crate) async fn stop(&self, limit_ms: u64) {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (reply, done) = oneshot::channel();
        let Some(Ok(())) = stop.map(|stop| stop.send(reply)) else { return };
        let end = self.clock.now().plus_ms(limit_ms);
        if within(self.clock.as_ref(), end, done).await.is_none() {
            tracing::warn!(exporter = self.name, limit_ms, "the last spans could not be exported");
        }
    }
}

enum Woken {
    Span(Arc<Span>),
    /// The first span waited long enough.
    Due,
    /// It has to end, and to say so; or no one is left to tell.
    Stop(Option<oneshot::Sender<()>>),
}

struct Task {
    sending: SpanSender,
    counts: Arc<Counts>,
    told: LossReport,
}

#[derive(Debug, Default)]
struct LossReport {
    /// How many.
    lost: u64,
    at: Option<Millis>,
    /// Why the last unreported ones were lost.
    why: Option<String>,
}

impl LossReport {
    /// How many were lost since the last report, if it is time for another.
    fn due(&mut self, lost: u64, now: Millis) -> Option<u64> {
        let more = lost.saturating_sub(self.lost);
        let quiet = self.at.is_some_and(|at| now < at.plus_ms(QUIET_MS));
        if more == 0 || quiet {
            return None;
        }
        self.lost = lost;
        self.at = Some(now);
        Some(more)
    }
}

impl Task {
    async fn run(
        mut self,
        mut offered: mpsc::Receiver<Arc<Span>>,
        mut stopped: oneshot::Receiver<oneshot::Sender<()>>,
    ) {
        let Batch { delay_ms, spans_max, .. } = self.sending.batch;
        let (mut held, mut due): (Vec<Arc<Span>>, Option<BoxFuture<'static, ()>>) =
            Default::default();
        loop {
            match woken(&mut offered, due.as_mut(), &mut stopped).await {
                Woken::Span(span) => {
                    held.push(span);
                    if held.len() < spans_max {
                        let clock = &self.sending.clock;
                        let then = || clock.sleep_until(clock.now().plus_ms(delay_ms));
                        due.get_or_insert_with(then);
                        continue;
                    }
                }
                Woken::Due => {}
                Woken::Stop(reply) => {
                    held.extend(std::iter::from_fn(|| offered.try_recv().ok()));
                    for spans in held.chunks(spans_max) {
                        self.export(spans).await;
                    }
                    if let Some(reply) = reply {
                        // The one who asked may be gone.
                        let _ = reply.send(());
                    }
                    return;
                }
            }
            due = None;
            self.export(&std::mem::take(&mut held)).await;
        }
    }

    /// Sends these spans, again and again within their time.
    async fn export(&mut self, spans: &[Arc<Span>]) {
        if spans.is_empty() {
            return;
        }
        let body = self.written(spans);
        let count = spans.len() as u64;
        match self.sent(body).await {
            Ok(0) => {
                self.counts.exported.fetch_add(count, Ordering::Relaxed);
                self.tell(None);
            }
            Ok(rejected) => {
                let rejected = rejected.min(count);
                self.counts.exported.fetch_add(count - rejected, Ordering::Relaxed);
                self.counts.failed.fetch_add(rejected, Ordering::Relaxed);
                self.tell(Some("it did not take all that it was sent".to_owned()));
            }
            Err(why) => {
                self.counts.failed.fetch_add(count, Ordering::Relaxed);
                self.tell(Some(why));
            }
        }
    }

    /// Tells of spans that were lost or found no room, once in a while.
    fn tell(&mut self, why: Option<String>) {
        if why.is_some() {
            self.told.why = why;
        }
        let lost = [&self.counts.dropped, &self.counts.failed];
        let lost = lost.map(|count| count.load(Ordering::Relaxed)).iter().sum();
        if let Some(count) = self.told.due(lost, self.sending.clock.now()) {
            let why = self.told.why.take();
            let why = why.as_deref().unwrap_or("they come faster than they can be sent");
            tracing::warn!(exporter = self.sending.name, count, why, "spans are lost");
        }
    }

    async fn sent(&self, body: Vec<u8>) -> Result<u64, String> {
        let clock = self.sending.clock.as_ref();
        let end = clock.now().plus_ms(self.sending.batch.export_ms);
        let mut wait_ms = WAIT_MS;
        loop {
            let posted = within(clock, end, self.sending.wire.post(body.clone())).await;
            let failed = match posted {
                Some(Ok(rejected)) => return Ok(rejected),
                Some(Err(failed)) => failed,
                None => return Err("it takes too long".to_owned()),
            };
            let next = clock.now().plus_ms(failed.wait_ms.unwrap_or(wait_ms));
            if !failed.again || next >= end {
                return Err(failed.why);
            }
            clock.sleep_until(next).await;
            wait_ms = (wait_ms * 2).min(WAIT_MS_MAX);
        }
    }

    fn written(&self, spans: &[Arc<Span>]) -> Vec<u8> {
        let SpanSender { resource, scope, .. } = &self.sending;
        let spans = spans.iter().map(|span| Span::clone(span)).collect();
        let scope_spans = vec![ScopeSpans { scope: Some(scope.clone()), spans }];
        let resource = Some(resource.clone());
        Request { resource_spans: vec![ResourceSpans { resource, scope_spans }] }.encode_to_vec()
    }
}

async fn woken(
    offered: &mut mpsc::Receiver<Arc<Span>>,
    mut due: Option<&mut BoxFuture<'static, ()>>,
    stopped: &mut oneshot::Receiver<oneshot::Sender<()>>,
) -> Woken {
    poll_fn(|context| {
        if let Poll::Ready(stop) = Pin::new(&mut *stopped).poll(context) {
            return Poll::Ready(Woken::Stop(stop.ok()));
        }
        if let Poll::Ready(span) = offered.poll_recv(context) {
            return Poll::Ready(span.map_or(Woken::Stop(None), Woken::Span));
        }
        if let Some(due) = &mut due
            && Pin::new(&mut **due).poll(context).is_ready()
        {
            return Poll::Ready(Woken::Due);
        }
        Poll::Pending
    })
    .await
}

/// The future's result, or `None` once this moment has come.
async fn within<T>(clock: &dyn Clock, end: Millis, future: impl Future<Output = T>) -> Option<T> {
    match select(pin!(future), clock.sleep_until(end)).await {
        Either::Left((result, _)) => Some(result),
        Either::Right(((), _)) => None,
    }
}

#[cfg(test)]
mod tests;
