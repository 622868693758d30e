//! A stream that can be taken up again: what was sent is kept for a while under numbers, so that a
//! client that lost its connection gets what it missed, and nothing twice. Who comes back takes
//! the stream over; a reader that is still there is dropped.

use crate::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// The stream of what belongs to no request.
pub(crate) const STANDALONE: u64 = 0;
/// How many events of one stream are kept for a client that comes back.
const EVENTS_MAX: usize = 256;
/// The size of these events together; the newest is kept, however large it is.
const BYTES_MAX: usize = 1024 * 1024;

/// One stream with what is kept of it.
pub(crate) struct Replay {
    number: u64,
    events_max: usize,
    bytes_max: usize,
    log: Mutex<Log>,
    woken: watch::Sender<()>,
}

#[derive(Default)]
struct Log {
    /// What is kept, oldest first; the last one has the number `newest`.
    events: VecDeque<Arc<str>>,
    bytes: usize,
    /// The number of the newest event, from 1.
    newest: u64,
    /// The last number that was read.
    read: u64,
    /// Who reads; a later one takes over.
    turn: u64,
    ended: bool,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its position: the stream and the number in it.
    pub(crate) position: EventPosition,
    pub(crate) message: Arc<str>,
}

/// Where an event stands; its text is the event's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventPosition {
    pub(crate) stream: u64,
    /// The number in it; 0 is before the first.
    pub(crate) number: u64,
}

impl EventPosition {
    /// The position of this id, if it is one of ours.
    pub(crate) fn read(id: &str) -> Option<Self> {
        let (stream, number) = id.split_once('-')?;
        Some(Self { stream: stream.parse().ok()?, number: number.parse().ok()? })
    }
}

impl std::fmt::Display for EventPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.stream, self.number)
    }
}

impl Replay {
    /// An empty stream of this number.
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            events_max: EVENTS_MAX,
            bytes_max: BYTES_MAX,
            log: Mutex::default(),
            woken: watch::Sender::new(()),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Sends a message. No one waits for a slow client: the oldest events go first.
    pub(crate) fn push(&self, message: String) {
        let mut log = self.lock();
        if log.ended {
            return;
        }
        log.bytes += message.len();
        log.newest += 1;
        log.events.push_back(message.into());
        while log.events.len() > 1
            && (log.events.len() > self.events_max || log.bytes > self.bytes_max)
        {
            let oldest = log.events.pop_front();
            log.bytes -= oldest.map_or(0, |oldest| oldest.len());
        }
        drop(log);
        self.woken.send_replace(());
    }

    /// Sends a message unless the same one waits to be read: a list that changed twice has changed.
    pub(crate) fn push_once(&self, message: String) {
        let log = self.lock();
        let unread = usize::try_from(log.newest - log.read).unwrap_or(usize::MAX);
        let waits = log.events.iter().rev().take(unread).any(|event| **event == *message);
        drop(log);
        if !waits {
            self.push(message);
        }
    }

    /// Nothing more comes; what is kept can still be read.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.woken.send_replace(());
    }

    /// Whether nothing more comes.
    pub(crate) fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// Whether someone reads it.
    pub(crate) fn is_read(&self) -> bool {
        self.woken.receiver_count() > 0
    }

    /// Reads on after this number, or after what was read last.
    pub(crate) fn reader(self: &Arc<Self>, after: Option<u64>) -> Reader {
        let woken = self.woken.subscribe();
        let mut log = self.lock();
        log.turn += 1;
        let reader =
            Reader { turn: log.turn, at: after.unwrap_or(log.read), woken, replay: self.clone() };
        drop(log);
        // The reader before must notice.
        self.woken.send_replace(());
        reader
    }

    fn take(&self, turn: u64, after: u64) -> LogRead {
        let mut log = self.lock();
        if log.turn != turn {
            return LogRead::Over;
        }
        let kept = log.events.len() as u64;
        let oldest = log.newest - kept + 1;
        let number = oldest.max(after.saturating_add(1));
        let index = usize::try_from(number - oldest).unwrap_or(usize::MAX);
        match log.events.get(index).cloned() {
            Some(message) => {
                log.read = log.read.max(number);
                LogRead::Event(Event {
                    position: EventPosition { stream: self.number, number },
                    message,
                })
            }
            None if log.ended => LogRead::Over,
            None => LogRead::Nothing,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }
}

/// What a look at the log found.
enum LogRead {
    Event(Event),
    Nothing,
    Over,
}

/// Who reads a stream.
pub(crate) struct Reader {
    replay: Arc<Replay>,
    turn: u64,
    at: u64,
    woken: watch::Receiver<()>,
}

impl Reader {
    /// After which event it reads on.
    pub(crate) fn position(&self) -> EventPosition {
        EventPosition { stream: self.replay.number, number: self.at }
    }

    /// The next event; none when the stream is over or someone else took it over.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            self.woken.mark_unchanged();
            match self.replay.take(self.turn, self.at) {
                LogRead::Event(event) => {
                    self.at = event.position.number;
                    return Some(event);
                }
                LogRead::Over => return None,
                LogRead::Nothing => {}
            }
            if self.woken.changed().await.is_err() {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::executor::block_on;

    fn replay() -> Arc<Replay> {
        Arc::new(Replay::new(3))
    }

    fn all(reader: &mut Reader) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(Some(event)) = reader.next().now_or_never() {
            told.push(format!("{} {}", event.position, event.message));
        }
        told
    }

    #[test]
    fn a_reader_that_comes_back_misses_nothing_and_gets_nothing_twice() {
        let replay = replay();
        for message in ["a", "b", "c"] {
            replay.push(message.to_owned());
        }
        let mut first = replay.reader(None);
        assert_eq!(all(&mut first), ["3-1 a", "3-2 b", "3-3 c"]);
        let position = EventPosition::read("3-1").unwrap();
        let mut again = replay.reader(Some(position.number));
        assert_eq!(all(&mut again), ["3-2 b", "3-3 c"]);
        assert_eq!(block_on(first.next()), None, "taken over");
        replay.push("d".to_owned());
        drop(again);
        assert!(replay.is_read(), "the first one is still there");
        drop(first);
        assert!(!replay.is_read());
        let mut fresh = replay.reader(None);
        assert_eq!(all(&mut fresh), ["3-4 d"]);
        replay.end();
        assert_eq!(block_on(fresh.next()), None);
        replay.push("e".to_owned());
        assert_eq!(all(&mut replay.reader(Some(0))).len(), 4, "nothing comes after the end");
    }

    #[test]
    fn the_replay_buffer_is_bounded_and_keeps_the_newest() {
        let replay = Arc::new(Replay { events_max: 2, ..Replay::new(0) });
        for message in ["a", "b", "c"] {
            replay.push(message.to_owned());
        }
        assert_eq!(all(&mut replay.reader(None)), ["0-2 b", "0-3 c"]);
        let replay = Arc::new(Replay { bytes_max: 3, ..Replay::new(0) });
        replay.push("ab".to_owned());
        replay.push("larger than all".to_owned());
        assert_eq!(all(&mut replay.reader(None)), ["0-2 larger than all"]);
    }

    #[test]
    fn a_message_that_waits_already_is_not_sent_twice() {
        let replay = replay();
        replay.push_once("a".to_owned());
        replay.push_once("a".to_owned());
        let mut reader = replay.reader(None);
        assert_eq!(all(&mut reader), ["3-1 a"]);
        replay.push_once("a".to_owned());
        assert_eq!(all(&mut reader), ["3-2 a"]);
    }

    #[test]
    fn an_event_id_names_a_position() {
        assert_eq!(EventPosition::read("12-7"), Some(EventPosition { stream: 12, number: 7 }));
        for id in ["", "7", "a-1", "1-", "-1", "1-2-3", "1--2"] {
            assert_eq!(EventPosition::read(id), None, "{id}");
        }
        // A number that never was is simply after everything.
        let replay = replay();
        replay.push("a".to_owned());
        assert!(all(&mut replay.reader(Some(u64::MAX))).is_empty());
    }
}
