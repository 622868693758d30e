//! HTTP/1.1 with keep-alive over a plain socket. Not a client library: it sends prepared bytes and
//! finds the end of the answer, so that the load client takes as little as possible of the machine
//! that it shares with the server.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Result;

/// Longer than the 30 seconds that the server may wait for a run.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 16 * 1024;
const HEAD_END: &[u8] = b"\r\n\r\n";
const LINE_END: &[u8] = b"\r\n";

/// The bytes of a POST with a JSON body.
pub fn post(address: SocketAddr, path: &str, body: &str) -> Vec<u8> {
    post_with(address, path, "", body)
}

/// The same with more header lines, each with its line end.
pub fn post_with(address: SocketAddr, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The bytes of a GET.
pub fn get(address: SocketAddr, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n").into_bytes()
}

/// One answer; it borrows the client's buffer until the next request.
#[derive(Debug)]
pub struct Answer<'a> {
    pub status: u16,
    /// The whole body, without chunk marks.
    pub body: &'a [u8],
}

/// One connection to a server; one request at a time.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
}

impl Client {
    /// Connects, with Nagle's delay off.
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let connection = Connection::new(TcpStream::connect(address).await?)?;
        Ok(Self { connection })
    }

    /// The client that was kept after an answer, or a new one.
    pub async fn kept_or_new(kept: &mut Option<Self>, address: SocketAddr) -> Result<Self> {
        match kept.take() {
            Some(client) => Ok(client),
            None => Self::connect(address).await,
        }
    }

    /// Sends a prepared request and reads its whole answer, within a limit.
    pub async fn send(&mut self, request: &[u8]) -> Result<Answer<'_>> {
        let exchange = timeout(ANSWER_LIMIT, self.exchange(request)).await;
        let (status, body) = exchange.map_err(|_| "no answer within 60 s")??;
        Ok(Answer { status, body: &self.connection.buffer[body] })
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<(u16, Range<usize>)> {
        self.connection.write(request).await?;
        let body = self.connection.read_message().await?;
        let body = body.ok_or("the server closed the connection instead of answering")?;
        Ok((status_of(&self.connection.buffer)?, body))
    }
}

/// A socket on which whole messages are read, requests and answers alike.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Takes over a connected socket.
    pub fn new(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(READ_BYTES) })
    }

    /// Writes all the bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).await?;
        Ok(())
    }

    /// Reads one message and says where its body lies in the buffer; `None` when the other side
    /// closed between two messages.
    pub async fn read_message(&mut self) -> Result<Option<Range<usize>>> {
        // No one pipelines here: what is left belongs to the message before.
        self.buffer.clear();
        let head = loop {
            if let Some(end) = find(&self.buffer, HEAD_END) {
                break end + HEAD_END.len();
            }
            if !self.read_some().await? {
                if self.buffer.is_empty() {
                    return Ok(None);
                }
                return Err("the connection closed inside a message head".into());
            }
        };
        match framing_of(&self.buffer[..head])? {
            Framing::Length(length) => {
                self.fill(head + length).await?;
                Ok(Some(head..head + length))
            }
            Framing::Chunked => self.read_chunks(head).await.map(Some),
        }
    }

    /// Moves the chunks together, so that the body is one slice from `start` on.
    async fn read_chunks(&mut self, start: usize) -> Result<Range<usize>> {
        let mut end = start;
        let mut at = start;
        loop {
            let line_end = self.line_end(at).await?;
            let size = chunk_size(&self.buffer[at..line_end])?;
            at = line_end + LINE_END.len();
            if size == 0 {
                break;
            }
            self.fill(at + size + LINE_END.len()).await?;
            self.buffer.copy_within(at..at + size, end);
            end += size;
            at += size + LINE_END.len();
        }
        loop {
            let line_end = self.line_end(at).await?;
            // The empty line after the trailers ends the message.
            if line_end == at {
                return Ok(start..end);
            }
            at = line_end + LINE_END.len();
        }
    }

    async fn line_end(&mut self, from: usize) -> Result<usize> {
        loop {
            let known = self.buffer.get(from..).unwrap_or_default();
            if let Some(end) = find(known, LINE_END) {
                return Ok(from + end);
            }
            self.read_or_fail().await?;
        }
    }

    async fn fill(&mut self, length: usize) -> Result<()> {
        while self.buffer.len() < length {
            self.read_or_fail().await?;
        }
        Ok(())
    }

    async fn read_or_fail(&mut self) -> Result<()> {
        if self.read_some().await? {
            return Ok(());
        }
        Err("the connection closed inside a message body".into())
    }

    async fn read_some(&mut self) -> Result<bool> {
        self.buffer.reserve(READ_BYTES);
        let read = self.stream.read_buf(&mut self.buffer).await?;
        Ok(read > 0)
    }
}

enum Framing {
    Length(usize),
    Chunked,
}

/// A message with neither header has no body (a GET, a 204).
fn framing_of(head: &[u8]) -> Result<Framing> {
    let mut framing = Framing::Length(0);
    for line in std::str::from_utf8(head)?.split("\r\n").skip(1) {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            framing = Framing::Length(value.trim().parse()?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            framing = Framing::Chunked;
        }
    }
    Ok(framing)
}

/// `HTTP/1.1 200 OK`: the status stands at a fixed place.
fn status_of(head: &[u8]) -> Result<u16> {
    let digits = head.get(9..12).ok_or("the answer has no status line")?;
    Ok(std::str::from_utf8(digits)?.parse()?)
}

fn chunk_size(line: &[u8]) -> Result<usize> {
    let line = std::str::from_utf8(line)?;
    let (size, _extension) = line.split_once(';').unwrap_or((line, ""));
    Ok(usize::from_str_radix(size.trim(), 16)?)
}

/// Where these bytes begin in others.
pub fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
