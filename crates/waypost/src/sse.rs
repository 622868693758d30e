//! Server-sent events out of a stream of bytes, however it is cut into pieces.

use crate::exit::{Exit, Failure};
use reqwest::Response;
use std::collections::VecDeque;
use std::time::Duration;

/// The server says something every 15 seconds; silence beyond this is a dead connection.
const SILENCE_LIMIT: Duration = Duration::from_secs(45);

/// The events of an answer.
#[derive(Debug)]
pub(crate) struct SseStream {
    response: Response,
    reader: SseReader,
    waiting: VecDeque<SseEvent>,
}

impl SseStream {
    /// Nothing was read yet.
    pub(crate) fn new(response: Response) -> Self {
        Self { response, reader: SseReader::default(), waiting: VecDeque::new() }
    }

    /// The next event, or why the stream was cut. It may be asked for anew at any time: nothing is
    /// lost.
    pub(crate) async fn next(&mut self) -> Result<Result<SseEvent, String>, Failure> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Ok(Ok(event));
            }
            let chunk = match tokio::time::timeout(SILENCE_LIMIT, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Ok(Err("the server closed it".to_owned())),
                Ok(Err(error)) => return Ok(Err(error.to_string())),
                Err(_) => return Ok(Err(format!("{} s of silence", SILENCE_LIMIT.as_secs()))),
            };
            let Some(events) = self.reader.read(&chunk) else {
                return Err(Failure::new(Exit::Upstream, "event", "an event is too large"));
            };
            self.waiting.extend(events);
        }
    }
}

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Where to go on after a cut, if this event says so.
    pub(crate) id: Option<String>,
    /// Its type; `message` where the stream names none.
    pub(crate) name: String,
    /// Its data.
    pub(crate) data: String,
}

/// A line or an event beyond this is not one of ours.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Reads events; keeps what is not whole yet.
#[derive(Debug, Default)]
pub(crate) struct SseReader {
    rest: Vec<u8>,
    id: Option<String>,
    name: String,
    data: Option<String>,
}

impl SseReader {
    /// Takes more bytes and gives the events that are whole now; none when the stream holds an
    /// event that is too large to be one.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Option<Vec<SseEvent>> {
        self.rest.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut begin = 0;
        while let Some(length) = self.rest[begin..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.rest[begin..begin + length]).into_owned();
            begin += length + 1;
            events.extend(self.line(line.strip_suffix('\r').unwrap_or(&line)));
        }
        self.rest.drain(..begin);
        let held = self.rest.len() + self.data.as_ref().map_or(0, String::len);
        (held <= EVENT_BYTES_MAX).then_some(events)
    }

    fn line(&mut self, line: &str) -> Option<SseEvent> {
        if line.is_empty() {
            return self.end();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // A comment keeps the connection alive; `retry` is our own decision.
            _ => {}
        }
        None
    }

    fn end(&mut self) -> Option<SseEvent> {
        let id = self.id.take();
        let name = std::mem::take(&mut self.name);
        let data = self.data.take()?;
        let name = if name.is_empty() { "message".to_owned() } else { name };
        Some(SseEvent { id, name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": hello\nretry: 1000\n\nid: 7\nevent: snapshot\ndata: {\"a\":1}\n\n\
        :\r\n\r\nid: 8\r\ndata: one\r\ndata:two\r\n\r\nevent: end\ndata\n\nid: 9\ndata: cut";

    fn expected() -> Vec<SseEvent> {
        let event = |id: Option<&str>, name: &str, data: &str| SseEvent {
            id: id.map(str::to_owned),
            name: name.to_owned(),
            data: data.to_owned(),
        };
        vec![
            event(Some("7"), "snapshot", "{\"a\":1}"),
            event(Some("8"), "message", "one\ntwo"),
            event(None, "end", ""),
        ]
    }

    #[test]
    fn events_are_read_however_the_stream_is_cut() {
        for size in 1..STREAM.len() {
            let mut reader = SseReader::default();
            let mut events = Vec::new();
            for piece in STREAM.as_bytes().chunks(size) {
                events.extend(reader.read(piece).unwrap());
            }
            assert_eq!(events, expected(), "in pieces of {size}");
        }
    }
}
