//! One plain connection and what goes over it: a request, and its answer. Nothing moves on it
//! unless somebody waits for it, and nothing watches the time.

use super::framing::{Framing, Next};
use super::head::{HEAD_BYTES_MAX, Head, Request};
use crate::http::reasons;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use reqwest::StatusCode;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;

/// How much is read at once. A connection that brings more than that is read in larger pieces.
const READ_BYTES: usize = 8 * 1024;
/// The largest of them.
const READ_BYTES_MAX: usize = 64 * 1024;
/// How much room a request finds at first.
const WRITE_BYTES: usize = 1024;
/// How large a buffer may be that is kept for the next request; there are two.
const KEPT_BYTES_MAX: usize = 16 * 1024;
/// How many answers may say that the answer is still to come.
const INTERIM_MAX: usize = 16;

/// A connection.
pub(super) struct Wire<S> {
    stream: S,
    /// Who is at the other end.
    from: Option<IpAddr>,
    /// The head of the request, and its body if that is small.
    out: Vec<u8>,
    /// How much of that was written.
    written: usize,
    /// What is to be written after it.
    large: Bytes,
    /// Why nothing more can be written.
    deaf: Option<String>,
    /// What was read and not yet looked at.
    unread: BytesMut,
    /// For how much room is made before it is read.
    room: usize,
    /// How much room there was at most.
    held: usize,
    /// How many answers said that the answer is still to come.
    interim: usize,
    framing: Framing,
    /// Whether what came is not HTTP.
    is_garbled: bool,
    /// Whether the answer leaves the connection open.
    is_kept: bool,
}

/// What came of a request on one connection.
pub(super) enum Exchanged {
    /// The head of an answer; its body can be read.
    Answered(Head),
    /// Nothing of the request was written.
    Unsent(String),
    /// The connection was lost with it.
    Lost(String),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// A connection to this address, over which nothing went yet.
    pub(super) fn new(stream: S, from: Option<IpAddr>) -> Self {
        Self {
            stream,
            from,
            out: Vec::with_capacity(WRITE_BYTES),
            written: 0,
            large: Bytes::new(),
            deaf: None,
            unread: BytesMut::new(),
            room: READ_BYTES,
            held: 0,
            interim: 0,
            framing: Framing::Length(0),
            is_garbled: false,
            is_kept: false,
        }
    }

    /// Sends a request and waits for the head of its answer, which may come before all was sent.
    pub(super) async fn exchange(&mut self, request: &Request<'_>) -> Exchanged {
        self.out.clear();
        self.large = request.write(&mut self.out);
        (self.written, self.interim, self.is_kept) = (0, 0, false);
        poll_fn(|context| self.poll_exchange(context)).await
    }

    fn poll_exchange(&mut self, context: &mut Context<'_>) -> Poll<Exchanged> {
        self.send(context);
        if self.written == 0
            && let Some(why) = &self.deaf
        {
            return Poll::Ready(Exchanged::Unsent(why.clone()));
        }
        let answered = ready!(self.poll_head(context)).and_then(|head| {
            self.framing = Framing::of(&head).inspect_err(|_| self.is_garbled = true)?;
            self.is_kept = self.framing.keeps(&head) && self.is_sent();
            Ok(head)
        });
        Poll::Ready(match answered {
            Ok(head) => Exchanged::Answered(head),
            // Whoever does not listen any more may not answer for that reason.
            Err(why) => Exchanged::Lost(self.deaf.take().unwrap_or(why)),
        })
    }

    /// The next piece of the body; none at its end, else why there is no more.
    pub(super) fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, String>> {
        loop {
            match self.framing.next(&mut self.unread) {
                Ok(Next::Piece(piece)) => return Poll::Ready(Ok(Some(piece))),
                Ok(Next::End) => return Poll::Ready(Ok(None)),
                Ok(Next::Unread) => {}
                Err(why) => {
                    self.is_garbled = true;
                    return Poll::Ready(Err(why));
                }
            }
            // Who answers early may still want to hear the rest.
            self.send(context);
            match ready!(self.poll_read(context)) {
                Ok(0) => return Poll::Ready(self.framing.ended().map(|()| None)),
                Ok(_) => {}
                Err(why) => return Poll::Ready(Err(why)),
            }
        }
    }

    /// Who is at the other end, if that is known.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.from
    }

    /// How much of the body is to come, if that is known.
    pub(super) fn left(&self) -> Option<u64> {
        self.framing.left()
    }

    /// Whether what came is not HTTP.
    pub(super) fn is_garbled(&self) -> bool {
        self.is_garbled
    }

    /// Whether all of the body was read.
    pub(super) fn is_whole(&self) -> bool {
        self.framing.is_whole()
    }

    /// Whether it can take the next request, now that the body was read. What is there beyond the
    /// answer was not asked for, and is not for whoever asks next.
    pub(super) fn is_reusable(&self) -> bool {
        self.is_kept && self.is_whole() && self.unread.is_empty()
    }

    /// Gives back what is not needed while it rests.
    pub(super) fn shrink(&mut self) {
        if self.held > KEPT_BYTES_MAX {
            (self.unread, self.room, self.held) = (BytesMut::new(), READ_BYTES, 0);
        }
        if self.out.capacity() > KEPT_BYTES_MAX {
            self.out = Vec::with_capacity(WRITE_BYTES);
        }
    }

    fn is_sent(&self) -> bool {
        self.written == self.out.len() && self.large.is_empty()
    }

    /// Writes whatever can be written now; the context is woken for the rest. What is written to a
    /// socket need not be flushed.
    fn send(&mut self, context: &mut Context<'_>) {
        while !self.is_sent() && self.deaf.is_none() {
            let is_large = self.written == self.out.len();
            let unsent = if is_large { &self.large[..] } else { &self.out[self.written..] };
            match Pin::new(&mut self.stream).poll_write(context, unsent) {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => self.deaf = Some("it takes no more".to_owned()),
                Poll::Ready(Ok(bytes)) if is_large && bytes == self.large.len() => {
                    // An empty rest would hold all of the body for as long as the connection rests.
                    self.large = Bytes::new();
                }
                Poll::Ready(Ok(bytes)) if is_large => self.large.advance(bytes),
                Poll::Ready(Ok(bytes)) => self.written += bytes,
                Poll::Ready(Err(error)) => self.deaf = Some(reasons(&error)),
            }
        }
    }

    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Result<Head, String>> {
        loop {
            let before = self.unread.len();
            match ready!(self.poll_read(context)) {
                Ok(0) => return Poll::Ready(Err(self.no_head())),
                Ok(_) => {}
                Err(why) => return Poll::Ready(Err(why)),
            }
            // A head ends with a line: one that comes byte by byte is not looked at each time.
            let has_line = self.unread[before..].contains(&b'\n');
            if !has_line && self.unread.len() < HEAD_BYTES_MAX {
                continue;
            }
            match self.take_head() {
                Ok(Some(head)) => return Poll::Ready(Ok(head)),
                Ok(None) => {}
                Err(why) => {
                    self.is_garbled = true;
                    return Poll::Ready(Err(why));
                }
            }
        }
    }

    /// The head of the answer, if it is there.
    fn take_head(&mut self) -> Result<Option<Head>, String> {
        while let Some(head) = Head::take(&mut self.unread)? {
            if !head.status.is_informational() {
                return Ok(Some(head));
            }
            if head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Err("it wants to speak another protocol".to_owned());
            }
            self.interim += 1;
            if self.interim > INTERIM_MAX {
                return Err(format!("it said more than {INTERIM_MAX} times that it will answer"));
            }
        }
        Ok(None)
    }

    /// Why there is no head, now that the connection has ended.
    fn no_head(&mut self) -> String {
        match Head::take(&mut self.unread) {
            Err(why) => {
                self.is_garbled = true;
                why
            }
            Ok(_) if self.unread.is_empty() => "it ended without an answer".to_owned(),
            Ok(_) => "it ended in the middle of a head".to_owned(),
        }
    }

    /// Reads once; none is read at the connection's end.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<usize, String>> {
        if self.unread.capacity() - self.unread.len() < self.room / 2 {
            self.make_room();
        }
        let spare = (self.unread.capacity() - self.unread.len()).min(READ_BYTES_MAX);
        let mut unread = (&mut self.unread).limit(spare);
        let reading = pin!(self.stream.read_buf(&mut unread));
        let bytes = match ready!(reading.poll(context)) {
            Ok(bytes) => bytes,
            Err(error) => return Poll::Ready(Err(reasons(&error))),
        };
        if bytes == spare {
            self.room = (self.room * 2).min(READ_BYTES_MAX);
        }
        Poll::Ready(Ok(bytes))
    }

    /// Makes room to read. What was given out keeps its memory; most often nobody has it any more,
    /// and it is used again.
    fn make_room(&mut self) {
        if self.unread.is_empty() && self.held < self.room {
            self.unread = BytesMut::with_capacity(self.room);
        } else {
            self.unread.reserve(self.room);
        }
        self.held = self.held.max(self.unread.capacity());
    }
}

impl Wire<TcpStream> {
    /// Looks whether the other side has closed it, or said what nobody asked for.
    pub(super) fn is_open(&self) -> bool {
        let unasked = self.stream.try_read(&mut [0]);
        unasked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

#[cfg(test)]
mod tests {
    use super::super::head::Shared;
    use super::*;
    use reqwest::Method;
    use reqwest::header::HeaderMap;
    use tokio::io::{AsyncWriteExt, duplex};

    #[tokio::test]
    async fn a_connection_that_rests_holds_little() {
        let (near, mut far) = duplex(1024 * 1024);
        let mut wire = Wire::new(near, None);
        let (method, own) = (Method::POST, HeaderMap::new());
        let body = Bytes::from(vec![b'x'; KEPT_BYTES_MAX]);
        let (target, bearer, shared) = ("/", None, &Shared::default());
        let request = Request { method: &method, target, shared, own: &own, bearer, body: &body };
        let bytes = 4 * READ_BYTES_MAX;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
        far.write_all(head.as_bytes()).await.unwrap();
        far.write_all(&vec![b'y'; bytes]).await.unwrap();
        assert!(matches!(wire.exchange(&request).await, Exchanged::Answered(_)));
        let (mut read, mut largest) = (0, 0);
        while let Some(piece) = poll_fn(|context| wire.poll_piece(context)).await.unwrap() {
            read += piece.len();
            largest = largest.max(piece.len());
        }
        assert_eq!(read, bytes);
        assert!((READ_BYTES..=READ_BYTES_MAX).contains(&largest), "{largest}");
        assert!(wire.is_reusable());
        assert!(wire.held > KEPT_BYTES_MAX && wire.out.capacity() > KEPT_BYTES_MAX);
        wire.shrink();
        assert_eq!((wire.unread.capacity(), wire.room), (0, READ_BYTES));
        assert!(wire.out.capacity() <= KEPT_BYTES_MAX);
    }

    #[tokio::test]
    async fn a_body_that_was_sent_is_let_go_of() {
        let (near, mut far) = duplex(1024 * 1024);
        let mut wire = Wire::new(near, None);
        let (method, own) = (Method::POST, HeaderMap::new());
        // Too large to be written together with its head.
        let body = Bytes::from(vec![b'x'; 4 * KEPT_BYTES_MAX]);
        let (target, bearer, shared) = ("/", None, &Shared::default());
        let request = Request { method: &method, target, shared, own: &own, bearer, body: &body };
        far.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        assert!(matches!(wire.exchange(&request).await, Exchanged::Answered(_)));
        assert!(wire.is_reusable());
        assert!(body.is_unique());
    }
}
