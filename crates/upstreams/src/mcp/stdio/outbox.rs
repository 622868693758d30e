//! Bounded queue of messages to a child. A sender waits for room if the child does not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// How many messages wait.
const MESSAGES_MAX: usize = 256;
/// How large they are together; a larger one waits alone.
const KIB_MAX: usize = 16 * 1024;
const KIB: usize = 1024;

/// Whether a request is still ours to take back: it is sent or taken back, whichever comes first.
#[derive(Debug, Default)]
pub(super) struct Ticket(AtomicBool);

impl Ticket {
    /// Sends the request or takes it back; false if the other was done before. Once it is sent no
    /// one can tell whether it arrived.
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// A request that is waiting to be written.
pub(super) struct Pending {
    /// Its id.
    pub(super) key: String,
    /// Whether it may still be taken back.
    pub(super) ticket: Arc<Ticket>,
}

/// A message that waits.
pub(super) struct QueuedMessage {
    message: String,
    /// None for notifications and responses.
    request: Option<Pending>,
    _room: OwnedSemaphorePermit,
}

/// Where messages wait.
pub(super) struct Outbox {
    queue: mpsc::Sender<QueuedMessage>,
    room: Arc<Semaphore>,
}

impl Outbox {
    /// An empty one, and whence it is written.
    pub(super) fn new() -> (Self, mpsc::Receiver<QueuedMessage>) {
        let (queue, messages) = mpsc::channel(MESSAGES_MAX);
        (Self { queue, room: Arc::new(Semaphore::new(KIB_MAX)) }, messages)
    }

    /// A place for a message of this size, once there is room; none where nothing is written any
    /// more.
    pub(super) async fn reserve(&self, bytes: usize) -> Option<OutboxPermit> {
        let kib = (bytes / KIB + 1).min(KIB_MAX);
        let room = self.room.clone().acquire_many_owned(u32::try_from(kib).ok()?).await.ok()?;
        let permit = self.queue.clone().reserve_owned().await.ok()?;
        Some(OutboxPermit { permit, room })
    }

    /// Leaves a message that no one misses if there is no room for it.
    pub(super) fn try_say(&self, message: String) {
        let Ok(room) = self.room.clone().try_acquire_owned() else { return };
        let _ = self.queue.try_send(QueuedMessage { message, request: None, _room: room });
    }
}

/// Room for one message.
pub(super) struct OutboxPermit {
    permit: mpsc::OwnedPermit<QueuedMessage>,
    room: OwnedSemaphorePermit,
}

impl OutboxPermit {
    /// Leaves a message to be written.
    pub(super) fn put(self, message: String, request: Option<Pending>) {
        self.permit.send(QueuedMessage { message, request, _room: self.room });
    }
}

/// Writes each message as a line, until that fails; then gives the id of the request, if there is
/// one, of which not a byte was written.
pub(super) async fn write(
    output: &mut (impl AsyncWrite + Unpin),
    queue: &mut mpsc::Receiver<QueuedMessage>,
) -> Option<String> {
    while let Some(QueuedMessage { message, request, _room }) = queue.recv().await {
        if request.as_ref().is_some_and(|request| !request.ticket.take()) {
            continue;
        }
        if let Err(written) = write_line(output, message).await {
            return request.map(|request| request.key).filter(|_| written == 0);
        }
    }
    None
}

/// Writes a message; if that fails, how many bytes of it were written.
async fn write_line(output: &mut (impl AsyncWrite + Unpin), message: String) -> Result<(), usize> {
    let mut bytes = message.into_bytes();
    for byte in &mut bytes {
        // A line break can stand between the tokens of a message, and would end it.
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    bytes.push(b'\n');
    let mut written = 0;
    while written < bytes.len() {
        match output.write(&bytes[written..]).await {
            Ok(0) | Err(_) => return Err(written),
            Ok(more) => written += more,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;
    use futures::future::FutureExt;
    use std::io::Cursor;

    fn pending(key: &str) -> (Pending, Arc<Ticket>) {
        let ticket = Arc::new(Ticket::default());
        (Pending { key: key.to_owned(), ticket: ticket.clone() }, ticket)
    }

    #[test]
    fn a_message_is_one_line_and_a_cancelled_one_is_not_written() {
        let (outbox, mut queue) = Outbox::new();
        let put = |message: &str, request| {
            let permit = block_on(outbox.reserve(message.len())).unwrap();
            permit.put(message.to_owned(), request);
        };
        put("{\n}", None);
        let (request, ticket) = pending("1");
        put("taken back", Some(request));
        assert!(ticket.take());
        let (request, ticket) = pending("2");
        put("[]", Some(request));
        outbox.try_say("last".to_owned());
        drop(outbox);
        let mut output = Vec::new();
        assert_eq!(block_on(write(&mut output, &mut queue)), None);
        assert_eq!(output, b"{ }\n[]\nlast\n");
        assert!(!ticket.take(), "it was sent");
    }

    #[test]
    fn a_full_outbox_applies_backpressure() {
        let (outbox, mut queue) = Outbox::new();
        let whole = KIB_MAX * KIB;
        outbox.reserve(2 * whole).now_or_never().unwrap().unwrap().put("large".to_owned(), None);
        assert!(outbox.reserve(1).now_or_never().is_none(), "there is no room");
        outbox.try_say("nobody misses it".to_owned());
        drop(queue.try_recv().unwrap());
        assert!(queue.try_recv().is_err());
        assert!(outbox.reserve(1).now_or_never().unwrap().is_some(), "there is room again");
        drop(queue);
        assert!(block_on(outbox.reserve(1)).is_none(), "nobody writes any more");
    }

    #[test]
    fn unwritten_messages_are_reported() {
        let (outbox, mut queue) = Outbox::new();
        let (request, _) = pending("7");
        block_on(outbox.reserve(10)).unwrap().put("0123456789".to_owned(), Some(request));
        let mut nothing = Cursor::new(&mut [][..]);
        assert_eq!(block_on(write(&mut nothing, &mut queue)), Some("7".to_owned()));
        let (request, _) = pending("8");
        block_on(outbox.reserve(10)).unwrap().put("0123456789".to_owned(), Some(request));
        let mut space = [0; 4];
        let mut some = Cursor::new(&mut space[..]);
        assert_eq!(block_on(write(&mut some, &mut queue)), None);
    }
}
