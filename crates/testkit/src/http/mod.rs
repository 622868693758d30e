//! HTTP/1.1 over one blocking socket: a client that keeps its connection, and the reading and
//! writing of messages that the receiver's side needs too. It is strict about one thing: whether an
//! answer came, or only silence. `grpc` speaks HTTP/2, for the one service there is.

pub mod grpc;

use serde_json::Value;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Much longer than the 30 seconds that the server waits for a run unless told otherwise.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(120);

const CONNECT_LIMIT: Duration = Duration::from_secs(120);
const READ_BYTES: usize = 16 * 1024;
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Why there is no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// No one took the connection: the request was never sent.
    Unreachable(io::Error),
    /// The connection ended before the answer was whole: the request may have been done.
    Broken(io::Error),
    /// The connection is there, but no whole message came within this time.
    Late(Duration),
    /// Something came that is no HTTP.
    Malformed(String),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAnswer::Unreachable(error) => write!(f, "no connection: {error}"),
            NoAnswer::Broken(error) => write!(f, "the connection ended first: {error}"),
            NoAnswer::Late(limit) => write!(f, "no answer within {} s", limit.as_secs()),
            NoAnswer::Malformed(text) => write!(f, "not HTTP: {text}"),
        }
    }
}

impl std::error::Error for NoAnswer {}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// The headers in the order they came, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole body, without chunk marks.
    pub body: String,
}

impl Answer {
    /// The first header of this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }

    /// The body as JSON; panics with the body if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| {
            panic!("the answer {} is not JSON ({error}): {}", self.status, self.body)
        })
    }
}

/// A request to send.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `GET`, `POST`, ...
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Headers beside host, length and content type.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body; it is sent as JSON.
    pub body: Option<&'a str>,
}

/// A client for one server: one request at a time, over a kept connection where there is one.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    limit: Duration,
    /// What goes with every request.
    always: Vec<(&'static str, String)>,
    kept: Option<Connection>,
}

impl Client {
    /// A client that connects with its first request.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, limit: ANSWER_LIMIT, always: Vec::new(), kept: None }
    }

    /// The same client, waiting at most this long for each answer.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The same client, sending this header with every request.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.always.push((name, value.to_owned()));
        self
    }

    /// The server's address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a GET.
    pub fn get(&mut self, path: &str) -> Result<Answer, NoAnswer> {
        self.send(&Request { method: "GET", path, headers: &[], body: None })
    }

    /// Sends a POST with a JSON body.
    pub fn post(&mut self, path: &str, body: &Value) -> Result<Answer, NoAnswer> {
        let body = body.to_string();
        self.send(&Request { method: "POST", path, headers: &[], body: Some(&body) })
    }

    /// Sends a request once and reads its whole answer. Nothing is ever sent a second time.
    pub fn send(&mut self, request: &Request<'_>) -> Result<Answer, NoAnswer> {
        let mut connection = self.connect()?;
        connection.write(&self.bytes_of(request))?;
        let Some(message) = connection.read(self.limit)? else {
            return Err(NoAnswer::Broken(closed("before the answer")));
        };
        if !message.closes {
            self.kept = Some(connection);
        }
        Ok(Answer { status: message.status()?, headers: message.headers, body: message.body })
    }

    fn connect(&mut self) -> Result<Connection, NoAnswer> {
        match self.kept.take() {
            Some(connection) if connection.is_open() => Ok(connection),
            _ => TcpStream::connect_timeout(&self.address, CONNECT_LIMIT)
                .and_then(Connection::new)
                .map_err(NoAnswer::Unreachable),
        }
    }

    /// The request as it is sent.
    pub(crate) fn bytes_of(&self, request: &Request<'_>) -> Vec<u8> {
        let Request { method, path, headers, body } = request;
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        let always = self.always.iter().map(|(name, value)| (*name, value.as_str()));
        for (name, value) in always.chain(headers.iter().copied()) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            let length = body.len();
            text.push_str(&format!(
                "content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            ));
        } else {
            text.push_str("\r\n");
        }
        text.into_bytes()
    }
}

/// One message as it came, a request or an answer.
#[derive(Debug)]
pub struct Message {
    /// The request line or the status line.
    pub first_line: String,
    /// The headers in the order they came, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole body, without chunk marks.
    pub body: String,
    /// The same as it came, for what is no text.
    pub bytes: Vec<u8>,
    /// Whether the connection ends with this message.
    pub closes: bool,
}

impl Message {
    /// The first header of this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }

    fn status(&self) -> Result<u16, NoAnswer> {
        let status = self.first_line.split(' ').nth(1).and_then(|word| word.parse().ok());
        status.ok_or_else(|| NoAnswer::Malformed(format!("status line `{}`", self.first_line)))
    }
}

/// A socket on which whole messages are read.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
}

impl Connection {
    /// Takes over a connected socket, with Nagle's delay off.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        Ok(Self { stream })
    }

    /// Writes all the bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), NoAnswer> {
        self.stream.write_all(bytes).map_err(NoAnswer::Broken)
    }

    /// Reads one message; `None` when the other side closed before its first byte.
    pub fn read(&mut self, limit: Duration) -> Result<Option<Message>, NoAnswer> {
        let deadline = Instant::now() + limit;
        let mut reader = Reader { stream: &self.stream, bytes: Vec::new(), at: 0, deadline, limit };
        if !reader.more()? {
            return Ok(None);
        }
        reader.message().map(Some)
    }

    /// Whether a kept connection can still be used: a server may close it between two requests.
    pub(crate) fn is_open(&self) -> bool {
        let peeked = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0; 1]));
        let restored = self.stream.set_nonblocking(false);
        restored.is_ok() && peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

/// The bytes of one message as they come. No one pipelines here, so none belong to the next.
struct Reader<'a> {
    stream: &'a TcpStream,
    bytes: Vec<u8>,
    at: usize,
    deadline: Instant,
    limit: Duration,
}

impl Reader<'_> {
    fn message(&mut self) -> Result<Message, NoAnswer> {
        let first_line = self.line()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let Some((name, value)) = line.split_once(':') else {
                return Err(NoAnswer::Malformed(format!("header line `{line}`")));
            };
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
        let says = |name: &str, word: &str| {
            find_header(&headers, name)
                .is_some_and(|value| value.to_ascii_lowercase().contains(word))
        };
        let closes = says("connection", "close");
        let bytes = if says("transfer-encoding", "chunked") {
            self.chunks()?
        } else if let Some(length) = find_header(&headers, "content-length") {
            let length = length
                .parse()
                .map_err(|_| NoAnswer::Malformed(format!("content length `{length}`")))?;
            self.take(length)?
        } else if closes && first_line.starts_with("HTTP/") {
            self.rest()?
        } else {
            Vec::new()
        };
        let body = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Message { first_line, headers, body, bytes, closes })
    }

    fn chunks(&mut self) -> Result<Vec<u8>, NoAnswer> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16)
                .map_err(|_| NoAnswer::Malformed(format!("chunk size `{line}`")))?;
            if size == 0 {
                break;
            }
            body.extend(self.take(size)?);
            self.line()?;
        }
        // Trailers, up to the empty line that ends the message.
        while !self.line()?.is_empty() {}
        Ok(body)
    }

    fn line(&mut self) -> Result<String, NoAnswer> {
        loop {
            let known = &self.bytes[self.at..];
            if let Some(end) = known.windows(2).position(|pair| pair == b"\r\n") {
                let line = String::from_utf8_lossy(&known[..end]).into_owned();
                self.at += end + 2;
                return Ok(line);
            }
            self.more_or_broken("inside the head")?;
        }
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, NoAnswer> {
        if length > BODY_BYTES_MAX {
            return Err(NoAnswer::Malformed(format!("a body of {length} bytes")));
        }
        while self.bytes.len() - self.at < length {
            self.more_or_broken("inside the body")?;
        }
        let taken = self.bytes[self.at..self.at + length].to_vec();
        self.at += length;
        Ok(taken)
    }

    fn rest(&mut self) -> Result<Vec<u8>, NoAnswer> {
        while self.more()? {}
        Ok(self.bytes.split_off(self.at))
    }

    fn more_or_broken(&mut self, place: &str) -> Result<(), NoAnswer> {
        if self.more()? { Ok(()) } else { Err(NoAnswer::Broken(closed(place))) }
    }

    /// Waits for more bytes; false at the end of the stream.
    fn more(&mut self) -> Result<bool, NoAnswer> {
        let mut chunk = [0; READ_BYTES];
        let mut stream = self.stream;
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NoAnswer::Late(self.limit));
            }
            stream.set_read_timeout(Some(left)).map_err(NoAnswer::Broken)?;
            match stream.read(&mut chunk) {
                Ok(count) => {
                    self.bytes.extend_from_slice(&chunk[..count]);
                    return Ok(count > 0);
                }
                Err(error) => match error.kind() {
                    // The loop's own deadline tells whether the time is up.
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => return Err(NoAnswer::Broken(error)),
                },
            }
        }
    }
}

fn find_header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn closed(place: &str) -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, format!("closed {place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// A server that answers the requests of one connection with these texts, then closes it.
    fn serving(texts: &'static [&'static str]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let mut connection = Connection::new(listener.accept().unwrap().0).unwrap();
            for text in texts {
                connection.read(ANSWER_LIMIT).unwrap().unwrap();
                connection.write(text.as_bytes()).unwrap();
            }
        });
        address
    }

    #[test]
    fn one_connection_carries_answers_of_both_framings() {
        let address = serving(&[
            "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"ok\":true}",
            "HTTP/1.1 202 Accepted\r\nLocation: /a\r\nTransfer-Encoding: chunked\r\n\r\n\
             3\r\n[1,\r\n2;x=y\r\n2]\r\n0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
        ]);
        let mut client = Client::new(address);
        let first = client.get("/").unwrap();
        assert_eq!((first.status, first.json()), (200, serde_json::json!({"ok": true})));
        let second = client.post("/", &serde_json::json!({"a": 1})).unwrap();
        assert_eq!((second.status, second.body.as_str()), (202, "[1,2]"));
        assert_eq!(second.header("location"), Some("/a"));
        assert_eq!(client.get("/").unwrap().status, 204);
    }

    #[test]
    fn an_answer_without_a_length_ends_with_its_connection() {
        let address = serving(&["HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nall of it"]);
        assert_eq!(Client::new(address).get("/").unwrap().body, "all of it");
    }

    #[test]
    fn silence_and_refusal_are_distinguished() {
        // A port that no one is given by chance, and no one listens on.
        let refused = Client::new("127.0.0.1:1".parse().unwrap()).get("/");
        assert!(matches!(refused, Err(NoAnswer::Unreachable(_))), "{refused:?}");
        let cut =
            Client::new(serving(&["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal"])).get("/");
        assert!(matches!(cut, Err(NoAnswer::Broken(_))), "{cut:?}");
        let odd = Client::new(serving(&["hello\r\n\r\n"])).get("/");
        assert!(matches!(odd, Err(NoAnswer::Malformed(_))), "{odd:?}");
    }

    #[test]
    fn a_late_answer_is_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client =
            Client::new(listener.local_addr().unwrap()).limit(Duration::from_millis(20));
        let late = client.get("/");
        assert!(matches!(late, Err(NoAnswer::Late(_))), "{late:?}");
    }
}
