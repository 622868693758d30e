//! An answer that is a stream of server-sent events, message by message as they come, over a socket
//! of its own: for what happens while a request is under way, and for what no one asked for.

use crate::http::{Client, NoAnswer, Request};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const READ_BYTES: usize = 16 * 1024;
const HEAD_END: &[u8] = b"\r\n\r\n";
const LINE_END: &[u8] = b"\r\n";
const EVENT_END: &[u8] = b"\n\n";

/// The messages of one answer.
#[derive(Debug)]
pub struct Events {
    stream: TcpStream,
    /// What came and is not read yet, with the marks of its chunks.
    bytes: Vec<u8>,
    /// The same without them: the events that are not told yet.
    text: Vec<u8>,
    /// Whether the last chunk came.
    is_over: bool,
}

impl Events {
    /// Sends a request and waits so long for the head of its answer, which has to be a stream.
    pub fn open(
        address: SocketAddr,
        request: &Request<'_>,
        limit: Duration,
    ) -> Result<Self, NoAnswer> {
        let connected = TcpStream::connect_timeout(&address, limit);
        let mut stream = connected.map_err(NoAnswer::Unreachable)?;
        stream.set_nodelay(true).map_err(NoAnswer::Broken)?;
        stream.set_write_timeout(Some(limit)).map_err(NoAnswer::Broken)?;
        let sent = Client::new(address).bytes_of(request);
        stream.write_all(&sent).map_err(NoAnswer::Broken)?;
        let mut events = Self { stream, bytes: Vec::new(), text: Vec::new(), is_over: false };
        let waiting = Waiting::new(limit);
        let end = loop {
            if let Some(end) = place(&events.bytes, HEAD_END) {
                break end;
            }
            events.more(&waiting)?;
        };
        let head = String::from_utf8_lossy(&events.bytes[..end]).to_ascii_lowercase();
        let is_stream = head.contains("\r\ncontent-type: text/event-stream")
            && head.contains("\r\ntransfer-encoding: chunked");
        if !head.starts_with("http/1.1 200 ") || !is_stream {
            let told = String::from_utf8_lossy(&events.bytes).into_owned();
            return Err(NoAnswer::Malformed(format!("no stream of events: {told}")));
        }
        events.bytes.drain(..end + HEAD_END.len());
        Ok(events)
    }

    /// The next message, if there is one before the end; what is no message is left out.
    pub fn next(&mut self, limit: Duration) -> Result<Option<Value>, NoAnswer> {
        let waiting = Waiting::new(limit);
        loop {
            while let Some(end) = place(&self.text, EVENT_END) {
                let event: Vec<u8> = self.text.drain(..end + EVENT_END.len()).collect();
                if let Some(message) = message(&String::from_utf8_lossy(&event)) {
                    return Ok(Some(message));
                }
            }
            if self.is_over {
                return Ok(None);
            }
            if !self.chunk()? {
                self.more(&waiting)?;
            }
        }
    }

    /// Takes the next chunk out of what came; whether it was whole.
    fn chunk(&mut self) -> Result<bool, NoAnswer> {
        let Some(end) = place(&self.bytes, LINE_END) else {
            return Ok(false);
        };
        let line = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16)
            .map_err(|_| NoAnswer::Malformed(format!("chunk size `{line}`")))?;
        let begin = end + LINE_END.len();
        let after = begin + size + LINE_END.len();
        if self.bytes.len() < after {
            return Ok(false);
        }
        self.text.extend_from_slice(&self.bytes[begin..begin + size]);
        self.bytes.drain(..after);
        self.is_over = size == 0;
        Ok(true)
    }

    /// Waits for more bytes.
    fn more(&mut self, waiting: &Waiting) -> Result<(), NoAnswer> {
        let mut piece = [0; READ_BYTES];
        loop {
            let left = waiting.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NoAnswer::Late(waiting.limit));
            }
            self.stream.set_read_timeout(Some(left)).map_err(NoAnswer::Broken)?;
            match self.stream.read(&mut piece) {
                Ok(0) => {
                    let closed = std::io::Error::new(ErrorKind::UnexpectedEof, "inside a stream");
                    return Err(NoAnswer::Broken(closed));
                }
                Ok(count) => {
                    self.bytes.extend_from_slice(&piece[..count]);
                    return Ok(());
                }
                Err(error) => match error.kind() {
                    // Our own deadline tells whether the time is up.
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => return Err(NoAnswer::Broken(error)),
                },
            }
        }
    }
}

/// How long something is waited for.
struct Waiting {
    until: Instant,
    limit: Duration,
}

impl Waiting {
    fn new(limit: Duration) -> Self {
        Self { until: Instant::now() + limit, limit }
    }
}

fn place(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

/// The message of an event, if it has one: comments and the first event of a stream have none.
fn message(event: &str) -> Option<Value> {
    let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
    serde_json::from_str(&data.collect::<Vec<_>>().join("\n")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::net::TcpListener;
    use std::thread;

    const LIMIT: Duration = Duration::from_secs(60);
    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                        Transfer-Encoding: chunked\r\n\r\n";

    /// What a client makes of these pieces.
    fn opened(pieces: &'static [&'static str]) -> Result<Events, NoAnswer> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            // The request is small and comes in one piece.
            assert!(stream.read(&mut [0; READ_BYTES]).unwrap() > 0);
            pieces.iter().for_each(|piece| stream.write_all(piece.as_bytes()).unwrap());
        });
        let request = Request { method: "GET", path: "/", headers: &[], body: None };
        Events::open(address, &request, LIMIT)
    }

    #[test]
    fn messages_come_one_by_one_however_they_are_cut() {
        let mut events = opened(&[
            HEAD,
            "21\r\nid: 1\nretry: 1000\ndata:\n\n: here\n\n\r\n",
            "11\r\ndata: {\"a\":1}\n\nda\r\n7\r\nta: [2]\r",
            "\n2\r\n\n\n\r\n0\r\n\r\n",
        ])
        .unwrap();
        let mut told = Vec::new();
        while let Some(message) = events.next(LIMIT).unwrap() {
            told.push(message);
        }
        assert_eq!(told, [json!({"a": 1}), json!([2])]);
    }

    #[test]
    fn an_end_without_a_last_chunk_is_an_error_and_another_answer_is_no_stream() {
        let mut cut = opened(&[HEAD, "3\r\nda"]).unwrap();
        assert!(matches!(cut.next(LIMIT), Err(NoAnswer::Broken(_))));
        let other = opened(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"]);
        assert!(matches!(other, Err(NoAnswer::Malformed(_))), "{other:?}");
    }
}
