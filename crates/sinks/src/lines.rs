//! Writes events as JSON lines on a thread of its own, so that an unread pipe or a slow disk blocks
//! nothing else.

use futures::future::BoxFuture;
use kernel::contracts::Spawn;
use kernel::contracts::cloud::CloudEvent;
use kernel::contracts::sink::{DeliveryReceipt, EventSink, SinkError};
use std::io;
use tokio::sync::{mpsc, oneshot};

/// How many events are written at once.
const BATCH_MAX: usize = 256;
/// One is written; one more may wait, when the one who wanted the first has given up.
const JOBS_MAX: usize = 2;

/// Where lines are written.
pub(crate) trait Lines: Send + 'static {
    /// Writes these lines, each with its end, in one go; they are there when it returns.
    fn write(&mut self, lines: &[u8]) -> io::Result<()>;
}

/// Writes events as lines, all of them in the order of the feed.
pub(crate) struct LineSink {
    kind: &'static str,
    /// Its name in messages.
    place: String,
    jobs: mpsc::Sender<Job>,
}

struct Job {
    lines: Vec<u8>,
    answer: oneshot::Sender<io::Result<()>>,
}

impl LineSink {
    /// Starts the thread that writes there; it ends with the sink.
    pub(crate) fn start(
        kind: &'static str,
        place: &str,
        mut lines: impl Lines,
        spawn: &dyn Spawn,
    ) -> Self {
        let (jobs, mut waiting) = mpsc::channel::<Job>(JOBS_MAX);
        let serve = async move {
            while let Some(job) = waiting.recv().await {
                // A sender that gave up comes again with the same events.
                if !job.answer.is_closed() {
                    let _ = job.answer.send(lines.write(&job.lines));
                }
            }
        };
        spawn.critical_thread("sink-lines", Box::pin(serve));
        Self { kind, place: place.to_owned(), jobs }
    }

    async fn write(&self, events: &[CloudEvent]) -> io::Result<()> {
        let mut lines = Vec::new();
        for event in events {
            // JSON has no line ends inside: they are written as `\n`.
            lines.extend_from_slice(event.to_json().as_bytes());
            lines.push(b'\n');
        }
        let ended = || io::Error::other("its thread ended");
        let (answer, written) = oneshot::channel();
        self.jobs.send(Job { lines, answer }).await.map_err(|_| ended())?;
        written.await.unwrap_or_else(|_| Err(ended()))
    }
}

impl EventSink for LineSink {
    fn kind(&self) -> &str {
        self.kind
    }

    fn deliver<'a>(
        &'a self,
        events: &'a [CloudEvent],
    ) -> BoxFuture<'a, Result<DeliveryReceipt, SinkError>> {
        Box::pin(async move {
            let written = self.write(events).await;
            let told = |error: io::Error| {
                SinkError::new(format!("{} cannot be written: {error}", self.place))
            };
            written.map(|()| DeliveryReceipt::default()).map_err(told)
        })
    }

    fn batch_max(&self) -> usize {
        BATCH_MAX
    }

    fn is_logged(&self) -> bool {
        // The lines themselves say what was written.
        false
    }
}
