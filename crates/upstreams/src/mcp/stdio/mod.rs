//! A line to a child process: one message a line, on its standard input and output. One child
//! serves all callers. It ends when it is let go of, and when we end; what it floods us with is
//! held up or left out, and when it ends, everyone who still waits for it is notified.

mod ending;
mod lines;
mod oversized;
mod log;
mod outbox;
mod demux;
#[cfg(test)]
mod tests;

use super::line::{Incoming, Line, Outgoing, PeerError, PeerErrorKind, Replies, Result};
use crate::RemoteParts;
use crate::children::{self, Pipes, Process, Program, SpawnError};
use demux::{Demux, LineReport, RequestWatch};
use ending::Ending;
use futures::future::{BoxFuture, pending, select};
use kernel::tool::call::CallProgress;
use lines::{Budget, Read};
use log::{LastWords, Log};
use outbound::redaction::Redactor;
use outbox::{Outbox, OutboxPermit, Pending, QueuedMessage, Ticket};
use oversized::Outline;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufRead, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot, watch};
use wire::jsonrpc::{self, Id, RpcError};

/// How much is read of a child at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// How much that no one waits for is read in a tenth of a second, before the child has to wait: a
/// message costs one, and each KiB of it one more.
const UNASKED_MAX: u64 = 1_000;
const UNASKED_SPAN_MS: u64 = 100;
const KIB: usize = 1024;
/// How much longer than allowed a message may be and still cost only the one who waits for it: as
/// many times. A process that writes more without an end of line is stopped.
const PASSED_OVER_MAX: usize = 32;
/// How many lines that are no messages may come before the next message.
const GARBAGE_MAX: u32 = 1_000;
/// How long a notification or response may wait for room.
const SEND_WAIT_MS: u64 = 10_000;
/// How long the last words of a child that ended may take to be read.
const DRAIN_MS: u64 = 1_000;
/// How long a child that closed a pipe may take to end: its exit code says more than that.
const SETTLE_MS: u64 = 300;
/// How much longer than its grace a child may take to end before no one waits for it any more.
const CLOSE_MORE_MS: u64 = 2_000;

const INITIALIZE: &str = "initialize";

/// A line to a child process.
pub(crate) struct ChildLine {
    shared: Arc<Shared>,
    server_messages: Mutex<Option<mpsc::Receiver<Incoming>>>,
}

struct Shared {
    name: Arc<str>,
    /// The credentials that the process was given, which it shall not be heard to say.
    hidden: Arc<Redactor>,
    parts: RemoteParts,
    demux: Demux,
    outbox: Outbox,
    /// Last lines of its standard error.
    last: Arc<LastWords>,
    /// Raised when the child shall end.
    stop: watch::Sender<bool>,
    /// Raised when it has ended and was reaped.
    ended: watch::Sender<bool>,
}

impl ChildLine {
    /// Starts the program. Must be called on a tokio runtime.
    pub(crate) fn start(
        name: &str,
        program: &Program<'_>,
        parts: &RemoteParts,
    ) -> Result<Arc<dyn Line>> {
        let started = children::start(program, parts.supervisor.as_deref());
        let (process, pipes) = started.map_err(not_started)?;
        let Pipes { stdin, stdout, stderr } = pipes;
        let bytes_max = parts.limits.call_output_bytes_max;
        let hidden = Arc::new(Redactor::of_child(program.env, program.args));
        let (demux, server_messages) = Demux::new(parts.clock.clone(), hidden.clone(), bytes_max);
        let (outbox, queue) = Outbox::new();
        let shared = Arc::new(Shared {
            name: name.into(),
            hidden,
            parts: parts.clone(),
            demux,
            outbox,
            last: Arc::default(),
            stop: watch::Sender::new(false),
            ended: watch::Sender::new(false),
        });
        let (mute, silence) = oneshot::channel();
        let (read, noted) = oneshot::channel();
        let spawn = &parts.spawn;
        spawn.task("upstream input", Box::pin(speak(shared.clone(), stdin, queue)));
        spawn.task("upstream output", Box::pin(listen(shared.clone(), stdout, mute)));
        spawn.task("upstream log", Box::pin(note(shared.clone(), stderr, read)));
        let keeping = keep(shared.clone(), process, silence, noted);
        spawn.task("upstream process", Box::pin(keeping));
        Ok(Arc::new(Self { shared, server_messages: Mutex::new(Some(server_messages)) }))
    }
}

impl Line for ChildLine {
    fn request(&self, request: Outgoing) -> BoxFuture<'_, Result<Replies>> {
        Box::pin(self.shared.request(request))
    }

    fn send(&self, message: String) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.shared.demux.replied(&message);
            let permit = self.shared.reserve(message.len(), SEND_WAIT_MS).await?;
            permit.put(message, None);
            Ok(())
        })
    }

    fn server_messages(&self) -> Option<mpsc::Receiver<Incoming>> {
        self.server_messages.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn agreed(&self, _version: &str) {
        // A pipe carries every version the same way.
    }

    fn is_process(&self) -> bool {
        true
    }

    fn last_words(&self) -> Option<String> {
        self.shared.last.told()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.shared.end(Ending::closed());
            let limits = &self.shared.parts.limits;
            let wait_ms = limits.upstream_stop_ms.saturating_add(CLOSE_MORE_MS);
            let ended = raised(self.shared.ended.subscribe());
            if self.shared.parts.within(wait_ms, ended).await.is_none() {
                tracing::warn!(upstream = %self.shared.name, "its process does not end");
            }
        })
    }
}

impl Drop for ChildLine {
    fn drop(&mut self) {
        self.shared.end(Ending::closed());
    }
}

impl Shared {
    async fn request(self: &Arc<Self>, request: Outgoing) -> Result<Replies> {
        let message = request.message();
        let permit = self.reserve(message.len(), request.timeout_ms).await?;
        // From here on nothing waits, so that a request is open and on its way, or neither.
        let ticket = Arc::new(Ticket::default());
        let (replies, watched) = self.demux.open(&request, ticket.clone())?;
        permit.put(message, Some(Pending { key: watched.key.clone(), ticket }));
        self.parts.spawn.task("upstream request", Box::pin(attend(self.clone(), watched)));
        Ok(replies.into())
    }

    /// Room for a message, which no one waits for longer than this.
    async fn reserve(&self, bytes: usize, wait_ms: u64) -> Result<OutboxPermit> {
        if let Some(over) = self.demux.over() {
            return Err(over.error(CallProgress::NotSent));
        }
        match self.parts.within(wait_ms, self.outbox.reserve(bytes)).await {
            Some(Some(permit)) => Ok(permit),
            Some(None) => {
                let over = self.demux.over().unwrap_or_else(Ending::closed);
                Err(over.error(CallProgress::NotSent))
            }
            None => {
                let message = format!("its process has not read its input for {wait_ms} ms");
                Err(PeerError::new(CallProgress::NotSent, PeerErrorKind::Timeout, message))
            }
        }
    }

    /// Ends the line: waiters are notified, and the process is ended.
    fn end(&self, ending: Ending) {
        if self.demux.end(&ending) {
            let why = ending.error(CallProgress::Unknown);
            tracing::debug!(upstream = %self.name, "the line is over: {why}");
        }
        self.stop.send_replace(true);
    }

    /// Tells the other side that no one waits for a request any more.
    async fn cancel(&self, key: &str, method: &str, reason: &str) {
        // The one request that must not be cancelled.
        if method == INITIALIZE {
            return;
        }
        let message = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":\
             {{\"requestId\":{key},\"reason\":\"{reason}\"}}}}"
        );
        // If there is no room even now, the other side has more to worry about.
        if let Ok(permit) = self.reserve(message.len(), SEND_WAIT_MS).await {
            permit.put(message, None);
        }
    }
}

/// A program that is not there is a server that is not.
fn not_started(why: SpawnError) -> PeerError {
    let SpawnError { message, hint } = why;
    let error = PeerError::new(CallProgress::NotSent, PeerErrorKind::Unreachable, message);
    PeerError { hint: hint.map(str::to_owned), ..error }
}

/// Done when the flag is raised, or no one can raise it any more.
async fn raised(mut flag: watch::Receiver<bool>) {
    let _ = flag.wait_for(|raised| *raised).await;
}

/// Watches an open request until it is over, too late, or no one waits for it any more.
async fn attend(shared: Arc<Shared>, watched: RequestWatch) {
    let RequestWatch { key, replies, mut due } = watched;
    let left = loop {
        let then = *due.borrow_and_update();
        let late: BoxFuture<'static, ()> = match then {
            Some(then) => shared.parts.clock.sleep_until(then),
            None => Box::pin(pending()),
        };
        tokio::select! {
            biased;
            () = replies.closed() => break true,
            () = late => break false,
            renewed = due.changed() => match renewed {
                Ok(()) => {}
                // It was answered.
                Err(_) => return,
            },
        }
    };
    let Some(open) = shared.demux.close(&key) else { return };
    let how = open.how_far();
    let method = open.method.clone();
    if !left {
        let message = format!("no answer to `{method}` in time");
        open.answer(Incoming::Broken(PeerError::new(how, PeerErrorKind::Timeout, message)));
    }
    if how != CallProgress::NotSent {
        let reason = if left { "no one waits for it" } else { "it took too long" };
        shared.cancel(&key, &method, reason).await;
    }
}

/// Writes to the child until it shall end. Its standard input is closed when this is over.
async fn speak(
    shared: Arc<Shared>,
    mut stdin: ChildStdin,
    mut queue: mpsc::Receiver<QueuedMessage>,
) {
    let unsent = tokio::select! {
        biased;
        unsent = outbox::write(&mut stdin, &mut queue) => unsent,
        () = raised(shared.stop.subscribe()) => return,
    };
    if let Some(open) = unsent.and_then(|key| shared.demux.close(&key)) {
        open.answer(Incoming::Broken(Ending::deaf().error(CallProgress::NotSent)));
    }
    // Most likely it ended, and how it did is known in a moment.
    shared.parts.within(SETTLE_MS, raised(shared.stop.subscribe())).await;
    shared.end(Ending::deaf());
}

/// Reads what the child says until it says no more; `mute` is dropped then.
async fn listen(shared: Arc<Shared>, stdout: ChildStdout, mute: oneshot::Sender<()>) {
    let reading = pin!(read(&shared, stdout));
    // A stranger may hold the pipe when the child is gone.
    let ended = pin!(raised(shared.ended.subscribe()));
    select(reading, ended).await;
    drop(mute);
}

async fn read(shared: &Shared, stdout: ChildStdout) {
    let clock = &shared.parts.clock;
    let mut input = BufReader::with_capacity(BUFFER_BYTES, stdout);
    let mut budget = Budget::new(clock.clone(), UNASKED_MAX, UNASKED_SPAN_MS);
    let mut log = Log::new(&shared.name, "stdout", shared.hidden.clone(), clock.clone());
    let line_bytes_max = shared.demux.line_bytes_max();
    let mut garbage = 0;
    loop {
        let (heard, bytes) = match lines::next(&mut input, line_bytes_max).await {
            Ok(Read::Whole(line)) => {
                let heard = shared.demux.take(&line);
                if heard.garbage {
                    log.line(&line);
                }
                (heard, line.len())
            }
            Ok(Read::TooLong(head)) => match pass_over(shared, &mut input, &head).await {
                Some(heard) => (heard, head.len()),
                None => return shared.end(Ending::too_long(line_bytes_max)),
            },
            Ok(Read::End) | Err(_) => return,
        };
        let LineReport { unasked, answers, garbage: is_garbage, refused } = heard;
        for id in refused {
            shared.outbox.try_say(busy(&id));
        }
        if is_garbage {
            garbage += 1;
        } else if unasked + answers > 0 {
            garbage = 0;
        }
        if garbage >= GARBAGE_MAX {
            return shared.end(Ending::garbage(garbage));
        }
        if answers == 0 {
            let kib = u64::try_from(bytes / KIB).unwrap_or(u64::MAX);
            budget.spend_in_time(u64::from(unasked.max(1)).saturating_add(kib)).await;
        }
    }
}

/// Reads over a message that is too long: only the caller that waits for it loses something. None
/// where it does not end.
async fn pass_over(
    shared: &Shared,
    input: &mut (impl AsyncBufRead + Unpin),
    head: &[u8],
) -> Option<LineReport> {
    let mut outline = Outline::default();
    outline.read(head);
    let bytes_max = shared.demux.line_bytes_max().saturating_mul(PASSED_OVER_MAX);
    let ended = lines::rest(input, bytes_max, |bytes| outline.read(bytes)).await;
    ended.ok().filter(|ended| *ended)?;
    let heard = shared.demux.take_too_long(&outline);
    if heard.answers == 0 {
        tracing::warn!(upstream = %shared.name, "a message is left out: it is too long");
    }
    Some(heard)
}

/// The answer to a request that nobody here can take.
fn busy(id: &Id) -> String {
    let error = RpcError::new(jsonrpc::INTERNAL_ERROR, "too many requests wait here; ask later");
    jsonrpc::error(Some(id), &error)
}

/// Logs what the child says of itself; `read` is dropped when that is all.
async fn note(shared: Arc<Shared>, stderr: ChildStderr, read: oneshot::Sender<()>) {
    let clock = &shared.parts.clock;
    let log = Log::new(&shared.name, "stderr", shared.hidden.clone(), clock.clone());
    let log = log.keeping(shared.last.clone());
    let copying = pin!(log::copy(stderr, log, clock.clone()));
    let ended = pin!(raised(shared.ended.subscribe()));
    select(copying, ended).await;
    drop(read);
}

/// Watches over the process: tells everyone when it ends, ends it when it shall, and reaps it.
async fn keep(
    shared: Arc<Shared>,
    mut process: Process,
    mut silence: oneshot::Receiver<()>,
    mut noted: oneshot::Receiver<()>,
) {
    let clock = &*shared.parts.clock;
    let stop_ms = shared.parts.limits.upstream_stop_ms;
    tokio::select! {
        biased;
        how = process.ended() => {
            // What it started may hold its pipes, and what it said last is still to be read.
            process.kill();
            shared.parts.within(DRAIN_MS, &mut silence).await;
            shared.parts.within(DRAIN_MS, &mut noted).await;
            shared.end(Ending::exited(&how));
        }
        () = raised(shared.stop.subscribe()) => process.stop(clock, stop_ms).await,
        _ = &mut silence => {
            let how = shared.parts.within(SETTLE_MS, process.ended()).await;
            if how.is_some() {
                process.kill();
                shared.parts.within(DRAIN_MS, &mut noted).await;
            }
            shared.end(how.map_or_else(Ending::mute, |how| Ending::exited(&how)));
            process.stop(clock, stop_ms).await;
        }
    }
    process.finish().await;
    shared.ended.send_replace(true);
}
